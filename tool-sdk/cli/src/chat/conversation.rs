//! One conversation: the agent, its transcript, and the store in which it is kept.

use std::path::Path;
use std::time::{Instant, SystemTime};

use clap::ArgMatches;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tool_sdk_agent::{
    AgentEvent, AgentLoop, AgentOutcome, CompactionPolicy, PromptSections, SpendingBudget,
    SpendingLimits, SpentAmounts, SteeringQueue, SubagentService, Transcript,
};
#[cfg(feature = "acp")]
use tool_sdk_core::InquiryHandler;
use tool_sdk_core::provider::{CallAnswer, MessageDelta, ModelMessage};
use tool_sdk_core::{Attachment, Pipeline, SecretStore, Session};
use tool_sdk_workspace::Workspace;

use super::config::ChatConfig;
use super::conversation_task::ConversationTasks;
use super::model_choice::{self, ModelChoice};
use super::prompt_text::PromptDenials;
use super::stored_conversations::{ResumedConversation, StoredConversations};
use super::subagents::{SharedModelChoice, add_subagents, lend_subagents, sampling_handler};
use super::{ChatPlace, RESUME, prompt_text};
use crate::call_environment::CallEnvironment;
use crate::event_printer::EventPrinter;
use crate::exit::Result;
#[cfg(feature = "mcp")]
use crate::mcp::ConfiguredServers;
use crate::settings::Settings;
use crate::{App, Io, run_loop};

/// A conversation with a model.
pub(crate) struct Conversation {
    pub(crate) id: String,
    pub(crate) environment: CallEnvironment,
    pub(crate) session: Session,
    pub(crate) transcript: Transcript,
    pub(super) model: ModelChoice,
    /// What the conversation may spend, with what it and those before it in this program spent.
    pub(super) budget: SpendingBudget,
    /// What the conversation had spent when this program continued it.
    spent_before: SpentAmounts,
    /// What of the budget other conversations spent.
    spent_elsewhere: SpentAmounts,
    pub(super) steering: SteeringQueue,
    prompt_sections: PromptSections,
    tasks: ConversationTasks,
    pub(super) started: Instant,
    config: ChatConfig,
    system: String,
    /// The model that agents have which name none.
    shared_model: SharedModelChoice,
    #[cfg(feature = "mcp")]
    servers: ConfiguredServers,
    stored: StoredConversations,
    /// The folder to which `@path` is relative.
    work_dir: std::path::PathBuf,
}

/// An [`AgentEvent`] that has left the agent's task.
#[derive(Debug)]
pub(crate) enum ChatEvent {
    Text(String),
    Reasoning(String),
    Message(Box<ModelMessage>),
    Answers(Vec<CallAnswer>),
    /// A remark for the user, such as a repeated request.
    Note(String),
    /// What was shown of the message is void.
    Discarded,
}

/// A prompt that is being answered.
pub(super) struct RunningAgent {
    pub(super) events: mpsc::UnboundedReceiver<ChatEvent>,
    pub(super) cancel: CancellationToken,
    pub(super) task: AgentTask,
}

/// The task of an agent, which returns the transcript.
pub(crate) type AgentTask = tokio::task::JoinHandle<(AgentOutcome, Transcript)>;

impl Conversation {
    pub(super) fn open(
        app: &App,
        program: &str,
        settings: &Settings,
        matches: &ArgMatches,
        io: &mut Io<'_>,
    ) -> Result<Self> {
        let config = settings.chat.resolve(Some(matches), io)?;
        let resumed = match matches.get_one::<String>(RESUME) {
            Some(id) => Some(run_loop::block_on(load_stored(settings, id, &io.current_dir))??),
            None => None,
        };
        Self::open_at(app, program, settings, config, ChatPlace::Terminal, resumed, io)
    }

