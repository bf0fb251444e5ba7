//! A tool of another server, as a [`Tool`].
//!
//! The server's risk hints can raise the risk of the tool and never lower it. A tool that was not
//! yet run in its current definition also asks under the permission `mcp_definition`, so that a
//! rule that allows the tool does not allow a changed definition.

mod call;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tool_sdk_core::internal::{DefinitionDiff, DefinitionSnapshot};
use tool_sdk_core::{
    ArgumentNote, Context, Definition, ExecutionPermit, InvalidArgs, OutputFuture, PreparedCall,
    PrivateFileError, RawArgs, Resource, Risk, RiskClass, Schema, TaskSupport, Tool, ToolError,
    ToolSource,
};

use super::args::InputValidator;
use super::config::AnnotationTrust;
use super::connection::ServerConnection;
use super::naming::ModelToolName;
use super::output_validator::OutputValidator;
use super::remote::RemoteTool;
use super::tool_index::OtherToolNames;
use super::{description_lint, time_limit};

/// The permission of every foreign tool, beside its own name.
pub(super) const PERMISSION: &str = "mcp";

/// The permission to run a tool whose current definition is not pinned.
pub(super) const DEFINITION_PERMISSION: &str = "mcp_definition";

/// The timeout of the tool is this much longer than that of the call, whose error says more.
const TIMEOUT_GRACE: Duration = Duration::from_secs(60);

/// How long validating arguments may block the thread.
const BLOCKING_TIMEOUT: Duration = Duration::from_secs(1);

/// How tools differ from their pinned definitions, by their names here.
pub(super) type PinDifferences = BTreeMap<String, DefinitionDiff>;

/// A tool of another server.
#[derive(Clone)]
pub(super) struct ForeignTool(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    definition: Definition,
    schemas: Arc<ToolSchemas>,
    /// The server's own name of the tool.
    remote_name: String,
    snapshot: DefinitionSnapshot,
    warnings: Vec<String>,
    /// Words in the server's text that may be names of tools, in lower case.
    mentioned_names: BTreeSet<String>,
    /// Whether the server runs its calls as tasks.
    task_support: TaskSupport,
    server: Arc<ServerConnection>,
}

impl fmt::Debug for ForeignTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ForeignTool").field(&self.0.definition.name).finish()
    }
}

/// The compiled schemas of a tool; reused for as long as the server sends the same schemas.
pub(super) struct ToolSchemas {
    input: Value,
    output: Option<Value>,
    input_validator: InputValidator,
    parameters: Schema,
    /// The validator of its results, or why there is none.
    output_validator: Option<Result<OutputValidator, String>>,
}

impl ToolSchemas {
    /// Compiles the schemas, which may take long.
    ///
    /// # Errors
    ///
    /// Returns why the tool cannot be called.
    pub(super) fn compile(tool: &RemoteTool) -> Result<Self, String> {
        let (input_validator, parameters) = InputValidator::compile(&tool.input_schema)?;
        let output_validator = tool.output_schema.as_ref().map(OutputValidator::compile);
        let (input, output) = (tool.input_schema.clone(), tool.output_schema.clone());
        Ok(Self { input, output, input_validator, parameters, output_validator })
    }

    /// Whether compiling is so cheap that it can run inline.
    pub(super) fn is_cheap(tool: &RemoteTool) -> bool {
        const SHORT: usize = 4 << 10;
        /// Occurs in `pattern` and in `patternProperties`.
        const PATTERN: &str = "attern";
        let schemas = std::iter::once(&tool.input_schema).chain(&tool.output_schema);
        let mut texts = schemas.map(Value::to_string);
        // Everything that the server sends about the tool.
        let whole = serde_json::to_string(tool).map_or(usize::MAX, |text| text.len());
        whole <= 2 * SHORT && texts.all(|text| text.len() <= SHORT && !text.contains(PATTERN))
    }

    /// Whether these are the schemas of this tool.
    pub(super) fn matches_tool(&self, tool: &RemoteTool) -> bool {
        self.input == tool.input_schema && self.output == tool.output_schema
    }

    fn output_validator(&self) -> Option<&OutputValidator> {
        self.output_validator.as_ref()?.as_ref().ok()
    }
}

