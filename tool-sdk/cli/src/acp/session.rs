//! One session: its conversation, and the prompt that is being answered.
//!
//! **Invariant:** at most one prompt at a time changes the conversation, which is saved after each.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ContentBlock, ContentChunk,
    SessionId, SessionInfoUpdate, SessionModeState, SessionUpdate, StopReason,
    UnstructuredCommandInput,
};
use agent_client_protocol::{Error, ErrorCode};
use tokio_util::sync::CancellationToken;
use tool_sdk_agent::{AgentStop, SpendingLimit};
use tool_sdk_core::{Pipeline, Session};

use super::modes;
use super::prompt_blocks::read_prompt;
use super::tool_calls::fence_text;
use super::update_queue::{SessionEvent, UpdateSender};
use crate::chat::{Conversation, SLASH_COMMANDS, SlashOutcome, run_slash_command};
use crate::conversation_title::conversation_title;

/// The commands that make sense in an editor.
const OFFERED_COMMANDS: [&str; 5] = ["/compact", "/cost", "/model", "/rules", "/tools"];

/// A session that a client opened.
pub(super) struct EditorSession {
    pub(super) id: SessionId,
    pub(super) pipeline: Pipeline,
    pub(super) session: Session,
    pub(super) updates: UpdateSender,
    pub(super) offers_bypass: bool,
    /// Cancels everything in the session.
    pub(super) cancel: CancellationToken,
    /// Empty once the session is closed.
    pub(super) conversation: tokio::sync::Mutex<Option<Conversation>>,
    /// Cancels the prompt that is being answered.
    pub(super) turn: Mutex<Option<CancellationToken>>,
}

/// A prompt that may be answered.
pub(super) struct PromptTurn {
    session: Arc<EditorSession>,
    pub(super) cancel: CancellationToken,
}

impl EditorSession {
    /// Begins to answer a prompt.
    ///
    /// # Errors
    ///
    /// Fails while another prompt is answered that was not cancelled.
    pub(super) fn begin_turn(self: &Arc<Self>) -> Result<PromptTurn, Error> {
        let mut turn = self.current_turn();
        if turn.as_ref().is_some_and(|turn| !turn.is_cancelled()) {
            return Err(request_error("the session is answering a prompt; cancel that one first"));
        }
        let cancel = self.cancel.child_token();
        *turn = Some(cancel.clone());
        Ok(PromptTurn { session: Arc::clone(self), cancel })
    }

    /// Cancels the prompt that is being answered, if there is one.
    pub(super) fn cancel_turn(&self) {
        if let Some(turn) = &*self.current_turn() {
            turn.cancel();
        }
    }

    fn current_turn(&self) -> MutexGuard<'_, Option<CancellationToken>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn mode_state(&self) -> SessionModeState {
        let current = modes::current_mode(&self.pipeline, &self.session);
        modes::mode_state(current, self.offers_bypass)
    }

    /// Changes the permission mode. One in which more than reading may run ends plan mode, too.
    pub(super) async fn select_mode(&self, id: &str) -> Result<(), Error> {
        let mode = modes::parse_mode(id, self.offers_bypass);
        let mode = mode.map_err(|problem| params_error(&problem))?;
        if !mode.is_read_only() {
            let ended = self.pipeline.end_plan_mode(&self.session).await;
            ended.map_err(|error| failure(error.message()))?;
        }
        self.pipeline.set_mode(mode);
        Ok(())
    }

    /// Reports the commands that the client may offer.
    pub(super) fn report_commands(&self) {
        let offered = SLASH_COMMANDS.iter().filter(|(name, ..)| OFFERED_COMMANDS.contains(name));
        let commands = offered.map(|(name, arguments, about)| {
            let input = (!arguments.is_empty()).then(|| {
                AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(*arguments))
            });
            AvailableCommand::new(name.trim_start_matches('/'), *about).input(input)
        });
        let update = AvailableCommandsUpdate::new(commands.collect());
        self.report(SessionUpdate::AvailableCommandsUpdate(update));
    }

    fn report(&self, update: SessionUpdate) {
        self.updates.push(SessionEvent::Update(Box::new(update)));
    }

    fn report_text(&self, text: String) {
        let chunk = ContentChunk::new(ContentBlock::from(text));
        self.report(SessionUpdate::AgentMessageChunk(chunk));
    }

    /// Ends what the session left running. The conversation is saved already.
    pub(super) async fn close(&self) {
        self.cancel.cancel();
        let mut conversation = self.conversation.lock().await.take();
        if let Some(conversation) = &mut conversation {
            conversation.finish_tasks().await;
        }
        let _ = self.pipeline.close().await;
        self.pipeline.finish().await;
        // The servers of a conversation have a runtime of their own, whose end blocks.
        let _ = tokio::task::spawn_blocking(move || drop(conversation)).await;
    }
}

