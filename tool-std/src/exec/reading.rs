//! Which files a command line may read that is not known only to look: those that its words and
//! its redirections name.
//!
//! Nobody is asked about them, for the command is. But a rule of `read` that forbids some is held
//! against each name, and where a name is only known when it runs, somebody is asked as soon as
//! there is such a rule.
//!
//! **Invariant:** nothing here looks at a file, or allows anything.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use tool_sdk::{RiskClass, Subject};

use super::files::READ;
use crate::shell::{Known, Simple, Understood, bare_name};

/// How many names are held against the rules; where there are more, that is one that nobody knows.
const MOST: usize = 128;

/// Programs that read no file that a word of theirs names.
const READ_NONE: &[&str] = &[
    ":", "[", "cd", "declare", "echo", "exit", "export", "false", "kill", "let", "local", "mkdir",
    "popd", "printf", "pushd", "read", "return", "rm", "rmdir", "set", "shift", "sleep", "test",
    "touch", "trap", "true", "type", "umask", "unset", "wait",
];

/// What may be read, as rules that forbid see it, where relative paths start in `folder`.
pub(super) fn subjects(of: &Understood, folder: Option<&Path>, roots: &[&Path]) -> Vec<Subject> {
    let mut names = Names::default();
    of.may_read.iter().for_each(|path| names.word(path, true));
    // What was only found may be more than what is written.
    let is_found = of.opaque.is_some();
    for command in of.commands.iter().filter(|it| !it.hidden) {
        if !command.safe {
            names.command(command, is_found);
        } else if is_found && command.argv.first().is_none_or(|it| !READ_NONE.contains(&&**it)) {
            // What it names as it is written is looked at elsewhere.
            let expands = |word: &&String| word.contains('{') || word.starts_with('~');
            names.unknown = names.unknown.or(command.argv.iter().find(expands).map(|it| &**it));
        }
    }
    let named = names.named.into_iter().map(|name| {
        let place = straight(folder.unwrap_or(Path::new("")), name);
        // As it is asked for from a root, however it is written.
        let below = roots.iter().find_map(|root| place.strip_prefix(root).ok());
        let asked = below.unwrap_or(Path::new(name)).to_string_lossy().into_owned();
        // The name of a file alone could be that of a program to rules for commands.
        let asked = if asked.contains(['.', '/']) { asked } else { format!("./{asked}") };
        Subject::path(asked, place)
    });
    let unknown = names.unknown.into_iter().map(unnamed);
    named.map(may_be_read).chain(unknown).collect()
}

/// What may be read that nobody names.
pub(super) fn unnamed(text: &str) -> Subject {
    let why = "which files it reads is only known when it runs";
    // No folder holds a path that is not absolute.
    may_be_read(Subject::path(text, text.trim_start_matches('/')).because(why).nameless())
}

fn may_be_read(subject: Subject) -> Subject {
    subject.under(READ).class(RiskClass::Read).only_forbidden()
}

/// A path without steps that lead nowhere.
fn straight(folder: &Path, path: &str) -> PathBuf {
    let mut straight = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir => drop(straight.pop()),
            Component::CurDir => {}
            part => straight.push(part),
        }
    }
    straight
}

/// Whether a text for people stands behind an option.
fn is_text(program: &str, option: &str) -> bool {
    match program {
        "git" => matches!(option, "-m" | "-am" | "--message"),
        "gh" => matches!(option, "-b" | "-t" | "--body" | "--notes" | "--title"),
        _ => false,
    }
}

#[derive(Default)]
struct Names<'a> {
    named: BTreeSet<&'a str>,
    /// One that nobody knows: one more changes nothing.
    unknown: Option<&'a str>,
}

impl<'a> Names<'a> {
    fn command(&mut self, command: &'a Simple, is_found: bool) {
        let Some((program, words)) = command.argv.split_first() else { return };
        let program = bare_name(program);
        if READ_NONE.contains(&&*program) {
            return;
        }
        if command.open_end {
            self.unknown = Some(&command.text);
        }
        let mut before = "";
        for (word, known) in words.iter().zip(command.known.iter().skip(1)) {
            let option = std::mem::replace(&mut before, word);
            match known {
                _ if is_text(&program, option) || word.starts_with("-j$") => {}
                Known::Literal => self.word(word, is_found || word.contains("{}")),
                _ => self.unknown = Some(word),
            }
        }
    }

    fn word(&mut self, word: &'a str, expands: bool) {
        let is_open = |c| matches!(c, '$' | '`' | '*' | '?' | '[' | ']' | '{' | '}' | '~');
        let is_plain = |c: char| c.is_alphanumeric() || !c.is_ascii() || "_./-+@%:,".contains(c);
        // A text of another language may name it in the midst.
        for name in word.split(|c: char| !is_plain(c) && !is_open(c)) {
            if name.len() < word.len() && !name.contains(['.', '/']) {
                continue;
            }
            if name.is_empty() || name.starts_with('-') {
                continue;
            }
            let is_unknown = expands && name.len() == word.len() && name.contains(is_open);
            if is_unknown || self.named.len() >= MOST {
                self.unknown = Some(word);
                return;
            }
            self.named.insert(name);
        }
    }
}
