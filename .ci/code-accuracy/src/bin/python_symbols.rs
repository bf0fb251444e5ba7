//! Prints the definitions and references that `tool-std-code` finds in the Python files of a folder, one
//! JSON object for each name, for `references.py`.

use std::fs;
use std::path::{Path, PathBuf};

use tool_std_code::{SourceLanguage, SymbolExtractor};

fn main() {
    let folder = std::env::args().nth(1).expect("a folder is named");
    let (mut files, mut extractor) = (Vec::new(), SymbolExtractor::new());
    collect_files(Path::new(&folder), &mut files);
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).expect("the file is text");
        let symbols = extractor.extract_symbols(SourceLanguage::Python, &text, &|| false);
        let symbols = symbols.expect("the language is built in");
        let path = file.to_str().expect("the path is text");
        for it in &symbols.definitions {
            println!(
                r#"{{"kind": "definition", "of": "{}", "file": "{path}", "line": {}, "name": "{}"}}"#,
                it.kind, it.line, it.name
            );
        }
        for it in &symbols.references {
            println!(
                r#"{{"kind": "reference", "file": "{path}", "line": {}, "column": {}, "name": "{}"}}"#,
                it.line,
                it.column,
                symbols.name_of(it)
            );
        }
    }
}

fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        if path.is_dir() {
            collect_files(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "py") {
            files.push(path);
        }
    }
}
