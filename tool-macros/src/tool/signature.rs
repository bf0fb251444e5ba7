//! All rules about the head of a function that do not concern a single parameter.

use syn::ext::IdentExt;
use syn::{FnArg, Receiver, ReceiverKind, ReturnType, Safety, Type};

use super::lower::ToolSite;
use super::parse::{ToolFunction, is_arg, is_tool, self_type};
use super::ty;
use crate::diag::Diagnostics;

/// Checks what a function that a model calls must and must not be.
pub(super) fn check_signature(
    function: &ToolFunction,
    site: &ToolSite<'_>,
    diag: &mut Diagnostics,
) {
    let sig = &function.sig;
    for attribute in function.attrs.iter().filter(|attribute| is_tool(attribute)) {
        if matches!(site, ToolSite::Free) {
            diag.error(attribute.path(), "duplicate `#[tool]`", "keep one of them");
        }
    }
    if let Safety::Unsafe(token) = &sig.safety {
        diag.error(token, "tool must not be unsafe", "remove `unsafe`; anybody may call a tool");
    }
    if let Some(abi) = &sig.abi {
        diag.error(abi, "tool must not be `extern`", "remove it");
    }
    if let Some(variadic) = &sig.variadic {
        diag.error(variadic.dots, "tool must not be variadic", "take a `Vec`");
    }
    check_generics(function, diag);
    for attribute in function.attrs.iter().filter(|attribute| is_arg(attribute)) {
        diag.error(
            attribute.path(),
            "`#[arg]` must be on a parameter",
            "write it above the parameter, or its items in `#[tool(..)]`",
        );
    }
    match (sig.inputs.first(), site) {
        (Some(FnArg::Receiver(receiver)), ToolSite::Free) => diag.error(
            receiver.self_token,
            "tool must not take `self`",
            "put `#[toolset]` on the `impl` block",
        ),
        (Some(FnArg::Receiver(receiver)), ToolSite::Method { .. }) => {
            check_receiver(receiver, diag)
        }
        (_, ToolSite::Method { .. }) => diag.error(
            &sig.ident,
            format_args!("method `{}` must take `&self`", sig.ident.unraw()),
            "add `&self` as its first parameter",
        ),
        (_, ToolSite::Free) => check_is_free(function, diag),
    }
    if let ReturnType::Type(_, ty) = &sig.output {
        check_result(ty, diag);
    }
}

/// A function that names `Self` is in an `impl` block, where no free tool can be, and one without
/// a body is in a trait or an `extern` block.
fn check_is_free(function: &ToolFunction, diag: &mut Diagnostics) {
    if !function.has_body() {
        let ident = &function.sig.ident;
        let what = format_args!("tool `{}` has no body", ident.unraw());
        return diag.error(ident, what, "put `#[tool]` on a function that stands by itself");
    }
    let Some(token) = self_type(&function.sig) else { return };
    let ident = function.sig.ident.unraw();
    let what = format_args!("tool `{ident}` must not be in an `impl` block");
    diag.error(token, what, "move it out, or add `&self` and put `#[toolset]` on the block");
}

fn check_result(ty: &Type, diag: &mut Diagnostics) {
    if let Type::Never(_) = ty {
        let help = "return a `Result`, whose error the model reads";
        return diag.error(ty, "result of a tool must not be `!`", help);
    }
    if let Some(token) = ty::find_future(ty) {
        let help = "make the function an `async fn` that returns what the future gives";
        return diag.error(token, "result of a tool must not be a future", help);
    }
    if let Some(token) = ty::find_impl_trait(ty) {
        diag.error(
            token,
            "result of a tool must not be `impl Trait`",
            "name the type, such as `String`, `Json<T>` or `Output`",
        );
    }
    if let Some(token) = ty::find_borrow(ty) {
        diag.error(
            token,
            "result of a tool must not borrow from its parameters",
            "return an owned type, such as `String`",
        );
    }
}

fn check_generics(function: &ToolFunction, diag: &mut Diagnostics) {
    let generics = &function.sig.generics;
    if generics.params.is_empty() {
        return;
    }
    let help =
        if generics.type_params().next().is_none() && generics.const_params().next().is_none() {
            "leave the lifetimes out; `&str` and `&Context` need none"
        } else {
            "write one tool per type that calls a generic function"
        };
    diag.error(&generics.params, "tool must not be generic", help);
}

fn check_receiver(receiver: &Receiver, diag: &mut Diagnostics) {
    let help = "write `&self`; all calls share the value";
    match &receiver.kind {
        ReceiverKind::Reference(_, _, None) => {}
        ReceiverKind::Reference(_, _, Some(mutability)) => {
            diag.error(mutability, "method of a toolset must not take `&mut self`", help);
        }
        ReceiverKind::Typed(_, ty) => {
            diag.error(ty, "method of a toolset must take `&self`", help);
        }
        _ => diag.error(receiver.self_token, "method of a toolset must not take `self`", help),
    }
}