/// What the checks of a tool's text found; the text may be long.
#[derive(Default)]
pub(super) struct DescriptionLint {
    warnings: Vec<String>,
    mentioned_names: BTreeSet<String>,
}

impl DescriptionLint {
    pub(super) fn check_tool(tool: &RemoteTool) -> Self {
        let warnings = description_lint::text_warnings(tool);
        let mentioned_names = description_lint::mentioned_names(tool);
        Self { warnings, mentioned_names }
    }
}

impl ForeignTool {
    /// Returns the tool with its compiled schemas and the findings about its text.
    pub(super) fn new(
        server: &Arc<ServerConnection>,
        called: ModelToolName,
        tool: &RemoteTool,
        schemas: Arc<ToolSchemas>,
        lint: DescriptionLint,
    ) -> Self {
        let server_name = server.name();
        let snapshot = capture_definition(&server.transport_identity(), tool);
        let description = description_lint::model_description(tool);
        let mut definition = Definition::new(called.name, description, schemas.parameters.clone())
            .risk(assess_risk(tool, server.annotation_trust()))
            .timeout(server.max_call_duration() + TIMEOUT_GRACE);
        definition.also = called.alternatives;
        definition.title =
            tool.title.as_deref().map(|title| description_lint::clean_text(title).into());
        if tool.task_support != TaskSupport::Forbidden {
            // Its calls take long, and clients of this program may collect their results later.
            definition.task_support = TaskSupport::Optional;
        }
        definition.category = Some(format!("mcp:{server_name}").into());
        definition.permission = Some(PERMISSION.into());
        let DescriptionLint { mut warnings, mentioned_names: names } = lint;
        warnings.extend(schemas.input_validator.warnings());
        match &schemas.output_validator {
            Some(Ok(output_validator)) => warnings.extend(output_validator.warnings()),
            Some(Err(why)) => warnings.push(format!("its output schema is left out: {why}")),
            None => {}
        }
        definition.output = schemas.output_validator().map(|it| it.schema().clone());
        definition.source = ToolSource::Mcp { server: server_name.to_owned() };
        definition.revision = Some(server.pins().revision((server_name, &tool.name), &snapshot));
        let remote_name = tool.name.clone();
        let server = Arc::clone(server);
        Self(Arc::new(Inner {
            definition,
            schemas,
            remote_name,
            snapshot,
            warnings,
            mentioned_names: names,
            task_support: tool.task_support,
            server,
        }))
    }

    /// The compiled schemas.
    pub(super) fn schemas(&self) -> &Arc<ToolSchemas> {
        &self.0.schemas
    }

    /// The server's name of the tool.
    pub(super) fn remote_name(&self) -> &str {
        &self.0.remote_name
    }

    /// Returns what is suspicious about the tool; `other_tools` are the tools that are not the server's
    /// own.
    pub(super) fn lint_warnings(&self, other_tools: &OtherToolNames) -> Vec<String> {
        let mentions = description_lint::mention_warnings(&self.0.mentioned_names, other_tools);
        self.0.warnings.iter().cloned().chain(mentions).collect()
    }

    /// Whether both have the same name and definition.
    pub(super) fn is_same_tool(&self, other: &Self) -> bool {
        let (one, other) = (&*self.0, &*other.0);
        one.remote_name == other.remote_name
            && one.snapshot == other.snapshot
            && one.task_support == other.task_support
    }

    /// Returns everything that pinning records, as readable text.
    pub(super) fn definition_text(&self) -> String {
        self.0.snapshot.to_text()
    }

    /// Returns the difference from the definition that the host pinned to this one; `None` if they
    /// are the same.
    pub(super) fn definition_difference(&self) -> Option<DefinitionDiff> {
        let Inner { server, remote_name, snapshot, .. } = &*self.0;
        server.pins().diff_since_pinned(None, (server.name(), remote_name), snapshot)
    }

    /// Whether the revision is current. Another process may have recorded a change since the listing.
    fn is_current(&self) -> bool {
        let Inner { definition, server, remote_name, snapshot, .. } = &*self.0;
        let revision = definition.revision.as_deref().unwrap_or_default();
        server.pins().is_cached_revision(revision, (server.name(), remote_name), snapshot)
    }

    /// Returns the tool with its current revision.
    pub(super) fn with_current_revision(&self) -> Self {
        let mut inner = Inner::clone(&self.0);
        let id = (inner.server.name(), inner.remote_name.as_str());
        inner.definition.revision = Some(inner.server.pins().revision(id, &inner.snapshot));
        Self(Arc::new(inner))
    }

