//! The tool traits: a definition, and a way to prepare a call.
//!
//! [`Tool`] is the one trait behind everything that can be called: functions with `#[tool]`,
//! methods of a `#[toolset]`, [`DynamicTool`]s, and tools of other servers. The registry stores
//! it, the pipeline runs it and every surface shows it, without conversion.
//!
//! **Invariant:** nothing here decides whether a call may run.

pub(crate) mod args;
mod definition;
mod display;
mod dynamic;
mod external_arg_names;
mod label;
mod legacy;
pub(crate) mod native;
mod output;
mod param;
#[cfg(feature = "workspace")]
mod path;
mod path_collector;
mod permit;
mod redefined;
mod resource;
pub(crate) mod summary_value;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use self::args::check_strict;
pub use self::args::check_unambiguous;
pub use self::args::closest_name;
pub use self::args::{Fault, FaultKind, InvalidArgs};
pub use self::definition::{
    Definition, Flags, Parallel, Refinement, SourceLocation, TaskSupport, ToolSource, Truncate,
};
pub use self::display::{Icon, ToolDisplay};
pub use self::dynamic::DynamicTool;
pub use self::external_arg_names::ExternalArgNames;
pub use self::label::ToolLabel;
#[expect(deprecated, reason = "re-exported so that its users see the deprecation note")]
pub use self::legacy::LegacyTool;
pub use self::native::{
    ArgsSpec, AutorefTools, DefaultSpec, FnTool, MethodTool, ParallelSpec, ParamOptions, ParamSpec,
    Prepare, PrepareResult, Range, Table, ToolCallbacks, ToolFn, ToolMethods, ToolOptions,
    ToolSpec, ViaMethods, ViaNothing,
};
pub use self::output::{
    ErrorType, IntoOutput, Json, OtherConversion, OutputType, ResultType, TypedOutput,
};
pub use self::param::{
    Args, Lengthy, Param, Patterned, Ranged, default_value, struct_type, text_default,
};
#[cfg(feature = "workspace")]
pub use self::path::WorkspacePath;
pub use self::permit::ExecutionPermit;
pub(crate) use self::redefined::RedefinedTool;
pub(crate) use self::resource::PathAlias;
pub use self::resource::Resource;
pub use self::summary_value::SummaryValue;
use crate::call::{ArgumentNote, RawArgs};
use crate::content::Output;
use crate::context::{Context, PluginLifetime, RequiredService, Session};
use crate::error::ToolError;

/// The future of a running call.
pub type OutputFuture = Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send>>;

/// The future that [completes](PreparedCall::complete) a call.
pub type CompletionFuture<'a> = Pin<Box<dyn Future<Output = Result<(), ToolError>> + Send + 'a>>;

/// A function that a model can call.
///
/// `#[tool]` implements this trait. A type that cannot use the macro implements it by hand and is
/// treated the same. [`DynamicTool`] is the shortest way to a tool whose schema is known only at
/// run time.
///
/// # Examples
///
/// ```
/// use tool_sdk::{
///     ExecutionPermit, Call, Definition, InvalidArgs, Output, Pipeline, PreparedCall, RawArgs, Registry,
///     Risk, RiskClass, OutputFuture, Schema, Session, Tool, ToolName,
/// };
///
/// /// Tells the time, and ignores its arguments.
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
/// /// A prepared call of the clock.
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
    /// Returns what the model and the host see of the tool.
    fn definition(&self) -> &Definition;

    /// Decodes the arguments, once: the returned value is authorized, shown and run.
    ///
    /// # Errors
    ///
    /// Fails with all faults of the arguments at once.
    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn PreparedCall>, InvalidArgs>;

    /// Returns the services that a call takes from its session.
    #[doc(hidden)]
    fn required_services(&self) -> Vec<RequiredService> {
        Vec::new()
    }

    /// Returns every name of the argument that `name` is a name of.
    fn argument_names<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        vec![name]
    }

    /// Returns the default of the argument `name`.
    fn argument_default(&self, name: &str) -> Option<serde_json::Value> {
        self.definition().parameters.property_default(name).cloned()
    }

    /// Returns whether the argument `name`, by any of its names, is known to hold file paths. A
    /// rule that denies such an argument also applies to calls without it that touch the files.
    fn takes_path(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Returns whether a call may touch something that the pattern of a rule could match. If not, a
    /// rule with a pattern, and without the name of an argument, matches no call of the tool.
    #[doc(hidden)]
    fn may_name_resources(&self) -> bool {
        true
    }

    /// Returns whether [`prepare`](Self::prepare) refuses arguments with duplicate keys;
    /// otherwise the pipeline checks that itself.
    #[doc(hidden)]
    fn refuses_duplicate_keys(&self) -> bool {
        false
    }

    /// Returns why no call of the tool could be valid, if that is known; registries then refuse
    /// the tool.
    fn unusable_reason(&self) -> Option<String> {
        None
    }

    /// Returns how the definition differs in `session`; not at all by default.
    fn refine(&self, session: &Session) -> Refinement {
        let _ = session;
        Refinement::default()
    }

    /// Returns how long the tool may run, for a tool of a plugin.
    #[doc(hidden)]
    fn plugin_lifetime(&self) -> Option<&PluginLifetime> {
        None
    }
}

