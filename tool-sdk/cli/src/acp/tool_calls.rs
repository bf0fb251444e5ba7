//! From events of calls to tool calls of the protocol.
//!
//! **Invariant:** each call that is reported also ends, at the latest with its answer.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use agent_client_protocol::v1::schema::{
    ContentBlock, ImageContent, SessionUpdate, ToolCall, ToolCallContent, ToolCallId,
    ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tool_sdk_core::internal::spell_hidden;
use tool_sdk_core::provider::CallAnswer;
use tool_sdk_core::{
    ApprovalRequest, Attachment, AttachmentData, Call, Definition, EventKind, Pipeline, RiskClass,
    ToolDisplay, ToolEvent,
};

use super::diff_blocks::find_diffs;
use super::permission::permission_content;

/// The longest text of a result that is shown, in bytes.
const MAX_TEXT: usize = 64 * 1024;
/// How much of the output of a running call is shown, in bytes.
const MAX_LIVE_OUTPUT: usize = 8 * 1024;

/// The calls that a client knows.
pub(super) struct ToolCallTable {
    pipeline: Pipeline,
    /// The folder to which paths are relative.
    root: PathBuf,
    /// The id of the session; agents below this one have sessions of their own.
    session: String,
    /// The calls without an answer, by session and id in the pipeline.
    calls: HashMap<SessionCallKey, ReportedCall>,
    /// The ids that the client has seen, because models use some of theirs again.
    used_ids: HashSet<String>,
}

/// The session of a call, and the id that the model gave it there.
type SessionCallKey = (String, String);

/// A call that was reported.
struct ReportedCall {
    id: ToolCallId,
    has_ended: bool,
    /// Whether the client sees what the call did, so that the text of the result is not needed.
    is_shown: bool,
    /// The end of its output so far.
    output: String,
    has_new_output: bool,
}

impl ToolCallTable {
    pub(super) fn new(pipeline: Pipeline, root: PathBuf, session: &str) -> Self {
        let session = session.to_owned();
        Self { pipeline, root, session, calls: HashMap::new(), used_ids: HashSet::new() }
    }

    /// Returns the key of a call of the session itself.
    fn own_key(&self, call: &str) -> SessionCallKey {
        (self.session.clone(), call.to_owned())
    }

    /// Returns the title of a call, with the name of the agent if one below this agent makes it.
    fn title_with_agent(&self, title: String, session: &str, agent: Option<&str>) -> String {
        match agent {
            Some(agent) if session != self.session => format!("{agent}: {title}"),
            _ => title,
        }
    }

    /// Returns the updates about an event of a call.
    pub(super) fn read_event(&mut self, event: &ToolEvent) -> Vec<SessionUpdate> {
        let call = (event.session.to_string(), event.call.to_string());
        let updates = self.describe_event(&call, event);
        let has_answer = *event.session == *self.session && event.parent.is_none();
        if event.kind.is_terminal() && !has_answer {
            self.calls.remove(&call);
        }
        updates
    }

    fn describe_event(&mut self, call: &SessionCallKey, event: &ToolEvent) -> Vec<SessionUpdate> {
        let (name, display) = (event.tool.name.as_str(), &event.tool.display);
        match &event.kind {
            EventKind::Pending { arguments, summary, .. } => {
                let title = summary.clone().unwrap_or_else(|| display.headline(name, arguments));
                let title =
                    self.title_with_agent(title, &event.session, event.ids.agent.as_deref());
                vec![self.report(call, name, &title, Some(arguments), display)]
            }
            EventKind::Started { arguments } => {
                let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
                let fields = match arguments {
                    // A hook changed them.
                    Some(changed) => fields
                        .raw_input((**changed).clone())
                        .title(visible_title(&display.headline(name, changed))),
                    None => fields,
                };
                self.update(call, fields).into_iter().collect()
            }
            EventKind::Output { text } => {
                if let Some(reported) = self.calls.get_mut(call) {
                    reported.push_output(text);
                }
                Vec::new()
            }
            EventKind::Completed { data, .. } => self.complete(call, data.as_deref()),
            EventKind::Failed(failure)
            | EventKind::Aborted(failure)
            | EventKind::TimedOut(failure) => {
                let mut updates = Vec::new();
                if !self.calls.contains_key(call) {
                    updates.push(self.report(call, name, name, None, display));
                }
                let content = vec![ToolCallContent::from(fence_text(&failure.message))];
                let fields =
                    ToolCallUpdateFields::new().status(ToolCallStatus::Failed).content(content);
                self.mark_ended(call, true);
                updates.extend(self.update(call, fields));
                updates
            }
            _ => Vec::new(),
        }
    }

