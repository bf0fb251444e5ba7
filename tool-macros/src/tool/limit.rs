//! `range`, `length`, `pattern` and `choices` of a parameter, and its default.
//!
//! Literals, and the values in examples, are compared here; a constant becomes an assertion for
//! rustc.

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use serde_json::Value;
use syn::{Expr, ExprRange, ExprUnary, Lit, LitStr, RangeLimits, Type, UnOp};

use super::model::{
    ConstAssertion, DefaultValue, LengthRange, NumberRange, ParamLimits, RangeBound,
};
use super::ty::{self, ParamKind};
use crate::attr::{self, CheckedItems};
use crate::diag::Diagnostics;
use crate::span;

/// Returns the constraints that `items` put on a parameter of type `ty`.
pub(super) fn lower_limits(
    items: &CheckedItems<'_>,
    ty: &Type,
    kind: &ParamKind<'_>,
    diag: &mut Diagnostics,
) -> ParamLimits {
    let mut limits = ParamLimits::default();
    if let (Some(key), ParamKind::Str | ParamKind::OptionStr) = (items.key("range"), kind) {
        diag.error(key, "`range` must be on a number, not on text", "write `length = 1..=200`");
    } else if let Some(expr) = items.expr("range") {
        limits.range = lower_range(expr, ty, diag);
        limits
            .asserted
            .extend(limits.range.as_ref().and_then(|range| assert_not_empty(range, expr)));
    }
    limits.length = items.expr("length").and_then(|expr| lower_length(expr, diag));
    limits.pattern = items
        .string("pattern", diag)
        .filter(|text| check_pattern(text, diag))
        .map(|text| text.value());
    let written = items.string_list("choices", diag);
    for choice in &written {
        if let Some(reason) = broken_limit(&KnownValue::Text(&choice.value()), &limits) {
            let what = format_args!("choice `{}` {reason}", choice.value());
            diag.error(choice, what, "write one that is allowed");
        }
    }
    limits.choices = lower_choices(&written, diag);
    limits
}

fn lower_range(expr: &Expr, ty: &Type, diag: &mut Diagnostics) -> Option<NumberRange> {
    let written = parse_bounds(expr, "range", "range = 1..=100", diag)?;
    let word = ty::type_name(ty).unwrap_or_default();
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
            let bound = lower_number_bound(expr, is_float, less, diag);
            bound.filter(|bound| is_of_type(bound, &word, expr, diag)).map(Some)
        }
        None => Some(None),
    };
    let min = bound(start, 0, diag);
    let max = bound(end, i128::from(is_open), diag);
    let range = NumberRange { is_float, min: min?, max: max? };
    let is_empty = match (&range.min, &range.max) {
        (Some(RangeBound::Int(min)), Some(RangeBound::Int(max))) => min > max,
        (Some(RangeBound::Float(min)), Some(RangeBound::Float(max))) => min > max,
        _ => false,
    };
    if is_empty {
        diag.error(expr, "`range` must not be empty", empty_range_help(start, end));
        return None;
    }
    Some(range)
}

/// The help for an empty range.
fn empty_range_help(start: Option<&Expr>, end: Option<&Expr>) -> String {
    match (start.and_then(parse_number), end.and_then(parse_number)) {
        (Some(NumberLiteral::Int(start)), Some(NumberLiteral::Int(end))) if start == end => {
            format!("write `{start}..={end}` for that number alone")
        }
        _ => "write the smaller number first".to_owned(),
    }
}

/// Whether a value of the integer `word` can be `bound`.
fn is_of_type(bound: &RangeBound, word: &str, at: &Expr, diag: &mut Diagnostics) -> bool {
    let (RangeBound::Int(bound), Some((min, max))) = (bound, ty::int_bounds(word)) else {
        return true;
    };
    let is_inside = (min..=max).contains(bound);
    if !is_inside {
        let what = format_args!("bound of `range` must be a number of type `{word}`");
        diag.error(at, what, format_args!("stay within `{min}..={max}`, or take another type"));
    }
    is_inside
}

