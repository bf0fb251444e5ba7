//! The files that commands which are not read-only may read: those named by their words and
//! redirections.
//!
//! They need no approval of their own, because the command does. But a `read` rule that denies
//! files is matched against each name, and if a name is only known at run time, such a rule makes
//! the command need approval.
//!
//! **Invariant:** nothing here reads a file or allows anything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tool_sdk::Resource;
use tool_shell_analysis::{ScriptAnalysis, SimpleCommand, WordCertainty, internal::bare_name};

use super::base_folder::{FileAccess, denied_unknown_files};
use super::git;
use super::operands::{self, OperandKind, operand_words};
use super::paths::{home_path, normalize_path, strip_home};
use super::programs::{ProgramEffects, ReadEffect};

/// The maximum number of option letters before a name in one word.
const MAX_OPTION_LETTERS: usize = 3;

/// The maximum number of names and places that are matched against rules; further names count as
/// unknown.
const MAX_NAMES: usize = 128;

/// The maximum number of directories below home that are tracked.
const MAX_HOME_FOLDERS: usize = 4;

/// The names of files that commands may read.
#[derive(Default)]
pub(super) struct ReadNames<'a> {
    named: BTreeSet<&'a str>,
    /// One unknown name; further ones make no difference.
    unknown: Option<&'a str>,
}

impl<'a> ReadNames<'a> {
    /// Collects the names in redirections of an opaque script, and in code that an interpreter
    /// reads from its input.
    pub(super) fn of_input(analysis: &'a ScriptAnalysis) -> Self {
        let mut names = Self::default();
        analysis.possible_reads.iter().for_each(|path| names.add_word(path, true));
        for (text, by_shell) in &analysis.code_inputs {
            names.add_word(text, false);
            if *by_shell && text.contains(is_expansion_char) {
                names.unknown = Some(text);
            }
        }
        names
    }

    /// Collects the names of redirected files.
    pub(super) fn of_redirections(analysis: &'a ScriptAnalysis) -> Self {
        let mut names = Self::default();
        analysis.reads.iter().for_each(|path| names.add_word(path, analysis.opaque.is_some()));
        names
    }

    /// Collects the names in the words of a command. Those of an opaque script may expand to
    /// more.
    pub(super) fn of_command(command: &'a SimpleCommand, is_opaque: bool) -> Self {
        let mut names = Self::default();
        let Some(program) = command.argv.first() else { return names };
        let name = bare_name(program);
        let program = ProgramEffects::find(&name);
        if matches!(program.reads, ReadEffect::Nothing | ReadEffect::Names) {
            // The shell expands globs, and these programs print the result.
            let is_shown = matches!(&*name, "echo" | "printf");
            names.unknown = operand_words(command)
                .find(|(word, certainty)| {
                    is_shown && *certainty == WordCertainty::AnyWords && has_folder_pattern(word)
                })
                .map(|(word, _)| word);
            return names;
        }
        // A git alias may print any file.
        let is_alias = program.reads == ReadEffect::Git && command.may_be_alias;
        names.unknown = (is_alias || command.has_open_end).then_some(&*command.text);
        let mut before = "";
        for (word, certainty) in operand_words(command) {
            let option = std::mem::replace(&mut before, word);
            // Such a setting of git may be a command.
            let is_setting =
                program.reads == ReadEffect::Git && matches!(option, "-c" | "--config-env");
            match certainty {
                _ if program.messages.contains(&option) || word.starts_with("-j$") => {}
                WordCertainty::Literal if is_setting && word.contains(is_expansion_char) => {
                    names.add_unknown_word(word);
                }
                WordCertainty::Literal | WordCertainty::HomePath => {
                    names.add_word(word, is_opaque || word.contains("{}"));
                }
                _ => names.add_unknown_word(word),
            }
        }
        if git::shows_unnamed_lines(&name, &command.argv[1..]) {
            names.unknown = Some(&command.text);
        }
        names
    }

    /// Adds the unknown words of a read-only command. Its literal operands are checked elsewhere,
    /// but in an opaque script the quotes are uncertain.
    pub(super) fn add_safe_command(&mut self, command: &'a SimpleCommand, is_opaque: bool) {
        let program = command.argv.first().map(|program| ProgramEffects::find(program).reads);
        if !is_opaque || matches!(program, Some(ReadEffect::Nothing | ReadEffect::Names)) {
            return;
        }
        let expands = |word: &&String| word.contains('{') || word.starts_with('~');
        let expanded = || command.argv.iter().find(expands).map(|it| &**it);
        self.unknown = self.unknown.or_else(expanded).or_else(|| first_pattern(command));
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.named.extend(other.named);
        self.unknown = self.unknown.or(other.unknown);
    }

