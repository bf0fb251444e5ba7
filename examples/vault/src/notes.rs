//! Reads the notes of a vault: Markdown files outside of hidden folders, as far as the rules show
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use tool_sdk::{
    Context, FolderEntry, ResolvedPath, Resource, ToolError, Visibility, VisibilityFilter,
    WorkStop, Workspace, WorkspacePath,
};

use crate::markdown::{NoteLink, find_links, find_tags, find_title};
use crate::note_names::{NoteNames, stem};

/// The maximum size of a note.
pub(crate) const MAX_NOTE: u64 = 1 << 20;

/// The maximum number of notes.
const MAX_NOTES: usize = 20_000;

/// A note as it was read.
pub(crate) struct VaultNote {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) title: String,
    pub(crate) tags: BTreeSet<String>,
    pub(crate) links: Vec<NoteLink>,
}

/// All notes that the session may see.
pub(crate) struct VaultNotes {
    pub(crate) notes: BTreeMap<String, VaultNote>,
    pub(crate) names: NoteNames,
    /// How many notes the rules show only on request. Notes that the rules deny are not counted.
    pub(crate) withheld: usize,
}

impl VaultNotes {
    /// Reads every note of the workspace. Fails when the call was cancelled, and with over 20,000
    /// notes.
    pub(crate) fn read(
        workspace: &Workspace,
        visible: &VisibilityFilter,
        is_stopped: impl Fn() -> bool,
    ) -> Result<Self, ToolError> {
        let root = workspace.resolve(".")?;
        let (mut notes, mut withheld) = (BTreeMap::new(), 0);
        let mut folders = vec![(root.clone(), root.open_folder()?)];
        while let Some((place, folder)) = folders.pop() {
            if is_stopped() {
                return Err(ToolError::aborted("the call ended before all notes were read"));
            }
            let entries = folder.entries().map_err(|error| {
                ToolError::failed(format_args!("cannot list `{}`: {error}", place.display()))
            })?;
            for entry in entries {
                let Some(name) = entry.name().to_str().filter(|name| !name.starts_with('.')) else {
                    continue;
                };
                let place = place.join(name);
                if entry.kind().is_dir() {
                    // A folder that cannot be read has no notes for this session.
                    folders.extend(entry.open_folder().ok().map(|folder| (place, folder)));
                } else if name.ends_with(".md") {
                    match note_visibility(&place, visible) {
                        Visibility::Shown => notes.extend(read_note(&place, &entry)),
                        Visibility::OnRequest => withheld += 1,
                        _ => {}
                    }
                }
            }
            if notes.len() > MAX_NOTES {
                return Err(ToolError::failed("the vault has over 20,000 notes")
                    .hint("open one of its folders as the vault"));
            }
        }
        let names = NoteNames::new(notes.keys().cloned());
        Ok(Self { notes, names, withheld })
    }

    /// Returns a note; the error for a path that is none names similar ones.
    pub(crate) fn get(&self, path: &str) -> Result<&VaultNote, ToolError> {
        self.notes.get(path).ok_or_else(|| {
            let error = ToolError::not_found(format_args!("there is no note `{path}`"));
            let wanted = stem(path).to_lowercase();
            let mut similar =
                self.notes.keys().filter(|it| stem(it).to_lowercase().contains(&wanted));
            match similar.next() {
                Some(other) => error.hint(format_args!("did you mean `{other}`?")),
                None => error.hint("`vault_list` shows the paths of all notes"),
            }
        })
    }

    /// Returns the notes with a link to `path`, other than the note itself.
    pub(crate) fn backlinks(&self, path: &str) -> Vec<&str> {
        let links_there = |note: &&VaultNote| {
            note.links.iter().any(|link| self.names.resolve(&note.path, link) == Some(path))
        };
        let linking = self.notes.values().filter(|note| note.path != path).filter(links_there);
        linking.map(|note| note.path.as_str()).collect()
    }

