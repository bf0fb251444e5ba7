//! A valid tool as plain data.
//!
//! `lower` creates it and `expand` reads it; the two are independent of each other.
//!
//! **Invariant:** a value of these types is valid.

use proc_macro2::{Ident, Span, TokenStream};
use syn::Type;

use crate::docs::DocText;
use crate::runtime::RuntimePath;

/// A function that is a tool.
pub(crate) struct ToolModel {
    /// The function.
    pub(crate) ident: Ident,
    /// The token behind which rustc would write generics of the function.
    pub(crate) generics: Span,
    /// The visibility of generated items, without the user's spans.
    pub(crate) vis: TokenStream,
    /// The conditions under which it exists.
    pub(crate) cfgs: TokenStream,
    pub(crate) runtime: RuntimePath,
    pub(crate) is_async: bool,
    pub(crate) is_deprecated: bool,
    pub(crate) output: TokenStream,
    pub(crate) input: ToolInput,
    /// The arguments of the function, in order.
    pub(crate) passed: Vec<PassedArgument>,
    pub(crate) name: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: DocText,
    pub(crate) category: Option<String>,
    pub(crate) examples: Vec<String>,
    pub(crate) risk: ToolRisk,
    pub(crate) permission: Option<String>,
    pub(crate) display: ToolDisplay,
    pub(crate) hooks: HookFunctions,
    pub(crate) limits: CallLimits,
    pub(crate) scopes: Vec<String>,
    /// Fields of the runtime's `Flags` that are set.
    pub(crate) flags: Vec<&'static str>,
    pub(crate) init: Option<TokenStream>,
    pub(crate) registered: bool,
    /// Its name and aliases as identifiers that a crate has once, where they were written.
    pub(crate) claims: Vec<Ident>,
    pub(crate) schema_lock: Option<SchemaLock>,
}

/// How arguments arrive.
pub(crate) enum ToolInput {
    /// One by one, in a generated struct of this name.
    Params { args: Ident, params: Vec<ParamModel> },
    /// As one struct of the user's.
    Struct { ty: TokenStream, fields: Vec<Ident> },
}

/// A parameter that the model sends.
pub(crate) struct ParamModel {
    pub(crate) ident: Ident,
    /// Its name in JSON.
    pub(crate) key: String,
    pub(crate) description: DocText,
    pub(crate) docs: TokenStream,
    /// The type that is decoded, owned.
    pub(crate) ty: TokenStream,
    pub(crate) is_optional: bool,
    pub(crate) aliases: Vec<String>,
    pub(crate) limits: ParamLimits,
    pub(crate) default: Option<DefaultValue>,
    pub(crate) is_sensitive: bool,
    pub(crate) is_hidden: bool,
}

/// Constraints on a value beyond its type.
#[derive(Default)]
pub(crate) struct ParamLimits {
    pub(crate) range: Option<NumberRange>,
    pub(crate) length: Option<LengthRange>,
    pub(crate) pattern: Option<String>,
    pub(crate) choices: Vec<String>,
    /// Facts for rustc to check, where constants are involved.
    pub(crate) asserted: Vec<ConstAssertion>,
}

/// A condition over constants, and what to say when it is false.
pub(crate) struct ConstAssertion {
    pub(crate) condition: TokenStream,
    pub(crate) message: String,
    /// Tokens to underline.
    pub(crate) at: TokenStream,
}

/// The value of an absent argument.
pub(crate) enum DefaultValue {
    /// A literal: its JSON and its Rust.
    Literal { json: String, value: TokenStream },
    /// Anything else.
    Expr(TokenStream),
}

/// Bounds of a number.
pub(crate) struct NumberRange {
    pub(crate) is_float: bool,
    pub(crate) min: Option<RangeBound>,
    pub(crate) max: Option<RangeBound>,
}

/// One inclusive bound.
#[derive(Clone)]
pub(crate) enum RangeBound {
    Int(i128),
    Float(f64),
    /// A constant, as an expression of the range's type.
    Const(TokenStream),
}

/// Bounds of a length, both inclusive, as expressions of type `usize`.
pub(crate) struct LengthRange {
    pub(crate) min: TokenStream,
    pub(crate) max: TokenStream,
}

/// One argument of the function.
pub(crate) enum PassedArgument {
    /// The parameter of this place among those of the model.
    Param { at: usize, how: PassingMode },
    /// The user's struct in `Args`; the type as it was written.
    Struct(Type),
    /// Borrowed from the context.
    Borrowed(Type),
    /// Taken from the context.
    Owned(Type),
}

impl PassedArgument {
    /// Whether it is not known before the call runs.
    pub(crate) fn is_of_the_context(&self) -> bool {
        matches!(self, Self::Borrowed(_) | Self::Owned(_))
    }
}

/// How a decoded value is handed over.
#[derive(Clone, Copy)]
pub(crate) enum PassingMode {
    Moved,
    /// `&str` from a `String`.
    Borrowed,
    /// `Option<&str>` from an `Option<String>`.
    AsDeref,
}

/// What running it can do.
pub(crate) struct ToolRisk {
    /// A variant of the runtime's `RiskClass`.
    pub(crate) class: &'static str,
    /// Methods of the runtime's `Risk` that apply.
    pub(crate) facts: Vec<&'static str>,
}

/// How it is shown; parameters by their names in JSON.
#[derive(Default)]
pub(crate) struct ToolDisplay {
    pub(crate) name: Option<String>,
    pub(crate) primary: Option<String>,
    pub(crate) show: Vec<String>,
    pub(crate) summary: Option<SummaryPattern>,
    pub(crate) ui: Option<String>,
}

/// A one-line summary.
pub(crate) struct SummaryPattern {
    /// With names of JSON arguments, for surfaces.
    pub(crate) pattern: String,
    /// For `format!`, with numbers in place of names.
    pub(crate) format: proc_macro2::Literal,
    /// The field behind each number.
    pub(crate) fields: Vec<Ident>,
}

/// The user's functions, by field of the runtime's `Hooks`.
pub(crate) type HookFunctions = Vec<(&'static str, TokenStream)>;

/// Limits of a call.
#[derive(Default)]
pub(crate) struct CallLimits {
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) max_output: Option<usize>,
    /// A variant of the runtime's `Truncate`.
    pub(crate) truncate: Option<&'static str>,
    pub(crate) parallel: Option<ParallelRule>,
    /// A variant of the runtime's `TaskSupport`.
    pub(crate) task: Option<&'static str>,
}

/// Which calls may run beside it.
pub(crate) enum ParallelRule {
    /// A variant of the runtime's `Parallel`.
    Class(&'static str),
    /// Serial per value of a parameter.
    By { key: String, field: Ident },
}

/// A committed schema.
pub(crate) struct SchemaLock {
    /// The file, relative to the package.
    pub(crate) path: String,
    /// Whether there is such a file.
    pub(crate) is_there: bool,
    /// The module of the test that compares everything, at the path's place.
    pub(crate) test: Ident,
    /// How the signature differs from it, as compile errors.
    pub(crate) drifts: TokenStream,
}
