//! A tool of another server, as any other tool.
//!
//! The server's own hints about risk raise it and never lower it. A tool that nobody has
//! seen as it is now asks under a permission of its own, so that a rule about the tool does
//! not let through what the tool has become.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::apart::{self, Wanted};
use super::arguments::Contract;
use super::line::Line;
use super::name::Called;
use super::pins::Sight;
use super::promise::{Promise, TOO_LONG};
use super::questions::Answers;
use super::remote::{ErrorClass, RemoteCall, RemoteError, RemoteTool};
use super::roster::Strangers;
use super::{result, suspicion};
use crate::call::{Note, RawArgs};
use crate::content::Output;
use crate::context::Context;
use crate::effect::{Risk, RiskClass};
use crate::error::ToolError;
use crate::schema::Schema;
use crate::store::StoreError;
use crate::tool::{Approved, Definition, InvalidArgs, Prepared, Running, Source, Subject, Tool};

/// The permission of every foreign tool, beside its own name.
pub(super) const PERMISSION: &str = "mcp";

/// The permission to run a tool whose definition nobody has seen yet.
pub(super) const DEFINITION: &str = "mcp_definition";

/// How long a result may take to be judged.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much later than by its own time a call is ended by that of its tool, which says less.
const GRACE: Duration = Duration::from_secs(60);

/// How long arguments may, while nothing else goes on here.
const STANDSTILL: Duration = Duration::from_secs(1);

/// A tool of another server.
#[derive(Clone)]
pub(super) struct ForeignTool(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    definition: Definition,
    schemas: Arc<Schemas>,
    /// The server's own name of the tool.
    raw: String,
    sight: Sight,
    warnings: Vec<String>,
    /// The words of its server that may be names of tools, in lower case.
    names: BTreeSet<String>,
    line: Arc<Line>,
}

impl fmt::Debug for ForeignTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ForeignTool").field(&self.0.definition.name).finish()
    }
}

/// What is made of a tool's schemas, once for as long as the server says the same of it.
pub(super) struct Schemas {
    input: Value,
    output: Option<Value>,
    contract: Contract,
    parameters: Schema,
    /// What it promises, or why that is left out.
    promise: Option<Result<Promise, String>>,
}

impl Schemas {
    /// Makes all of it, which may take long.
    ///
    /// # Errors
    ///
    /// Says why the tool cannot be called.
    pub(super) fn of(tool: &RemoteTool) -> Result<Self, String> {
        let (contract, parameters) = Contract::of(&tool.input_schema)?;
        let promise = tool.output_schema.as_ref().map(Promise::of);
        let (input, output) = (tool.input_schema.clone(), tool.output_schema.clone());
        Ok(Self { input, output, contract, parameters, promise })
    }

    /// Whether that takes no time, so that nobody has to wait for it.
    pub(super) fn is_quick(tool: &RemoteTool) -> bool {
        const SHORT: usize = 4 << 10;
        /// Is in every keyword that has one.
        const PATTERN: &str = "attern";
        let schemas = std::iter::once(&tool.input_schema).chain(&tool.output_schema);
        let mut texts = schemas.map(Value::to_string);
        // All that a server says of it, whatever it is called.
        let whole = serde_json::to_string(tool).map_or(usize::MAX, |text| text.len());
        whole <= 2 * SHORT && texts.all(|text| text.len() <= SHORT && !text.contains(PATTERN))
    }

    /// Whether it is what would be made of this tool.
    pub(super) fn is_of(&self, tool: &RemoteTool) -> bool {
        self.input == tool.input_schema && self.output == tool.output_schema
    }

    fn promise(&self) -> Option<&Promise> {
        self.promise.as_ref()?.as_ref().ok()
    }
}

/// What there is to say of a tool's words, which may be many.
#[derive(Default)]
pub(super) struct Said {
    warnings: Vec<String>,
    names: BTreeSet<String>,
}

impl Said {
    pub(super) fn of(tool: &RemoteTool) -> Self {
        let (mut warnings, names) = (suspicion::warnings(tool), suspicion::names(tool));
        warnings.extend(suspicion::lookalikes(&names));
        Self { warnings, names }
    }
}

