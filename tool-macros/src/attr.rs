//! Lists of `key`, `key = value` and `key(..)`, checked against one table of keys.
//!
//! [`parse_items`] belongs to the first step and accepts everything of this shape;
//! [`check_items`] belongs to the second and rejects unknown and repeated keys.
//!
//! **Invariant:** nothing here knows the meaning of a key.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprGroup, ExprLit, ExprParen, Ident, Lit, LitStr, Token, token};

use crate::diag::{Diagnostics, expected_one_of};

/// One item as it was written.
pub(crate) struct AttrItem {
    pub(crate) key: Ident,
    pub(crate) value: AttrValue,
}

impl AttrItem {
    /// Whether the item is `name` alone.
    pub(crate) fn is_flag(&self, name: &str) -> bool {
        self.key == name && matches!(self.value, AttrValue::Flag)
    }
}

/// What follows a key.
pub(crate) enum AttrValue {
    /// Nothing.
    Flag,
    /// `= expr`.
    Expr(Box<Expr>),
    /// `(..)`, unparsed.
    List(TokenStream),
    /// Something that syn could not parse and has reported.
    Broken,
}

/// A key of a table.
pub(crate) struct AttrKey {
    name: &'static str,
    shape: AttrShape,
    /// How the item is written, for help.
    form: &'static str,
    repeatable: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AttrShape {
    Flag,
    Value,
    List,
    /// The item does not exist.
    None,
}

impl AttrKey {
    /// A key that stands alone.
    pub(crate) const fn flag(name: &'static str) -> Self {
        Self { name, shape: AttrShape::Flag, form: name, repeatable: false }
    }

    /// A key with a value.
    pub(crate) const fn value(name: &'static str, form: &'static str) -> Self {
        Self { name, shape: AttrShape::Value, form, repeatable: false }
    }

    /// A key with a list.
    pub(crate) const fn list(name: &'static str, form: &'static str) -> Self {
        Self { name, shape: AttrShape::List, form, repeatable: false }
    }

    /// A key that does not exist but is often written, with what to write instead.
    pub(crate) const fn none(name: &'static str, help: &'static str) -> Self {
        Self { name, shape: AttrShape::None, form: help, repeatable: true }
    }

    /// The name of the key.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the item exists.
    pub(crate) const fn is_written(&self) -> bool {
        !matches!(self.shape, AttrShape::None)
    }

    /// Allows the key more than once.
    pub(crate) const fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }
}

/// Parses a list of items; after a syntax error, continues behind the next comma.
pub(crate) fn parse_items(tokens: TokenStream, diag: &mut Diagnostics) -> Vec<AttrItem> {
    let mut items = Vec::new();
    let read = |input: ParseStream<'_>| {
        while !input.is_empty() {
            match parse_item(input, diag) {
                Ok(item) => items.push(item),
                Err(error) => skip_item(input, error, diag),
            }
            if !input.is_empty() && input.parse::<Token![,]>().is_err() {
                let help = "write `,` between items, and `=` before a value";
                let error = input.error(format_args!("expected `,`\nhelp: {help}"));
                skip_item(input, error, diag);
                // The following tokens may have been meant as its value.
                if let Some(item @ AttrItem { value: AttrValue::Flag, .. }) = items.last_mut() {
                    item.value = AttrValue::Broken;
                }
                let _: Option<Token![,]> = input.parse()?;
            }
        }
        Ok(())
    };
    if let Err(error) = read.parse2(tokens) {
        diag.syntax(error);
    }
    items
}

fn parse_item(input: ParseStream<'_>, diag: &mut Diagnostics) -> syn::Result<AttrItem> {
    let Ok(key) = input.call(Ident::parse_any) else {
        let text = input.fork().parse::<LitStr>().ok();
        let before = "what it is before it, as in `title = \"..\"`";
        let help = match text.as_ref().map(LitStr::parse::<Ident>) {
            Some(Ok(name)) => format!("write `{name}` without quotes, or {before}"),
            Some(Err(_)) => format!("write {before}"),
            None if input.peek(Token![=]) => {
                "write items in parentheses, as in `(name = \"..\")`".to_owned()
            }
            None => "write `item`, `item = value` or `item(..)`".to_owned(),
        };
        return Err(input.error(format_args!("expected the name of an item\nhelp: {help}")));
    };
    let value = if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        parse_value(&key, input, diag)
    } else if input.peek(Token![::]) {
        let what = "item must be a plain name\nhelp: write `item`, `item = value` or `item(..)`";
        return Err(syn::Error::new(key.span(), what));
    } else if input.peek(token::Bracket) || input.peek(token::Brace) {
        let what = format_args!("list of `{key}` must be in parentheses");
        diag.error(&key, what, format_args!("write `{key}(..)`"));
        input.parse::<TokenTree>()?;
        AttrValue::Broken
    } else if input.peek(token::Paren) {
        let content;
        syn::parenthesized!(content in input);
        AttrValue::List(content.parse()?)
    } else {
        AttrValue::Flag
    };
    Ok(AttrItem { key, value })
}

