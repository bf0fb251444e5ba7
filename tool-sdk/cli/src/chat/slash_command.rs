//! The commands of the interactive chat, which start with a slash.

use std::fmt::Write as _;

use tool_sdk_core::{Mode, ToolError};

use super::conversation::Conversation;

/// Name, arguments and help of each command.
pub(crate) const COMMANDS: [(&str, &str, &str); 10] = [
    ("/help", "", "list the commands"),
    ("/model", "[PROVIDER/NAME]", "show or change the model"),
    ("/mode", "[MODE]", "show or change the permission mode"),
    ("/tools", "", "list the tools"),
    ("/rules", "", "list the rules, the last that matches decides"),
    ("/compact", "", "replace the beginning of the conversation by a summary"),
    ("/resume", "[ID]", "continue another conversation, the newest without an id"),
    ("/cost", "", "show the tokens and the cost so far"),
    ("/clear", "", "begin a new conversation"),
    ("/quit", "", "end; so does Ctrl-D"),
];

/// What follows a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SlashOutcome {
    /// The text is shown.
    Show(String),
    Quit,
}

/// Runs the command `line`.
pub(crate) async fn run(line: &str, conversation: &mut Conversation) -> SlashOutcome {
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let argument = argument.trim();
    SlashOutcome::Show(match name {
        "/quit" | "/exit" => return SlashOutcome::Quit,
        "/help" | "/?" => help(),
        "/model" if argument.is_empty() => conversation.model.name.clone(),
        "/model" => match conversation.choose_model(argument) {
            Ok(()) => format!("the model is {}", conversation.model.name),
            Err(error) => error.into_cause().to_string(),
        },
        "/mode" => set_mode(argument, conversation).await.unwrap_or_else(|error| error.to_string()),
        "/tools" => list_tools(conversation),
        "/rules" => list_rules(conversation),
        "/compact" => match conversation.compact().await {
            Ok((before, after)) => format!("compacted from about {before} to {after} tokens"),
            Err(problem) => format!("not compacted: {problem}"),
        },
        "/resume" => match conversation.resume(argument).await {
            Ok(()) => format!("continuing the conversation {}", conversation.id),
            Err(error) => error.into_cause().to_string(),
        },
        "/cost" => describe_cost(conversation),
        "/clear" => {
            conversation.clear();
            "a new conversation".to_owned()
        }
        other => format!("there is no command `{other}`; /help lists them"),
    })
}

fn help() -> String {
    let mut text = String::new();
    for (name, arguments, about) in COMMANDS {
        let _ = writeln!(text, "{:<24} {about}", format!("{name} {arguments}"));
    }
    text.push_str(
        "@path adds a file or an image to a prompt. A line that ends with \\ goes on in the next.\n\
         While the model works: a line and Enter steers it, Esc or Ctrl-C interrupts it.",
    );
    text
}

/// Shows or changes the mode. A mode in which more than reading may run ends plan mode, too.
async fn set_mode(argument: &str, conversation: &Conversation) -> Result<String, ToolError> {
    let (pipeline, session) = (&conversation.environment.pipeline, &conversation.session);
    let mode = || pipeline.toolset().view_for(session).mode();
    let is_planning = pipeline.load_plan_draft(session).await?.is_some();
    if argument.is_empty() {
        return Ok(match is_planning {
            true => format!("plan, which the model entered; `/mode {}` ends it", mode().as_str()),
            false => mode().as_str().to_owned(),
        });
    }
    let mode: Mode = argument.parse().map_err(ToolError::invalid_args)?;
    let ended = match mode.is_read_only() {
        true => None,
        false => pipeline.end_plan_mode(session).await?,
    };
    pipeline.set_mode(mode);
    Ok(match ended {
        Some(_) => format!("plan mode has ended; the mode is {}", mode.as_str()),
        None if is_planning => {
            format!("the mode is {}, and the model is in plan mode", mode.as_str())
        }
        None => format!("the mode is {}", mode.as_str()),
    })
}

fn list_tools(conversation: &Conversation) -> String {
    let view = conversation.environment.pipeline.toolset().view_for(&conversation.session);
    let line = |tool: &tool_sdk_core::Definition| {
        let about = tool.description.lines().next().unwrap_or_default();
        format!("{:<24} {about}", tool.name)
    };
    view.definitions().map(line).collect::<Vec<_>>().join("\n")
}

fn list_rules(conversation: &Conversation) -> String {
    let view = conversation.environment.pipeline.toolset().view_for(&conversation.session);
    let rules: Vec<String> = view.rules().rules().iter().map(ToString::to_string).collect();
    if rules.is_empty() { "there are no rules".to_owned() } else { rules.join("\n") }
}

fn describe_cost(conversation: &Conversation) -> String {
    let spent = conversation.budget.spent();
    let calls = if spent.calls == 1 { "1 call" } else { &*format!("{} calls", spent.calls) };
    let used = format!("{} tokens, {calls}", spent.tokens);
    match (spent.cost > 0.0, spent.unpriced_requests) {
        (true, 0) => format!("{used}, {:.4} US dollars", spent.cost),
        (true, _) => format!("{used}, more than {:.4} US dollars", spent.cost),
        (false, 0) => used,
        (false, _) => format!("{used}, at an unknown price"),
    }
}
