//! The command `chat`: an agent in the terminal, with the tools of the program.
//!
//! ```text
//! config            the table `[chat]` and the options
//! model_choice      which model, at which provider, with which key
//! conversation      one conversation: the agent and its transcript
//! conversation_task what the program runs beside it
//! stored_conversations  where conversations are kept
//! prompt_text       the system prompt, and the files that a prompt names
//! subagents         the agents that the model may start
//! print             one prompt, for scripts
//! interactive       prompt by prompt, on a terminal or in a pipe
//! ```
//!
//! **Invariant:** calls are decided like those of every other command: by the rules, the mode and the
//! user at the terminal. The model's text decides nothing.

mod config;
mod conversation;
mod conversation_task;
mod editor;
mod interactive;
mod markdown;
mod model_choice;
mod print;
mod prompt_text;
mod slash_command;
mod stored_conversations;
mod subagents;
mod typed_lines;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command, value_parser};
use tool_sdk_agent::ReasoningEffort;

pub(super) use self::config::{ChatConfig, parse_chat_config};
#[cfg(feature = "acp")]
pub(super) use self::conversation::ChatEvent;
pub(super) use self::conversation::Conversation;
pub use self::conversation_task::ConversationTask;
#[cfg(feature = "acp")]
pub(super) use self::slash_command::SlashOutcome;
#[cfg(feature = "acp")]
pub(super) use self::slash_command::{COMMANDS as SLASH_COMMANDS, run as run_slash_command};
#[cfg(feature = "acp")]
pub(super) use self::stored_conversations::StoredConversations;
#[cfg(feature = "mcp")]
pub(super) use self::subagents::add_agents;
use super::exit::Result;
use super::settings::Settings;
use super::{App, Io, args, run_loop};

const CONTEXT_TOKENS: &str = "context-tokens";
const MAX_COST: &str = "max-cost";
const MAX_TURNS: &str = "max-turns";
const MODEL_URL: &str = "model-url";
const OUTPUT: &str = "output";
const PRINT: &str = "print";
const REASONING: &str = "reasoning";
const RESUME: &str = "resume";

/// Where the user talks to the model.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChatPlace {
    Terminal,
    #[cfg_attr(not(feature = "acp"), expect(dead_code, reason = "there is no editor"))]
    Editor,
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "nothing is served"))]
    Server,
}

impl ChatPlace {
    /// Returns the place for the system prompt.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Terminal => "a terminal",
            Self::Editor => "an editor",
            Self::Server => "a server of tools",
        }
    }
}

/// The help about models.
pub(super) const MODEL_HELP: &str = "--model PROVIDER/NAME names the model, such as anthropic/claude-sonnet-4-5, \
             gemini/gemini-3-pro, openrouter/NAME or ollama/NAME. openai/NAME is the Responses API, \
             openai-chat/NAME chat completions, gemini-generate/NAME the older API of Gemini. A name \
             alone with --model-url means a server with chat completions, without a key. The key is in ANTHROPIC_API_KEY, \
             OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY, or comes from the command that \
             `api_key_command` in the table [chat] of the configuration names.";

fn value_option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// Builds the clap command `chat`.
pub(super) fn build_command() -> Option<Command> {
    let command = Command::new("chat")
        .about("Talk to a model that uses the tools of this program")
        .after_help(MODEL_HELP)
        .args([
            value_option(
                PRINT,
                "PROMPT",
                "Answer this prompt, or that on standard input with -, and end",
            ),
            value_option(OUTPUT, "FORMAT", "What --print prints")
                .value_parser(PossibleValuesParser::new(["text", "json", "jsonl"]))
                .default_value("text")
                .requires(PRINT),
            value_option(RESUME, "ID", "Continue this conversation, the newest without an id")
                .num_args(0..=1)
                .default_missing_value(""),
        ])
        .args(agent_args())
        .args(args::caller_args());
    Some(args::with_globals(command))
}

/// Returns the options of an agent: its model and its limits.
pub(super) fn agent_args() -> [Arg; 5] {
    let option = value_option;
    let efforts = [ReasoningEffort::Low, ReasoningEffort::Medium, ReasoningEffort::High];
    [
            option(
                MODEL_URL,
                "URL",
                "The URL of the API, with its /v1 where it has one, for a server of your own [env: TOOL_SDK_CHAT_MODEL_URL]",
            ),
            option(
                MAX_TURNS,
                "N",
                "How many requests one prompt may take [env: TOOL_SDK_CHAT_MAX_TURNS] [default: 100]",
            )
            .value_parser(value_parser!(u32).range(1..)),
            option(
                MAX_COST,
                "USD",
                "What the conversation may cost, by the price in the configuration [env: TOOL_SDK_CHAT_MAX_COST]",
            )
            .value_parser(value_parser!(f64)),
            option(
                CONTEXT_TOKENS,
                "N",
                "The context of the model in tokens [env: TOOL_SDK_CHAT_CONTEXT_TOKENS]",
            )
            .value_parser(value_parser!(u64).range(1_000..)),
            option(REASONING, "EFFORT", "How much the model thinks [env: TOOL_SDK_CHAT_REASONING]")
                .value_parser(PossibleValuesParser::new(efforts.map(ReasoningEffort::as_str))),
    ]
}

pub(super) fn run(
    app: &App,
    program: &str,
    settings: &Settings,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> Result {
    let mut conversation = Conversation::open(app, program, settings, matches, io)?;
    run_loop::block_on(async move {
        #[cfg(feature = "mcp")]
        conversation.connect_servers(io).await;
        let code = match matches.get_one::<String>(PRINT) {
            Some(prompt) => print::run(&mut conversation, prompt, matches, io).await,
            None => interactive::run(&mut conversation, io).await,
        };
        conversation.close(io).await;
        code
    })?
}
