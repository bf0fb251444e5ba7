//! Finds the files that a hook command names, so that they can be protected: a change to one of
//! them changes the hook.
//!
//! Considers the words of the command line, also of nested command lines, after `cd`, and with
//! wildcards. Files that a script reads itself are not found.
//!
//! **Invariant:** nothing is run, and a false positive only causes an approval prompt.

use std::fs;
use std::path::{Component, Path, PathBuf};

use tool_sdk_core::internal::matches_glob;

use super::config::HookCommand;

/// Shell variables that hold the working directory of a command.
const FOLDER_VARIABLES: &[&str] =
    &["$CLAUDE_PROJECT_DIR", "${CLAUDE_PROJECT_DIR}", "$PWD", "${PWD}"];

/// Words whose next word is a folder to change to.
const CD_WORDS: &[&str] = &["cd", "pushd", "-C", "--chdir", "--directory"];

/// The Python option whose value is a module name.
const MODULE_OPTION: &str = "-m";

/// The limit of directory entries that are compared with a wildcard.
const MAX_FILES: usize = 10_000;

/// Returns the files that `command` names when it runs in `folder`, each once.
pub(super) fn command_files(command: &HookCommand, folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    match command {
        HookCommand::Shell(line) => push_line_words(line, folder, &mut all),
        HookCommand::Exec(program, args) => {
            [program].into_iter().chain(args).for_each(|word| push_word(word, folder, &mut all));
        }
    }
    let folders = entered_folders(&all, folder);
    let behind = std::iter::once("").chain(all.iter().map(String::as_str));
    let mut named: Vec<PathBuf> = all
        .iter()
        .zip(behind)
        .flat_map(|(word, before)| files_of_word(word, before, &folders))
        .collect();
    named.sort();
    named.dedup();
    named
}

/// Returns the working directory of the command, and the folders to which it changes.
fn entered_folders(words: &[String], folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut enters = false;
    for word in words {
        let is_option = word.starts_with('-');
        if enters && !is_option {
            let inner = folders.last().map(|outer| outer.join(strip_folder_variable(word)));
            folders.extend(inner.filter(|inner| inner.is_dir()));
        }
        enters = CD_WORDS.contains(&word.as_str()) || enters && is_option;
    }
    folders
}

/// Returns the files that a word can mean in `folders`: existing ones, or else the path that would
/// be created.
fn files_of_word(word: &str, before: &str, folders: &[PathBuf]) -> Vec<PathBuf> {
    let word = strip_folder_variable(word);
    let there: Vec<PathBuf> =
        folders.iter().flat_map(|it| files_in_folder(word, before, it)).collect();
    let is_there = || folders.iter().any(|folder| folder.join(word).exists());
    if there.is_empty() && word.contains('/') && !is_there() {
        return folders.iter().map(|folder| folder.join(word)).collect();
    }
    there
}

/// Returns the existing files that a word can mean in `folder`.
fn files_in_folder(word: &str, before: &str, folder: &Path) -> Vec<PathBuf> {
    let mut found = expand_word(word, folder);
    if word.contains('/') {
        // An interpreter may add the file extension.
        found.extend(expand_word(&format!("{word}.*"), folder));
    }
    if before == MODULE_OPTION {
        let module = word.replace('.', "/");
        found.extend(expand_word(&format!("{module}.*"), folder));
        found.extend(expand_word(&format!("{module}/__main__.*"), folder));
    }
    if word.starts_with('/') || word.contains('$') {
        // The start of the path may come from a variable or a command substitution.
        let ends = word.match_indices('/').map(|(at, _)| &word[at + 1..]);
        found.extend(ends.filter(|end| !end.is_empty()).map(|end| folder.join(end)));
    }
    found.retain(|path| path.is_file());
    found
}

/// Removes a leading variable that holds the working directory.
fn strip_folder_variable(word: &str) -> &str {
    let inside =
        FOLDER_VARIABLES.iter().find_map(|name| word.strip_prefix(name)?.strip_prefix('/'));
    inside.unwrap_or(word)
}

/// Expands the wildcards of `word` in `folder`.
fn expand_word(word: &str, folder: &Path) -> Vec<PathBuf> {
    let has_wildcard = |part: &str| part.contains(['*', '?', '[']);
    if !has_wildcard(word) {
        return vec![folder.join(word)];
    }
    Path::new(word).components().fold(vec![folder.to_owned()], |paths, part| {
        match part.as_os_str().to_str().filter(|part| has_wildcard(part)) {
            Some(pattern) if matches!(part, Component::Normal(_)) => {
                paths.iter().flat_map(|path| match_in_folder(path, pattern)).collect()
            }
            _ => paths.iter().map(|path| path.join(part)).collect(),
        }
    })
}

