//! Last step: a valid tool as tokens.
//!
//! Out come constants and calls into small functions of the runtime; a derive per tool
//! would make large builds several times slower. Every user type is named once against
//! its bound, at its own tokens, so a wrong one is one error.
//!
//! **Invariant:** all paths are absolute or start at `__rt`, all locals start with `__`,
//! and tokens that are not the user's carry the macro's span.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};

use super::model::{DefaultValue, How, Input, Passed, Tool};
use super::parse::Function;
use super::spec;
use crate::span::{self, generated_ident};

/// A function, the type of the same name and all that stands behind it.
pub(super) fn function(tool: &Tool, function: &Function) -> TokenStream {
    let (ident, cfgs) = (generated_ident(&tool.ident), &tool.cfgs);
    let private = tool.runtime.private();
    let marker = marker(&ident, &tool.vis, cfgs);
    let args = args_struct(tool);
    let (items, spec) = (spec::items(tool), spec::spec(tool));
    let prepare = prepare(tool, None);
    let registration = registration(tool);
    quote! {
        #function
        #marker
        #args
        #cfgs
        const _: () = {
            use #private as __rt;
            #items
            #prepare
            static __TOOL: __rt::FnTool = __rt::FnTool::new(#spec, __prepare);
            #[automatically_derived]
            impl __rt::ToolFn for #ident {
                fn tool() -> &'static __rt::FnTool {
                    &__TOOL
                }
            }
            #registration
        };
    }
}

/// The type of the same name as the function, which is where it is refused if taken.
pub(super) fn marker(ident: &Ident, vis: &TokenStream, cfgs: &TokenStream) -> TokenStream {
    quote_spanned! {ident.span()=>
        #cfgs
        #[doc(hidden)]
        #vis struct #ident {
            _private: (),
        }
    }
}

/// The struct that holds the arguments, where the user has none.
pub(crate) fn args_struct(tool: &Tool) -> TokenStream {
    let Input::Params { args, params } = &tool.input else { return TokenStream::new() };
    let (vis, cfgs) = (&tool.vis, &tool.cfgs);
    let fields = params.iter().map(|param| {
        let (ident, ty, docs) = (generated_ident(&param.ident), &param.ty, &param.docs);
        quote!(#docs pub #ident: #ty)
    });
    let doc = format!(" Arguments of `{}`.", tool.name);
    quote_spanned! {args.span()=>
        #cfgs
        #[doc = #doc]
        #[non_exhaustive]
        #vis struct #args {
            #(#fields,)*
        }
    }
}