    /// Returns the notes to which a note links, and the targets that are no notes.
    pub(crate) fn links_of(&self, note: &VaultNote) -> (BTreeSet<&str>, BTreeSet<String>) {
        let (mut found, mut missing) = (BTreeSet::new(), BTreeSet::new());
        for link in &note.links {
            match self.names.resolve(&note.path, link) {
                Some(path) => drop(found.insert(path)),
                None => drop(missing.insert(link.target.clone())),
            }
        }
        (found, missing)
    }
}

/// Fails when a text is too large to be read as a note again.
pub(crate) fn check_note_size(text: &str) -> Result<(), ToolError> {
    if text.len() as u64 > MAX_NOTE {
        return Err(ToolError::failed("the note would be over 1 MiB").hint("write another note"));
    }
    Ok(())
}

/// Returns the text of a note. Fails when it is not UTF-8.
pub(crate) fn decode_note(place: &ResolvedPath, content: &[u8]) -> Result<String, ToolError> {
    String::from_utf8(content.to_vec()).map_err(|error| {
        ToolError::failed(format_args!("`{}` is not UTF-8", place.display())).source(error)
    })
}

/// Reads the notes on behalf of work on a blocking thread.
pub(crate) fn read_notes(
    workspace: &Workspace,
    visible: &VisibilityFilter,
    stop: &WorkStop,
) -> Result<VaultNotes, ToolError> {
    VaultNotes::read(workspace, visible, || stop.is_stopped())
}

fn note_visibility(place: &ResolvedPath, visible: &VisibilityFilter) -> Visibility {
    match visible.shows_everything() {
        true => Visibility::Shown,
        false => visible.file_visibility(&place.rule_path(), &place.absolute_path()),
    }
}

/// Returns a note with its path; `None` for what cannot be read as text of at most 1 MiB.
fn read_note(place: &ResolvedPath, entry: &FolderEntry) -> Option<(String, VaultNote)> {
    let (file, metadata) = entry.open_file().ok()?;
    if metadata.len() > MAX_NOTE {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_NOTE).read_to_string(&mut text).ok()?;
    Some((place.rule_path(), parse_note(place.rule_path(), text)))
}

fn parse_note(path: String, text: String) -> VaultNote {
    VaultNote {
        title: find_title(&text).unwrap_or_else(|| stem(&path).to_owned()),
        tags: find_tags(&text),
        links: find_links(&text),
        path,
        text,
    }
}

/// The vault as a resource, for tools that read all notes.
pub(crate) fn vault_resources(cx: &Context) -> Vec<Resource> {
    WorkspacePath::from(".").read_resources(cx)
}

/// Returns where the note of a path is. A path outside of the vault is no note, although the user may
/// have approved it.
pub(crate) fn locate_note(
    argument: &'static str,
    path: &WorkspacePath,
    workspace: &Workspace,
) -> Result<ResolvedPath, ToolError> {
    let place = path.locate(workspace)?;
    if place.is_outside() {
        return Err(ToolError::invalid(argument, format_args!("`{path}` is outside of the vault")));
    }
    Ok(place)
}

/// Checks the path of a note that a tool writes.
pub(crate) fn check_note_path(argument: &'static str, path: &str) -> Result<(), ToolError> {
    let is_hidden =
        path.split('/').any(|part| part.starts_with('.') && part != "." && part != "..");
    let reason = if !path.ends_with(".md") || stem(path).is_empty() {
        "the name of a note ends with `.md`"
    } else if is_hidden {
        "notes are not in hidden folders"
    } else if path.contains(['[', ']', '|', '#', '^', '\n']) {
        "no link can name a note with `[`, `]`, `|`, `#` or `^` in its path"
    } else {
        return Ok(());
    };
    Err(ToolError::invalid(argument, format_args!("`{path}`: {reason}"))
        .hint("write a path such as `ideas/tea.md`"))
}