/// Returns the entries of `folder` that match `pattern`; a character set matches anything.
fn match_in_folder(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let pattern = match pattern.split_once('[') {
        Some((start, _)) => format!("{start}*"),
        None => pattern.to_owned(),
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_FILES);
    let is_meant =
        |entry: &fs::DirEntry| matches_glob(&pattern, &entry.file_name().to_string_lossy());
    entries.filter(is_meant).map(|entry| entry.path()).collect()
}

/// Adds a word, and its own words if it may be a nested command line.
fn push_word(word: &str, folder: &Path, all: &mut Vec<String>) {
    all.push(word.to_owned());
    if word.contains(char::is_whitespace) && !folder.join(word).exists() {
        push_line_words(word, folder, all);
    }
}

/// Adds the words of a shell command line, without quotes.
fn push_line_words(line: &str, folder: &Path, all: &mut Vec<String>) {
    let mut word = String::new();
    let mut quote = None;
    // The blank ends the last word.
    for c in line.chars().chain([' ']) {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '=' | '`', None) => {
                let done = std::mem::take(&mut word);
                // A quoted part is shorter than the line, so the recursion ends.
                if !done.is_empty() {
                    push_word(&done, folder, all);
                }
            }
            (c, _) => word.push(c),
        }
    }
    // An unterminated quote may contain a command line, too.
    if !word.trim().is_empty() {
        push_line_words(&word, folder, all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // PA7
    #[test]
    fn finds_the_files_of_a_command() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("my hooks")).unwrap();
        fs::create_dir_all(folder.path().join("hooks")).unwrap();
        for file in ["guard.sh", "my hooks/look.py", "hooks/g.py", "hooks/__main__.py"] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        let check = |command: HookCommand, expected: &[&str]| {
            let found = command_files(&command, folder.path());
            let expected: Vec<_> = expected.iter().map(|path| folder.path().join(path)).collect();
            assert_eq!(found, expected, "{command:?}");
        };
        for (line, expected) in [
            ("./guard.sh", &["./guard.sh"][..]),
            ("sh guard.sh --strict", &["guard.sh"]),
            ("KEY=x python3 \"my hooks/look.py\" < in.txt", &["my hooks/look.py"]),
            ("\"$CLAUDE_PROJECT_DIR\"/guard.sh; true", &["guard.sh"]),
            ("${CLAUDE_PROJECT_DIR}/guard.sh|cat", &["guard.sh"]),
            ("test -x hooks/later.sh && hooks/later.sh", &["hooks/later.sh"]),
            ("grep -r TODO . 'my hooks'", &[]),
            // Nested command lines, other folders, wildcards, file extensions.
            ("sh -c 'guard.sh --x'", &["guard.sh"]),
            ("sh -c \"sh -c 'guard.sh --x' y\"", &["guard.sh"]),
            ("cd hooks && python3 g.py", &["hooks/g.py"]),
            ("pushd -n \"$PWD/hooks\"; g.py", &["hooks/g.py"]),
            ("git -C hooks x g.py", &["hooks/g.py"]),
            ("$PWD/guard.sh", &["guard.sh"]),
            ("$(pwd)/guard.sh", &["guard.sh"]),
            ("$HERE/hooks/g.py", &["hooks/g.py"]),
            ("*.sh", &["guard.sh"]),
            ("hook?/g.[p]y", &["hooks/g.py"]),
            ("`echo guard.sh`", &["guard.sh"]),
            ("python3 -m hooks.g", &["hooks/g.py"]),
            ("python3 -m hooks", &["hooks/__main__.py"]),
            ("node hooks/g", &["hooks/g.py"]),
            ("node g", &[]),
            ("echo 'not closed; guard.sh", &["guard.sh"]),
        ] {
            check(HookCommand::Shell(line.to_owned()), expected);
        }
        let args = vec!["my hooks/look.py".to_owned(), "my".to_owned()];
        check(HookCommand::Exec("python3".to_owned(), args), &["my hooks/look.py"]);
        let args = ["-c", "guard.sh --x"].map(str::to_owned).to_vec();
        check(HookCommand::Exec("sh".to_owned(), args), &["guard.sh"]);
    }
}