    fn complete(&mut self, call: &SessionCallKey, data: Option<&Value>) -> Vec<SessionUpdate> {
        let diffs = data.map(|data| find_diffs(data, &self.root)).unwrap_or_default();
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Completed);
        let is_shown = !diffs.is_empty();
        let fields = match is_shown {
            true => {
                let locations = diffs.iter().map(|diff| ToolCallLocation::new(diff.path.clone()));
                let mut locations: Vec<_> = locations.collect();
                locations.dedup();
                fields
                    .locations(locations)
                    .content(diffs.into_iter().map(Into::into).collect::<Vec<_>>())
            }
            false => fields.raw_output(data.cloned()),
        };
        self.mark_ended(call, is_shown);
        self.update(call, fields).into_iter().collect()
    }

    /// Returns the updates about the answers that the model reads.
    pub(super) fn read_answers(&mut self, answers: &[CallAnswer]) -> Vec<SessionUpdate> {
        answers.iter().flat_map(|answer| self.read_answer(answer)).collect()
    }

    fn read_answer(&mut self, answer: &CallAnswer) -> Vec<SessionUpdate> {
        let mut updates = Vec::new();
        let call = self.own_key(&answer.id);
        if !self.calls.contains_key(&call) {
            let display = ToolDisplay::default();
            updates.push(self.report(&call, &answer.name, &answer.name, None, &display));
        }
        let Some(reported) = self.calls.remove(&call) else { return updates };
        let mut fields = ToolCallUpdateFields::new();
        if !reported.has_ended {
            let status =
                if answer.is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
            fields = fields.status(status);
        }
        let display = answer.display.as_deref().filter(|_| !reported.has_ended);
        let diffs = display.map(|display| find_diffs(display, &self.root)).unwrap_or_default();
        if !diffs.is_empty() {
            // A call of a stored conversation looks as it did when it ran.
            fields = fields.content(diffs.into_iter().map(Into::into).collect::<Vec<_>>());
        } else if !reported.is_shown {
            let mut content = Vec::new();
            let text = shown_text(answer);
            if !text.is_empty() {
                content.push(ToolCallContent::from(fence_text(&text)));
            }
            content.extend(
                answer.attachments.iter().filter_map(image_block).map(ToolCallContent::from),
            );
            fields = fields.content(content);
        }
        if fields != ToolCallUpdateFields::new() {
            updates.push(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(reported.id, fields)));
        }
        updates
    }

    /// Returns the tool call of a permission request, as it will run.
    pub(super) fn describe_permission(&mut self, ask: &ApprovalRequest) -> ToolCallUpdate {
        let call = (ask.session.to_string(), ask.call.to_string());
        let name = ask.tool.as_str();
        let title =
            ask.summary.clone().unwrap_or_else(|| ask.display.headline(name, &ask.arguments));
        let title = self.title_with_agent(title, &ask.session, ask.agent.as_deref());
        // The call was reported when its arguments were parsed, except where events were lost.
        let id = match self.calls.get(&call) {
            Some(reported) => reported.id.clone(),
            None => self.track(&call),
        };
        // What changes comes first, and once: the text has no diff, and the client knows the
        // arguments already.
        let diffs = ask.preview.as_ref().map(|preview| find_diffs(preview, &self.root));
        let diffs = diffs.unwrap_or_default();
        let text = permission_content(ask, !diffs.is_empty());
        let arguments = diffs.is_empty().then(|| ask.arguments.clone());
        let content: Vec<_> = diffs.into_iter().map(ToolCallContent::from).chain([text]).collect();
        let fields = ToolCallUpdateFields::new()
            .title(visible_title(&title))
            .name(name.to_owned())
            .kind(self.kind_of(name))
            .status(ToolCallStatus::Pending)
            .raw_input(arguments)
            .locations(self.locations(&ask.arguments, &ask.display))
            .content(content);
        ToolCallUpdate::new(id, fields)
    }

    /// Returns the updates with the output that arrived since the last time.
    pub(super) fn take_outputs(&mut self) -> Vec<SessionUpdate> {
        let with_output = self.calls.values_mut().filter(|call| call.has_new_output);
        let update = |call: &mut ReportedCall| {
            call.has_new_output = false;
            let content = vec![ToolCallContent::from(fence_text(&call.output))];
            let fields = ToolCallUpdateFields::new().content(content);
            SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call.id.clone(), fields))
        };
        with_output.map(update).collect()
    }

    /// Reports a call of a stored conversation.
    pub(super) fn report_stored(&mut self, call: &Call<'_>) -> SessionUpdate {
        let tool = self.pipeline.toolset().get(&call.name);
        let display = tool.as_ref().map(|tool| tool.definition().display.clone());
        let display = display.unwrap_or_default();
        let id = call.id.as_ref().map(ToString::to_string).unwrap_or_default();
        let arguments = serde_json::from_str(call.arguments.text()).unwrap_or_default();
        let arguments = mask_arguments(arguments, &display);
        // A summary by a function may contain sensitive arguments.
        let prepared = tool.as_ref().filter(|_| display.sensitive.is_empty());
        let prepared = prepared.and_then(|tool| tool.prepare(&call.arguments).ok());
        let summary = prepared.and_then(|prepared| prepared.summary());
        let summary = summary.or_else(|| display.summarize(&arguments));
        let title = summary.unwrap_or_else(|| display.headline(&call.name, &arguments));
        self.report(&self.own_key(&id), &call.name, &title, Some(&arguments), &display)
    }

    /// Reports a call, under an id that the client has not seen.
    fn report(
        &mut self,
        call: &SessionCallKey,
        name: &str,
        title: &str,
        arguments: Option<&Value>,
        display: &ToolDisplay,
    ) -> SessionUpdate {
        let id = self.track(call);
        let locations = arguments.map(|arguments| self.locations(arguments, display));
        let tool_call = ToolCall::new(id, visible_title(title))
            .name(name.to_owned())
            .kind(self.kind_of(name))
            .status(ToolCallStatus::Pending)
            .locations(locations.unwrap_or_default())
            .raw_input(arguments.cloned());
        SessionUpdate::ToolCall(tool_call)
    }

    fn track(&mut self, call: &SessionCallKey) -> ToolCallId {
        let base = if call.1.is_empty() { "call" } else { &*call.1 };
        let (mut id, mut number) = (base.to_owned(), 2);
        while !self.used_ids.insert(id.clone()) {
            id = format!("{base}#{number}");
            number += 1;
        }
        let id = ToolCallId::new(id);
        let reported = ReportedCall {
            id: id.clone(),
            has_ended: false,
            is_shown: false,
            output: String::new(),
            has_new_output: false,
        };
        self.calls.insert(call.clone(), reported);
        id
    }

    fn mark_ended(&mut self, call: &SessionCallKey, is_shown: bool) {
        if let Some(reported) = self.calls.get_mut(call) {
            reported.has_ended = true;
            reported.is_shown = is_shown;
            reported.has_new_output = false;
        }
    }

    fn update(&self, call: &SessionCallKey, fields: ToolCallUpdateFields) -> Option<SessionUpdate> {
        let id = self.calls.get(call)?.id.clone();
        Some(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields)))
    }

    fn kind_of(&self, name: &str) -> ToolKind {
        let tool = self.pipeline.toolset().get(name);
        tool.map_or(ToolKind::Other, |tool| tool_kind(tool.definition()))
    }

    /// Returns the files among the arguments that are shown to people.
    fn locations(&self, arguments: &Value, display: &ToolDisplay) -> Vec<ToolCallLocation> {
        let is_about_files = display.category.as_deref() == Some("filesystem");
        let names = display.primary.iter().chain(&display.show);
        let paths = names.filter_map(|name| {
            let path = self.root.join(arguments.get(name)?.as_str()?);
            (is_about_files || path.is_file()).then_some(path)
        });
        let mut locations: Vec<_> = paths.map(ToolCallLocation::new).collect();
        locations.dedup();
        locations
    }
}

