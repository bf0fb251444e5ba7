//! A tool of workers, as a [`Tool`] of the host.
//!
//! Its arguments are checked here, against the definition that the worker sent. What a call would do
//! is known once a worker has prepared it.
//!
//! **Invariant:** before a worker has prepared a call, the host knows nothing of it and decides
//! nothing.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use tool_sdk_core::internal::{ArgChecks, DefinitionSnapshot, parse_text};
use tool_sdk_core::{
    ArgumentNote, CompletionFuture, Context, Definition, ExecutionPermit, InquiryKind, InvalidArgs,
    Leniency, OutputFuture, PreparedCall, RawArgs, Resource, RiskClass, Tool, ToolError, ToolPins,
    ToolSource,
};

use super::WorkersState;
use super::known_workers::SentDefinition;
use super::prepare::DescribedCall;
use crate::DEFINITION_PERMISSION;
use crate::protocol::CallRequest;

/// The timeout of a tool is this much longer than that in the worker, whose error says more.
const TIMEOUT_GRACE: std::time::Duration = std::time::Duration::from_secs(10);

/// A tool of workers.
#[derive(Clone)]
pub(super) struct RemoteTool(Arc<RemoteToolState>);

pub(super) struct RemoteToolState {
    pub(super) definition: Definition,
    /// As the workers call it.
    pub(super) remote_name: String,
    /// The permission that rules name for it in the worker.
    pub(super) remote_permission: String,
    pub(super) hash: String,
    snapshot: DefinitionSnapshot,
    checks: ArgChecks,
    pub(super) workers: Arc<WorkersState>,
}

impl fmt::Debug for RemoteTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteTool").field(&self.0.definition.name).finish()
    }
}

impl RemoteTool {
    /// Returns the tool, or `None` if it can have no name here.
    pub(super) fn new(workers: &Arc<WorkersState>, sent: &SentDefinition) -> Option<Self> {
        let namespace = &workers.config.namespace;
        let prefix = namespace.prefix();
        let mut definition = sent.definition.clone();
        let remote_name = definition.name.to_string();
        let remote_permission = definition.permission().to_owned();
        definition.name = namespace.tool_name(&definition.name)?;
        let aliases = definition.aliases.iter();
        definition.aliases = aliases.filter_map(|alias| namespace.tool_name(alias)).collect();
        definition.permission = definition.permission.map(|own| format!("{prefix}{own}").into());
        definition.category = Some(format!("remote:{namespace}").into());
        definition.timeout = definition.timeout.map(|timeout| timeout + TIMEOUT_GRACE);
        definition.source = ToolSource::Remote { namespace: namespace.to_string() };
        let snapshot = sent.snapshot();
        definition.revision = Some(match &workers.config.pins {
            Some(pins) => pins.revision((namespace.as_str(), &remote_name), &snapshot),
            None => sent.hash.clone(),
        });
        let checks = ArgChecks::from_definition(&definition);
        let (hash, workers) = (sent.hash.clone(), Arc::clone(workers));
        Some(Self(Arc::new(RemoteToolState {
            definition,
            remote_name,
            remote_permission,
            hash,
            snapshot,
            checks,
            workers,
        })))
    }

    /// Returns the tool, and what is added to a toolset for it.
    pub(super) fn publish(self) -> (Self, Arc<dyn Tool>) {
        let added = Arc::new(self.clone());
        (self, added)
    }

    pub(super) fn remote_name(&self) -> &str {
        &self.0.remote_name
    }

    pub(super) fn hash(&self) -> &str {
        &self.0.hash
    }
}

impl Tool for RemoteTool {
    fn definition(&self) -> &Definition {
        &self.0.definition
    }

    fn unusable_reason(&self) -> Option<String> {
        self.0.checks.unsupported().map(|what| format!("its schema's {what}"))
    }

    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn PreparedCall>, InvalidArgs> {
        let name = self.0.definition.name.as_str();
        let (text, notes) = parse_text(name, &self.0.checks, args)?;
        let arguments = CheckedArguments { text: text.into_owned(), lenient: args.lenient };
        Ok(Box::new(PreparedRemoteCall {
            tool: Arc::clone(&self.0),
            arguments,
            notes,
            prepared: None,
        }))
    }
}