/// Parses the range in `expr`, with at least one end.
fn parse_bounds<'e>(
    expr: &'e Expr,
    key: &str,
    form: &str,
    diag: &mut Diagnostics,
) -> Option<&'e ExprRange> {
    match attr::without_parens(expr) {
        Expr::Range(range) if range.start.is_some() || range.end.is_some() => Some(range),
        _ => {
            diag.error(expr, format_args!("`{key}` must have bounds"), format!("write `{form}`"));
            None
        }
    }
}

fn lower_number_bound(
    expr: &Expr,
    is_float: bool,
    less: i128,
    diag: &mut Diagnostics,
) -> Option<RangeBound> {
    match (parse_number(expr), attr::without_parens(expr)) {
        #[expect(clippy::cast_precision_loss, reason = "a float bound written without its point")]
        (Some(NumberLiteral::Int(value)), _) if is_float => Some(RangeBound::Float(value as f64)),
        (Some(NumberLiteral::Int(value)), _) => Some(RangeBound::Int(value.saturating_sub(less))),
        (Some(NumberLiteral::Float(value)), _) => Some(RangeBound::Float(value)),
        (None, Expr::Path(path)) => {
            // A constant that cannot be cast is an error at the constant.
            let at = span::macro_span(path);
            Some(RangeBound::Const(match (is_float, less) {
                (true, _) => quote_spanned!(at=> #path as f64),
                (false, 0) => quote_spanned!(at=> #path as i128),
                (false, _) => quote_spanned!(at=> #path as i128 - 1),
            }))
        }
        _ => {
            let help = match attr::as_literal(expr) {
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
enum NumberLiteral {
    Int(i128),
    Float(f64),
}

/// Parses the number in `expr`, with its sign.
fn parse_number(expr: &Expr) -> Option<NumberLiteral> {
    match attr::without_parens(expr) {
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => Some(match parse_number(expr)? {
            NumberLiteral::Int(value) => NumberLiteral::Int(-value),
            NumberLiteral::Float(value) => NumberLiteral::Float(-value),
        }),
        other => match attr::as_literal(other)? {
            Lit::Int(int) if matches!(int.suffix(), "f32" | "f64") => {
                int.base10_digits().parse().ok().map(NumberLiteral::Float)
            }
            Lit::Int(int) => int.base10_parse().ok().map(NumberLiteral::Int),
            Lit::Float(float) => float.base10_parse().ok().map(NumberLiteral::Float),
            _ => None,
        },
    }
}

fn is_float(expr: &Expr) -> bool {
    matches!(parse_number(expr), Some(NumberLiteral::Float(_)))
}

/// A bound as an expression.
pub(super) fn bound_tokens(bound: &RangeBound) -> TokenStream {
    match bound {
        RangeBound::Int(value) => Literal::i128_unsuffixed(*value).to_token_stream(),
        RangeBound::Float(value) => Literal::f64_unsuffixed(*value).to_token_stream(),
        RangeBound::Const(expr) => quote!((#expr)),
    }
}

/// Returns the assertions for a range with constants.
fn assert_not_empty(range: &NumberRange, at: &Expr) -> Option<ConstAssertion> {
    let (Some(min), Some(max)) = (&range.min, &range.max) else { return None };
    if !matches!((min, max), (RangeBound::Const(_), _) | (_, RangeBound::Const(_))) {
        return None;
    }
    let (min, max) = (bound_tokens(min), bound_tokens(max));
    Some(ConstAssertion {
        condition: quote!(#min <= #max),
        message: "`range` must not be empty\nhelp: write the smaller number first".to_owned(),
        at: at.to_token_stream(),
    })
}

fn lower_length(expr: &Expr, diag: &mut Diagnostics) -> Option<LengthRange> {
    let written = parse_bounds(expr, "length", "length = 1..=200", diag)?;
    let less = usize::from(matches!(written.limits, RangeLimits::HalfOpen(_)));
    let ends = [(written.start.as_deref(), 0), (written.end.as_deref(), less)];
    let [min, max] = ends.map(|(end, less)| match end {
        Some(end) => lower_length_bound(end, less, diag).map(Some),
        None => Some(None),
    });
    let (min, max) = (min?, max?);
    if let (Some((Some(min), _)), Some((Some(max), _))) = (&min, &max)
        && min > max
    {
        let help = empty_range_help(written.start.as_deref(), written.end.as_deref());
        diag.error(expr, "`length` must not be empty", help);
        return None;
    }
    let open = quote!(::core::primitive::usize::MAX);
    Some(LengthRange {
        min: min.map_or_else(|| quote!(0), |(_, tokens)| tokens),
        max: max.map_or(open, |(_, tokens)| tokens),
    })
}

/// A bound of a length: its value, where it is known, and its expression.
fn lower_length_bound(
    expr: &Expr,
    less: usize,
    diag: &mut Diagnostics,
) -> Option<(Option<usize>, TokenStream)> {
    match (parse_number(expr), attr::without_parens(expr)) {
        (Some(NumberLiteral::Int(0)), _) if less > 0 => {
            diag.error(expr, "`length` must not be empty", "write a greater number, or `..=0`");
            return None;
        }
        (Some(NumberLiteral::Int(value)), _) => {
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

fn check_pattern(text: &LitStr, diag: &mut Diagnostics) -> bool {
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

fn lower_choices(written: &[LitStr], diag: &mut Diagnostics) -> Vec<String> {
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
pub(super) fn lower_default(
    expr: &Expr,
    ty: &Type,
    kind: &ParamKind<'_>,
    limits: &mut ParamLimits,
    diag: &mut Diagnostics,
) -> DefaultValue {
    let is_optional = ty::is_option(ty);
    let inner = if is_optional { inside_some(expr) } else { None };
    let plain = inner.unwrap_or(expr);
    let asserted = assert_in_range(plain, ty, limits);
    limits.asserted.extend(asserted);
    let Some(json) = literal_json(plain) else {
        return DefaultValue::Expr(convert_default(expr, kind));
    };
    let text = attr::as_string(plain).map(LitStr::value);
    let written = match (parse_number(plain), &text) {
        (Some(number), _) => Some(KnownValue::Number(number)),
        (None, text) => text.as_deref().map(KnownValue::Text),
    };
    if let Some(reason) = written.and_then(|written| broken_limit(&written, limits)) {
        diag.error(plain, format_args!("default {json} {reason}"), "write one that is allowed");
    }
    let converts = !ty::type_name(ty).is_some_and(|word| ty::is_primitive(&word));
    let value = match attr::as_string(plain) {
        Some(text) if converts => {
            quote_spanned!(span::macro_span(text)=> __rt::text_default(#text))
        }
        _ => attr::to_user_tokens(plain),
    };
    let value = if is_optional { quote!(::core::option::Option::Some(#value)) } else { value };
    DefaultValue::Literal { json, value }
}

/// Returns `x` of `Some(x)`.
fn inside_some(expr: &Expr) -> Option<&Expr> {
    match attr::without_parens(expr) {
        Expr::Call(call) if call.args.len() == 1 && attr::as_ident(&call.func)? == "Some" => {
            call.args.first()
        }
        _ => None,
    }
}

/// A computed default of a string that the function borrows may itself be borrowed.
fn convert_default(expr: &Expr, kind: &ParamKind<'_>) -> TokenStream {
    match kind {
        ParamKind::Str => {
            quote_spanned!(span::macro_span(expr)=> ::core::convert::From::from(#expr))
        }
        ParamKind::OptionStr => {
            quote_spanned!(span::macro_span(expr)=> ::core::option::Option::map(#expr, ::core::convert::From::from))
        }
        _ => attr::to_user_tokens(expr),
    }
}

/// Returns the JSON text of a literal.
fn literal_json(expr: &Expr) -> Option<String> {
    match parse_number(expr) {
        Some(NumberLiteral::Int(value)) => return Some(value.to_string()),
        Some(NumberLiteral::Float(value)) => {
            return serde_json::Number::from_f64(value).map(|number| number.to_string());
        }
        None => {}
    }
    let value = match attr::as_literal(expr)? {
        Lit::Str(text) => text.value().into(),
        Lit::Char(char) => char.value().to_string().into(),
        Lit::Bool(bool) => Value::Bool(bool.value),
        _ => return None,
    };
    Some(value.to_string())
}

/// A value that is known now, as far as constraints depend on it.
enum KnownValue<'v> {
    Number(NumberLiteral),
    Text(&'v str),
    /// A list with this number of items.
    List(usize),
}

/// Returns why `value`, from an example, is not allowed.
pub(super) fn why_refused(value: &Value, limits: &ParamLimits) -> Option<&'static str> {
    let plain = match value {
        Value::Number(number) => match number.as_i128() {
            Some(number) => KnownValue::Number(NumberLiteral::Int(number)),
            None => KnownValue::Number(NumberLiteral::Float(number.as_f64()?)),
        },
        Value::String(text) => KnownValue::Text(text),
        Value::Array(items) => KnownValue::List(items.len()),
        _ => return None,
    };
    broken_limit(&plain, limits)
}

/// Returns why `value` is not allowed.
fn broken_limit(value: &KnownValue<'_>, limits: &ParamLimits) -> Option<&'static str> {
    let length = match value {
        KnownValue::Number(number) => {
            let range = limits.range.as_ref()?;
            return is_outside(*number, range).then_some("must be in its range");
        }
        KnownValue::Text(text) => {
            if let Some(reason) = broken_text_limit(text, limits) {
                return Some(reason);
            }
            text.chars().count()
        }
        KnownValue::List(length) => *length,
    };
    let bounds = limits.length.as_ref()?;
    let known = |bound: &TokenStream| bound.to_string().parse::<usize>().ok();
    let is_short = known(&bounds.min).is_some_and(|min| length < min);
    let is_long = known(&bounds.max).is_some_and(|max| length > max);
    (is_short || is_long).then_some("must have the length that it requires")
}

/// Returns why the string `text` is not allowed.
fn broken_text_limit(text: &str, limits: &ParamLimits) -> Option<&'static str> {
    if let Some(pattern) = &limits.pattern
        && regex::Regex::new(pattern).is_ok_and(|pattern| !pattern.is_match(text))
    {
        return Some("must match its pattern");
    }
    let is_choice = |choice: &String| choice == text;
    let choices = &limits.choices;
    (!choices.is_empty() && !choices.iter().any(is_choice)).then_some("must be one of its choices")
}

fn is_outside(number: NumberLiteral, range: &NumberRange) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "compared as the runtime compares floats")]
    let as_float = |number| match number {
        NumberLiteral::Int(value) => value as f64,
        NumberLiteral::Float(value) => value,
    };
    let is_less = |bound: &Option<RangeBound>, sign: i8| match (bound, number) {
        (Some(RangeBound::Int(bound)), NumberLiteral::Int(value)) => match sign {
            1 => value < *bound,
            _ => value > *bound,
        },
        (Some(RangeBound::Float(bound)), number) => match sign {
            1 => as_float(number) < *bound,
            _ => as_float(number) > *bound,
        },
        _ => false,
    };
    is_less(&range.min, 1) || is_less(&range.max, -1)
}

/// Returns the assertions for a default or a bound that is a constant.
fn assert_in_range(default: &Expr, ty: &Type, limits: &ParamLimits) -> Option<ConstAssertion> {
    let range = limits.range.as_ref()?;
    let ends = || range.min.iter().chain(&range.max);
    let value = match (parse_number(default), attr::without_parens(default)) {
        (Some(_), _) if !ends().any(|bound| matches!(bound, RangeBound::Const(_))) => return None,
        (Some(_), literal) => literal.to_token_stream(),
        (None, Expr::Path(_)) if ty::is_option(ty) => return None,
        (None, Expr::Path(path)) if range.is_float => quote!((#path as f64)),
        (None, Expr::Path(path)) => quote!((#path as i128)),
        _ => return None,
    };
    let min = range.min.as_ref().map(bound_tokens).map(|min| quote!(#min <= #value));
    let max = range.max.as_ref().map(bound_tokens).map(|max| quote!(#value <= #max));
    let conditions = min.into_iter().chain(max);
    Some(ConstAssertion {
        condition: quote!(#(#conditions)&&*),
        message: "default must be in its range\nhelp: write one that is allowed".to_owned(),
        at: default.to_token_stream(),
    })
}
