//! The files that commands which are not read-only may read: those named by their words and
//! redirections.
//!
//! They need no approval of their own, because the command does. But a `read` rule that denies
//! files is matched against each name, and if a name is only known at run time, such a rule makes
//! the command need approval.
//!
//! **Invariant:** nothing here reads a file or allows anything.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use tool_sdk::{Resource, RiskClass};

use super::base_folder::READ;
use super::read_operands::{self, ReadOperand};
use super::{home_paths, implicit_reads};
use crate::shell::{ScriptAnalysis, SimpleCommand, WordCertainty, bare_name};

/// The maximum number of option letters before a name in one word.
const MAX_OPTION_LETTERS: usize = 3;

/// The maximum number of names and places that are matched against rules; further names count as
/// unknown.
const MAX_NAMES: usize = 128;

/// The maximum number of directories below home that are tracked.
const MAX_HOME_FOLDERS: usize = 4;

/// Programs that read none of the files that their words name.
const READ_NONE: &[&str] = &[
    ":", "[", "cd", "declare", "echo", "exit", "export", "false", "kill", "let", "local", "mkdir",
    "popd", "printf", "pushd", "read", "return", "rm", "rmdir", "set", "shift", "sleep", "test",
    "touch", "trap", "true", "type", "umask", "unset", "wait",
];

/// Returns the files that may be read, for deny rules, when the commands run in one of `folders`,
/// which is empty if they are unknown.
pub(super) fn read_resources(
    analysis: &ScriptAnalysis,
    folders: &[PathBuf],
    roots: &[&Path],
) -> Vec<Resource> {
    let mut subjects = Vec::new();
    let mut names = ReadNames::default();
    analysis.possible_reads.iter().for_each(|path| names.add_word(path, true));
    for (text, by_shell) in &analysis.code_inputs {
        names.add_word(text, false);
        if *by_shell && text.contains(is_expansion_char) {
            names.unknown = Some(text);
        }
    }
    // Words of the fallback scan may expand to more.
    let is_found = analysis.opaque.is_some();
    let at_home = home_folders_entered(analysis);
    for command in analysis.commands.iter().filter(|it| !it.is_embedded) {
        if !command.is_safe {
            let mut own = ReadNames::default();
            own.add_command(command, is_found);
            match directory_option(command) {
                // Relative names resolve there, too.
                Some(into) if !command.may_run_elsewhere => {
                    let there =
                        folders.iter().map(|it| it.join(into)).chain(home_paths::home_path(into));
                    let there = there.filter(|it| it.is_dir());
                    let folders: Vec<PathBuf> = folders.iter().cloned().chain(there).collect();
                    own.add_resources(&folders, roots, &mut subjects);
                }
                _ if command.may_run_elsewhere => own.add_resources(&[], roots, &mut subjects),
                _ => names.merge(own),
            }
        } else if is_found && command.argv.first().is_none_or(|it| !READ_NONE.contains(&&**it)) {
            // Its literal operands are checked elsewhere.
            let expands = |word: &&String| word.contains('{') || word.starts_with('~');
            let expanded = || command.argv.iter().find(expands).map(|it| &**it);
            names.unknown = names.unknown.or_else(expanded).or_else(|| first_pattern(command));
        }
    }
    names.add_resources(folders, roots, &mut subjects);
    if !at_home.is_empty() {
        let mut names = ReadNames::default();
        analysis.reads.iter().for_each(|path| names.add_word(path, is_found));
        let commands = analysis.commands.iter().filter(|it| !it.is_embedded);
        commands.for_each(|command| names.add_command(command, is_found));
        // Unknown names were added before.
        names.unknown = None;
        names.add_resources(&at_home, roots, &mut subjects);
    }
    subjects
}

/// Returns the directories below home that `cd` may enter, where relative names resolve
/// differently.
fn home_folders_entered(analysis: &ScriptAnalysis) -> Vec<PathBuf> {
    let mut entered: Vec<PathBuf> = Vec::new();
    for command in &analysis.commands {
        let to = match command.argv.as_slice() {
            [cd] if cd == "cd" => "~",
            [cd, .., to] if matches!(&**cd, "cd" | "pushd") => to,
            _ => continue,
        };
        let place = home_paths::home_path(to).or_else(|| Some(entered.last()?.join(to)));
        entered.extend(place.filter(|place| place.is_dir()));
        if entered.len() == MAX_HOME_FOLDERS {
            break;
        }
    }
    entered
}

