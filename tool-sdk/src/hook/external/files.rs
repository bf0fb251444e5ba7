//! The files that a command names: who changes one of them decides what the hook says.
//!
//! Words are all there is to go by. What a script reads further on is not looked for.
//!
//! **Invariant:** nothing is run, and a word too many only means that somebody is asked.

use std::path::{Path, PathBuf};

use super::config::Command;

/// How a command names the folder that it runs in.
const FOLDER: &[&str] = &["$CLAUDE_PROJECT_DIR", "${CLAUDE_PROJECT_DIR}"];

/// The files that `command` names when it runs in `folder`.
pub(super) fn named<'c>(
    command: &'c Command,
    folder: &'c Path,
) -> impl Iterator<Item = PathBuf> + 'c {
    let words = match command {
        Command::Line(line) => words(line),
        Command::Exec(program, args) => [program].into_iter().chain(args).cloned().collect(),
    };
    words.into_iter().filter_map(|word| file(&word, folder))
}

/// The file that a word means: there is one, or one may be made where it says.
fn file(word: &str, folder: &Path) -> Option<PathBuf> {
    let word = FOLDER
        .iter()
        .find_map(|variable| word.strip_prefix(variable)?.strip_prefix('/'))
        .unwrap_or(word);
    let path = folder.join(word);
    let may_be_one = path.is_file() || (word.contains('/') && !path.exists());
    may_be_one.then_some(path)
}

/// The words of a line for the shell, without their quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '=', None) => {
                words.push(String::new());
            }
            (c, _) => words.last_mut().into_iter().for_each(|word| word.push(c)),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    // PA7
    #[test]
    fn the_files_of_a_command_are_known() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("my hooks")).unwrap();
        for file in ["guard.sh", "my hooks/look.py"] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        let check = |command: Command, expected: &[&str]| {
            let found: Vec<_> = named(&command, folder.path()).collect();
            let expected: Vec<_> = expected.iter().map(|path| folder.path().join(path)).collect();
            assert_eq!(found, expected, "{command:?}");
        };
        for (line, expected) in [
            ("./guard.sh", &["./guard.sh"][..]),
            ("sh guard.sh --strict", &["guard.sh"]),
            ("KEY=x python3 \"my hooks/look.py\" < in.txt", &["my hooks/look.py"]),
            ("\"$CLAUDE_PROJECT_DIR\"/guard.sh; true", &["guard.sh"]),
            ("${CLAUDE_PROJECT_DIR}/guard.sh|cat", &["guard.sh"]),
            ("test -x hooks/later.sh && hooks/later.sh", &["hooks/later.sh", "hooks/later.sh"]),
            ("grep -r TODO . 'my hooks'", &[]),
        ] {
            check(Command::Line(line.to_owned()), expected);
        }
        let args = vec!["my hooks/look.py".to_owned(), "my".to_owned()];
        check(Command::Exec("python3".to_owned(), args), &["my hooks/look.py"]);
    }
}
