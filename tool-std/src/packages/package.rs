//! The files of a package in memory, between reading the source and installing.
//!
//! What was shown is what is installed, because both are these bytes.
//!
//! **Invariant:** the limits hold for the bytes that were read; no size that an archive claims is
//! trusted.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;

use tool_sdk::ToolError;

use super::entry_name::check_entry_name;

/// The limits of a package.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackageLimits {
    /// All files together, in bytes.
    pub(crate) total_bytes: u64,
    /// One file, in bytes.
    pub(crate) file_bytes: u64,
    /// Files, folders and everything else that a source names.
    pub(crate) entries: usize,
    /// How many times larger than the archive its files may be.
    pub(crate) ratio: u64,
}

impl Default for PackageLimits {
    /// 100 MiB, of which one file has at most 10 MiB; 10,000 entries; ratio 100.
    fn default() -> Self {
        Self { total_bytes: 100 << 20, file_bytes: 10 << 20, entries: 10_000, ratio: 100 }
    }
}

/// Archives with fewer bytes of content are not measured by their ratio: short texts compress well.
const UNMEASURED_BYTES: u64 = 1 << 20;

/// Files and folders that are left out in every folder, in any case: metadata of version control and of macOS.
const IGNORED_NAMES: [&str; 5] = [".git", ".hg", ".svn", "__MACOSX", ".DS_Store"];

/// Whether a file or a folder of this name is left out. The content hash does not cover it, so that
/// no tool reads it as a part of a skill.
pub(crate) fn is_ignored_name(component: &str) -> bool {
    IGNORED_NAMES.iter().any(|name| name.eq_ignore_ascii_case(component))
}

/// Returns a hash in hexadecimal digits.
pub(crate) fn to_hex_digest(hash: [u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PackageFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_executable: bool,
}

impl PackageFile {
    /// Returns the text of a text file.
    pub(crate) fn text(&self) -> Option<&str> {
        str::from_utf8(&self.bytes).ok().filter(|text| !text.contains('\0'))
    }
}

/// The regular files of a package, by their paths with `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PackageContent {
    pub(crate) files: BTreeMap<String, PackageFile>,
    /// What is not a regular file, with what it is.
    pub(crate) refused: Vec<(String, &'static str)>,
}

impl PackageContent {
    /// Returns the hash of all names, contents and execute permissions, in hexadecimal.
    pub(crate) fn content_hash(&self) -> String {
        let mut hash = hmac_sha256::Hash::new();
        let mut add = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        for (name, file) in &self.files {
            add(name.as_bytes());
            add(&[u8::from(file.is_executable)]);
            add(&file.bytes);
        }
        to_hex_digest(hash.finalize())
    }

    /// Returns the part below a folder of the package; the empty folder is the whole package.
    pub(crate) fn below(&self, folder: &str) -> Self {
        let rest = |name: &str| match folder {
            "" => Some(name.to_owned()),
            folder => Some(name.strip_prefix(folder)?.strip_prefix('/')?.to_owned()),
        };
        let files = self.files.iter().filter_map(|(name, file)| Some((rest(name)?, file.clone())));
        let refused = self.refused.iter().filter_map(|(name, what)| Some((rest(name)?, *what)));
        Self { files: files.collect(), refused: refused.collect() }
    }

    /// Returns the size of all files in bytes.
    pub(crate) fn total_bytes(&self) -> usize {
        self.files.values().map(|file| file.bytes.len()).sum()
    }
}

/// Collects the files of a package within its limits.
pub(crate) struct PackageBuilder {
    package: PackageContent,
    limits: PackageLimits,
    /// The content that may still come, in bytes.
    bytes_left: u64,
    entries: usize,
    /// The paths of files and of their folders, in lower case.
    files_seen: HashSet<String>,
    folders_seen: HashSet<String>,
}

impl PackageBuilder {
    /// Starts a package. `archive_bytes` is the size of the archive that its files come from.
    pub(crate) fn new(limits: PackageLimits, archive_bytes: Option<u64>) -> Self {
        let by_ratio =
            archive_bytes.map(|bytes| bytes.saturating_mul(limits.ratio).max(UNMEASURED_BYTES));
        let bytes_left = limits.total_bytes.min(by_ratio.unwrap_or(u64::MAX));
        Self {
            package: PackageContent::default(),
            limits,
            bytes_left,
            entries: 0,
            files_seen: HashSet::new(),
            folders_seen: HashSet::new(),
        }
    }

    /// Returns how many bytes of content may still come.
    pub(crate) fn bytes_left(&self) -> u64 {
        self.bytes_left
    }

    /// Counts something that the source names, and returns whether it is left out.
    pub(crate) fn count_entry(&mut self, name: &str) -> Result<bool, ToolError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            let most = self.limits.entries;
            return Err(too_large(format_args!("it has more than {most} files and folders")));
        }
        Ok(name.split('/').any(is_ignored_name))
    }

    /// Adds a file with what `content` has.
    pub(crate) fn add_file(
        &mut self,
        name: &str,
        is_executable: bool,
        content: impl Read,
    ) -> Result<(), ToolError> {
        self.claim_name(name)?;
        let most = self.limits.file_bytes.min(self.bytes_left);
        let mut bytes = Vec::new();
        content.take(most + 1).read_to_end(&mut bytes).map_err(|error| {
            ToolError::failed(format_args!("cannot read `{name}` of the package: {error}"))
                .source(error)
        })?;
        let length = bytes.len() as u64;
        if length > self.limits.file_bytes {
            let most = self.limits.file_bytes;
            return Err(too_large(format_args!("`{name}` has more than {most} bytes")));
        }
        if length > self.bytes_left {
            return Err(too_large(format_args!(
                "its files are larger than {} bytes together, or more than {} times larger than \
                 the archive",
                self.limits.total_bytes, self.limits.ratio
            )));
        }
        self.bytes_left -= length;
        self.package.files.insert(name.to_owned(), PackageFile { bytes, is_executable });
        Ok(())
    }

    /// Notes something that is not a regular file.
    pub(crate) fn refuse(&mut self, name: &str, what: &'static str) -> Result<(), ToolError> {
        check_entry_name(name)?;
        self.package.refused.push((name.to_owned(), what));
        Ok(())
    }

    pub(crate) fn finish(self) -> PackageContent {
        self.package
    }

    /// Checks that the name is safe and new, and that no file is also a folder.
    fn claim_name(&mut self, name: &str) -> Result<(), ToolError> {
        check_entry_name(name)?;
        let folded = name.to_lowercase();
        let ancestors = folded.match_indices('/').map(|(at, _)| &folded[..at]);
        let clashes = self.folders_seen.contains(&folded)
            || self.files_seen.contains(&folded)
            || ancestors.clone().any(|folder| self.files_seen.contains(folder));
        if clashes {
            let text = format_args!("the package names `{}` twice", name.escape_debug());
            return Err(ToolError::invalid_args(text)
                .hint("nothing was installed; do not use this package"));
        }
        self.folders_seen.extend(ancestors.map(str::to_owned));
        self.files_seen.insert(folded);
        Ok(())
    }
}

