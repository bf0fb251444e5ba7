//! What generated code is made of: a static table per tool, and calls into this module.
//!
//! A tool is one [`ToolSpec`] (plain constants), one [`Table`] around it (what is computed
//! at first use), and one function that takes the arguments and stages the call. The
//! arguments, and later the future, live in one allocation.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use serde_json::Value;

use super::args::{Checks, InvalidArgs};
use super::{
    Approved, Definition, Display, Flags, IntoTools, Parallel, Place, Prepared, Refinement,
    Running, Slot, Source, StructType, Subject, Tool, Truncate, args, param::TypeFacts,
};
use crate::call::{Note, RawArgs};
use crate::content::Output;
use crate::context::{Context, Session};
use crate::effect::{Risk, RiskClass};
use crate::error::ToolError;
use crate::name::ToolName;
use crate::schema::{self, Property, Schema, SchemaFn};

/// Everything that the attribute says, as constants.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "generated code writes it out")]
#[expect(missing_docs, reason = "the fields are those of `Definition`")]
pub struct ToolSpec {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub title: Option<&'static str>,
    pub description: &'static str,
    pub category: Option<&'static str>,
    pub risk: Risk,
    pub permission: Option<&'static str>,
    pub display_name: Option<&'static str>,
    pub primary: Option<&'static str>,
    pub show: &'static [&'static str],
    pub summary: Option<&'static str>,
    pub scopes: &'static [&'static str],
    pub timeout: Option<Duration>,
    pub max_output: Option<usize>,
    pub truncate: Option<Truncate>,
    pub parallel: Option<Parallel>,
    pub flags: Flags,
    pub examples: &'static [&'static str],
    pub init: Option<fn(&Session) -> Refinement>,
    pub output: fn() -> Option<SchemaFn>,
    pub args: ArgsSpec,
    pub place: Place,
}

impl ToolSpec {
    /// What a tool is when its attribute says nothing; a table overrides what it needs.
    pub const DEFAULT: Self = Self {
        name: "",
        aliases: &[],
        title: None,
        description: "",
        category: None,
        risk: Risk::new(RiskClass::Execute),
        permission: None,
        display_name: None,
        primary: None,
        show: &[],
        summary: None,
        scopes: &[],
        timeout: None,
        max_output: None,
        truncate: None,
        parallel: None,
        flags: Flags { requires_auth: false, hidden: false, experimental: false, streaming: false },
        examples: &[],
        init: None,
        output: || None,
        args: ArgsSpec::Params(&[]),
        place: Place { package: "", version: "", file: "", line: 0 },
    };
}

/// How a tool takes its arguments.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "generated code writes it out")]
pub enum ArgsSpec {
    /// One by one.
    Params(&'static [ParamSpec]),
    /// As one struct with this schema.
    Struct(SchemaFn),
}

/// One parameter.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "generated code writes it out")]
#[expect(missing_docs, reason = "the fields are the items of `#[arg(..)]`")]
pub struct ParamSpec {
    pub name: &'static str,
    pub description: &'static str,
    pub aliases: &'static [&'static str],
    pub ty: TypeFacts,
    pub default: Option<DefaultSpec>,
    pub range: Option<Range>,
    pub length: Option<(usize, usize)>,
    pub pattern: Option<&'static str>,
    pub choices: &'static [&'static str],
    pub sensitive: bool,
    pub hidden: bool,
}

impl ParamSpec {
    /// A required parameter without constraints; a table overrides what it needs.
    pub const DEFAULT: Self = Self {
        name: "",
        description: "",
        aliases: &[],
        ty: TypeFacts { schema: |_| schemars::Schema::default(), optional: || false },
        default: None,
        range: None,
        length: None,
        pattern: None,
        choices: &[],
        sensitive: false,
        hidden: false,
    };
}

/// The default of a parameter, for its schema.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "generated code writes it out")]
pub enum DefaultSpec {
    /// A literal, as JSON text.
    Json(&'static str),
    /// An expression.
    Value(fn() -> Value),
}

impl DefaultSpec {
    fn value(self) -> Option<Value> {
        match self {
            Self::Json(text) => serde_json::from_str(text).ok(),
            Self::Value(value) => Some(value()),
        }
    }
}

/// The bounds of a number, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "generated code writes it out")]
pub enum Range {
    /// Whole numbers.
    Int(Option<i128>, Option<i128>),
    /// Any numbers.
    Float(Option<f64>, Option<f64>),
}

/// A tool's constants with what is computed from them at first use.
pub struct Table {
    spec: &'static ToolSpec,
    // Boxed: a program's file holds every table, and these are empty in it.
    definition: OnceLock<Box<Definition>>,
    checks: OnceLock<Box<Checks>>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Table").field(&self.spec.name).finish()
    }
}

