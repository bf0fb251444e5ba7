//! Last step: the block, the structs of arguments, and the tools on a shared value.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;

use super::lower::{ToolsetModel, first_block_line, type_ident, without_self_type};
use super::parse::{BlockMember, ToolsetBlock};
use crate::attr::AttrItem;
use crate::span;
use crate::tool::lower::{ToolSite, cfg_attributes, named_runtime};
use crate::tool::model::ToolModel;
use crate::tool::ty::find_borrow;
use crate::tool::{committed, expand, inert as inert_tool, spec};

/// Generates a valid toolset: the block, the structs of arguments, the implementations, the tests.
pub(super) fn expand_toolset(toolset: &ToolsetModel, block: &ToolsetBlock) -> TokenStream {
    let ToolsetModel { ty, cfgs, runtime, tools } = toolset;
    let args = tools.iter().enumerate().map(|(at, tool)| {
        // rustc reports two methods of one name itself.
        let is_second = tool.cfgs.is_empty()
            && tools[..at].iter().any(|it| it.ident == tool.ident && it.cfgs.is_empty());
        let args = expand::args_struct(tool);
        (!is_second && !args.is_empty()).then(|| quote!(#cfgs #args))
    });
    let tests = tools.iter().map(|tool| method_schema_test(tool, cfgs));
    let tools = tools.iter().map(|tool| {
        let (cfgs, items, spec) = (&tool.cfgs, spec::expand_items(tool), spec::expand_spec(tool));
        let (constant, prepare) =
            (spec::constant_ident("__SPEC", tool), expand::prepare_closure(tool, Some(ty)));
        quote! {
            #cfgs
            {
                #items
                const #constant: __rt::ToolSpec = #spec;
                static __TABLE: __rt::Table = __rt::Table::new(__SPEC);
                __rt::MethodTool::shared(&__TABLE, __this, #prepare)
            }
        }
    });
    let implementations = toolset_impls(
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

/// Generates the test of a method's committed schema, which needs its table and no value.
fn method_schema_test(tool: &ToolModel, block: &TokenStream) -> TokenStream {
    let (cfgs, items, spec) = (&tool.cfgs, spec::expand_items(tool), spec::expand_spec(tool));
    let table = quote!({
        #items
        static __TABLE: __rt::Table = __rt::Table::new(#spec);
        __TABLE.definition()
    });
    committed::schema_test(tool, &quote!(#block #cfgs), &table)
}

/// Generates the conversion of the type to tools.
fn toolset_impls(
    ty: &TokenStream,
    private: &TokenStream,
    cfgs: &TokenStream,
    tools: &TokenStream,
) -> TokenStream {
    let methods = tool_methods_impl(ty, tools);
    quote! {
        #cfgs
        const _: () = {
            use #private as __rt;
            #methods
            #[automatically_derived]
            impl __rt::IntoTools for #ty {
                fn into_tools(self) -> __rt::Vec<__rt::Arc<dyn __rt::Tool>> {
                    use __rt::{ViaMethods as _, ViaNothing as _};
                    __rt::AutorefTools(self).tools()
                }
            }
        };
    }
}

/// Generates the tools on a shared value.
///
/// `Send + Sync` is a condition of this impl alone, so that a type that cannot be shared between
/// threads is reported here, and not again for each call and use.
fn tool_methods_impl(ty: &TokenStream, tools: &TokenStream) -> TokenStream {
    let is_shared =
        quote_spanned!(span::macro_span(ty)=> #ty: ::core::marker::Send + ::core::marker::Sync);
    quote! {
        #[automatically_derived]
        impl __rt::ToolMethods for #ty where #is_shared {
            fn tools(__this: &__rt::Arc<Self>) -> __rt::Vec<__rt::Arc<dyn __rt::Tool>> {
                #tools
            }
        }
    }
}

/// Generates a toolset without tools, for a block with mistakes.
pub(super) fn inert_toolset(items: &[AttrItem], block: &ToolsetBlock) -> TokenStream {
    let told = block.members.iter().filter_map(|member| match member {
        BlockMember::Unread(error) => Some(inert_tool::last_resort_error(error)),
        _ => None,
    });
    let Some(owner) = type_ident(&block.ty) else { return quote!(#(#told)*) };
    let runtime = named_runtime(items);
    let (cfgs, ty) = (cfg_attributes(&block.attrs), block.ty.to_token_stream());
    let owner = owner.unraw().to_string();
    let block_at = block.impl_token.span;
    let site = ToolSite::Method { runtime: &runtime, owner: &owner, block: block_at };
    let args = block.members.iter().map(|member| match member {
        BlockMember::Tool(function, attribute) => {
            let args = inert_tool::args_struct(&without_self_type(function, &ty), attribute, &site);
            (!args.is_empty()).then(|| quote!(#cfgs #args))
        }
        _ => None,
    });
    let empty = first_block_line(block)
        .is_none()
        .then(|| impls_without_tools(&ty, block, &runtime.private(), &cfgs));
    quote!(#(#args)* #empty #(#told)*)
}

/// Generates the implementations for a type without tools.
fn impls_without_tools(
    ty: &TokenStream,
    block: &ToolsetBlock,
    private: &TokenStream,
    cfgs: &TokenStream,
) -> TokenStream {
    let (parameters, _, condition) = block.generics.split_for_impl();
    let is_plain = block.generics.params.is_empty() && find_borrow(&block.ty).is_none();
    // A type that may not be shared has no tools.
    let methods = is_plain.then(|| tool_methods_impl(ty, &quote!(__rt::Vec::new())));
    quote! {
        #cfgs
        const _: () = {
            use #private as __rt;
            #methods
            #[automatically_derived]
            impl #parameters __rt::IntoTools for #ty #condition {
                fn into_tools(self) -> __rt::Vec<__rt::Arc<dyn __rt::Tool>> {
                    __rt::Vec::new()
                }
            }
        };
    }
}
