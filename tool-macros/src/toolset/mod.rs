//! `#[toolset]` on an `impl` block: each method with `#[tool]` is a tool on the value.

mod expand;
mod lower;
mod parse;
#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use quote::quote;

use self::parse::Block;
use crate::attr;
use crate::diag::Diagnostics;
use crate::tool::parse::without_tools;

/// Runs the steps; those of a method are [`mod@crate::tool`]'s.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let block: Block = match syn::parse2(item.clone()) {
        Ok(block) => block,
        Err(error) => {
            let (error, item) = (error.to_compile_error(), without_tools(item));
            return quote!(#error #item);
        }
    };
    let mut diag = Diagnostics::default();
    let items = attr::parse(attribute, &mut diag);
    match lower::toolset(&items, &block, &mut diag) {
        Some(toolset) => expand::toolset(&toolset, &block),
        None => {
            let errors = diag.to_tokens();
            let inert = expand::inert(&items, &block);
            quote!(#errors #block #inert)
        }
    }
}
