//! Spans of generated tokens: where they point, and who owns them.
//!
//! A token has a location, which errors underline, and an owner, by which lints distinguish the
//! user's code from a macro's. Generated tokens at the user's location pass strict lints without
//! an `allow`, which would itself be an error under `forbid`.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use syn::spanned::Spanned;

/// Returns the location of the user's `tokens`, owned by this crate.
pub(crate) fn macro_span(tokens: &impl Spanned) -> Span {
    tokens.span().resolved_at(Span::call_site())
}

/// Returns the user's `ident`, owned by this crate.
pub(crate) fn generated_ident(ident: &Ident) -> Ident {
    let mut ident = ident.clone();
    ident.set_span(macro_span(&ident));
    ident
}

/// Returns the user's `tokens`, owned by this crate.
pub(crate) fn with_macro_spans(tokens: TokenStream) -> TokenStream {
    respan(tokens, &|span| span.resolved_at(Span::call_site()))
}

/// Returns `tokens` with their owners, moved to another location.
pub(crate) fn moved_to(tokens: TokenStream, place: Span) -> TokenStream {
    respan(tokens, &|span| span.located_at(place))
}

fn respan(tokens: TokenStream, to: &dyn Fn(Span) -> Span) -> TokenStream {
    let token = |token: TokenTree| {
        let span = to(token.span());
        let mut token = match token {
            TokenTree::Group(group) => {
                Group::new(group.delimiter(), respan(group.stream(), to)).into()
            }
            other => other,
        };
        token.set_span(span);
        token
    };
    tokens.into_iter().map(token).collect()
}
