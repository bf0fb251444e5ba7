//! What an installation, creation or change of a skill would do, as it is shown and then done.
//!
//! **Invariant:** a plan holds the very bytes that are written; making one changes nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use strsim::damerau_levenshtein;
use tool_sdk::ToolError;

use super::discovery::{SkillLibrary, SkillPlaces, SkillScope};
use super::document::{FILE_NAME, SkillDocument};
use crate::packages::change::PackageChange;
use crate::packages::entry_name::is_folder_name;
use crate::packages::package::{PackageContent, PackageFile, PackageLimits};
use crate::packages::pins::PackagePin;
use crate::packages::source::{SourcePackage, read_source};
use crate::packages::staging::{ReplacementPolicy, TargetFolder, install_package};
use crate::skills::skill_pins;

/// Names of public skills that others imitate.
const WELL_KNOWN: [&str; 12] = [
    "docx",
    "pdf",
    "pptx",
    "xlsx",
    "algorithmic-art",
    "brand-guidelines",
    "canvas-design",
    "frontend-design",
    "internal-comms",
    "mcp-builder",
    "skill-creator",
    "webapp-testing",
];

/// A planned change of one skill.
#[derive(Clone, Debug)]
pub(super) struct SkillPlan {
    pub(super) name: String,
    pub(super) scope: SkillScope,
    target: TargetFolder,
    pub(super) document: SkillDocument,
    pub(super) change: PackageChange,
    /// Where the files come from, for people.
    source: String,
    commit: Option<String>,
    /// Whether the content hash is recorded.
    is_pinned: bool,
    notes: Vec<String>,
}

/// Which skill of a source is meant, and where it goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct InstallRequest<'a> {
    pub(super) source: &'a Path,
    /// The name or the folder of one skill, where the source has several.
    pub(super) skill: Option<&'a str>,
    pub(super) scope: SkillScope,
    pub(super) replacement: ReplacementPolicy,
}

impl SkillPlan {
    /// Reads the source and plans the installation.
    pub(super) fn for_install(
        request: InstallRequest<'_>,
        places: &SkillPlaces,
    ) -> Result<Self, ToolError> {
        let SourcePackage { package, kind, commit } =
            read_source(request.source, PackageLimits::default())?;
        let folder = find_skill_folder(&package, request.skill, kind)?;
        let skill = package.below(&folder);
        if let Some((name, what)) = skill.refused.first() {
            let text = format_args!("the package has {what} at `{}`", name.escape_debug());
            return Err(ToolError::invalid_args(text)
                .hint("a skill has regular files only; nothing was installed"));
        }
        let inside = if folder.is_empty() { String::new() } else { format!(", `{folder}`") };
        let source = format!("{kind} `{}`{inside}", request.source.display());
        let folder_name = match folder.rsplit('/').next() {
            Some("") | None => file_stem(request.source),
            Some(name) => name.to_owned(),
        };
        let mut plan = Self::new(skill, &folder_name, request.scope, source, places)?;
        plan.commit = commit;
        plan.is_pinned = true;
        if plan.change.old.is_some() && request.replacement == ReplacementPolicy::Refused {
            let text = format_args!("the skill `{}` is installed already", plan.name);
            return Err(ToolError::conflict(text)
                .hint("pass `replace` to replace it; the difference is shown first"));
        }
        if package.files.contains_key("manifest.json") && kind == "MCP bundle" {
            plan.notes.push("the MCP server of the bundle is not installed".to_owned());
        }
        plan.note_similar_names(&places.discover());
        Ok(plan)
    }

    /// Plans to write a skill of one text.
    pub(super) fn for_text(
        text: String,
        name: &str,
        scope: SkillScope,
        places: &SkillPlaces,
    ) -> Result<Self, ToolError> {
        let mut package = PackageContent::default();
        let file = PackageFile { bytes: text.into_bytes(), is_executable: false };
        package.files.insert(FILE_NAME.to_owned(), file);
        Self::new(package, name, scope, "this call".to_owned(), places)
    }

