//! Which files a command line may read that is not known only to look: those that its words and
//! its redirections name.
//!
//! Nobody is asked about them, for the command is. But a rule of `read` that forbids some is held
//! against each name, and where a name is only known when it runs, somebody is asked as soon as
//! there is such a rule.
//!
//! **Invariant:** nothing here looks into a file, or allows anything.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use tool_sdk::{RiskClass, Subject};

use super::files::READ;
use super::looked::{self, Given};
use super::{home, shown};
use crate::shell::{Known, Simple, Understood, bare_name};

/// Behind how many letters of options a name may stand in one word.
const MOST_LETTERS: usize = 3;

/// How many names are held against the rules, and in how many places; where there are more, that is
/// one that nobody knows.
const MOST: usize = 128;

/// How many folders at home are looked into.
const MOST_ENTERED: usize = 4;

/// Programs that read no file that a word of theirs names.
const READ_NONE: &[&str] = &[
    ":", "[", "cd", "declare", "echo", "exit", "export", "false", "kill", "let", "local", "mkdir",
    "popd", "printf", "pushd", "read", "return", "rm", "rmdir", "set", "shift", "sleep", "test",
    "touch", "trap", "true", "type", "umask", "unset", "wait",
];

/// What may be read, as rules that forbid see it, where the commands run in one of `folders`;
/// there are none when nobody knows where.
pub(super) fn subjects(of: &Understood, folders: &[PathBuf], roots: &[&Path]) -> Vec<Subject> {
    let mut subjects = Vec::new();
    let mut names = Names::default();
    of.may_read.iter().for_each(|path| names.word(path, true));
    for (text, by_shell) in &of.obeyed {
        names.word(text, false);
        if *by_shell && text.contains(is_open) {
            names.unknown = Some(text);
        }
    }
    // What was only found may be more than what is written.
    let is_found = of.opaque.is_some();
    let at_home = entered_at_home(of);
    for command in of.commands.iter().filter(|it| !it.hidden) {
        if !command.safe {
            let mut own = Names::default();
            own.command(command, is_found);
            match entered(command) {
                // It may find other files there.
                Some(into) if !command.elsewhere => {
                    let there = folders.iter().map(|it| it.join(into)).chain(home::place(into));
                    let there = there.filter(|it| it.is_dir());
                    let folders: Vec<PathBuf> = folders.iter().cloned().chain(there).collect();
                    own.placed(&folders, roots, &mut subjects);
                }
                _ if command.elsewhere => own.placed(&[], roots, &mut subjects),
                _ => names.join(own),
            }
        } else if is_found && command.argv.first().is_none_or(|it| !READ_NONE.contains(&&**it)) {
            // What it names as it is written is looked at elsewhere.
            let expands = |word: &&String| word.contains('{') || word.starts_with('~');
            let expanded = || command.argv.iter().find(expands).map(|it| &**it);
            names.unknown = names.unknown.or_else(expanded).or_else(|| fitting(command));
        }
    }
    names.placed(folders, roots, &mut subjects);
    if !at_home.is_empty() {
        let mut names = Names::default();
        of.reads.iter().for_each(|path| names.word(path, is_found));
        let commands = of.commands.iter().filter(|it| !it.hidden);
        commands.for_each(|command| names.command(command, is_found));
        // What nobody names was seen before.
        names.unknown = None;
        names.placed(&at_home, roots, &mut subjects);
    }
    subjects
}

/// The folders at home that may be entered, so that names lead there which stand for other files
/// elsewhere.
fn entered_at_home(of: &Understood) -> Vec<PathBuf> {
    let mut entered: Vec<PathBuf> = Vec::new();
    for command in &of.commands {
        let to = match command.argv.as_slice() {
            [cd] if cd == "cd" => "~",
            [cd, .., to] if matches!(&**cd, "cd" | "pushd") => to,
            _ => continue,
        };
        let place = home::place(to).or_else(|| Some(entered.last()?.join(to)));
        entered.extend(place.filter(|place| place.is_dir()));
        if entered.len() == MOST_ENTERED {
            break;
        }
    }
    entered
}

/// What may be a pattern for files of a command that was only found, where nobody knows what is
/// quoted.
fn fitting(command: &Simple) -> Option<&str> {
    let file = |given| match given {
        Given::Path(path) | Given::Value(path) => Some(path),
        _ => None,
    };
    let mut files = looked::given(command).into_iter().filter_map(file);
    files.find(|file| file.contains(['*', '?', '[']))
}

