//! The prompt that the user reads before answering an approval request.
//!
//! The prompt is made only from the frozen call, so that what is shown is what runs. Every omission
//! is reported and every invisible character is escaped: see [`visible`] for characters and
//! [`page`] for lengths.
//!
//! **Invariant:** two calls that differ in what is shown never have the same complete text.

mod diff_sides;
mod lookalike;
mod page;
mod visible;

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;

use self::diff_sides::DiffSides;
pub use self::diff_sides::parse_hunk_header;
pub use self::lookalike::mixed_script_warning;
use self::page::PromptPage;
pub use self::page::wrap_rows;
pub use self::visible::spell_hidden;
use self::visible::{make_sentence_visible, make_visible, quote_os_visible, quote_visible};
use super::{ApprovalRequest, Rule};
use crate::risk::Risk;
use crate::tool::{Resource, ToolSource};

/// Returns foreign text as it appears in a prompt: framed, and with invisible characters escaped.
pub fn frame_text(text: &str) -> String {
    let mut page = PromptPage::default();
    text.split('\n').for_each(|line| page.push_entry(&make_visible(line)));
    page.text
}

/// An approval request as text for the user.
///
/// # Examples
///
/// ```
/// use tool_sdk::ApprovalRequest;
///
/// fn show(request: &ApprovalRequest) {
///     let prompt = request.prompt();
///     eprint!("{}", prompt.text);
///     eprintln!("{}", if request.offers_always() { "yes / always / no?" } else { "yes / no?" });
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ApprovalPrompt {
    /// Several lines. Each line of foreign text starts with a frame, and contains no invisible
    /// character and none that looks like the frame. A terminal wraps longer lines: see
    /// [`wrap_text`](Self::wrap_text).
    pub text: String,
    /// Whether the text shows everything. A value that is too long loses its middle, and the text
    /// says how much.
    pub complete: bool,
    /// What the user should know before approving; also at the end of the text.
    pub warnings: Vec<String>,
}

/// How far an approval may reach, when a request [offers](ApprovalRequest::offers_always) more than
/// this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are no other scopes")]
pub enum GrantScope {
    /// This call.
    Once,
    /// This session.
    Session,
    /// All sessions.
    Always,
}

impl ApprovalPrompt {
    /// Returns the text for a terminal with this many columns. Longer lines are wrapped, and each
    /// row that continues one starts with the frame, so that no foreign text begins a row.
    #[must_use]
    pub fn wrap_text(&self, columns: u16) -> String {
        wrap_rows(&self.text, columns)
    }
}

impl ApprovalRequest {
    /// Returns the request as text for a user who may choose any answer that it offers.
    #[must_use]
    pub fn prompt(&self) -> ApprovalPrompt {
        self.prompt_up_to(GrantScope::Always)
    }

    /// Returns the request as text for a user whose approval reaches at most this far: first what
    /// changes or runs, then the details.
    #[must_use]
    pub fn prompt_up_to(&self, reach: GrantScope) -> ApprovalPrompt {
        self.render_prompt(reach, DiffPlace::InText)
    }

    /// Returns the request as text for a user who sees the diff of the preview in another place, in
    /// full.
    #[doc(hidden)]
    #[must_use]
    pub fn prompt_beside_diff(&self) -> ApprovalPrompt {
        self.render_prompt(GrantScope::Always, DiffPlace::Elsewhere)
    }

    fn render_prompt(&self, reach: GrantScope, diff_place: DiffPlace) -> ApprovalPrompt {
        let mut page = PromptPage::default();
        let preview = self.preview.as_ref().map(PreviewParts::read).unwrap_or_default();
        page.push_label(&format!("tool {}", self.tool));
        self.describe_caller().iter().for_each(|entry| page.push_entry(entry));
        if diff_place == DiffPlace::InText {
            preview.write_diff(&mut page);
        }
        page.push_section("about the preview", &preview.about, "entries");
        let sides = preview.diff.and_then(DiffSides::parse).unwrap_or_default();
        let arguments = self.describe_arguments(&self.arguments, &sides);
        page.push_section("arguments", &arguments, "arguments");
        if let Some(original) = &self.original {
            let arguments = self.describe_arguments(original, &sides);
            page.push_section("arguments before a hook changed them", &arguments, "arguments");
        }
        page.push_section("touches", &self.describe_subjects(), "subjects");
        page.push_section(
            "asked because",
            &[make_sentence_visible(&self.reason).into_owned()],
            "reasons",
        );
        let rules: Vec<_> = self.rules.iter().map(describe_rule).collect();
        page.push_section("rules", &rules, "rules");
        page.push_section("runs", &preview.runs, "entries");
        page.push_section("sandbox", preview.sandbox.as_slice(), "entries");
        page.push_section("about the tool", &self.describe_tool(), "entries");
        self.write_grants(&mut page, reach);
        let warnings = self.collect_warnings(&page);
        for warning in &warnings {
            page.push_label(&format!("warning: {warning}"));
        }
        ApprovalPrompt { text: page.text, complete: !page.is_cut, warnings }
    }

