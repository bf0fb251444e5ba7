//! Doc comments as text for a model.
//!
//! All doc attributes count, even between other attributes. Lines and paragraphs stay as they
//! were written.
//!
//! **Invariant:** no text is invented; without a comment there is none.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, Meta};

use crate::attr;

/// A text that is known now, or an expression that is evaluated when the user's crate compiles.
#[derive(Clone)]
pub(crate) enum DocText {
    Literal(String),
    Expr(TokenStream),
}

impl ToTokens for DocText {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Literal(text) => text.to_tokens(tokens),
            Self::Expr(expr) => expr.to_tokens(tokens),
        }
    }
}

/// Whether `attribute` is a doc comment or another form of `#[doc..]`.
pub(crate) fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

/// Returns the text of all doc comments among `attributes`; `None` when it is empty.
pub(crate) fn doc_text(attributes: &[Attribute]) -> Option<DocText> {
    let fragments: Vec<&Expr> = attributes.iter().filter_map(doc_expr).collect();
    let literals: Option<Vec<String>> = fragments.iter().map(|expr| literal_text(expr)).collect();
    match literals {
        Some(literals) => {
            Some(join_lines(&literals)).filter(|text| !text.is_empty()).map(DocText::Literal)
        }
        None => Some(DocText::Expr(concat_fragments(&fragments))),
    }
}

fn doc_expr(attribute: &Attribute) -> Option<&Expr> {
    match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => Some(&meta.value),
        _ => None,
    }
}

fn literal_text(expr: &Expr) -> Option<String> {
    attr::as_string(expr).map(syn::LitStr::value)
}

/// Literal and computed fragments as one constant expression.
fn concat_fragments(fragments: &[&Expr]) -> TokenStream {
    let parts = fragments.iter().map(|expr| match literal_text(expr) {
        Some(line) => comment_lines(&line).join("\n").to_token_stream(),
        None => expr.to_token_stream(),
    });
    quote!(::core::concat!(#(#parts, "\n"),*).trim_ascii())
}

fn join_lines(fragments: &[String]) -> String {
    let all: Vec<String> = fragments.iter().flat_map(|fragment| comment_lines(fragment)).collect();
    all.join("\n").trim_matches('\n').trim_end().to_owned()
}

/// Returns the lines of one comment without decoration.
fn comment_lines(comment: &str) -> Vec<String> {
    if comment.contains('\n') {
        return block_lines(comment);
    }
    vec![comment.strip_prefix(' ').unwrap_or(comment).trim_end().to_owned()]
}

/// Returns the lines of a `/** .. */` comment without the margin of stars and the common
/// indentation.
fn block_lines(comment: &str) -> Vec<String> {
    let lines: Vec<&str> = comment.lines().map(str::trim_end).collect();
    let starred = lines.iter().skip(1).all(|line| {
        let line = line.trim_start();
        line.is_empty() || line.starts_with('*')
    });
    let lines: Vec<&str> = lines
        .into_iter()
        .map(|line| match line.trim_start().strip_prefix('*') {
            Some(rest) if starred => rest,
            _ => line,
        })
        .collect();
    let indent = |line: &&str| line.len() - line.trim_start().len();
    // The first line follows `/**` and does not count for the indentation.
    let margin =
        lines.iter().skip(1).filter(|line| !line.is_empty()).map(indent).min().unwrap_or(0);
    let cut = |(at, line): (usize, &str)| match at {
        0 => line.trim_start().to_owned(),
        _ => line.get(margin..).unwrap_or_default().to_owned(),
    };
    lines.into_iter().enumerate().map(cut).collect()
}

#[cfg(test)]
mod tests {
    use quote::quote;
    use syn::parse::Parser;

    use super::*;

    #[track_caller]
    fn check(attributes: TokenStream, expected: &str) {
        let attributes = Attribute::parse_outer.parse2(attributes).unwrap();
        let text = match doc_text(&attributes) {
            Some(DocText::Literal(text)) => text,
            Some(DocText::Expr(expr)) => expr.to_string(),
            None => "nothing".to_owned(),
        };
        assert_eq!(text, expected);
    }

    #[test]
    fn lines_and_paragraphs_stay() {
        check(
            quote! {
                /// One.
                /// Two.
                ///
                ///     indented
            },
            "One.\nTwo.\n\n    indented",
        );
    }

    #[test]
    fn comments_between_other_attributes_count() {
        check(
            quote! {
                /// One.
                #[must_use]
                /// Two.
                #[doc(hidden)]
                #[doc = "Three."]
            },
            "One.\nTwo.\nThree.",
        );
    }

    #[test]
    fn a_block_loses_its_margin() {
        check(quote!(#[doc = "\n * One.\n *\n *   Two.\n "]), "One.\n\n  Two.");
        check(quote!(#[doc = " One.\n    Two.\n      Three."]), "One.\nTwo.\n  Three.");
    }

    #[test]
    fn an_included_file_is_left_to_the_compiler() {
        check(
            quote! {
                /// One.
                #[doc = include_str!("two.md")]
            },
            r#":: core :: concat ! ("One." , "\n" , include_str ! ("two.md") , "\n") . trim_ascii ()"#,
        );
    }

    #[test]
    fn a_blank_comment_is_none() {
        check(quote!(#[doc = ""] #[doc = "   "]), "nothing");
        check(quote!(#[inline]), "nothing");
    }
}