    pub(super) fn without_unknown(self) -> Self {
        Self { unknown: None, ..self }
    }

    /// Adds a resource for each path that a name may stand for.
    pub(super) fn add_resources(
        self,
        folders: &[PathBuf],
        roots: &[&Path],
        resources: &mut Vec<Resource>,
    ) {
        let mut unknown = self.unknown;
        let is_too_much = folders.len() > 1 && folders.len() * self.named.len() > MAX_NAMES;
        let folders = if is_too_much { &[] } else { folders };
        for name in self.named {
            let places = candidate_places(name, folders);
            if places.is_empty() {
                unknown = unknown.or(Some(name));
                // The name as spelled may match a deny rule for any depth.
                let place = name.trim_start_matches('/');
                resources
                    .push(FileAccess::Read.deny_only(Resource::path(as_file_name(name), place)));
            }
            for place in places {
                let real = place.canonicalize().ok().filter(|real| *real != place);
                let places = [place].into_iter().chain(real);
                resources.extend(places.map(|place| named_read(name, place, roots)));
            }
        }
        resources.extend(unknown.map(|name| denied_unknown_files(name, FileAccess::Read)));
    }

    /// Adds a word with unknown parts. Names below home in it are still matched.
    fn add_unknown_word(&mut self, word: &'a str) {
        self.unknown = Some(word);
        let at_home = names_in(word).filter(|name| strip_home(name).is_some());
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

/// Returns the places of a name; none if they are unknown.
fn candidate_places(name: &str, folders: &[PathBuf]) -> Vec<PathBuf> {
    match home_path(name) {
        Some(place) => vec![normalize_path(&place)],
        None if name.starts_with('/') => vec![normalize_path(Path::new(name))],
        None if name.starts_with('~') => Vec::new(),
        None => folders.iter().map(|folder| normalize_path(&folder.join(name))).collect(),
    }
}

/// Returns the directories below home that `cd` may enter, where relative names resolve
/// differently.
pub(super) fn home_folders_entered(analysis: &ScriptAnalysis) -> Vec<PathBuf> {
    let mut entered: Vec<PathBuf> = Vec::new();
    for command in &analysis.commands {
        let to = match command.argv.as_slice() {
            [cd] if cd == "cd" => "~",
            [cd, .., to] if matches!(&**cd, "cd" | "pushd") => to,
            _ => continue,
        };
        let place = home_path(to).or_else(|| Some(entered.last()?.join(to)));
        entered.extend(place.filter(|place| place.is_dir()));
        if entered.len() == MAX_HOME_FOLDERS {
            break;
        }
    }
    entered
}

/// Returns the directories in which the names of a command lead to files, if these are not those of
/// the line.
pub(super) fn other_folders(command: &SimpleCommand, folders: &[PathBuf]) -> Option<Vec<PathBuf>> {
    if command.may_run_elsewhere {
        return Some(Vec::new());
    }
    let into = directory_option(command)?;
    let entered = folders.iter().map(|folder| folder.join(into)).chain(home_path(into));
    Some(folders.iter().cloned().chain(entered.filter(|place| place.is_dir())).collect())
}

/// Returns the first possible glob of a command from the fallback scan, where quotes are
/// uncertain.
fn first_pattern(command: &SimpleCommand) -> Option<&str> {
    let operands = operands::read_operands(command).into_iter();
    let mut paths =
        operands.filter(|it| matches!(it.kind, OperandKind::Path | OperandKind::MaybePath));
    paths.find(|path| path.text.contains(['*', '?', '['])).map(|path| path.text)
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

/// Returns the resource for a named file.
fn named_read(name: &str, place: PathBuf, roots: &[&Path]) -> Resource {
    // The text is relative to the root, however it is spelled.
    let below = roots.iter().find_map(|root| place.strip_prefix(root).ok());
    let text = below.unwrap_or(Path::new(name)).to_string_lossy().into_owned();
    // A program may read everything below a directory.
    let spellings =
        if place.is_dir() { vec![text.clone(), place.display().to_string()] } else { vec![] };
    let beginnings = spellings.into_iter().map(|it| format!("{}/", it.trim_end_matches('/')));
    FileAccess::Read
        .deny_only(Resource::path(as_file_name(&text), place))
        .with_known_prefixes(beginnings)
}

/// Spells a name so that command rules do not take it for a program.
fn as_file_name(name: &str) -> String {
    let is_file = name.starts_with('/') || name.contains(['.', '/']) && !name.contains(' ');
    if is_file { name.to_owned() } else { format!("./{name}") }
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
