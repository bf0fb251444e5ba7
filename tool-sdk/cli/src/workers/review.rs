//! The commands `workers inspect` and `workers trust`: what the workers of a namespace say of their
//! tools, and what changed since it was trusted.
//!
//! **Invariant:** a definition is only pinned after the user saw its name and what changed, and could see
//! all of its text.

use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::json;
use tool_sdk_core::ToolError;
use tool_sdk_core::internal::spell_hidden;
use tool_sdk_remote::internal::name_prefix;
use tool_sdk_remote::{DefinitionReview, Workers};

use super::command::failed;
use super::{ConfiguredWorkers, NamespaceConnection};
use crate::exit::{CommandError, DENIED, FAILED, Result, USAGE};
use crate::settings::Settings;
use crate::{Io, args, style};

const NAMESPACE: &str = "namespace";
const TOOLS: &str = "tools";

/// Builds the clap commands `inspect` and `trust`.
pub(super) fn build_commands() -> [Command; 2] {
    let names = || {
        [
            Arg::new(NAMESPACE).value_name("NAMESPACE").required(true).help("Their namespace"),
            Arg::new(TOOLS)
                .value_name("TOOL")
                .action(ArgAction::Append)
                .help("The tools, as the workers or the host name them; all by default"),
        ]
    };
    [
        Command::new("inspect")
            .about("Show what the workers of a namespace say of their tools, and what changed")
            .args(names())
            .arg(args::json_flag("Print a JSON array")),
        Command::new("trust")
            .about("Let the tools of a namespace run in their current definitions")
            .long_about(
                "Let the tools of a namespace run in their current definitions. Shows those that are \
                 new, and how those that were trusted have changed. Trust allows no call: rules and \
                 approvals decide as before, but do not ask because a definition is new.",
            )
            .args(names()),
    ]
}

pub(super) async fn inspect(
    configured: &ConfiguredWorkers,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> Result {
    let (_, reviews) = review(configured, matches).await?;
    if matches.get_flag(args::JSON) {
        writeln!(io.stdout, "{:#}", json!(reviews))?;
    } else {
        io.stdout.write_all(render_page(&reviews).as_bytes())?;
    }
    Ok(0)
}

pub(super) async fn trust(
    configured: &ConfiguredWorkers,
    settings: &Settings,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> Result {
    // Nothing could be remembered otherwise.
    settings.check_state_outside_roots()?;
    if settings.state_dir.is_none() {
        return Err(CommandError::config("there is no state folder to keep definitions in")
            .hint("`--state-dir` or HOME sets it"));
    }
    let (workers, mut reviews) = review(configured, matches).await?;
    reviews.retain(|review| !review.is_pinned);
    let namespace = workers.namespace();
    if reviews.is_empty() {
        io.print_stderr(format_args!("the definitions of `{namespace}` are trusted already"));
        return Ok(0);
    }
    let page = render_page(&reviews);
    let shown = match settings.is_verbose {
        true => page.clone(),
        false => render_table(&reviews, io.columns.map_or(100, usize::from)),
    };
    io.print_stderr(shown.trim_end());
    let count = style::count_noun(reviews.len(), "definition");
    if !settings.confirm_text(&format!("trust {count} of `{namespace}`?"), &page, io)? {
        let refused = ToolError::denied(format_args!("{count} of `{namespace}` are not trusted"));
        return Err(CommandError::new(DENIED, refused)
            .hint("a user at the terminal answers the question; `--yes` answers it, too"));
    }
    // The workers may have changed since.
    workers.list().await.map_err(failed)?;
    if !workers.trust_reviewed(&reviews).map_err(CommandError::config)? {
        let error = ToolError::conflict("the definitions changed after they were shown");
        return Err(CommandError::new(FAILED, error).hint("review them again"));
    }
    io.print_stderr(format_args!("trusted: {count} of `{namespace}`"));
    Ok(0)
}

/// Connects to the workers of a namespace, and returns the definitions of the tools that are named.
async fn review(
    configured: &ConfiguredWorkers,
    matches: &ArgMatches,
) -> Result<(Workers, Vec<DefinitionReview>)> {
    let wanted = matches.get_one::<String>(NAMESPACE).map(String::as_str).unwrap_or_default();
    let found = configured.connect_namespace(wanted).await.ok_or_else(|| {
        let words = format_args!("no workers of `{}` are configured", wanted.escape_debug());
        CommandError::new(USAGE, ToolError::not_found(words)).hint("`workers list` names them")
    })?;
    let NamespaceConnection { namespace, workers, .. } = found;
    let workers = workers.map_err(|reason| {
        failed(format_args!("the workers of `{namespace}` are not connected: {reason}"))
    })?;
    let all = workers.review_definitions().map_err(failed)?;
    let prefix = name_prefix(&namespace);
    let mut reviews = Vec::new();
    let named: Vec<&String> = matches.get_many(TOOLS).into_iter().flatten().collect();
    for name in &named {
        let is_named = |review: &&DefinitionReview| {
            review.tool == **name || review.tool.strip_prefix(&prefix) == Some(name.as_str())
        };
        let review = all.iter().find(is_named).ok_or_else(|| {
            let name = name.escape_debug();
            let words = format_args!("no worker of `{namespace}` offers `{name}` now");
            CommandError::new(USAGE, ToolError::not_found(words))
        })?;
        reviews.push(review.clone());
    }
    if all.is_empty() {
        return Err(failed(format_args!("`{namespace}` has no workers now")));
    }
    Ok((workers, if named.is_empty() { all } else { reviews }))
}

/// Returns one word about a definition.
fn state_word(review: &DefinitionReview) -> &'static str {
    match (review.is_pinned, review.is_first) {
        (true, _) => "trusted",
        (false, true) => "new",
        (false, false) => "changed",
    }
}

/// Renders the definitions as a table, with all that changed.
fn render_table(reviews: &[DefinitionReview], columns: usize) -> String {
    let width = reviews.iter().map(|it| it.tool.len()).max().unwrap_or_default().min(60);
    let mut lines = Vec::new();
    for review in reviews {
        let risk = style::describe_risk(review.risk);
        let about = style::first_sentence(&review.description);
        let state = state_word(review);
        let line = format!("{:width$}  {state:7}  {risk:8}  {about}", review.tool);
        lines.push(style::cut_line(&spell_hidden(&line), columns));
        if !review.is_first {
            lines.extend(indented(&review.difference));
        }
    }
    lines.join("\n")
}

/// Renders everything that the workers say of the tools, and what changed.
fn render_page(reviews: &[DefinitionReview]) -> String {
    let mut lines = Vec::new();
    for review in reviews {
        lines.push(format!("{}  {}", review.tool, state_word(review)));
        if review.others > 0 {
            let others = style::count_noun(review.others, "worker");
            lines.push(format!("  ({others} with another definition)"));
        }
        lines.extend(indented(&review.text));
        if !review.is_pinned && !review.is_first {
            lines.push("  what changed:".to_owned());
            lines.extend(indented(&review.difference));
        }
    }
    lines.join("\n") + "\n"
}

/// Returns the lines of a text that hide nothing.
fn indented(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(|line| format!("  {}", spell_hidden(line)))
}