impl ReportedCall {
    /// Adds output, of which only the end is kept.
    fn push_output(&mut self, text: &str) {
        self.output.push_str(text);
        self.has_new_output = true;
        if self.output.len() > MAX_LIVE_OUTPUT {
            let start = self.output.floor_char_boundary(self.output.len() - MAX_LIVE_OUTPUT / 2);
            self.output.drain(..start);
        }
    }
}

/// Returns what kind of work a tool does, from its risk and its category.
fn tool_kind(definition: &Definition) -> ToolKind {
    match (definition.risk.class, definition.category.as_deref()) {
        (_, Some("collaboration")) => ToolKind::Think,
        (RiskClass::Execute, _) => ToolKind::Execute,
        (RiskClass::Write, Some("filesystem")) => ToolKind::Edit,
        (RiskClass::Read, Some("search")) => ToolKind::Search,
        (RiskClass::Read, _) if definition.risk.open_world => ToolKind::Fetch,
        (RiskClass::Read, _) => ToolKind::Read,
        _ => ToolKind::Other,
    }
}

/// Returns what people read of an answer: of an error its message, which is JSON for the model.
fn shown_text(answer: &CallAnswer) -> Cow<'_, str> {
    let error = answer.is_error.then(|| serde_json::from_str::<Value>(&answer.text).ok());
    match error.flatten().as_ref().and_then(|error| error["error"].as_str()) {
        Some(message) => message.to_owned().into(),
        None => answer.text.as_str().into(),
    }
}

/// Returns a title on one line, in which every character can be seen.
fn visible_title(title: &str) -> String {
    spell_hidden(&title.replace(['\n', '\r', '\t'], " ")).to_string()
}