    /// Plans to change the text of a skill in `folder`, whose other files stay.
    pub(super) fn for_changed_text(
        folder: &Path,
        scope: SkillScope,
        text: String,
        places: &SkillPlaces,
    ) -> Result<Self, ToolError> {
        let mut package = read_source(folder, PackageLimits::default())?.package;
        if let Some((name, what)) = package.refused.first() {
            let text = format_args!("the skill has {what} at `{name}`, so it is not rewritten");
            return Err(ToolError::failed(text));
        }
        let pins = places.folders.state.as_deref().map(skill_pins);
        if pins.is_some_and(|pins| pins.is_changed(folder, &package)) {
            // Only the new text is shown, and the pin would vouch for the other files as well.
            let text = "the files of the skill have changed since it was installed";
            return Err(ToolError::conflict(text)
                .hint("install it again with `replace`, which shows the difference"));
        }
        let old = package.clone();
        let file = PackageFile { bytes: text.into_bytes(), is_executable: false };
        package.files.insert(FILE_NAME.to_owned(), file);
        let mut plan =
            Self::new(package, &file_stem(folder), scope, "this call".to_owned(), places)?;
        let is_there = plan.folder() == folder;
        if !is_there {
            let text = format_args!("the skill lies in `{}`, not here", folder.display());
            return Err(ToolError::failed(text).hint("the user changes it there"));
        }
        plan.change.old = Some(old);
        Ok(plan)
    }

    fn new(
        package: PackageContent,
        folder_name: &str,
        scope: SkillScope,
        source: String,
        places: &SkillPlaces,
    ) -> Result<Self, ToolError> {
        let text = package.files.get(FILE_NAME).and_then(PackageFile::text).ok_or_else(|| {
            ToolError::invalid_args(format_args!("`{FILE_NAME}` is not a text in UTF-8"))
        })?;
        let document = SkillDocument::parse(text, folder_name)
            .map_err(|why| ToolError::invalid_args(format_args!("`{FILE_NAME}`: {why}")))?;
        let name = document.name.clone();
        if !is_folder_name(&name) {
            let text = format_args!("`{}` cannot be the name of a folder", name.escape_debug());
            return Err(ToolError::invalid_args(text)
                .hint("a name has 1 to 64 of a-z, 0-9, `-`, `_` and `.`"));
        }
        let target = places.target_folder(scope)?;
        let folder = target.path().join(&name);
        let old = match std::fs::symlink_metadata(&folder) {
            Ok(_) => Some(read_source(&folder, PackageLimits::default())?.package),
            Err(_) => None,
        };
        let notes = document.warnings.clone();
        let change = PackageChange::new(package, old, FILE_NAME);
        Ok(Self {
            name,
            scope,
            target,
            document,
            change,
            source,
            commit: None,
            is_pinned: false,
            notes,
        })
    }

    /// Returns the folder that is written.
    pub(super) fn folder(&self) -> PathBuf {
        self.target.path().join(&self.name)
    }

    /// Whether a skill of this name is there already.
    pub(super) fn replaces(&self) -> bool {
        self.change.old.is_some()
    }

    /// Records what is installed, then writes the files: a skill without its record would never ask
    /// again. Fails when the replaced files have changed since the plan was made.
    pub(super) fn carry_out(&self, places: &SkillPlaces) -> Result<(), ToolError> {
        let folder = self.folder();
        if let Some(old) = &self.change.old {
            let now = read_source(&folder, PackageLimits::default())?.package;
            if now != *old {
                let text = format_args!("the skill `{}` has changed meanwhile", self.name);
                return Err(ToolError::conflict(text).hint("try again"));
            }
        }
        let pins = places.folders.state.as_deref().map(skill_pins);
        let replacement = match self.change.old {
            Some(_) => ReplacementPolicy::Allowed,
            None => ReplacementPolicy::Refused,
        };
        let install =
            || install_package(&self.change.package, &self.target, &self.name, replacement);
        let Some(pins) = pins else { return install() };
        let old_pin = pins.find(&folder);
        let Some(pin) = self.make_pin(old_pin.as_ref()) else { return install() };
        pins.store(&pin)?;
        install().inspect_err(|_| match &old_pin {
            // When this fails, the pin matches no files, and the skill asks.
            Some(old_pin) => drop(pins.store(old_pin)),
            None => pins.remove(&folder),
        })
    }

    /// Returns what is recorded; the text of an installed skill changes only the hash, because the
    /// user has seen the new text.
    fn make_pin(&self, old: Option<&PackagePin>) -> Option<PackagePin> {
        let hash = self.change.hash.clone();
        if !self.is_pinned {
            return old.map(|old| PackagePin { hash, ..old.clone() });
        }
        Some(PackagePin {
            name: self.name.clone(),
            folder: self.folder(),
            source: self.source.clone(),
            commit: self.commit.clone(),
            hash,
        })
    }

