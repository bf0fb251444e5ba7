//! The constants of a tool as tokens: its checks, hooks and what its table says.
//!
//! Every user type meets its bound in one place, at the type's own tokens, so a wrong one
//! is one error. A table names only what is not at its default, and there are as few items
//! as can be: tokens and items are build time.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};

use super::limit::bound_tokens;
use super::model::{
    DefaultValue, NumberRange, ParallelRule, ParamModel, PassedArgument, ToolInput, ToolModel,
};
use crate::span::{self, generated_ident};

/// Generates the items beside the table of a tool: its result's type, checks, hooks and defaults.
pub(crate) fn expand_items(tool: &ToolModel) -> TokenStream {
    let output = &tool.output;
    // Where nothing stands in brackets, rustc suggests no generics.
    let has_brackets = output.to_string().contains('<');
    let out = if has_brackets { constant_ident("__OUT", tool) } else { format_ident!("__OUT") };
    let defaults = default_functions(tool);
    let checks = expand_checks(tool);
    let args = own_args(tool);
    let hooks = expand_hooks(tool);
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

/// Returns the name of a constant whose type the user wrote.
///
/// For an unknown type, rustc suggests generics behind the function's name. The constant's name
/// has the same location, so rustc reports the same error for both, and prints it once.
pub(crate) fn constant_ident(name: &str, tool: &ToolModel) -> Ident {
    Ident::new(name, tool.generics)
}

/// A function per default that is an expression.
fn default_functions(tool: &ToolModel) -> TokenStream {
    let ToolInput::Params { params, .. } = &tool.input else { return TokenStream::new() };
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
fn expand_checks(tool: &ToolModel) -> TokenStream {
    match &tool.input {
        ToolInput::Struct { ty, fields } => {
            // The hook that reads a field says itself that there is none.
            let fields: Vec<_> =
                fields.iter().filter(|it| serial_field(tool) != Some(*it)).collect();
            if fields.is_empty() {
                return TokenStream::new();
            }
            quote!(const _: fn(&#ty) = |__a| { #(let _ = &__a.#fields;)* };)
        }
        ToolInput::Params { params, .. } => {
            let bounds = constraint_bounds(params);
            let asserted = params.iter().flat_map(|param| &param.limits.asserted).map(|fact| {
                let (condition, message) = (&fact.condition, &fact.message);
                quote_spanned!(span::macro_span(&fact.at)=> const _: () = ::core::assert!(#condition, #message);)
            });
            quote!(#bounds #(#asserted)*)
        }
    }
}

/// A call per constraint that asks whether its type can have one.
fn constraint_bounds(params: &[ParamModel]) -> TokenStream {
    type HasConstraint = fn(&ParamModel) -> bool;
    let kinds: [(&str, HasConstraint); 3] = [
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
fn own_args(tool: &ToolModel) -> TokenStream {
    let ToolInput::Params { args, params } = &tool.input else { return TokenStream::new() };
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
fn args_type(tool: &ToolModel) -> TokenStream {
    match &tool.input {
        ToolInput::Params { args, .. } => quote!(#args),
        ToolInput::Struct { ty, .. } => quote!(#ty),
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
fn expand_hooks(tool: &ToolModel) -> TokenStream {
    if !has_hooks(tool) {
        return TokenStream::new();
    }
    let mut fields = FieldWriter::default();
    for name in HOOKS {
        fields.set_function(name, find_hook(tool, name));
    }
    match &tool.display.summary {
        Some(summary) => {
            let (format, values) = (&summary.format, summary.fields.iter().map(field_text));
            let text = text_hook(&quote!(::std::format!(#format, #(#values),*)));
            fields.set_some("summary", Some(text));
        }
        None => fields.set_function("summary", find_hook(tool, "summary")),
    }
    fields.set_some("key", serial_field(tool).map(serial_key));
    let args = args_type(tool);
    let fields = fields.finish_with(&quote!(__rt::ToolCallbacks::NONE));
    quote!(static __HOOKS: __rt::ToolCallbacks<#args> = __rt::ToolCallbacks { #fields };)
}

/// The user's function for one field of the runtime's `Hooks`.
pub(super) fn find_hook<'t>(tool: &'t ToolModel, name: &str) -> Option<&'t TokenStream> {
    tool.hooks.iter().find(|(hook, _)| *hook == name).map(|(_, function)| function)
}

/// Whether there is a `__HOOKS`.
pub(super) fn has_hooks(tool: &ToolModel) -> bool {
    !tool.hooks.is_empty() || tool.display.summary.is_some() || serial_field(tool).is_some()
}

/// Returns the field whose value calls must not share at the same time.
fn serial_field(tool: &ToolModel) -> Option<&Ident> {
    match &tool.limits.parallel {
        Some(ParallelRule::By { field, .. }) => Some(field),
        _ => None,
    }
}

/// Generates a hook that formats fields as text.
fn text_hook(text: &TokenStream) -> TokenStream {
    quote! {
        |__a| {
            use __rt::{
                ViaDebug as _, ViaDisplay as _, ViaList as _, ViaOption as _, ViaPlace as _,
            };
            #text
        }
    }
}

/// Generates the key of a serial call from its field; for a path, the file that it leads to.
fn serial_key(field: &Ident) -> TokenStream {
    text_hook(&quote_spanned!(field.span()=> (&&&&&__rt::SummaryValue(&__a.#field)).render()))
}

/// Generates the text of one field, by the best conversion that its type has; errors point to
/// where the user named the field.
fn field_text(field: &Ident) -> TokenStream {
    quote_spanned!(field.span()=> (&&&&__rt::SummaryValue(&__a.#field)).render())
}

/// Generates the table of a tool.
pub(crate) fn expand_spec(tool: &ToolModel) -> TokenStream {
    let (name, description, risk) = (&tool.name, &tool.description, expand_risk(tool));
    let options = tool_options(tool);
    let args = match &tool.input {
        ToolInput::Params { params, .. } => {
            let params = params.iter().enumerate().map(|(at, param)| param_spec(at, param));
            quote!(Params(&[#(#params),*]))
        }
        ToolInput::Struct { ty, .. } => quote!(Struct(__rt::struct_type::<#ty>())),
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
struct FieldWriter {
    set: Vec<TokenStream>,
    known: usize,
}

impl FieldWriter {
    fn set(&mut self, name: &str, value: Option<impl ToTokens>) {
        let name = format_ident!("{name}");
        self.set.extend(value.map(|value| quote!(#name: #value)));
        self.known += 1;
    }

    /// Returns these fields and `..default`, or no `..default` if all fields are set, because
    /// clippy rejects one that adds nothing.
    fn finish_with(self, default: &TokenStream) -> TokenStream {
        let set = self.set;
        let rest = (set.len() < self.known).then(|| quote!(..#default));
        quote!(#(#set,)* #rest)
    }

    /// Returns a reference to the runtime's struct `name` with these fields, or to its `NONE` if
    /// no field is set.
    fn finish_options(self, name: &str) -> TokenStream {
        let name = format_ident!("{name}");
        if self.set.is_empty() {
            return quote!(__rt::#name::NONE);
        }
        let fields = self.finish_with(&quote!(__rt::#name::DEFAULT));
        // A constant of its own, so that a value that the user computes lives as long as the table.
        quote!(const { &__rt::#name { #fields } })
    }

    fn set_some(&mut self, name: &str, value: Option<impl ToTokens>) {
        let some = |value| quote_spanned!(span::macro_span(&value)=> __rt::Some(#value));
        self.set(name, value.map(|value| some(value.to_token_stream())));
    }

    /// Sets a field to a function of the user.
    ///
    /// In braces, rustc checks the function against its type before it sees the `Some`. A function
    /// of the wrong type is then an error at the function.
    fn set_function(&mut self, name: &str, value: Option<&TokenStream>) {
        self.set_some(
            name,
            value.map(|value| quote_spanned!(span::macro_span(value)=> { #value })),
        );
    }

    fn set_list(&mut self, name: &str, list: &[String]) {
        self.set(name, (!list.is_empty()).then(|| quote!(&[#(#list),*])));
    }
}

/// Generates the optional fields of a tool.
fn tool_options(tool: &ToolModel) -> TokenStream {
    let mut fields = FieldWriter::default();
    let (display, limits) = (&tool.display, &tool.limits);
    let summary = display.summary.as_ref().map(|summary| &summary.pattern);
    fields.set_list("aliases", &tool.aliases);
    fields.set_some("title", tool.title.as_ref());
    fields.set_some("category", tool.category.as_ref());
    fields.set_some("permission", tool.permission.as_ref());
    fields.set_some("display_name", display.name.as_ref());
    fields.set_some("primary", display.primary.as_ref());
    fields.set_list("show", &display.show);
    fields.set_some("summary", summary);
    fields.set_some("ui", display.ui.as_ref());
    fields.set_list("scopes", &tool.scopes);
    fields
        .set_some("timeout", limits.timeout_ms.map(|ms| quote!(__rt::Duration::from_millis(#ms))));
    fields.set_some("max_output", limits.max_output.map(Literal::usize_unsuffixed));
    fields.set_some("truncate", limits.truncate.map(|part| enum_variant("Truncate", part)));
    fields.set_some("parallel", limits.parallel.as_ref().map(expand_parallel));
    fields.set("task_support", limits.task.map(|support| enum_variant("TaskSupport", support)));
    fields.set("flags", expand_flags(&tool.flags));
    fields.set_list("examples", &tool.examples);
    fields.set_function("init", tool.init.as_ref());
    fields.set("services", required_services(tool));
    fields.set("names_resources", find_hook(tool, "resources").map(|_| quote!(true)));
    fields.finish_options("ToolOptions")
}

/// The services among the arguments, with what else comes from the context.
fn required_services(tool: &ToolModel) -> Option<TokenStream> {
    let mut types = tool.passed.iter().filter_map(|passed| match passed {
        PassedArgument::Owned(ty) => Some(ty),
        _ => None,
    });
    let first = types.next()?;
    let types = std::iter::once(first).chain(types);
    Some(quote!(&[#(<#types as __rt::FromContext>::SERVICE),*]))
}

/// A variant of one of the runtime's enums.
fn enum_variant(of: &str, name: &str) -> TokenStream {
    let (of, name) = (format_ident!("{of}"), format_ident!("{name}"));
    quote!(__rt::#of::#name)
}

fn expand_risk(tool: &ToolModel) -> TokenStream {
    let class = enum_variant("RiskClass", tool.risk.class);
    let facts = tool.risk.facts.iter().map(|fact| format_ident!("{fact}"));
    quote!(__rt::Risk::new(#class)#(.#facts())*)
}

fn expand_parallel(parallel: &ParallelRule) -> TokenStream {
    match parallel {
        ParallelRule::Class(class) => enum_variant("ParallelSpec", class),
        ParallelRule::By { key, .. } => quote!(__rt::ParallelSpec::By(#key)),
    }
}

/// Generates the runtime's `Flags`, changed from the default: a struct that may grow cannot be
/// written as a literal.
fn expand_flags(set: &[&str]) -> Option<TokenStream> {
    let set = set.iter().map(|flag| format_ident!("{flag}"));
    (set.len() > 0).then(|| {
        quote!({
            let mut __flags = __rt::ToolOptions::DEFAULT.flags;
            #(__flags.#set = true;)*
            __flags
        })
    })
}

fn param_spec(at: usize, param: &ParamModel) -> TokenStream {
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
    let mut fields = FieldWriter::default();
    fields.set_list("aliases", &param.aliases);
    fields.set_some("range", limits.range.as_ref().map(expand_range));
    fields.set_some("length", length);
    fields.set_some("pattern", limits.pattern.as_ref());
    fields.set_list("choices", &limits.choices);
    fields.set("sensitive", param.is_sensitive.then_some(true));
    fields.set("hidden", param.is_hidden.then_some(true));
    let options = fields.finish_options("ParamOptions");
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

fn default_spec(at: usize, param: &ParamModel, default: &DefaultValue) -> TokenStream {
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

fn expand_range(range: &NumberRange) -> TokenStream {
    let kind = enum_variant("Range", if range.is_float { "Float" } else { "Int" });
    let [min, max] = [&range.min, &range.max].map(|bound| match bound {
        Some(bound) => {
            let bound = bound_tokens(bound);
            quote!(__rt::Some(#bound))
        }
        None => quote!(__rt::None),
    });
    quote!(#kind(#min, #max))
}