    /// Opens the conversation `resumed`, or a new one.
    pub(crate) fn open_at(
        app: &App,
        program: &str,
        settings: &Settings,
        mut config: ChatConfig,
        place: ChatPlace,
        resumed: Option<ResumedConversation>,
        io: &mut Io<'_>,
    ) -> Result<Self> {
        let catalog = app.agent_catalog(settings);
        let agent = settings.agent.as_deref().and_then(|name| catalog.get(name)).cloned();
        for note in catalog.problems().iter().cloned().chain(settings.waiting_agents_note()) {
            io.print_stderr(crate::style::sanitize_text(&format!("hint: {note}")));
        }
        config.settle_owner(settings.model.as_deref());
        let of_agent = agent.as_ref().and_then(|agent| agent.model.as_deref());
        let model = settings.model.as_deref().or(of_agent).or(config.model.as_deref());
        let named = model.ok_or_else(model_choice::missing_model)?.to_owned();
        let model = ModelChoice::resolve(&named, &config)?;
        config.reasoning_effort()?;
        let mut system = prompt_text::system_prompt(settings, place);
        let mut limits = SpendingLimits::default();
        if let Some(agent) = &agent {
            config = config.with_agent(agent);
            limits = agent.limits;
            system.push_str(&prompt_text::agent_section(&agent.prompt));
        }
        config.price = config.for_provider_of(&named).price;
        config.check_cost_limit(&named)?;
        limits.max_cost = smaller_limit(config.max_cost, limits.max_cost);
        if matches!(place, ChatPlace::Editor) {
            // An editor shows why a session cannot be opened better than why a prompt failed.
            model.check_key(io)?;
        }
        let (id, mut transcript) = match resumed {
            Some(ResumedConversation { id, transcript }) => (id, transcript),
            None => (new_id(), Transcript::default()),
        };
        transcript.recover();
        #[cfg(feature = "mcp")]
        let servers = ConfiguredServers::load(settings, io)?;
        let tools = app.build_toolset(settings)?;
        let name = Some(model.name.as_str());
        #[cfg_attr(not(feature = "mcp"), expect(unused_mut, reason = "there are no servers"))]
        let mut environment = CallEnvironment::build_for_model(app, settings, tools, name, io)?;
        #[cfg(feature = "mcp")]
        servers.attach_to(&mut environment);
        environment.warn_missing_services(io);
        let (budget, shared_model) =
            (SpendingBudget::new(limits), SharedModelChoice::new(model.clone()));
        let spent_before = transcript.spent;
        budget.charge_all(spent_before);
        let subagents = add_subagents(
            &environment.pipeline,
            &app.subagent_tools,
            catalog,
            shared_model.clone(),
            &config,
            &prompt_text::system_prompt(settings, place),
            budget.clone(),
        )?;
        system.push_str(&prompt_text::subagents_section(&subagents.describe_agents()));
        let session = environment.session.clone().with_id(format!("{program}-chat-{id}"));
        let session = lend_subagents(session.with_conversation("chat"), subagents);
        let sampling = sampling_handler(shared_model.clone(), &config, budget.clone());
        let (steering, prompt_sections) = (SteeringQueue::default(), PromptSections::default());
        let session = sampling.attach_to(session).with_service(steering.clone());
        let session = session.with_service(prompt_sections.clone());
        let tasks = start_tasks(app, &environment.pipeline, &session, io);
        Ok(Self {
            id,
            session,
            environment,
            transcript,
            model,
            budget,
            spent_before,
            spent_elsewhere: SpentAmounts::default(),
            shared_model,
            steering,
            prompt_sections,
            tasks,
            started: Instant::now(),
            config,
            system,
            #[cfg(feature = "mcp")]
            servers,
            stored: StoredConversations::new(settings),
            work_dir: match place {
                ChatPlace::Terminal | ChatPlace::Server => io.current_dir.clone(),
                // The first root is the folder of the session.
                ChatPlace::Editor => settings.roots.first().unwrap_or(&io.current_dir).clone(),
            },
        })
    }

    /// Connects to the configured MCP servers.
    #[cfg(feature = "mcp")]
    pub(super) async fn connect_servers(&self, io: &mut Io<'_>) {
        let patterns = self.environment.unmatched_patterns();
        let failed = self.servers.connect_in_background().await;
        self.servers.report_failures(failed, &patterns, io);
    }

    /// Returns the configured MCP servers.
    #[cfg(feature = "acp")]
    pub(crate) fn servers(&self) -> &ConfiguredServers {
        &self.servers
    }

    /// Uses another model from the next prompt on.
    pub(super) fn choose_model(&mut self, model: &str) -> Result<()> {
        let chosen = ModelChoice::resolve(model, &self.config)?;
        let config =
            ChatConfig { price: self.config.for_provider_of(model).price, ..self.config.clone() };
        config.check_cost_limit(model)?;
        (self.model, self.config) = (chosen, config);
        self.shared_model.replace(self.model.clone());
        Ok(())
    }

    /// Lets `forms` answer the questions of tools; the model still answers sampling requests.
    #[cfg(feature = "acp")]
    pub(crate) fn answer_forms_with(&mut self, forms: std::sync::Arc<dyn InquiryHandler>) {
        let sampling =
            sampling_handler(self.shared_model.clone(), &self.config, self.budget.clone());
        self.session = sampling.attach_to(self.session.clone().with_inquiry_handler(forms));
    }

