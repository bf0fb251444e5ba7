//! `#[tool]` on a function: [`parse`] the syntax, [`lower`] it by the rules into a [`model`], and
//! [`mod@expand`] that into tokens; [`inert`] if there are mistakes.
//!
//! The other files are parts of two steps: rules by topic, and [`spec`] and [`committed`], which
//! are parts of the expansion.

pub(crate) mod committed;
mod display;
mod example;
pub(crate) mod expand;
pub(crate) mod inert;
mod limit;
pub(crate) mod lower;
pub(crate) mod model;
mod param;
pub(crate) mod parse;
mod schema_lock;
mod signature;
pub(crate) mod spec;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod ty;

use proc_macro2::TokenStream;
use quote::quote;

use self::lower::ToolSite;
use self::parse::ToolFunction;
use crate::attr;
use crate::diag::Diagnostics;

/// Runs the four steps.
pub(crate) fn expand_tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let mut diag = Diagnostics::default();
    let items = attr::parse_items(attribute.clone(), &mut diag);
    let function: ToolFunction = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(error) => return inert::inert_unparsed(&error, item, &lower::named_runtime(&items)),
    };
    if lower::is_repeated(&function, &mut diag) {
        // The first function keeps its name, so that uses of the name compile.
        lower::lower_tool(&items, &function, &ToolSite::Free, &mut diag);
        return diag.to_tokens();
    }
    match lower::lower_tool(&items, &function, &ToolSite::Free, &mut diag) {
        Some(tool) => expand::expand_function(&tool, &function),
        None => {
            let errors = diag.to_tokens();
            let inert = inert::inert_function(&function, &attribute, &lower::named_runtime(&items));
            quote!(#errors #function #inert)
        }
    }
}