    /// Returns the data for the approval prompt.
    pub(super) fn preview(&self) -> Value {
        json!({
            "unified": self.change.diff(),
            "lines to look at": self.change.shown_marks(),
            "content hash": self.change.hash,
            "from": self.describe_source(),
            "to": self.folder().display().to_string(),
            "files": self.change.describe_files(),
            "notes": self.notes,
        })
    }

    /// Returns the plan as text, for a dry run.
    pub(super) fn describe(&self) -> String {
        let does = if self.replaces() { "replace" } else { "install" };
        let mut text = format!(
            "Would {does} the skill `{}` in {}\nfrom: {}\ncontent hash: {}\nfiles: {}\n",
            self.name,
            self.folder().display(),
            self.describe_source(),
            self.change.hash,
            self.change.describe_files(),
        );
        for note in &self.notes {
            text += &format!("note: {note}\n");
        }
        if !self.document.allowed_tools.is_empty() {
            let tools = self.document.allowed_tools.join(" ");
            text += &format!("note: the author names these tools, which allows none: {tools}\n");
        }
        text + &self.change.describe()
    }

    fn describe_source(&self) -> String {
        match &self.commit {
            Some(commit) => format!("{} at commit {commit}, with its local changes", self.source),
            None => self.source.clone(),
        }
    }

    fn note_similar_names(&mut self, library: &SkillLibrary) {
        let known = library.skills.keys().map(String::as_str).chain(WELL_KNOWN);
        let similar: BTreeSet<&str> = known.filter(|known| looks_like(&self.name, known)).collect();
        self.notes.extend(similar.into_iter().map(|known| {
            format!("the name is similar to `{known}`; look whether it is the skill that you want")
        }));
        if !self.document.allowed_tools.is_empty() {
            let tools = self.document.allowed_tools.join(" ");
            self.notes.push(format!("the author names these tools, which allows none: {tools}"));
        }
    }
}

/// Whether a name could be taken for another one: few letters differ, or something was added.
fn looks_like(name: &str, known: &str) -> bool {
    let letters = |name: &str| name.replace(['-', '_', '.'], "");
    let (one, other) = (letters(name), letters(known));
    if name == known {
        return false;
    }
    let is_extended =
        name.strip_prefix(known).is_some_and(|rest| rest.starts_with(['-', '_', '.']));
    let most = if known.len() < 5 { 0 } else { 2 };
    one == other || is_extended || damerau_levenshtein(&one, &other) <= most
}

/// Returns the name of a source without its ending.
fn file_stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the folder of the skill in a package: the wanted one, or the only one.
fn find_skill_folder(
    package: &PackageContent,
    wanted: Option<&str>,
    kind: &str,
) -> Result<String, ToolError> {
    let folder = |name: &String| match name.strip_suffix(FILE_NAME)? {
        "" => Some(String::new()),
        rest => Some(rest.strip_suffix('/')?.to_owned()),
    };
    let mut folders: Vec<String> = package.files.keys().filter_map(folder).collect();
    // A skill in a skill is one of its files.
    let all = folders.clone();
    let is_below = |folder: &String, other: &String| {
        folder != other
            && (other.is_empty()
                || folder.strip_prefix(other).is_some_and(|it| it.starts_with('/')))
    };
    folders.retain(|folder| !all.iter().any(|other| is_below(folder, other)));
    if let Some(wanted) = wanted {
        let is_wanted = |folder: &&String| {
            folder.as_str() == wanted.trim_matches('/') || folder.rsplit('/').next() == Some(wanted)
        };
        let mut found = folders.iter().filter(is_wanted);
        return match (found.next(), found.next()) {
            (Some(folder), None) => Ok(folder.clone()),
            (None, _) => Err(unclear_folder(&folders, "has no skill of that name")),
            _ => Err(unclear_folder(&folders, "has several skills of that name")),
        };
    }
    match &*folders {
        [folder] => Ok(folder.clone()),
        [] if kind == "MCP bundle" => {
            Err(ToolError::invalid_args("the bundle has an MCP server and no skill")
                .hint("the user can add the server with `mcp add`"))
        }
        [] => Err(ToolError::invalid_args(format_args!("the source has no file `{FILE_NAME}`"))
            .hint("name the folder of a skill")),
        _ => Err(unclear_folder(&folders, "has several skills")),
    }
}

fn unclear_folder(folders: &[String], problem: &str) -> ToolError {
    let names: Vec<_> = folders.iter().take(50).map(|folder| format!("`{folder}`")).collect();
    ToolError::invalid_args(format_args!("the source {problem}"))
        .hint(format_args!("name one of these with `skill`: {}", names.join(", ")))
}

#[cfg(test)]
mod tests;
