//! Last step: the block, the structs of arguments, and the tools on a shared value.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;

use super::lower::{Toolset, is_plain, outside, owner, place};
use super::parse::{Block, Member};
use crate::attr::Item;
use crate::span;
use crate::tool::lower::{Site, runtime};
use crate::tool::model::Tool;
use crate::tool::{committed, expand, inert as inert_tool, spec};

/// A valid toolset.
pub(super) fn toolset(toolset: &Toolset, block: &Block) -> TokenStream {
    let Toolset { ty, cfgs, runtime, tools } = toolset;
    let args = tools.iter().map(|tool| {
        let args = expand::args_struct(tool);
        (!args.is_empty()).then(|| quote!(#cfgs #args))
    });
    let tests = tools.iter().map(|tool| test(tool, cfgs));
    let tools = tools.iter().map(|tool| {
        let (cfgs, items, spec) = (&tool.cfgs, spec::items(tool), spec::spec(tool));
        let prepare = expand::prepare(tool, Some(ty));
        quote! {
            #cfgs
            {
                #items
                static __TABLE: __rt::Table = __rt::Table::new(#spec);
                __rt::MethodTool::shared(&__TABLE, __this, #prepare)
            }
        }
    });
    let implementations = implementations(
        ty,
        &runtime.private(),
        cfgs,
        &quote!(::core::convert::From::from([#(#tools),*])),
    );
    quote! {
        #block
        #(#args)*
        #implementations
        #(#tests)*
    }
}

/// The test of a method's committed schema, which needs its table and no value.
fn test(tool: &Tool, block: &TokenStream) -> TokenStream {
    let (cfgs, items, spec) = (&tool.cfgs, spec::items(tool), spec::spec(tool));
    let table = quote!({
        #items
        static __TABLE: __rt::Table = __rt::Table::new(#spec);
        __TABLE.definition()
    });
    committed::test(tool, &quote!(#block #cfgs), &table)
}

/// What makes the type a source of tools.
///
/// That it can be shared between threads is a condition of both impls, so that a type that
/// cannot is told once, and not again for each of its calls.
fn implementations(
    ty: &TokenStream,
    private: &TokenStream,
    cfgs: &TokenStream,
    tools: &TokenStream,
) -> TokenStream {
    let is_shared = quote_spanned!(span::at(ty)=> #ty: ::core::marker::Send + ::core::marker::Sync);
    quote! {
        #cfgs
        const _: () = {
            use #private as __rt;
            #[automatically_derived]
            impl __rt::ToolMethods for #ty where #is_shared {
                fn tools(__this: &__rt::Arc<Self>) -> __rt::Vec<__rt::Arc<dyn __rt::Tool>> {
                    #tools
                }
            }
            #[automatically_derived]
            impl __rt::IntoTools for #ty where #is_shared {
                fn into_tools(self) -> __rt::Vec<__rt::Arc<dyn __rt::Tool>> {
                    __rt::IntoTools::into_tools(__rt::Arc::new(self))
                }
            }
        };
    }
}

/// A toolset without tools, for a block with mistakes.
pub(super) fn inert(items: &[Item], block: &Block) -> TokenStream {
    if !is_plain(block) {
        return TokenStream::new();
    }
    let runtime = runtime(items);
    let (cfgs, ty) = place(block);
    let owner = owner(&block.ty).map(|name| name.unraw().to_string()).unwrap_or_default();
    let site = Site::Method { runtime: &runtime, owner: &owner };
    let args = block.members.iter().map(|member| match member {
        Member::Tool(function, attribute) => {
            let function = outside(function, &block.ty.to_token_stream());
            let args = inert_tool::args_struct(&function, attribute, &site);
            (!args.is_empty()).then(|| quote!(#cfgs #args))
        }
        _ => None,
    });
    let implementations =
        implementations(&ty, &runtime.private(), &cfgs, &quote!(__rt::Vec::new()));
    quote!(#(#args)* #implementations)
}