/// Arguments that match the schema of the tool.
#[derive(Clone)]
pub(super) struct CheckedArguments {
    pub(super) text: String,
    pub(super) lenient: Leniency,
}

impl CheckedArguments {
    /// Returns the request about a call with these arguments.
    pub(super) fn to_request(&self, cx: &Context) -> CallRequest {
        let has_forms = cx.session().can_inquire(InquiryKind::Form);
        CallRequest { arguments: self.text.clone(), lenient: self.lenient, has_forms }
    }
}

/// A call whose arguments match the schema, and what a worker says that it would do.
struct PreparedRemoteCall {
    tool: Arc<RemoteToolState>,
    arguments: CheckedArguments,
    notes: Vec<ArgumentNote>,
    prepared: Option<DescribedCall>,
}

impl RemoteToolState {
    /// Returns the pins, and what they call the tool; `None` when definitions are trusted.
    fn pins(&self) -> Option<(&ToolPins, (&str, &str))> {
        let config = &self.workers.config;
        Some((config.pins.as_ref()?, (config.namespace.as_str(), self.remote_name.as_str())))
    }

    /// Whether the user, or else the host, let the tool run in this definition.
    fn is_pinned(&self, cx: &Context) -> bool {
        self.pins()
            .is_none_or(|(pins, id)| pins.is_pinned(cx.session().user_key(), id, &self.snapshot))
    }

    /// Whether the revision is current. Another process may have recorded a change since.
    fn is_current(&self) -> bool {
        let revision = self.definition.revision.as_deref().unwrap_or_default();
        self.pins().is_none_or(|(pins, id)| pins.is_cached_revision(revision, id, &self.snapshot))
    }

    /// Returns what a prompt shows of a definition that is not pinned.
    fn definition_preview(&self, cx: &Context) -> Option<Value> {
        let (pins, id) = self.pins()?;
        let user = cx.session().user_key();
        let difference = pins.diff_since_pinned(user, id, &self.snapshot)?;
        let about = if difference.is_first {
            "this tool was never run before; this is its whole definition"
        } else {
            "the workers changed the definition of this tool since it was last approved"
        };
        Some(json!({ "about": about, "unified": difference.diff }))
    }

    /// Returns why the definition needs an approval of its own.
    fn unseen_reason(&self, cx: &Context) -> String {
        let name = &self.remote_name;
        match self.pins().is_some_and(|(pins, id)| pins.has_pin(cx.session().user_key(), id)) {
            true => format!("the workers changed the definition of `{name}` since it was approved"),
            false => format!("this definition of `{name}` was not approved yet"),
        }
    }

    /// Records that a call runs, and pins the definition that its user saw.
    fn record_run(&self, was_read: bool, cx: &Context) -> Result<(), ToolError> {
        let Some((pins, id)) = self.pins() else { return Ok(()) };
        let user = was_read.then(|| cx.session().user_key());
        pins.record_run(user, id, &self.snapshot).map_err(|error| {
            ToolError::config(
                "cannot store the pinned tool definition, so the tool did not run",
            )
            .hint("the state folder must be private, writable, and outside of the roots that tools may write")
            .source(error)
        })
    }
}

impl PreparedRemoteCall {
    fn facts(&self) -> Option<&tool_sdk_core::CallFacts> {
        self.prepared.as_ref().map(|prepared| &prepared.facts)
    }
}