/// The folder that a command is told to run in, as `-C` says it to many programs.
fn entered(command: &Simple) -> Option<&str> {
    let mut words = command.argv.iter().skip(1).map(String::as_str);
    let word = words.find(|word| word.starts_with("-C") || word.starts_with("--directory"))?;
    match word.strip_prefix("-C").or_else(|| word.strip_prefix("--directory=")) {
        Some("") | None => words.next(),
        into => into,
    }
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

/// A file that a name stands for.
fn about(name: &str, place: PathBuf, roots: &[&Path]) -> Subject {
    // As it is asked for from a root, however it is written.
    let below = roots.iter().find_map(|root| place.strip_prefix(root).ok());
    let asked = below.unwrap_or(Path::new(name)).to_string_lossy().into_owned();
    // Of a folder, a program may read all that lies below it.
    let spellings =
        if place.is_dir() { vec![asked.clone(), place.display().to_string()] } else { vec![] };
    let beginnings = spellings.into_iter().map(|it| format!("{}/", it.trim_end_matches('/')));
    may_be_read(Subject::path(dotted(&asked), place)).known_to_begin(beginnings)
}

/// Where a name leads that begins at home.
fn at_home(name: &str) -> Option<PathBuf> {
    Some(straight(&home::place(name)?, ""))
}

/// A name as no rule for commands takes it for that of a program.
fn dotted(name: &str) -> String {
    let is_file = name.starts_with('/') || name.contains(['.', '/']) && !name.contains(' ');
    if is_file { name.to_owned() } else { format!("./{name}") }
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

/// What a word may name: itself, or what stands in it behind a mark or behind letters of options.
fn spellings(word: &str) -> impl Iterator<Item = &str> {
    let behind_colons = word.match_indices(':').map(|(at, _)| &word[at + 1..]);
    let is_option = word.starts_with('-') && !word.starts_with("--");
    let letters = word.char_indices().skip(2).take(if is_option { MOST_LETTERS } else { 0 });
    let behind_letters = letters.map(|(at, _)| &word[at..]);
    [word].into_iter().chain(behind_colons).chain(behind_letters).flat_map(|it| {
        let behind = it.strip_prefix('@');
        [Some(it), behind].into_iter().flatten()
    })
}

/// Whether it may make something else of a name when it is not quoted.
fn is_open(c: char) -> bool {
    matches!(c, '$' | '`' | '*' | '?' | '[' | ']' | '{' | '}' | '~')
}

/// All that a word may name: a text of another language may do so in its midst.
fn names_in(word: &str) -> impl Iterator<Item = &str> {
    let is_plain = |c: char| c.is_alphanumeric() || !c.is_ascii() || "_./-+@%:,".contains(c);
    word.split(move |c: char| !is_plain(c) && !is_open(c)).flat_map(spellings)
}

/// Whether it has a pattern for what lies in a folder.
fn is_fitted(word: &str) -> bool {
    word.find(['*', '?', '[']).is_some_and(|open| word[..open].contains('/'))
}

#[derive(Default)]
struct Names<'a> {
    named: BTreeSet<&'a str>,
    /// One that nobody knows: one more changes nothing.
    unknown: Option<&'a str>,
}

impl<'a> Names<'a> {
    fn join(&mut self, other: Self) {
        self.named.extend(other.named);
        self.unknown = self.unknown.or(other.unknown);
    }

    /// Adds a subject for each place where one of them may lie.
    fn placed(self, folders: &[PathBuf], roots: &[&Path], subjects: &mut Vec<Subject>) {
        let mut unknown = self.unknown;
        let is_too_much = folders.len() > 1 && folders.len() * self.named.len() > MOST;
        let folders = if is_too_much { &[] } else { folders };
        for name in self.named {
            let places: Vec<PathBuf> = match at_home(name) {
                Some(place) => vec![place],
                None if name.starts_with('/') => vec![straight(Path::new(""), name)],
                None if name.starts_with('~') => Vec::new(),
                None => folders.iter().map(|folder| straight(folder, name)).collect(),
            };
            if places.is_empty() {
                unknown = unknown.or(Some(name));
                // As it is written it may be one that is forbidden at any depth.
                let place = name.trim_start_matches('/');
                subjects.push(may_be_read(Subject::path(dotted(name), place)));
            }
            for place in places {
                let real = place.canonicalize().ok().filter(|real| *real != place);
                subjects.extend([place].into_iter().chain(real).map(|it| about(name, it, roots)));
            }
        }
        subjects.extend(unknown.map(unnamed));
    }

    fn command(&mut self, command: &'a Simple, is_found: bool) {
        let Some((program, words)) = command.argv.split_first() else { return };
        let program = bare_name(program);
        if READ_NONE.contains(&&*program) {
            // The shell itself looks for what fits a pattern, and these show it.
            let is_shown = |it: &&String| matches!(&*program, "echo" | "printf") && is_fitted(it);
            let unknown = words.iter().zip(command.known.iter().skip(1));
            let mut unknown = unknown.filter(|(_, known)| **known == Known::Nothing);
            let fitted = unknown.find(|(word, _)| is_shown(word)).map(|(word, _)| &**word);
            self.unknown = self.unknown.or(fitted);
            return;
        }
        if command.open_end {
            self.unknown = Some(&command.text);
        }
        // What an alias of git stands for may show anything, and so may a setting that is a command.
        let is_git = program == "git";
        if is_git && command.may_be_alias {
            self.unknown = Some(&command.text);
        }
        let is_setting = |option| is_git && matches!(option, "-c" | "--config-env");
        let mut before = "";
        for (word, known) in words.iter().zip(command.known.iter().skip(1)) {
            let option = std::mem::replace(&mut before, word);
            match known {
                _ if is_text(&program, option) || word.starts_with("-j$") => {}
                Known::Literal if is_setting(option) && word.contains(is_open) => self.open(word),
                Known::Literal => self.word(word, is_found || word.contains("{}")),
                _ => self.open(word),
            }
        }
        if shown::by(&program, words) {
            self.unknown = Some(&command.text);
        }
    }

    /// Adds a word of which not all is known. What it names at home is forbidden by that name.
    fn open(&mut self, word: &'a str) {
        self.unknown = Some(word);
        let at_home = names_in(word).filter(|name| home::below(name).is_some());
        self.named.extend(at_home.take(MOST.saturating_sub(self.named.len())));
    }

    fn word(&mut self, word: &'a str, expands: bool) {
        for name in names_in(word) {
            if name.len() < word.len() && !name.contains(['.', '/']) {
                continue;
            }
            if name.is_empty() || name.starts_with('-') {
                continue;
            }
            let is_unknown = expands && name.len() == word.len() && name.contains(is_open);
            if is_unknown || self.named.len() >= MOST {
                return self.open(word);
            }
            self.named.insert(name);
        }
    }
}
