//! The commands of the interactive chat, which start with a slash.

use std::fmt::Write as _;

use tool_sdk_core::Mode;

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
        "/mode" => set_mode(argument, conversation),
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

fn set_mode(argument: &str, conversation: &Conversation) -> String {
    let pipeline = &conversation.environment.pipeline;
    if argument.is_empty() {
        return pipeline.toolset().view_for(&conversation.session).mode().as_str().to_owned();
    }
    match argument.parse::<Mode>() {
        Ok(mode) => {
            pipeline.set_mode(mode);
            format!("the mode is {}", mode.as_str())
        }
        Err(error) => error.to_string(),
    }
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
    let tokens = format!("{} tokens, {} calls", spent.tokens, spent.calls);
    if spent.cost > 0.0 { format!("{tokens}, {:.4} US dollars", spent.cost) } else { tokens }
}
