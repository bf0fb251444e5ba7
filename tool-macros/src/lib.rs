//! The attributes of `tool-sdk`; use them through that crate, which documents them.
//!
//! ```text
//! tokens ──parse──▶ Syntax ──lower──▶ model ──expand──▶ tokens
//!                   what was written   valid data        a static table, calls into tool_sdk
//! ```
//!
//! Every attribute is a folder with one file per step. `parse` fails only with syn's own
//! errors, `lower` is the only place that says no, a value of the `model` is valid, and
//! `expand` cannot fail. On any error the user's function stays as it is and an inert tool
//! takes the place of the real one, so that nothing else fails.
//!
//! **Invariant:** nothing here knows what a tool does with its arguments.

mod attr;
mod beside;
mod diag;
mod docs;
mod runtime;
mod span;
mod tool;
mod toolset;

use proc_macro::TokenStream;

/// Makes a tool of a function. Documented at `tool_sdk::tool`.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    tool::expand(attribute.into(), item.into()).into()
}

/// Puts the code in its braces behind the item that it is on; generated code says it.
///
/// Where the item cannot stand, as a type in an `impl` block, the code is not seen either, and
/// the compiler complains of one thing.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn followed_by(code: TokenStream, item: TokenStream) -> TokenStream {
    [item, code].into_iter().collect()
}

/// Makes tools of the methods of an `impl` block. Documented at `tool_sdk::toolset`.
#[proc_macro_attribute]
pub fn toolset(attribute: TokenStream, item: TokenStream) -> TokenStream {
    toolset::expand(attribute.into(), item.into()).into()
}
