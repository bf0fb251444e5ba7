//! All rules about the parameters of a tool.
//!
//! **Invariant:** an invalid parameter still has its place in the result, so that uses of its
//! name are not errors, too.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Expr, FnArg, Ident, LitStr, Pat, PatType, Type, parse_quote_spanned};

use super::limit;
use super::model::{ParamModel, PassedArgument, PassingMode};
use super::parse::{ToolFunction, is_arg, is_of_a_derive};
use super::ty::{self, ParamKind};
use crate::attr::{self, AttrKey, CheckedItems};
use crate::diag::Diagnostics;
use crate::docs::{self, DocText};
use crate::span;

/// The items of `#[arg(..)]`.
pub(super) const KEYS: &[AttrKey] = &[
    AttrKey::value("default", "default = 1"),
    AttrKey::value("range", "range = 1..=100"),
    AttrKey::value("length", "length = 1..=200"),
    AttrKey::value("pattern", r#"pattern = "^[a-z]+$""#),
    AttrKey::list("choices", r#"choices("a", "b")"#),
    AttrKey::value("rename", r#"rename = "filePath""#),
    AttrKey::list("alias", r#"alias("file")"#).repeatable(),
    AttrKey::flag("sensitive"),
    AttrKey::flag("hidden"),
    AttrKey::none("desc", TEXT),
    AttrKey::none("description", TEXT),
    AttrKey::none("doc", TEXT),
    AttrKey::none("help", TEXT),
    AttrKey::none("example", "write `example = ..` in `#[tool(..)]`, with all arguments"),
    AttrKey::none("flatten", "take `Args<T>` of a struct that has the field"),
    AttrKey::none("nullable", "remove it, and make the type an `Option`"),
    AttrKey::none("secret", "write `sensitive`"),
    AttrKey::none("required", "remove it; what is no `Option` and has no default is required"),
    AttrKey::none("optional", "remove it, and make the type an `Option`"),
    AttrKey::none("min", RANGE),
    AttrKey::none("max", RANGE),
    AttrKey::none("minimum", RANGE),
    AttrKey::none("maximum", RANGE),
    AttrKey::none("min_length", LENGTH),
    AttrKey::none("max_length", LENGTH),
    AttrKey::none("min_items", LENGTH),
    AttrKey::none("max_items", LENGTH),
    AttrKey::none("regex", r#"write `pattern = "^[a-z]+$"`"#),
    AttrKey::none("enum", r#"write `choices("a", "b")`"#),
    AttrKey::none("name", r#"write `rename = "filePath"`"#),
];

/// Bounds are one item, as Rust writes them.
const RANGE: &str = "write `range = 1..=100`; either end may be left open";
const LENGTH: &str = "write `length = 1..=200`; either end may be left open";

/// The help for the description of a parameter.
const TEXT: &str = "write it as a `///` comment above the parameter";

/// The maximum number of parameters of a tool.
const MAX: usize = 128;

/// The parameters of a function by their source.
pub(super) struct FunctionParams {
    /// The parameters that the model sends one by one.
    pub(super) sent: Vec<ParamModel>,
    /// The struct that the model sends: the `T` of `Args<T>`.
    pub(super) strukt: Option<Type>,
    /// The arguments of the function in order.
    pub(super) passed: Vec<PassedArgument>,
    /// Names that do not come from the model.
    pub(super) lent: Vec<String>,
    /// Whether every parameter was valid.
    pub(super) is_complete: bool,
}

/// Sorts the parameters of `function` and checks each.
pub(super) fn lower_params(function: &ToolFunction, diag: &mut Diagnostics) -> FunctionParams {
    let mut params = FunctionParams {
        sent: Vec::new(),
        strukt: None,
        passed: Vec::new(),
        lent: Vec::new(),
        is_complete: true,
    };
    let mut taken = HashSet::new();
    for input in &function.sig.inputs {
        if let FnArg::Typed(param) = input {
            params.add(param, &mut taken, diag);
        }
    }
    params
}

impl FunctionParams {
    fn add(&mut self, param: &PatType, taken: &mut HashSet<String>, diag: &mut Diagnostics) {
        refuse_cfg(param, diag);
        refuse_foreign(param, diag);
        refuse_misspelt(param, diag);
        if ty::is_unsized(&param.ty) {
            diag.left_to_rustc();
        }
        let kind = match ty::param_kind(&param.ty) {
            Ok(kind) => kind,
            Err((at, what, help)) => {
                diag.error(
                    at,
                    format_args!("type of parameter {} {what}", display_param(param)),
                    help,
                );
                if ty::is_of_the_call(&param.ty) {
                    // No other checks: it was never meant to be sent.
                    return self.lent.extend(plain_name(&param.pat).map(json_name));
                }
                ParamKind::Value
            }
        };
        match kind {
            ParamKind::Borrowed(inner) => {
                self.add_from_context(param, PassedArgument::Borrowed(inner.clone()), diag)
            }
            ParamKind::Owned => {
                self.add_from_context(param, PassedArgument::Owned((*param.ty).clone()), diag)
            }
            ParamKind::Args(inner) => self.add_struct(param, inner, diag),
            ParamKind::Str | ParamKind::OptionStr | ParamKind::Value => {
                self.add_sent(param, &kind, taken, diag);
            }
        }
    }

    fn add_from_context(
        &mut self,
        param: &PatType,
        passed: PassedArgument,
        diag: &mut Diagnostics,
    ) {
        for attribute in param.attrs.iter().filter(|attribute| is_arg(attribute)) {
            diag.error(
                attribute.path(),
                format_args!(
                    "`#[arg]` must not be on {}, which the model does not send",
                    display_param(param)
                ),
                "remove it",
            );
        }
        self.lent.extend(plain_name(&param.pat).map(json_name));
        self.passed.push(passed);
    }

    fn add_struct(&mut self, param: &PatType, inner: &Type, diag: &mut Diagnostics) {
        for attribute in param.attrs.iter().filter(|attribute| is_arg(attribute)) {
            diag.error(
                attribute.path(),
                "`#[arg]` must not be on `Args`",
                "use the attributes of serde and schemars on the fields of the struct",
            );
        }
        if let Some(token) = ty::find_borrow(inner) {
            diag.error(
                token,
                "struct in `Args` must not borrow",
                "give it owned fields, such as `String`, and no lifetime",
            );
        }
        if self.strukt.is_some() || !self.sent.is_empty() {
            report_not_alone(&param.pat, diag);
        }
        self.strukt.get_or_insert_with(|| inner.clone());
        self.passed.push(PassedArgument::Struct((*param.ty).clone()));
    }

    fn add_sent(
        &mut self,
        param: &PatType,
        kind: &ParamKind<'_>,
        taken: &mut HashSet<String>,
        diag: &mut Diagnostics,
    ) {
        let Some(ident) = plain_name(&param.pat) else {
            diag.error(
                &param.pat,
                "parameter must be a plain name",
                "name it, and take it apart in the body",
            );
            self.is_complete = false;
            return;
        };
        if self.sent.iter().any(|other| other.ident == *ident) {
            diag.left_to_rustc();
            self.is_complete = false;
            return;
        }
        if self.strukt.is_some() {
            report_not_alone(ident, diag);
        }
        if self.sent.len() == MAX {
            diag.error(
                ident,
                format_args!("tool must not have more than {MAX} parameters"),
                "take `Args<T>` of a struct",
            );
        }
        let at = self.sent.len();
        self.passed.push(PassedArgument::Param { at, how: passing_mode(kind) });
        self.sent.push(lower_sent(param, ident, kind, taken, diag));
    }
}

fn lower_sent(
    param: &PatType,
    ident: &Ident,
    kind: &ParamKind<'_>,
    taken: &mut HashSet<String>,
    diag: &mut Diagnostics,
) -> ParamModel {
    let mut written = Vec::new();
    for attribute in param.attrs.iter().filter(|attribute| is_arg(attribute)) {
        match attribute.meta.require_list() {
            Ok(list) => written.extend(attr::parse_items(list.tokens.clone(), diag)),
            Err(_) => diag.error(
                attribute.path(),
                "`#[arg]` has no items",
                "write them in parentheses, as in `#[arg(default = 1)]`",
            ),
        }
    }
    for item in written.iter_mut().filter(|item| item.is_flag("default")) {
        item.value =
            attr::AttrValue::Expr(Box::new(default_value(&param.ty, kind, &item.key, diag)));
    }
    let items = attr::check_items(&written, KEYS, "#[arg]", diag);
    let mut limits = limit::lower_limits(&items, &param.ty, kind, diag);
    let default = items
        .expr("default")
        .map(|expr| limit::lower_default(expr, &param.ty, kind, &mut limits, diag));
    let is_optional = ty::is_option(&param.ty);
    if let (Some(sensitive), true, false) =
        (items.key("sensitive"), default.is_some(), items.flag("hidden"))
    {
        diag.error(
            sensitive,
            format_args!("sensitive parameter `{ident}` has a default, which everybody is told"),
            "make its type an `Option`, and choose the default in the body",
        );
    }
    if let Some(hidden) = items.key("hidden")
        && !items.mentions("default")
        && !is_optional
    {
        diag.error(
            hidden,
            format_args!("hidden parameter `{ident}` has no default"),
            "add `default = ..`, or make its type an `Option`",
        );
    }
    ParamModel {
        key: lower_key(ident, &items, taken, diag),
        description: lower_description(param, ident, &items, diag),
        docs: param
            .attrs
            .iter()
            .filter(|attr| docs::is_doc(attr))
            .map(|attr| quote!(#attr))
            .collect(),
        ty: decoded_type(&param.ty, kind),
        is_optional,
        aliases: lower_aliases(&items, taken, diag),
        limits,
        default,
        is_sensitive: items.flag("sensitive"),
        is_hidden: items.flag("hidden"),
        ident: ident.clone(),
    }
}

fn lower_description(
    param: &PatType,
    ident: &Ident,
    items: &CheckedItems<'_>,
    diag: &mut Diagnostics,
) -> DocText {
    docs::doc_text(&param.attrs).unwrap_or_else(|| {
        // A misplaced item was reported with the right place.
        let is_there = |attribute: &syn::Attribute| attribute.path().is_ident("description");
        let is_misplaced =
            ["desc", "description", "doc", "help"].iter().any(|key| items.mentions(key));
        if !is_misplaced && !param.attrs.iter().any(is_there) {
            diag.error(
                ident,
                format_args!("parameter `{}` has no description", ident.unraw()),
                "add a `///` comment above it; the model reads it",
            );
        }
        DocText::Literal(String::new())
    })
}

/// Returns the parameter's name in JSON.
fn lower_key(
    ident: &Ident,
    items: &CheckedItems<'_>,
    taken: &mut HashSet<String>,
    diag: &mut Diagnostics,
) -> String {
    let (key, at) = match items.string("rename", diag) {
        Some(rename) => (rename.value(), rename.to_token_stream()),
        None => (ident.unraw().to_string(), ident.to_token_stream()),
    };
    let help = if items.mentions("rename") {
        "write a name such as `file_path`"
    } else {
        "add `#[arg(rename = \"..\")]` with such a name"
    };
    claim_name(&key, at, help, taken, diag);
    key
}

fn lower_aliases(
    items: &CheckedItems<'_>,
    taken: &mut HashSet<String>,
    diag: &mut Diagnostics,
) -> Vec<String> {
    let literals = items.string_list("alias", diag);
    for literal in &literals {
        let help = "write a name such as `file_path`";
        claim_name(&literal.value(), literal.to_token_stream(), help, taken, diag);
    }
    literals.iter().map(LitStr::value).collect()
}

/// Registers a name of an argument, which must be well-formed and unused.
fn claim_name(
    name: &str,
    at: TokenStream,
    help: &str,
    taken: &mut HashSet<String>,
    diag: &mut Diagnostics,
) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
        let what =
            format_args!("argument `{name}` must be named with 1 to 64 of A-Z a-z 0-9 _ - .");
        diag.error(at, what, help);
    } else if !taken.insert(name.to_owned()) {
        diag.error(at, format_args!("duplicate argument `{name}`"), "choose another name");
    }
}

/// Returns the owned type that is decoded.
fn decoded_type(ty: &Type, kind: &ParamKind<'_>) -> TokenStream {
    match kind {
        ParamKind::Str => span::moved_to(quote!(::std::string::String), ty.span()),
        ParamKind::OptionStr => {
            span::moved_to(quote!(::core::option::Option<::std::string::String>), ty.span())
        }
        _ => ty.to_token_stream(),
    }
}

fn passing_mode(kind: &ParamKind<'_>) -> PassingMode {
    match kind {
        ParamKind::Str => PassingMode::Borrowed,
        ParamKind::OptionStr => PassingMode::AsDeref,
        _ => PassingMode::Moved,
    }
}

fn report_not_alone(at: impl ToTokens, diag: &mut Diagnostics) {
    diag.error(
        at,
        "`Args` must be the only parameter that the model sends",
        "make it a field of the struct",
    );
}

fn refuse_cfg(param: &PatType, diag: &mut Diagnostics) {
    for attribute in &param.attrs {
        if attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr") {
            diag.error(
                attribute.path(),
                format_args!("parameter {} must not be conditional", display_param(param)),
                "put `#[cfg]` on the function",
            );
        }
    }
}

fn refuse_foreign(param: &PatType, diag: &mut Diagnostics) {
    for attribute in param.attrs.iter().filter(|attribute| is_of_a_derive(attribute)) {
        let name = attribute.path().to_token_stream();
        diag.error(
            attribute.path(),
            format_args!("`#[{name}]` must not be on parameter {}", display_param(param)),
            "write `#[arg(..)]`, or take `Args<T>` of a struct",
        );
    }
}

/// Reports attributes that rustc would only report as unknown: `#[args(..)]`, or an item of
/// `#[arg]` by itself.
fn refuse_misspelt(param: &PatType, diag: &mut Diagnostics) {
    for attribute in param.attrs.iter().filter(|attribute| is_misspelt(attribute)) {
        let name = attribute.path().to_token_stream().to_string();
        let help = match name.as_str() {
            "args" | "param" | "tool" => "write `#[arg(..)]`".to_owned(),
            "description" => TEXT.to_owned(),
            _ => format!("write `#[arg({name} ..)]`"),
        };
        let what = format_args!("unknown attribute `{name}` of parameter {}", display_param(param));
        diag.error(attribute.path(), what, help);
    }
}

/// Whether `attribute` was meant as `#[arg(..)]`.
pub(super) fn is_misspelt(attribute: &syn::Attribute) -> bool {
    let path = attribute.path();
    let is_other = ["args", "param", "tool", "description"].iter().any(|name| path.is_ident(name));
    is_other || KEYS.iter().any(|key| key.is_written() && path.is_ident(key.name()))
}

/// Returns the value of `default` without one, as serde and clap have it.
fn default_value(ty: &Type, kind: &ParamKind<'_>, key: &Ident, diag: &mut Diagnostics) -> Expr {
    if ty::is_option(ty) {
        let what = "`default` must have a value, because the type is an `Option`";
        diag.error(key, what, "remove it; without the argument the value is `None`");
    }
    let at = key.span();
    match (kind, ty::type_name(ty).as_deref()) {
        (ParamKind::Str, _) => parse_quote_spanned!(at=> ""),
        (_, Some("bool")) => parse_quote_spanned!(at=> false),
        (_, Some(word)) if ty::is_int(word) => parse_quote_spanned!(at=> 0),
        (_, Some(word)) if ty::is_float(word) => parse_quote_spanned!(at=> 0.0),
        _ => parse_quote_spanned!(span::macro_span(key)=> ::core::default::Default::default()),
    }
}

/// Returns the name that a pattern binds, if it binds only a name.
pub(super) fn plain_name(pattern: &Pat) -> Option<&Ident> {
    match pattern {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => Some(&name.ident),
        _ => None,
    }
}

/// Returns a name as it is in JSON.
fn json_name(name: &Ident) -> String {
    name.unraw().to_string()
}

/// Formats a parameter for a message.
fn display_param(param: &PatType) -> String {
    match plain_name(&param.pat) {
        Some(name) => format!("`{}`", name.unraw()),
        None => format!("`{}`", param.pat.to_token_stream()),
    }
}