impl PromptTurn {
    /// Answers a prompt. Every update of it is sent before this returns. A failure to save is
    /// returned beside the result.
    pub(super) async fn answer(
        &self,
        blocks: &[ContentBlock],
    ) -> (Result<StopReason, Error>, Option<String>) {
        let mut conversation = self.session.conversation.lock().await;
        let answered = match &mut *conversation {
            Some(conversation) => self.answer_in(conversation, blocks).await,
            None => (Err(request_error("the session is closed")), None),
        };
        self.session.updates.flush().await;
        self.end();
        answered
    }

    async fn answer_in(
        &self,
        conversation: &mut Conversation,
        blocks: &[ContentBlock],
    ) -> (Result<StopReason, Error>, Option<String>) {
        let prompt = match read_prompt(blocks) {
            Ok(prompt) => prompt,
            Err(problem) => return (Err(params_error(&problem)), None),
        };
        if let Some(command) = offered_command(&prompt.text) {
            let stop = self.run_command(command, conversation).await;
            return (Ok(stop), conversation.save().await.err());
        }
        if conversation.transcript.entries.is_empty() {
            let update = SessionInfoUpdate::new().title(conversation_title(&prompt.text));
            self.session.report(SessionUpdate::SessionInfoUpdate(update));
        }
        conversation.push_user(prompt.text, prompt.attachments);
        let updates = self.session.updates.clone();
        let observe = move |event| updates.push(SessionEvent::Chat(event));
        let kept = conversation.transcript.clone();
        let ended = conversation.start_with(self.cancel.clone(), observe).await;
        let Ok((outcome, transcript)) = ended else {
            conversation.transcript = kept;
            return (Err(failure("the agent failed")), None);
        };
        conversation.transcript = transcript;
        let unsaved = conversation.save().await.err();
        if let AgentStop::Halted(_) | AgentStop::Limit(_) | AgentStop::NoProgress = &outcome.stop {
            self.session.report_text(format!("\n\n[stopped: {}]", outcome.stop));
        }
        (stop_reason(&outcome.stop), unsaved)
    }

    /// Runs a command of the user. A cancelled command leaves the conversation as it was.
    async fn run_command(&self, command: &str, conversation: &mut Conversation) -> StopReason {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => StopReason::Cancelled,
            outcome = run_slash_command(command, conversation) => {
                if let SlashOutcome::Show(text) = outcome {
                    self.session.report_text(fence_text(&text));
                }
                StopReason::EndTurn
            }
        }
    }

    /// Makes room for the next prompt, unless that one began because this one was cancelled.
    fn end(&self) {
        if !self.cancel.is_cancelled() {
            *self.session.current_turn() = None;
        }
    }
}

/// Returns the prompt if it is one of the offered commands.
fn offered_command(prompt: &str) -> Option<&str> {
    let prompt = prompt.trim();
    let name = prompt.split_whitespace().next()?;
    OFFERED_COMMANDS.contains(&name).then_some(prompt)
}

fn stop_reason(stop: &AgentStop) -> Result<StopReason, Error> {
    Ok(match stop {
        AgentStop::Finished | AgentStop::Halted(_) => StopReason::EndTurn,
        AgentStop::Cancelled => StopReason::Cancelled,
        AgentStop::Limit(SpendingLimit::Tokens(_))
        | AgentStop::ContextFull
        | AgentStop::NoProgress => StopReason::MaxTokens,
        AgentStop::TurnLimit(_) | AgentStop::Limit(_) => StopReason::MaxTurnRequests,
        AgentStop::Refused => StopReason::Refusal,
        other => return Err(failure(&other.to_string())),
    })
}

/// Returns the error for parameters that cannot be used.
pub(super) fn params_error(message: &str) -> Error {
    Error::new(ErrorCode::INVALID_PARAMS, message)
}

/// Returns the error for a request that does not fit the state of the session.
pub(super) fn request_error(message: &str) -> Error {
    Error::new(ErrorCode::INVALID_REQUEST, message)
}

/// Returns the error for work that failed.
pub(super) fn failure(message: &str) -> Error {
    Error::new(ErrorCode::INTERNAL_ERROR, message)
}