    /// Continues another conversation: the newest of the folder where `id` is empty.
    pub(super) async fn resume(&mut self, id: &str) -> Result<()> {
        let stored = self.stored.clone();
        let ResumedConversation { id, mut transcript } = match id {
            "" => stored.load_newest(&self.work_dir, Some(&self.id)).await?,
            id => stored.load(id).await?,
        };
        transcript.recover();
        self.end_subagents();
        self.spent_elsewhere = self.budget.spent();
        self.budget.charge_all(transcript.spent);
        (self.id, self.transcript) = (id, transcript);
        Ok(())
    }

    /// Begins a new conversation.
    pub(super) fn clear(&mut self) {
        self.end_subagents();
        self.spent_elsewhere = self.budget.spent();
        (self.id, self.transcript) = (new_id(), Transcript::default());
    }

    /// Ends the agents that the model of the conversation before left working.
    fn end_subagents(&self) {
        if let Some(subagents) = self.session.extension::<Option<SubagentService>>() {
            subagents.forget_all();
        }
    }

    /// Returns what was spent since this program continued or began the conversation, with what the
    /// agents below spent.
    pub(super) fn spent_here(&self) -> SpentAmounts {
        self.budget.spent().since(self.spent_before)
    }

    /// Returns the file of the prompts that were entered.
    pub(super) fn history_file(&self) -> Option<std::path::PathBuf> {
        self.stored.history_file()
    }

    /// Adds a prompt that the user typed, with the files that it names. Returns what was attached, and
    /// what could not be.
    pub(super) fn push_typed_prompt(&mut self, text: &str) -> Vec<String> {
        let denied_files =
            |permission| self.environment.pipeline.denied_files(&self.session, permission);
        let workspace = self.session.service::<Workspace>();
        let denied = PromptDenials {
            read: denied_files("read"),
            outside: denied_files("external_directory"),
            roots: workspace.iter().flat_map(|it| it.roots()).map(Path::to_owned).collect(),
        };
        let prompt = prompt_text::expand_files(text, &self.work_dir, &denied);
        self.push_user(prompt.text, prompt.attachments);
        prompt.notes
    }

    pub(crate) fn push_user(&mut self, text: String, attachments: Vec<Attachment>) {
        self.transcript.push_user(text, attachments);
    }

    /// Starts to answer the prompt.
    pub(super) fn start(&mut self) -> RunningAgent {
        let (sender, events) = mpsc::unbounded_channel();
        let cancel = self.environment.cancel_token.child_token();
        let task = self.start_with(cancel.clone(), move |event| {
            // Fails when the chat has ended.
            let _ = sender.send(event);
        });
        RunningAgent { events, cancel, task }
    }

    /// Starts to answer the prompt, and calls `observe` with each event.
    pub(crate) fn start_with(
        &mut self,
        cancel: CancellationToken,
        observe: impl Fn(ChatEvent) + Send + Sync + 'static,
    ) -> AgentTask {
        self.tasks.start_all();
        let agent = self.agent(observe);
        let session = self.session.clone();
        let mut transcript = std::mem::take(&mut self.transcript);
        tokio::spawn(async move {
            let outcome = agent.run(&session, &mut transcript, &cancel).await;
            (outcome, transcript)
        })
    }

    /// Takes the transcript back and saves it.
    pub(super) async fn finish(&mut self, transcript: Transcript, io: &mut Io<'_>) {
        self.transcript = transcript;
        if let Err(warning) = self.save().await {
            io.print_stderr(crate::style::sanitize_text(&format!("warning: {warning}")));
        }
    }

    /// Saves the conversation.
    ///
    /// # Errors
    ///
    /// Fails with a text for the user when the store cannot be written.
    pub(crate) async fn save(&mut self) -> std::result::Result<(), String> {
        let redactor = self.session.service::<SecretStore>().map(|it| it.redactor().clone());
        let redactor = redactor.unwrap_or_default();
        self.transcript.spent = self.budget.spent().since(self.spent_elsewhere);
        let saved = self.stored.save(&self.id, &self.transcript, &self.work_dir, &redactor);
        saved.await.map_err(|problem| format!("the conversation is not saved: {problem}"))
    }

    /// Returns the size of the model's context in tokens.
    pub(crate) fn context_tokens(&self) -> u64 {
        let tokens = self.config.context_tokens;
        tokens.unwrap_or_else(|| model_choice::context_tokens(&self.model.name))
    }

