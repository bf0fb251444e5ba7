//! `range`, `length`, `pattern` and `choices` of a parameter, and its default.
//!
//! Literals, and the values in examples, are compared here; a constant becomes an assertion for
//! rustc.

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use serde_json::Value;
use syn::{Expr, ExprRange, ExprUnary, Lit, LitStr, RangeLimits, Type, UnOp};

use super::model::{Asserted, Bound, DefaultValue, Length, ParamLimits, Range};
use super::ty::{self, Kind};
use crate::attr::{self, Items};
use crate::diag::Diagnostics;
use crate::span;

/// Returns the constraints that `items` put on a parameter of type `ty`.
pub(super) fn limits(
    items: &Items<'_>,
    ty: &Type,
    kind: &Kind<'_>,
    diag: &mut Diagnostics,
) -> ParamLimits {
    let mut limits = ParamLimits::default();
    if let (Some(key), Kind::Str | Kind::OptionStr) = (items.key("range"), kind) {
        diag.error(key, "`range` must be on a number, not on text", "write `length = 1..=200`");
    } else if let Some(expr) = items.expr("range") {
        limits.range = range(expr, ty, diag);
        limits.asserted.extend(limits.range.as_ref().and_then(|range| is_not_empty(range, expr)));
    }
    limits.length = items.expr("length").and_then(|expr| length(expr, diag));
    limits.pattern =
        items.string("pattern", diag).filter(|text| pattern(text, diag)).map(|text| text.value());
    let written = items.string_list("choices", diag);
    for choice in &written {
        if let Some(reason) = breaks(&Plain::Text(&choice.value()), &limits) {
            let what = format_args!("choice `{}` {reason}", choice.value());
            diag.error(choice, what, "write one that is allowed");
        }
    }
    limits.choices = choices(&written, diag);
    limits
}

fn range(expr: &Expr, ty: &Type, diag: &mut Diagnostics) -> Option<Range> {
    let written = bounds(expr, "range", "range = 1..=100", diag)?;
    let word = ty::word(ty).unwrap_or_default();
    let (start, end) = (written.start.as_deref(), written.end.as_deref());
    let float = [start, end].into_iter().flatten().find(|bound| is_float(bound));
    if let (Some(float), true) = (float, ty::is_int(&word)) {
        diag.error(float, "`range` of whole numbers must have whole bounds", "write `1..=100`");
        return None;
    }
    let is_float = float.is_some() || ty::is_float(&word);
    let is_open = matches!(written.limits, RangeLimits::HalfOpen(_));
    if let (Some(_), true, true) = (end, is_open, is_float) {
        diag.error(written.limits, "`range` of floats must include its end", "write `..=`");
        return None;
    }
    let bound = |expr: Option<&Expr>, less: i128, diag: &mut Diagnostics| match expr {
        Some(expr) => {
            let bound = number_bound(expr, is_float, less, diag);
            bound.filter(|bound| is_of_type(bound, &word, expr, diag)).map(Some)
        }
        None => Some(None),
    };
    let min = bound(start, 0, diag);
    let max = bound(end, i128::from(is_open), diag);
    let range = Range { is_float, min: min?, max: max? };
    let is_empty = match (&range.min, &range.max) {
        (Some(Bound::Int(min)), Some(Bound::Int(max))) => min > max,
        (Some(Bound::Float(min)), Some(Bound::Float(max))) => min > max,
        _ => false,
    };
    if is_empty {
        diag.error(expr, "`range` must not be empty", filled(start, end));
        return None;
    }
    Some(range)
}

/// The help for an empty range.
fn filled(start: Option<&Expr>, end: Option<&Expr>) -> String {
    match (start.and_then(number), end.and_then(number)) {
        (Some(Number::Int(start)), Some(Number::Int(end))) if start == end => {
            format!("write `{start}..={end}` for that number alone")
        }
        _ => "write the smaller number first".to_owned(),
    }
}

/// Whether a value of the integer `word` can be `bound`.
fn is_of_type(bound: &Bound, word: &str, at: &Expr, diag: &mut Diagnostics) -> bool {
    let (Bound::Int(bound), Some((min, max))) = (bound, ty::int_bounds(word)) else { return true };
    let is_inside = (min..=max).contains(bound);
    if !is_inside {
        let what = format_args!("bound of `range` must be a number of type `{word}`");
        diag.error(at, what, format_args!("stay within `{min}..={max}`, or take another type"));
    }
    is_inside
}

