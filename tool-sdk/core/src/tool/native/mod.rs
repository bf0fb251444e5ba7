//! The runtime of generated code: a static table per tool, and functions that the code calls.
//!
//! A tool is a [`Table`] (constants, and values computed from them on first use) and one function
//! that decodes the arguments and prepares the call. The handles here, [`FnTool`] and
//! [`MethodTool`], make [`Tool`]s of the two.
//!
//! Generic code in this module is compiled once per tool, in the user's crate. So there is as
//! little of it as possible.

mod callbacks;
mod spec;
mod staged;
mod table;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub use self::callbacks::{ToolCallbacks, stage_with, validate_args};
pub use self::spec::{
    ArgsSpec, DefaultSpec, ParallelSpec, ParamOptions, ParamSpec, Range, ToolOptions, ToolSpec,
};
pub use self::staged::{filled, stage, stage_in, take, take_struct};
pub use self::table::Table;
pub(crate) use self::table::full_schema;
use super::args::InvalidArgs;
use super::{Definition, IntoTools, PreparedCall, Refinement, Tool};
use crate::call::RawArgs;
use crate::context::{RequiredService, Session, Shared};

/// A prepared call, or all faults of its arguments.
pub type PrepareResult = Result<Box<dyn PreparedCall>, InvalidArgs>;

/// Prepares a call of a function.
pub type Prepare = fn(&Table, &RawArgs<'_>) -> PrepareResult;

/// Prepares a call of a method on an `S`.
pub(crate) type PrepareMethod<S> = fn(&Table, &RawArgs<'_>, &Arc<S>) -> PrepareResult;

/// A function with `#[tool]`.
#[derive(Debug)]
pub struct FnTool {
    table: Table,
    prepare: Prepare,
}

impl FnTool {
    /// Creates a tool from its constants and the function that prepares its calls.
    #[must_use]
    pub const fn new(spec: ToolSpec, prepare: Prepare) -> Self {
        Self { table: Table::new(spec), prepare }
    }

    /// Returns the table.
    #[must_use]
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// Returns the tool as a registry stores it.
    #[must_use]
    pub fn shared(&'static self) -> Arc<dyn Tool> {
        Arc::new(self)
    }
}

impl Tool for &'static FnTool {
    #[inline]
    fn definition(&self) -> &Definition {
        self.table.definition()
    }

    #[inline]
    fn prepare(&self, args: &RawArgs<'_>) -> PrepareResult {
        (self.prepare)(&self.table, args)
    }

    fn argument_names<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        self.table.argument_names(name)
    }

    fn argument_default(&self, name: &str) -> Option<Value> {
        self.table.argument_default(name)
    }

    fn refuses_duplicate_keys(&self) -> bool {
        true
    }

    fn takes_path(&self, name: &str) -> bool {
        self.table.takes_path(name)
    }

    fn may_name_resources(&self) -> bool {
        self.table.may_name_resources()
    }

    fn unusable_reason(&self) -> Option<String> {
        self.table.unusable_reason()
    }

    fn required_services(&self) -> Vec<RequiredService> {
        self.table.spec().options.services.iter().copied().flatten().collect()
    }

    fn refine(&self, session: &Session) -> Refinement {
        self.table.spec().options.init.map(|init| init(session)).unwrap_or_default()
    }
}

/// Implemented by the type of the same name as a function with `#[tool]`.
///
/// `Place` is a type that only the generated code can name. There is one implementation per type,
/// so the parameter is inferred, as in `<read_page as ToolFn<_>>::tool()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "not a tool",
    note = "put `#[tool]` on the function"
)]
pub trait ToolFn<Place> {
    /// Returns the tool.
    fn tool() -> &'static FnTool;
}

/// A method with `#[tool]` in a `#[toolset]`, with its receiver.
pub struct MethodTool<S: 'static> {
    table: &'static Table,
    state: Arc<S>,
    prepare: PrepareMethod<S>,
}

impl<S> fmt::Debug for MethodTool<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MethodTool").field(&self.table.spec().name).finish()
    }
}

impl<S: ToolMethods> MethodTool<S> {
    /// Returns the tool of this table with the receiver `state`.
    pub fn shared(
        table: &'static Table,
        state: &Arc<S>,
        prepare: PrepareMethod<S>,
    ) -> Arc<dyn Tool> {
        Arc::new(Self { table, state: Arc::clone(state), prepare })
    }
}

impl<S: ToolMethods> Tool for MethodTool<S> {
    #[inline]
    fn definition(&self) -> &Definition {
        self.table.definition()
    }

    #[inline]
    fn prepare(&self, args: &RawArgs<'_>) -> PrepareResult {
        (self.prepare)(self.table, args, &self.state)
    }

    fn argument_names<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        self.table.argument_names(name)
    }

    fn argument_default(&self, name: &str) -> Option<Value> {
        self.table.argument_default(name)
    }

    fn refuses_duplicate_keys(&self) -> bool {
        true
    }

    fn takes_path(&self, name: &str) -> bool {
        self.table.takes_path(name)
    }

    fn may_name_resources(&self) -> bool {
        self.table.may_name_resources()
    }

    fn unusable_reason(&self) -> Option<String> {
        self.table.unusable_reason()
    }

    fn required_services(&self) -> Vec<RequiredService> {
        self.table.spec().options.services.iter().copied().flatten().collect()
    }

    fn refine(&self, session: &Session) -> Refinement {
        self.table.spec().options.init.map(|init| init(session)).unwrap_or_default()
    }
}

/// A shared value with a `#[toolset]`.
impl<S> IntoTools for Arc<S>
where
    S: ToolMethods,
{
    fn into_tools(self) -> Vec<Arc<dyn Tool>> {
        S::tools(&self)
    }
}

/// A type with `#[toolset]`.
///
/// Generated code requires the trait and not its bounds, so that a type that breaks a bound
/// causes one error, at the type.
pub trait ToolMethods: Shared + Sized {
    /// Returns the methods as tools on `this`.
    fn tools(this: &Arc<Self>) -> Vec<Arc<dyn Tool>>;
}

/// Selects by autoref how a value is converted to tools; see [`ViaNothing`].
#[derive(Debug)]
pub struct AutorefTools<S>(pub S);

/// The conversion of a type that can be shared.
pub trait ViaMethods {
    /// Returns the tools.
    fn tools(self) -> Vec<Arc<dyn Tool>>;
}

impl<S: ToolMethods> ViaMethods for AutorefTools<S> {
    fn tools(self) -> Vec<Arc<dyn Tool>> {
        S::tools(&Arc::new(self.0))
    }
}

/// The conversion of a type that cannot be shared. The type already caused an error, and adding
/// its value must not cause another.
pub trait ViaNothing {
    /// Returns no tools.
    fn tools(self) -> Vec<Arc<dyn Tool>>;
}

impl<S> ViaNothing for &AutorefTools<S> {
    fn tools(self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }
}
