//! Generates the test of a committed schema.
//!
//! Test builds watch the file and fail on the differences that `schema_lock` found. If it found
//! none, a test is generated in which the runtime compares everything.
//!
//! **Invariant:** a build that is not a test is the same with and without a schema.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};

use super::model::{SchemaLock, ToolModel};

/// Generates the test of the schema of `tool`, if it has one, against `definition`; the test
/// exists when `cfgs` hold.
///
/// A module cannot name a function inside another function, so the test looks up a helper
/// function in the module around its own. For a tool inside a function, it finds the default
/// helper that does nothing; Rust would not run a test there.
pub(crate) fn schema_test(
    tool: &ToolModel,
    cfgs: &TokenStream,
    definition: &TokenStream,
) -> TokenStream {
    let Some(lock) = &tool.schema_lock else { return TokenStream::new() };
    let private = tool.runtime.private();
    let SchemaLock { path, test, drifts, .. } = lock;
    if !drifts.is_empty() {
        return quote!(#cfgs #[cfg(test)] const _: () = { #drifts };);
    }
    let (compare, watched) = (format_ident!("__{test}"), watch_file(lock));
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

/// Makes cargo rebuild the tests when the file changes.
fn watch_file(lock: &SchemaLock) -> TokenStream {
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
