//! Finds the skills of a session in the folders where programs look for them.
//!
//! Everything is read anew at each use, so that a changed file counts at once.
//!
//! **Invariant:** a skill of a project is found only if the user trusts the folder of the project,
//! and only if its file lies inside of that folder.

use std::collections::BTreeMap;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use tool_sdk::ToolError;

use super::document::{FILE_NAME, SkillDocument};
use crate::packages::host_files::{list_folder, read_text_file};
pub(super) use crate::packages::places::PackagePlaces as SkillPlaces;
use crate::packages::staging::TargetFolder;

/// The folders of a project and of a home folder that other programs read as well. The first one that
/// has a name counts.
const COMMON_FOLDERS: [&str; 5] =
    [".agents/skills", ".claude/skills", ".opencode/skill", ".opencode/skills", ".codex/skills"];

/// The folders that only a home folder has.
const HOME_FOLDERS: [&str; 2] = [".config/opencode/skill", ".config/opencode/skills"];

/// The folder of a project into which skills are written.
const PROJECT_FOLDER: &str = COMMON_FOLDERS[0];

/// The folder of the state folder into which skills are installed.
const STATE_FOLDER: &str = "skills";

/// How deep skills may lie below such a folder.
const MAX_DEPTH: usize = 5;

/// How many folders are read.
const MAX_FOLDERS: usize = 2000;

/// The largest `SKILL.md` in bytes.
pub(super) const MAX_DOCUMENT_BYTES: u64 = 1 << 20;

/// Where a skill comes from. An earlier scope hides skills of the same name in later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SkillScope {
    /// The folder of a project, which the user trusts.
    Project,
    /// The user: installed, or in a folder of the home folder.
    User,
    /// A plugin that the user enabled.
    Plugin,
    /// This program.
    BuiltIn,
}

impl SkillScope {
    /// Returns the name of the scope.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Plugin => "plugin",
            Self::BuiltIn => "built_in",
        }
    }

    /// Returns the scope that an argument names: `project`, or else the user's.
    pub(super) fn from_argument(text: &str) -> Self {
        if text == Self::Project.as_str() { Self::Project } else { Self::User }
    }
}

/// A skill that was found.
#[derive(Clone, Debug)]
pub(super) struct FoundSkill {
    pub(super) document: SkillDocument,
    pub(super) scope: SkillScope,
    /// The folder of its files; a built-in skill has none.
    pub(super) folder: Option<PathBuf>,
}

/// The skills of a session, and what kept others away.
#[derive(Clone, Debug, Default)]
pub(super) struct SkillLibrary {
    /// By name.
    pub(super) skills: BTreeMap<String, FoundSkill>,
    pub(super) warnings: Vec<String>,
    /// Folders with skills that the user does not trust.
    pub(super) untrusted: Vec<PathBuf>,
}

impl SkillPlaces {
    /// Returns the folder into which skills of a scope are written.
    pub(super) fn target_folder(&self, scope: SkillScope) -> Result<TargetFolder, ToolError> {
        let (base, below) = match scope {
            SkillScope::Project => (self.roots.first(), PROJECT_FOLDER),
            _ => (self.folders.state.as_ref(), STATE_FOLDER),
        };
        let base = base.cloned().ok_or_else(|| {
            ToolError::config("there is no folder to write the skill to")
                .hint("name a state folder with `--state-dir`, or a workspace with `--root`")
        })?;
        Ok(TargetFolder { base, below })
    }

    /// Whether new skills of the scope are found: those of a project only when it is trusted.
    pub(super) fn counts(&self, scope: SkillScope) -> bool {
        let is_trusted = || self.roots.first().is_some_and(|root| self.is_trusted(root));
        scope != SkillScope::Project || is_trusted()
    }

    /// Whether this program may change the skill in `folder`: one of a project, or an installed one.
    pub(super) fn may_write(&self, folder: &Path) -> bool {
        let target = |scope| self.target_folder(scope).ok();
        let targets = [target(SkillScope::Project), target(SkillScope::User)];
        targets.iter().flatten().any(|target| folder.parent() == Some(&target.path()))
    }

