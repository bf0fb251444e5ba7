//! The test of a committed schema as tokens.
//!
//! Test builds watch the file and refuse what `schema_lock` found; where it found nothing,
//! there is a test in which the runtime compares everything.
//!
//! **Invariant:** a build that is no test is the same with a schema and without.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};

use super::model::{SchemaLock, Tool};

/// The test of the schema of `tool`, where it has one, against what `definition` gives; it
/// exists when `cfgs` hold.
///
/// A function beside the tool can name it, and the test finds that function in the module
/// around its own. Beside a tool inside a function there is none to find, and the test finds
/// the one that does nothing; Rust would not run it there.
pub(crate) fn test(tool: &Tool, cfgs: &TokenStream, definition: &TokenStream) -> TokenStream {
    let Some(lock) = &tool.schema_lock else { return TokenStream::new() };
    let private = tool.runtime.private();
    let SchemaLock { path, test, drifts, .. } = lock;
    if !drifts.is_empty() {
        return quote!(#cfgs #[cfg(test)] const _: () = { #drifts };);
    }
    let (compare, watched) = (format_ident!("__{test}"), watched(lock));
    quote_spanned! {test.span()=>
        #cfgs
        #[cfg(test)]
        fn #compare() {
            use #private as __rt;
            #watched
            __rt::assert_schema(#definition, ::core::env!("CARGO_MANIFEST_DIR"), #path);
        }
        #cfgs
        #[cfg(test)]
        #[allow(unnameable_test_items)]
        mod #test {
            fn #compare() {}

            #[::core::prelude::v1::test]
            fn is_as_committed() {
                use super::*;
                #compare();
            }
        }
    }
}

/// Has cargo build the tests again when the file changes.
fn watched(lock: &SchemaLock) -> TokenStream {
    if !lock.is_there {
        return TokenStream::new();
    }
    let path = format!("/{}", lock.path);
    quote! {
        const _: &[u8] = ::core::include_bytes!(::core::concat!(
            ::core::env!("CARGO_MANIFEST_DIR"),
            #path
        ));
    }
}