/// The function that decodes a call; of a method when there is the type it is called on.
pub(crate) fn prepare(tool: &Tool, this: Option<&TokenStream>) -> TokenStream {
    let receiver = this.map(|this| quote!(, __this: &__rt::Arc<#this>));
    let (taken, staged) = (taken(tool), staged(tool, this));
    let deprecated = tool.is_deprecated.then(|| quote!(#[allow(deprecated)]));
    quote! {
        #deprecated
        fn __prepare(
            __table: &__rt::Table,
            __raw: &__rt::RawArgs<'_>
            #receiver
        ) -> __rt::Ready {
            #taken
            ::core::result::Result::Ok(#staged)
        }
    }
}

/// The call that is ready: its arguments, and how it runs.
fn staged(tool: &Tool, this: Option<&TokenStream>) -> TokenStream {
    let ident = generated_ident(&tool.ident);
    let function = match this {
        Some(this) => quote!(<#this>::#ident),
        None => quote!(#ident),
    };
    let receiver = this.map(|_| quote!(&__this));
    let passed = tool.passed.iter().map(|passed| argument(tool, passed));
    let passed = receiver.into_iter().chain(passed);
    let called = quote!(#function(#(#passed),*));
    let wait = tool.is_async.then(|| quote!(.await));
    // A context is made for those that look at it.
    let looks = tool.passed.iter().any(|it| matches!(it, Passed::Borrowed(_) | Passed::Owned(_)));
    let context = looks.then(|| quote!(let __cx = __approved.context();));
    let whole = quote!({ #context async move { (__OUT.convert)(#called #wait) } });
    // A future that is not `Send` is an error at the function's name.
    let at = ident.span();
    let staged = if spec::has_hooks(tool) {
        quote_spanned!(at=> __rt::stage_with(__notes, __args, &__HOOKS, move |__args, __approved| #whole))
    } else if owns_all(tool, this) {
        quote_spanned!(at=> __rt::stage(__notes, __OUT.convert, move |_| #called))
    } else {
        quote_spanned!(at=> __rt::stage(__notes, ::core::convert::identity, move |__approved| #whole))
    };
    let clone = this.map(|_| quote!(let __this = ::core::clone::Clone::clone(__this);));
    quote!({ #clone #staged })
}

/// Whether the future of the function itself can be staged, because nothing is borrowed
/// from outside of it and nothing of the user's runs before it is polled.
fn owns_all(tool: &Tool, this: Option<&TokenStream>) -> bool {
    let is_owned = |passed: &Passed| {
        matches!(passed, Passed::Param { how: How::Moved, .. } | Passed::Struct(_))
    };
    tool.is_async && this.is_none() && tool.passed.iter().all(is_owned)
}

/// Decodes what came in into `__args`.
fn taken(tool: &Tool) -> TokenStream {
    let Input::Params { args, params } = &tool.input else {
        return quote! {
            let mut __args = ::core::option::Option::None;
            let __notes = __rt::take_struct(__table, __raw, &mut __args)?;
            let __args = __rt::filled(__args);
        };
    };
    let locals: Vec<_> = (0..params.len()).map(|at| format_ident!("__{at}")).collect();
    let fields = params.iter().zip(&locals).enumerate().map(|(at, (param, local))| {
        let ident = generated_ident(&param.ident);
        let default = match &param.default {
            None => return quote!(#ident: __rt::filled(#local)),
            Some(DefaultValue::Literal { value, .. }) => quote!(#value),
            Some(DefaultValue::Expr(_)) => {
                let function = format_ident!("__default{at}");
                quote!(#function())
            }
        };
        // The default comes first: rustc checks it against the field, not against the other arm.
        quote! {
            #ident: match #local {
                ::core::option::Option::None => #default,
                ::core::option::Option::Some(__value) => __value,
            }
        }
    });
    quote! {
        #(let mut #locals = ::core::option::Option::None;)*
        let __notes = __rt::take(__table, __raw, &mut [#(&mut #locals),*])?;
        let __args = #args { #(#fields,)* };
    }
}

/// What the function is called with.
fn argument(tool: &Tool, passed: &Passed) -> TokenStream {
    match passed {
        Passed::Param { at, how } => {
            let Input::Params { params, .. } = &tool.input else { return TokenStream::new() };
            let field = generated_ident(&params[*at].ident);
            match how {
                How::Moved => quote!(__args.#field),
                How::Borrowed => quote!(&*__args.#field),
                How::AsDeref => quote!(::core::option::Option::as_deref(&__args.#field)),
            }
        }
        Passed::Struct(ty) => quote_spanned!(span::at(ty)=> __rt::Args(__args)),
        Passed::Borrowed(ty) => quote!(<#ty as __rt::FromContextRef>::from_context_ref(&__cx)),
        Passed::Owned(ty) => quote! {
            match <#ty as __rt::FromContext>::from_context(&__cx) {
                ::core::result::Result::Ok(__value) => __value,
                ::core::result::Result::Err(__error) => {
                    return ::core::result::Result::Err(__error);
                }
            }
        },
    }
}

/// Hands the tool to the linker, and refuses a second one of its name in the crate.
fn registration(tool: &Tool) -> TokenStream {
    if !tool.registered {
        return TokenStream::new();
    }
    let submit = tool.runtime.submit();
    let krate = std::env::var("CARGO_CRATE_NAME").unwrap_or_default();
    let guards = std::iter::once(&tool.name).chain(&tool.aliases).enumerate().map(|(at, name)| {
        let symbol = format!("__tool_sdk_duplicate_tool__{krate}__{}", name.to_lowercase());
        let guard = format_ident!("__GUARD{at}");
        quote_spanned! {span::at(&tool.ident)=>
            #[unsafe(export_name = #symbol)]
            #[used]
            static #guard: u8 = 0;
        }
    });
    quote! {
        #submit { &__TOOL }
        #(#guards)*
    }
}
