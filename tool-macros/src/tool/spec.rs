//! The constants of a tool as tokens: its checks, hooks and what its table says.
//!
//! Every user type meets its bound in one place, at the type's own tokens, so a wrong one
//! is one error. A table names only what is not at its default, and there are as few items
//! as can be: tokens and items are build time.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};

use super::limit::bound_tokens;
use super::model::{DefaultValue, Input, Parallel, Param, Passed, Range, Tool};
use crate::span::{self, generated_ident};

/// Generates the items beside the table of a tool: its result's type, checks, hooks and defaults.
pub(crate) fn items(tool: &Tool) -> TokenStream {
    let output = &tool.output;
    // Where nothing stands in brackets, rustc suggests no generics.
    let has_brackets = output.to_string().contains('<');
    let out = if has_brackets { constant("__OUT", tool) } else { format_ident!("__OUT") };
    let defaults = defaults(tool);
    let checks = checks(tool);
    let args = own_args(tool);
    let hooks = hooks(tool);
    quote! {
        const #out: __rt::OutputType<#output> = {
            use __rt::OtherConversion as _;
            __rt::ResultType::<#output>::CONVERSION
                .or(__rt::ErrorType::<#output>::CONVERSION)
                .output_type::<#output>()
        };
        #defaults
        #checks
        #args
        #hooks
    }
}

/// A constant in which types of the user stand. A type that is not found is told where it
/// stands in the function, with generics that could be written there; as the place of those
/// is the same here, rustc says the very same of it, which counts once.
pub(crate) fn constant(name: &str, tool: &Tool) -> Ident {
    Ident::new(name, tool.generics)
}