/// Returns the first possible glob of a command from the fallback scan, where quotes are
/// uncertain.
fn first_pattern(command: &SimpleCommand) -> Option<&str> {
    let file = |given| match given {
        ReadOperand::Path(path) | ReadOperand::MaybePath(path) => Some(path),
        _ => None,
    };
    let mut files = read_operands::read_operands(command).into_iter().filter_map(file);
    files.find(|file| file.contains(['*', '?', '[']))
}

/// Returns the directory given by `-C` or `--directory`.
fn directory_option(command: &SimpleCommand) -> Option<&str> {
    let mut words = command.argv.iter().skip(1).map(String::as_str);
    let word = words.find(|word| word.starts_with("-C") || word.starts_with("--directory"))?;
    match word.strip_prefix("-C").or_else(|| word.strip_prefix("--directory=")) {
        Some("") | None => words.next(),
        into => into,
    }
}

/// Returns the resource for an unknown file that may be read.
pub(super) fn unnamed_read(text: &str) -> Resource {
    let why = "the files that it reads are only known at run time";
    // A relative path is inside no directory.
    deny_only(
        Resource::path(text, text.trim_start_matches('/')).with_reason(why).with_unknown_effect(),
    )
}

fn deny_only(subject: Resource) -> Resource {
    subject.with_permission(READ).with_class(RiskClass::Read).deny_rules_only()
}

/// Returns the resource for a named file.
fn named_read(name: &str, place: PathBuf, roots: &[&Path]) -> Resource {
    // The text is relative to the root, however it is spelled.
    let below = roots.iter().find_map(|root| place.strip_prefix(root).ok());
    let text = below.unwrap_or(Path::new(name)).to_string_lossy().into_owned();
    // A program may read everything below a directory.
    let spellings =
        if place.is_dir() { vec![text.clone(), place.display().to_string()] } else { vec![] };
    let beginnings = spellings.into_iter().map(|it| format!("{}/", it.trim_end_matches('/')));
    deny_only(Resource::path(as_file_name(&text), place)).with_known_prefixes(beginnings)
}

/// Resolves a name that begins with the home directory.
fn resolve_home(name: &str) -> Option<PathBuf> {
    Some(normalize_path(&home_paths::home_path(name)?, ""))
}

/// Spells a name so that command rules do not take it for a program.
fn as_file_name(name: &str) -> String {
    let is_file = name.starts_with('/') || name.contains(['.', '/']) && !name.contains(' ');
    if is_file { name.to_owned() } else { format!("./{name}") }
}

/// Normalizes a path without following links.
fn normalize_path(folder: &Path, path: &str) -> PathBuf {
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

/// Whether the value of an option is a message for people.
fn is_text(program: &str, option: &str) -> bool {
    match program {
        "git" => matches!(option, "-m" | "-am" | "--message"),
        "gh" => matches!(option, "-b" | "-t" | "--body" | "--notes" | "--title"),
        _ => false,
    }
}

/// Returns the possible names in a word: all of it, or the part after a colon, an `@` or option
/// letters.
fn name_spellings(word: &str) -> impl Iterator<Item = &str> {
    let behind_colons = word.match_indices(':').map(|(at, _)| &word[at + 1..]);
    let is_option = word.starts_with('-') && !word.starts_with("--");
    let letters = word.char_indices().skip(2).take(if is_option { MAX_OPTION_LETTERS } else { 0 });
    let behind_letters = letters.map(|(at, _)| &word[at..]);
    [word].into_iter().chain(behind_colons).chain(behind_letters).flat_map(|it| {
        let behind = it.strip_prefix('@');
        [Some(it), behind].into_iter().flatten()
    })
}

/// Whether an unquoted character may start an expansion.
fn is_expansion_char(c: char) -> bool {
    matches!(c, '$' | '`' | '*' | '?' | '[' | ']' | '{' | '}' | '~')
}

/// Returns all possible names in a word, which may be code in another language.
fn names_in(word: &str) -> impl Iterator<Item = &str> {
    let is_plain = |c: char| c.is_alphanumeric() || !c.is_ascii() || "_./-+@%:,".contains(c);
    word.split(move |c: char| !is_plain(c) && !is_expansion_char(c)).flat_map(name_spellings)
}

/// Whether a word has a glob below a directory.
fn has_folder_pattern(word: &str) -> bool {
    word.find(['*', '?', '[']).is_some_and(|open| word[..open].contains('/'))
}

#[derive(Default)]
struct ReadNames<'a> {
    named: BTreeSet<&'a str>,
    /// One unknown name; further ones make no difference.
    unknown: Option<&'a str>,
}

