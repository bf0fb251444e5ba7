//! The attributes of `tool-sdk`; use them through that crate.
//!
//! ```text
//! tokens ──parse──▶ Syntax ──lower──▶ model ──expand──▶ tokens
//!                   what was written   valid data        a static table, calls into tool_sdk
//! ```
//!
//! Every attribute is a folder with one file per step. `parse` fails only with syn's own errors,
//! `lower` is the only place that rejects input, a value of the `model` is valid, and `expand`
//! cannot fail. On any error the user's function is kept and an inert tool takes the place of the
//! real one, so that no error follows from another.
//!
//! **Invariant:** nothing here knows what a tool does with its arguments.

#![forbid(unsafe_code)]

mod attr;
mod diag;
mod docs;
mod runtime;
mod sibling_items;
mod span;
mod tool;
mod toolset;

use proc_macro::TokenStream;

#[doc = include_str!("../docs/tool.md")]
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    tool::expand_tool(attribute.into(), item.into()).into()
}

/// Puts the code in its braces behind the item that it is on; used by generated code.
///
/// Where the item is not allowed, such as a type in an `impl` block, rustc drops the code as
/// well, and reports only one error.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn followed_by(code: TokenStream, item: TokenStream) -> TokenStream {
    [item, code].into_iter().collect()
}

#[doc = include_str!("../docs/toolset.md")]
#[proc_macro_attribute]
pub fn toolset(attribute: TokenStream, item: TokenStream) -> TokenStream {
    toolset::expand_toolset(attribute.into(), item.into()).into()
}