    fn agent(&self, observe: impl Fn(ChatEvent) + Send + Sync + 'static) -> AgentLoop {
        let tokens = self.context_tokens();
        let mut agent =
            AgentLoop::new(self.environment.pipeline.clone(), self.model.client.clone())
                .with_system(self.system.clone())
                .with_max_turns(Some(self.config.max_turns.unwrap_or(100)))
                .with_budget(self.budget.clone())
                .with_steering(self.steering.clone())
                .with_prompt_sections(self.prompt_sections.clone())
                .with_hook(self.tasks.settle_hook())
                .with_compaction(CompactionPolicy::for_context(tokens))
                .with_observer(move |event| {
                    if let Some(event) = own_event(event) {
                        observe(event);
                    }
                });
        if let Ok(Some(effort)) = self.config.reasoning_effort() {
            agent = agent.with_reasoning_effort(effort);
        }
        if let Some(price) = self.config.price {
            agent = agent.with_price(price);
        }
        agent
    }

    /// Replaces the beginning of the conversation by a summary.
    pub(crate) async fn compact(&mut self) -> std::result::Result<(u64, u64), String> {
        let agent = self.agent(drop);
        let cancel = self.environment.cancel_token.child_token();
        agent
            .compact(&self.session, &mut self.transcript, &cancel)
            .await
            .map_err(|stop| stop.to_string())
    }

    /// Returns the printer of the calls' events.
    pub(super) fn event_printer(&self, io: &Io<'_>) -> EventPrinter {
        self.environment.event_printer(false, io)
    }

    /// Ends the tasks beside the conversation, and returns what the user should know of them.
    pub(crate) async fn finish_tasks(&mut self) -> Vec<String> {
        self.tasks.finish_all().await
    }

    /// Ends what the conversation left running.
    pub(super) async fn close(&mut self, io: &mut Io<'_>) {
        for note in self.finish_tasks().await {
            io.print_stderr(crate::style::sanitize_text(&format!("note: {note}")));
        }
        let _ = self.environment.pipeline.close().await;
    }
}

/// Starts what the program runs beside a conversation, and prints its warnings.
fn start_tasks(
    app: &App,
    pipeline: &Pipeline,
    session: &Session,
    io: &mut Io<'_>,
) -> ConversationTasks {
    let ending = CancellationToken::new();
    let tasks = app.conversation_tasks(pipeline, session, &ending);
    let (tasks, warnings) = ConversationTasks::new(tasks, ending);
    for warning in warnings {
        io.print_stderr(crate::style::sanitize_text(&format!("warning: {warning}")));
    }
    tasks
}

fn own_event(event: &AgentEvent<'_>) -> Option<ChatEvent> {
    Some(match event {
        AgentEvent::Delta(MessageDelta::Text(text)) => ChatEvent::Text(text.clone()),
        AgentEvent::Delta(MessageDelta::Reasoning(text)) => ChatEvent::Reasoning(text.clone()),
        AgentEvent::Message(message) => ChatEvent::Message(Box::new((*message).clone())),
        AgentEvent::Answers(answers) => ChatEvent::Answers(answers.to_vec()),
        AgentEvent::MessageDiscarded => ChatEvent::Discarded,
        AgentEvent::Retry { delay, reason } => {
            let seconds = delay.as_secs_f32();
            ChatEvent::Note(format!("{reason}; the request is sent again in {seconds:.1} s"))
        }
        AgentEvent::Pruned { results } => {
            ChatEvent::Note(format!("{results} older results were removed from the context"))
        }
        AgentEvent::Compacted { tokens_before, tokens_after } => ChatEvent::Note(format!(
            "the conversation was compacted from about {tokens_before} to {tokens_after} tokens"
        )),
        AgentEvent::Warning(text) => ChatEvent::Note((*text).to_owned()),
        _ => return None,
    })
}

/// Returns the stricter of two limits, of which one or both may be missing.
fn smaller_limit(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::min)
}

/// Loads the conversation `id`, or the newest one about `work_dir` where it is empty.
async fn load_stored(
    settings: &Settings,
    id: &str,
    work_dir: &Path,
) -> Result<ResumedConversation> {
    let stored = StoredConversations::new(settings);
    match id {
        "" => stored.load_newest(work_dir, None).await,
        id => stored.load(id).await,
    }
}

/// Returns an id that sorts by time.
fn new_id() -> String {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    format!("{}-{:08x}", now.as_secs(), now.subsec_nanos())
}
