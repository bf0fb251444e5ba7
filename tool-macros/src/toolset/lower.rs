//! Second step: all rules about a toolset that do not concern a single tool.

use std::collections::HashMap;

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{FnArg, Type};

use super::parse::{Block, Member};
use crate::attr::{self, Item, Key};
use crate::beside::{self, Anchor};
use crate::diag::Diagnostics;
use crate::runtime::Runtime;
use crate::tool::lower::{self, Site};
use crate::tool::model::Tool;
use crate::tool::parse::{Function, no_body, without_self};
use crate::tool::ty::borrow;

/// The items of `#[toolset(..)]`.
const KEYS: &[Key] = &[Key::value("crate", "crate = my_tool_sdk")];

/// A valid toolset.
pub(crate) struct Toolset {
    pub(crate) ty: TokenStream,
    pub(crate) cfgs: TokenStream,
    pub(crate) runtime: Runtime,
    pub(crate) tools: Vec<Tool>,
}

/// Returns the toolset for `block`, or `None` when `diag` has the reasons against it.
pub(super) fn toolset(items: &[Item], block: &Block, diag: &mut Diagnostics) -> Option<Toolset> {
    let items = attr::checked(items, KEYS, "#[toolset]", diag);
    let runtime = Runtime::named(items.expr("crate"), diag);
    head(block, diag);
    once(block, diag);
    let owner = owner(&block.ty).map(|name| name.unraw().to_string());
    let owner = owner.unwrap_or_default();
    let block_at = block.impl_token.span;
    let site = Site::Method { runtime: &runtime, owner: &owner, block: block_at };
    let mut names: HashMap<String, Ident> = HashMap::new();
    let mut tools = Vec::new();
    for member in &block.members {
        match member {
            Member::Tool(function, attribute) => {
                tools.extend(method(function, attribute, block, &site, diag));
                if let Some(tool) = tools.last() {
                    unique(tool, &mut names, diag);
                }
            }
            Member::Function(function) => stray(function, diag),
            Member::Other(_) => {}
            Member::Unread(_) => diag.left_to_rustc(),
        }
    }
    let may_be_tool = |member: &Member| matches!(member, Member::Tool(..) | Member::Unread(_));
    if !block.members.iter().any(may_be_tool) {
        diag.error(
            &block.ty,
            "toolset has no tools",
            "put `#[tool]` on a method, or remove `#[toolset]`",
        );
    }
    let ty = block.ty.to_token_stream();
    diag.is_empty().then(|| Toolset { ty, cfgs: lower::cfgs(&block.attrs), runtime, tools })
}

fn head(block: &Block, diag: &mut Diagnostics) {
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
    if let Some(token) = borrow(&block.ty) {
        let help = "let it own what it holds, such as a `String`";
        diag.error(token, "type of a toolset must not borrow", help);
    }
    if owner(&block.ty).is_none() {
        diag.error(&block.ty, "type of a toolset must be a path", "write the name of a struct");
    }
}

/// A type has all its tools in one block.
fn once(block: &Block, diag: &mut Diagnostics) {
    if let Some(line) = first(block) {
        let what = format_args!("duplicate `#[toolset]` of one type, as in line {line}");
        diag.error(&block.ty, what, "move the methods into one block");
    }
}

/// Returns the line of an earlier such block of the type.
pub(super) fn first(block: &Block) -> Option<usize> {
    beside::first(Anchor::Block, owner(&block.ty)?)
}

/// Returns the last segment of the type, after which structs of arguments are named.
pub(super) fn owner(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|last| &last.ident),
        Type::Group(group) => owner(&group.elem),
        Type::Paren(paren) => owner(&paren.elem),
        _ => None,
    }
}

/// One method, in words that mean the same outside of the block.
fn method(
    function: &Function,
    attribute: &TokenStream,
    block: &Block,
    site: &Site<'_>,
    diag: &mut Diagnostics,
) -> Option<Tool> {
    let ty = block.ty.to_token_stream();
    if let Some(second) = function.attrs.iter().find(|attr| crate::tool::parse::is_tool(attr)) {
        diag.error(second.path(), "duplicate `#[tool]`", "keep one of them");
    }
    let items = attr::parse(without_self(attribute.clone(), &ty), diag);
    let function = outside(function, &ty);
    lower::tool(&items, &function, site, diag)
}

/// Returns the head of `function` with the type's name in place of `Self`.
pub(super) fn outside(function: &Function, ty: &TokenStream) -> Function {
    let sig = function.sig.to_token_stream();
    let sig = syn::parse2(without_self(sig, ty)).unwrap_or_else(|_| function.sig.clone());
    let (attrs, vis) = (function.attrs.clone(), function.vis.clone());
    Function { attrs, vis, sig, body: no_body() }
}

fn unique(tool: &Tool, names: &mut HashMap<String, Ident>, diag: &mut Diagnostics) {
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
fn stray(function: &Function, diag: &mut Diagnostics) {
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