    /// Finds all skills.
    pub(super) fn discover(&self) -> SkillLibrary {
        let mut finder =
            SkillFinder { library: SkillLibrary::default(), folders_left: MAX_FOLDERS };
        for root in &self.roots {
            let folders = COMMON_FOLDERS.map(|name| root.join(name));
            if self.is_trusted(root) {
                let real = root.canonicalize().ok();
                for folder in &folders {
                    finder.search(folder, SkillScope::Project, real.as_deref(), MAX_DEPTH);
                }
            } else if folders.iter().any(|folder| has_entries(folder)) {
                finder.library.untrusted.push(root.clone());
            }
        }
        if let Ok(installed) = self.target_folder(SkillScope::User) {
            finder.search(&installed.path(), SkillScope::User, None, MAX_DEPTH);
        }
        if let Some(home) = &self.folders.home {
            let is_root = |folder: &PathBuf| self.roots.contains(folder);
            // The folders of a project that is the home folder count as the project's.
            for name in COMMON_FOLDERS.iter().chain(&HOME_FOLDERS).filter(|_| !is_root(home)) {
                finder.search(&home.join(name), SkillScope::User, None, MAX_DEPTH);
            }
        }
        for folder in &self.plugin_skills {
            finder.search(folder, SkillScope::Plugin, None, MAX_DEPTH);
        }
        finder.add_built_in();
        finder.library
    }
}

fn has_entries(folder: &Path) -> bool {
    list_folder(folder).is_ok_and(|entries| !entries.is_empty())
}

/// The search for skills below folders.
struct SkillFinder {
    library: SkillLibrary,
    folders_left: usize,
}

impl SkillFinder {
    /// Adds the skills in `folder` and below it. With `inside`, only files inside of it count.
    fn search(&mut self, folder: &Path, scope: SkillScope, inside: Option<&Path>, depth: usize) {
        let Ok(entries) = list_folder(folder) else { return };
        let mut below: Vec<PathBuf> = entries.iter().map(DirEntry::path).collect();
        below.sort();
        for path in below {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') || name == "node_modules" || !path.is_dir() {
                continue;
            }
            if self.folders_left == 0 {
                let warning = format!("only {MAX_FOLDERS} folders were searched for skills");
                if self.library.warnings.last() != Some(&warning) {
                    self.library.warnings.push(warning);
                }
                return;
            }
            self.folders_left -= 1;
            if path.join(FILE_NAME).exists() {
                self.add(&path, &name, scope, inside);
            } else if depth > 1 {
                self.search(&path, scope, inside, depth - 1);
            }
        }
    }

    fn add(&mut self, folder: &Path, name: &str, scope: SkillScope, inside: Option<&Path>) {
        match read_document(folder, name, inside) {
            Ok(document) => {
                let skill = FoundSkill { document, scope, folder: Some(folder.to_owned()) };
                self.insert(skill);
            }
            Err(why) => {
                self.library.warnings.push(format!("{}: {why}", folder.join(FILE_NAME).display()));
            }
        }
    }

    fn insert(&mut self, skill: FoundSkill) {
        let name = skill.document.name.clone();
        let place = |skill: &FoundSkill| match &skill.folder {
            Some(folder) => folder.display().to_string(),
            None => "this program".to_owned(),
        };
        match self.library.skills.get(&name) {
            Some(first) => {
                let warning =
                    format!("`{name}` of {} is hidden by {}", place(&skill), place(first));
                self.library.warnings.push(warning);
            }
            None => {
                self.library.skills.insert(name, skill);
            }
        }
    }

    fn add_built_in(&mut self) {
        let text = include_str!("built_in/write-skill.md");
        if let Ok(document) = SkillDocument::parse(text, "write-skill") {
            self.insert(FoundSkill { document, scope: SkillScope::BuiltIn, folder: None });
        }
    }
}