impl Table {
    /// A table around `spec`; nothing is computed yet.
    #[must_use]
    pub const fn new(spec: &'static ToolSpec) -> Self {
        Self { spec, definition: OnceLock::new(), checks: OnceLock::new() }
    }

    /// The constants.
    #[must_use]
    pub const fn spec(&self) -> &'static ToolSpec {
        self.spec
    }

    /// The definition.
    #[inline]
    pub fn definition(&self) -> &Definition {
        self.definition.get_or_init(|| Box::new(define(self.spec)))
    }

    /// The parameter that is called `name`, or that `name` is an alias of.
    fn param(&self, name: &str) -> Option<&'static ParamSpec> {
        match &self.spec.args {
            ArgsSpec::Params(params) => {
                params.iter().find(|it| it.name == name || it.aliases.contains(&name))
            }
            ArgsSpec::Struct(_) => None,
        }
    }

    /// Every name by which an argument may come, of which `name` is one.
    fn spellings<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        match self.param(name) {
            Some(param) => {
                std::iter::once(param.name).chain(param.aliases.iter().copied()).collect()
            }
            None => vec![name],
        }
    }

    /// What an argument is when nobody sends it, also one that models are not told about.
    fn default_of(&self, name: &str) -> Option<Value> {
        match self.param(name) {
            Some(param) => param.default.and_then(|default| default.value()),
            None => self.definition().parameters.default_of(name).cloned(),
        }
    }

    /// The checks that decoding alone does not make.
    #[inline]
    pub(crate) fn checks(&self) -> &Checks {
        self.checks.get_or_init(|| Box::new(Checks::of(self.definition(), self.spec)))
    }
}

fn define(spec: &'static ToolSpec) -> Definition {
    let parameters = match &spec.args {
        ArgsSpec::Params(params) => schema::object(params.iter().map(property)),
        ArgsSpec::Struct(schema) => Schema::of_arguments(*schema),
    };
    let mut definition =
        Definition::new(ToolName::from_static(spec.name), spec.description, parameters);
    definition.aliases = spec.aliases.iter().map(|name| ToolName::from_static(name)).collect();
    definition.title = spec.title.map(Into::into);
    definition.category = spec.category.map(Into::into);
    definition.output = (spec.output)().map(Schema::of_output);
    definition.risk = spec.risk;
    definition.permission = spec.permission.map(Into::into);
    definition.display = Arc::new(display(spec));
    definition.scopes = spec.scopes.iter().map(|&scope| scope.into()).collect();
    definition.timeout = spec.timeout;
    definition.max_output = spec.max_output;
    definition.truncate = spec.truncate;
    definition.parallel.clone_from(&spec.parallel);
    definition.flags = spec.flags;
    definition.examples = spec.examples.iter().map(|&example| example.into()).collect();
    definition.source = Source::Native;
    definition.place = Some(spec.place);
    definition
}

/// The schema of all parameters, also of those that models are not told about.
pub(super) fn all_params(params: &[ParamSpec]) -> Schema {
    schema::object(params.iter().map(|param| Property { hidden: false, ..property(param) }))
}

fn property(param: &ParamSpec) -> Property<'_> {
    let default = param.default.and_then(|default| default.value());
    let mut property = Property {
        name: param.name,
        schema: param.ty.schema,
        description: param.description,
        required: param.default.is_none() && !(param.ty.optional)(),
        hidden: param.hidden,
        default,
        keywords: keywords(param),
    };
    if let Some((min, max)) = param.length {
        property.length(min, max);
    }
    property
}

fn keywords(param: &ParamSpec) -> Vec<(&'static str, Value)> {
    let mut keywords = Vec::new();
    let mut set = |keyword, value: Option<Value>| {
        keywords.extend(value.map(|value| (keyword, value)));
    };
    let number = |value: i128| serde_json::Number::from_i128(value).map(Value::Number);
    match param.range {
        Some(Range::Int(low, high)) => {
            set("minimum", low.and_then(number));
            set("maximum", high.and_then(number));
        }
        Some(Range::Float(low, high)) => {
            set("minimum", low.map(Value::from));
            set("maximum", high.map(Value::from));
        }
        None => {}
    }
    set("pattern", param.pattern.map(Value::from));
    set("enum", (!param.choices.is_empty()).then(|| param.choices.iter().copied().collect()));
    keywords
}