impl PreparedCall for PreparedRemoteCall {
    fn complete(&mut self, cx: &Context) -> Option<CompletionFuture<'_>> {
        if self.prepared.is_some() {
            return None;
        }
        let cx = cx.clone();
        Some(Box::pin(async move {
            self.prepared = Some(self.tool.prepare_call(&self.arguments, &cx).await?);
            Ok(())
        }))
    }

    fn run(self: Box<Self>, approved: ExecutionPermit) -> OutputFuture {
        let Self { tool, arguments, prepared, .. } = *self;
        let was_read = approved.was_read();
        Box::pin(async move {
            let cx = approved.context();
            tool.record_run(was_read, &cx)?;
            let Some(prepared) = prepared else {
                return Err(ToolError::internal("the call was not prepared by a worker"));
            };
            tool.run_call(&arguments, prepared, &cx).await
        })
    }

    fn summary(&self) -> Option<String> {
        let RemoteToolState { remote_name, workers, .. } = &*self.tool;
        let said = self.facts().and_then(|facts| facts.summary.clone());
        said.or_else(|| Some(format!("Calling {remote_name} of {}", workers.config.namespace)))
    }

    fn resources(&self, cx: &Context) -> Option<Vec<Resource>> {
        let RemoteToolState { remote_name, workers, snapshot, .. } = &*self.tool;
        let name = format!("{}/{remote_name}", workers.config.namespace);
        // Any decision voids the approvals of an earlier definition.
        if let Some((pins, id)) = self.tool.pins() {
            pins.record_shown(id, snapshot);
        }
        let unseen = (!self.tool.is_pinned(cx)).then(|| {
            // The hint that the tool only reads was not seen either.
            Resource::new(name.clone())
                .with_permission(DEFINITION_PERMISSION)
                .with_class(RiskClass::Execute)
                .with_reason(self.tool.unseen_reason(cx))
        });
        let named = self.facts().and_then(|facts| facts.resources.clone());
        let named = named.unwrap_or_else(|| vec![Resource::new(name)]);
        Some(named.into_iter().chain(unseen).collect())
    }

    fn paths(&self, _: &Context) -> Vec<Resource> {
        self.facts().and_then(|facts| facts.paths.clone()).unwrap_or_default()
    }

    fn approval_required(&self, _: &Context) -> Option<bool> {
        // That a tool needs no approval is not for a worker to say.
        self.facts().and_then(|facts| facts.approval_required).filter(|is_required| *is_required)
    }

    fn suggestions(&self) -> Vec<String> {
        self.facts().map(|facts| facts.suggestions.clone()).unwrap_or_default()
    }

    fn restricts_suggestions(&self) -> bool {
        self.facts().is_some_and(|facts| facts.restricts_suggestions)
    }

    /// A tool that judges patterns itself offered those that cover the call; no other one does. No
    /// pattern covers a tool that changed since and changed back.
    fn covered_by(&self, pattern: &str) -> Option<bool> {
        if !self.tool.is_current() {
            return Some(false);
        }
        let facts = self.facts()?;
        facts.judges_patterns.then(|| facts.suggestions.iter().any(|it| it == pattern))
    }

    fn is_dangerous(&self) -> bool {
        self.facts().is_some_and(|facts| facts.is_dangerous)
    }

    fn fingerprint_facts(&self, _: &Context) -> Vec<(&'static str, String)> {
        let fingerprint = self.facts().map(|facts| facts.fingerprint.to_string());
        let definition = ("worker_definition", self.tool.hash.clone());
        fingerprint.map(|it| ("worker_call", it)).into_iter().chain([definition]).collect()
    }

    /// Shows the definition first; the call itself is shown once its tool is known.
    fn preview(&self, cx: &Context) -> Result<Option<Value>, ToolError> {
        let preview = self.facts().map_or(Ok(None), |facts| facts.preview.clone());
        let preview = preview.map_err(ToolError::from)?;
        Ok(match self.tool.definition_preview(cx) {
            Some(Value::Object(mut definition)) => {
                definition.extend(preview.map(|preview| ("call".to_owned(), preview)));
                Some(Value::Object(definition))
            }
            _ => preview,
        })
    }

    fn concurrency_key(&self) -> Option<String> {
        self.facts().and_then(|facts| facts.concurrency_key.clone())
    }

    fn notes(&self) -> &[ArgumentNote] {
        &self.notes
    }
}