impl ForeignTool {
    /// Takes a tool in, of which that was made.
    pub(super) fn new(
        line: &Arc<Line>,
        called: Called,
        tool: &RemoteTool,
        schemas: Arc<Schemas>,
        said: Said,
    ) -> Self {
        let server = line.name();
        let sight = Sight::of(&line.identity(), tool);
        let description = suspicion::description(tool);
        let mut definition = Definition::new(called.name, description, schemas.parameters.clone())
            .risk(risk(tool))
            .timeout(line.longest() + GRACE);
        definition.also = called.also;
        definition.title = tool.title.as_deref().map(|title| suspicion::readable(title).into());
        definition.category = Some(format!("mcp:{server}").into());
        definition.permission = Some(PERMISSION.into());
        let Said { mut warnings, names } = said;
        warnings.extend(schemas.contract.oddities());
        match &schemas.promise {
            Some(Ok(promise)) => warnings.extend(promise.oddities()),
            Some(Err(why)) => warnings.push(format!("its output schema is left out: {why}")),
            None => {}
        }
        definition.output = schemas.promise().map(|it| it.told().clone());
        definition.source = Source::Mcp { server: server.to_owned() };
        definition.revision = Some(line.pins().revision((server, &tool.name), &sight));
        let raw = tool.name.clone();
        let line = Arc::clone(line);
        Self(Arc::new(Inner { definition, schemas, raw, sight, warnings, names, line }))
    }

    /// What was made of its schemas.
    pub(super) fn schemas(&self) -> &Arc<Schemas> {
        &self.0.schemas
    }

    /// The server's own name of it.
    pub(super) fn raw(&self) -> &str {
        &self.0.raw
    }

    /// What is odd about what its server says of it, where `strangers` are the tools that are
    /// not the server's own.
    pub(super) fn oddities(&self, strangers: &Strangers) -> Vec<String> {
        let mentions = suspicion::spoken_of(&self.0.names, strangers);
        self.0.warnings.iter().cloned().chain(mentions).collect()
    }

    /// Whether both are the same tool, as the server describes it.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.0.raw == other.0.raw && self.0.sight == other.0.sight
    }

    /// Everything that is taken as seen of it, as people read it.
    #[cfg(feature = "cli")]
    pub(super) fn text(&self) -> String {
        self.0.sight.text()
    }

    /// Whether it is tied to approvals as it is by now. Another program may have noted a change
    /// since it was taken in.
    fn is_current(&self) -> bool {
        let Inner { definition, line, raw, sight, .. } = &*self.0;
        let revision = definition.revision.as_deref().unwrap_or_default();
        line.pins().is_revision(revision, (line.name(), raw), sight)
    }

    /// The same tool, tied to approvals as it is by now.
    pub(super) fn renewed(&self) -> Self {
        let mut inner = Inner::clone(&self.0);
        let id = (inner.line.name(), inner.raw.as_str());
        inner.definition.revision = Some(inner.line.pins().revision(id, &inner.sight));
        Self(Arc::new(inner))
    }

    /// Takes the tool as seen, for the host.
    pub(super) fn pin(&self) -> Result<(), ToolError> {
        let Inner { line, raw, sight, .. } = &*self.0;
        line.pins().pin(None, (line.name(), raw), sight).map_err(not_written)
    }
}

fn not_written(error: StoreError) -> ToolError {
    ToolError::config("what was allowed could not be written down, so it did not run")
        .hint("the folder for what is kept must be private, writable, and outside of what tools may write")
        .source(error)
}

/// What running it can do: a stranger can do anything, whatever it says.
fn risk(tool: &RemoteTool) -> Risk {
    let risk = Risk::new(RiskClass::Execute);
    let risk = if tool.hint("openWorldHint") == Some(true) { risk.open_world() } else { risk };
    if tool.hint("destructiveHint") == Some(true) { risk.destructive() } else { risk }
}

