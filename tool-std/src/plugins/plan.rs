//! What an action of `plugin_manager` would do, as it is shown and then done.
//!
//! **Invariant:** a plan holds the very bytes that are written or enabled; making one changes nothing.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tool_sdk::ToolError;

use super::library::{
    FoundPlugin, PluginOrigin, PluginPlaces, PluginStatus, enabled_pins, installed_pins,
    read_package,
};
use super::manifest::{CLAUDE_FILE_NAME, FILE_NAME, MAX_LINE, PluginManifest};
use super::package_plugin::check_tools;
use crate::packages::change::PackageChange;
use crate::packages::entry_name::quote_text;
use crate::packages::package::{PackageContent, PackageLimits};
use crate::packages::pins::PackagePin;
use crate::packages::source::{SourcePackage, read_source};
use crate::packages::staging::{ReplacementPolicy, install_package, remove_package};

/// What happens to a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PluginAction {
    Install,
    Enable,
    Disable,
    Reload,
    Update,
    Uninstall,
}

impl PluginAction {
    /// Returns the action of an argument, unless it only reads.
    pub(super) fn from_argument(text: &str) -> Option<Self> {
        Some(match text {
            "install" => Self::Install,
            "enable" => Self::Enable,
            "disable" => Self::Disable,
            "reload" => Self::Reload,
            "update" => Self::Update,
            "uninstall" => Self::Uninstall,
            _ => return None,
        })
    }

    /// Returns the verb for a plan, and for what was done.
    fn verbs(self) -> (&'static str, &'static str) {
        match self {
            Self::Install => ("install", "Installed"),
            Self::Enable => ("enable", "Enabled"),
            Self::Disable => ("disable", "Disabled"),
            Self::Reload => ("reload", "Reloaded"),
            Self::Update => ("update", "Updated"),
            Self::Uninstall => ("uninstall", "Uninstalled"),
        }
    }

    /// Whether the action shows files that a person should read.
    fn shows_files(self) -> bool {
        matches!(self, Self::Install | Self::Enable | Self::Update)
    }
}

/// A planned action.
#[derive(Clone, Debug)]
pub(super) struct PluginPlan {
    pub(super) action: PluginAction,
    pub(super) manifest: PluginManifest,
    /// The folder in which the plugin lies, or will lie.
    pub(super) folder: PathBuf,
    /// The name under which the plugin is loaded.
    pub(super) loaded_name: String,
    pub(super) change: PackageChange,
    /// Whether an earlier version is enabled, and stays so.
    pub(super) replaces_enabled: bool,
    /// Where the files come from, for people.
    source: String,
    commit: Option<String>,
    notes: Vec<String>,
}

impl PluginPlan {
    /// Plans an installation from `source`. Where it has several plugins, `name` says which one.
    pub(super) fn for_install(
        source: &Path,
        name: Option<&str>,
        replacement: ReplacementPolicy,
        places: &PluginPlaces,
    ) -> Result<Self, ToolError> {
        let SourcePackage { package, kind, commit } =
            read_source(source, PackageLimits::default())?;
        let inner = find_plugin_folder(&package, name)?;
        let package = package.below(&inner);
        let manifest = PluginManifest::read(&package)?;
        let folder = places.install_folder()?.path().join(&manifest.name);
        let old = match std::fs::symlink_metadata(&folder) {
            Ok(_) => Some(read_package(&folder)?),
            Err(_) => None,
        };
        let name = &manifest.name;
        if old.is_some() && replacement == ReplacementPolicy::Refused {
            let text = format_args!("the plugin `{name}` is installed already");
            return Err(ToolError::conflict(text)
                .hint("use `update` to replace it; the difference is shown first"));
        }
        let inside = if inner.is_empty() { String::new() } else { format!(", `{inner}`") };
        let source = format!("{kind} `{}`{inside}", source.display());
        let action = if old.is_some() { PluginAction::Update } else { PluginAction::Install };
        let change = PackageChange::new(package, old, manifest_file(&manifest))
            .with_commands(&manifest.command_texts());
        let replaces_enabled =
            action == PluginAction::Update && enabled_pins(places.state()?).find(&folder).is_some();
        let note = match replaces_enabled {
            true => "the version that is enabled stays in use until this one is enabled",
            false => "nothing of it is used until it is enabled",
        };
        let (loaded_name, notes) = (manifest.name.clone(), vec![note.to_owned()]);
        Ok(Self {
            action,
            manifest,
            folder,
            loaded_name,
            change,
            replaces_enabled,
            source,
            commit,
            notes,
        })
    }

