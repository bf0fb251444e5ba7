//! All rules about how a call is shown and authorized: `display`, `approval`, `parallel`.
//!
//! The names in them must be parameters. Flattened ones are looked up here; the fields of an
//! `Args<T>` are left to rustc, at the token that names them.

use proc_macro2::{Literal, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::{Expr, ExprClosure, Ident, LitStr};

use super::lower;
use super::model::{Display, Hooks, Parallel, Summary};
use super::param::Params;
use super::text::{self, Piece};
use crate::attr::{self, Items, Key};
use crate::diag::{Diagnostics, expected_one_of};
use crate::span;

/// The items of `display(..)`.
pub(super) const DISPLAY: &[Key] = &[
    Key::value("name", r#"name = "Read""#),
    Key::value("primary", "primary = path"),
    Key::list("show", "show(path, offset)"),
    Key::value("summary", r#"summary = "Reading {path}""#),
    Key::value("result", "result = my_function"),
    Key::value("preview", "preview = my_function"),
    Key::value("ui", r#"ui = "ui://shelf/board""#),
];

/// The items of `approval(..)`.
pub(super) const APPROVAL: &[Key] = &[
    Key::value("required", "required = my_function"),
    Key::value("resources", "resources = my_function"),
    Key::value("suggest", "suggest = my_function"),
    Key::value("covers", "covers = my_function"),
    Key::value("dangerous", "dangerous = my_function"),
    Key::value("facts", "facts = my_function"),
];

/// Finds parameters by name and remembers which fields of a struct were named.
pub(super) struct Names<'p> {
    params: &'p Params,
    pub(super) fields: Vec<Ident>,
}

impl<'p> Names<'p> {
    /// Looks up names among `params`.
    pub(super) fn new(params: &'p Params) -> Self {
        Self { params, fields: Vec::new() }
    }

    /// Returns the JSON name and the field of the parameter that `item` calls `name`.
    fn find(
        &mut self,
        name: &Ident,
        item: &str,
        diag: &mut Diagnostics,
    ) -> Option<(String, Ident)> {
        let plain = name.unraw().to_string();
        if self.params.strukt.is_some() {
            self.fields.push(name.clone());
            return Some((plain, name.clone()));
        }
        self.look_up(&plain, item, name, diag)
    }

    /// Looks up a flattened parameter; reports mistakes at `at`.
    fn look_up(
        &self,
        name: &str,
        item: &str,
        at: impl ToTokens,
        diag: &mut Diagnostics,
    ) -> Option<(String, Ident)> {
        let Some(param) = self.params.sent.iter().find(|param| param.ident.unraw() == name) else {
            self.unknown(name, item, at, diag);
            return None;
        };
        if param.is_sensitive {
            diag.error(
                at,
                format_args!("sensitive parameter `{name}` must not be in `{item}`"),
                "show another parameter",
            );
            return None;
        }
        let mut field = param.ident.clone();
        field.set_span(span::at(&at));
        Some((param.key.clone(), field))
    }

    fn unknown(&self, name: &str, item: &str, at: impl ToTokens, diag: &mut Diagnostics) {
        if !self.params.is_complete {
            return;
        }
        if self.params.lent.iter().any(|lent| lent == name) {
            diag.error(
                at,
                format_args!("`{name}` in `{item}` must be a parameter that the model sends"),
                "name another parameter",
            );
            return;
        }
        let names: Vec<String> =
            self.params.sent.iter().map(|param| param.ident.unraw().to_string()).collect();
        let help = expected_one_of(name, names.iter().map(String::as_str));
        diag.error(at, format_args!("unknown parameter `{name}` in `{item}`"), help);
    }

    /// Returns the parameter that `expr`, the value of `item`, names.
    fn find_expr(
        &mut self,
        expr: &Expr,
        item: &str,
        diag: &mut Diagnostics,
    ) -> Option<(String, Ident)> {
        match attr::ident(expr) {
            Some(name) => self.find(name, item, diag),
            None => {
                diag.error(
                    expr,
                    format_args!("`{item}` must be the name of a parameter"),
                    "write the name without quotes",
                );
                None
            }
        }
    }
}

/// `display(..)`, and the hooks in it.
pub(super) fn display(
    items: &Items<'_>,
    names: &mut Names<'_>,
    hooks: &mut Hooks,
    diag: &mut Diagnostics,
) -> Display {
    let written = items.nested("display", diag);
    let items = attr::checked(&written, DISPLAY, "display", diag);
    let known: &[(_, &[_])] = &[("preview", &["args", "cx"]), ("result", &["output"])];
    hooks.extend(functions(&items, known, diag));
    let is_pattern =
        items.expr("summary").is_some_and(|it| attr::literal(it).is_some() || is_constant(it));
    if !is_pattern {
        hooks.extend(functions(&items, &[("summary", &["args"])], diag));
    }
    let primary = items.expr("primary").and_then(|expr| names.find_expr(expr, "primary", diag));
    let shown = items.ident_list("show", diag);
    for (at, name) in shown.iter().enumerate() {
        if shown[..at].contains(name) {
            diag.error(name, format_args!("duplicate `{name}` in `show`"), "keep one of them");
        }
    }
    Display {
        name: lower::line(&items, "name", diag),
        primary: primary.map(|(key, _)| key),
        show: shown
            .iter()
            .filter_map(|name| names.find(name, "show", diag))
            .map(|(key, _)| key)
            .collect(),
        summary: match is_pattern {
            true => items.string("summary", diag).and_then(|text| summary(&text, names, diag)),
            false => None,
        },
        ui: items.string("ui", diag).and_then(|uri| page(&uri, diag)),
    }
}

/// Whether `expr` has the name of a constant, which is no pattern that can be read here.
fn is_constant(expr: &Expr) -> bool {
    attr::ident(expr).is_some_and(|name| !name.to_string().contains(char::is_lowercase))
}

fn page(literal: &LitStr, diag: &mut Diagnostics) -> Option<String> {
    let uri = literal.value();
    if uri.len() > "ui://".len() && uri.starts_with("ui://") {
        return Some(uri);
    }
    diag.error(
        literal,
        "`ui` must be the URI of a page",
        "write it as `ui://`, a name and a path, such as `ui://shelf/board`",
    );
    None
}

/// `approval(..)`.
pub(super) fn approval(items: &Items<'_>, diag: &mut Diagnostics) -> Hooks {
    let written = items.nested("approval", diag);
    let items = attr::checked(&written, APPROVAL, "approval", diag);
    let known: &[(_, &[_])] = &[
        ("required", &["args", "cx"]),
        ("resources", &["args", "cx"]),
        ("suggest", &["args"]),
        ("covers", &["args", "pattern"]),
        ("dangerous", &["args"]),
        ("facts", &["args", "cx"]),
    ];
    functions(&items, known, diag)
}

/// `validate = ..`.
pub(super) fn validate(items: &Items<'_>, diag: &mut Diagnostics) -> Hooks {
    functions(items, &[("validate", &["args"])], diag)
}

/// Returns the functions in `items`, each with the parameters of a closure in its place.
fn functions(items: &Items<'_>, keys: &[(&'static str, &[&str])], diag: &mut Diagnostics) -> Hooks {
    let given =
        |(key, takes): &(&'static str, &[&str])| Some((*key, function(items, key, takes, diag)?));
    keys.iter().filter_map(given).collect()
}

/// Returns the function in `key`; a closure in its place has the parameters `takes`.
pub(super) fn function(
    items: &Items<'_>,
    key: &str,
    takes: &[&str],
    diag: &mut Diagnostics,
) -> Option<TokenStream> {
    let expr = items.expr(key)?;
    let takes_all = takes.join(", ");
    match attr::bare(expr) {
        Expr::Closure(ExprClosure { asyncness: Some(token), .. }) => {
            let what = format_args!("closure of `{key}` must not be async");
            diag.error(token, what, "remove `async`; it answers at once");
        }
        Expr::Closure(closure) if closure.inputs.len() != takes.len() => diag.error(
            bars(closure),
            format_args!("closure of `{key}` must take `|{takes_all}|`"),
            format_args!("write `{key} = |{takes_all}| ..`"),
        ),
        Expr::Lit(_) => diag.error(
            expr,
            format_args!("`{key}` must be a function"),
            format_args!("write `{key} = my_function`, or a closure `|{takes_all}| ..`"),
        ),
        _ => return Some(attr::tokens(expr)),
    }
    None
}

/// Returns the parameters of a closure, between its bars.
fn bars(closure: &ExprClosure) -> TokenStream {
    let ExprClosure { inputs_begin, inputs, inputs_end, .. } = closure;
    quote!(#inputs_begin #inputs #inputs_end)
}

fn summary(literal: &LitStr, names: &mut Names<'_>, diag: &mut Diagnostics) -> Option<Summary> {
    let written = literal.value();
    let pieces = match text::pieces(&written) {
        Ok(pieces) => pieces,
        Err(reason) => {
            diag.error(
                literal,
                format_args!("`summary` {reason}"),
                "write a parameter's name in braces, and `{{` for a brace",
            );
            return None;
        }
    };
    lower::checked_line(literal, "`summary`", diag);
    let (mut pattern, mut format) = (String::new(), String::new());
    let mut fields: Vec<Ident> = Vec::new();
    let mut is_good = true;
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                pattern += text;
                format += text;
            }
            Piece::Value { name, spec } => {
                let Some((key, field)) = names.field(name, literal, diag) else {
                    is_good = false;
                    continue;
                };
                let at = fields.iter().position(|known| *known == field).unwrap_or_else(|| {
                    fields.push(field);
                    fields.len() - 1
                });
                pattern += &format!("{{{key}{spec}}}");
                format += &format!("{{{at}{spec}}}");
            }
        }
    }
    let mut format = Literal::string(&format);
    format.set_span(span::at(literal));
    is_good.then_some(Summary { pattern, format, fields })
}

