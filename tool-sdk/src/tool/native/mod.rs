//! What generated code is made of: a static table per tool, and calls into this module.
//!
//! A tool is a [`Table`] (constants, and what is computed from them at first use) and one
//! function that takes the arguments and stages the call. The handles here, [`FnTool`] and
//! [`MethodTool`], make [`Tool`]s of the two.
//!
//! Whatever stands here with a type parameter is compiled once per tool, in the user's
//! crate. So there is as little of it as can be.

mod callbacks;
mod spec;
mod staged;
mod table;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub use self::callbacks::{ToolCallbacks, stage_with};
pub use self::spec::{
    ArgsSpec, DefaultSpec, ParallelSpec, ParamOptions, ParamSpec, Range, ToolOptions, ToolSpec,
};
pub use self::staged::{filled, stage, stage_in, take, take_struct};
pub use self::table::Table;
pub(crate) use self::table::full_schema;
use super::args::InvalidArgs;
use super::{Definition, IntoTools, PreparedCall, Refinement, Tool};
use crate::call::RawArgs;
use crate::context::{Session, Shared};

/// A call that is ready, or every fault of its arguments.
pub type PrepareResult = Result<Box<dyn PreparedCall>, InvalidArgs>;

/// Makes a call of a function ready.
pub type Prepare = fn(&Table, &RawArgs<'_>) -> PrepareResult;

/// Makes a call of a method on an `S` ready.
pub(crate) type PrepareMethod<S> = fn(&Table, &RawArgs<'_>, &Arc<S>) -> PrepareResult;

/// A function with `#[tool]`.
#[derive(Debug)]
pub struct FnTool {
    table: Table,
    prepare: Prepare,
}

impl FnTool {
    /// A tool of these constants, made ready by this function.
    #[must_use]
    pub const fn new(spec: ToolSpec, prepare: Prepare) -> Self {
        Self { table: Table::new(spec), prepare }
    }

    /// Its table.
    #[must_use]
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// The tool in a form that a registry can hold.
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

    fn unusable_reason(&self) -> Option<String> {
        self.table.unusable_reason()
    }

    fn refine(&self, session: &Session) -> Refinement {
        self.table.spec().options.init.map(|init| init(session)).unwrap_or_default()
    }
}

/// The type of the same name as a function with `#[tool]`.
///
/// `Place` is a type that only the attribute's code knows: a type has one impl, and whoever asks
/// for its tool leaves it out, as in `<read_page as ToolFn<_>>::tool()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "not a tool",
    note = "put `#[tool]` on the function"
)]
pub trait ToolFn<Place> {
    /// The tool.
    fn tool() -> &'static FnTool;
}

/// A method with `#[tool]` in a `#[toolset]`, with the value that it is called on.
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
    /// A tool of this table on `state`.
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

    fn unusable_reason(&self) -> Option<String> {
        self.table.unusable_reason()
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
/// What is generated asks for the trait and not for the bounds, so a type that breaks one is
/// one error, at the type.
pub trait ToolMethods: Shared + Sized {
    /// Its methods as tools on `this`.
    fn tools(this: &Arc<Self>) -> Vec<Arc<dyn Tool>>;
}

/// A value that is asked for its tools in the way that its type has; see [`ViaNothing`].
#[derive(Debug)]
pub struct AutorefTools<S>(pub S);

/// The tools of a value whose type can be shared.
pub trait ViaMethods {
    /// The tools.
    fn tools(self) -> Vec<Arc<dyn Tool>>;
}

impl<S: ToolMethods> ViaMethods for AutorefTools<S> {
    fn tools(self) -> Vec<Arc<dyn Tool>> {
        S::tools(&Arc::new(self.0))
    }
}

/// None, of a type that cannot be shared: that was an error already, and adding the value must
/// not be another.
pub trait ViaNothing {
    /// No tools.
    fn tools(self) -> Vec<Arc<dyn Tool>>;
}

impl<S> ViaNothing for &AutorefTools<S> {
    fn tools(self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }
}
