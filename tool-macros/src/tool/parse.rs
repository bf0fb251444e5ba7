//! First step: a function as it was written.
//!
//! The body stays raw tokens, so that rustc explains an incomplete body.
//!
//! **Invariant:** every function is accepted here.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Attribute, FnArg, Ident, Signature, Token, Visibility, token};

use super::param::is_misspelt;
use crate::{docs, span};

/// A function with an unparsed body.
pub(crate) struct ToolFunction {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) body: TokenStream,
}

impl ToolFunction {
    /// Whether a function follows in `input`, after attributes and visibility.
    pub(crate) fn is_next(input: ParseStream<'_>) -> bool {
        let ahead = input.fork();
        loop {
            if ahead.peek(Token![fn]) {
                return true;
            }
            if ahead.parse::<Token![extern]>().is_ok() {
                let _: syn::Result<syn::LitStr> = ahead.parse();
            } else if ahead.parse::<Token![const]>().is_err()
                && ahead.parse::<Token![async]>().is_err()
                && ahead.parse::<Token![unsafe]>().is_err()
            {
                return false;
            }
        }
    }

    /// Parses the rest of a function.
    pub(crate) fn parse_rest(
        attrs: Vec<Attribute>,
        vis: Visibility,
        input: ParseStream<'_>,
    ) -> syn::Result<Self> {
        let sig = input.parse()?;
        if !input.peek(token::Brace) && !input.peek(Token![;]) {
            return Err(input.error("expected the body of the function"));
        }
        let body: TokenTree = input.parse()?;
        Ok(Self { attrs, vis, sig, body: body.into() })
    }

    /// Whether it has a body and not just a semicolon.
    pub(crate) fn has_body(&self) -> bool {
        !self.body.to_string().starts_with(';')
    }
}

impl Parse for ToolFunction {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis: Visibility = input.parse()?;
        if !Self::is_next(input) {
            return Err(
                input.error("`#[tool]` must be on a function\nhelp: put it on an `async fn`")
            );
        }
        Self::parse_rest(attrs, vis, input)
    }
}

/// The function for rustc, without the attributes that only this crate understands.
impl ToTokens for ToolFunction {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let (vis, body) = (&self.vis, &self.body);
        let attrs = self.attrs.iter().filter(|attr| !is_tool(attr) && !is_arg(attr));
        let mut sig = self.sig.clone();
        for input in &mut sig.inputs {
            let (FnArg::Receiver(syn::Receiver { attrs, .. })
            | FnArg::Typed(syn::PatType { attrs, .. })) = input;
            attrs.retain(|attr| {
                let is_ours = is_arg(attr) || is_of_a_derive(attr) || is_misspelt(attr);
                !is_ours && !docs::is_doc(attr)
            });
        }
        tokens.extend(quote!(#(#attrs)* #vis #sig #body));
    }
}

/// Whether `attribute` is `#[tool]`, under any path.
pub(crate) fn is_tool(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|last| last.ident == "tool")
}

/// Whether `attribute` is `#[arg(..)]`.
pub(crate) fn is_arg(attribute: &Attribute) -> bool {
    attribute.path().is_ident("arg")
}

/// Whether `attribute` has a meaning only on the fields of a struct of arguments.
pub(crate) fn is_of_a_derive(attribute: &Attribute) -> bool {
    attribute.path().is_ident("serde") || attribute.path().is_ident("schemars")
}

/// Returns the name of a function that syn cannot parse, and the tokens before it.
pub(crate) struct FunctionHead {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) ident: Ident,
}

impl FunctionHead {
    /// Returns the name of `item`, if it is a free function.
    pub(super) fn parse(item: TokenStream) -> Option<Self> {
        let head = |input: ParseStream<'_>| {
            let attrs = input.call(Attribute::parse_outer)?;
            let vis = input.parse()?;
            if !ToolFunction::is_next(input) {
                return Err(input.error("no function"));
            }
            while !input.peek(Token![fn]) {
                input.parse::<TokenTree>()?;
            }
            input.parse::<Token![fn]>()?;
            let ident = input.parse()?;
            match names_self(input.parse()?) {
                true => Err(input.error("no function that stands by itself")),
                false => Ok(Self { attrs, vis, ident }),
            }
        };
        head.parse2(item).ok()
    }
}