fn display(spec: &'static ToolSpec) -> Display {
    let sensitive = match &spec.args {
        ArgsSpec::Params(params) => params.iter().filter(|param| param.sensitive).collect(),
        ArgsSpec::Struct(_) => Vec::new(),
    };
    Display {
        name: spec.display_name.map(Into::into),
        primary: spec.primary.map(Into::into),
        show: spec.show.iter().map(|&name| name.into()).collect(),
        summary: spec.summary.map(Into::into),
        // A secret is one under every name that it may be sent by.
        sensitive: sensitive
            .into_iter()
            .flat_map(|param| std::iter::once(&param.name).chain(param.aliases))
            .map(|&name| name.to_owned())
            .collect(),
    }
}

/// The typed hooks of a tool whose arguments are an `A`.
#[expect(clippy::exhaustive_structs, reason = "generated code writes it out")]
#[expect(missing_docs, reason = "the fields are the items of `approval(..)` and `display(..)`")]
pub struct Hooks<A> {
    pub required: Option<fn(&A, &Context) -> bool>,
    pub subjects: Option<fn(&A, &Context) -> Vec<Subject>>,
    pub suggest: Option<fn(&A) -> Vec<String>>,
    pub covers: Option<fn(&A, &str) -> bool>,
    pub dangerous: Option<fn(&A) -> bool>,
    pub summary: Option<fn(&A) -> String>,
    pub preview: Option<fn(&A, &Context) -> Option<Value>>,
    pub result: Option<fn(&Output) -> Value>,
    pub key: Option<fn(&A) -> String>,
}

impl<A> Hooks<A> {
    /// No hooks; a table overrides what it needs.
    pub const NONE: Self = Self {
        required: None,
        subjects: None,
        suggest: None,
        covers: None,
        dangerous: None,
        summary: None,
        preview: None,
        result: None,
        key: None,
    };
}

impl<A> fmt::Debug for Hooks<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooks")
    }
}

/// Fills `slots`, which stand in the order of the table's parameters.
///
/// # Errors
///
/// Fails with every fault of the arguments at once.
#[inline]
pub fn take(
    table: &Table,
    raw: &RawArgs<'_>,
    slots: &mut [&mut dyn Slot],
) -> Result<Vec<Note>, InvalidArgs> {
    args::take(table, raw, slots)
}

/// Decodes all arguments as one struct.
///
/// # Errors
///
/// Fails with every fault of the arguments at once.
pub fn take_struct<T>(
    table: &Table,
    raw: &RawArgs<'_>,
    ty: &StructType<T>,
) -> Result<(T, Vec<Note>), InvalidArgs> {
    args::take_struct(table, raw, ty)
}

/// The value of a slot that [`take`] filled.
///
/// # Panics
///
/// Never after a successful [`take`]: a required argument that is absent is a fault.
#[inline]
pub fn filled<T>(slot: Option<T>) -> T {
    match slot {
        Some(value) => value,
        None => unfilled(),
    }
}

#[cold]
fn unfilled() -> ! {
    panic!("a required argument was neither taken nor reported")
}

/// Makes a call ready: `start` runs when the pipeline says so.
pub fn stage<A, S, F>(
    args: A,
    notes: Vec<Note>,
    hooks: &'static Hooks<A>,
    start: S,
) -> Box<dyn Prepared>
where
    A: Send + 'static,
    S: FnOnce(A, Context) -> F + Send + 'static,
    F: Future<Output = Result<Output, ToolError>> + Send + 'static,
{
    Box::new(Staged { waiting: Some((args, start)), notes, hooks, running: None })
}

pin_project! {
    /// A call before and while it runs, in one allocation.
    struct Staged<A: 'static, S, F> {
        waiting: Option<(A, S)>,
        notes: Vec<Note>,
        hooks: &'static Hooks<A>,
        #[pin]
        running: Option<F>,
    }
}

impl<A, S, F> Staged<A, S, F> {
    fn args(&self) -> Option<&A> {
        self.waiting.as_ref().map(|(args, _)| args)
    }
}

