//! Finds the path of the runtime for generated code: `::tool_sdk`, or the value of `crate = ..`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, Path};

use crate::attr;
use crate::diag::Diagnostics;

/// The path of the runtime crate.
#[derive(Clone)]
pub(crate) struct RuntimePath(TokenStream);

impl Default for RuntimePath {
    fn default() -> Self {
        Self(quote!(::tool_sdk))
    }
}

impl RuntimePath {
    /// Returns the path in `crate = ..`; the default one after a mistake.
    pub(crate) fn named(expr: Option<&Expr>, diag: &mut Diagnostics) -> Self {
        let Some(expr) = expr else { return Self::default() };
        match attr::without_parens(expr) {
            Expr::Path(path) if path.qself.is_none() => Self::at(&path.path),
            _ => {
                diag.error(
                    expr,
                    "`crate` must be the path of the runtime crate",
                    "write `crate = my_tool_sdk`",
                );
                Self::default()
            }
        }
    }

    /// A single name is a dependency, so that a module of that name cannot shadow it.
    fn at(path: &Path) -> Self {
        match path.get_ident() {
            Some(name) if name != "crate" && name != "self" && name != "super" => {
                Self(quote!(::#name))
            }
            _ => Self(quote!(#path)),
        }
    }

    /// Returns the module that generated code uses.
    pub(crate) fn private(&self) -> TokenStream {
        let root = &self.0;
        quote!(#root::__private)
    }
}