/// Reads the document of the skill in `folder`.
fn read_document(
    folder: &Path,
    name: &str,
    inside: Option<&Path>,
) -> Result<SkillDocument, String> {
    let path = folder.join(FILE_NAME);
    if let Some(root) = inside {
        let real = path.canonicalize().map_err(|error| error.to_string())?;
        if !real.starts_with(root) {
            return Err("a link leads out of the project".to_owned());
        }
    }
    let text = read_text_file(&path, MAX_DOCUMENT_BYTES).map_err(|error| error.to_string())?;
    SkillDocument::parse(&text, name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tool_sdk::{ProgramFolders, TrustedFolders};

    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn skill(name: &str, description: &str) -> String {
        format!("---\nname: {name}\ndescription: {description}\n---\n\nBody\n")
    }

    struct DiscoveryFolders {
        _temp: tempfile::TempDir,
        root: PathBuf,
        home: PathBuf,
        places: SkillPlaces,
    }

    fn folders() -> DiscoveryFolders {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().canonicalize().unwrap();
        let [root, home, state] = ["root", "home", "state"].map(|name| path.join(name));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&home).unwrap();
        let mut folders = ProgramFolders::default();
        (folders.state, folders.home) = (Some(state), Some(home.clone()));
        let places = SkillPlaces { roots: vec![root.clone()], folders, ..SkillPlaces::default() };
        DiscoveryFolders { _temp: temp, root, home, places }
    }

    fn trust(folders: &DiscoveryFolders) {
        let state = folders.places.folders.state.as_ref().unwrap();
        TrustedFolders::open(state).trust(&folders.root).unwrap();
    }

    // F114: the scopes, and trust before a project counts.
    #[test]
    fn a_trusted_project_hides_the_user_and_the_user_the_program() {
        let folders = folders();
        for (base, description) in [(&folders.root, "project"), (&folders.home, "user")] {
            write(&base.join(".claude/skills/pdf/SKILL.md"), &skill("pdf", description));
        }
        write(
            &folders.home.join(".agents/skills/write-skill/SKILL.md"),
            &skill("write-skill", "my"),
        );
        write(&folders.root.join(".agents/skills/team/deep/x/SKILL.md"), &skill("x", "nested"));
        let library = folders.places.discover();
        assert_eq!(library.skills["pdf"].document.description, "user");
        assert_eq!(library.untrusted, std::slice::from_ref(&folders.root));
        assert!(!library.skills.contains_key("x"));

        trust(&folders);
        let library = folders.places.discover();
        assert_eq!(library.skills["pdf"].scope, SkillScope::Project);
        assert_eq!(library.skills["x"].document.description, "nested");
        assert_eq!(library.skills["write-skill"].scope, SkillScope::User);
        assert!(library.untrusted.is_empty());
        let hidden: Vec<_> =
            library.warnings.iter().filter(|it| it.contains("hidden by")).collect();
        assert_eq!(hidden.len(), 2, "{:?}", library.warnings);

        // A changed file counts at once.
        write(&folders.root.join(".claude/skills/pdf/SKILL.md"), &skill("pdf", "changed"));
        let library = folders.places.discover();
        assert_eq!(library.skills["pdf"].document.description, "changed");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_of_a_project_does_not_lead_out_of_it() {
        let folders = folders();
        trust(&folders);
        write(&folders.home.join("secret/SKILL.md"), &skill("secret", "x"));
        let skills = folders.root.join(".agents/skills");
        fs::create_dir_all(&skills).unwrap();
        std::os::unix::fs::symlink(folders.home.join("secret"), skills.join("secret")).unwrap();
        let library = folders.places.discover();
        assert!(!library.skills.contains_key("secret"));
        assert!(library.warnings[0].contains("leads out of the project"));
        // The folders of the user are the user's own.
        let own = folders.home.join(".agents/skills");
        fs::create_dir_all(&own).unwrap();
        std::os::unix::fs::symlink(folders.home.join("secret"), own.join("secret")).unwrap();
        assert!(folders.places.discover().skills.contains_key("secret"));
    }

    #[test]
    fn files_that_cannot_be_read_are_warnings() {
        let folders = folders();
        let skills = folders.home.join(".agents/skills");
        write(&skills.join("a/SKILL.md"), "# no frontmatter");
        write(&skills.join("b/SKILL.md"), "---\nname: b\n---\n");
        write(&skills.join("c/SKILL.md"), &"x".repeat(1 + (1 << 20)));
        fs::create_dir_all(skills.join("d/SKILL.md")).unwrap();
        let library = folders.places.discover();
        assert_eq!(library.skills.keys().collect::<Vec<_>>(), ["write-skill"]);
        assert_eq!(library.warnings.len(), 4, "{:?}", library.warnings);
    }
}
