//! Determines from the syntax of a parameter's type where its value comes from.
//!
//! Only forms that the macro must treat differently are distinguished; everything else is a value
//! that the model sends, and rustc checks whether it can.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{GenericArgument, PathArguments, Type, TypeReference};

/// Where the value of a parameter comes from.
pub(super) enum ParamKind<'t> {
    /// `&str`: the model sends a string.
    Str,
    /// `Option<&str>`.
    OptionStr,
    /// Any other value that the model sends.
    Value,
    /// `Args<T>`: the model sends everything as one struct.
    Args(&'t Type),
    /// `&Context`, or any other reference: borrowed from the context.
    Borrowed(&'t Type),
    /// `State<T>` or `Context`: taken from the context.
    Owned,
}

/// Why a type cannot be a parameter's, the location, and what to write instead.
pub(super) type TypeRefusal = (TokenStream, &'static str, &'static str);

/// Returns the kind of `ty`.
pub(super) fn param_kind(ty: &Type) -> Result<ParamKind<'_>, TypeRefusal> {
    if let Type::Reference(reference) = without_parens(ty) {
        return kind_of_reference(reference);
    }
    if let Some(token) = find_token(ty.to_token_stream(), &|token| is_ident(token, "impl")) {
        return Err((token, "must not be `impl Trait`", "name the type, such as `String`"));
    }
    match last_segment(ty) {
        Some((name, None)) if name == "Context" => Ok(ParamKind::Owned),
        Some((name, Some(_))) if name == "State" => Ok(ParamKind::Owned),
        Some((name, Some(inner))) if name == "Args" => Ok(ParamKind::Args(inner)),
        Some((name, Some(inner))) if name == "Option" && is_str(inner) => Ok(ParamKind::OptionStr),
        Some((name, Some(inner))) if name == "Option" && is_whole(inner) => {
            let help = "take it without the `Option`; what it holds may be an `Option`";
            Err((inner.to_token_stream(), "must not be an `Option` of this", help))
        }
        _ => kind_of_owned(ty),
    }
}

/// Whether `ty` is there for every call, or not at all: `State<T>` or `Args<T>`.
fn is_whole(ty: &Type) -> bool {
    matches!(last_segment(ty), Some((name, Some(_))) if name == "State" || name == "Args")
}

fn kind_of_reference(reference: &TypeReference) -> Result<ParamKind<'_>, TypeRefusal> {
    if let Some(mutability) = &reference.mutability {
        return Err((
            mutability.to_token_stream(),
            "must not be `&mut`",
            "take an owned value, or `State<T>` of something with its own lock",
        ));
    }
    match &reference.lifetime {
        // A lifetime with another name is a parameter of the function, which has none.
        Some(lifetime) if lifetime.ident == "static" => {
            Err((lifetime.to_token_stream(), "must not have a lifetime", "leave the lifetime out"))
        }
        _ if last_segment(&reference.elem).is_some_and(|(name, _)| name == "str") => {
            Ok(ParamKind::Str)
        }
        _ if matches!(without_parens(&reference.elem), Type::Slice(_)) => {
            let and = reference.and_token.to_token_stream();
            Err((and, "must not be a slice", "take a `Vec`, such as `Vec<String>`"))
        }
        _ if is_whole(&reference.elem) => {
            let and = reference.and_token.to_token_stream();
            Err((and, "must not be a reference", "leave the `&` out; it is cheap to take"))
        }
        _ if last_segment(&reference.elem).is_some_and(|(name, _)| name == "String") => {
            let text = reference.elem.to_token_stream();
            Err((text, "must not be a reference to a `String`", "write `&str`"))
        }
        _ => Ok(ParamKind::Borrowed(&reference.elem)),
    }
}

fn kind_of_owned(ty: &Type) -> Result<ParamKind<'_>, TypeRefusal> {
    match find_borrow(ty) {
        Some(token) => {
            Err((token, "must not borrow", "take an owned type, such as `String`, or `&str`"))
        }
        None => Ok(ParamKind::Value),
    }
}

/// Returns the `&` or `'_` of a borrow in `ty` for less than `'static`.
///
/// A named lifetime is left to the rule that a tool is not generic, and the borrows of a function
/// pointer are its own.
pub(crate) fn find_borrow(ty: &Type) -> Option<TokenStream> {
    let tokens = ty.to_token_stream();
    match find_token(tokens.clone(), &|token| is_ident(token, "fn")) {
        Some(_) => None,
        None => find_elided(tokens),
    }
}

