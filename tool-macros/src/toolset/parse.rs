//! First step: an `impl` block as it was written, with unparsed bodies.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::discouraged::Speculative;
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, Generics, ImplItem, Meta, MetaNameValue, Path, Token, Type, Visibility, braced,
    token,
};

use crate::tool::parse::{ToolFunction, is_tool};

/// An `impl` block.
pub(crate) struct ToolsetBlock {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) generics: Generics,
    /// The trait of `impl Trait for Type`.
    pub(crate) implemented: Option<Path>,
    pub(crate) ty: Type,
    pub(crate) members: Vec<BlockMember>,
    pub(crate) impl_token: Token![impl],
}

/// A member of the block.
pub(crate) enum BlockMember {
    /// A method with `#[tool]`, and the tokens in its parentheses.
    Tool(ToolFunction, TokenStream),
    /// A function of the type itself.
    Function(ToolFunction),
    /// A constant, a type, a macro.
    Other(ImplItem),
    /// A function that syn cannot parse, which rustc has reported.
    Unread(syn::Error),
}

impl Parse for ToolsetBlock {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let Ok(impl_token) = input.parse() else {
            return Err(
                input.error("`#[toolset]` must be on an `impl` block\nhelp: put it on `impl Type`")
            );
        };
        let mut generics: Generics = match input.peek(Token![<]) {
            true => input.parse()?,
            false => Generics::default(),
        };
        let mut ty: Type = input.parse()?;
        let mut implemented = None;
        if input.parse::<Option<Token![for]>>()?.is_some() {
            implemented = Some(syn::parse2(ty.to_token_stream())?);
            ty = input.parse()?;
        }
        generics.where_clause = input.parse()?;
        let content;
        braced!(content in input);
        let mut members = Vec::new();
        while !content.is_empty() {
            members.push(content.parse()?);
        }
        Ok(Self { attrs, generics, implemented, ty, members, impl_token })
    }
}

impl Parse for BlockMember {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let ahead = input.fork();
        let mut attrs = ahead.call(Attribute::parse_outer)?;
        let vis: Visibility = ahead.parse()?;
        if !ToolFunction::is_next(&ahead) {
            return Ok(Self::Other(input.parse()?));
        }
        input.call(Attribute::parse_outer)?;
        input.parse::<Visibility>()?;
        let attribute =
            attrs.iter().position(is_tool).map(|at| attribute_arguments(&attrs.remove(at)));
        let ahead = input.fork();
        let function = match ToolFunction::parse_rest(attrs, vis, &ahead) {
            Ok(function) => function,
            Err(error) => return skip_function(input, error),
        };
        input.advance_to(&ahead);
        Ok(match attribute {
            Some(attribute) => Self::Tool(function, attribute),
            None => Self::Function(function),
        })
    }
}

/// Continues behind the body of a function with an `error`.
fn skip_function(input: ParseStream<'_>, error: syn::Error) -> syn::Result<BlockMember> {
    while !input.is_empty() {
        let is_body = input.peek(token::Brace) || input.peek(Token![;]);
        input.parse::<TokenTree>()?;
        if is_body {
            break;
        }
    }
    Ok(BlockMember::Unread(error))
}

/// The tokens in the parentheses of `#[tool(..)]`.
fn attribute_arguments(attribute: &Attribute) -> TokenStream {
    match &attribute.meta {
        Meta::Path(_) => TokenStream::new(),
        Meta::List(list) => list.tokens.clone(),
        // No item begins with `=`, so it is rejected there.
        Meta::NameValue(MetaNameValue { eq_token, value, .. }) => quote!(#eq_token #value),
    }
}

/// The block for rustc.
impl ToTokens for ToolsetBlock {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { attrs, generics, ty, members, impl_token, .. } = self;
        let (parameters, _, condition) = generics.split_for_impl();
        let implemented = self.implemented.iter();
        tokens.extend(quote! {
            #(#attrs)*
            #impl_token #parameters #(#implemented for)* #ty #condition {
                #(#members)*
            }
        });
    }
}

impl ToTokens for BlockMember {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Tool(function, _) | Self::Function(function) => function.to_tokens(tokens),
            Self::Other(other) => other.to_tokens(tokens),
            Self::Unread(_) => {}
        }
    }
}