    /// Pins the definition for the host.
    pub(super) fn pin_definition(&self) -> Result<(), ToolError> {
        let Inner { server, remote_name, snapshot, .. } = &*self.0;
        server
            .pins()
            .pin_tool(None, (server.name(), remote_name), snapshot)
            .map_err(pin_write_error)
    }
}

/// Returns the whole definition of a tool, with the transport of its server.
fn capture_definition(server: &Value, tool: &RemoteTool) -> DefinitionSnapshot {
    DefinitionSnapshot::new(json!({
        "server": server,
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": tool.annotations,
    }))
}

fn pin_write_error(error: PrivateFileError) -> ToolError {
    ToolError::config("cannot store the pinned tool definition, so the tool did not run")
        .hint("the state folder must be private, writable, and outside of the roots that tools may write")
        .source(error)
}

/// Returns the risk: a foreign tool can do anything, so hints can only raise it, unless the host
/// trusts those of the server.
fn assess_risk(tool: &RemoteTool, trust: AnnotationTrust) -> Risk {
    let class = match trust {
        AnnotationTrust::Trusted => hinted_class(tool),
        AnnotationTrust::Untrusted => RiskClass::Execute,
    };
    let risk = Risk::new(class);
    let risk = if tool.risk_hint("openWorldHint") == Some(true) { risk.open_world() } else { risk };
    if tool.risk_hint("destructiveHint") == Some(true) { risk.destructive() } else { risk }
}

/// Returns the class that the hints claim. Hints that contradict each other, and missing ones, claim
/// the worst.
fn hinted_class(tool: &RemoteTool) -> RiskClass {
    match (tool.risk_hint("readOnlyHint"), tool.risk_hint("destructiveHint")) {
        (Some(true), None | Some(false)) => RiskClass::Read,
        (Some(false) | None, Some(false)) => RiskClass::Write,
        (_, Some(true)) | (Some(false) | None, None) => RiskClass::Execute,
    }
}

/// Arguments that can be sent, and how they deviate from the schema.
type CheckedArgs = (Map<String, Value>, Vec<ArgumentNote>);

impl ForeignTool {
    /// Parses arguments, and validates them unless that is left to the server.
    fn read_args(&self, args: &RawArgs<'_>) -> Result<CheckedArgs, InvalidArgs> {
        let Inner { definition, schemas, server, .. } = &*self.0;
        let (name, validator) = (definition.name.as_str(), &schemas.input_validator);
        if !validator.is_active() || server.has_lost_validation() {
            return validator.parse_args(name, args).map(|arguments| (arguments, Vec::new()));
        }
        if validator.is_cheap(args) {
            return validator.validate_args(name, args);
        }
        let (schemas, tool, args) = (Arc::clone(schemas), name.to_owned(), args.to_static());
        let validate = move || schemas.input_validator.validate_args(&tool, &args);
        time_limit::block_with_limit(BLOCKING_TIMEOUT, validate).unwrap_or_else(|| {
            server.lose_validation();
            Err(validator.too_late_error(name))
        })
    }
}

impl Tool for ForeignTool {
    fn definition(&self) -> &Definition {
        &self.0.definition
    }

    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn PreparedCall>, InvalidArgs> {
        let (arguments, notes) = self.read_args(args)?;
        Ok(Box::new(PreparedForeignCall { tool: self.clone(), arguments, notes }))
    }
}

/// A call whose arguments match the server's schema.
struct PreparedForeignCall {
    tool: ForeignTool,
    arguments: Map<String, Value>,
    notes: Vec<ArgumentNote>,
}

impl PreparedCall for PreparedForeignCall {
    fn run(self: Box<Self>, approved: ExecutionPermit) -> OutputFuture {
        let was_read = approved.was_read();
        Box::pin(call::run_call(self.tool, self.arguments, was_read, approved.context()))
    }

    fn summary(&self) -> Option<String> {
        let Inner { server, remote_name, .. } = &*self.tool.0;
        Some(format!("Calling {remote_name} of {}", server.name()))
    }