/// A call with decoded arguments, ready to be authorized and run.
pub trait PreparedCall: Send {
    /// Runs the tool, after a pipeline has authorized this value.
    fn run(self: Box<Self>, approved: ExecutionPermit) -> OutputFuture;

    /// Starts what has to be known of the call before its resources, preview and other facts can be
    /// reported, where only another program knows it; `None`, the default, when nothing is missing.
    ///
    /// The pipeline waits for it after the before-hooks, before it decides about the call, and each
    /// time before it decides again, so a call that has its facts returns `None`. An error ends the
    /// call.
    fn complete(&mut self, cx: &Context) -> Option<CompletionFuture<'_>> {
        let _ = cx;
        None
    }

    /// Returns a one-line summary of the call for people.
    fn summary(&self) -> Option<String> {
        None
    }

    /// Returns the resources that the call touches, for rules to match; `None` when the tool does
    /// not name them.
    fn resources(&self, cx: &Context) -> Option<Vec<Resource>> {
        let _ = cx;
        None
    }

    /// Returns the paths among the arguments, including those that are not among the
    /// [`resources`](Self::resources), such as the working folder of a command. A rule that
    /// denies such an argument applies to the path in all its spellings.
    fn paths(&self, cx: &Context) -> Vec<Resource> {
        let _ = cx;
        Vec::new()
    }

    /// Returns whether the call needs approval; `None` leaves that to the rules.
    fn approval_required(&self, cx: &Context) -> Option<bool> {
        let _ = cx;
        None
    }

    /// Returns the patterns that an "always" answer could grant, from specific to general.
    fn suggestions(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns whether only the [`suggestions`](Self::suggestions) are offered; without any,
    /// there is no "always" then.
    fn restricts_suggestions(&self) -> bool {
        false
    }

    /// Returns whether a granted pattern covers this call; `None` means plain pattern matching.
    fn covered_by(&self, pattern: &str) -> Option<bool> {
        let _ = pattern;
        None
    }

    /// Returns whether the call is so dangerous that no "always" is offered.
    fn is_dangerous(&self) -> bool {
        false
    }

    /// Returns other facts that determine what the call does, by name: a folder, the program that
    /// a name resolves to, the contents of a script.
    ///
    /// They are read when the approver is asked, and again after the answer: an approval is not
    /// valid for facts that have changed.
    fn fingerprint_facts(&self, cx: &Context) -> Vec<(&'static str, String)> {
        let _ = cx;
        Vec::new()
    }

    /// Returns data that can be shown before the call runs, such as a diff. Called only when the
    /// approver is about to be asked.
    ///
    /// # Errors
    ///
    /// Fails when the call would certainly fail: the call then ends with that error, without a
    /// prompt. The error must not reveal anything that needs approval.
    fn preview(&self, cx: &Context) -> Result<Option<serde_json::Value>, ToolError> {
        let _ = cx;
        Ok(None)
    }

    /// Returns the key by which calls of the tool are serialised.
    fn concurrency_key(&self) -> Option<String> {
        None
    }

    /// Returns the accepted deviations from the schema.
    fn notes(&self) -> &[ArgumentNote] {
        &[]
    }
}

/// One tool or many, ready to be added to a registry.
///
/// Implemented for the result of `tools![..]`, for types with `#[toolset]`, and for every tool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` holds no tools",
    label = "neither a tool nor a list of tools",
    note = "write `tools![..]` for functions, or put `#[toolset]` on the type's `impl` block"
)]
pub trait IntoTools {
    /// Returns the tools.
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
