//! All rules about how a call is shown and authorized: `display`, `approval`, `parallel`.
//!
//! The names in them must be parameters. Flattened ones are looked up here; the fields of an
//! `Args<T>` are left to rustc, at the token that names them.

use proc_macro2::{Literal, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::{Expr, ExprClosure, Ident, LitStr};

use super::lower;
use super::model::{HookFunctions, ParallelRule, SummaryPattern, ToolDisplay};
use super::param::FunctionParams;
use super::text::{self, SummaryPiece};
use crate::attr::{self, AttrKey, CheckedItems};
use crate::diag::{Diagnostics, expected_one_of};
use crate::span;

/// The items of `display(..)`.
pub(super) const DISPLAY: &[AttrKey] = &[
    AttrKey::value("name", r#"name = "Read""#),
    AttrKey::value("primary", "primary = path"),
    AttrKey::list("show", "show(path, offset)"),
    AttrKey::value("summary", r#"summary = "Reading {path}""#),
    AttrKey::value("result", "result = my_function"),
    AttrKey::value("preview", "preview = my_function"),
    AttrKey::value("ui", r#"ui = "ui://shelf/board""#),
];

/// The items of `approval(..)`.
pub(super) const APPROVAL: &[AttrKey] = &[
    AttrKey::value("required", "required = my_function"),
    AttrKey::value("resources", "resources = my_function"),
    AttrKey::value("suggest", "suggest = my_function"),
    AttrKey::value("covers", "covers = my_function"),
    AttrKey::value("dangerous", "dangerous = my_function"),
    AttrKey::value("facts", "facts = my_function"),
];

/// Finds parameters by name and remembers which fields of a struct were named.
pub(super) struct ParamNames<'p> {
    params: &'p FunctionParams,
    pub(super) fields: Vec<Ident>,
}

impl<'p> ParamNames<'p> {
    /// Looks up names among `params`.
    pub(super) fn new(params: &'p FunctionParams) -> Self {
        Self { params, fields: Vec::new() }
    }

    /// Returns the JSON name and the field of the parameter that `item` calls `name`.
    fn find_param(
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
            self.report_unknown(name, item, at, diag);
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
        field.set_span(span::macro_span(&at));
        Some((param.key.clone(), field))
    }

    fn report_unknown(&self, name: &str, item: &str, at: impl ToTokens, diag: &mut Diagnostics) {
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
        match attr::as_ident(expr) {
            Some(name) => self.find_param(name, item, diag),
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
pub(super) fn lower_display(
    items: &CheckedItems<'_>,
    names: &mut ParamNames<'_>,
    hooks: &mut HookFunctions,
    diag: &mut Diagnostics,
) -> ToolDisplay {
    let written = items.nested("display", diag);
    let items = attr::check_items(&written, DISPLAY, "display", diag);
    let known: &[(_, &[_])] = &[("preview", &["args", "cx"]), ("result", &["output"])];
    hooks.extend(lower_functions(&items, known, diag));
    let is_pattern =
        items.expr("summary").is_some_and(|it| attr::as_literal(it).is_some() || is_constant(it));
    if !is_pattern {
        hooks.extend(lower_functions(&items, &[("summary", &["args"])], diag));
    }
    let primary = items.expr("primary").and_then(|expr| names.find_expr(expr, "primary", diag));
    let shown = items.ident_list("show", diag);
    for (at, name) in shown.iter().enumerate() {
        if shown[..at].contains(name) {
            diag.error(name, format_args!("duplicate `{name}` in `show`"), "keep one of them");
        }
    }
    ToolDisplay {
        name: lower::lower_line(&items, "name", diag),
        primary: primary.map(|(key, _)| key),
        show: shown
            .iter()
            .filter_map(|name| names.find_param(name, "show", diag))
            .map(|(key, _)| key)
            .collect(),
        summary: match is_pattern {
            true => {
                items.string("summary", diag).and_then(|text| lower_summary(&text, names, diag))
            }
            false => None,
        },
        ui: items.string("ui", diag).and_then(|uri| lower_page_uri(&uri, diag)),
    }
}

/// Whether `expr` has the name of a constant, which is not a pattern that can be read here.
fn is_constant(expr: &Expr) -> bool {
    attr::as_ident(expr).is_some_and(|name| !name.to_string().contains(char::is_lowercase))
}

fn lower_page_uri(literal: &LitStr, diag: &mut Diagnostics) -> Option<String> {
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
pub(super) fn lower_approval(items: &CheckedItems<'_>, diag: &mut Diagnostics) -> HookFunctions {
    let written = items.nested("approval", diag);
    let items = attr::check_items(&written, APPROVAL, "approval", diag);
    let known: &[(_, &[_])] = &[
        ("required", &["args", "cx"]),
        ("resources", &["args", "cx"]),
        ("suggest", &["args"]),
        ("covers", &["args", "pattern"]),
        ("dangerous", &["args"]),
        ("facts", &["args", "cx"]),
    ];
    lower_functions(&items, known, diag)
}

/// `validate = ..`.
pub(super) fn lower_validate(items: &CheckedItems<'_>, diag: &mut Diagnostics) -> HookFunctions {
    lower_functions(items, &[("validate", &["args"])], diag)
}

/// Returns the functions in `items`, each with the parameters of a closure in its place.
fn lower_functions(
    items: &CheckedItems<'_>,
    keys: &[(&'static str, &[&str])],
    diag: &mut Diagnostics,
) -> HookFunctions {
    let given = |(key, takes): &(&'static str, &[&str])| {
        Some((*key, lower_function(items, key, takes, diag)?))
    };
    keys.iter().filter_map(given).collect()
}

/// Returns the function in `key`; a closure in its place has the parameters `takes`.
pub(super) fn lower_function(
    items: &CheckedItems<'_>,
    key: &str,
    takes: &[&str],
    diag: &mut Diagnostics,
) -> Option<TokenStream> {
    let expr = items.expr(key)?;
    let takes_all = takes.join(", ");
    match attr::without_parens(expr) {
        Expr::Closure(ExprClosure { asyncness: Some(token), .. }) => {
            let what = format_args!("closure of `{key}` must not be async");
            diag.error(token, what, "remove `async`; it answers at once");
        }
        Expr::Closure(closure) if closure.inputs.len() != takes.len() => diag.error(
            closure_head(closure),
            format_args!("closure of `{key}` must take `|{takes_all}|`"),
            format_args!("write `{key} = |{takes_all}| ..`"),
        ),
        Expr::Lit(_) => diag.error(
            expr,
            format_args!("`{key}` must be a function"),
            format_args!("write `{key} = my_function`, or a closure `|{takes_all}| ..`"),
        ),
        _ => return Some(attr::to_user_tokens(expr)),
    }
    None
}

/// Returns the parameters of a closure, between its bars.
fn closure_head(closure: &ExprClosure) -> TokenStream {
    let ExprClosure { inputs_begin, inputs, inputs_end, .. } = closure;
    quote!(#inputs_begin #inputs #inputs_end)
}

fn lower_summary(
    literal: &LitStr,
    names: &mut ParamNames<'_>,
    diag: &mut Diagnostics,
) -> Option<SummaryPattern> {
    let written = literal.value();
    let pieces = match text::parse_summary(&written) {
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
    lower::check_line(literal, "`summary`", diag);
    let (mut pattern, mut format) = (String::new(), String::new());
    let mut fields: Vec<Ident> = Vec::new();
    let mut is_good = true;
    for piece in pieces {
        match piece {
            SummaryPiece::Text(text) => {
                pattern += text;
                format += text;
            }
            SummaryPiece::Value { name, spec } => {
                let Some((key, field)) = names.find_summary_field(name, literal, diag) else {
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
    format.set_span(span::macro_span(literal));
    is_good.then_some(SummaryPattern { pattern, format, fields })
}

impl ParamNames<'_> {
    /// Returns the parameter that a summary names; errors underline the whole literal.
    fn find_summary_field(
        &self,
        name: &str,
        literal: &LitStr,
        diag: &mut Diagnostics,
    ) -> Option<(String, Ident)> {
        if self.params.strukt.is_some() {
            return Some((name.to_owned(), field_ident(name, span::macro_span(literal))));
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
pub(super) fn lower_parallel(
    items: &CheckedItems<'_>,
    names: &mut ParamNames<'_>,
    diag: &mut Diagnostics,
) -> Option<ParallelRule> {
    let expr = items.expr("parallel")?;
    if let Expr::Call(call) = attr::without_parens(expr)
        && attr::as_ident(&call.func).is_some_and(|name| name == "by")
        && call.args.len() == 1
    {
        let (key, field) = names.find_expr(call.args.first()?, "parallel", diag)?;
        return Some(ParallelRule::By { key, field });
    }
    match attr::as_ident(expr).map(ToString::to_string).as_deref() {
        Some("shared") => Some(ParallelRule::Class("Shared")),
        Some("exclusive") => Some(ParallelRule::Class("Exclusive")),
        word => {
            let what = "expected `shared`, `exclusive` or `by(parameter)`";
            diag.error(expr, what, parallel_help(expr, word, names));
            None
        }
    }
}

/// The help for `expr`, which is not a valid value of `parallel`.
fn parallel_help(expr: &Expr, word: Option<&str>, names: &ParamNames<'_>) -> String {
    let is_by = match attr::without_parens(expr) {
        Expr::Call(call) => attr::as_ident(&call.func).is_some_and(|name| name == "by"),
        _ => word == Some("by"),
    };
    let is_param = |word: &str| names.params.sent.iter().any(|param| param.ident.unraw() == word);
    match word {
        _ if is_by => "name one parameter, as in `parallel = by(path)`".to_owned(),
        Some(word) if is_param(word) => format!("write `parallel = by({word})`"),
        _ => "write `parallel = shared`".to_owned(),
    }
}