    fn resources(&self, cx: &Context) -> Option<Vec<Resource>> {
        let Inner { server, remote_name, snapshot, .. } = &*self.tool.0;
        let name = format!("{}/{remote_name}", server.name());
        // Record the definition now: any decision voids the approvals of an earlier one.
        server.pins().record_shown((server.name(), remote_name), snapshot);
        let is_seen = server.pins().is_pinned(
            cx.session().user_key(),
            (server.name(), remote_name),
            snapshot,
        );
        let unseen = (!is_seen).then(|| {
            let (user, id) = (cx.session().user_key(), (server.name(), remote_name.as_str()));
            let reason = match server.pins().has_pin(user, id) {
                true => format!(
                    "the server changed the definition of `{remote_name}` since it was approved, \
                     and `{} inspect {}` shows the difference",
                    server.mcp_command,
                    server.name()
                ),
                false => format!("this definition of `{remote_name}` was not approved yet"),
            };
            unseen_definition(name.clone()).with_reason(reason)
        });
        Some(std::iter::once(Resource::new(name)).chain(unseen).collect())
    }

    fn preview(&self, cx: &Context) -> Result<Option<Value>, ToolError> {
        let Inner { server, remote_name, snapshot, .. } = &*self.tool.0;
        server.pins().record_shown((server.name(), remote_name), snapshot);
        let difference = server.pins().diff_since_pinned(
            cx.session().user_key(),
            (server.name(), remote_name),
            snapshot,
        );
        let Some(difference) = difference else { return Ok(None) };
        let warnings = self.tool.lint_warnings(&server.other_tool_names());
        let about = if difference.is_first {
            "this tool was never run before; this is its whole definition"
        } else {
            "the server changed the definition of this tool since it was last approved"
        };
        let mut preview = json!({ "about": about, "unified": difference.diff });
        if !warnings.is_empty() {
            preview["warnings"] = warnings.into();
        }
        Ok(Some(preview))
    }

    /// No pattern of a grant covers a tool that changed since and changed back: approvals from
    /// before are void.
    fn covered_by(&self, _: &str) -> Option<bool> {
        (!self.tool.is_current()).then_some(false)
    }

    fn notes(&self) -> &[ArgumentNote] {
        &self.notes
    }
}

/// Returns the resource of a tool whose definition is not pinned. Also a tool that only reads asks,
/// because the hint that says so was not seen either.
fn unseen_definition(name: String) -> Resource {
    Resource::new(name).with_permission(DEFINITION_PERMISSION).with_class(RiskClass::Execute)
}

#[cfg(test)]
mod tests {
    use super::*;

    // MC3
    #[test]
    fn hints_raise_the_risk_and_never_lower_it() {
        let with = |annotations: Value| {
            let mut tool = RemoteTool::new("t", json!({ "type": "object" }));
            tool.annotations = Some(annotations);
            assess_risk(&tool, AnnotationTrust::Untrusted)
        };
        let harmless = with(json!({ "readOnlyHint": true, "destructiveHint": false }));
        assert_eq!(harmless, Risk::new(RiskClass::Execute));
        assert!(with(json!({ "destructiveHint": true, "readOnlyHint": true })).destructive);
        assert!(with(json!({ "openWorldHint": true })).open_world);
        assert_eq!(with(json!("nonsense")), Risk::new(RiskClass::Execute));
    }

    // F89
    #[test]
    fn trusted_hints_lower_the_risk_unless_they_contradict_each_other() {
        for (hints, class) in [
            (json!({ "readOnlyHint": true }), RiskClass::Read),
            (json!({ "readOnlyHint": true, "destructiveHint": false }), RiskClass::Read),
            (json!({ "readOnlyHint": true, "destructiveHint": true }), RiskClass::Execute),
            (json!({ "destructiveHint": false }), RiskClass::Write),
            (json!({ "readOnlyHint": false, "destructiveHint": false }), RiskClass::Write),
            (json!({ "destructiveHint": true }), RiskClass::Execute),
            (json!({ "readOnlyHint": "true" }), RiskClass::Execute),
            (json!({}), RiskClass::Execute),
            (json!("nonsense"), RiskClass::Execute),
        ] {
            let mut tool = RemoteTool::new("t", json!({ "type": "object" }));
            tool.annotations = Some(hints.clone());
            assert_eq!(assess_risk(&tool, AnnotationTrust::Trusted).class, class, "{hints}");
        }
    }
}