fn find_elided(tokens: TokenStream) -> Option<TokenStream> {
    let is =
        |token: &TokenTree, char| matches!(token, TokenTree::Punct(it) if it.as_char() == char);
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let next = tokens.peek();
        let found = match &token {
            TokenTree::Group(group) => find_elided(group.stream()),
            reference if is(reference, '&') => {
                (!next.is_some_and(|next| is(next, '\''))).then(|| token.into())
            }
            quote if is(quote, '\'') => next
                .filter(|next| is_ident(next, "_"))
                .map(|next| TokenStream::from_iter([token.clone(), next.clone()])),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Returns the `impl Trait` in `ty`.
pub(super) fn find_impl_trait(ty: &Type) -> Option<TokenStream> {
    find_token(ty.to_token_stream(), &|token| is_ident(token, "impl"))
}

/// Whether `ty` has no known size, which rustc reports itself where the function takes it.
pub(super) fn is_unsized(ty: &Type) -> bool {
    match without_parens(ty) {
        Type::Slice(_) | Type::TraitObject(_) => true,
        Type::Path(path) if path.path.is_ident("str") => true,
        _ => {
            matches!(last_segment(ty), Some((name, Some(inner))) if name == "State" && is_unsized(inner))
        }
    }
}

/// Returns the part of `ty` that makes it a future.
pub(super) fn find_future(ty: &Type) -> Option<TokenStream> {
    find_token(ty.to_token_stream(), &|token| is_ident(token, "Future"))
}

/// Whether `ty` names a type that a model does not send, even wrongly.
pub(super) fn is_of_the_call(ty: &Type) -> bool {
    const WORDS: [&str; 4] = ["Context", "State", "Args", "RawArgs"];
    let is_word = |token: &TokenTree| WORDS.iter().any(|word| is_ident(token, word));
    find_token(ty.to_token_stream(), &is_word).is_some()
}

/// Whether `ty` is spelt `Option<_>`.
pub(super) fn is_option(ty: &Type) -> bool {
    matches!(last_segment(ty), Some((name, Some(_))) if name == "Option")
}

/// Returns the type's last segment, looking into `Option<_>`: `u32` of `Option<u32>`.
pub(super) fn type_name(ty: &Type) -> Option<String> {
    match last_segment(ty)? {
        (name, Some(inner)) if name == "Option" => type_name(inner),
        (name, _) => Some(name),
    }
}

/// Whether `word` is a primitive integer.
pub(super) fn is_int(word: &str) -> bool {
    int_bounds(word).is_some()
}

/// Returns the least and the greatest value of the primitive integer `word`, within `i128`.
pub(super) fn int_bounds(word: &str) -> Option<(i128, i128)> {
    Some(match word {
        "u8" => (0, u8::MAX.into()),
        "u16" => (0, u16::MAX.into()),
        "u32" => (0, u32::MAX.into()),
        "u64" | "usize" => (0, u64::MAX.into()),
        "u128" => (0, i128::MAX),
        "i8" => (i8::MIN.into(), i8::MAX.into()),
        "i16" => (i16::MIN.into(), i16::MAX.into()),
        "i32" => (i32::MIN.into(), i32::MAX.into()),
        "i64" | "isize" => (i64::MIN.into(), i64::MAX.into()),
        "i128" => (i128::MIN, i128::MAX),
        _ => return None,
    })
}

/// Whether `word` is a primitive float.
pub(super) fn is_float(word: &str) -> bool {
    matches!(word, "f32" | "f64")
}

/// Whether `word` is a primitive type that cannot be decoded from text.
pub(super) fn is_primitive(word: &str) -> bool {
    is_int(word) || is_float(word) || matches!(word, "bool" | "char")
}

/// Returns `ty` without parentheses and the invisible groups of `macro_rules`.
fn without_parens(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => without_parens(&group.elem),
        Type::Paren(paren) => without_parens(&paren.elem),
        other => other,
    }
}

/// Returns the last segment of a path, and its generic argument if it has exactly one.
fn last_segment(ty: &Type) -> Option<(String, Option<&Type>)> {
    let Type::Path(path) = without_parens(ty) else { return None };
    let last = path.path.segments.last()?;
    let inner = match &last.arguments {
        PathArguments::AngleBracketed(arguments) if arguments.args.len() == 1 => {
            match arguments.args.first() {
                Some(GenericArgument::Type(inner)) => Some(inner),
                _ => None,
            }
        }
        _ => None,
    };
    Some((last.ident.to_string(), inner))
}

fn is_str(ty: &Type) -> bool {
    matches!(without_parens(ty), Type::Reference(reference)
        if matches!(kind_of_reference(reference), Ok(ParamKind::Str)))
}

fn is_ident(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

/// Returns the first token that `wanted` accepts, at any depth.
fn find_token(tokens: TokenStream, wanted: &dyn Fn(&TokenTree) -> bool) -> Option<TokenStream> {
    tokens.into_iter().find_map(|token| match token {
        token if wanted(&token) => Some(token.into()),
        TokenTree::Group(group) => find_token(group.stream(), wanted),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(ty: &str) -> &'static str {
        match param_kind(&syn::parse_str(ty).unwrap()) {
            Ok(ParamKind::Str) => "str",
            Ok(ParamKind::OptionStr) => "option str",
            Ok(ParamKind::Value) => "value",
            Ok(ParamKind::Args(_)) => "args",
            Ok(ParamKind::Borrowed(_)) => "borrowed",
            Ok(ParamKind::Owned) => "owned",
            Err((_, what, _)) => what,
        }
    }

    #[test]
    fn every_form_has_one_source() {
        for (ty, expected) in [
            ("&str", "str"),
            ("&'_ str", "str"),
            ("Option<&str>", "option str"),
            ("String", "value"),
            ("Vec<Option<u8>>", "value"),
            ("(u8, u8)", "value"),
            ("tool_sdk::Args<Search>", "args"),
            ("&Context", "borrowed"),
            ("&[String]", "must not be a slice"),
            ("&State<Db>", "must not be a reference"),
            ("&String", "must not be a reference to a `String`"),
            ("Option<State<Db>>", "must not be an `Option` of this"),
            ("Option<Args<Search>>", "must not be an `Option` of this"),
            ("State<Box<dyn Db>>", "owned"),
            ("State<Db>", "owned"),
            ("Context", "owned"),
            ("&mut Vec<u8>", "must not be `&mut`"),
            ("&'static str", "must not have a lifetime"),
            ("&'a str", "str"),
            ("Cow<'static, str>", "value"),
            ("fn(&str)", "value"),
            ("Cow<'_, str>", "must not borrow"),
            ("Vec<(u8, &str)>", "must not borrow"),
            ("Option<&Point>", "must not borrow"),
            ("impl Into<String>", "must not be `impl Trait`"),
            ("Option<impl Into<String>>", "must not be `impl Trait`"),
        ] {
            assert_eq!(name(ty), expected, "{ty}");
        }
    }
}
