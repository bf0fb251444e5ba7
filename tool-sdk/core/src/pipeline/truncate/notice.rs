//! The notice that a model reads in place of the text that was left out.
//!
//! It only names tools that the model has.
//!
//! **Invariant:** tools are selected by their parameters, never by their names.

use crate::call::Truncation;
use crate::tool::Definition;
use crate::toolset::ToolsetView;

/// The category of tools that start other agents.
const AGENTS_CATEGORY: &str = "agents";

/// Returns one line in brackets. `lost` says that storing the text failed. `view` has the tools;
/// those for which `may_open` returns `true` can open the file.
pub(super) fn write_notice(
    truncated: &Truncation,
    lost: bool,
    view: Option<&ToolsetView>,
    may_open: &dyn Fn(&Definition) -> bool,
) -> String {
    let Truncation { original_lines, original_bytes, omitted_lines, omitted_bytes, .. } = truncated;
    let Truncation { dropped_lines, dropped_bytes, unprintable_bytes, .. } = truncated;
    let is_whole = (*dropped_lines, *dropped_bytes) == (0, 0);
    let mut notice = format!(
        "[{omitted_lines} of {original_lines} lines and {omitted_bytes} of {original_bytes} bytes \
         left out"
    );
    let never = (!is_whole)
        .then(|| format!("{dropped_lines} lines and {dropped_bytes} bytes were never captured"));
    let no_text =
        (*unprintable_bytes > 0).then(|| format!("{unprintable_bytes} bytes are not text"));
    let kinds: Vec<String> = [never, no_text].into_iter().flatten().collect();
    if !kinds.is_empty() {
        notice.push_str(", of which ");
        notice.push_str(&kinds.join(" and "));
    }
    if let Some(path) = &truncated.full_output_path {
        let what = if is_whole { "the whole output" } else { "what was captured" };
        notice.push_str(&format!("; {what} is in {}", path.display()));
        let ways = view.map(|view| reading_hints(view, may_open)).unwrap_or_default();
        if !ways.is_empty() {
            notice.push_str("; ");
            notice.push_str(&ways.join(" or "));
        }
    }
    if lost {
        notice.push_str("; they could not be kept");
    }
    notice.push(']');
    notice
}

/// Returns what this model can do with a file.
fn reading_hints(view: &ToolsetView, may_open: &dyn Fn(&Definition) -> bool) -> Vec<String> {
    let reads = |tool: &&Definition| tool.risk.is_read_only();
    let opens = |tool: &&Definition| may_open(tool);
    // A tool that lists folders takes the same parameters, but it has a default for the path.
    let pages = view
        .definitions()
        .filter(reads)
        .filter(|tool| tool.parameters.is_required("path"))
        .filter(|tool| takes_arguments(tool, &["path", "offset", "limit"]))
        .find(opens)
        .map(|tool| format!("page through it with `{}` (offset, limit)", tool.name));
    // A tool that searches for names takes a pattern and a path too, but no filter of files.
    let search = view
        .definitions()
        .filter(reads)
        .filter(|tool| takes_arguments(tool, &["pattern", "path", "include"]))
        .find(opens)
        .map(|tool| format!("search it with `{}`", tool.name));
    // Of the tools about agents, the one that starts work takes a prompt.
    let agent = first_that_takes(
        || view.definitions().filter(|tool| tool.is_in_category(AGENTS_CATEGORY)),
        "prompt",
    )
    .map(|tool| format!("hand it to `{}`", tool.name));
    [pages, search, agent].into_iter().flatten().collect()
}

/// Returns the first tool that takes `argument`, or else the first tool.
fn first_that_takes<'v, I: Iterator<Item = &'v Definition>>(
    tools: impl Fn() -> I,
    argument: &str,
) -> Option<&'v Definition> {
    tools().find(|tool| takes_arguments(tool, &[argument])).or_else(|| tools().next())
}

fn takes_arguments(tool: &Definition, arguments: &[&str]) -> bool {
    arguments.iter().all(|name| tool.parameters.property(name).is_some())
}
