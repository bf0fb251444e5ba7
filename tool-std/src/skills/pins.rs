//! What was installed: the source and the content hash of each skill, in the state folder.
//!
//! **Invariant:** a skill whose files differ from its pin is not read without a new approval.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tool_sdk::ToolError;

use super::host_files::read_bounded_file;
use super::package::{PackageLimits, SkillPackage, to_hex_digest};
use super::source::read_source;
use super::staging::create_private_folders;

/// The folder of the pins in the state folder.
const FOLDER: &str = "skill-pins";

/// The largest file of a pin.
const MAX_PIN_BYTES: u64 = 64 << 10;

/// An installed skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SkillPin {
    pub(super) name: String,
    /// The folder in which it is installed.
    pub(super) folder: PathBuf,
    /// Where it came from, for people.
    pub(super) source: String,
    /// The commit of a source that is a git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) commit: Option<String>,
    /// The hash of its files, in hexadecimal.
    pub(super) hash: String,
}

/// Whether the files of a skill are those that were installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PinState {
    /// The skill was not installed by this program.
    Unpinned,
    /// The files are those of the pin.
    Unchanged(SkillPin),
    /// The files differ, or cannot be read.
    Changed(SkillPin),
}

/// The pins of a state folder.
#[derive(Clone, Debug)]
pub(super) struct SkillPins {
    folder: PathBuf,
}

impl SkillPins {
    pub(super) fn new(state: &Path) -> Self {
        Self { folder: state.join(FOLDER) }
    }

    /// Returns the pin file of a skill folder: each has its own, so that no lock is needed.
    fn file(&self, skill: &Path) -> PathBuf {
        let hash = hmac_sha256::Hash::hash(skill.as_os_str().as_encoded_bytes());
        self.folder.join(format!("{:.32}.json", to_hex_digest(hash)))
    }

    /// Returns the pin of a skill folder. A file that cannot be read counts as a pin that nothing
    /// matches.
    pub(super) fn find(&self, skill: &Path) -> Option<SkillPin> {
        let unreadable = || SkillPin {
            name: String::new(),
            folder: skill.to_owned(),
            source: "unknown: its record cannot be read".to_owned(),
            commit: None,
            hash: String::new(),
        };
        match read_bounded_file(&self.file(skill), MAX_PIN_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) => Some(unreadable()),
            Ok(bytes) => {
                let pin: Option<SkillPin> = serde_json::from_slice(&bytes).ok();
                Some(pin.filter(|pin| pin.folder == skill).unwrap_or_else(unreadable))
            }
        }
    }

    /// Compares the files of a skill with its pin.
    pub(super) fn check(&self, skill: &Path) -> PinState {
        let Some(pin) = self.find(skill) else { return PinState::Unpinned };
        let found = read_source(skill, PackageLimits::default());
        let is_same = found.is_ok_and(|found| {
            found.package.refused.is_empty() && found.package.content_hash() == pin.hash
        });
        if is_same { PinState::Unchanged(pin) } else { PinState::Changed(pin) }
    }

    /// Whether the skill was installed with other files than `package` has.
    pub(super) fn is_changed(&self, skill: &Path, package: &SkillPackage) -> bool {
        self.find(skill).is_some_and(|pin| pin.hash != package.content_hash())
    }

    /// Stores a pin in place of an earlier one of the same folder.
    pub(super) fn store(&self, pin: &SkillPin) -> Result<(), ToolError> {
        let path = self.file(&pin.folder);
        let temp = path.with_extension(format!("tmp-{}", std::process::id()));
        let write = || {
            create_private_folders(&self.folder)?;
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).open(&temp)?;
            file.write_all(&serde_json::to_vec_pretty(pin)?)?;
            file.sync_all()?;
            fs::rename(&temp, &path)
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&temp);
            let text = format_args!("cannot record the skill in `{}`: {error}", path.display());
            ToolError::failed(text).source(error)
        })
    }

    /// Removes the pin of a skill folder, if there is one.
    pub(super) fn remove(&self, skill: &Path) {
        let _ = fs::remove_file(self.file(skill));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // F114: SK5
    #[test]
    fn a_changed_file_no_longer_matches_the_pin() {
        let temp = tempfile::tempdir().unwrap();
        let (pins, skill) = (SkillPins::new(&temp.path().join("state")), temp.path().join("a"));
        fs::create_dir(&skill).unwrap();
        fs::write(skill.join("SKILL.md"), "text").unwrap();
        assert_eq!(pins.check(&skill), PinState::Unpinned);
        let hash = read_source(&skill, PackageLimits::default()).unwrap().package.content_hash();
        let (name, source) = ("a".to_owned(), "folder".to_owned());
        let pin = SkillPin { name, folder: skill.clone(), source, commit: None, hash };
        pins.store(&pin).unwrap();
        assert_eq!(pins.check(&skill), PinState::Unchanged(pin.clone()));
        fs::write(skill.join("more.md"), "more").unwrap();
        assert_eq!(pins.check(&skill), PinState::Changed(pin));
        fs::write(pins.file(&skill), "{").unwrap();
        assert!(matches!(pins.check(&skill), PinState::Changed(_)));
        pins.remove(&skill);
        assert_eq!(pins.check(&skill), PinState::Unpinned);
    }
}