/// Whether parameters or a result mention `self` or `Self`; bodies are not examined.
fn names_self(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(name) => name == "self" || name == "Self",
        TokenTree::Group(group) => {
            group.delimiter() == Delimiter::Parenthesis && names_self(group.stream())
        }
        _ => false,
    })
}

/// Removes `#[arg]` and doc comments inside parentheses in tokens that syn cannot parse, so that
/// rustc reports only the real mistake.
pub(crate) fn without_param_attributes(tokens: TokenStream) -> TokenStream {
    map_groups(tokens, &|group| match group.delimiter() {
        Delimiter::Parenthesis => without_attributes(group.stream(), &["arg", "doc"]),
        _ => without_param_attributes(group.stream()),
    })
}

/// Removes `#[tool]` as well where functions cannot be tools, as in a trait.
pub(crate) fn without_tools(tokens: TokenStream) -> TokenStream {
    let is_module = |token: TokenTree| matches!(token, TokenTree::Ident(word) if word == "mod");
    let tokens = without_param_attributes(tokens);
    if tokens.clone().into_iter().any(is_module) {
        return tokens;
    }
    map_groups(tokens, &|group| match group.delimiter() {
        Delimiter::Brace => without_attributes(group.stream(), &["tool"]),
        _ => group.stream(),
    })
}

fn map_groups(tokens: TokenStream, inside: &dyn Fn(&Group) -> TokenStream) -> TokenStream {
    let token = |token| match token {
        TokenTree::Group(group) => {
            let mut mapped = Group::new(group.delimiter(), inside(&group));
            mapped.set_span(group.span());
            mapped.into()
        }
        other => other,
    };
    tokens.into_iter().map(token).collect()
}

fn without_attributes(tokens: TokenStream, names: &[&str]) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let after_pound =
            matches!(kept.last(), Some(TokenTree::Punct(pound)) if pound.as_char() == '#');
        match &token {
            TokenTree::Group(group) if after_pound && is_named(group, names) => {
                kept.pop();
            }
            _ => kept.push(token),
        }
    }
    kept.into_iter().collect()
}

fn is_named(group: &Group, names: &[&str]) -> bool {
    group.delimiter() == Delimiter::Bracket
        && matches!(
            group.stream().into_iter().next(),
            Some(TokenTree::Ident(name)) if names.iter().any(|it| name == it)
        )
}

/// Returns the `Self` in a head; it is known only in an `impl` or a trait.
pub(super) fn self_type(sig: &Signature) -> Option<TokenTree> {
    fn find(tokens: TokenStream) -> Option<TokenTree> {
        tokens.into_iter().find_map(|token| match token {
            TokenTree::Ident(ref name) if name == "Self" => Some(token),
            TokenTree::Group(group) => find(group.stream()),
            _ => None,
        })
    }
    find(quote!(#sig))
}

/// Replaces `Self` in `tokens` by `concrete`, for code outside the `impl` block.
pub(crate) fn without_self(tokens: TokenStream, concrete: &TokenStream) -> TokenStream {
    let mut written = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(name) if name == "Self" => {
                let is_path =
                    matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == ':');
                let ty = span::moved_to(concrete.clone(), name.span());
                // The brackets are part of the location, which an error at the path underlines.
                let at = span::macro_span(&name);
                written.extend(if is_path { quote_spanned!(at=> <#ty>) } else { ty });
            }
            TokenTree::Group(group) => {
                let content = without_self(group.stream(), concrete);
                let mut group_without = Group::new(group.delimiter(), content);
                group_without.set_span(group.span());
                group_without.to_tokens(&mut written);
            }
            other => other.to_tokens(&mut written),
        }
    }
    written
}

/// Returns a body for a function whose own is not needed.
pub(crate) fn no_body() -> TokenStream {
    let mut tokens = TokenStream::new();
    token::Brace::default().surround(&mut tokens, |_| {});
    tokens
}