/// Parses the range in `expr`, with at least one end.
fn bounds<'e>(
    expr: &'e Expr,
    key: &str,
    form: &str,
    diag: &mut Diagnostics,
) -> Option<&'e ExprRange> {
    match attr::bare(expr) {
        Expr::Range(range) if range.start.is_some() || range.end.is_some() => Some(range),
        _ => {
            diag.error(expr, format_args!("`{key}` must have bounds"), format!("write `{form}`"));
            None
        }
    }
}

fn number_bound(expr: &Expr, is_float: bool, less: i128, diag: &mut Diagnostics) -> Option<Bound> {
    match (number(expr), attr::bare(expr)) {
        #[expect(clippy::cast_precision_loss, reason = "a float bound written without its point")]
        (Some(Number::Int(value)), _) if is_float => Some(Bound::Float(value as f64)),
        (Some(Number::Int(value)), _) => Some(Bound::Int(value.saturating_sub(less))),
        (Some(Number::Float(value)), _) => Some(Bound::Float(value)),
        (None, Expr::Path(path)) => {
            // A constant that cannot be cast is an error at the constant.
            let at = span::at(path);
            Some(Bound::Const(match (is_float, less) {
                (true, _) => quote_spanned!(at=> #path as f64),
                (false, 0) => quote_spanned!(at=> #path as i128),
                (false, _) => quote_spanned!(at=> #path as i128 - 1),
            }))
        }
        _ => {
            let help = match attr::literal(expr) {
                Some(Lit::Int(_)) => "write a smaller number; it has to fit into an `i128`",
                Some(_) => "write `range = 1..=100`; `length` and `pattern` are for text",
                None => "name a constant and write its name",
            };
            diag.error(expr, "bound of `range` must be a number or a constant", help);
            None
        }
    }
}

#[derive(Clone, Copy)]
enum Number {
    Int(i128),
    Float(f64),
}

/// Parses the number in `expr`, with its sign.
fn number(expr: &Expr) -> Option<Number> {
    match attr::bare(expr) {
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => Some(match number(expr)? {
            Number::Int(value) => Number::Int(-value),
            Number::Float(value) => Number::Float(-value),
        }),
        other => match attr::literal(other)? {
            Lit::Int(int) if matches!(int.suffix(), "f32" | "f64") => {
                int.base10_digits().parse().ok().map(Number::Float)
            }
            Lit::Int(int) => int.base10_parse().ok().map(Number::Int),
            Lit::Float(float) => float.base10_parse().ok().map(Number::Float),
            _ => None,
        },
    }
}

fn is_float(expr: &Expr) -> bool {
    matches!(number(expr), Some(Number::Float(_)))
}

/// A bound as an expression.
pub(super) fn bound_tokens(bound: &Bound) -> TokenStream {
    match bound {
        Bound::Int(value) => Literal::i128_unsuffixed(*value).to_token_stream(),
        Bound::Float(value) => Literal::f64_unsuffixed(*value).to_token_stream(),
        Bound::Const(expr) => quote!((#expr)),
    }
}

/// Returns the assertions for a range with constants.
fn is_not_empty(range: &Range, at: &Expr) -> Option<Asserted> {
    let (Some(min), Some(max)) = (&range.min, &range.max) else { return None };
    if !matches!((min, max), (Bound::Const(_), _) | (_, Bound::Const(_))) {
        return None;
    }
    let (min, max) = (bound_tokens(min), bound_tokens(max));
    Some(Asserted {
        condition: quote!(#min <= #max),
        message: "`range` must not be empty\nhelp: write the smaller number first".to_owned(),
        at: at.to_token_stream(),
    })
}

fn length(expr: &Expr, diag: &mut Diagnostics) -> Option<Length> {
    let written = bounds(expr, "length", "length = 1..=200", diag)?;
    let less = usize::from(matches!(written.limits, RangeLimits::HalfOpen(_)));
    let ends = [(written.start.as_deref(), 0), (written.end.as_deref(), less)];
    let [min, max] = ends.map(|(end, less)| match end {
        Some(end) => length_bound(end, less, diag).map(Some),
        None => Some(None),
    });
    let (min, max) = (min?, max?);
    if let (Some((Some(min), _)), Some((Some(max), _))) = (&min, &max)
        && min > max
    {
        let help = filled(written.start.as_deref(), written.end.as_deref());
        diag.error(expr, "`length` must not be empty", help);
        return None;
    }
    let open = quote!(::core::primitive::usize::MAX);
    Some(Length {
        min: min.map_or_else(|| quote!(0), |(_, tokens)| tokens),
        max: max.map_or(open, |(_, tokens)| tokens),
    })
}

/// A bound of a length: its value, where it is known, and its expression.
fn length_bound(
    expr: &Expr,
    less: usize,
    diag: &mut Diagnostics,
) -> Option<(Option<usize>, TokenStream)> {
    match (number(expr), attr::bare(expr)) {
        (Some(Number::Int(0)), _) if less > 0 => {
            diag.error(expr, "`length` must not be empty", "write a greater number, or `..=0`");
            return None;
        }
        (Some(Number::Int(value)), _) => {
            if let Some(value) = usize::try_from(value).ok().and_then(|it| it.checked_sub(less)) {
                return Some((Some(value), Literal::usize_unsuffixed(value).to_token_stream()));
            }
        }
        (None, Expr::Path(path)) if less == 0 => return Some((None, path.to_token_stream())),
        (None, Expr::Path(path)) => return Some((None, quote!(#path - 1))),
        _ => {}
    }
    diag.error(expr, "bound of `length` must be a whole number from 0", "write `length = 1..=200`");
    None
}

fn pattern(text: &LitStr, diag: &mut Diagnostics) -> bool {
    let Err(error) = regex::Regex::new(&text.value()) else { return true };
    let message = error.to_string();
    let reason = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
    diag.error(
        text,
        format_args!("`pattern` must be a regular expression: {reason}"),
        "correct it; the syntax is that of the `regex` crate",
    );
    false
}

fn choices(written: &[LitStr], diag: &mut Diagnostics) -> Vec<String> {
    let mut choices = Vec::new();
    for literal in written {
        let value = literal.value();
        if choices.contains(&value) {
            diag.error(literal, format_args!("duplicate choice `{value}`"), "keep one of them");
        } else {
            choices.push(value);
        }
    }
    choices
}

/// Parses the default of a parameter, and checks it against its `limits`.
pub(super) fn default(
    expr: &Expr,
    ty: &Type,
    kind: &Kind<'_>,
    limits: &mut ParamLimits,
    diag: &mut Diagnostics,
) -> DefaultValue {
    let is_optional = ty::is_option(ty);
    let inner = if is_optional { in_some(expr) } else { None };
    let plain = inner.unwrap_or(expr);
    let asserted = is_in_range(plain, ty, limits);
    limits.asserted.extend(asserted);
    let Some(json) = json(plain) else { return DefaultValue::Expr(converted(expr, kind)) };
    let text = attr::string(plain).map(LitStr::value);
    let written = match (number(plain), &text) {
        (Some(number), _) => Some(Plain::Number(number)),
        (None, text) => text.as_deref().map(Plain::Text),
    };
    if let Some(reason) = written.and_then(|written| breaks(&written, limits)) {
        diag.error(plain, format_args!("default {json} {reason}"), "write one that is allowed");
    }
    let converts = !ty::word(ty).is_some_and(|word| ty::is_primitive(&word));
    let value = match attr::string(plain) {
        Some(text) if converts => {
            quote_spanned!(span::at(text)=> __rt::text_default(#text))
        }
        _ => attr::tokens(plain),
    };
    let value = if is_optional { quote!(::core::option::Option::Some(#value)) } else { value };
    DefaultValue::Literal { json, value }
}

/// Returns `x` of `Some(x)`.
fn in_some(expr: &Expr) -> Option<&Expr> {
    match attr::bare(expr) {
        Expr::Call(call) if call.args.len() == 1 && attr::ident(&call.func)? == "Some" => {
            call.args.first()
        }
        _ => None,
    }
}

/// A computed default of a string that the function borrows may itself be borrowed.
fn converted(expr: &Expr, kind: &Kind<'_>) -> TokenStream {
    match kind {
        Kind::Str => quote_spanned!(span::at(expr)=> ::core::convert::From::from(#expr)),
        Kind::OptionStr => {
            quote_spanned!(span::at(expr)=> ::core::option::Option::map(#expr, ::core::convert::From::from))
        }
        _ => attr::tokens(expr),
    }
}

/// Returns the JSON text of a literal.
fn json(expr: &Expr) -> Option<String> {
    match number(expr) {
        Some(Number::Int(value)) => return Some(value.to_string()),
        Some(Number::Float(value)) => {
            return serde_json::Number::from_f64(value).map(|number| number.to_string());
        }
        None => {}
    }
    let value = match attr::literal(expr)? {
        Lit::Str(text) => text.value().into(),
        Lit::Char(char) => char.value().to_string().into(),
        Lit::Bool(bool) => Value::Bool(bool.value),
        _ => return None,
    };
    Some(value.to_string())
}

/// A value that is known now, as far as constraints depend on it.
enum Plain<'v> {
    Number(Number),
    Text(&'v str),
    /// A list with this number of items.
    List(usize),
}

/// Returns why `value`, from an example, is not allowed.
pub(super) fn refusal(value: &Value, limits: &ParamLimits) -> Option<&'static str> {
    let plain = match value {
        Value::Number(number) => match number.as_i128() {
            Some(number) => Plain::Number(Number::Int(number)),
            None => Plain::Number(Number::Float(number.as_f64()?)),
        },
        Value::String(text) => Plain::Text(text),
        Value::Array(items) => Plain::List(items.len()),
        _ => return None,
    };
    breaks(&plain, limits)
}

/// Returns why `value` is not allowed.
fn breaks(value: &Plain<'_>, limits: &ParamLimits) -> Option<&'static str> {
    let length = match value {
        Plain::Number(number) => {
            let range = limits.range.as_ref()?;
            return is_outside(*number, range).then_some("must be in its range");
        }
        Plain::Text(text) => {
            if let Some(reason) = misses(text, limits) {
                return Some(reason);
            }
            text.chars().count()
        }
        Plain::List(length) => *length,
    };
    let bounds = limits.length.as_ref()?;
    let known = |bound: &TokenStream| bound.to_string().parse::<usize>().ok();
    let is_short = known(&bounds.min).is_some_and(|min| length < min);
    let is_long = known(&bounds.max).is_some_and(|max| length > max);
    (is_short || is_long).then_some("must have the length that it requires")
}

/// Returns why the string `text` is not allowed.
fn misses(text: &str, limits: &ParamLimits) -> Option<&'static str> {
    if let Some(pattern) = &limits.pattern
        && regex::Regex::new(pattern).is_ok_and(|pattern| !pattern.is_match(text))
    {
        return Some("must match its pattern");
    }
    let is_choice = |choice: &String| choice == text;
    let choices = &limits.choices;
    (!choices.is_empty() && !choices.iter().any(is_choice)).then_some("must be one of its choices")
}

fn is_outside(number: Number, range: &Range) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "compared as the runtime compares floats")]
    let as_float = |number| match number {
        Number::Int(value) => value as f64,
        Number::Float(value) => value,
    };
    let is_less = |bound: &Option<Bound>, sign: i8| match (bound, number) {
        (Some(Bound::Int(bound)), Number::Int(value)) => match sign {
            1 => value < *bound,
            _ => value > *bound,
        },
        (Some(Bound::Float(bound)), number) => match sign {
            1 => as_float(number) < *bound,
            _ => as_float(number) > *bound,
        },
        _ => false,
    };
    is_less(&range.min, 1) || is_less(&range.max, -1)
}

/// Returns the assertions for a default or a bound that is a constant.
fn is_in_range(default: &Expr, ty: &Type, limits: &ParamLimits) -> Option<Asserted> {
    let range = limits.range.as_ref()?;
    let ends = || range.min.iter().chain(&range.max);
    let value = match (number(default), attr::bare(default)) {
        (Some(_), _) if !ends().any(|bound| matches!(bound, Bound::Const(_))) => return None,
        (Some(_), literal) => literal.to_token_stream(),
        (None, Expr::Path(_)) if ty::is_option(ty) => return None,
        (None, Expr::Path(path)) if range.is_float => quote!((#path as f64)),
        (None, Expr::Path(path)) => quote!((#path as i128)),
        _ => return None,
    };
    let min = range.min.as_ref().map(bound_tokens).map(|min| quote!(#min <= #value));
    let max = range.max.as_ref().map(bound_tokens).map(|max| quote!(#value <= #max));
    let conditions = min.into_iter().chain(max);
    Some(Asserted {
        condition: quote!(#(#conditions)&&*),
        message: "default must be in its range\nhelp: write one that is allowed".to_owned(),
        at: default.to_token_stream(),
    })
}
