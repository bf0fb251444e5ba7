//! Second step: the only place that rejects input, with one function per rule.
//!
//! Checks continue after a mistake, so that one compile shows all of them.
//!
//! **Invariant:** no reported mistake follows from another.

use std::collections::HashMap;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, Ident, Lit, LitStr, Meta, ReturnType};

use super::display::{self, ParamNames};
use super::model::{CallLimits, ToolInput, ToolModel, ToolRisk};
use super::param;
use super::parse::ToolFunction;
use super::schema_lock::{self, LockedSignature};
use super::text::{self, NAME_RULE};
use super::{example, signature};
use crate::attr::{self, AttrItem, AttrKey, AttrValue, CheckedItems};
use crate::diag::Diagnostics;
use crate::docs::{self, DocText};
use crate::runtime::RuntimePath;
use crate::sibling_items::{self, ItemAnchor};
use crate::span;

/// The items of `#[tool(..)]`.
pub(super) const KEYS: &[AttrKey] = &[
    AttrKey::value("name", r#"name = "look_up""#),
    AttrKey::value("title", r#"title = "Read a file""#),
    AttrKey::list("aliases", r#"aliases("read", "open")"#),
    AttrKey::value("category", r#"category = "filesystem""#),
    AttrKey::value("description", "description = DESCRIPTION"),
    AttrKey::value("example", "example = r#\"{\"path\": \"a\"}\"#").repeatable(),
    AttrKey::flag("read"),
    AttrKey::flag("write"),
    AttrKey::flag("execute"),
    AttrKey::flag("destructive"),
    AttrKey::flag("idempotent"),
    AttrKey::flag("open_world"),
    AttrKey::value("permission", r#"permission = "edit""#),
    AttrKey::list("approval", "approval(required = my_function)"),
    AttrKey::value("validate", "validate = my_function"),
    AttrKey::list("display", "display(primary = path)"),
    AttrKey::value("timeout", r#"timeout = "10s""#),
    AttrKey::value("max_output", r#"max_output = "64 KiB""#),
    AttrKey::value("truncate", "truncate = head"),
    AttrKey::value("parallel", "parallel = shared"),
    AttrKey::value("task", "task = optional"),
    AttrKey::list("scopes", r#"scopes("oracle")"#),
    AttrKey::flag("requires_auth"),
    AttrKey::flag("hidden"),
    AttrKey::flag("experimental"),
    AttrKey::flag("streaming"),
    AttrKey::value("init", "init = my_function"),
    AttrKey::value("schema", r#"schema = "schemas/read_page.json""#),
    AttrKey::value("register", "register = false"),
    AttrKey::value("crate", "crate = my_tool_sdk"),
    AttrKey::none("desc", "write `description = \"..\"`, or a `///` comment above the function"),
    AttrKey::none("doc", "write it as a `///` comment above the function"),
    AttrKey::none("required", APPROVAL),
    AttrKey::none("resources", APPROVAL),
    AttrKey::none("suggest", APPROVAL),
    AttrKey::none("covers", APPROVAL),
    AttrKey::none("dangerous", APPROVAL),
    AttrKey::none("facts", APPROVAL),
    AttrKey::none("primary", DISPLAY),
    AttrKey::none("show", DISPLAY),
    AttrKey::none("summary", DISPLAY),
    AttrKey::none("result", DISPLAY),
    AttrKey::none("preview", DISPLAY),
    AttrKey::none("ui", DISPLAY),
    AttrKey::none("by", "write `parallel = by(path)`"),
    AttrKey::none("async", "write it before `fn`"),
    AttrKey::none("version", "remove it; it is that of the package"),
    AttrKey::none("risk", "write `read`, `write` or `execute` alone"),
];

/// Where items were written that belong into a list of their own.
const APPROVAL: &str = "write it in `approval(..)`, as in `approval(required = my_function)`";
const DISPLAY: &str = "write it in `display(..)`, as in `display(primary = path)`";

/// The position of a function with `#[tool]`.
pub(crate) enum ToolSite<'s> {
    /// Anywhere but in an `impl` block.
    Free,
    /// In a `#[toolset]` of this type.
    Method { runtime: &'s RuntimePath, owner: &'s str, block: Span },
}

/// Returns the runtime that `items` name, without reporting mistakes.
pub(crate) fn named_runtime(items: &[AttrItem]) -> RuntimePath {
    let named = items.iter().find(|item| item.key == "crate");
    let expr = named.and_then(|item| match &item.value {
        AttrValue::Expr(expr) => Some(&**expr),
        _ => None,
    });
    RuntimePath::named(expr, &mut Diagnostics::default())
}

/// Returns the tool for `function`, or `None` when `diag` has the reasons against it.
pub(crate) fn lower_tool(
    items: &[AttrItem],
    function: &ToolFunction,
    site: &ToolSite<'_>,
    diag: &mut Diagnostics,
) -> Option<ToolModel> {
    let items = attr::check_items(items, KEYS, "#[tool]", diag);
    let runtime = lower_runtime(&items, site, diag);
    signature::check_signature(function, site, diag);
    let mut params = param::lower_params(function, diag);
    let mut names = ParamNames::new(&params);
    let mut hooks = display::lower_approval(&items, diag);
    hooks.extend(display::lower_validate(&items, diag));
    let display = display::lower_display(&items, &mut names, &mut hooks, diag);
    let parallel = display::lower_parallel(&items, &mut names, diag);
    let fields = names.fields;
    let name = lower_name(&items, function, diag);
    let aliases = lower_aliases(&items, &name, diag);
    let description = lower_description(&items, function, diag);
    let examples = example::lower_examples(&items, &params, diag);
    let risk = lower_risk(&items, diag);
    let limits = CallLimits { parallel, ..lower_limits(&items, diag) };
    let registered = is_registered(&items, diag);
    let title = lower_line(&items, "title", diag);
    let category = lower_line(&items, "category", diag);
    let permission = lower_permission(&items, diag);
    let scopes = lower_scopes(&items, diag);
    let init = display::lower_function(&items, "init", &["session"], diag);
    if !hooks.is_empty() && params.strukt.is_none() {
        check_args_name(function, site, diag);
    }
    if registered && matches!(site, ToolSite::Free) && diag.is_empty() {
        check_unique(&items, function, &name, &aliases, diag);
    }
    let lock = items.string("schema", diag);
    lock.iter().for_each(|path| schema_lock::check_path(path, diag));
    if !diag.is_empty() {
        return None;
    }
    let ident = &function.sig.ident;
    let schema_lock = lock.map(|path| {
        let signature = LockedSignature { ident, description: &description, params: &params };
        schema_lock::lower_lock(&path, &schema_test(ident, site), &signature)
    });
    let claims = claimed_names(&items, function, &name, &aliases);
    let args = match hooks.is_empty() {
        true => Ident::new("__Args", span::macro_span(ident)),
        false => args_ident(ident, site),
    };
    let passed = std::mem::take(&mut params.passed);
    Some(ToolModel {
        ident: ident.clone(),
        generics: match site {
            ToolSite::Free => ident.span(),
            ToolSite::Method { block, .. } => *block,
        },
        vis: span::with_macro_spans(function.vis.to_token_stream()),
        cfgs: cfg_attributes(&function.attrs),
        runtime,
        is_deprecated: function.attrs.iter().any(|attr| attr.path().is_ident("deprecated")),
        is_async: function.sig.asyncness.is_some(),
        output: output_type(&function.sig.output),
        input: match params.strukt {
            Some(ty) => ToolInput::Struct { ty: ty.to_token_stream(), fields },
            None => ToolInput::Params { args, params: params.sent },
        },
        passed,
        name,
        aliases: aliases.iter().map(LitStr::value).collect(),
        title,
        description,
        category,
        examples,
        risk,
        permission,
        display,
        hooks,
        limits,
        scopes,
        flags: lower_flags(&items),
        init,
        registered,
        claims,
        schema_lock,
    })
}

/// Returns the name of the struct that holds the arguments of `function`.
pub(crate) fn args_ident(function: &Ident, site: &ToolSite<'_>) -> Ident {
    let owner = match site {
        ToolSite::Free => "",
        ToolSite::Method { owner, .. } => owner,
    };
    let camel = text::camel_case(&function.unraw().to_string());
    Ident::new(&format!("{owner}{camel}Args"), span::macro_span(function))
}

/// Whether another tool of the same name precedes `function`. rustc then reports the function,
/// the type and everything that is named after it.
pub(super) fn is_repeated(function: &ToolFunction, diag: &mut Diagnostics) -> bool {
    let ident = &function.sig.ident;
    let first = sibling_items::first_line_of_repeated(ItemAnchor::Function, ident);
    if let Some(line) = first {
        let what = format_args!("duplicate function `{}`, as in line {line}", ident.unraw());
        diag.error(ident, what, "rename one of them");
    }
    first.is_some()
}

/// Whether the user has a type with the name of the struct of arguments.
pub(crate) fn has_own_args(function: &Ident, site: &ToolSite<'_>) -> bool {
    let args = args_ident(function, site).to_string();
    match site {
        ToolSite::Free => sibling_items::has_type(ItemAnchor::Function, function, &args),
        ToolSite::Method { owner, .. } => syn::parse_str::<Ident>(owner).is_ok_and(|mut owner| {
            owner.set_span(function.span());
            sibling_items::has_type(ItemAnchor::Block, &owner, &args)
        }),
    }
}

fn check_args_name(function: &ToolFunction, site: &ToolSite<'_>, diag: &mut Diagnostics) {
    let ident = &function.sig.ident;
    if has_own_args(ident, site) {
        let what = format_args!("`{}` is taken, which `#[tool]` defines", args_ident(ident, site));
        let help = "remove the type, or rename it; hooks get the parameters of the function";
        diag.error(ident, what, help);
    }
}

/// Returns the name of the module in which the committed schema of `function` is tested.
fn schema_test(function: &Ident, site: &ToolSite<'_>) -> String {
    let owner = match site {
        ToolSite::Free => String::new(),
        ToolSite::Method { owner, .. } => format!("{}_", owner.to_lowercase()),
    };
    format!("schema_of_{owner}{}", function.unraw())
}

/// Returns the attributes that decide whether an item exists.
pub(crate) fn cfg_attributes(attributes: &[Attribute]) -> TokenStream {
    let decides = |attribute: &&Attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg_attr") => {
            list.tokens.clone().into_iter().any(|token| token.to_string() == "cfg")
        }
        meta => meta.path().is_ident("cfg"),
    };
    let cfgs = attributes.iter().filter(decides);
    quote!(#(#cfgs)*)
}

fn lower_runtime(
    items: &CheckedItems<'_>,
    site: &ToolSite<'_>,
    diag: &mut Diagnostics,
) -> RuntimePath {
    let ToolSite::Method { runtime, .. } = site else {
        return RuntimePath::named(items.expr("crate"), diag);
    };
    if let Some(key) = items.key("crate") {
        diag.error(key, "`crate` must not be on a method", "write `#[toolset(crate = ..)]`");
    }
    if let Some(key) = items.key("register") {
        diag.error(
            key,
            "`register` must not be on a method",
            "remove it; a toolset is added with its value",
        );
    }
    (*runtime).clone()
}

fn lower_name(items: &CheckedItems<'_>, function: &ToolFunction, diag: &mut Diagnostics) -> String {
    let ident = &function.sig.ident;
    if !items.mentions("name") {
        let name = ident.unraw().to_string();
        if !text::is_tool_name(&name) {
            let what = format_args!("name `{name}` must be {NAME_RULE}");
            diag.error(ident, what, "add `name = \"..\"` to `#[tool]`");
        }
        return name;
    }
    let literal = items.string("name", diag);
    literal.map(|literal| check_name(&literal, diag)).unwrap_or_default()
}

fn check_name(literal: &LitStr, diag: &mut Diagnostics) -> String {
    let name = literal.value();
    if !text::is_tool_name(&name) {
        let what = format_args!("name `{name}` must be {NAME_RULE}");
        diag.error(literal, what, "write a name such as `read_page`");
    }
    name
}

fn lower_aliases(items: &CheckedItems<'_>, name: &str, diag: &mut Diagnostics) -> Vec<LitStr> {
    let mut taken = HashMap::from([(name.to_lowercase(), "the name of the tool")]);
    let mut aliases = Vec::new();
    for literal in items.string_list("aliases", diag) {
        let alias = check_name(&literal, diag);
        match taken.insert(alias.to_lowercase(), "another alias") {
            Some(other) => diag.error(
                &literal,
                format_args!("duplicate `{alias}`, which is {other}; case does not count"),
                "remove it",
            ),
            None => aliases.push(literal),
        }
    }
    aliases
}

/// Returns the text after `key`, which is shown in a list.
pub(super) fn lower_line(
    items: &CheckedItems<'_>,
    key: &str,
    diag: &mut Diagnostics,
) -> Option<String> {
    let literal = items.string(key, diag)?;
    check_line(&literal, &format!("`{key}`"), diag);
    Some(literal.value())
}

/// Returns a text of one line that is not empty.
pub(super) fn check_line(literal: &LitStr, what: &str, diag: &mut Diagnostics) {
    let text = literal.value();
    if text.trim().is_empty() {
        diag.error(literal, format_args!("{what} must not be empty"), "write a word, or remove it");
    } else if text.contains(char::is_control) {
        diag.error(
            literal,
            format_args!("{what} must be one line of text"),
            "write it in one line",
        );
    }
}

/// Returns the permission name, which must be valid in a rule.
fn lower_permission(items: &CheckedItems<'_>, diag: &mut Diagnostics) -> Option<String> {
    let literal = items.string("permission", diag)?;
    let name = literal.value();
    if !text::is_tool_name(&name) {
        let what = format_args!("`permission` must be {NAME_RULE}");
        diag.error(literal, what, "write a name such as `edit`; patterns stand in rules");
    }
    Some(name)
}

fn lower_scopes(items: &CheckedItems<'_>, diag: &mut Diagnostics) -> Vec<String> {
    let mut scopes = Vec::new();
    for literal in items.string_list("scopes", diag) {
        let scope = literal.value();
        check_line(&literal, "scope", diag);
        if scopes.contains(&scope) {
            diag.error(&literal, format_args!("duplicate scope `{scope}`"), "keep one of them");
        }
        scopes.push(scope);
    }
    scopes
}

/// Reports names that another tool of the crate has.
fn check_unique(
    items: &CheckedItems<'_>,
    function: &ToolFunction,
    name: &str,
    aliases: &[LitStr],
    diag: &mut Diagnostics,
) {
    let ident = &function.sig.ident;
    let at = items.expr("name").map_or_else(|| ident.to_token_stream(), ToTokens::to_token_stream);
    let aliases = aliases.iter().map(|alias| (alias.value(), alias.to_token_stream()));
    for (name, at) in std::iter::once((name.to_owned(), at)).chain(aliases) {
        if let Some(place) = sibling_items::tool_of_name(&text::name_identifier(&name), ident) {
            let what = format_args!("duplicate tool `{name}`, as in {place}");
            diag.error(at, what, "rename one of them, or write `name = \"..\"`");
        }
    }
}

/// Returns the name and the aliases as identifiers, each at its location.
fn claimed_names(
    items: &CheckedItems<'_>,
    function: &ToolFunction,
    name: &str,
    aliases: &[LitStr],
) -> Vec<Ident> {
    let written = items.expr("name").map(span::macro_span);
    let at = written.unwrap_or_else(|| span::macro_span(&function.sig.ident));
    let aliases = aliases.iter().map(|alias| (alias.value(), span::macro_span(alias)));
    let names = std::iter::once((name.to_owned(), at)).chain(aliases);
    names.map(|(name, at)| Ident::new(&text::name_identifier(&name), at)).collect()
}

fn lower_description(
    items: &CheckedItems<'_>,
    function: &ToolFunction,
    diag: &mut Diagnostics,
) -> DocText {
    if items.mentions("description") {
        let text = items.expr("description").map(|expr| match attr::as_literal(expr) {
            Some(Lit::Str(text)) => check_text(text, diag),
            Some(_) => {
                let help = "write a string, or the name of a constant that is one";
                diag.error(expr, "`description` must be text", help);
                DocText::Literal(String::new())
            }
            None => check_computed_text(&attr::to_user_tokens(expr), expr),
        });
        return text.unwrap_or_else(|| DocText::Literal(String::new()));
    }
    if items.mentions("desc") {
        return DocText::Literal(String::new());
    }
    let text = docs::doc_text(&function.attrs).map(|text| match text {
        DocText::Expr(text) => check_computed_text(&text, &function.sig.ident),
        known => known,
    });
    text.unwrap_or_else(|| {
        diag.error(
            &function.sig.ident,
            format_args!("tool `{}` has no description", function.sig.ident.unraw()),
            "add a `///` comment that tells the model when to use it",
        );
        DocText::Literal(String::new())
    })
}

/// Checks that a description that only rustc knows is not empty.
fn check_computed_text(text: &TokenStream, at: &impl Spanned) -> DocText {
    let message = format!("{NO_DESCRIPTION}\nhelp: {SAY_WHEN}");
    DocText::Expr(quote_spanned! {span::macro_span(at)=>
        const {
            let __text: &'static ::core::primitive::str = #text;
            ::core::assert!(!__text.trim_ascii().is_empty(), #message);
            __text
        }
    })
}

/// The error for an empty description.
const NO_DESCRIPTION: &str = "`description` must not be empty";
const SAY_WHEN: &str = "tell the model when to use the tool";

fn check_text(literal: &LitStr, diag: &mut Diagnostics) -> DocText {
    let text = literal.value();
    if text.trim().is_empty() {
        diag.error(literal, NO_DESCRIPTION, SAY_WHEN);
    }
    DocText::Literal(text)
}

fn lower_risk(items: &CheckedItems<'_>, diag: &mut Diagnostics) -> ToolRisk {
    let classes = [("read", "Read"), ("write", "Write"), ("execute", "Execute")];
    let written = items.in_order(&classes.map(|(key, _)| key));
    if let [first, others @ ..] = written.as_slice() {
        for other in others {
            diag.error(other, format_args!("`{other}` contradicts `{first}`"), "keep one of them");
        }
    }
    let class = written.first().and_then(|first| classes.iter().find(|(key, _)| first == key));
    if let ([first], Some(destructive)) = (written.as_slice(), items.key("destructive"))
        && *first == "read"
    {
        diag.error(destructive, "`destructive` contradicts `read`", "write `write, destructive`");
    }
    let facts = ["destructive", "idempotent", "open_world"];
    ToolRisk {
        class: class.map_or("Execute", |(_, class)| class),
        facts: facts.into_iter().filter(|fact| items.flag(fact)).collect(),
    }
}

fn lower_limits(items: &CheckedItems<'_>, diag: &mut Diagnostics) -> CallLimits {
    let timeout_ms = items.string("timeout", diag).and_then(|literal| {
        let time = text::duration_ms(&literal.value());
        parse_positive(time, "`timeout` must be a whole number and its unit", &literal, TIME, diag)
    });
    let max_output = items.string("max_output", diag).and_then(|literal| {
        let size = text::size_bytes(&literal.value());
        parse_positive(size, "`max_output` must be a size in bytes", &literal, SIZE, diag)
    });
    let truncate = items.expr("truncate").and_then(|expr| lower_truncate(expr, diag));
    let task = items.expr("task").and_then(|expr| lower_task_support(expr, diag));
    CallLimits { timeout_ms, max_output, truncate, parallel: None, task }
}

/// The help for times.
const TIME: &str = "write one number and one unit, as in `500ms`, `10s`, `2m` or `1h`";

/// The help for sizes.
const SIZE: &str = "write `4096`, `10 KB` or `64 KiB`";

/// Parses a number in `literal`, which must be above zero.
fn parse_positive<N: From<u8> + PartialEq>(
    number: Option<N>,
    unread: &str,
    literal: &LitStr,
    help: &str,
    diag: &mut Diagnostics,
) -> Option<N> {
    match number {
        None => diag.error(literal, unread, help),
        Some(number) if number == N::from(0) => {
            diag.error(literal, format_args!("`{}` must be above zero", literal.value()), help);
        }
        Some(number) => return Some(number),
    }
    None
}

fn lower_truncate(expr: &Expr, diag: &mut Diagnostics) -> Option<&'static str> {
    match attr::as_ident(expr).map(ToString::to_string).as_deref() {
        Some("head") => Some("Head"),
        Some("tail") => Some("Tail"),
        Some("middle") => Some("Middle"),
        Some("none") => Some("None"),
        _ => {
            diag.error(
                expr,
                "expected `head`, `tail`, `middle` or `none`",
                "write the part to keep, as in `truncate = head`",
            );
            None
        }
    }
}

fn lower_task_support(expr: &Expr, diag: &mut Diagnostics) -> Option<&'static str> {
    match attr::as_ident(expr).map(ToString::to_string).as_deref() {
        Some("optional") => Some("Optional"),
        Some("required") => Some("Required"),
        _ => {
            diag.error(
                expr,
                "expected `optional` or `required`",
                "write whether clients must run it as a task, as in `task = optional`",
            );
            None
        }
    }
}

fn lower_flags(items: &CheckedItems<'_>) -> Vec<&'static str> {
    let flags = ["requires_auth", "hidden", "experimental", "streaming"];
    flags.into_iter().filter(|flag| items.flag(flag)).collect()
}

fn is_registered(items: &CheckedItems<'_>, diag: &mut Diagnostics) -> bool {
    let Some(expr) = items.expr("register") else { return true };
    match attr::as_literal(expr) {
        Some(Lit::Bool(value)) => value.value,
        _ => {
            diag.error(expr, "`register` must be `true` or `false`", items.form("register"));
            true
        }
    }
}

fn output_type(output: &ReturnType) -> TokenStream {
    match output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    }
}
