//! The constants of a tool, as its attribute declares them.

use std::time::Duration;

use serde_json::Value;

use crate::context::{RequiredService, Session};
use crate::risk::{Risk, RiskClass};
use crate::schema::SchemaFn;
use crate::tool::param::{ParamType, StructType};
use crate::tool::{Flags, Parallel, Refinement, SourceLocation, TaskSupport, Truncate};

/// Everything that the attribute declares, as constants.
///
/// The compiler processes every field of every tool, so rarely used fields are in
/// [`ToolOptions`].
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "generated code constructs it")]
#[expect(missing_docs, reason = "the fields are those of `Definition`")]
pub struct ToolSpec {
    pub name: &'static str,
    pub description: &'static str,
    pub risk: Risk,
    pub args: ArgsSpec,
    pub output: fn() -> Option<SchemaFn>,
    pub place: SourceLocation,
    pub options: &'static ToolOptions,
}

impl ToolSpec {
    /// A tool without a name, parameters and options.
    pub const DEFAULT: Self = Self {
        name: "",
        description: "",
        risk: Risk::new(RiskClass::Execute),
        args: ArgsSpec::Params(&[]),
        output: || None,
        place: SourceLocation { package: "", version: "", file: "", line: 0 },
        options: ToolOptions::NONE,
    };
}

/// The optional declarations of an attribute.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "generated code constructs it")]
#[expect(missing_docs, reason = "the fields are those of `Definition`")]
pub struct ToolOptions {
    pub aliases: &'static [&'static str],
    pub title: Option<&'static str>,
    pub category: Option<&'static str>,
    pub permission: Option<&'static str>,
    pub display_name: Option<&'static str>,
    pub primary: Option<&'static str>,
    pub show: &'static [&'static str],
    pub summary: Option<&'static str>,
    pub ui: Option<&'static str>,
    pub scopes: &'static [&'static str],
    pub timeout: Option<Duration>,
    pub max_output: Option<usize>,
    pub truncate: Option<Truncate>,
    pub parallel: Option<ParallelSpec>,
    pub task_support: TaskSupport,
    pub flags: Flags,
    pub examples: &'static [&'static str],
    pub init: Option<fn(&Session) -> Refinement>,
    pub services: &'static [Option<RequiredService>],
    /// Whether a callback names the resources of a call.
    pub names_resources: bool,
}

impl ToolOptions {
    /// No options.
    pub const NONE: &'static Self = &Self::DEFAULT;

    /// No options; a table overrides the ones that it needs.
    pub const DEFAULT: Self = Self {
        aliases: &[],
        title: None,
        category: None,
        permission: None,
        display_name: None,
        primary: None,
        show: &[],
        summary: None,
        ui: None,
        scopes: &[],
        timeout: None,
        max_output: None,
        truncate: None,
        parallel: None,
        task_support: TaskSupport::Forbidden,
        flags: Flags { requires_auth: false, hidden: false, experimental: false, streaming: false },
        examples: &[],
        init: None,
        services: &[],
        names_resources: false,
    };
}

/// Which calls may run at the same time, as a constant without a destructor.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "generated code constructs it")]
#[expect(missing_docs, reason = "the variants are those of `Parallel`")]
pub enum ParallelSpec {
    Shared,
    Exclusive,
    By(&'static str),
}

impl From<ParallelSpec> for Parallel {
    fn from(spec: ParallelSpec) -> Self {
        match spec {
            ParallelSpec::Shared => Self::Shared,
            ParallelSpec::Exclusive => Self::Exclusive,
            ParallelSpec::By(name) => Self::By(name.into()),
        }
    }
}

/// How a tool takes its arguments.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "generated code constructs it")]
pub enum ArgsSpec {
    /// One by one.
    Params(&'static [ParamSpec]),
    /// As one struct of this type.
    Struct(&'static StructType),
}

/// One parameter.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "generated code constructs it")]
#[expect(missing_docs, reason = "the fields are the items of `#[arg(..)]`")]
pub struct ParamSpec {
    pub name: &'static str,
    pub description: &'static str,
    pub ty: &'static ParamType,
    pub default: Option<DefaultSpec>,
    pub options: &'static ParamOptions,
}

/// Rarely used declarations of a parameter.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "generated code constructs it")]
#[expect(missing_docs, reason = "the fields are the items of `#[arg(..)]`")]
pub struct ParamOptions {
    pub aliases: &'static [&'static str],
    pub range: Option<Range>,
    pub length: Option<(usize, usize)>,
    pub pattern: Option<&'static str>,
    pub choices: &'static [&'static str],
    pub sensitive: bool,
    pub hidden: bool,
}

impl ParamOptions {
    /// No constraints, and no other names.
    pub const NONE: &'static Self = &Self::DEFAULT;

    /// No constraints and no other names; a table overrides what it needs.
    pub const DEFAULT: Self = Self {
        aliases: &[],
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
#[expect(clippy::exhaustive_enums, reason = "generated code constructs it")]
pub enum DefaultSpec {
    /// A literal, as JSON text.
    Json(&'static str),
    /// An expression.
    Value(fn() -> Value),
}

impl DefaultSpec {
    pub(crate) fn value(self) -> Option<Value> {
        match self {
            Self::Json(text) => serde_json::from_str(text).ok(),
            Self::Value(value) => Some(value()),
        }
    }
}

/// The bounds of a number, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "generated code constructs it")]
pub enum Range {
    /// Whole numbers.
    Int(Option<i128>, Option<i128>),
    /// Any numbers.
    Float(Option<f64>, Option<f64>),
}