    /// Whether an approval for the session or for always may be offered: there is something to
    /// grant, the call is not dangerous, and the prompt shows all of it.
    #[must_use]
    pub fn offers_always(&self) -> bool {
        !self.suggestions.is_empty() && !self.dangerous && self.prompt().complete
    }

    /// Returns where a foreign tool comes from, and which agent calls it.
    fn describe_caller(&self) -> Vec<String> {
        let source = match &self.source {
            ToolSource::Native => None,
            ToolSource::Mcp { server } => {
                Some(format!("from MCP server {}", quote_visible(server)))
            }
            ToolSource::Plugin { id } => Some(format!("from plugin {}", quote_visible(id))),
            ToolSource::Remote { namespace } => {
                Some(format!("from the workers of {}", quote_visible(namespace)))
            }
        };
        let agent = self.agent.as_ref();
        let agent = agent.map(|agent| format!("called by agent {}", quote_visible(agent)));
        source.into_iter().chain(agent).collect()
    }

    /// Returns what is the same for every call of the tool.
    fn describe_tool(&self) -> Vec<String> {
        let name = self.display.name.as_ref();
        let name = name.map(|name| format!("shown as {}", quote_visible(name)));
        let rest = [
            format!("can {}", describe_risk(self.risk)),
            format!("permission {}", quote_visible(&self.permission)),
        ];
        name.into_iter().chain(rest).collect()
    }

    /// Returns one entry for each resource; those that look alike have one.
    fn describe_subjects(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let described = self.subjects.iter().map(describe_resource);
        described.filter(|entry| seen.insert(entry.clone())).collect()
    }

    /// Returns one entry for each argument, the most important first.
    fn describe_arguments(&self, arguments: &Value, sides: &DiffSides) -> Vec<String> {
        let Value::Object(members) = arguments else { return vec![format_value(arguments)] };
        if members.is_empty() {
            return vec!["none".to_owned()];
        }
        let first: Vec<&String> = self.display.primary.iter().chain(&self.display.show).collect();
        let rank = |name: &String| first.iter().position(|&one| one == name);
        let mut members: Vec<_> = members.iter().collect();
        // A stable sort: arguments without a rank keep their order.
        members.sort_by_key(|(name, _)| rank(name).unwrap_or(first.len()));
        let describe = |(name, one): (&String, &Value)| match one
            .as_str()
            .and_then(|text| sides.reference(text))
        {
            Some(reference) => format!("{}: {reference}", describe_name(name)),
            None => describe_member(name, one),
        };
        members.into_iter().map(describe).collect()
    }

    /// Writes exactly what each answer would grant.
    fn write_grants(&self, page: &mut PromptPage, reach: GrantScope) {
        page.push_label("`once` allows this call");
        let (allow, are) = match reach {
            GrantScope::Once => return,
            GrantScope::Session => ("`session` also allows", "`session` is"),
            GrantScope::Always => {
                ("`session` and `always` also allow", "`session` and `always` are")
            }
        };
        let grant = |pattern: &String| {
            format!("{}: {}", quote_visible(&self.permission), quote_visible(pattern))
        };
        let grants: Vec<_> = self.suggestions.iter().map(grant).collect();
        page.push_section(allow, &grants, "patterns");
        let withheld = if self.dangerous {
            "the tool calls this dangerous"
        } else if page.is_cut {
            "not everything is shown"
        } else if grants.is_empty() {
            "there is no pattern for it"
        } else {
            return;
        };
        page.push_label(&format!("{are} not offered: {withheld}"));
    }