/// Returns the error for a package over its limits.
pub(crate) fn too_large(why: impl std::fmt::Display) -> ToolError {
    ToolError::invalid_args(format_args!("the package is too large: {why}"))
        .hint("name the folder of the one skill that you want")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> PackageLimits {
        PackageLimits { total_bytes: 100, file_bytes: 60, entries: 3, ratio: 100 }
    }

    // F114: SK3
    #[test]
    fn limits_hold_for_the_bytes_that_are_read() {
        let mut package = PackageBuilder::new(limits(), None);
        package.add_file("a", false, &[0; 60][..]).unwrap();
        let error = package.add_file("b", false, &[0; 41][..]).unwrap_err();
        assert!(error.message().contains("together"), "{}", error.message());
        let error = package.add_file("c", false, std::io::repeat(0)).unwrap_err();
        assert!(error.message().contains("too large"), "{}", error.message());
        let mut package = PackageBuilder::new(limits(), None);
        let error = package.add_file("c", false, std::io::repeat(0)).unwrap_err();
        assert!(error.message().contains("`c` has more than 60 bytes"), "{}", error.message());
        for _ in 0..3 {
            package.count_entry("x").unwrap();
        }
        assert!(package.count_entry("x").is_err());
    }

    #[test]
    fn the_ratio_counts_from_a_mebibyte_on() {
        let archive = |bytes| PackageBuilder::new(PackageLimits::default(), Some(bytes));
        assert_eq!(archive(10).bytes_left(), 1 << 20);
        assert_eq!(archive(20_000).bytes_left(), 2_000_000);
        assert_eq!(archive(u64::MAX).bytes_left(), 100 << 20);
    }

    #[test]
    fn a_name_comes_once_in_any_case() {
        for (first, second) in [("a/b", "A/B"), ("a", "a/b"), ("a/b", "a"), ("x", "x")] {
            let mut package = PackageBuilder::new(limits(), None);
            package.add_file(first, false, &b""[..]).unwrap();
            let error = package.add_file(second, false, &b""[..]).unwrap_err();
            assert!(error.message().contains("twice"), "{first} {second}");
        }
    }

    // SK5
    #[test]
    fn the_hash_depends_on_names_contents_and_permissions() {
        let package = |name: &str, is_executable, bytes: &[u8]| {
            let mut package = PackageBuilder::new(limits(), None);
            package.add_file(name, is_executable, bytes).unwrap();
            package.add_file("z", false, &b""[..]).unwrap();
            package.finish().content_hash()
        };
        let hashes = [
            package("a", false, b"x"),
            package("a", true, b"x"),
            package("b", false, b"x"),
            package("a", false, b"y"),
        ];
        assert_eq!(hashes.iter().collect::<HashSet<_>>().len(), 4);
        assert_eq!(package("a", false, b"x"), hashes[0]);
        assert_eq!(hashes[0].len(), 64);
    }
}