/// Replaces the values of sensitive arguments.
fn mask_arguments(mut arguments: Value, display: &ToolDisplay) -> Value {
    for name in &display.sensitive {
        if let Some(value) = arguments.get_mut(name) {
            *value = "***".into();
        }
    }
    arguments
}

/// Returns text as a Markdown code block, which clients show as it is. The text cannot end the
/// block.
pub(super) fn fence_text(text: &str) -> String {
    let text = match text.len() > MAX_TEXT {
        true => &format!("{}\n[…]", &text[..text.floor_char_boundary(MAX_TEXT)]),
        false => text,
    };
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// Returns an image as a block; other attachments have none.
pub(super) fn image_block(attachment: &Attachment) -> Option<ContentBlock> {
    let AttachmentData::Bytes(bytes) = &attachment.data else { return None };
    let image = ImageContent::new(STANDARD.encode(bytes), attachment.mime.clone());
    attachment.mime.starts_with("image/").then_some(ContentBlock::Image(image))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool_sdk_core::Registry;

    use super::*;

    fn table() -> ToolCallTable {
        ToolCallTable::new(Pipeline::new(Registry::default()), "/w".into(), "s1")
    }

    fn names(updates: &[SessionUpdate]) -> Vec<String> {
        let name = |update: &SessionUpdate| match update {
            SessionUpdate::ToolCall(call) => format!("new {}", call.tool_call_id.0),
            SessionUpdate::ToolCallUpdate(call) => {
                format!("{} {:?}", call.tool_call_id.0, call.fields.status)
            }
            other => format!("{other:?}"),
        };
        updates.iter().map(name).collect()
    }

    // Some models use the ids of their calls again in later messages, or send none.
    #[test]
    fn each_call_has_an_id_of_its_own_and_ends() {
        let mut table = table();
        let answers = [
            CallAnswer::text("c1", "look", "one"),
            CallAnswer::text("c1", "look", "two"),
            CallAnswer::text("", "look", "three"),
        ];
        let updates = names(&table.read_answers(&answers));
        let expected =
            ["c1", "c1#2", "call"].map(|id| [format!("new {id}"), format!("{id} Some(Completed)")]);
        assert_eq!(updates, expected.concat());
    }

    // An agent below this one may use an id that this one uses, too.
    #[test]
    fn calls_of_other_sessions_are_told_apart() {
        let mut table = table();
        let display = ToolDisplay::default();
        let own = table.own_key("c1");
        let other = ("s1/child".to_owned(), "c1".to_owned());
        let updates = [&own, &other].map(|key| table.report(key, "look", "Look", None, &display));
        assert_eq!(names(&updates), ["new c1", "new c1#2"]);
        assert_eq!(
            table.title_with_agent("Look".to_owned(), "s1/child", Some("scout")),
            "scout: Look"
        );
        assert_eq!(table.title_with_agent("Look".to_owned(), "s1", Some("main")), "Look");
        let answer = CallAnswer::text("c1", "look", "one");
        assert_eq!(names(&table.read_answers(&[answer])), ["c1 Some(Completed)"]);
    }

    #[test]
    fn text_cannot_end_its_block() {
        assert_eq!(fence_text("a\n"), "```\na\n```");
        assert_eq!(fence_text("```\nrm -rf\n````"), "`````\n```\nrm -rf\n````\n`````");
        let long = fence_text(&"ä".repeat(MAX_TEXT));
        assert!(long.len() < MAX_TEXT + 30 && long.ends_with("\n[…]\n```"));
        assert_eq!(visible_title("a\nb\u{202e}"), "a b\\u{202e}");
    }

    #[test]
    fn sensitive_arguments_of_stored_calls_are_masked() {
        let display = ToolDisplay::default();
        let arguments = json!({ "key": "k", "path": "a" });
        assert_eq!(mask_arguments(arguments.clone(), &display), arguments);
        let mut display = ToolDisplay::default();
        display.sensitive.push("key".to_owned());
        let masked = json!({ "key": "***", "path": "a" });
        assert_eq!(mask_arguments(arguments, &display), masked);
    }

    #[test]
    fn only_the_end_of_live_output_is_shown() {
        let mut table = table();
        let key = table.own_key("c1");
        table.report(&key, "look", "Look", None, &ToolDisplay::default());
        assert!(table.take_outputs().is_empty());
        let call = table.calls.get_mut(&key).unwrap();
        call.push_output(&"x".repeat(MAX_LIVE_OUTPUT));
        call.push_output("the end");
        assert!(call.output.len() < MAX_LIVE_OUTPUT && call.output.ends_with("the end"));
        assert_eq!(names(&table.take_outputs()), ["c1 None"]);
        assert!(table.take_outputs().is_empty());
    }
}
