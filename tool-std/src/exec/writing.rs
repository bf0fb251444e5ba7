//! Where the files lie that a command writes by their names, for rules and people.
//!
//! Nobody is asked whether it writes in the workspace, for the command is asked about. But a rule
//! of `edit` that forbids some file is held against each name, and about what lies outside, or
//! is obeyed later by something, somebody is asked as for every tool.
//!
//! **Invariant:** where nobody knows which file is meant, it may be one that a rule forbids.

use std::path::{Path, PathBuf};

use tool_sdk::{RiskClass, Subject};

use super::files::{Access, Base, WRITE};
use super::written::{self, Written};
use super::{home, look};
use crate::shell::Understood;

/// How many files are looked for. Where there are more, they are some that nobody knows.
const MOST: usize = 128;

/// What the commands of a line write that are no known ones that only look, when they run in one
/// of `folders`.
pub(super) fn subjects(base: &Base<'_>, of: &Understood, folders: &[PathBuf]) -> Vec<Subject> {
    let commands = || of.commands.iter().filter(|it| !it.safe && !it.hidden);
    // What one command moves is where it was when that one looks.
    let is_certain = of.opaque.is_none() && (!of.renames || commands().nth(1).is_none());
    let mut subjects = Vec::new();
    let mut left = MOST;
    for command in commands() {
        let folders = if command.elsewhere { &[][..] } else { folders };
        for file in written::given(command) {
            let Placed { text, access, places, has_more } = placed(file, folders);
            if left < places.len().max(1) {
                subjects.push(unnamed(&command.text));
                return subjects;
            }
            left = left.saturating_sub(places.len().max(1));
            if !is_certain || has_more || places.is_empty() {
                subjects.push(unnamed(text));
            }
            for place in places {
                // As it is asked for, where it is below the folder in which all of it starts.
                let own = base.folder.as_ref().and_then(|own| place.strip_prefix(own).ok());
                let path = own.filter(|own| !own.as_os_str().is_empty()).unwrap_or(&place);
                let about = base.about(&path.to_string_lossy(), true, access);
                subjects.extend(about.into_iter().map(forbidden));
            }
        }
    }
    subjects
}

/// A file as only rules that forbid see it, but for those places that every tool is asked about.
fn forbidden(subject: Subject) -> Subject {
    match (subject.permission(), subject.absolute()) {
        // The name of a file alone could be that of a program to rules for commands.
        (Some(WRITE), Some(place)) if !subject.text().contains(['.', '/']) => {
            let named = Subject::path(format!("./{}", subject.text()), place);
            named.under(WRITE).class(RiskClass::Write).only_forbidden()
        }
        (Some(WRITE), _) => subject.only_forbidden(),
        _ => subject,
    }
}

/// What may be written that nobody names.
fn unnamed(text: &str) -> Subject {
    let why = "which files it writes is only known when it runs";
    // No folder holds a path that is not absolute.
    let written = Subject::path(text, text.trim_start_matches('/')).because(why).nameless();
    written.under(WRITE).class(RiskClass::Write).only_forbidden()
}

/// Where a file lies that is written.
struct Placed<'a> {
    /// As it is written.
    text: &'a str,
    access: Access,
    /// There are none when nobody knows.
    places: Vec<PathBuf>,
    /// Whether it is a folder with more in it.
    has_more: bool,
}

/// Whether it is a folder, also where it begins at home.
fn is_folder(place: &Path) -> bool {
    let at_home = place.to_str().and_then(home::place);
    at_home.as_deref().unwrap_or(place).is_dir()
}

/// The same, when a command runs in one of these folders.
fn placed<'a>(file: Written<'a>, folders: &[PathBuf]) -> Placed<'a> {
    let all = |path: &str| match path.starts_with(['/', '~']) {
        true => vec![PathBuf::from(path)],
        false => folders.iter().map(|folder| folder.join(path)).collect(),
    };
    let (text, access) = match file {
        Written::Path(text)
        | Written::Whole(text)
        | Written::Pattern(text)
        | Written::Unknown(text) => (text, Access::Write),
        Written::Copy { to, .. } => (to, Access::Write),
        Written::Gone(text) => (text, Access::Remove),
    };
    let (places, has_more) = match file {
        Written::Path(path) => (all(path), false),
        // Of what lies below a folder, a rule may forbid some.
        Written::Whole(path) | Written::Gone(path) => {
            let places = all(path);
            let is_folder = places.iter().any(|place| is_folder(place));
            (places, is_folder)
        }
        Written::Unknown(_) => (Vec::new(), true),
        Written::Pattern(pattern) => {
            let at_home = home::place("~").zip(home::below(pattern));
            let below = folders.iter().map(|folder| (folder.clone(), pattern)).chain(at_home);
            let fitting = below.map(|(folder, pattern)| {
                let names = look::matches(&folder, pattern)?.into_iter();
                Some(names.map(|name| folder.join(name)).collect::<Vec<_>>())
            });
            let fitting: Option<Vec<_>> = fitting.collect();
            let is_known = fitting.is_some() && !folders.is_empty() && !pattern.starts_with('~');
            // What fits nothing stands for itself.
            let mut places = fitting.unwrap_or_default().concat();
            places.extend(all(pattern));
            let is_folder = places.iter().any(|place| is_folder(place));
            (places, is_folder || !is_known)
        }
        Written::Copy { from, to } => {
            let name = Path::new(from).file_name();
            let into = |place: PathBuf| match name {
                Some(name) if is_folder(&place) => place.join(name),
                _ => place,
            };
            let is_folder = name.is_none() || all(from).iter().any(|from| is_folder(from));
            (all(to).into_iter().map(into).collect(), is_folder)
        }
    };
    Placed { text, access, places, has_more }
}
