//! The plugins of a session: those that were installed, and those of trusted projects.
//!
//! Everything is read anew at each use.
//!
//! **Invariant:** a plugin is enabled only while its files are those that the user approved, and it runs
//! from a folder that no tool writes to.

use std::path::{Path, PathBuf};

use tool_sdk::ToolError;

use super::manifest::PluginManifest;
use crate::packages::host_files::list_folder;
use crate::packages::package::{PackageContent, PackageLimits, to_hex_digest};
use crate::packages::pins::PackagePins;
pub(super) use crate::packages::places::PackagePlaces as PluginPlaces;
use crate::packages::source::read_source;
use crate::packages::staging::TargetFolder;

/// The folders of a project in which plugins lie.
const PROJECT_FOLDERS: [&str; 2] = [".agents/plugins", ".claude/plugins"];

/// The folder of the state folder into which plugins are installed.
const STATE_FOLDER: &str = "plugins";

/// The folder of the state folder from which enabled plugins of projects run.
const COPY_FOLDER: &str = "project-plugins";

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
    /// It was enabled with other files.
    Changed,
}

impl PluginStatus {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
            Self::Changed => "disabled, because it changed since it was enabled",
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
}

/// The plugins of a session, and what kept others away.
#[derive(Clone, Debug, Default)]
pub(super) struct PluginLibrary {
    pub(super) plugins: Vec<FoundPlugin>,
    /// Plugins that cannot be read, with the reason.
    pub(super) problems: Vec<String>,
    /// Folders with plugins that the user does not trust.
    pub(super) untrusted: Vec<PathBuf>,
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

    /// Returns where the copy of a project's plugin lies: the folder, and the name in it.
    pub(super) fn copy_folder(&self, plugin: &Path) -> Result<(TargetFolder, String), ToolError> {
        let target = TargetFolder { base: self.state()?.to_owned(), below: COPY_FOLDER };
        let hash = hmac_sha256::Hash::hash(plugin.as_os_str().as_encoded_bytes());
        Ok((target, format!("{:.32}", to_hex_digest(hash))))
    }

    /// Returns the folder from which a plugin runs: no tool can write there.
    pub(super) fn run_folder(
        &self,
        origin: PluginOrigin,
        folder: &Path,
    ) -> Result<PathBuf, ToolError> {
        match origin {
            PluginOrigin::User => Ok(folder.to_owned()),
            PluginOrigin::Project => {
                let (target, name) = self.copy_folder(folder)?;
                Ok(target.path().join(name))
            }
        }
    }

    /// Finds all plugins.
    pub(super) fn find_plugins(&self) -> PluginLibrary {
        let mut library = PluginLibrary::default();
        if let Ok(installed) = self.install_folder() {
            self.add_plugins(&mut library, &installed.path(), PluginOrigin::User, None);
        }
        for root in &self.roots {
            let folders = PROJECT_FOLDERS.map(|name| root.join(name));
            if self.is_trusted(root) {
                let real = root.canonicalize().ok();
                for folder in &folders {
                    let origin = PluginOrigin::Project;
                    self.add_plugins(&mut library, folder, origin, real.as_deref());
                }
            } else if folders.iter().any(|folder| !plugin_folders(folder).is_empty()) {
                library.untrusted.push(root.clone());
            }
        }
        library
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
            let found = match is_inside {
                true => self.read_plugin(&folder, origin),
                false => Err(ToolError::failed("a link leads out of the project")),
            };
            match found {
                Ok(plugin) => library.plugins.push(plugin),
                Err(error) => {
                    library.problems.push(format!("{}: {}", folder.display(), error.message()));
                }
            }
        }
    }

    /// Reads one plugin.
    fn read_plugin(&self, folder: &Path, origin: PluginOrigin) -> Result<FoundPlugin, ToolError> {
        let package = read_package(folder)?;
        let (hash, manifest) = (package.content_hash(), PluginManifest::read(&package)?);
        let pin = self.state().ok().and_then(|state| enabled_pins(state).find(folder));
        let status = match pin {
            None => PluginStatus::Disabled,
            Some(pin) if pin.hash == hash => PluginStatus::Enabled,
            Some(_) => PluginStatus::Changed,
        };
        Ok(FoundPlugin { manifest, origin, folder: folder.to_owned(), hash, status })
    }

    /// Finds a plugin by its name. Fails when two have the name.
    pub(super) fn find_plugin(&self, name: &str) -> Result<FoundPlugin, ToolError> {
        let library = self.find_plugins();
        let mut named = library.plugins.iter().filter(|plugin| plugin.manifest.name == name);
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
