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
    let statics = spec::statics(tool);
    let prepare = prepare(tool, None);
    let registration = registration(tool);
    quote! {
        #function
        #marker
        #args
        #cfgs
        const _: () = {
            use #private as __rt;
            #statics
            #prepare
            static __TOOL: __rt::FnTool = __rt::FnTool::new(&__TABLE, __prepare);
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
    let (receiver, clone, by_move) = match this {
        Some(this) => (
            quote!(__this: &__rt::Arc<#this>,),
            quote!(let __this = ::core::clone::Clone::clone(__this);),
            quote!(move),
        ),
        None => Default::default(),
    };
    let taken = taken(tool);
    let args = staged_args(tool);
    let hooks = match spec::has_hooks(tool) {
        true => quote!(&__HOOKS),
        false => quote!(&__rt::Hooks::NONE),
    };
    let ident = generated_ident(&tool.ident);
    let function = match this {
        Some(this) => quote!(<#this>::#ident),
        None => quote!(#ident),
    };
    let passed = this
        .map(|_| quote!(&__this))
        .into_iter()
        .chain(tool.passed.iter().map(|passed| argument(tool, passed)));
    let deprecated = tool.is_deprecated.then(|| quote!(#[allow(deprecated)]));
    let wait = tool.is_async.then(|| quote!(.await));
    // A context is made for those that look at it.
    let looks = tool.passed.iter().any(|it| matches!(it, Passed::Borrowed(_) | Passed::Owned(_)));
    let context = looks.then(|| quote!(let __cx = __approved.context();));
    // A future that is not `Send` is an error at the function's name.
    let staged = quote_spanned! {ident.span()=>
        __rt::stage(
            #args,
            __notes,
            #hooks,
            #by_move |__args, __approved| {
                #context
                async move { (__OUT.convert)(#function(#(#passed),*)#wait) }
            },
        )
    };
    quote! {
        #deprecated
        fn __prepare(
            #receiver
            __raw: &__rt::RawArgs<'_>,
        ) -> ::core::result::Result<__rt::Box<dyn __rt::Prepared>, __rt::InvalidArgs> {
            #taken
            #clone
            ::core::result::Result::Ok(#staged)
        }
    }
}

/// Decodes what came in: into a local per parameter, or into the user's struct.
fn taken(tool: &Tool) -> TokenStream {
    let Input::Params { params, .. } = &tool.input else {
        return quote!(let (__args, __notes) = __rt::take_struct(&__TABLE, __raw, &__T0)?;);
    };
    let locals: Vec<_> = (0..params.len()).map(|at| format_ident!("__{at}")).collect();
    let types = (0..params.len()).map(|at| format_ident!("__T{at}"));
    quote! {
        #(let mut #locals = ::core::option::Option::None;)*
        let __notes =
            __rt::take(&__TABLE, __raw, &mut [#(&mut #types.slot(&mut #locals)),*])?;
    }
}

fn staged_args(tool: &Tool) -> TokenStream {
    let Input::Params { args, params } = &tool.input else { return quote!(__args) };
    let fields = params.iter().enumerate().map(|(at, param)| {
        let (ident, local) = (generated_ident(&param.ident), format_ident!("__{at}"));
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
    quote!(#args { #(#fields,)* })
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