impl Names<'_> {
    /// Returns the parameter that a summary names; errors underline the whole literal.
    fn field(
        &self,
        name: &str,
        literal: &LitStr,
        diag: &mut Diagnostics,
    ) -> Option<(String, Ident)> {
        if self.params.strukt.is_some() {
            return Some((name.to_owned(), field_ident(name, span::at(literal))));
        }
        self.look_up(name, "summary", literal, diag)
    }
}

/// Returns the field called `name`, which may be a keyword.
fn field_ident(name: &str, span: Span) -> Ident {
    let ident = syn::parse_str::<Ident>(name).unwrap_or_else(|_| Ident::new_raw(name, span));
    let mut ident = ident;
    ident.set_span(span);
    ident
}

/// `parallel = ..`.
pub(super) fn parallel(
    items: &Items<'_>,
    names: &mut Names<'_>,
    diag: &mut Diagnostics,
) -> Option<Parallel> {
    let expr = items.expr("parallel")?;
    if let Expr::Call(call) = attr::bare(expr)
        && attr::ident(&call.func).is_some_and(|name| name == "by")
        && call.args.len() == 1
    {
        let (key, field) = names.find_expr(call.args.first()?, "parallel", diag)?;
        return Some(Parallel::By { key, field });
    }
    match attr::ident(expr).map(ToString::to_string).as_deref() {
        Some("shared") => Some(Parallel::Class("Shared")),
        Some("exclusive") => Some(Parallel::Class("Exclusive")),
        word => {
            let what = "expected `shared`, `exclusive` or `by(parameter)`";
            diag.error(expr, what, by_help(expr, word, names));
            None
        }
    }
}

/// The help for `expr`, which is not a valid value of `parallel`.
fn by_help(expr: &Expr, word: Option<&str>, names: &Names<'_>) -> String {
    let is_by = match attr::bare(expr) {
        Expr::Call(call) => attr::ident(&call.func).is_some_and(|name| name == "by"),
        _ => word == Some("by"),
    };
    let is_param = |word: &str| names.params.sent.iter().any(|param| param.ident.unraw() == word);
    match word {
        _ if is_by => "name one parameter, as in `parallel = by(path)`".to_owned(),
        Some(word) if is_param(word) => format!("write `parallel = by({word})`"),
        _ => "write `parallel = shared`".to_owned(),
    }
}
