//! What the files of a package are changed into, as it is shown to a person.
//!
//! **Invariant:** a change holds the very bytes that are written.

use std::collections::BTreeSet;

use tool_sdk::escape_for_display;

use super::package::{PackageContent, PackageFile};
use super::risk_lines::{RiskLine, find_risk_lines};
use crate::diff::{DiffDetail, FileDiff};

/// The size of a diff in bytes from which on further files are only named.
const MAX_DIFF_BYTES: usize = 2 << 20;

/// How many marked lines an approval prompt shows.
const MAX_SHOWN_MARKS: usize = 30;

/// The files of a package, and those that they replace.
#[derive(Clone, Debug)]
pub(crate) struct PackageChange {
    pub(crate) package: PackageContent,
    /// The hash of the files, in hexadecimal.
    pub(crate) hash: String,
    /// The files that are replaced, if there are some.
    pub(crate) old: Option<PackageContent>,
    /// The file that is shown first.
    first_file: String,
    marks: Vec<RiskLine>,
}

impl PackageChange {
    /// Compares a package with the files that it replaces.
    pub(crate) fn new(
        package: PackageContent,
        old: Option<PackageContent>,
        first_file: &str,
    ) -> Self {
        let (hash, marks) = (package.content_hash(), find_risk_lines(&package));
        Self { package, hash, old, first_file: first_file.to_owned(), marks }
    }

    /// Returns the text of the change: up to 2 MiB of what a model would read, then the names and
    /// sizes of the other files.
    pub(crate) fn diff(&self) -> String {
        let empty = PackageContent::default();
        let old = self.old.as_ref().unwrap_or(&empty);
        let names: BTreeSet<&String> = old.files.keys().chain(self.package.files.keys()).collect();
        // The text that a model reads first comes first.
        let is_other = |name: &&&String| **name != self.first_file.as_str();
        let first = names.get(&self.first_file).copied();
        let mut diff = String::new();
        for name in first.into_iter().chain(names.iter().filter(is_other).copied()) {
            let (before, after) = (old.files.get(name), self.package.files.get(name));
            if before == after {
                continue;
            }
            match (before.map(PackageFile::text), after.map(PackageFile::text)) {
                (None | Some(Some(_)), None | Some(Some(_))) if diff.len() < MAX_DIFF_BYTES => {
                    let [before, after] = [before, after].map(|file| file?.text());
                    diff += &FileDiff::new(name, before, after, DiffDetail::Whole).diff.unified;
                }
                _ => diff += &describe_file(name, after),
            }
        }
        diff
    }

    /// Returns the marked lines for an approval prompt.
    pub(crate) fn shown_marks(&self) -> Vec<String> {
        let mut marks: Vec<String> =
            self.marks.iter().take(MAX_SHOWN_MARKS).map(ToString::to_string).collect();
        if self.marks.len() > MAX_SHOWN_MARKS {
            marks.push(format!("and {} more", self.marks.len() - MAX_SHOWN_MARKS));
        }
        marks
    }

    /// Returns the marked lines and the difference as text, for a dry run.
    pub(crate) fn describe(&self) -> String {
        let mut text = match &*self.marks {
            [] => "lines to look at: none; read the text all the same\n".to_owned(),
            _ => "lines to look at:\n".to_owned(),
        };
        for mark in &self.marks {
            text += &format!("  {mark}\n");
        }
        text + "\n" + &self.diff()
    }

    /// Returns how many files there are, and how large they are.
    pub(crate) fn describe_files(&self) -> String {
        let files = &self.package.files;
        let scripts = files.values().filter(|file| file.is_executable).count();
        format!(
            "{} files, {} bytes, {scripts} of them executable",
            files.len(),
            self.package.total_bytes()
        )
    }
}

/// Describes a file that is not shown as text.
fn describe_file(name: &str, after: Option<&PackageFile>) -> String {
    let name = escape_for_display(name);
    match after {
        None => format!("[{name}: the file is removed]\n"),
        Some(file) if file.text().is_some() => {
            format!("[{name}: {} bytes of text, too much to show]\n", file.bytes.len())
        }
        Some(file) => format!("[{name}: {} bytes that are not text]\n", file.bytes.len()),
    }
}