impl Tool for ForeignTool {
    fn definition(&self) -> &Definition {
        &self.0.definition
    }

    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn Prepared>, InvalidArgs> {
        let (name, schemas) = (self.0.definition.name.as_str(), &self.0.schemas);
        let (arguments, notes) = match schemas.contract.is_quick(args) {
            true => schemas.contract.take(name, args)?,
            false => {
                let (schemas, args) = (Arc::clone(schemas), args.kept());
                let (tool, contract) = (name.to_owned(), &self.0.schemas.contract);
                let taken = move || schemas.contract.take(&tool, &args);
                apart::stand_by(&self.0.line.places().values, STANDSTILL, taken)
                    .unwrap_or_else(|| Err(contract.too_long(name)))?
            }
        };
        let was_shown = AtomicBool::new(false);
        Ok(Box::new(PreparedCall { tool: self.clone(), arguments, notes, was_shown }))
    }
}

/// A call whose arguments the server's schema accepts.
struct PreparedCall {
    tool: ForeignTool,
    arguments: Map<String, Value>,
    notes: Vec<Note>,
    /// Whether somebody was asked about it, and so saw the tool.
    was_shown: AtomicBool,
}

impl Prepared for PreparedCall {
    fn run(self: Box<Self>, approved: Approved) -> Running {
        let was_shown = self.was_shown.into_inner();
        Box::pin(call(self.tool, self.arguments, was_shown, approved.context()))
    }

    fn summary(&self) -> Option<String> {
        let Inner { line, raw, .. } = &*self.tool.0;
        Some(format!("Calling {raw} of {}", line.name()))
    }

    fn subjects(&self, cx: &Context) -> Option<Vec<Subject>> {
        let Inner { line, raw, sight, .. } = &*self.tool.0;
        let name = format!("{}/{raw}", line.name());
        // Whatever is decided, what was approved of another tool of this name is void from now on.
        line.pins().shown((line.name(), raw), sight);
        let is_seen = line.pins().is_seen(cx.session().seer(), (line.name(), raw), sight);
        let unseen = (!is_seen).then(|| Subject::new(name.clone()).under(DEFINITION));
        Some(std::iter::once(Subject::new(name)).chain(unseen).collect())
    }

    fn preview(&self, cx: &Context) -> Result<Option<Value>, ToolError> {
        let Inner { line, raw, sight, .. } = &*self.tool.0;
        line.pins().shown((line.name(), raw), sight);
        self.was_shown.store(true, Ordering::Relaxed);
        let difference = line.pins().difference(cx.session().seer(), (line.name(), raw), sight);
        let Some(difference) = difference else { return Ok(None) };
        let warnings = self.tool.oddities(&line.strangers());
        let about = if difference.is_first {
            "nobody has seen this tool before; this is all that its server says of it"
        } else {
            "the server says something else of this tool than when it was seen"
        };
        Ok(Some(json!({ "about": about, "warnings": warnings, "unified": difference.diff })))
    }

    /// No pattern covers it where it became another tool since and went back: what was approved
    /// before that is void.
    fn covered_by(&self, _: &str) -> Option<bool> {
        (!self.tool.is_current()).then_some(false)
    }

    fn notes(&self) -> &[Note] {
        &self.notes
    }
}

/// How a result breaks what its tool promises, if it does.
async fn broken(tool: &ForeignTool, result: Option<&Value>) -> Option<String> {
    let Inner { schemas, line, .. } = &*tool.0;
    let promise = schemas.promise()?;
    let Some(value) = result.filter(|value| !promise.is_quick(value)) else {
        return promise.broken_by(result);
    };
    let (schemas, value) = (Arc::clone(schemas), value.clone());
    let judged = move |_: &Wanted| schemas.promise()?.broken_by(Some(&value));
    apart::run(&line.places().values, PATIENCE, judged)
        .await
        .unwrap_or_else(|| Some(TOO_LONG.to_owned()))
}

