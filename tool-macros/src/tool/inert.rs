//! Generates a stand-in for a tool with mistakes, so that no other error follows.
//!
//! **Invariant:** it compiles, and calling it is impossible because the build fails.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{FnArg, Ident};

use super::expand;
use super::lower::{self, ToolSite};
use super::param::plain_name;
use super::parse::{FunctionHead, ToolFunction, self_type, without_param_attributes};
use super::ty::{self, ParamKind};
use crate::runtime::RuntimePath;
use crate::span::{self, generated_ident, with_macro_spans};

/// Generates a type of the function's name that type-checks as a tool.
pub(super) fn inert_function(
    function: &ToolFunction,
    attribute: &TokenStream,
    runtime: &RuntimePath,
) -> TokenStream {
    let sig = &function.sig;
    if sig.receiver().is_some() || self_type(sig).is_some() || !function.has_body() {
        // In an `impl` or a trait, no type can be declared.
        return TokenStream::new();
    }
    let ident = generated_ident(&function.sig.ident);
    let (vis, cfgs) = visibility_and_cfgs(function);
    let args = args_struct(function, attribute, &ToolSite::Free);
    let behind = inert_impl(&ident, runtime);
    expand::marker_type(&ident, &vis, &cfgs, runtime, quote!(#args #behind))
}

fn inert_impl(ident: &Ident, runtime: &RuntimePath) -> TokenStream {
    expand::tool_impl(
        ident,
        runtime,
        &quote! {
            static __TOOL: __rt::FnTool =
                __rt::FnTool::new(__rt::ToolSpec::DEFAULT, |_, _| ::core::unreachable!());
        },
    )
}

/// Generates the stand-in for an item that syn cannot parse.
///
/// rustc parses a function before its attributes, so it has reported the error and would only
/// repeat it.
pub(super) fn inert_unparsed(
    error: &syn::Error,
    item: TokenStream,
    runtime: &RuntimePath,
) -> TokenStream {
    let Some(head) = FunctionHead::parse(item.clone()) else {
        let (error, item) = (error.to_compile_error(), without_param_attributes(item));
        return quote!(#error #item);
    };
    let ident = generated_ident(&head.ident);
    let (vis, cfgs) =
        (with_macro_spans(head.vis.to_token_stream()), lower::cfg_attributes(&head.attrs));
    let behind = inert_impl(&ident, runtime);
    let marker = expand::marker_type(&ident, &vis, &cfgs, runtime, behind);
    let told = last_resort_error(error);
    quote!(#marker #cfgs #told)
}

/// An error that is visible only if there is no other: a denied lint, since lints are reported
/// last. Without it, a function that only rustc can parse would silently not be a tool.
pub(crate) fn last_resort_error(error: &syn::Error) -> TokenStream {
    let message = format!("{error}; it is no syntax that `#[tool]` knows");
    quote_spanned! {span::macro_span(&error.span())=>
        const _: () = {
            #[must_use = #message]
            fn unread_tool() {}
            #[deny(unused_must_use)]
            fn tell() {
                unread_tool();
            }
        };
    }
}

fn visibility_and_cfgs(function: &ToolFunction) -> (TokenStream, TokenStream) {
    (with_macro_spans(function.vis.to_token_stream()), lower::cfg_attributes(&function.attrs))
}

/// Generates the struct of arguments, as far as possible, for hooks that take it.
pub(crate) fn args_struct(
    function: &ToolFunction,
    attribute: &TokenStream,
    site: &ToolSite<'_>,
) -> TokenStream {
    if !may_have_hooks(attribute) || lower::has_own_args(&function.sig.ident, site) {
        return TokenStream::new();
    }
    let (vis, cfgs) = visibility_and_cfgs(function);
    let args = lower::args_ident(&function.sig.ident, site);
    let mut seen: Vec<&Ident> = Vec::new();
    let mut fields = TokenStream::new();
    for input in &function.sig.inputs {
        let FnArg::Typed(param) = input else { continue };
        let Some(name) = plain_name(&param.pat) else { continue };
        let ty = match ty::param_kind(&param.ty) {
            Ok(ParamKind::Args(_)) => return TokenStream::new(),
            Ok(ParamKind::Str) => quote!(::std::string::String),
            Ok(ParamKind::OptionStr) => quote!(::core::option::Option<::std::string::String>),
            Ok(ParamKind::Value) => param.ty.to_token_stream(),
            _ => continue,
        };
        if !seen.contains(&name) && !names_generics(ty.clone(), function) {
            seen.push(name);
            let field = generated_ident(name);
            fields.extend(quote!(#[doc(hidden)] pub #field: #ty,));
        }
    }
    quote! {
        #cfgs
        #[doc(hidden)]
        #vis struct #args {
            #fields
        }
    }
}

/// Whether an attribute may name functions, rightly or not: something other than a literal
/// follows a `=`.
fn may_have_hooks(attribute: &TokenStream) -> bool {
    let mut assigned = false;
    attribute.clone().into_iter().any(|token| {
        let follows = std::mem::take(&mut assigned);
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '=' => assigned = true,
            TokenTree::Group(group) => return follows || may_have_hooks(&group.stream()),
            TokenTree::Literal(_) => {}
            TokenTree::Ident(_) | TokenTree::Punct(_) => return follows,
        }
        false
    })
}

/// Whether a type names a parameter that exists only in the function.
fn names_generics(tokens: TokenStream, function: &ToolFunction) -> bool {
    let is_generic = |name: &Ident| {
        let generics = &function.sig.generics;
        generics.type_params().any(|param| param.ident.unraw() == name.unraw())
            || generics.const_params().any(|param| param.ident.unraw() == name.unraw())
    };
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(name) => is_generic(&name),
        TokenTree::Group(group) => names_generics(group.stream(), function),
        _ => false,
    })
}
