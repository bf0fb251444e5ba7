//! The standard tools as a program.

use std::process::ExitCode;
use std::sync::Arc;

use tool_sdk::cli::{App, ConversationTask};
use tool_sdk::mcp::Server;
use tool_sdk::{Call, CancellationToken, Icon, Pipeline, Plugin, Session, tools};
use tool_std::plugins::EnabledPlugins;
use tool_std::reactions::{ReactionEngine, ReactionRules};
use tool_std::research::{deep_research, researcher};
use tool_std::screen::{desktop, terminal};
use tool_std::skills::SkillProvider;

tool_sdk::link!(tool_std);

/// The name that MCP clients show to people.
const TITLE: &str = "Standard tools";

/// The subcommands of `plugins`: name, call and description.
const PLUGIN_COMMANDS: [(&str, &str, &str); 8] = [
    (
        "list",
        "plugin_manager --action=list",
        "List the plugins: where each comes from, and whether it is enabled",
    ),
    (
        "show",
        "plugin_manager --action=show --name",
        "Show what a plugin brings: tools, hooks, rules, skills, agents and MCP servers",
    ),
    (
        "install",
        "plugin_manager --action=install --source",
        "Copy a plugin from a folder, a git repository on this computer or an archive; nothing of it is used yet",
    ),
    (
        "enable",
        "plugin_manager --action=enable --name",
        "Use a plugin, after showing what it brings; it runs from a copy of its files",
    ),
    (
        "disable",
        "plugin_manager --action=disable --name",
        "Stop using a plugin, with its rules and hooks; its files stay",
    ),
    (
        "reload",
        "plugin_manager --action=reload --name",
        "Load an enabled plugin anew: its tools, hooks and rules",
    ),
    (
        "update",
        "plugin_manager --action=update --name",
        "Copy an installed plugin again from its source, after showing the difference",
    ),
    (
        "uninstall",
        "plugin_manager --action=uninstall --name",
        "Remove an installed plugin and its files",
    ),
];

fn main() -> ExitCode {
    App::linked_with(tools![desktop, terminal])
        .version(env!("CARGO_PKG_VERSION"))
        .with_tool_commands(
            "skills",
            "List, show, write, install and remove skills: instructions for kinds of tasks",
            [
                ("list", "skill_list"),
                ("show", "skill"),
                ("create", "skill_create"),
                ("install", "skill_install"),
                ("update", "skill_update"),
                ("remove", "skill_remove"),
            ],
        )
        .with_tool_commands(
            "plugins",
            "List, show, install, enable, update and remove plugins: packages that bring tools",
            PLUGIN_COMMANDS,
        )
        .with_plugin_source(|folders, roots| {
            let EnabledPlugins { plugins, problems, .. } = EnabledPlugins::find(folders, roots);
            let plugins = plugins.into_iter().map(|plugin| Ok(Arc::new(plugin) as Arc<dyn Plugin>));
            plugins.chain(problems.into_iter().map(Err)).collect()
        })
        .with_tool_commands(
            "reactions",
            "List and check the rules that react to events",
            [("list", "reaction_list"), ("check", "reaction_check")],
        )
        .with_conversation_task(start_reactions)
        .with_stdio_server(add_skills)
        .with_agent(researcher())
        .with_subagent_tools(tools![deep_research])
        .with_session(add_screens)
        .with_toolset(|tools| {
            tools
                .mark_experimental(["desktop", "terminal"])
                .with_profiles(tool_std::model_profiles())
                .with_variants(tool_std::exec::variants())
        })
        .with_mcp_server(|server| server.with_title(TITLE).with_icon(icon()))
        .with_web_toolset(|tools, web| match web.search.is_empty() {
            true => tools.without(["deep_research", "web_search"]),
            false => tools,
        })
        .with_web_toolset(|tools, web| match web.github.is_off() {
            true => tools.without(tool_std::github::TOOL_NAMES),
            false => tools,
        })
        .main()
}

/// Starts the rules that react to the events of a conversation, if there are any.
fn start_reactions(
    pipeline: &Pipeline,
    session: &Session,
    ending: &CancellationToken,
) -> Option<ConversationTask> {
    let rules = ReactionRules::find(session);
    let warnings = rules.warnings();
    if rules.is_empty() && warnings.is_empty() {
        return None;
    }
    let engine = ReactionEngine::start(pipeline, session, &rules);
    let progress = engine.progress();
    let task = ConversationTask::new(engine.run(ending.clone())).with_warnings(warnings);
    Some(task.with_settling(move || {
        let progress = progress.clone();
        async move { progress.wait_until_processed().await }
    }))
}

/// Offers the skills of the session as prompts and resources of MCP.
fn add_skills(server: Server, pipeline: &Pipeline, session: &Session) -> Server {
    let pipeline = pipeline.clone();
    let skills = SkillProvider::new(session.clone(), move |session, tool, arguments| {
        let pipeline = pipeline.clone();
        async move { pipeline.call(&session, Call::new(tool, arguments)).await.result }
    });
    server.with_prompts(skills.clone()).with_resources(skills)
}

/// Adds the programs that run the terminal and the desktop which the user watches.
#[cfg(unix)]
fn add_screens(session: Session) -> Session {
    use tool_std::screen::{DesktopHandle, TerminalHandle, TmuxTerminal, XvfbDesktop};
    session
        .with_service(TerminalHandle::from_backend(TmuxTerminal))
        .with_service(DesktopHandle::from_backend(XvfbDesktop))
}

/// The system has no such programs; the tools say that their service is missing.
#[cfg(not(unix))]
fn add_screens(session: Session) -> Session {
    session
}

/// Returns the icon of the server: a prompt and a cursor, as in a terminal.
fn icon() -> Icon {
    const SVG: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 48 48'%3E\
                       %3Crect width='48' height='48' rx='10' fill='%23234'/%3E\
                       %3Cpath d='M12 15l9 9-9 9M24 34h12' fill='none' stroke='%23fff' stroke-width='4'/%3E\
                       %3C/svg%3E";
    Icon::new(SVG).mime("image/svg+xml").size("any")
}