/// A function per default that is an expression.
fn defaults(tool: &Tool) -> TokenStream {
    let Input::Params { params, .. } = &tool.input else { return TokenStream::new() };
    let functions = params.iter().enumerate().filter_map(|(at, param)| match &param.default {
        Some(DefaultValue::Expr(expr)) => {
            let (function, ty) = (format_ident!("__default{at}"), &param.ty);
            Some(quote!(fn #function() -> #ty { #expr }))
        }
        _ => None,
    });
    functions.collect()
}

/// What only rustc can check: types under constraints, constants, fields of a struct.
fn checks(tool: &Tool) -> TokenStream {
    match &tool.input {
        Input::Struct { ty, fields } => {
            // The hook that reads a field says itself that there is none.
            let fields: Vec<_> = fields.iter().filter(|it| serial(tool) != Some(*it)).collect();
            if fields.is_empty() {
                return TokenStream::new();
            }
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

/// The struct of arguments, if only generated code reads it. It is not named in user code, so it
/// takes no name from the user.
fn own_args(tool: &Tool) -> TokenStream {
    let Input::Params { args, params } = &tool.input else { return TokenStream::new() };
    if !tool.hooks.is_empty() || !has_hooks(tool) {
        return TokenStream::new();
    }
    let fields = params.iter().map(|param| {
        let (ident, ty) = (generated_ident(&param.ident), &param.ty);
        quote!(#ident: #ty)
    });
    quote!(struct #args { #(#fields,)* })
}

/// The type that hooks are called with.
fn args_type(tool: &Tool) -> TokenStream {
    match &tool.input {
        Input::Params { args, .. } => quote!(#args),
        Input::Struct { ty, .. } => quote!(#ty),
    }
}

/// The hooks that are the user's functions, by field of the runtime's `Hooks`.
const HOOKS: &[&str] = &[
    "required",
    "resources",
    "suggest",
    "covers",
    "dangerous",
    "facts",
    "preview",
    "result",
    "validate",
];

/// The hooks of `tool`, where it has some.
fn hooks(tool: &Tool) -> TokenStream {
    if !has_hooks(tool) {
        return TokenStream::new();
    }
    let mut fields = Fields::default();
    for name in HOOKS {
        fields.function(name, hook(tool, name));
    }
    match &tool.display.summary {
        Some(summary) => {
            let (format, values) = (&summary.format, summary.fields.iter().map(shown));
            let text = reading(&quote!(::std::format!(#format, #(#values),*)));
            fields.some("summary", Some(text));
        }
        None => fields.function("summary", hook(tool, "summary")),
    }
    fields.some("key", serial(tool).map(key));
    let args = args_type(tool);
    let fields = fields.or(&quote!(__rt::ToolCallbacks::NONE));
    quote!(static __HOOKS: __rt::ToolCallbacks<#args> = __rt::ToolCallbacks { #fields };)
}

/// The user's function for one field of the runtime's `Hooks`.
pub(super) fn hook<'t>(tool: &'t Tool, name: &str) -> Option<&'t TokenStream> {
    tool.hooks.iter().find(|(hook, _)| *hook == name).map(|(_, function)| function)
}

/// Whether there is a `__HOOKS`.
pub(super) fn has_hooks(tool: &Tool) -> bool {
    !tool.hooks.is_empty() || tool.display.summary.is_some() || serial(tool).is_some()
}

/// The field by which calls are serial.
fn serial(tool: &Tool) -> Option<&Ident> {
    match &tool.limits.parallel {
        Some(Parallel::By { field, .. }) => Some(field),
        _ => None,
    }
}

/// A hook that makes text of fields.
fn reading(text: &TokenStream) -> TokenStream {
    quote! {
        |__a| {
            use __rt::{
                ViaDebug as _, ViaDisplay as _, ViaList as _, ViaOption as _, ViaPlace as _,
            };
            #text
        }
    }
}

/// The field by which calls are serial: a path is the place that it leads to.
fn key(field: &Ident) -> TokenStream {
    reading(&quote_spanned!(field.span()=> (&&&&&__rt::SummaryValue(&__a.#field)).render()))
}

/// One field as text, by the best way that its type has; an error is where it is named.
fn shown(field: &Ident) -> TokenStream {
    quote_spanned!(field.span()=> (&&&&__rt::SummaryValue(&__a.#field)).render())
}

/// Generates the table of a tool.
pub(crate) fn spec(tool: &Tool) -> TokenStream {
    let (name, description, risk) = (&tool.name, &tool.description, risk(tool));
    let options = options(tool);
    let args = match &tool.input {
        Input::Params { params, .. } => {
            let params = params.iter().enumerate().map(|(at, param)| param_spec(at, param));
            quote!(Params(&[#(#params),*]))
        }
        Input::Struct { ty, .. } => quote!(Struct(__rt::struct_type::<#ty>())),
    };
    // The line of the user's token, not of the attribute.
    let line = quote_spanned!(tool.ident.span()=> ::core::line!());
    quote! {
        __rt::ToolSpec {
            name: #name,
            description: #description,
            risk: #risk,
            args: __rt::ArgsSpec::#args,
            output: __OUT.schema,
            place: __rt::SourceLocation {
                package: ::core::env!("CARGO_PKG_NAME"),
                version: ::core::env!("CARGO_PKG_VERSION"),
                file: ::core::file!(),
                line: #line,
            },
            options: #options,
        }
    }
}

/// Fields of a struct literal, without those that stay at their default.
#[derive(Default)]
struct Fields {
    set: Vec<TokenStream>,
    known: usize,
}

impl Fields {
    fn set(&mut self, name: &str, value: Option<impl ToTokens>) {
        let name = format_ident!("{name}");
        self.set.extend(value.map(|value| quote!(#name: #value)));
        self.known += 1;
    }

    /// These fields, then `default` for the others; clippy refuses it where none is left.
    fn or(self, default: &TokenStream) -> TokenStream {
        let set = self.set;
        let rest = (set.len() < self.known).then(|| quote!(..#default));
        quote!(#(#set,)* #rest)
    }

    /// A reference to the runtime's struct `name` with these fields, or to the one that says
    /// nothing.
    fn options(self, name: &str) -> TokenStream {
        let name = format_ident!("{name}");
        if self.set.is_empty() {
            return quote!(__rt::#name::NONE);
        }
        let fields = self.or(&quote!(__rt::#name::DEFAULT));
        // In a constant of its own, what the user computes lives as long as the table.
        quote!(const { &__rt::#name { #fields } })
    }

    fn some(&mut self, name: &str, value: Option<impl ToTokens>) {
        let some = |value| quote_spanned!(span::at(&value)=> __rt::Some(#value));
        self.set(name, value.map(|value| some(value.to_token_stream())));
    }

    /// A function of the user's. In braces it is held against its type by itself: one of the
    /// wrong type is an error at the function, without a word about `Some`.
    fn function(&mut self, name: &str, value: Option<&TokenStream>) {
        self.some(name, value.map(|value| quote_spanned!(span::at(value)=> { #value })));
    }

    fn list(&mut self, name: &str, list: &[String]) {
        self.set(name, (!list.is_empty()).then(|| quote!(&[#(#list),*])));
    }
}

/// Generates the optional fields of a tool.
fn options(tool: &Tool) -> TokenStream {
    let mut fields = Fields::default();
    let (display, limits) = (&tool.display, &tool.limits);
    let summary = display.summary.as_ref().map(|summary| &summary.pattern);
    fields.list("aliases", &tool.aliases);
    fields.some("title", tool.title.as_ref());
    fields.some("category", tool.category.as_ref());
    fields.some("permission", tool.permission.as_ref());
    fields.some("display_name", display.name.as_ref());
    fields.some("primary", display.primary.as_ref());
    fields.list("show", &display.show);
    fields.some("summary", summary);
    fields.some("ui", display.ui.as_ref());
    fields.list("scopes", &tool.scopes);
    fields.some("timeout", limits.timeout_ms.map(|ms| quote!(__rt::Duration::from_millis(#ms))));
    fields.some("max_output", limits.max_output.map(Literal::usize_unsuffixed));
    fields.some("truncate", limits.truncate.map(|part| variant("Truncate", part)));
    fields.some("parallel", limits.parallel.as_ref().map(parallel));
    fields.set("task_support", limits.task.map(|support| variant("TaskSupport", support)));
    fields.set("flags", flags(&tool.flags));
    fields.list("examples", &tool.examples);
    fields.function("init", tool.init.as_ref());
    fields.set("services", services(tool));
    fields.set("names_resources", hook(tool, "resources").map(|_| quote!(true)));
    fields.options("ToolOptions")
}

/// The services among the arguments, with what else comes from the context.
fn services(tool: &Tool) -> Option<TokenStream> {
    let mut types = tool.passed.iter().filter_map(|passed| match passed {
        Passed::Owned(ty) => Some(ty),
        _ => None,
    });
    let first = types.next()?;
    let types = std::iter::once(first).chain(types);
    Some(quote!(&[#(<#types as __rt::FromContext>::SERVICE),*]))
}

/// A variant of one of the runtime's enums.
fn variant(of: &str, name: &str) -> TokenStream {
    let (of, name) = (format_ident!("{of}"), format_ident!("{name}"));
    quote!(__rt::#of::#name)
}

fn risk(tool: &Tool) -> TokenStream {
    let class = variant("RiskClass", tool.risk.class);
    let facts = tool.risk.facts.iter().map(|fact| format_ident!("{fact}"));
    quote!(__rt::Risk::new(#class)#(.#facts())*)
}

fn parallel(parallel: &Parallel) -> TokenStream {
    match parallel {
        Parallel::Class(class) => variant("ParallelSpec", class),
        Parallel::By { key, .. } => quote!(__rt::ParallelSpec::By(#key)),
    }
}

/// `Flags` may grow, so it cannot be written out; it is changed from its default.
fn flags(set: &[&str]) -> Option<TokenStream> {
    let set = set.iter().map(|flag| format_ident!("{flag}"));
    (set.len() > 0).then(|| {
        quote!({
            let mut __flags = __rt::ToolOptions::DEFAULT.flags;
            #(__flags.#set = true;)*
            __flags
        })
    })
}

fn param_spec(at: usize, param: &Param) -> TokenStream {
    let (key, description, limits) = (&param.key, &param.description, &param.limits);
    let ty = &param.ty;
    let default = match &param.default {
        Some(default) => {
            let default = default_spec(at, param, default);
            quote!(__rt::Some(#default))
        }
        None => quote!(__rt::None),
    };
    let length = limits.length.as_ref().map(|length| {
        let (min, max) = (&length.min, &length.max);
        quote!((#min, #max))
    });
    let mut fields = Fields::default();
    fields.list("aliases", &param.aliases);
    fields.some("range", limits.range.as_ref().map(range));
    fields.some("length", length);
    fields.some("pattern", limits.pattern.as_ref());
    fields.list("choices", &limits.choices);
    fields.set("sensitive", param.is_sensitive.then_some(true));
    fields.set("hidden", param.is_hidden.then_some(true));
    let options = fields.options("ParamOptions");
    quote! {
        __rt::ParamSpec {
            name: #key,
            description: #description,
            ty: <#ty as __rt::Param>::FACTS,
            default: #default,
            options: #options,
        }
    }
}

fn default_spec(at: usize, param: &Param, default: &DefaultValue) -> TokenStream {
    match default {
        DefaultValue::Literal { json, .. } => quote!(__rt::DefaultSpec::Json(#json)),
        DefaultValue::Expr(_) => {
            let (function, ty) = (format_ident!("__default{at}"), &param.ty);
            quote! {
                __rt::DefaultSpec::Value(|| __rt::default_value::<#ty>(#function()))
            }
        }
    }
}

fn range(range: &Range) -> TokenStream {
    let kind = variant("Range", if range.is_float { "Float" } else { "Int" });
    let [min, max] = [&range.min, &range.max].map(|bound| match bound {
        Some(bound) => {
            let bound = bound_tokens(bound);
            quote!(__rt::Some(#bound))
        }
        None => quote!(__rt::None),
    });
    quote!(#kind(#min, #max))
}
