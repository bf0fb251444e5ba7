//! What a tool is: a definition, and a way to make a call ready.
//!
//! [`Tool`] is the one trait behind everything that can be called: functions with
//! `#[tool]`, methods of a `#[toolset]`, [`DynamicTool`]s, tools of other servers. The
//! registry holds it, the pipeline runs it and every surface shows it; nothing converts.
//!
//! **Invariant:** nothing here decides whether a call may run.

pub(crate) mod args;
mod definition;
mod display;
mod dynamic;
#[cfg(feature = "hooks")]
mod external_arg_names;
mod label;
mod legacy;
pub(crate) mod native;
mod output;
mod param;
#[cfg(feature = "workspace")]
mod path;
#[cfg(feature = "workspace")]
mod paths;
#[cfg(not(feature = "workspace"))]
#[path = "paths_disabled.rs"]
mod paths;
mod permit;
mod resource;
pub(crate) mod summary_value;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub(crate) use self::args::check_strict;
#[cfg(feature = "mcp")]
pub(crate) use self::args::check_unambiguous;
#[cfg(feature = "cli")]
pub(crate) use self::args::closest_name;
pub use self::args::{Fault, FaultKind, InvalidArgs};
pub use self::definition::{
    Definition, Flags, Parallel, Refinement, SourceLocation, ToolSource, Truncate,
};
pub use self::display::{Icon, ToolDisplay};
pub use self::dynamic::DynamicTool;
#[cfg(feature = "hooks")]
pub(crate) use self::external_arg_names::ExternalArgNames;
pub use self::label::ToolLabel;
#[expect(deprecated, reason = "it is here so that its users are told what is better")]
pub use self::legacy::LegacyTool;
pub use self::native::{
    ArgsSpec, AutorefTools, DefaultSpec, FnTool, MethodTool, ParallelSpec, ParamOptions, ParamSpec,
    Prepare, PrepareResult, Range, Table, ToolCallbacks, ToolFn, ToolMethods, ToolOptions,
    ToolSpec, ViaMethods, ViaNothing,
};
pub use self::output::{IntoOutput, Json, OutputType, output_type};
pub use self::param::{Args, Lengthy, Param, Patterned, Ranged, default_value, struct_type};
#[cfg(feature = "workspace")]
pub use self::path::WorkspacePath;
pub use self::permit::ExecutionPermit;
pub(crate) use self::resource::PathAlias;
pub use self::resource::Resource;
pub use self::summary_value::SummaryValue;
use crate::call::{ArgumentNote, RawArgs};
use crate::content::Output;
use crate::context::{Context, Session};
use crate::error::ToolError;

/// A call that runs.
pub type OutputFuture = Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send>>;

/// Something that a model can call.
///
/// `#[tool]` implements it; a type that cannot use the macro implements it by hand and is
/// treated exactly alike. [`DynamicTool`] is the shortest way to a tool whose schema is
/// only known when the program runs.
///
/// # Examples
///
/// ```
/// use tool_sdk::{
///     ExecutionPermit, Call, Definition, InvalidArgs, Output, Pipeline, PreparedCall, RawArgs, Registry,
///     Risk, RiskClass, OutputFuture, Schema, Session, Tool, ToolName,
/// };
///
/// /// Tells the time, whatever it is asked.
/// struct Clock(Definition);
///
/// impl Tool for Clock {
///     fn definition(&self) -> &Definition {
///         &self.0
///     }
///
///     fn prepare(&self, _: &RawArgs<'_>) -> Result<Box<dyn PreparedCall>, InvalidArgs> {
///         Ok(Box::new(Look))
///     }
/// }
///
/// /// One look at the clock.
/// struct Look;
///
/// impl PreparedCall for Look {
///     fn run(self: Box<Self>, _: ExecutionPermit) -> OutputFuture {
///         Box::pin(async { Ok(Output::text("noon")) })
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let schema = Schema::from_json(r#"{"type": "object", "properties": {}}"#)?;
/// let definition = Definition::new(ToolName::new("clock")?, "Tells the time.", schema)
///     .risk(Risk::new(RiskClass::Read));
/// let pipeline = Pipeline::new(Registry::builder().add(Clock(definition)).build()?);
///
/// let outcome = pipeline.call(&Session::default(), Call::new("clock", "{}")).await;
/// assert_eq!(outcome.text(), "noon");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Tool: Send + Sync + 'static {
    /// What the model and the host are told about the tool.
    fn definition(&self) -> &Definition;

    /// Decodes the arguments, once: what is judged, shown and run is the returned value.
    ///
    /// # Errors
    ///
    /// Fails with every fault of the arguments at once.
    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn PreparedCall>, InvalidArgs>;

    /// Every name by which a model may send an argument, of which `name` is one.
    fn argument_names<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        vec![name]
    }

    /// What the argument `name` is when nobody sends it.
    fn argument_default(&self, name: &str) -> Option<serde_json::Value> {
        self.definition().parameters.property_default(name).cloned()
    }

    /// Whether the argument `name`, by any of its names, is known to hold paths of files. What a
    /// rule forbids of such an argument holds wherever calls without it touch the files.
    fn takes_path(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Whether [`prepare`](Self::prepare) refuses arguments with duplicate names; otherwise the
    /// pipeline checks that itself.
    #[doc(hidden)]
    fn refuses_duplicate_keys(&self) -> bool {
        false
    }

    /// Why no call of it could ever be right, where that is known; no registry takes it then.
    fn unusable_reason(&self) -> Option<String> {
        None
    }

    /// How the definition differs in `session`; not at all by default.
    fn refine(&self, session: &Session) -> Refinement {
        let _ = session;
        Refinement::default()
    }
}

