//! `#[tool]` on a function: [`parse`] the syntax, [`lower`] it by the rules into a [`model`], and
//! [`expand`] that into tokens; [`inert`] if there are mistakes.
//!
//! The other files are parts of two steps: rules by topic, and [`spec`] and [`committed`], which
//! are parts of the expansion.

pub(crate) mod committed;
mod example;
pub(crate) mod expand;
pub(crate) mod inert;
mod limit;
pub(crate) mod lower;
pub(crate) mod model;
mod param;
pub(crate) mod parse;
mod schema_lock;
mod show;
mod signature;
pub(crate) mod spec;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod ty;

use proc_macro2::TokenStream;
use quote::quote;

use self::lower::Site;
use self::parse::Function;
use crate::attr;
use crate::diag::Diagnostics;

/// Runs the four steps.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let mut diag = Diagnostics::default();
    let items = attr::parse(attribute.clone(), &mut diag);
    let function: Function = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(error) => return inert::unread(&error, item, &lower::runtime(&items)),
    };
    if lower::is_repeated(&function, &mut diag) {
        // The first function keeps its name, so that uses of the name compile.
        lower::tool(&items, &function, &Site::Free, &mut diag);
        return diag.to_tokens();
    }
    match lower::tool(&items, &function, &Site::Free, &mut diag) {
        Some(tool) => expand::function(&tool, &function),
        None => {
            let errors = diag.to_tokens();
            let inert = inert::function(&function, &attribute, &lower::runtime(&items));
            quote!(#errors #function #inert)
        }
    }
}
