//! Last step: generates the tokens of a valid tool.
//!
//! The result is constants and calls into small functions of the runtime; a derive per tool would
//! make large builds several times slower. Every user type is named once against
//! its bound, at its own tokens, so a wrong one is one error.
//!
//! **Invariant:** all paths are absolute or start at `__rt`, all locals start with `__`,
//! and tokens that are not the user's carry the macro's span.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};

use super::model::{DefaultValue, ParamModel, PassedArgument, PassingMode, ToolInput, ToolModel};
use super::parse::ToolFunction;
use super::{committed, spec};
use crate::runtime::RuntimePath;
use crate::span::{self, generated_ident};

/// Generates a function, the type of the same name and the code behind it.
pub(super) fn expand_function(tool: &ToolModel, function: &ToolFunction) -> TokenStream {
    let (ident, cfgs) = (generated_ident(&tool.ident), &tool.cfgs);
    let args = args_struct(tool);
    let (items, spec) = (spec::expand_items(tool), spec::expand_spec(tool));
    let (parts, prepare) = (spec::constant_ident("__PARTS", tool), prepare_closure(tool, None));
    let registration = register_tool(tool);
    let definition = quote!(<#ident as __rt::ToolFn<_>>::tool().table().definition());
    let test = committed::schema_test(tool, cfgs, &definition);
    let behind = tool_impl(
        &ident,
        &tool.runtime,
        &quote! {
            #items
            const #parts: (__rt::ToolSpec, __rt::Prepare) = (#spec, #prepare);
            static __TOOL: __rt::FnTool = __rt::FnTool::new(__PARTS.0, __PARTS.1);
            #registration
        },
    );
    let marker = marker_type(&ident, &tool.vis, cfgs, &tool.runtime, quote!(#args #behind #test));
    quote!(#function #marker)
}

/// Generates what makes a type a tool: the items behind it, of which one is `__TOOL`.
///
/// They are inside the function that returns the tool, so they name nothing outside. The impl
/// belongs to this location alone, so that a second type of the name causes no error about a
/// second impl.
pub(super) fn tool_impl(ident: &Ident, runtime: &RuntimePath, items: &TokenStream) -> TokenStream {
    let private = runtime.private();
    quote! {
        const _: () = {
            use #private as __rt;
            pub enum __Place {}
            #[automatically_derived]
            impl __rt::ToolFn<__Place> for #ident {
                fn tool() -> &'static __rt::FnTool {
                    #items
                    &__TOOL
                }
            }
        };
    }
}

/// Generates the type of the same name as the function, with the code that follows it. If the
/// name is taken, the error is reported here.
pub(super) fn marker_type(
    ident: &Ident,
    vis: &TokenStream,
    cfgs: &TokenStream,
    runtime: &RuntimePath,
    code: TokenStream,
) -> TokenStream {
    let private = runtime.private();
    let follow = quote!(#[#private::followed_by { #code }]);
    quote_spanned! {ident.span()=>
        #cfgs
        #follow
        #[doc(hidden)]
        #[non_exhaustive]
        #vis enum #ident {}
    }
}

/// Generates the struct of arguments for the user's hooks, if the user has none.
pub(crate) fn args_struct(tool: &ToolModel) -> TokenStream {
    let ToolInput::Params { args, params } = &tool.input else { return TokenStream::new() };
    if tool.hooks.is_empty() {
        return TokenStream::new();
    }
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

/// Generates the closure that decodes a call; for a method, with the type of its receiver.
pub(crate) fn prepare_closure(tool: &ToolModel, this: Option<&TokenStream>) -> TokenStream {
    let receiver = this.map(|_| quote!(, __this));
    let (taken, staged) = (decode_args(tool), stage_call(tool, this));
    let validated = spec::find_hook(tool, "validate")
        .map(|_| quote!(__rt::validate_args(__table, &__args, &__HOOKS)?;));
    quote! {
        |__table, __raw #receiver| {
            #taken
            #validated
            #staged
        }
    }
}

/// Generates the prepared call: its arguments, and how it runs.
fn stage_call(tool: &ToolModel, this: Option<&TokenStream>) -> TokenStream {
    let ident = generated_ident(&tool.ident);
    let function = match this {
        Some(this) => quote!(<#this>::#ident),
        None => quote!(#ident),
    };
    let receiver = this.map(|_| quote!(&__this));
    let passed = tool.passed.iter().map(|passed| passed_argument(tool, passed));
    let passed = receiver.into_iter().chain(passed);
    // A future that is not `Send` is an error at the function's name.
    let at = ident.span();
    let called = quote_spanned!(at=> #function(#(#passed),*));
    let wait = tool.is_async.then(|| quote!(.await));
    let converted = quote!(async move { (__OUT.convert)(#called #wait) });
    let wants_context = tool.passed.iter().any(PassedArgument::is_of_the_context);
    let staged = if spec::has_hooks(tool) {
        // Only functions that use the context get one.
        let context = wants_context.then(|| quote!(let __cx = __approved.context();));
        let start = quote!(move |__args, __approved| { #context #converted });
        quote_spanned!(at=> __rt::stage_with(__notes, __args, &__HOOKS, #start))
    } else if wants_context {
        quote_spanned!(at=> __rt::stage_in(__notes, move |__cx| #converted))
    } else if owns_all(tool, this) {
        quote_spanned!(at=> __rt::stage(__notes, __OUT.convert, #called))
    } else {
        quote_spanned!(at=> __rt::stage(__notes, __OUT.convert, async move { #called #wait }))
    };
    let clone = this.map(|_| quote!(let __this = ::core::clone::Clone::clone(__this);));
    if tool.is_deprecated {
        return quote!(#clone #[allow(deprecated)] let __staged = #staged; __rt::Ok(__staged));
    }
    quote!(#clone __rt::Ok(#staged))
}

/// Whether the function's own future can be staged: it borrows nothing from outside.
fn owns_all(tool: &ToolModel, this: Option<&TokenStream>) -> bool {
    let is_owned = |passed: &PassedArgument| {
        matches!(
            passed,
            PassedArgument::Param { how: PassingMode::Moved, .. } | PassedArgument::Struct(_)
        )
    };
    tool.is_async && this.is_none() && tool.passed.iter().all(is_owned)
}

/// Decodes the arguments: into the struct that hooks see, or into one local per parameter.
fn decode_args(tool: &ToolModel) -> TokenStream {
    let ToolInput::Params { args, params } = &tool.input else {
        return quote! {
            let mut __args = __rt::None;
            let __notes = __rt::take_struct(__table, __raw, &mut __args)?;
            let __args = __rt::filled(__args);
        };
    };
    let locals: Vec<_> = (0..params.len()).map(param_local).collect();
    let types = params.iter().map(|param| &param.ty);
    let values = params.iter().enumerate().map(|(at, param)| param_value(at, param));
    let kept = if spec::has_hooks(tool) {
        let fields = params.iter().map(|param| generated_ident(&param.ident));
        quote!(let __args = #args { #(#fields: #values,)* };)
    } else {
        quote!(#(let #locals: #types = #values;)*)
    };
    quote! {
        #(let mut #locals = __rt::None;)*
        let __notes = __rt::take(__table, __raw, &mut [#(&mut #locals),*])?;
        #kept
    }
}

/// Returns the local that holds the parameter at this position.
fn param_local(at: usize) -> Ident {
    format_ident!("__{at}")
}

/// Returns the value of a parameter, after all were decoded.
fn param_value(at: usize, param: &ParamModel) -> TokenStream {
    let local = param_local(at);
    let default = match &param.default {
        None => return quote!(__rt::filled(#local)),
        Some(DefaultValue::Literal { value, .. }) => quote!(#value),
        Some(DefaultValue::Expr(_)) => {
            let function = format_ident!("__default{at}");
            quote!(#function())
        }
    };
    // The default comes first: rustc checks it against the type that is expected here, not
    // against the other arm.
    quote! {
        match #local {
            __rt::None => #default,
            __rt::Some(__value) => __value,
        }
    }
}

/// Returns the arguments with which the function is called.
fn passed_argument(tool: &ToolModel, passed: &PassedArgument) -> TokenStream {
    match passed {
        PassedArgument::Param { at, how } => {
            let ToolInput::Params { params, .. } = &tool.input else { return TokenStream::new() };
            let owned = if spec::has_hooks(tool) {
                let field = generated_ident(&params[*at].ident);
                quote!(__args.#field)
            } else {
                param_local(*at).into_token_stream()
            };
            match how {
                PassingMode::Moved => owned,
                PassingMode::Borrowed => quote!(&*#owned),
                PassingMode::AsDeref => quote!(__rt::Option::as_deref(&#owned)),
            }
        }
        PassedArgument::Struct(ty) => quote_spanned!(span::macro_span(ty)=> __rt::Args(__args)),
        PassedArgument::Borrowed(ty) => {
            quote!(<#ty as __rt::FromContextRef>::from_context_ref(&__cx))
        }
        PassedArgument::Owned(ty) => quote! {
            match <#ty as __rt::FromContext>::from_context(&__cx) {
                __rt::Ok(__value) => __value,
                __rt::Err(__error) => {
                    return __rt::Err(__error);
                }
            }
        },
    }
}

/// Submits the tool to the linker, and rejects a second one of its name in the crate.
fn register_tool(tool: &ToolModel) -> TokenStream {
    if !tool.registered {
        return TokenStream::new();
    }
    let claims = tool.claims.iter().map(claim_name);
    quote! {
        __rt::submit! { &__TOOL }
        #(#claims)*
    }
}

/// An item of which a crate can have only one, in any of its modules: rustc then reports both
/// locations. It leaves nothing in the binary, so two versions of a crate can be linked into one
/// program.
fn claim_name(name: &Ident) -> TokenStream {
    quote_spanned! {name.span()=>
        #[doc(hidden)]
        #[allow(non_local_definitions)]
        #[macro_export]
        macro_rules! #name {
            () => {};
        }
    }
}
