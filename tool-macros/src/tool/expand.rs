//! Last step: a valid tool as tokens.
//!
//! Out come constants and calls into small functions of the runtime; a derive per tool
//! would make large builds several times slower. Every user type is named once against
//! its bound, at its own tokens, so a wrong one is one error.
//!
//! **Invariant:** all paths are absolute or start at `__rt`, all locals start with `__`,
//! and tokens that are not the user's carry the macro's span.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote, quote_spanned};

use super::limit::bound_tokens;
use super::model::{DefaultValue, How, Input, Parallel, Param, Passed, Range, SchemaLock, Tool};
use super::parse::Function;
use crate::span::{self, generated_ident};

/// A function, the type of the same name and all that stands behind it.
pub(super) fn function(tool: &Tool, function: &Function) -> TokenStream {
    let (ident, cfgs) = (generated_ident(&tool.ident), &tool.cfgs);
    let private = tool.runtime.private();
    let marker = marker(&ident, &tool.vis, cfgs);
    let args = args_struct(tool);
    let statics = statics(tool);
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

/// The type of the same name as the function.
pub(super) fn marker(ident: &Ident, vis: &TokenStream, cfgs: &TokenStream) -> TokenStream {
    quote! {
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
    quote! {
        #cfgs
        #[doc = #doc]
        #[non_exhaustive]
        #vis struct #args {
            #(#fields,)*
        }
    }
}

/// Everything that is constant about a tool, up to its `__TABLE`.
pub(crate) fn statics(tool: &Tool) -> TokenStream {
    let types = types(tool);
    let checks = checks(tool);
    let hooks = hooks(tool);
    let spec = spec(tool);
    let lock = tool.schema_lock.as_ref().map(lock);
    quote! {
        #types
        #checks
        #hooks
        #spec
        static __TABLE: __rt::Table = __rt::Table::new(&__SPEC);
        #lock
    }
}

/// The only places where a user's type meets its bound, each at the type's own tokens.
fn types(tool: &Tool) -> TokenStream {
    let output = &tool.output;
    let input = match &tool.input {
        Input::Params { params, .. } => {
            params.iter().enumerate().map(|(at, param)| param_type(at, param)).collect()
        }
        Input::Struct { ty, .. } => {
            quote!(const __T0: __rt::StructType<#ty> = __rt::struct_type::<#ty>();)
        }
    };
    quote! {
        #input
        const __OUT: __rt::OutputType<#output> = __rt::output_type::<#output>();
    }
}

fn param_type(at: usize, param: &Param) -> TokenStream {
    let (constant, ty) = (format_ident!("__T{at}"), &param.ty);
    let default = match &param.default {
        Some(DefaultValue::Expr(expr)) => {
            let function = format_ident!("__default{at}");
            quote!(fn #function() -> #ty { #expr })
        }
        _ => TokenStream::new(),
    };
    quote! {
        const #constant: __rt::ParamType<#ty> = __rt::param_type::<#ty>();
        #default
    }
}

/// What only rustc can check: types under constraints, constants, fields of a struct.
fn checks(tool: &Tool) -> TokenStream {
    match &tool.input {
        Input::Struct { fields, .. } if fields.is_empty() => TokenStream::new(),
        Input::Struct { ty, fields } => {
            quote!(const _: fn(&#ty) = |__a| { #(let _ = &__a.#fields;)* };)
        }
        Input::Params { params, .. } => {
            let bounds = bounds(params);
            let asserted = params.iter().flat_map(|param| &param.limits.asserted).map(|fact| {
                let (condition, message) = (&fact.condition, &fact.message);
                quote_spanned!(span::at(&fact.at)=> const _: () = ::core::assert!(#condition, #message);)
            });
            quote!(#bounds #(#asserted)*)
        }
    }
}

/// A call per constraint that asks whether its type can have one.
fn bounds(params: &[Param]) -> TokenStream {
    type Has = fn(&Param) -> bool;
    let kinds: [(&str, Has); 3] = [
        ("Ranged", |param| param.limits.range.is_some()),
        ("Lengthy", |param| param.limits.length.is_some()),
        ("Patterned", |param| param.limits.pattern.is_some() || !param.limits.choices.is_empty()),
    ];
    let checks = kinds.iter().filter_map(|(bound, has)| {
        let types: Vec<_> =
            params.iter().filter(|param| has(param)).map(|param| &param.ty).collect();
        let bound = format_ident!("{bound}");
        let function = format_ident!("__is_{}", bound.to_string().to_lowercase());
        (!types.is_empty())
            .then(|| quote!(fn #function<T: __rt::#bound>() {} #(#function::<#types>();)*))
    });
    let checks: Vec<_> = checks.collect();
    if checks.is_empty() { TokenStream::new() } else { quote!(const _: fn() = || { #(#checks)* };) }
}

/// The type that hooks are called with.
fn args_type(tool: &Tool) -> TokenStream {
    match &tool.input {
        Input::Params { args, .. } => quote!(#args),
        Input::Struct { ty, .. } => quote!(#ty),
    }
}

fn hooks(tool: &Tool) -> TokenStream {
    let some = |(name, value): &(&str, TokenStream)| {
        let name = format_ident!("{name}");
        quote!(#name: ::core::option::Option::Some(#value))
    };
    let mut fields: Vec<TokenStream> = tool.hooks.iter().map(some).collect();
    if let Some(summary) = &tool.display.summary {
        let (format, values) = (&summary.format, summary.fields.iter().map(shown));
        fields.push(some(&("summary", reading(quote!(::std::format!(#format, #(#values),*))))));
    }
    if let Some(Parallel::By { field, .. }) = &tool.limits.parallel {
        fields.push(some(&("key", reading(shown(field)))));
    }
    if fields.is_empty() {
        return TokenStream::new();
    }
    let args = args_type(tool);
    quote! {
        static __HOOKS: __rt::Hooks<#args> = __rt::Hooks { #(#fields,)* ..__rt::Hooks::NONE };
    }
}

/// A hook that makes text of fields.
fn reading(text: TokenStream) -> TokenStream {
    quote! {
        |__a| {
            use __rt::{ViaDebug as _, ViaDisplay as _, ViaList as _, ViaOption as _};
            #text
        }
    }
}

/// One field as text, by the best way that its type has.
fn shown(field: &Ident) -> TokenStream {
    quote!((&&&&__rt::Shown(&__a.#field)).shown())
}

fn spec(tool: &Tool) -> TokenStream {
    let (name, description) = (&tool.name, &tool.description);
    let options = options(tool);
    let args = match &tool.input {
        Input::Params { params, .. } => {
            let params = params.iter().enumerate().map(|(at, param)| param_spec(at, param));
            quote!(Params(&[#(#params),*]))
        }
        Input::Struct { .. } => quote!(Struct(__T0.schema())),
    };
    // The line of the user's token, not of the attribute.
    let line = quote_spanned!(tool.ident.span()=> ::core::line!());
    quote! {
        static __SPEC: __rt::ToolSpec = __rt::ToolSpec {
            name: #name,
            description: #description,
            #(#options,)*
            args: __rt::ArgsSpec::#args,
            output: __OUT.schema,
            place: __rt::Place {
                package: ::core::env!("CARGO_PKG_NAME"),
                version: ::core::env!("CARGO_PKG_VERSION"),
                file: ::core::file!(),
                line: #line,
            },
            ..__rt::ToolSpec::DEFAULT
        };
    }
}

/// The fields of a spec that are not at their default.
fn options(tool: &Tool) -> Vec<TokenStream> {
    let mut fields = Vec::new();
    let some = |value: TokenStream| quote!(::core::option::Option::Some(#value));
    let mut field = |name: &str, value: Option<TokenStream>| {
        let name = format_ident!("{name}");
        fields.extend(value.map(|value| quote!(#name: #value)));
    };
    let text = |text: &Option<String>| text.as_ref().map(|text| some(quote!(#text)));
    let list = |list: &[String]| (!list.is_empty()).then(|| quote!(&[#(#list),*]));
    let (display, limits) = (&tool.display, &tool.limits);
    field("aliases", list(&tool.aliases));
    field("title", text(&tool.title));
    field("category", text(&tool.category));
    field("risk", risk(tool));
    field("permission", text(&tool.permission));
    field("display_name", text(&display.name));
    field("primary", text(&display.primary));
    field("show", list(&display.show));
    field(
        "summary",
        display.summary.as_ref().map(|summary| &summary.pattern).map(|it| some(quote!(#it))),
    );
    field("scopes", list(&tool.scopes));
    field("timeout", limits.timeout_ms.map(|ms| some(quote!(__rt::Duration::from_millis(#ms)))));
    field(
        "max_output",
        limits.max_output.map(Literal::usize_unsuffixed).map(|it| some(quote!(#it))),
    );
    field(
        "truncate",
        limits
            .truncate
            .map(|part| format_ident!("{part}"))
            .map(|part| some(quote!(__rt::Truncate::#part))),
    );
    field("parallel", limits.parallel.as_ref().map(parallel).map(some));
    field("flags", flags(&tool.flags));
    field("examples", list(&tool.examples));
    field("init", tool.init.clone().map(some));
    fields
}

fn risk(tool: &Tool) -> Option<TokenStream> {
    let class = format_ident!("{}", tool.risk.class);
    let facts = tool.risk.facts.iter().map(|fact| format_ident!("{fact}"));
    let is_default = tool.risk.class == "Execute" && tool.risk.facts.is_empty();
    (!is_default).then(|| quote!(__rt::Risk::new(__rt::RiskClass::#class)#(.#facts())*))
}

fn parallel(parallel: &Parallel) -> TokenStream {
    match parallel {
        Parallel::Class(class) => {
            let class = format_ident!("{class}");
            quote!(__rt::Parallel::#class)
        }
        Parallel::By { key, .. } => {
            quote!(__rt::Parallel::By(::std::borrow::Cow::Borrowed(#key)))
        }
    }
}

/// `Flags` may grow, so it cannot be written out; it is changed from its default.
fn flags(set: &[&str]) -> Option<TokenStream> {
    let set = set.iter().map(|flag| format_ident!("{flag}"));
    (set.len() > 0).then(|| {
        quote!({
            let mut __flags = __rt::ToolSpec::DEFAULT.flags;
            #(__flags.#set = true;)*
            __flags
        })
    })
}

fn param_spec(at: usize, param: &Param) -> TokenStream {
    let (key, description, limits) = (&param.key, &param.description, &param.limits);
    let constant = format_ident!("__T{at}");
    let mut fields = Vec::new();
    let mut field = |name: &str, value: Option<TokenStream>| {
        let name = format_ident!("{name}");
        fields.extend(value.map(|value| quote!(#name: #value)));
    };
    let some = |value: TokenStream| quote!(::core::option::Option::Some(#value));
    let list = |list: &[String]| (!list.is_empty()).then(|| quote!(&[#(#list),*]));
    field("aliases", list(&param.aliases));
    field("default", param.default.as_ref().map(|default| some(default_spec(at, param, default))));
    field("range", limits.range.as_ref().map(range).map(some));
    field(
        "length",
        limits
            .length
            .as_ref()
            .map(|it| (&it.min, &it.max))
            .map(|(min, max)| some(quote!((#min, #max)))),
    );
    field("pattern", limits.pattern.as_ref().map(|pattern| some(quote!(#pattern))));
    field("choices", list(&limits.choices));
    field("sensitive", param.is_sensitive.then(|| quote!(true)));
    field("hidden", param.is_hidden.then(|| quote!(true)));
    quote! {
        __rt::ParamSpec {
            name: #key,
            description: #description,
            ty: #constant.facts(),
            #(#fields,)*
            ..__rt::ParamSpec::DEFAULT
        }
    }
}

fn default_spec(at: usize, param: &Param, default: &DefaultValue) -> TokenStream {
    match default {
        DefaultValue::Literal { json, .. } => quote!(__rt::DefaultSpec::Json(#json)),
        DefaultValue::Expr(_) => {
            let (function, ty) = (format_ident!("__default{at}"), &param.ty);
            quote! {
                __rt::DefaultSpec::Value(|| ::core::result::Result::unwrap_or(
                    __rt::to_value::<#ty>(#function()),
                    __rt::Value::Null,
                ))
            }
        }
    }
}

fn range(range: &Range) -> TokenStream {
    let kind = format_ident!("{}", if range.is_float { "Float" } else { "Int" });
    let [min, max] = [&range.min, &range.max].map(|bound| match bound {
        Some(bound) => {
            let bound = bound_tokens(bound);
            quote!(::core::option::Option::Some(#bound))
        }
        None => quote!(::core::option::Option::None),
    });
    quote!(__rt::Range::#kind(#min, #max))
}

/// The function that decodes a call; of a method when there is the type it is called on.
pub(crate) fn prepare(tool: &Tool, this: Option<&TokenStream>) -> TokenStream {
    let (receiver, clone, by_move) = match this {
        Some(this) => (
            quote!(__this: &__rt::Arc<#this>,),
            quote!(let __this = __rt::Arc::clone(__this);),
            quote!(move),
        ),
        None => Default::default(),
    };
    let taken = taken(tool);
    let args = staged_args(tool);
    let hooks = if hooks(tool).is_empty() { quote!(&__rt::Hooks::NONE) } else { quote!(&__HOOKS) };
    let ident = generated_ident(&tool.ident);
    let function = match this {
        Some(this) => quote!(<#this>::#ident),
        None => quote!(#ident),
    };
    let passed = this
        .map(|_| quote!(&__this))
        .into_iter()
        .chain(tool.passed.iter().map(|passed| argument(tool, passed)));
    let wait = tool.is_async.then(|| quote!(.await));
    // A future that is not `Send` is an error at the function's name.
    let stage = quote_spanned!(ident.span()=> __rt::stage);
    let block = quote_spanned!(ident.span()=> async move);
    quote! {
        fn __prepare(
            #receiver
            __raw: &__rt::RawArgs<'_>,
        ) -> ::core::result::Result<__rt::Box<dyn __rt::Prepared>, __rt::InvalidArgs> {
            #taken
            #clone
            ::core::result::Result::Ok(#stage(
                #args,
                __notes,
                #hooks,
                #by_move |__args, __cx| #block {
                    (__OUT.convert)(#function(#(#passed),*)#wait)
                },
            ))
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
        quote! {
            #ident: match #local {
                ::core::option::Option::Some(__value) => __value,
                ::core::option::Option::None => #default,
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
        quote! {
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

/// A committed schema: the build watches the file, and test builds refuse differences.
fn lock(lock: &SchemaLock) -> TokenStream {
    let tracked = lock.tracked.as_ref().map(|path| {
        let path = format!("/{path}");
        quote! {
            #[cfg(test)]
            const _: &[u8] = ::core::include_bytes!(::core::concat!(
                ::core::env!("CARGO_MANIFEST_DIR"),
                #path
            ));
        }
    });
    let drifts = &lock.drifts;
    let drifts = (!drifts.is_empty()).then(|| quote!(#[cfg(test)] const _: () = { #drifts };));
    quote!(#tracked #drifts)
}