async fn call(
    tool: ForeignTool,
    arguments: Map<String, Value>,
    was_shown: bool,
    cx: Context,
) -> Result<Output, ToolError> {
    let Inner { line, raw, .. } = &*tool.0;
    let remote = line.remote().await.map_err(|error| failure(&tool, error, &cx).hint(NOT_RUN))?;
    if !line.offers(&tool) {
        return Err(ToolError::conflict(format_args!(
            "the server `{}` changed what it says of `{raw}`, so it was not called",
            line.name()
        ))
        .hint("look at the tool as it is now, then call it again"));
    }
    // Whoever was asked and let this run has seen it; a rule or a mode sees nothing.
    let user = was_shown.then(|| cx.session().seer());
    line.pins().let_run(user, (line.name(), raw), &tool.0.sight).map_err(not_written)?;
    if !tool.is_current() {
        line.renew(&tool);
    }
    let cancel = CancellationToken::new();
    let _abandoned = cancel.clone().drop_guard();
    let report = |done, total, message: String| {
        cx.progress(done, total, line.secrets().told(&message));
    };
    let answers = Answers::new(line.name(), raw, line.questions().clone(), cx.clone());
    let called = RemoteCall {
        server: line.name(),
        tool: raw,
        arguments: &arguments,
        timeout: line.call_timeout(),
        report: &report,
        answers: &answers,
        cancel,
    };
    let longest = line.longest();
    let late = |_| {
        let why = format_args!("it was not done after {longest:?}, whatever it told of itself");
        Err(RemoteError::timeout(why))
    };
    let called = timeout(longest, remote.call(called)).await.unwrap_or_else(late);
    let mut result = match called {
        Ok(result) => result,
        Err(error) => {
            let error = line.failed(error);
            return Err(failure(&tool, error, &cx));
        }
    };
    let failed = result.is_error;
    if failed {
        line.secrets().keep_back_in(&mut result);
    }
    let promise = tool.0.schemas.promise();
    let broken = broken(&tool, result.structured_content.as_ref()).await;
    if failed || broken.is_some() {
        let structured = result.structured_content.clone();
        structured.into_iter().for_each(|value| cx.metadata("structured", value));
    }
    if broken.is_some()
        && let Some(value) = result.structured_content.take()
        && result.content.is_empty()
    {
        // A failure promises nothing; but who reads the schema takes the value for what it is
        // not, so that it goes on as words only.
        result.content.push(json!({ "type": "text", "text": value.to_string() }));
    }
    let output = result::output(result, promise.is_some());
    if let Some(how) = broken.filter(|_| !failed) {
        let error = line.failed(RemoteError::protocol(how));
        let mut told = failure(&tool, error, &cx);
        if !output.as_text().is_empty() {
            told.append(output.as_text());
        }
        return Err(told.giving(output));
    }
    if !failed {
        return Ok(output);
    }
    let words = Some(output.as_text()).filter(|text| !text.trim().is_empty());
    let failed = ToolError::failed(words.unwrap_or("the tool failed and did not say why"));
    Err(failed.giving(output))
}

/// What to do about a tool that certainly did not run.
const NOT_RUN: &str = "it did not run; go on without it, or try again later";

/// What a model reads of a server that did not answer, and what programs are told of it.
fn failure(tool: &ForeignTool, error: RemoteError, cx: &Context) -> ToolError {
    let Inner { line, raw, .. } = &*tool.0;
    let class = error.class;
    cx.metadata(
        "mcp_error",
        json!({
            "error_type": class.as_str(), "server": line.name(), "tool": raw,
            "original_error": error.message, "is_error": true,
        }),
    );
    let label = class.as_str().to_ascii_uppercase();
    let message = format!("[{label}] server `{}`, tool `{raw}`: {}", line.name(), error.message);
    let told = match class {
        ErrorClass::Connection if error.not_run => ToolError::unavailable(message).hint(NOT_RUN),
        ErrorClass::Connection => ToolError::unavailable(message)
            .hint("it may or may not have run; look before you call it again"),
        ErrorClass::Timeout => ToolError::timeout(message).hint("ask for less at once"),
        ErrorClass::Aborted => ToolError::aborted(message),
        ErrorClass::Protocol => ToolError::failed(message),
    };
    match error.source {
        Some(source) => told.source(source),
        None => told,
    }
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
            risk(&tool)
        };
        let harmless = with(json!({ "readOnlyHint": true, "destructiveHint": false }));
        assert_eq!(harmless, Risk::new(RiskClass::Execute));
        assert!(with(json!({ "destructiveHint": true, "readOnlyHint": true })).destructive);
        assert!(with(json!({ "openWorldHint": true })).open_world);
        assert_eq!(with(json!("nonsense")), Risk::new(RiskClass::Execute));
    }
}
