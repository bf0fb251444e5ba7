//! The plugins of a session: those that were installed, and those of trusted projects.
//!
//! Everything is read anew at each use.
//!
//! **Invariant:** an enabled plugin runs from a copy of the files that the user approved, in a folder that no
//! tool writes to. A plugin whose own folder has changed or is gone stays enabled with that copy, because a
//! tool could otherwise switch its denials off. Where it cannot be read whether a plugin is enabled, or whether
//! it counts, it is found as one in doubt, and never passed over.

use std::path::{Path, PathBuf};

use tool_sdk::ToolError;

use super::manifest::PluginManifest;
use crate::packages::host_files::list_folder;
use crate::packages::package::{PackageContent, PackageLimits, to_hex_digest};
use crate::packages::pins::{PackagePin, PackagePins, PinListing};
pub(super) use crate::packages::places::PackagePlaces as PluginPlaces;
use crate::packages::source::read_source;
use crate::packages::staging::TargetFolder;

/// The folders of a project in which plugins lie.
const PROJECT_FOLDERS: [&str; 2] = [".agents/plugins", ".claude/plugins"];

/// The folder of the state folder into which plugins are installed.
const STATE_FOLDER: &str = "plugins";

/// The folder of the state folder from which enabled plugins run.
const COPY_FOLDER: &str = "plugin-copies";

/// How many plugins are read in one folder.
const MAX_PLUGINS: usize = 200;

/// Where a plugin comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PluginOrigin {
    /// A project that the user trusts.
    Project,
    /// The user installed it.
    User,
}

impl PluginOrigin {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// Whether a plugin is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PluginStatus {
    Enabled,
    Disabled,
    /// It was enabled with other files, from which it runs.
    Changed,
}

impl PluginStatus {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
            Self::Changed => "changed since it was enabled; the enabled files are used",
        }
    }
}

/// A plugin that was found.
#[derive(Clone, Debug)]
pub(super) struct FoundPlugin {
    pub(super) manifest: PluginManifest,
    pub(super) origin: PluginOrigin,
    /// The folder in which it lies.
    pub(super) folder: PathBuf,
    /// The hash of its files, in hexadecimal.
    pub(super) hash: String,
    pub(super) status: PluginStatus,
    /// What the user enabled.
    pub(super) approved: Option<PackagePin>,
    /// Why the folder of an enabled plugin cannot be read. The manifest is then that of the copy.
    pub(super) problem: Option<String>,
    /// Why it is not known whether an enabled plugin counts. Then no tool is called.
    pub(super) doubt: Option<String>,
}

impl FoundPlugin {
    /// Returns the name under which the plugin is loaded.
    pub(super) fn loaded_name(&self) -> &str {
        let approved = self.approved.as_ref().map(|pin| pin.name.as_str());
        approved.filter(|name| !name.is_empty()).unwrap_or(&self.manifest.name)
    }

    fn has_name(&self, name: &str) -> bool {
        self.manifest.name == name || self.loaded_name() == name
    }
}

/// The plugins of a session, and what kept others away.
#[derive(Clone, Debug, Default)]
pub(super) struct PluginLibrary {
    pub(super) plugins: Vec<FoundPlugin>,
    /// Plugins that cannot be read, with the reason.
    pub(super) problems: Vec<String>,
    /// Folders with plugins that the user does not trust.
    pub(super) untrusted: Vec<PathBuf>,
    /// Records of enabled plugins that cannot be read, so that these plugins are not known.
    pub(super) unreadable_records: Vec<PathBuf>,
}

/// Returns the records of what was installed.
pub(super) fn installed_pins(state: &Path) -> PackagePins {
    PackagePins::new(state, "plugin-pins")
}

/// Returns the records of what the user enabled.
pub(super) fn enabled_pins(state: &Path) -> PackagePins {
    PackagePins::new(state, "enabled-plugins")
}

/// Reads the files of a plugin.
pub(super) fn read_package(folder: &Path) -> Result<PackageContent, ToolError> {
    Ok(read_source(folder, PackageLimits::default())?.package)
}

impl PluginPlaces {
    /// Returns the state folder.
    pub(super) fn state(&self) -> Result<&Path, ToolError> {
        self.folders.state.as_deref().ok_or_else(|| {
            ToolError::config("there is no folder for plugins").hint("name one with `--state-dir`")
        })
    }

    /// Returns the folder into which plugins are installed.
    pub(super) fn install_folder(&self) -> Result<TargetFolder, ToolError> {
        Ok(TargetFolder { base: self.state()?.to_owned(), below: STATE_FOLDER })
    }