impl<'a> ReadNames<'a> {
    fn merge(&mut self, other: Self) {
        self.named.extend(other.named);
        self.unknown = self.unknown.or(other.unknown);
    }

    /// Adds a resource for each path that a name may stand for.
    fn add_resources(self, folders: &[PathBuf], roots: &[&Path], subjects: &mut Vec<Resource>) {
        let mut unknown = self.unknown;
        let is_too_much = folders.len() > 1 && folders.len() * self.named.len() > MAX_NAMES;
        let folders = if is_too_much { &[] } else { folders };
        for name in self.named {
            let places: Vec<PathBuf> = match resolve_home(name) {
                Some(place) => vec![place],
                None if name.starts_with('/') => vec![normalize_path(Path::new(""), name)],
                None if name.starts_with('~') => Vec::new(),
                None => folders.iter().map(|folder| normalize_path(folder, name)).collect(),
            };
            if places.is_empty() {
                unknown = unknown.or(Some(name));
                // The name as spelled may match a deny rule for any depth.
                let place = name.trim_start_matches('/');
                subjects.push(deny_only(Resource::path(as_file_name(name), place)));
            }
            for place in places {
                let real = place.canonicalize().ok().filter(|real| *real != place);
                subjects
                    .extend([place].into_iter().chain(real).map(|it| named_read(name, it, roots)));
            }
        }
        subjects.extend(unknown.map(unnamed_read));
    }

    fn add_command(&mut self, command: &'a SimpleCommand, is_found: bool) {
        let Some((program, words)) = command.argv.split_first() else { return };
        let program = bare_name(program);
        if READ_NONE.contains(&&*program) {
            // The shell expands globs, and these programs print the result.
            let is_shown =
                |it: &&String| matches!(&*program, "echo" | "printf") && has_folder_pattern(it);
            let unknown = words.iter().zip(command.word_certainty.iter().skip(1));
            let mut unknown = unknown.filter(|(_, known)| **known == WordCertainty::AnyWords);
            let fitted = unknown.find(|(word, _)| is_shown(word)).map(|(word, _)| &**word);
            self.unknown = self.unknown.or(fitted);
            return;
        }
        if command.has_open_end {
            self.unknown = Some(&command.text);
        }
        // A git alias may print any file, and so may a setting that is a command.
        let is_git = program == "git";
        if is_git && command.may_be_alias {
            self.unknown = Some(&command.text);
        }
        let is_setting = |option| is_git && matches!(option, "-c" | "--config-env");
        let mut before = "";
        for (word, known) in words.iter().zip(command.word_certainty.iter().skip(1)) {
            let option = std::mem::replace(&mut before, word);
            match known {
                _ if is_text(&program, option) || word.starts_with("-j$") => {}
                WordCertainty::Literal
                    if is_setting(option) && word.contains(is_expansion_char) =>
                {
                    self.add_unknown_word(word)
                }
                WordCertainty::Literal => self.add_word(word, is_found || word.contains("{}")),
                _ => self.add_unknown_word(word),
            }
        }
        if implicit_reads::shows_unnamed_lines(&program, words) {
            self.unknown = Some(&command.text);
        }
    }

    /// Adds a word with unknown parts. Names below home in it are still matched.
    fn add_unknown_word(&mut self, word: &'a str) {
        self.unknown = Some(word);
        let at_home = names_in(word).filter(|name| home_paths::strip_home(name).is_some());
        self.named.extend(at_home.take(MAX_NAMES.saturating_sub(self.named.len())));
    }

    fn add_word(&mut self, word: &'a str, expands: bool) {
        for name in names_in(word) {
            if name.len() < word.len() && !name.contains(['.', '/']) {
                continue;
            }
            if name.is_empty() || name.starts_with('-') {
                continue;
            }
            let is_unknown =
                expands && name.len() == word.len() && name.contains(is_expansion_char);
            if is_unknown || self.named.len() >= MAX_NAMES {
                return self.add_unknown_word(word);
            }
            self.named.insert(name);
        }
    }
}