/// Parses the expression after `=`, which is required.
fn parse_value(key: &Ident, input: ParseStream<'_>, diag: &mut Diagnostics) -> AttrValue {
    if input.is_empty() || input.peek(Token![,]) {
        diag.error(key, format_args!("`{key}` has no value"), "write it after the `=`");
        return AttrValue::Broken;
    }
    // The tokens that syn did not reach would cause a second error.
    let ahead = input.fork();
    match ahead.parse() {
        Ok(expr) => {
            input.advance_to(&ahead);
            AttrValue::Expr(Box::new(expr))
        }
        Err(error) => {
            let what = format!("value of `{key}` must be an expression: {error}");
            let what = format!("{what}\nhelp: write a literal or the name of a constant");
            skip_item(input, syn::Error::new(error.span(), what), diag);
            AttrValue::Broken
        }
    }
}

fn skip_item(input: ParseStream<'_>, error: syn::Error, diag: &mut Diagnostics) {
    diag.syntax(error);
    while !input.is_empty() && !input.peek(Token![,]) {
        if input.parse::<TokenTree>().is_err() {
            return;
        }
    }
}

/// Items with known keys of the right shape, each at most once.
pub(crate) struct CheckedItems<'i> {
    good: Vec<(&'i AttrItem, &'static AttrKey)>,
    mentioned: Vec<&'static str>,
}

/// Checks `items` against the table of `owner`.
pub(crate) fn check_items<'i>(
    items: impl IntoIterator<Item = &'i AttrItem>,
    keys: &'static [AttrKey],
    owner: &str,
    diag: &mut Diagnostics,
) -> CheckedItems<'i> {
    let mut checked = CheckedItems { good: Vec::new(), mentioned: Vec::new() };
    for item in items {
        let name = item.key.unraw().to_string();
        let Some(key) = keys.iter().find(|key| key.name == name) else {
            report_unknown(item, &name, keys, owner, diag);
            continue;
        };
        if !key.repeatable && checked.mentioned.contains(&key.name) {
            diag.error(&item.key, format_args!("duplicate `{name}`"), "keep one of them");
            continue;
        }
        checked.mentioned.push(key.name);
        if key.shape == AttrShape::None {
            let what = format_args!("unknown item `{name}` in `{owner}`");
            diag.error(&item.key, what, key.form);
        } else if has_shape(item, key, diag) {
            checked.good.push((item, key));
        }
    }
    checked
}

fn report_unknown(
    item: &AttrItem,
    name: &str,
    keys: &'static [AttrKey],
    owner: &str,
    diag: &mut Diagnostics,
) {
    let known = keys.iter().filter(|key| key.shape != AttrShape::None).map(|key| key.name);
    let help = expected_one_of(name, known);
    diag.error(&item.key, format_args!("unknown item `{name}` in `{owner}`"), help);
}

fn has_shape(item: &AttrItem, key: &AttrKey, diag: &mut Diagnostics) -> bool {
    let written = match &item.value {
        AttrValue::Flag => AttrShape::Flag,
        AttrValue::Expr(_) => AttrShape::Value,
        AttrValue::List(_) => AttrShape::List,
        AttrValue::Broken => return false,
    };
    if written != key.shape {
        let what = match key.shape {
            AttrShape::Flag => "must stand alone",
            AttrShape::Value => "must have a value",
            AttrShape::List => "must have a list",
            AttrShape::None => "must not be there",
        };
        let help =
            if is_denied(item, key) { "remove it".to_owned() } else { write_instead(key.form) };
        diag.error(&item.key, format_args!("`{}` {what}", key.name), help);
    }
    written == key.shape
}

/// Whether a flag is written with a value that means "not set".
fn is_denied(item: &AttrItem, key: &AttrKey) -> bool {
    key.shape == AttrShape::Flag
        && matches!(&item.value, AttrValue::Expr(expr)
            if matches!(as_literal(expr), Some(Lit::Bool(value)) if !value.value))
}

fn write_instead(form: &str) -> String {
    format!("write `{form}`")
}

impl<'i> CheckedItems<'i> {
    /// Whether `key` was written at all, even wrongly.
    pub(crate) fn mentions(&self, key: &str) -> bool {
        self.mentioned.contains(&key)
    }

