//! The resources of files that commands write by name.
//!
//! Writing inside the workspace needs no approval of its own, because the command does. But an
//! `edit` rule that denies files is matched against each name, and files outside the workspace
//! and protected files need approval as for every tool.
//!
//! **Invariant:** an unknown file may be one that a rule denies.

use std::path::{Path, PathBuf};

use tool_sdk::{Resource, RiskClass};

use super::base_folder::{BaseFolder, FileAccess, WRITE};
use super::write_operands::{self, WriteOperand};
use super::{home_paths, read_only_files};
use crate::shell::ScriptAnalysis;

/// The maximum number of files that are checked; further files count as unknown.
const MAX_FILES: usize = 128;

/// Returns the files that the commands which are not read-only write when they run in one of
/// `folders`.
pub(super) fn write_resources(
    base: &BaseFolder<'_>,
    analysis: &ScriptAnalysis,
    folders: &[PathBuf],
) -> Vec<Resource> {
    let commands = || analysis.commands.iter().filter(|it| !it.is_safe && !it.is_embedded);
    // A single command that moves files resolves its own paths before.
    let is_certain =
        analysis.opaque.is_none() && (!analysis.may_rename_files || commands().nth(1).is_none());
    let mut subjects = Vec::new();
    let mut budget = MAX_FILES;
    for command in commands() {
        let folders = if command.may_run_elsewhere { &[][..] } else { folders };
        for file in write_operands::write_operands(command) {
            let PlacedFile { text, access, places, has_more } = place_file(file, folders);
            if budget < places.len().max(1) {
                subjects.push(unnamed_write(&command.text));
                return subjects;
            }
            budget = budget.saturating_sub(places.len().max(1));
            if !is_certain || has_more || places.is_empty() {
                subjects.push(unnamed_write(text));
            }
            for place in places {
                // Relative to the base directory if it is below it.
                let own = base.folder.as_ref().and_then(|own| place.strip_prefix(own).ok());
                let path = own.filter(|own| !own.as_os_str().is_empty()).unwrap_or(&place);
                let about = base.path_resources(&path.to_string_lossy(), true, access);
                subjects.extend(about.into_iter().map(deny_only));
            }
        }
    }
    subjects
}

/// Limits the resource of an edited file to deny rules; external and protected files still need
/// approval.
fn deny_only(subject: Resource) -> Resource {
    match (subject.permission(), subject.absolute()) {
        // Command rules could take a plain file name for a program.
        (Some(WRITE), Some(place)) if !subject.text().contains(['.', '/']) => {
            let named = Resource::path(format!("./{}", subject.text()), place);
            named.with_permission(WRITE).with_class(RiskClass::Write).deny_rules_only()
        }
        (Some(WRITE), _) => subject.deny_rules_only(),
        _ => subject,
    }
}

/// Returns the resource for an unknown file that may be written.
fn unnamed_write(text: &str) -> Resource {
    let why = "the files that it writes are only known at run time";
    // A relative path is inside no directory.
    let written =
        Resource::path(text, text.trim_start_matches('/')).with_reason(why).with_unknown_effect();
    written.with_permission(WRITE).with_class(RiskClass::Write).deny_rules_only()
}

/// The possible places of a written file.
struct PlacedFile<'a> {
    /// The path as spelled.
    text: &'a str,
    access: FileAccess,
    /// Empty if they are unknown.
    places: Vec<PathBuf>,
    /// Whether it may be a directory with further files.
    has_more: bool,
}

/// Whether it is a directory, also below home.
fn is_folder(place: &Path) -> bool {
    let at_home = place.to_str().and_then(home_paths::home_path);
    at_home.as_deref().unwrap_or(place).is_dir()
}

/// Resolves a write operand when the command runs in one of these directories.
fn place_file<'a>(file: WriteOperand<'a>, folders: &[PathBuf]) -> PlacedFile<'a> {
    let all = |path: &str| match path.starts_with(['/', '~']) {
        true => vec![PathBuf::from(path)],
        false => folders.iter().map(|folder| folder.join(path)).collect(),
    };
    let (text, access) = match file {
        WriteOperand::Path(text)
        | WriteOperand::Tree(text)
        | WriteOperand::Pattern(text)
        | WriteOperand::Unknown(text) => (text, FileAccess::Write),
        WriteOperand::Copy { to, .. } => (to, FileAccess::Write),
        WriteOperand::Removed(text) => (text, FileAccess::Remove),
    };
    let (places, has_more) = match file {
        WriteOperand::Path(path) => (all(path), false),
        // A rule may deny files below a directory.
        WriteOperand::Tree(path) | WriteOperand::Removed(path) => {
            let places = all(path);
            let is_folder = places.iter().any(|place| is_folder(place));
            (places, is_folder)
        }
        WriteOperand::Unknown(_) => (Vec::new(), true),
        WriteOperand::Pattern(pattern) => {
            let at_home = home_paths::home_path("~").zip(home_paths::strip_home(pattern));
            let below = folders.iter().map(|folder| (folder.clone(), pattern)).chain(at_home);
            let fitting = below.map(|(folder, pattern)| {
                let names = read_only_files::match_pattern(&folder, pattern)?.into_iter();
                Some(names.map(|name| folder.join(name)).collect::<Vec<_>>())
            });
            let fitting: Option<Vec<_>> = fitting.collect();
            let is_known = fitting.is_some() && !folders.is_empty() && !pattern.starts_with('~');
            // A glob without matches stands for itself.
            let mut places = fitting.unwrap_or_default().concat();
            places.extend(all(pattern));
            let is_folder = places.iter().any(|place| is_folder(place));
            (places, is_folder || !is_known)
        }
        WriteOperand::Copy { from, to } => {
            let name = Path::new(from).file_name();
            let into = |place: PathBuf| match name {
                Some(name) if is_folder(&place) => place.join(name),
                _ => place,
            };
            let is_folder = name.is_none() || all(from).iter().any(|from| is_folder(from));
            (all(to).into_iter().map(into).collect(), is_folder)
        }
    };
    PlacedFile { text, access, places, has_more }
}