    /// Plans an action about a plugin that is there.
    pub(super) fn for_plugin(
        action: PluginAction,
        found: FoundPlugin,
        places: &PluginPlaces,
    ) -> Result<Self, ToolError> {
        let loaded_name = found.loaded_name().to_owned();
        let FoundPlugin { manifest, origin, folder, hash, status, approved, problem, .. } = found;
        let name = &manifest.name;
        let refuse = |why: &str, hint: &str| {
            Err(ToolError::conflict(format_args!("the plugin `{name}` {why}")).hint(hint))
        };
        match (action, status, origin) {
            (PluginAction::Enable, PluginStatus::Enabled, _) => {
                return refuse("is enabled already", "use `reload` to load it again");
            }
            (PluginAction::Disable, PluginStatus::Disabled, _) => {
                return refuse("is disabled already", "nothing is to be done");
            }
            (PluginAction::Reload, PluginStatus::Disabled, _) => {
                return refuse("is not enabled", "enable it first");
            }
            (PluginAction::Reload, PluginStatus::Changed, _) => {
                return refuse(
                    "has changed since it was enabled",
                    "enable it again, or disable it",
                );
            }
            (PluginAction::Uninstall | PluginAction::Update, _, PluginOrigin::Project) => {
                return refuse("is a part of the project", "disable it, or change its files there");
            }
            _ => {}
        }
        let package = match (action, &problem) {
            // What is there does not matter.
            (PluginAction::Disable | PluginAction::Update, Some(_)) => PackageContent::default(),
            (_, Some(why)) => {
                return refuse(
                    &format!("cannot be read: {why}"),
                    "the user corrects or disables it",
                );
            }
            (_, None) => read_package(&folder)?,
        };
        if problem.is_none() && package.content_hash() != hash {
            return refuse("is being changed", "try again");
        }
        if action == PluginAction::Enable {
            check_tools(&manifest, &places.run_folder(&folder)?)?;
        }
        // What the user approved before, where it is kept.
        let old = match (action, &approved) {
            (PluginAction::Enable, Some(pin)) => places.read_approved(pin).ok(),
            _ => None,
        };
        let change = PackageChange::new(package, old, manifest_file(&manifest))
            .with_commands(&manifest.command_texts());
        if action == PluginAction::Enable
            && let Some(hidden) = change.hidden_files().first()
        {
            let why =
                format!("cannot be shown: `{}` is too large, or no text", hidden.escape_debug());
            return refuse(&why, "a plugin has at most 2 MiB of text");
        }
        let pin = installed_pins(places.state()?).find(&folder);
        let source = match &pin {
            Some(pin) => pin.source.clone(),
            None => format!("folder `{}`", folder.display()),
        };
        let commit = pin.and_then(|pin| pin.commit);
        let notes = manifest.notes.clone();
        let replaces_enabled = false;
        Ok(Self {
            action,
            manifest,
            folder,
            loaded_name,
            change,
            replaces_enabled,
            source,
            commit,
            notes,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.manifest.name
    }

    /// Does on the disk what was planned. Fails when the files have changed since.
    pub(super) fn carry_out(&self, places: &PluginPlaces) -> Result<(), ToolError> {
        let state = places.state()?;
        let (installed, enabled) = (installed_pins(state), enabled_pins(state));
        match self.action {
            PluginAction::Install | PluginAction::Update => self.install(places),
            PluginAction::Enable => {
                self.check_unchanged()?;
                let (target, name) = places.copy_folder(&self.folder)?;
                let package = &self.change.package;
                install_package(package, &target, &name, ReplacementPolicy::Allowed)?;
                enabled.store(&self.make_pin())
            }
            PluginAction::Disable => {
                enabled.remove(&self.folder);
                if enabled.find(&self.folder).is_some() {
                    let text = format_args!("the record of `{}` cannot be removed", self.name());
                    return Err(
                        ToolError::failed(text).hint("the user removes it from the state folder")
                    );
                }
                self.remove_copy(places)
            }
            PluginAction::Reload => Ok(()),
            PluginAction::Uninstall => {
                self.check_unchanged()?;
                enabled.remove(&self.folder);
                remove_package(&self.folder)?;
                installed.remove(&self.folder);
                self.remove_copy(places)
            }
        }
    }

    fn install(&self, places: &PluginPlaces) -> Result<(), ToolError> {
        if let Some(old) = &self.change.old
            && read_package(&self.folder)? != *old
        {
            let text = format_args!("the plugin `{}` has changed meanwhile", self.name());
            return Err(ToolError::conflict(text).hint("try again"));
        }
        let replacement = match self.change.old {
            Some(_) => ReplacementPolicy::Allowed,
            None => ReplacementPolicy::Refused,
        };
        let state = places.state()?;
        if !self.replaces_enabled {
            // A record of other files would be mistaken for an approval of these.
            enabled_pins(state).remove(&self.folder);
            self.remove_copy(places)?;
        }
        let (target, name) = (places.install_folder()?, self.name());
        install_package(&self.change.package, &target, name, replacement)?;
        installed_pins(state).store(&self.make_pin())
    }

    fn remove_copy(&self, places: &PluginPlaces) -> Result<(), ToolError> {
        let copy = places.run_folder(&self.folder)?;
        if std::fs::symlink_metadata(&copy).is_ok() { remove_package(&copy) } else { Ok(()) }
    }

    fn check_unchanged(&self) -> Result<(), ToolError> {
        if read_package(&self.folder)? == self.change.package {
            return Ok(());
        }
        let text = format_args!("the plugin `{}` has changed meanwhile", self.name());
        Err(ToolError::conflict(text).hint("try again"))
    }

    fn make_pin(&self) -> PackagePin {
        PackagePin {
            name: self.name().to_owned(),
            folder: self.folder.clone(),
            source: self.source.clone(),
            commit: self.commit.clone(),
            hash: self.change.hash.clone(),
        }
    }

    /// Returns the data for the approval prompt.
    pub(super) fn preview(&self) -> Value {
        let mut preview = json!({
            "action": self.action.verbs().0,
            "plugin": self.describe_name(),
            "brings": self.manifest.describe_contents(),
            "content hash": self.change.hash,
            "from": self.describe_source(),
            "folder": self.folder.display().to_string(),
            "files": self.change.describe_files(),
            "notes": self.notes,
        });
        if self.action.shows_files() {
            preview["unified"] = self.change.diff().into();
            preview["lines to look at"] = self.change.shown_marks().into();
        }
        preview
    }

    /// Returns the plan as text, for a dry run.
    pub(super) fn describe(&self) -> String {
        let mut text =
            format!("Would {} the plugin {}\n", self.action.verbs().0, self.describe_name());
        text += &self.describe_facts();
        if self.action.shows_files() {
            text += &self.change.describe();
        }
        text
    }

    /// Returns what was done, in one line.
    pub(super) fn describe_done(&self) -> String {
        let done = self.action.verbs().1;
        format!(
            "{done} the plugin `{}` in {}. Its content hash is {}.",
            self.name(),
            self.folder.display(),
            self.change.hash
        )
    }

    fn describe_name(&self) -> String {
        let version = self.manifest.version.as_deref().unwrap_or("without a version");
        let [version, description] =
            [version, &self.manifest.description].map(|text| quote_text(text, MAX_LINE));
        format!("`{}` ({version}): {description}", self.name())
    }

    fn describe_facts(&self) -> String {
        let mut text = format!(
            "folder: {}\nfrom: {}\ncontent hash: {}\nfiles: {}\n",
            self.folder.display(),
            self.describe_source(),
            self.change.hash,
            self.change.describe_files()
        );
        for line in self.manifest.describe_contents() {
            text += &format!("brings: {line}\n");
        }
        for note in &self.notes {
            text += &format!("note: {note}\n");
        }
        text
    }

    fn describe_source(&self) -> String {
        match &self.commit {
            Some(commit) => format!("{} at commit {commit}, with its local changes", self.source),
            None => self.source.clone(),
        }
    }
}

/// Returns the file that a person reads first.
fn manifest_file(manifest: &PluginManifest) -> &'static str {
    if manifest.tools.is_empty() && manifest.rules.is_empty() {
        CLAUDE_FILE_NAME
    } else {
        FILE_NAME
    }
}

/// Returns the folder of the plugin in a package: the wanted one, or the only one.
fn find_plugin_folder(package: &PackageContent, wanted: Option<&str>) -> Result<String, ToolError> {
    let folder = |name: &String| {
        [FILE_NAME, CLAUDE_FILE_NAME].into_iter().find_map(|manifest| {
            let rest = name.strip_suffix(manifest)?;
            if rest.is_empty() {
                Some(String::new())
            } else {
                Some(rest.strip_suffix('/')?.to_owned())
            }
        })
    };
    let mut folders: Vec<String> = package.files.keys().filter_map(folder).collect();
    folders.sort();
    folders.dedup();
    if folders.iter().any(String::is_empty) {
        // A plugin in a plugin is one of its files.
        return Ok(String::new());
    }
    let name_of = |folder: &str| {
        PluginManifest::read(&package.below(folder)).map(|manifest| manifest.name).ok()
    };
    let mut fitting = folders.iter().filter(|folder| match wanted {
        Some(wanted) => {
            folder.rsplit('/').next() == Some(wanted) || name_of(folder).as_deref() == Some(wanted)
        }
        None => true,
    });
    match (fitting.next(), fitting.next()) {
        (Some(folder), None) => Ok(folder.clone()),
        (None, _) if folders.is_empty() => {
            let text =
                format_args!("the source has neither `{FILE_NAME}` nor `{CLAUDE_FILE_NAME}`");
            Err(ToolError::invalid_args(text).hint("name the folder of a plugin"))
        }
        _ => {
            let names: Vec<_> = folders.iter().take(50).map(|name| format!("`{name}`")).collect();
            let text = "the source has several plugins, or none of that name";
            Err(ToolError::invalid_args(text)
                .hint(format_args!("name one of these with `name`: {}", names.join(", "))))
        }
    }
}
