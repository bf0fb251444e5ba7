//! `#[toolset]` on an `impl` block: each method with `#[tool]` is a tool on the value.

mod expand;
mod lower;
mod parse;
#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use quote::quote;

use self::parse::ToolsetBlock;
use crate::attr;
use crate::diag::Diagnostics;
use crate::tool::parse::without_tools;

/// Runs the steps; those of a method are [`mod@crate::tool`]'s.
pub(crate) fn expand_toolset(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let block: ToolsetBlock = match syn::parse2(item.clone()) {
        Ok(block) => block,
        Err(error) => {
            let (error, item) = (error.to_compile_error(), without_tools(item));
            return quote!(#error #item);
        }
    };
    let mut diag = Diagnostics::default();
    let items = attr::parse_items(attribute, &mut diag);
    match lower::lower_toolset(&items, &block, &mut diag) {
        Some(toolset) => expand::expand_toolset(&toolset, &block),
        None => {
            let errors = diag.to_tokens();
            let inert = expand::inert_toolset(&items, &block);
            quote!(#errors #block #inert)
        }
    }
}
