//! Second step: all rules about a toolset that do not concern a single tool.

use std::collections::HashMap;

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{FnArg, Type};

use super::parse::{BlockMember, ToolsetBlock};
use crate::attr::{self, AttrItem, AttrKey};
use crate::diag::Diagnostics;
use crate::runtime::RuntimePath;
use crate::sibling_items::{self, ItemAnchor};
use crate::tool::lower::{self, ToolSite};
use crate::tool::model::ToolModel;
use crate::tool::parse::{ToolFunction, no_body, without_self};
use crate::tool::ty::find_borrow;

/// The items of `#[toolset(..)]`.
const KEYS: &[AttrKey] = &[AttrKey::value("crate", "crate = my_tool_sdk")];

/// A valid toolset.
pub(crate) struct ToolsetModel {
    pub(crate) ty: TokenStream,
    pub(crate) cfgs: TokenStream,
    pub(crate) runtime: RuntimePath,
    pub(crate) tools: Vec<ToolModel>,
}

/// Returns the toolset for `block`, or `None` when `diag` has the reasons against it.
pub(super) fn lower_toolset(
    items: &[AttrItem],
    block: &ToolsetBlock,
    diag: &mut Diagnostics,
) -> Option<ToolsetModel> {
    let items = attr::check_items(items, KEYS, "#[toolset]", diag);
    let runtime = RuntimePath::named(items.expr("crate"), diag);
    check_head(block, diag);
    check_only_block(block, diag);
    let owner = type_ident(&block.ty).map(|name| name.unraw().to_string());
    let owner = owner.unwrap_or_default();
    let block_at = block.impl_token.span;
    let site = ToolSite::Method { runtime: &runtime, owner: &owner, block: block_at };
    let mut names: HashMap<String, Ident> = HashMap::new();
    let mut tools = Vec::new();
    for member in &block.members {
        match member {
            BlockMember::Tool(function, attribute) => {
                tools.extend(lower_method(function, attribute, block, &site, diag));
                if let Some(tool) = tools.last() {
                    check_unique(tool, &mut names, diag);
                }
            }
            BlockMember::Function(function) => report_stray_arg(function, diag),
            BlockMember::Other(_) => {}
            BlockMember::Unread(_) => diag.left_to_rustc(),
        }
    }
    let may_be_tool =
        |member: &BlockMember| matches!(member, BlockMember::Tool(..) | BlockMember::Unread(_));
    if !block.members.iter().any(may_be_tool) {
        diag.error(
            &block.ty,
            "toolset has no tools",
            "put `#[tool]` on a method, or remove `#[toolset]`",
        );
    }
    let ty = block.ty.to_token_stream();
    diag.is_empty().then(|| ToolsetModel {
        ty,
        cfgs: lower::cfg_attributes(&block.attrs),
        runtime,
        tools,
    })
}

fn check_head(block: &ToolsetBlock, diag: &mut Diagnostics) {
    if let Some(path) = &block.implemented {
        diag.error(
            path,
            "`#[toolset]` must not be on the implementation of a trait",
            "move the tools to an `impl` block of the type itself",
        );
    }
    if !block.generics.params.is_empty() {
        diag.error(
            &block.generics.params,
            "toolset must not be generic",
            "write it for one type, and let its fields be boxed traits",
        );
    }
    if let Some(token) = find_borrow(&block.ty) {
        let help = "let it own what it holds, such as a `String`";
        diag.error(token, "type of a toolset must not borrow", help);
    }
    if type_ident(&block.ty).is_none() {
        diag.error(&block.ty, "type of a toolset must be a path", "write the name of a struct");
    }
}

/// Reports a second block for the same type: a type has all its tools in one block.
fn check_only_block(block: &ToolsetBlock, diag: &mut Diagnostics) {
    if let Some(line) = first_block_line(block) {
        let what = format_args!("duplicate `#[toolset]` of one type, as in line {line}");
        diag.error(&block.ty, what, "move the methods into one block");
    }
}

/// Returns the line of an earlier such block of the type.
pub(super) fn first_block_line(block: &ToolsetBlock) -> Option<usize> {
    sibling_items::first_line_of_repeated(ItemAnchor::Block, type_ident(&block.ty)?)
}

/// Returns the last segment of the type, after which structs of arguments are named.
pub(super) fn type_ident(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|last| &last.ident),
        Type::Group(group) => type_ident(&group.elem),
        Type::Paren(paren) => type_ident(&paren.elem),
        _ => None,
    }
}

/// Lowers one method, with the type's name in place of `Self`, because the generated code is
/// outside of the block.
fn lower_method(
    function: &ToolFunction,
    attribute: &TokenStream,
    block: &ToolsetBlock,
    site: &ToolSite<'_>,
    diag: &mut Diagnostics,
) -> Option<ToolModel> {
    let ty = block.ty.to_token_stream();
    if let Some(second) = function.attrs.iter().find(|attr| crate::tool::parse::is_tool(attr)) {
        diag.error(second.path(), "duplicate `#[tool]`", "keep one of them");
    }
    let items = attr::parse_items(without_self(attribute.clone(), &ty), diag);
    let function = without_self_type(function, &ty);
    lower::lower_tool(&items, &function, site, diag)
}

/// Returns the head of `function` with the type's name in place of `Self`.
pub(super) fn without_self_type(function: &ToolFunction, ty: &TokenStream) -> ToolFunction {
    let sig = function.sig.to_token_stream();
    let sig = syn::parse2(without_self(sig, ty)).unwrap_or_else(|_| function.sig.clone());
    let (attrs, vis) = (function.attrs.clone(), function.vis.clone());
    ToolFunction { attrs, vis, sig, body: no_body() }
}

fn check_unique(tool: &ToolModel, names: &mut HashMap<String, Ident>, diag: &mut Diagnostics) {
    let written = std::iter::once(&tool.name).chain(&tool.aliases).zip(&tool.claims);
    for (name, claim) in written {
        match names.get(&name.to_lowercase()) {
            Some(first) if *first != tool.ident => {
                let is_own = tool.ident.unraw() == name;
                let help = match is_own {
                    true => "add `name = \"..\"` to one of them",
                    false => "write another name",
                };
                let what = format_args!(
                    "duplicate tool `{name}`, which `{}` is called too",
                    first.unraw()
                );
                diag.error(claim, what, help);
            }
            _ => {
                names.insert(name.to_lowercase(), tool.ident.clone());
            }
        }
    }
}

/// Reports `#[arg]` on a function that is not a tool.
fn report_stray_arg(function: &ToolFunction, diag: &mut Diagnostics) {
    for input in &function.sig.inputs {
        let (FnArg::Receiver(syn::Receiver { attrs, .. })
        | FnArg::Typed(syn::PatType { attrs, .. })) = input;
        for attribute in attrs.iter().filter(|attr| crate::tool::parse::is_arg(attr)) {
            diag.error(
                attribute.path(),
                format_args!("`#[arg]` must be in a tool, which `{}` is not", function.sig.ident),
                "put `#[tool]` on the method",
            );
        }
    }
}
