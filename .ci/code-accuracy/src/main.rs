//! Compares the definitions that `tool-std-code` and universal-ctags find in Rust crates with those of
//! `syn`, which parses Rust as the compiler does. Items in macro calls are none for `syn`.
//!
//! ```text
//! cargo run --release --manifest-path .ci/code-accuracy/Cargo.toml -- FOLDER/src..
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use syn::visit::{self, Visit};
use tool_std_code::{SourceLanguage, SymbolExtractor};

/// File, line and name of a definition.
type Place = (PathBuf, usize, String);

fn main() {
    let mode = std::env::args().any(|argument| argument == "--show");
    println!("| crate | definitions | tool-std-code: precision, recall | ctags: precision, recall |");
    println!("|---|--:|---|---|");
    for folder in std::env::args().skip(1).filter(|argument| argument != "--show") {
        let folder = Path::new(&folder);
        let mut files = Vec::new();
        collect_files(folder, &mut files);
        let (mut truth, mut parsed) = (BTreeSet::new(), Vec::new());
        for file in files {
            let text = fs::read_to_string(&file).expect("the file is text");
            // Files for other editions, or parts of macros.
            let Ok(syntax) = syn::parse_file(&text) else { continue };
            let mut collector = DefinitionCollector { file: &file, found: &mut truth };
            collector.visit_file(&syntax);
            parsed.push((file, text));
        }
        let (ours, ctags) = (our_definitions(&parsed), ctags_definitions(&parsed));
        let name = folder.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let (one, other) = (describe(&ours, &truth), describe(&ctags, &truth));
        println!("| {name} | {} | {one} | {other} |", truth.len());
        if mode {
            truth.difference(&ours).for_each(|it| println!("missed {it:?}"));
            ours.difference(&truth).for_each(|it| println!("wrong {it:?}"));
        }
    }
}

fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        if path.is_dir() {
            collect_files(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

fn describe(found: &BTreeSet<Place>, truth: &BTreeSet<Place>) -> String {
    let right = found.intersection(truth).count() as f64;
    let (precision, recall) = (right / found.len() as f64, right / truth.len() as f64);
    format!("{:.2} %, {:.2} %", 100.0 * precision, 100.0 * recall)
}

fn our_definitions(files: &[(PathBuf, String)]) -> BTreeSet<Place> {
    let mut extractor = SymbolExtractor::new();
    let mut found = BTreeSet::new();
    for (file, text) in files {
        let symbols = extractor.extract_symbols(SourceLanguage::Rust, text, &|| false);
        for it in symbols.expect("the language is built in").definitions {
            found.insert((file.clone(), it.line as usize, it.name.to_string()));
        }
    }
    found
}

fn ctags_definitions(files: &[(PathBuf, String)]) -> BTreeSet<Place> {
    let mut command = Command::new("ctags");
    command.args(["-x", "--_xformat=%F\t%n\t%N\t%K", "--kinds-Rust=*-c"]);
    command.args(files.iter().map(|(file, _)| file));
    let output = command.output().expect("universal-ctags is installed");
    let lines = String::from_utf8(output.stdout).expect("paths are text");
    let fields = lines.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    fields
        .filter(|fields| fields.len() == 4)
        .map(|fields| {
            (fields[0].into(), fields[1].parse().expect("a line"), fields[2].to_owned())
        })
        .collect()
}

struct DefinitionCollector<'a> {
    file: &'a Path,
    found: &'a mut BTreeSet<Place>,
}

impl DefinitionCollector<'_> {
    fn add(&mut self, name: &syn::Ident) {
        let line = name.span().start().line;
        self.found.insert((self.file.to_owned(), line, name.to_string()));
    }
}

macro_rules! collect_names {
    ($($visit:ident($item:ty) $($field:ident).+;)*) => {
        impl<'ast> Visit<'ast> for DefinitionCollector<'_> {
            $(fn $visit(&mut self, item: &'ast $item) {
                self.add(&item.$($field).+);
                visit::$visit(self, item);
            })*

            fn visit_field(&mut self, field: &'ast syn::Field) {
                field.ident.iter().for_each(|name| self.add(name));
                visit::visit_field(self, field);
            }

            fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
                // `const _` has no name.
                if item.ident != "_" {
                    self.add(&item.ident);
                }
                visit::visit_item_const(self, item);
            }

            fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
                item.ident.iter().for_each(|name| self.add(name));
            }
        }
    };
}

collect_names! {
    visit_foreign_item_fn(syn::ForeignItemFn) sig.ident;
    visit_foreign_item_static(syn::ForeignItemStatic) ident;
    visit_impl_item_const(syn::ImplItemConst) ident;
    visit_impl_item_fn(syn::ImplItemFn) sig.ident;
    visit_impl_item_type(syn::ImplItemType) ident;
    visit_item_enum(syn::ItemEnum) ident;
    visit_item_fn(syn::ItemFn) sig.ident;
    visit_item_mod(syn::ItemMod) ident;
    visit_item_static(syn::ItemStatic) ident;
    visit_item_struct(syn::ItemStruct) ident;
    visit_item_trait(syn::ItemTrait) ident;
    visit_item_type(syn::ItemType) ident;
    visit_item_union(syn::ItemUnion) ident;
    visit_trait_item_const(syn::TraitItemConst) ident;
    visit_trait_item_fn(syn::TraitItemFn) sig.ident;
    visit_trait_item_type(syn::TraitItemType) ident;
    visit_variant(syn::Variant) ident;
}
