//! Expansions of whole tools, and the errors of wrong ones.

mod expansion;
mod mistakes;
mod reference;

use expect_test::{Expect, expect};
use proc_macro2::TokenStream;
use quote::quote;

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "tests read better")]
#[track_caller]
fn check(attribute: TokenStream, item: TokenStream, expected: Expect) {
    let expanded = expand_tool(attribute, item);
    let file = syn::parse2(expanded).unwrap();
    expected.assert_eq(&prettyplease::unparse(&file));
}

/// The first lines of all complaints about a tool.
fn complaints(attribute: &str, item: &str) -> Vec<String> {
    let function: ToolFunction = syn::parse_str(item).unwrap();
    let mut diag = Diagnostics::default();
    let items = attr::parse_items(attribute.parse().unwrap(), &mut diag);
    let tool = lower::lower_tool(&items, &function, &ToolSite::Free, &mut diag);
    assert_eq!(tool.is_none(), !diag.is_empty());
    let first = |message: String| message.lines().next().unwrap_or_default().to_owned();
    diag.messages().into_iter().map(first).collect()
}

/// Checks complaints about the attribute of a tool that is good otherwise.
#[track_caller]
fn check_attribute(attribute: &str, expected: &[&str]) {
    let item = "
        /// Does things.
        async fn act(
            /// A path.
            path: String,
            /// A secret.
            #[arg(sensitive)] token: Option<String>,
            cx: &Context,
        ) -> String {}";
    assert_eq!(complaints(attribute, item), expected, "{attribute}");
}

/// Checks complaints about one parameter of a tool that is good otherwise.
#[track_caller]
fn check_param(param: &str, expected: &[&str]) {
    let item = format!("/** Does things. */ async fn act({param}) {{}}");
    assert_eq!(complaints("read", &item), expected, "{param}");
}