    /// Returns where the copy of a plugin lies: the folder, and the name in it.
    pub(super) fn copy_folder(&self, plugin: &Path) -> Result<(TargetFolder, String), ToolError> {
        let target = TargetFolder { base: self.state()?.to_owned(), below: COPY_FOLDER };
        let hash = hmac_sha256::Hash::hash(plugin.as_os_str().as_encoded_bytes());
        Ok((target, format!("{:.32}", to_hex_digest(hash))))
    }

    /// Returns the folder from which a plugin runs: no tool can write there.
    pub(super) fn run_folder(&self, folder: &Path) -> Result<PathBuf, ToolError> {
        let (target, name) = self.copy_folder(folder)?;
        Ok(target.path().join(name))
    }

    /// Reads the files that the user enabled, from their copy.
    pub(super) fn read_approved(&self, pin: &PackagePin) -> Result<PackageContent, ToolError> {
        let package = read_package(&self.run_folder(&pin.folder)?)?;
        if package.content_hash() == pin.hash {
            return Ok(package);
        }
        let text =
            format_args!("the copy of `{}` is not what was enabled", pin.name.escape_debug());
        Err(ToolError::conflict(text).hint("enable it again"))
    }

    /// Finds all plugins.
    pub(super) fn find_plugins(&self) -> PluginLibrary {
        let mut library = PluginLibrary::default();
        if let Ok(installed) = self.install_folder() {
            self.add_plugins(&mut library, &installed.path(), PluginOrigin::User, None);
        }
        for root in &self.roots {
            let folders = PROJECT_FOLDERS.map(|name| root.join(name));
            let has_plugins = || folders.iter().any(|folder| !plugin_folders(folder).is_empty());
            match self.check_trust(root) {
                Ok(true) => {
                    let real = root.canonicalize().ok();
                    for folder in &folders {
                        let origin = PluginOrigin::Project;
                        self.add_plugins(&mut library, folder, origin, real.as_deref());
                    }
                }
                Ok(false) if has_plugins() => library.untrusted.push(root.clone()),
                Ok(false) => {}
                Err(why) => {
                    let why = format!(
                        "it is not known whether the user trusts {}: {why}",
                        root.display()
                    );
                    if !self.add_doubtful_plugins(&mut library, &folders, &why) && has_plugins() {
                        library.problems.push(why);
                    }
                }
            }
        }
        self.add_lost_plugins(&mut library);
        library
    }

    /// Adds the enabled plugins in `folders` of a project of which is not known, because of `why`, whether
    /// the user trusts it. Returns whether there are some.
    fn add_doubtful_plugins(
        &self,
        library: &mut PluginLibrary,
        folders: &[PathBuf],
        why: &str,
    ) -> bool {
        let pins = self.state().map(|state| enabled_pins(state).list().pins).unwrap_or_default();
        let of_project = |pin: &PackagePin| {
            pin.folder.parent().is_some_and(|parent| folders.iter().any(|it| it == parent))
        };
        let count = library.plugins.len();
        for pin in pins.into_iter().filter(of_project) {
            let mut plugin = self.open_copy(pin, PluginOrigin::Project, &ToolError::failed(why));
            plugin.doubt = Some(why.to_owned());
            library.plugins.push(plugin);
        }
        library.plugins.len() > count
    }

    /// Adds the plugins in a folder. With `inside`, only folders inside of it count.
    fn add_plugins(
        &self,
        library: &mut PluginLibrary,
        folder: &Path,
        origin: PluginOrigin,
        inside: Option<&Path>,
    ) {
        for folder in plugin_folders(folder) {
            let is_inside = inside
                .is_none_or(|root| folder.canonicalize().is_ok_and(|real| real.starts_with(root)));
            let problem =
                (!is_inside).then(|| ToolError::failed("a link leads out of the project"));
            match self.read_plugin(&folder, origin, problem) {
                Ok(plugin) => library.plugins.push(plugin),
                Err(error) => {
                    library.problems.push(format!("{}: {}", folder.display(), error.message()));
                }
            }
        }
    }

    /// Adds the enabled plugins whose folders are gone, or were passed over, and the records that do not
    /// say of which plugin they are.
    fn add_lost_plugins(&self, library: &mut PluginLibrary) {
        let Ok(state) = self.state() else { return };
        let records = enabled_pins(state);
        let PinListing { pins, unreadable } = records.list();
        let is_known = |path: &PathBuf| {
            library.plugins.iter().any(|plugin| records.is_file_of(path, &plugin.folder))
        };
        library.unreadable_records = unreadable.into_iter().filter(|it| !is_known(it)).collect();
        for pin in pins {
            let is_found = library.plugins.iter().any(|plugin| plugin.folder == pin.folder);
            if let Some(origin) = self.origin_of(&pin.folder).filter(|_| !is_found) {
                let why = ToolError::not_found("its folder is gone");
                library.plugins.push(self.open_copy(pin, origin, &why));
            }
        }
    }