impl<A, S, F> Prepared for Staged<A, S, F>
where
    A: Send + 'static,
    S: FnOnce(A, Context) -> F + Send + 'static,
    F: Future<Output = Result<Output, ToolError>> + Send + 'static,
{
    fn run(mut self: Box<Self>, cx: Context, _: Approved) -> Running {
        self.running = self.waiting.take().map(|(args, start)| start(args, cx));
        Box::into_pin(self)
    }

    fn summary(&self) -> Option<String> {
        Some(self.hooks.summary?(self.args()?))
    }

    fn subjects(&self, cx: &Context) -> Option<Vec<Subject>> {
        Some(self.hooks.subjects?(self.args()?, cx))
    }

    fn approval_required(&self, cx: &Context) -> Option<bool> {
        Some(self.hooks.required?(self.args()?, cx))
    }

    fn has_no_wish(&self) -> bool {
        self.hooks.required.is_none() && self.hooks.subjects.is_none()
    }

    fn suggestions(&self) -> Vec<String> {
        match (self.hooks.suggest, self.args()) {
            (Some(suggest), Some(args)) => suggest(args),
            _ => Vec::new(),
        }
    }

    fn suggests(&self) -> bool {
        self.hooks.suggest.is_some()
    }

    fn covered_by(&self, pattern: &str) -> Option<bool> {
        Some(self.hooks.covers?(self.args()?, pattern))
    }

    fn is_dangerous(&self) -> bool {
        match (self.hooks.dangerous, self.args()) {
            (Some(dangerous), Some(args)) => dangerous(args),
            _ => false,
        }
    }

    fn preview(&self, cx: &Context) -> Option<Value> {
        self.hooks.preview?(self.args()?, cx)
    }

    fn parallel_key(&self) -> Option<String> {
        Some(self.hooks.key?(self.args()?))
    }

    fn notes(&self) -> &[Note] {
        &self.notes
    }
}

impl<A, S, F> Future for Staged<A, S, F>
where
    F: Future<Output = Result<Output, ToolError>>,
{
    type Output = Result<Output, ToolError>;

    fn poll(self: Pin<&mut Self>, task: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(running) = this.running.as_pin_mut() else {
            return Poll::Ready(Err(ToolError::internal("the call was polled after its end")));
        };
        let result = ready!(running.poll(task));
        Poll::Ready(match this.hooks.result {
            Some(display) => result.map(|output| {
                let data = display(&output);
                output.display(data)
            }),
            None => result,
        })
    }
}

/// Makes a call of a function ready.
pub(crate) type Prepare = fn(&RawArgs<'_>) -> Result<Box<dyn Prepared>, InvalidArgs>;

/// Makes a call of a method on an `S` ready.
pub(crate) type PrepareOn<S> = fn(&Arc<S>, &RawArgs<'_>) -> Result<Box<dyn Prepared>, InvalidArgs>;

/// A function with `#[tool]`.
#[derive(Debug)]
pub struct FnTool {
    table: &'static Table,
    prepare: Prepare,
}

impl FnTool {
    /// A tool of this table, made ready by this function.
    #[must_use]
    pub const fn new(table: &'static Table, prepare: Prepare) -> Self {
        Self { table, prepare }
    }

    /// Its table.
    #[must_use]
    pub const fn table(&self) -> &'static Table {
        self.table
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
    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn Prepared>, InvalidArgs> {
        (self.prepare)(args)
    }

    fn spellings<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        self.table.spellings(name)
    }

    fn default_of(&self, name: &str) -> Option<Value> {
        self.table.default_of(name)
    }

    fn refine(&self, session: &Session) -> Refinement {
        self.table.spec.init.map(|init| init(session)).unwrap_or_default()
    }
}

/// The type of the same name as a function with `#[tool]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "not a tool",
    note = "put `#[tool]` on the function"
)]
pub trait ToolFn {
    /// The tool.
    fn tool() -> &'static FnTool;
}

/// A method with `#[tool]` in a `#[toolset]`, with the value that it is called on.
pub struct MethodTool<S: 'static> {
    table: &'static Table,
    state: Arc<S>,
    prepare: PrepareOn<S>,
}

impl<S> fmt::Debug for MethodTool<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MethodTool").field(&self.table.spec.name).finish()
    }
}

impl<S: Send + Sync + 'static> MethodTool<S> {
    /// A tool of this table on `state`.
    pub fn shared(table: &'static Table, state: &Arc<S>, prepare: PrepareOn<S>) -> Arc<dyn Tool> {
        Arc::new(Self { table, state: Arc::clone(state), prepare })
    }
}

impl<S: Send + Sync + 'static> Tool for MethodTool<S> {
    #[inline]
    fn definition(&self) -> &Definition {
        self.table.definition()
    }

    #[inline]
    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn Prepared>, InvalidArgs> {
        (self.prepare)(&self.state, args)
    }

    fn spellings<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        self.table.spellings(name)
    }

    fn default_of(&self, name: &str) -> Option<Value> {
        self.table.default_of(name)
    }

    fn refine(&self, session: &Session) -> Refinement {
        self.table.spec.init.map(|init| init(session)).unwrap_or_default()
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
pub trait ToolMethods: Send + Sync + Sized + 'static {
    /// Its methods as tools on `this`.
    fn tools(this: &Arc<Self>) -> Vec<Arc<dyn Tool>>;
}