/// A call with decoded arguments, ready to be judged and then to run.
pub trait PreparedCall: Send {
    /// Runs the tool, once a pipeline has approved this very value.
    fn run(self: Box<Self>, approved: ExecutionPermit) -> OutputFuture;

    /// One line for people that says what the call does.
    fn summary(&self) -> Option<String> {
        None
    }

    /// What the call touches, for rules to match; `None` when the tool does not say.
    fn resources(&self, cx: &Context) -> Option<Vec<Resource>> {
        let _ = cx;
        None
    }

    /// The paths among the arguments, also those that are no [`subjects`](Self::resources), such as
    /// the folder in which something is run: a rule that forbids such an argument means the path in
    /// all its spellings.
    fn paths(&self, cx: &Context) -> Vec<Resource> {
        let _ = cx;
        Vec::new()
    }

    /// Whether somebody must be asked; `None` leaves it to the rules.
    fn approval_required(&self, cx: &Context) -> Option<bool> {
        let _ = cx;
        None
    }

    /// Patterns that an "always" could grant, from specific to general.
    fn suggestions(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether nothing but [`suggestions`](Self::suggestions) is offered: without any there
    /// is no "always" then.
    fn restricts_suggestions(&self) -> bool {
        false
    }

    /// Whether an approved pattern covers this call; `None` means plain pattern matching.
    fn covered_by(&self, pattern: &str) -> Option<bool> {
        let _ = pattern;
        None
    }

    /// Whether the call is so dangerous that no "always" is offered.
    fn is_dangerous(&self) -> bool {
        false
    }

    /// What else decides what the call does, by name: a folder, the program that it means, what
    /// a script says.
    ///
    /// It is looked at when somebody is asked, and again once they have answered: a yes does
    /// not hold for what has changed meanwhile.
    fn fingerprint_facts(&self, cx: &Context) -> Vec<(&'static str, String)> {
        let _ = cx;
        Vec::new()
    }

    /// What a screen can show before the call runs, such as a diff. It is made when somebody is to
    /// be asked.
    ///
    /// # Errors
    ///
    /// Fails as the call would, where it certainly fails: it ends with that error, and nobody is
    /// asked about it. So the error may only tell what may be told without asking.
    fn preview(&self, cx: &Context) -> Result<Option<serde_json::Value>, ToolError> {
        let _ = cx;
        Ok(None)
    }

    /// The resource by which calls of the tool are serialised.
    fn concurrency_key(&self) -> Option<String> {
        None
    }

    /// What was accepted beyond the contract.
    fn notes(&self) -> &[ArgumentNote] {
        &[]
    }
}

/// One tool or many, ready to be added to a registry.
///
/// Implemented by what `tools![..]` makes, by types with `#[toolset]`, and by any tool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` holds no tools",
    label = "neither a tool nor a list of tools",
    note = "write `tools![..]` for functions, or put `#[toolset]` on the type's `impl` block"
)]
pub trait IntoTools {
    /// The tools.
    fn into_tools(self) -> Vec<Arc<dyn Tool>>;
}

impl IntoTools for Arc<dyn Tool> {
    fn into_tools(self) -> Vec<Arc<dyn Tool>> {
        vec![self]
    }
}

impl IntoTools for Vec<Arc<dyn Tool>> {
    fn into_tools(self) -> Vec<Arc<dyn Tool>> {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T: Tool> IntoTools for T {
    fn into_tools(self) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(self)]
    }
}
