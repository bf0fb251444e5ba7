//! The methods of the protocol, on one connection with any number of sessions.
//!
//! Handlers that take time run as tasks, so that the connection goes on reading. Handlers of cancel
//! and mode run at once, in the order of the messages.
//!
//! **Invariant:** a request for a session that is not open here is an error, and never opens one.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, ClientCapabilities, CloseSessionRequest,
    CloseSessionResponse, Implementation, InitializeRequest, InitializeResponse,
    ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, LoadSessionResponse,
    McpCapabilities, McpServer, NewSessionRequest, NewSessionResponse, PromptCapabilities,
    PromptRequest, PromptResponse, ResumeSessionRequest, ResumeSessionResponse,
    SessionCapabilities, SessionCloseCapabilities, SessionId, SessionInfo, SessionListCapabilities,
    SessionResumeCapabilities, SetSessionModeRequest, SetSessionModeResponse, StopReason,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{
    Agent, Client, Error, Lines, RequestCancellation, on_receive_notification, on_receive_request,
};
use futures_util::future::join_all;
use futures_util::{Sink, Stream};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tool_sdk_core::ConversationQuery;
use tool_sdk_core::internal::rfc3339;

use super::forms::EditorForms;
use super::permission::AcpApprover;
use super::session::{EditorSession, PromptTurn, failure, params_error};
use super::session_opener::{OpenedSession, OpenerRequest, SessionRequest};
use super::update_queue::{ForwarderConfig, SessionEvent, UpdateForwarder};
use crate::chat::StoredConversations;
use crate::settings::Settings;

/// How many sessions one page of the list has.
const PAGE: usize = 50;
/// How long opening a session waits for MCP servers; later ones add their tools when they answer.
const SERVERS_TIMEOUT: Duration = Duration::from_secs(10);
/// How long prompts and sessions may take to end when the connection ends.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The agent of one connection. Clones share it.
#[derive(Clone)]
pub(super) struct AcpService(Arc<ServiceState>);

