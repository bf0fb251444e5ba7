//! A valid tool as plain data.
//!
//! `lower` creates it and `expand` reads it; the two are independent of each other.
//!
//! **Invariant:** a value of these types is valid.

use proc_macro2::{Ident, Span, TokenStream};
use syn::Type;

use crate::docs::Text;
use crate::runtime::Runtime;

/// A function that is a tool.
pub(crate) struct Tool {
    /// The function.
    pub(crate) ident: Ident,
    /// The token behind which rustc would write generics of the function.
    pub(crate) generics: Span,
    /// The visibility of generated items, without the user's spans.
    pub(crate) vis: TokenStream,
    /// The conditions under which it exists.
    pub(crate) cfgs: TokenStream,
    pub(crate) runtime: Runtime,
    pub(crate) is_async: bool,
    pub(crate) is_deprecated: bool,
    pub(crate) output: TokenStream,
    pub(crate) input: Input,
    /// The arguments of the function, in order.
    pub(crate) passed: Vec<Passed>,
    pub(crate) name: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Text,
    pub(crate) category: Option<String>,
    pub(crate) examples: Vec<String>,
    pub(crate) risk: Risk,
    pub(crate) permission: Option<String>,
    pub(crate) display: Display,
    pub(crate) hooks: Hooks,
    pub(crate) limits: Limits,
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
pub(crate) enum Input {
    /// One by one, in a generated struct of this name.
    Params { args: Ident, params: Vec<Param> },
    /// As one struct of the user's.
    Struct { ty: TokenStream, fields: Vec<Ident> },
}

/// A parameter that the model sends.
pub(crate) struct Param {
    pub(crate) ident: Ident,
    /// Its name in JSON.
    pub(crate) key: String,
    pub(crate) description: Text,
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
    pub(crate) range: Option<Range>,
    pub(crate) length: Option<Length>,
    pub(crate) pattern: Option<String>,
    pub(crate) choices: Vec<String>,
    /// Facts for rustc to check, where constants are involved.
    pub(crate) asserted: Vec<Asserted>,
}

/// A condition over constants, and what to say when it is false.
pub(crate) struct Asserted {
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
pub(crate) struct Range {
    pub(crate) is_float: bool,
    pub(crate) min: Option<Bound>,
    pub(crate) max: Option<Bound>,
}

/// One inclusive bound.
#[derive(Clone)]
pub(crate) enum Bound {
    Int(i128),
    Float(f64),
    /// A constant, as an expression of the range's type.
    Const(TokenStream),
}

/// Bounds of a length, both inclusive, as expressions of type `usize`.
pub(crate) struct Length {
    pub(crate) min: TokenStream,
    pub(crate) max: TokenStream,
}

/// One argument of the function.
pub(crate) enum Passed {
    /// The parameter of this place among those of the model.
    Param { at: usize, how: How },
    /// The user's struct in `Args`; the type as it was written.
    Struct(Type),
    /// Borrowed from the context.
    Borrowed(Type),
    /// Taken from the context.
    Owned(Type),
}

impl Passed {
    /// Whether it is not known before the call runs.
    pub(crate) fn is_of_the_context(&self) -> bool {
        matches!(self, Self::Borrowed(_) | Self::Owned(_))
    }
}

/// How a decoded value is handed over.
#[derive(Clone, Copy)]
pub(crate) enum How {
    Moved,
    /// `&str` from a `String`.
    Borrowed,
    /// `Option<&str>` from an `Option<String>`.
    AsDeref,
}

/// What running it can do.
pub(crate) struct Risk {
    /// A variant of the runtime's `RiskClass`.
    pub(crate) class: &'static str,
    /// Methods of the runtime's `Risk` that apply.
    pub(crate) facts: Vec<&'static str>,
}

/// How it is shown; parameters by their names in JSON.
#[derive(Default)]
pub(crate) struct Display {
    pub(crate) name: Option<String>,
    pub(crate) primary: Option<String>,
    pub(crate) show: Vec<String>,
    pub(crate) summary: Option<Summary>,
    pub(crate) ui: Option<String>,
}

/// A one-line summary.
pub(crate) struct Summary {
    /// With names of JSON arguments, for surfaces.
    pub(crate) pattern: String,
    /// For `format!`, with numbers in place of names.
    pub(crate) format: proc_macro2::Literal,
    /// The field behind each number.
    pub(crate) fields: Vec<Ident>,
}

/// The user's functions, by field of the runtime's `Hooks`.
pub(crate) type Hooks = Vec<(&'static str, TokenStream)>;

/// Limits of a call.
#[derive(Default)]
pub(crate) struct Limits {
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) max_output: Option<usize>,
    /// A variant of the runtime's `Truncate`.
    pub(crate) truncate: Option<&'static str>,
    pub(crate) parallel: Option<Parallel>,
    /// A variant of the runtime's `TaskSupport`.
    pub(crate) task: Option<&'static str>,
}

/// Which calls may run beside it.
pub(crate) enum Parallel {
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