    /// The key of a flag that is set, or of any other valid item.
    pub(crate) fn key(&self, key: &str) -> Option<&'i Ident> {
        self.all(key).next().map(|(item, _)| &item.key)
    }

    /// Whether a flag is set.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.key(key).is_some()
    }

    /// Those of `keys` that were written, in the order of writing.
    pub(crate) fn in_order(&self, keys: &[&str]) -> Vec<&'i Ident> {
        let wanted = self.good.iter().filter(|(_, known)| keys.contains(&known.name));
        wanted.map(|(item, _)| &item.key).collect()
    }

    /// The value of `key`.
    pub(crate) fn expr(&self, key: &str) -> Option<&'i Expr> {
        self.exprs(key).next()
    }

    /// The string literal after `key`.
    pub(crate) fn string(&self, key: &str, diag: &mut Diagnostics) -> Option<LitStr> {
        self.strings(key, diag).into_iter().next()
    }

    /// The string literals after each `key`.
    pub(crate) fn strings(&self, key: &str, diag: &mut Diagnostics) -> Vec<LitStr> {
        let mut strings = Vec::new();
        for (item, known) in self.all(key) {
            if let AttrValue::Expr(expr) = &item.value {
                match (as_string(expr), as_literal(expr)) {
                    (Some(literal), _) => strings.push(literal.clone()),
                    (None, Some(Lit::Verbatim(_))) => diag.left_to_rustc(),
                    _ => diag.error(
                        expr,
                        format_args!("`{key}` must be a string literal"),
                        write_instead(known.form),
                    ),
                }
            }
        }
        strings
    }

    /// The string literals in the lists of `key`.
    pub(crate) fn string_list(&self, key: &str, diag: &mut Diagnostics) -> Vec<LitStr> {
        let mut strings = Vec::new();
        for (item, known, exprs) in self.lists(key, diag) {
            if exprs.is_empty() {
                diag.error(
                    &item.key,
                    format_args!("`{key}` has no values"),
                    write_instead(known.form),
                );
            }
            for expr in exprs {
                match as_string(&expr) {
                    Some(literal) => strings.push(literal.clone()),
                    None => diag.error(
                        &expr,
                        format_args!("`{key}` must hold string literals"),
                        write_instead(known.form),
                    ),
                }
            }
        }
        strings
    }

    /// The names in the list of `key`.
    pub(crate) fn ident_list(&self, key: &str, diag: &mut Diagnostics) -> Vec<Ident> {
        let mut idents = Vec::new();
        for (item, known, exprs) in self.lists(key, diag) {
            if exprs.is_empty() {
                diag.error(
                    &item.key,
                    format_args!("`{key}` has no names"),
                    write_instead(known.form),
                );
            }
            for expr in exprs {
                match as_ident(&expr) {
                    Some(ident) => idents.push(ident.clone()),
                    None => diag.error(
                        &expr,
                        format_args!("`{key}` must hold names of parameters"),
                        write_instead(known.form),
                    ),
                }
            }
        }
        idents
    }

    /// The items in the list of `key`, to be checked against a table of its own.
    pub(crate) fn nested(&self, key: &str, diag: &mut Diagnostics) -> Vec<AttrItem> {
        let lists = self.all(key).filter_map(|(item, _)| match &item.value {
            AttrValue::List(tokens) => Some(tokens.clone()),
            _ => None,
        });
        lists.flat_map(|tokens| parse_items(tokens, diag)).collect()
    }

    /// How to write `key`, for help.
    pub(crate) fn form(&self, key: &str) -> String {
        self.all(key).next().map(|(_, known)| write_instead(known.form)).unwrap_or_default()
    }

    fn all<'s>(
        &'s self,
        key: &'s str,
    ) -> impl Iterator<Item = (&'i AttrItem, &'static AttrKey)> + 's {
        self.good.iter().copied().filter(move |(_, known)| known.name == key)
    }

    fn exprs<'s>(&'s self, key: &'s str) -> impl Iterator<Item = &'i Expr> + 's {
        self.all(key).filter_map(|(item, _)| match &item.value {
            AttrValue::Expr(expr) => Some(&**expr),
            _ => None,
        })
    }

    fn lists(
        &self,
        key: &str,
        diag: &mut Diagnostics,
    ) -> Vec<(&'i AttrItem, &'static AttrKey, Punctuated<Expr, Token![,]>)> {
        let mut lists = Vec::new();
        for (item, known) in self.all(key) {
            let AttrValue::List(tokens) = &item.value else { continue };
            match Punctuated::parse_terminated.parse2(tokens.clone()) {
                Ok(exprs) => lists.push((item, known, exprs)),
                Err(error) => {
                    let what = format!("{error}\nhelp: {}", write_instead(known.form));
                    diag.syntax(syn::Error::new(error.span(), what));
                }
            }
        }
        lists
    }
}

/// Removes parentheses and the invisible groups of `macro_rules`.
pub(crate) fn without_parens(expr: &Expr) -> &Expr {
    match expr {
        Expr::Group(ExprGroup { expr, .. }) | Expr::Paren(ExprParen { expr, .. }) => {
            without_parens(expr)
        }
        other => other,
    }
}

/// Returns the literal in `expr`.
pub(crate) fn as_literal(expr: &Expr) -> Option<&Lit> {
    match without_parens(expr) {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        _ => None,
    }
}

/// Returns the string literal in `expr`.
pub(crate) fn as_string(expr: &Expr) -> Option<&LitStr> {
    match as_literal(expr)? {
        Lit::Str(text) => Some(text),
        _ => None,
    }
}

/// Returns the single name in `expr`.
pub(crate) fn as_ident(expr: &Expr) -> Option<&Ident> {
    match without_parens(expr) {
        Expr::Path(path) if path.qself.is_none() => path.path.get_ident(),
        _ => None,
    }
}

/// The tokens of `expr` as the user wrote them.
pub(crate) fn to_user_tokens(expr: &Expr) -> TokenStream {
    without_parens(expr).to_token_stream()
}