struct ServiceState {
    program: String,
    conversations: StoredConversations,
    opener: mpsc::UnboundedSender<OpenerRequest>,
    sessions: Mutex<HashMap<SessionId, Arc<EditorSession>>>,
    client: Mutex<ClientCapabilities>,
    /// Requests that take time.
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl AcpService {
    pub(super) fn new(
        program: &str,
        settings: &Settings,
        opener: mpsc::UnboundedSender<OpenerRequest>,
    ) -> Self {
        Self(Arc::new(ServiceState {
            program: program.to_owned(),
            conversations: StoredConversations::new(settings),
            opener,
            sessions: Mutex::default(),
            client: Mutex::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        }))
    }

    /// Ends the connection: cancels its prompts and closes its sessions.
    pub(super) fn start_closing(&self) {
        self.0.closing.cancel();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.0.closing.is_cancelled()
    }

    /// Serves until the client closes its side, or until [`start_closing`](Self::start_closing).
    pub(super) async fn serve(
        &self,
        lines: impl Stream<Item = io::Result<String>> + Send + 'static,
        messages: impl Sink<String, Error = io::Error> + Send + 'static,
    ) -> Result<(), Error> {
        let service = || self.clone();
        let (initialize, open, load, resume) = (service(), service(), service(), service());
        let (list, close, mode, prompt, cancel) =
            (service(), service(), service(), service(), service());
        let served = Agent
            .v1()
            .name(self.0.program.clone())
            .on_receive_request(
                async move |request: InitializeRequest, responder, _| {
                    responder.respond(initialize.initialize(request))
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |request: NewSessionRequest, responder, connection| {
                    open.start_opening(request, responder, connection)
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |request: LoadSessionRequest, responder, connection| {
                    load.start_loading(request, responder, connection)
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |request: ResumeSessionRequest, responder, connection| {
                    resume.start_resuming(request, responder, connection)
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |request: ListSessionsRequest, responder, _| {
                    list.start_listing(request, responder)
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |request: CloseSessionRequest, responder, _| {
                    close.start_closing_session(&request, responder)
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |request: SetSessionModeRequest, responder, _| {
                    mode.select_mode(&request, responder)
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |request: PromptRequest, responder, _| {
                    prompt.start_prompt(request, responder)
                },
                on_receive_request!(),
            )
            .on_receive_notification(
                async move |notification: CancelNotification, _| {
                    if let Ok(session) = cancel.find_session(&notification.session_id) {
                        session.cancel_turn();
                    }
                    Ok(())
                },
                on_receive_notification!(),
            )
            .connect_with(Lines::new(messages, lines), async |connection| {
                tokio::select! {
                    () = connection.incoming_closed() => {}
                    () = self.0.closing.cancelled() => {}
                }
                self.close_all().await;
                Ok(())
            })
            .await;
        // Where the connection broke, the sessions are still open.
        self.close_all().await;
        served
    }

    fn initialize(&self, request: InitializeRequest) -> InitializeResponse {
        *lock(&self.0.client) = request.client_capabilities;
        let stores = self.0.conversations.outlive_program();
        let session = SessionCapabilities::new()
            .close(SessionCloseCapabilities::new())
            .list(stores.then(SessionListCapabilities::new))
            .resume(stores.then(SessionResumeCapabilities::new));
        let capabilities = AgentCapabilities::new()
            .load_session(stores)
            .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
            .mcp_capabilities(McpCapabilities::new().http(true))
            .session_capabilities(session);
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(Implementation::new(self.0.program.clone(), env!("CARGO_PKG_VERSION")))
    }

    fn start_opening(
        &self,
        request: NewSessionRequest,
        responder: Responder<NewSessionResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let service = self.clone();
        self.spawn(
            async move {
                refuse_folders(&request.additional_directories)?;
                let session =
                    service.open(request.cwd, request.mcp_servers, None, connection).await?;
                let response =
                    NewSessionResponse::new(session.id.clone()).modes(session.mode_state());
                Ok((session, response))
            },
            responder,
        )
    }

    fn start_loading(
        &self,
        request: LoadSessionRequest,
        responder: Responder<LoadSessionResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let service = self.clone();
        self.spawn(
            async move {
                refuse_folders(&request.additional_directories)?;
                let stored = Some(request.session_id);
                let session =
                    service.open(request.cwd, request.mcp_servers, stored, connection).await?;
                if let Some(conversation) = &*session.conversation.lock().await {
                    let transcript = Box::new(conversation.transcript.clone());
                    session.updates.push(SessionEvent::Replay(transcript));
                }
                session.updates.flush().await;
                let response = LoadSessionResponse::new().modes(session.mode_state());
                Ok((session, response))
            },
            responder,
        )
    }

    fn start_resuming(
        &self,
        request: ResumeSessionRequest,
        responder: Responder<ResumeSessionResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let service = self.clone();
        self.spawn(
            async move {
                refuse_folders(&request.additional_directories)?;
                let stored = Some(request.session_id);
                let session =
                    service.open(request.cwd, request.mcp_servers, stored, connection).await?;
                let response = ResumeSessionResponse::new().modes(session.mode_state());
                Ok((session, response))
            },
            responder,
        )
    }

    /// Runs `opening`, responds, and then reports the commands of the session.
    fn spawn<R: agent_client_protocol::JsonRpcResponse + Send + 'static>(
        &self,
        opening: impl Future<Output = Result<(Arc<EditorSession>, R), Error>> + Send + 'static,
        responder: Responder<R>,
    ) -> Result<(), Error> {
        self.0.tasks.spawn(async move {
            let (session, response) = match opening.await {
                Ok((session, response)) => (Some(session), Ok(response)),
                Err(error) => (None, Err(error)),
            };
            // Fails when the connection has ended.
            let _ = responder.respond_with_result(response);
            if let Some(session) = session {
                session.report_commands();
            }
        });
        Ok(())
    }

    /// Opens a session in a folder. `stored` is the conversation that goes on.
    async fn open(
        &self,
        folder: PathBuf,
        servers: Vec<McpServer>,
        stored: Option<SessionId>,
        connection: ConnectionTo<Client>,
    ) -> Result<Arc<EditorSession>, Error> {
        check_folder(&folder)?;
        if let Some(id) = &stored {
            if id.0.is_empty() {
                return Err(params_error("the id of the session is empty"));
            }
            // The conversation of an open session goes on where it stands now.
            self.close_session(id).await;
        }
        let (sender, opened) = oneshot::channel();
        let resumed = stored.map(|id| id.0.to_string());
        let request = SessionRequest { folder, servers, resumed, opened: sender };
        let ended = || failure("the agent is shutting down");
        self.0.opener.send(OpenerRequest::Open(Box::new(request))).map_err(|_| ended())?;
        let opened = opened.await.map_err(|_| ended())?;
        let opened = opened.map_err(|problem| params_error(&problem))?;
        self.connect_servers(&opened).await;
        let session = Arc::new(self.start_session(opened, connection));
        let replaced = lock(&self.0.sessions).insert(session.id.clone(), Arc::clone(&session));
        if let Some(replaced) = replaced {
            replaced.close().await;
        }
        Ok(session)
    }

    /// Waits for the MCP servers of the session, not longer than the time limit.
    async fn connect_servers(&self, opened: &OpenedSession) {
        let service = self.clone();
        let connecting = opened.conversation.servers().connect_in_background();
        let connecting = tokio::spawn(async move {
            for missing in connecting.await {
                service.warn(missing);
            }
        });
        let _ = tokio::time::timeout(SERVERS_TIMEOUT, connecting).await;
    }

    fn start_session(
        &self,
        opened: OpenedSession,
        connection: ConnectionTo<Client>,
    ) -> EditorSession {
        let OpenedSession { mut conversation, root, asks_user, offers_bypass } = opened;
        let client = lock(&self.0.client).clone();
        let id = SessionId::new(conversation.id.clone());
        if client.elicitation.is_some_and(|it| it.form.is_some()) {
            let forms = EditorForms { connection: connection.clone(), session: id.clone() };
            conversation.answer_forms_with(Arc::new(forms));
        }
        let pipeline = conversation.environment.pipeline.clone();
        let updates = UpdateForwarder::start(ForwarderConfig {
            connection,
            id: id.clone(),
            pipeline: pipeline.clone(),
            session: conversation.session.clone(),
            root,
            context_tokens: conversation.context_tokens(),
            shows_notices: client.session.is_some_and(|it| it.notices.is_some()),
        });
        if asks_user {
            let approver = AcpApprover { updates: updates.clone() };
            conversation.session = conversation.session.clone().with_approver(approver);
        }
        EditorSession {
            id,
            pipeline,
            session: conversation.session.clone(),
            updates,
            offers_bypass,
            cancel: conversation.environment.cancel_token.clone(),
            conversation: tokio::sync::Mutex::new(Some(conversation)),
            turn: Mutex::default(),
        }
    }

    fn start_listing(
        &self,
        request: ListSessionsRequest,
        responder: Responder<ListSessionsResponse>,
    ) -> Result<(), Error> {
        let conversations = self.0.conversations.clone();
        self.0.tasks.spawn(async move {
            let listed = summarize_conversations(&conversations, &request).await;
            // Fails when the connection has ended.
            let _ = responder.respond_with_result(listed);
        });
        Ok(())
    }

    fn start_closing_session(
        &self,
        request: &CloseSessionRequest,
        responder: Responder<CloseSessionResponse>,
    ) -> Result<(), Error> {
        let (service, session) = (self.clone(), self.find_session(&request.session_id)?);
        self.0.tasks.spawn(async move {
            service.close_session(&session.id).await;
            // Fails when the connection has ended.
            let _ = responder.respond(CloseSessionResponse::new());
        });
        Ok(())
    }

    fn select_mode(
        &self,
        request: &SetSessionModeRequest,
        responder: Responder<SetSessionModeResponse>,
    ) -> Result<(), Error> {
        let session = self.find_session(&request.session_id)?;
        let id = request.mode_id.0.clone();
        self.0.tasks.spawn(async move {
            let selected = session.select_mode(&id).await;
            let is_selected = selected.is_ok();
            // Fails when the connection has ended.
            let _ = responder.respond_with_result(selected.map(|()| SetSessionModeResponse::new()));
            if is_selected {
                session.updates.push(SessionEvent::ModeSelected);
            }
        });
        Ok(())
    }

    fn start_prompt(
        &self,
        request: PromptRequest,
        responder: Responder<PromptResponse>,
    ) -> Result<(), Error> {
        // Begun here, so that a cancellation that follows finds it.
        let turn = self.find_session(&request.session_id)?.begin_turn()?;
        let (service, cancellation) = (self.clone(), responder.cancellation());
        self.0.tasks.spawn(async move {
            let answered = service.answer_prompt(&turn, &request, &cancellation).await;
            // Fails when the connection has ended.
            let _ = responder.respond_with_result(answered.map(PromptResponse::new));
        });
        Ok(())
    }

    /// Answers a prompt. The client cancels it by a notification about the session, or about the
    /// request.
    async fn answer_prompt(
        &self,
        turn: &PromptTurn,
        request: &PromptRequest,
        cancellation: &RequestCancellation,
    ) -> Result<StopReason, Error> {
        let mut answering = std::pin::pin!(turn.answer(&request.prompt));
        let (stop, unsaved) = tokio::select! {
            answered = &mut answering => answered,
            () = cancellation.cancelled() => {
                turn.cancel.cancel();
                answering.await
            }
        };
        if let Some(problem) = unsaved {
            self.warn(problem);
        }
        stop
    }

    fn find_session(&self, id: &SessionId) -> Result<Arc<EditorSession>, Error> {
        let session = lock(&self.0.sessions).get(id).cloned();
        session.ok_or_else(|| {
            agent_client_protocol::v1::schema::Error::session_not_found(id.clone()).into()
        })
    }

    async fn close_session(&self, id: &SessionId) {
        let session = lock(&self.0.sessions).remove(id);
        if let Some(session) = session {
            session.close().await;
        }
    }

    /// Cancels all prompts, waits until they have ended, and closes the sessions.
    async fn close_all(&self) {
        let sessions: Vec<_> = lock(&self.0.sessions).drain().map(|(_, session)| session).collect();
        let closing = async {
            join_all(sessions.iter().map(|session| session.close())).await;
            self.0.tasks.close();
            self.0.tasks.wait().await;
        };
        if tokio::time::timeout(CLOSE_TIMEOUT, closing).await.is_err() {
            tracing::warn!("a session did not end in time");
        }
    }

    /// Prints a warning on standard error, which editors keep as a log.
    fn warn(&self, text: String) {
        // Fails when the program ends.
        let _ = self.0.opener.send(OpenerRequest::Warn(text));
    }
}

/// Lists stored conversations. Those of which the folder is not known are left out.
async fn summarize_conversations(
    conversations: &StoredConversations,
    request: &ListSessionsRequest,
) -> Result<ListSessionsResponse, Error> {
    let skipped = match request.cursor.as_deref().map(str::parse::<usize>) {
        None => 0,
        Some(Ok(skipped)) => skipped,
        Some(Err(_)) => return Err(params_error("the cursor is not one that a list returned")),
    };
    let folder = request.cwd.as_ref().map(|folder| folder.to_string_lossy().into_owned());
    let query = ConversationQuery { folder, skipped, limit: PAGE + 1 };
    let listed = conversations.list(&query).await;
    let mut found = listed.map_err(|error| failure(&error.to_string()))?;
    let has_more = found.len() > PAGE;
    found.truncate(PAGE);
    let sessions = found.into_iter().filter_map(|it| {
        let info = SessionInfo::new(it.id, PathBuf::from(it.folder?));
        Some(info.title(it.title).updated_at(rfc3339(it.changed_at)))
    });
    let response = ListSessionsResponse::new(sessions.collect());
    Ok(response.next_cursor(has_more.then(|| (skipped + PAGE).to_string())))
}

fn check_folder(folder: &Path) -> Result<(), Error> {
    let shown = folder.display();
    if !folder.is_absolute() {
        return Err(params_error(&format!("`cwd` is `{shown}`, but must be an absolute path")));
    }
    if !folder.is_dir() {
        return Err(params_error(&format!("`cwd` is `{shown}`, which is not an existing folder")));
    }
    Ok(())
}

fn refuse_folders(folders: &[PathBuf]) -> Result<(), Error> {
    match folders {
        [] => Ok(()),
        _ => {
            Err(params_error("`additionalDirectories` is not supported; open a folder around them"))
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