    /// Returns where a plugin in `folder` would come from, if it counts in this session.
    fn origin_of(&self, folder: &Path) -> Option<PluginOrigin> {
        let parent = folder.parent()?;
        if self.install_folder().is_ok_and(|installed| installed.path() == parent) {
            return Some(PluginOrigin::User);
        }
        let is_of = |root: &&PathBuf| PROJECT_FOLDERS.iter().any(|name| root.join(name) == parent);
        let root = self.roots.iter().find(is_of)?;
        self.is_trusted(root).then_some(PluginOrigin::Project)
    }

    /// Reads one plugin. With a problem, or when it cannot be read, an enabled plugin is its copy.
    fn read_plugin(
        &self,
        folder: &Path,
        origin: PluginOrigin,
        problem: Option<ToolError>,
    ) -> Result<FoundPlugin, ToolError> {
        let pin = self.state().ok().and_then(|state| enabled_pins(state).find(folder));
        let read = match problem {
            Some(problem) => Err(problem),
            None => read_package(folder)
                .and_then(|package| Ok((package.content_hash(), PluginManifest::read(&package)?))),
        };
        let (hash, manifest) = match (read, &pin) {
            (Ok(read), _) => read,
            (Err(error), None) => return Err(error),
            (Err(error), Some(pin)) => return Ok(self.open_copy(pin.clone(), origin, &error)),
        };
        let status = match &pin {
            None => PluginStatus::Disabled,
            Some(pin) if pin.hash == hash && self.read_approved(pin).is_ok() => {
                PluginStatus::Enabled
            }
            Some(_) => PluginStatus::Changed,
        };
        let folder = folder.to_owned();
        Ok(FoundPlugin {
            manifest,
            origin,
            folder,
            hash,
            status,
            approved: pin,
            problem: None,
            doubt: None,
        })
    }

    /// Returns an enabled plugin whose folder cannot be read because of `why`.
    fn open_copy(&self, pin: PackagePin, origin: PluginOrigin, why: &ToolError) -> FoundPlugin {
        let copy = self.read_approved(&pin).and_then(|package| PluginManifest::read(&package));
        let folder_name = pin.folder.file_name().unwrap_or_default().to_string_lossy();
        let name = if pin.name.is_empty() { folder_name.into_owned() } else { pin.name.clone() };
        FoundPlugin {
            manifest: copy.unwrap_or_else(|_| PluginManifest { name, ..Default::default() }),
            origin,
            folder: pin.folder.clone(),
            hash: pin.hash.clone(),
            status: PluginStatus::Changed,
            approved: Some(pin),
            problem: Some(why.message().to_owned()),
            doubt: None,
        }
    }

    /// Finds a plugin by its name. Fails when two have the name.
    pub(super) fn find_plugin(&self, name: &str) -> Result<FoundPlugin, ToolError> {
        let library = self.find_plugins();
        let mut named = library.plugins.iter().filter(|plugin| plugin.has_name(name));
        match (named.next(), named.next()) {
            (Some(plugin), None) => Ok(plugin.clone()),
            (Some(first), Some(second)) => {
                let text = format_args!(
                    "there are two plugins `{name}`: in {} and in {}",
                    first.folder.display(),
                    second.folder.display()
                );
                Err(ToolError::conflict(text).hint("the user removes one of them"))
            }
            (None, _) => {
                let names: Vec<String> = library
                    .plugins
                    .iter()
                    .take(50)
                    .map(|plugin| format!("`{}`", plugin.manifest.name))
                    .collect();
                let hint = match &*names {
                    [] => "there are no plugins".to_owned(),
                    names => format!("the plugins are {}", names.join(", ")),
                };
                let name: String = name.chars().take(100).collect();
                let text = format_args!("there is no plugin `{}`", name.escape_debug());
                Err(ToolError::not_found(text).hint(hint))
            }
        }
    }
}

/// Returns the folders in a folder, by name.
fn plugin_folders(folder: &Path) -> Vec<PathBuf> {
    let entries = list_folder(folder).unwrap_or_default();
    let mut folders: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
    let is_plain = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with('.') && path.is_dir()
    };
    folders.retain(is_plain);
    folders.sort();
    folders.truncate(MAX_PLUGINS);
    folders
}