    fn collect_warnings(&self, page: &PromptPage) -> Vec<String> {
        /// More names than a user reads; all of them are in the text.
        const MOST: usize = 10;
        let mut warnings = Vec::new();
        if let Some(hidden) = page.hidden.first() {
            warnings.push(format!("holds characters that do not show, written as {hidden}"));
        }
        if let Some(lookalike) = page.lookalikes.first() {
            let message = "holds characters that look like those of this question, written as";
            warnings.push(format!("{message} {lookalike}"));
        }
        let primary = self.display.primary.as_deref().and_then(|name| self.arguments.get(name));
        let names = self.subjects.iter().map(Resource::text);
        for warning in
            names.chain(primary.and_then(Value::as_str)).flat_map(lookalike::lookalike_warnings)
        {
            if !warnings.contains(&warning) && warnings.len() < MOST {
                warnings.push(warning);
            }
        }
        if page.is_cut {
            warnings.push("not everything is shown".to_owned());
        }
        warnings
    }
}

fn describe_risk(risk: Risk) -> String {
    let also =
        [(risk.destructive, ", may destroy something"), (risk.open_world, ", reaches outside")];
    let also = also.into_iter().filter_map(|(is, words)| is.then_some(words));
    std::iter::once(risk.class.as_str()).chain(also).collect()
}

fn describe_resource(resource: &Resource) -> String {
    let mut shown = quote_visible(resource.text());
    if let Some(path) = resource.absolute().filter(|path| path.as_os_str() != resource.text()) {
        shown += &format!(" at {}", quote_os_visible(path.as_os_str()));
    }
    if let Some(permission) = resource.permission() {
        shown += &format!(" under {}", quote_visible(permission));
    }
    if let Some(class) = resource.risk_class() {
        shown += &format!(" to {}", class.as_str());
    }
    if resource.is_opaque() {
        shown += " (not understood)";
    }
    shown
}

fn describe_rule(rule: &Rule) -> String {
    let mut shown = format!("{} ({}", quote_visible(&rule.to_string()), rule.scope);
    if !rule.origin.is_empty() {
        shown += &format!(", {}", quote_visible(&rule.origin));
    }
    shown + ")"
}

/// Where the user sees the diff of a preview.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DiffPlace {
    /// In the text of the prompt.
    InText,
    /// Beside it.
    Elsewhere,
}

/// The parts of a preview, which stand in different sections.
#[derive(Default)]
struct PreviewParts<'p> {
    /// A diff, or another text.
    diff: Option<&'p str>,
    /// A preview that is neither a text nor an object.
    value: Option<String>,
    about: Vec<String>,
    /// What is started, and where.
    runs: Vec<String>,
    sandbox: Option<String>,
}

impl<'p> PreviewParts<'p> {
    fn read(preview: &'p Value) -> Self {
        let mut parts = Self::default();
        match preview {
            Value::String(text) => parts.diff = Some(text),
            Value::Object(members) => {
                for (name, one) in members {
                    match (name.as_str(), one.as_str()) {
                        ("unified" | "diff", Some(text)) if parts.diff.is_none() => {
                            parts.diff = Some(text);
                        }
                        ("sandbox", _) => parts.sandbox = Some(format_value(one)),
                        ("folder" | "programs", _) => parts.runs.push(describe_member(name, one)),
                        _ => parts.about.push(describe_member(name, one)),
                    }
                }
            }
            other => parts.value = Some(format_value(other)),
        }
        parts
    }

    fn write_diff(&self, page: &mut PromptPage) {
        page.push_section("preview", self.value.as_slice(), "entries");
        let Some(diff) = self.diff else { return };
        // Not `lines`, which hides changed line ends.
        let lines = diff.strip_suffix('\n').unwrap_or(diff).split('\n');
        let lines: Vec<_> = lines.map(|line| make_visible(line).into_owned()).collect();
        page.push_section("preview", &lines, "lines");
    }
}

fn describe_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => quote_visible(name),
    }
}

fn describe_member(name: &str, one: &Value) -> String {
    format!("{}: {}", describe_name(name), format_value(one))
}

/// Formats a value like JSON, with every string quoted and visible.
fn format_value(one: &Value) -> String {
    match one {
        Value::Null | Value::Bool(_) | Value::Number(_) => one.to_string(),
        Value::String(text) => quote_visible(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(format_value).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let members: Vec<_> =
                members.iter().map(|(name, one)| describe_member(name, one)).collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

#[cfg(test)]
mod tests;
