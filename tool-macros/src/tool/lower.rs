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

use super::model::{Input, Limits, Risk, Tool};
use super::param;
use super::parse::Function;
use super::schema_lock::{self, Signature};
use super::show::{self, Names};
use super::text::{self, NAME_RULE};
use super::{example, signature};
use crate::attr::{self, Item, Items, Key, Value};
use crate::beside::{self, Anchor};
use crate::diag::Diagnostics;
use crate::docs::{self, Text};
use crate::runtime::Runtime;
use crate::span;

/// The items of `#[tool(..)]`.
pub(super) const KEYS: &[Key] = &[
    Key::value("name", r#"name = "look_up""#),
    Key::value("title", r#"title = "Read a file""#),
    Key::list("aliases", r#"aliases("read", "open")"#),
    Key::value("category", r#"category = "filesystem""#),
    Key::value("description", "description = DESCRIPTION"),
    Key::value("example", "example = r#\"{\"path\": \"a\"}\"#").repeatable(),
    Key::flag("read"),
    Key::flag("write"),
    Key::flag("execute"),
    Key::flag("destructive"),
    Key::flag("idempotent"),
    Key::flag("open_world"),
    Key::value("permission", r#"permission = "edit""#),
    Key::list("approval", "approval(required = my_function)"),
    Key::value("validate", "validate = my_function"),
    Key::list("display", "display(primary = path)"),
    Key::value("timeout", r#"timeout = "10s""#),
    Key::value("max_output", r#"max_output = "64 KiB""#),
    Key::value("truncate", "truncate = head"),
    Key::value("parallel", "parallel = shared"),
    Key::value("task", "task = optional"),
    Key::list("scopes", r#"scopes("oracle")"#),
    Key::flag("requires_auth"),
    Key::flag("hidden"),
    Key::flag("experimental"),
    Key::flag("streaming"),
    Key::value("init", "init = my_function"),
    Key::value("schema", r#"schema = "schemas/read_page.json""#),
    Key::value("register", "register = false"),
    Key::value("crate", "crate = my_tool_sdk"),
    Key::none("desc", "write `description = \"..\"`, or a `///` comment above the function"),
    Key::none("doc", "write it as a `///` comment above the function"),
    Key::none("required", APPROVAL),
    Key::none("resources", APPROVAL),
    Key::none("suggest", APPROVAL),
    Key::none("covers", APPROVAL),
    Key::none("dangerous", APPROVAL),
    Key::none("facts", APPROVAL),
    Key::none("primary", DISPLAY),
    Key::none("show", DISPLAY),
    Key::none("summary", DISPLAY),
    Key::none("result", DISPLAY),
    Key::none("preview", DISPLAY),
    Key::none("ui", DISPLAY),
    Key::none("by", "write `parallel = by(path)`"),
    Key::none("async", "write it before `fn`"),
    Key::none("version", "remove it; it is that of the package"),
    Key::none("risk", "write `read`, `write` or `execute` alone"),
];

/// Where items were written that belong into a list of their own.
const APPROVAL: &str = "write it in `approval(..)`, as in `approval(required = my_function)`";
const DISPLAY: &str = "write it in `display(..)`, as in `display(primary = path)`";

/// The position of a function with `#[tool]`.
pub(crate) enum Site<'s> {
    /// Anywhere but in an `impl` block.
    Free,
    /// In a `#[toolset]` of this type.
    Method { runtime: &'s Runtime, owner: &'s str, block: Span },
}

/// Returns the runtime that `items` name, without reporting mistakes.
pub(crate) fn runtime(items: &[Item]) -> Runtime {
    let named = items.iter().find(|item| item.key == "crate");
    let expr = named.and_then(|item| match &item.value {
        Value::Expr(expr) => Some(&**expr),
        _ => None,
    });
    Runtime::named(expr, &mut Diagnostics::default())
}

/// Returns the tool for `function`, or `None` when `diag` has the reasons against it.
pub(crate) fn tool(
    items: &[Item],
    function: &Function,
    site: &Site<'_>,
    diag: &mut Diagnostics,
) -> Option<Tool> {
    let items = attr::checked(items, KEYS, "#[tool]", diag);
    let runtime = plumbing(&items, site, diag);
    signature::check(function, site, diag);
    let mut params = param::lower(function, diag);
    let mut names = Names::new(&params);
    let mut hooks = show::approval(&items, diag);
    hooks.extend(show::validate(&items, diag));
    let display = show::display(&items, &mut names, &mut hooks, diag);
    let parallel = show::parallel(&items, &mut names, diag);
    let fields = names.fields;
    let name = name(&items, function, diag);
    let aliases = aliases(&items, &name, diag);
    let description = description(&items, function, diag);
    let examples = example::lower(&items, &params, diag);
    let risk = risk(&items, diag);
    let limits = Limits { parallel, ..limits(&items, diag) };
    let registered = registered(&items, diag);
    let title = line(&items, "title", diag);
    let category = line(&items, "category", diag);
    let permission = permission(&items, diag);
    let scopes = scopes(&items, diag);
    let init = show::function(&items, "init", &["session"], diag);
    if !hooks.is_empty() && params.strukt.is_none() {
        free_name_of_args(function, site, diag);
    }
    if registered && matches!(site, Site::Free) && diag.is_empty() {
        unique(&items, function, &name, &aliases, diag);
    }
    let lock = items.string("schema", diag);
    lock.iter().for_each(|path| schema_lock::checked_path(path, diag));
    if !diag.is_empty() {
        return None;
    }
    let ident = &function.sig.ident;
    let schema_lock = lock.map(|path| {
        let signature = Signature { ident, description: &description, params: &params };
        schema_lock::lower(&path, &schema_test(ident, site), &signature)
    });
    let claims = claims(&items, function, &name, &aliases);
    let args = match hooks.is_empty() {
        true => Ident::new("__Args", span::at(ident)),
        false => args_ident(ident, site),
    };
    let passed = std::mem::take(&mut params.passed);
    Some(Tool {
        ident: ident.clone(),
        generics: match site {
            Site::Free => ident.span(),
            Site::Method { block, .. } => *block,
        },
        vis: span::generated(function.vis.to_token_stream()),
        cfgs: cfgs(&function.attrs),
        runtime,
        is_deprecated: function.attrs.iter().any(|attr| attr.path().is_ident("deprecated")),
        is_async: function.sig.asyncness.is_some(),
        output: output(&function.sig.output),
        input: match params.strukt {
            Some(ty) => Input::Struct { ty: ty.to_token_stream(), fields },
            None => Input::Params { args, params: params.sent },
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
        flags: flags(&items),
        init,
        registered,
        claims,
        schema_lock,
    })
}

/// Returns the name of the struct that holds the arguments of `function`.
pub(crate) fn args_ident(function: &Ident, site: &Site<'_>) -> Ident {
    let owner = match site {
        Site::Free => "",
        Site::Method { owner, .. } => owner,
    };
    let camel = text::camel_case(&function.unraw().to_string());
    Ident::new(&format!("{owner}{camel}Args"), span::at(function))
}

/// Whether another tool of the same name precedes `function`. rustc then reports the function,
/// the type and everything that is named after it.
pub(super) fn is_repeated(function: &Function, diag: &mut Diagnostics) -> bool {
    let ident = &function.sig.ident;
    let first = beside::first(Anchor::Function, ident);
    if let Some(line) = first {
        let what = format_args!("duplicate function `{}`, as in line {line}", ident.unraw());
        diag.error(ident, what, "rename one of them");
    }
    first.is_some()
}

/// Whether the user has a type with the name of the struct of arguments.
pub(crate) fn has_own_args(function: &Ident, site: &Site<'_>) -> bool {
    let args = args_ident(function, site).to_string();
    match site {
        Site::Free => beside::has_type(Anchor::Function, function, &args),
        Site::Method { owner, .. } => syn::parse_str::<Ident>(owner).is_ok_and(|mut owner| {
            owner.set_span(function.span());
            beside::has_type(Anchor::Block, &owner, &args)
        }),
    }
}

fn free_name_of_args(function: &Function, site: &Site<'_>, diag: &mut Diagnostics) {
    let ident = &function.sig.ident;
    if has_own_args(ident, site) {
        let what = format_args!("`{}` is taken, which `#[tool]` defines", args_ident(ident, site));
        let help = "remove the type, or rename it; hooks get the parameters of the function";
        diag.error(ident, what, help);
    }
}

/// Returns the name of the module in which the committed schema of `function` is tested.
fn schema_test(function: &Ident, site: &Site<'_>) -> String {
    let owner = match site {
        Site::Free => String::new(),
        Site::Method { owner, .. } => format!("{}_", owner.to_lowercase()),
    };
    format!("schema_of_{owner}{}", function.unraw())
}

/// Returns the attributes that decide whether an item exists.
pub(crate) fn cfgs(attributes: &[Attribute]) -> TokenStream {
    let decides = |attribute: &&Attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg_attr") => {
            list.tokens.clone().into_iter().any(|token| token.to_string() == "cfg")
        }
        meta => meta.path().is_ident("cfg"),
    };
    let cfgs = attributes.iter().filter(decides);
    quote!(#(#cfgs)*)
}

fn plumbing(items: &Items<'_>, site: &Site<'_>, diag: &mut Diagnostics) -> Runtime {
    let Site::Method { runtime, .. } = site else {
        return Runtime::named(items.expr("crate"), diag);
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

fn name(items: &Items<'_>, function: &Function, diag: &mut Diagnostics) -> String {
    let ident = &function.sig.ident;
    if !items.mentions("name") {
        let name = ident.unraw().to_string();
        if !text::is_name(&name) {
            let what = format_args!("name `{name}` must be {NAME_RULE}");
            diag.error(ident, what, "add `name = \"..\"` to `#[tool]`");
        }
        return name;
    }
    let literal = items.string("name", diag);
    literal.map(|literal| checked_name(&literal, diag)).unwrap_or_default()
}

fn checked_name(literal: &LitStr, diag: &mut Diagnostics) -> String {
    let name = literal.value();
    if !text::is_name(&name) {
        let what = format_args!("name `{name}` must be {NAME_RULE}");
        diag.error(literal, what, "write a name such as `read_page`");
    }
    name
}

fn aliases(items: &Items<'_>, name: &str, diag: &mut Diagnostics) -> Vec<LitStr> {
    let mut taken = HashMap::from([(name.to_lowercase(), "the name of the tool")]);
    let mut aliases = Vec::new();
    for literal in items.string_list("aliases", diag) {
        let alias = checked_name(&literal, diag);
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
pub(super) fn line(items: &Items<'_>, key: &str, diag: &mut Diagnostics) -> Option<String> {
    let literal = items.string(key, diag)?;
    checked_line(&literal, &format!("`{key}`"), diag);
    Some(literal.value())
}

/// Returns a text of one line that is not empty.
pub(super) fn checked_line(literal: &LitStr, what: &str, diag: &mut Diagnostics) {
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
fn permission(items: &Items<'_>, diag: &mut Diagnostics) -> Option<String> {
    let literal = items.string("permission", diag)?;
    let name = literal.value();
    if !text::is_name(&name) {
        let what = format_args!("`permission` must be {NAME_RULE}");
        diag.error(literal, what, "write a name such as `edit`; patterns stand in rules");
    }
    Some(name)
}

fn scopes(items: &Items<'_>, diag: &mut Diagnostics) -> Vec<String> {
    let mut scopes = Vec::new();
    for literal in items.string_list("scopes", diag) {
        let scope = literal.value();
        checked_line(&literal, "scope", diag);
        if scopes.contains(&scope) {
            diag.error(&literal, format_args!("duplicate scope `{scope}`"), "keep one of them");
        }
        scopes.push(scope);
    }
    scopes
}

/// Reports names that another tool of the crate has.
fn unique(
    items: &Items<'_>,
    function: &Function,
    name: &str,
    aliases: &[LitStr],
    diag: &mut Diagnostics,
) {
    let ident = &function.sig.ident;
    let at = items.expr("name").map_or_else(|| ident.to_token_stream(), ToTokens::to_token_stream);
    let aliases = aliases.iter().map(|alias| (alias.value(), alias.to_token_stream()));
    for (name, at) in std::iter::once((name.to_owned(), at)).chain(aliases) {
        if let Some(place) = beside::tool_of_name(&text::identifier(&name), ident) {
            let what = format_args!("duplicate tool `{name}`, as in {place}");
            diag.error(at, what, "rename one of them, or write `name = \"..\"`");
        }
    }
}

/// Returns the name and the aliases as identifiers, each at its location.
fn claims(items: &Items<'_>, function: &Function, name: &str, aliases: &[LitStr]) -> Vec<Ident> {
    let written = items.expr("name").map(span::at);
    let at = written.unwrap_or_else(|| span::at(&function.sig.ident));
    let aliases = aliases.iter().map(|alias| (alias.value(), span::at(alias)));
    let names = std::iter::once((name.to_owned(), at)).chain(aliases);
    names.map(|(name, at)| Ident::new(&text::identifier(&name), at)).collect()
}

fn description(items: &Items<'_>, function: &Function, diag: &mut Diagnostics) -> Text {
    if items.mentions("description") {
        let text = items.expr("description").map(|expr| match attr::literal(expr) {
            Some(Lit::Str(text)) => given_text(text, diag),
            Some(_) => {
                let help = "write a string, or the name of a constant that is one";
                diag.error(expr, "`description` must be text", help);
                Text::Literal(String::new())
            }
            None => computed(&attr::tokens(expr), expr),
        });
        return text.unwrap_or_else(|| Text::Literal(String::new()));
    }
    if items.mentions("desc") {
        return Text::Literal(String::new());
    }
    let text = docs::text(&function.attrs).map(|text| match text {
        Text::Expr(text) => computed(&text, &function.sig.ident),
        known => known,
    });
    text.unwrap_or_else(|| {
        diag.error(
            &function.sig.ident,
            format_args!("tool `{}` has no description", function.sig.ident.unraw()),
            "add a `///` comment that tells the model when to use it",
        );
        Text::Literal(String::new())
    })
}

/// Checks that a description that only rustc knows is not empty.
fn computed(text: &TokenStream, at: &impl Spanned) -> Text {
    let message = format!("{NO_DESCRIPTION}\nhelp: {SAY_WHEN}");
    Text::Expr(quote_spanned! {span::at(at)=>
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

fn given_text(literal: &LitStr, diag: &mut Diagnostics) -> Text {
    let text = literal.value();
    if text.trim().is_empty() {
        diag.error(literal, NO_DESCRIPTION, SAY_WHEN);
    }
    Text::Literal(text)
}

fn risk(items: &Items<'_>, diag: &mut Diagnostics) -> Risk {
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
    Risk {
        class: class.map_or("Execute", |(_, class)| class),
        facts: facts.into_iter().filter(|fact| items.flag(fact)).collect(),
    }
}

fn limits(items: &Items<'_>, diag: &mut Diagnostics) -> Limits {
    let timeout_ms = items.string("timeout", diag).and_then(|literal| {
        let time = text::duration_ms(&literal.value());
        positive(time, "`timeout` must be a whole number and its unit", &literal, TIME, diag)
    });
    let max_output = items.string("max_output", diag).and_then(|literal| {
        let size = text::size(&literal.value());
        positive(size, "`max_output` must be a size in bytes", &literal, SIZE, diag)
    });
    let truncate = items.expr("truncate").and_then(|expr| truncate(expr, diag));
    let task = items.expr("task").and_then(|expr| task_support(expr, diag));
    Limits { timeout_ms, max_output, truncate, parallel: None, task }
}

/// The help for times.
const TIME: &str = "write one number and one unit, as in `500ms`, `10s`, `2m` or `1h`";

/// The help for sizes.
const SIZE: &str = "write `4096`, `10 KB` or `64 KiB`";

/// Parses a number in `literal`, which must be above zero.
fn positive<N: From<u8> + PartialEq>(
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

fn truncate(expr: &Expr, diag: &mut Diagnostics) -> Option<&'static str> {
    match attr::ident(expr).map(ToString::to_string).as_deref() {
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

fn task_support(expr: &Expr, diag: &mut Diagnostics) -> Option<&'static str> {
    match attr::ident(expr).map(ToString::to_string).as_deref() {
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

fn flags(items: &Items<'_>) -> Vec<&'static str> {
    let flags = ["requires_auth", "hidden", "experimental", "streaming"];
    flags.into_iter().filter(|flag| items.flag(flag)).collect()
}

fn registered(items: &Items<'_>, diag: &mut Diagnostics) -> bool {
    let Some(expr) = items.expr("register") else { return true };
    match attr::literal(expr) {
        Some(Lit::Bool(value)) => value.value,
        _ => {
            diag.error(expr, "`register` must be `true` or `false`", items.form("register"));
            true
        }
    }
}

fn output(output: &ReturnType) -> TokenStream {
    match output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    }
}
