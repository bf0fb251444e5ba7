//! What was approved: the source and the content hash of each package, in the state folder.
//!
//! **Invariant:** a package whose files differ from its pin is not used without a new approval.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tool_sdk::ToolError;

use super::host_files::{list_folder, read_bounded_file};
use super::package::{PackageContent, PackageLimits, to_hex_digest};
use super::source::read_source;
use super::staging::create_private_folders;

/// The largest file of a pin.
const MAX_PIN_BYTES: u64 = 64 << 10;

/// An approved package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PackagePin {
    pub(crate) name: String,
    /// The folder in which it is installed.
    pub(crate) folder: PathBuf,
    /// Where it came from, for people.
    pub(crate) source: String,
    /// The commit of a source that is a git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
    /// The hash of its files, in hexadecimal.
    pub(crate) hash: String,
}

/// Whether the files of a package are those that were approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PinState {
    /// Nothing was approved.
    Unpinned,
    /// The files are those of the pin.
    Unchanged(PackagePin),
    /// The files differ, or cannot be read.
    Changed(PackagePin),
}

/// All pins of a state folder.
#[derive(Debug, Default)]
pub(crate) struct PinListing {
    pub(crate) pins: Vec<PackagePin>,
    /// The files that cannot be read, so that their packages are not known.
    pub(crate) unreadable: Vec<PathBuf>,
}

/// The pins of a state folder.
#[derive(Clone, Debug)]
pub(crate) struct PackagePins {
    folder: PathBuf,
}

impl PackagePins {
    /// Returns the pins in `folder` of a state folder.
    pub(crate) fn new(state: &Path, folder: &str) -> Self {
        Self { folder: state.join(folder) }
    }

    /// Returns the pin file of a package's folder: each has its own, so that no lock is needed.
    fn file(&self, package_folder: &Path) -> PathBuf {
        let hash = hmac_sha256::Hash::hash(package_folder.as_os_str().as_encoded_bytes());
        self.folder.join(format!("{:.32}.json", to_hex_digest(hash)))
    }

    /// Returns the pin of a package's folder. A file that cannot be read counts as a pin that nothing
    /// matches.
    pub(crate) fn find(&self, package_folder: &Path) -> Option<PackagePin> {
        let unreadable = || PackagePin {
            name: String::new(),
            folder: package_folder.to_owned(),
            source: "unknown: its record cannot be read".to_owned(),
            commit: None,
            hash: String::new(),
        };
        match read_bounded_file(&self.file(package_folder), MAX_PIN_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) => Some(unreadable()),
            Ok(bytes) => {
                let pin: Option<PackagePin> = serde_json::from_slice(&bytes).ok();
                Some(pin.filter(|pin| pin.folder == package_folder).unwrap_or_else(unreadable))
            }
        }
    }

    /// Returns all pins, by their folders.
    #[cfg_attr(not(feature = "plugins"), expect(dead_code, reason = "plugins alone use it"))]
    pub(crate) fn list(&self) -> PinListing {
        let mut listing = PinListing::default();
        let entries = match list_folder(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(_) => {
                listing.unreadable.push(self.folder.clone());
                Vec::new()
            }
        };
        let read = |path: &Path| {
            let pin: PackagePin =
                serde_json::from_slice(&read_bounded_file(path, MAX_PIN_BYTES).ok()?).ok()?;
            (self.file(&pin.folder) == path).then_some(pin)
        };
        let paths = entries.iter().map(fs::DirEntry::path);
        // A file of another name was being written.
        for path in paths.filter(|path| path.extension().is_some_and(|end| end == "json")) {
            match read(&path) {
                Some(pin) => listing.pins.push(pin),
                None => listing.unreadable.push(path),
            }
        }
        listing.pins.sort_by(|a, b| a.folder.cmp(&b.folder));
        listing.unreadable.sort();
        listing
    }

    /// Whether `path` is the file of a pin of this package's folder.
    #[cfg_attr(not(feature = "plugins"), expect(dead_code, reason = "plugins alone use it"))]
    pub(crate) fn is_file_of(&self, path: &Path, package_folder: &Path) -> bool {
        self.file(package_folder) == path
    }

    /// Compares the files of a package with its pin.
    pub(crate) fn check(&self, package_folder: &Path) -> PinState {
        let Some(pin) = self.find(package_folder) else { return PinState::Unpinned };
        let found = read_source(package_folder, PackageLimits::default());
        let is_same = found.is_ok_and(|found| {
            found.package.refused.is_empty() && found.package.content_hash() == pin.hash
        });
        if is_same { PinState::Unchanged(pin) } else { PinState::Changed(pin) }
    }

    /// Whether other files were approved than those that `package` has.
    pub(crate) fn is_changed(&self, package_folder: &Path, package: &PackageContent) -> bool {
        self.find(package_folder).is_some_and(|pin| pin.hash != package.content_hash())
    }

    /// Stores a pin in place of an earlier one of the same folder.
    pub(crate) fn store(&self, pin: &PackagePin) -> Result<(), ToolError> {
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
            let text = format_args!("cannot record the package in `{}`: {error}", path.display());
            ToolError::failed(text).source(error)
        })
    }

    /// Removes the pin of a package's folder, if there is one.
    pub(crate) fn remove(&self, package_folder: &Path) {
        let _ = fs::remove_file(self.file(package_folder));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // F114: SK5
    #[test]
    fn a_changed_file_no_longer_matches_the_pin() {
        let temp = tempfile::tempdir().unwrap();
        let (pins, skill) =
            (PackagePins::new(&temp.path().join("state"), "pins"), temp.path().join("a"));
        fs::create_dir(&skill).unwrap();
        fs::write(skill.join("SKILL.md"), "text").unwrap();
        assert_eq!(pins.check(&skill), PinState::Unpinned);
        let hash = read_source(&skill, PackageLimits::default()).unwrap().package.content_hash();
        let (name, source) = ("a".to_owned(), "folder".to_owned());
        let pin = PackagePin { name, folder: skill.clone(), source, commit: None, hash };
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
