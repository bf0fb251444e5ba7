//! What the files of a package are changed into, as it is shown to a person.
//!
//! **Invariant:** a change holds the very bytes that are written.

use std::collections::BTreeSet;

use tool_sdk::escape_for_display;

use super::package::{PackageContent, PackageFile};
use super::risk_lines::{RiskLine, find_risk_lines};
use crate::diff::{DiffDetail, FileDiff};

/// The most text of a diff in bytes; further files are only named.
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
    /// The files that commands name.
    named: BTreeSet<String>,
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
        let (first_file, named) = (first_file.to_owned(), BTreeSet::new());
        Self { package, hash, old, first_file, named, marks }
    }

    /// Shows the files that `commands` name before others.
    #[cfg_attr(not(feature = "plugins"), expect(dead_code, reason = "plugins alone use it"))]
    pub(crate) fn with_commands(mut self, commands: &[String]) -> Self {
        let is_named = |name: &&String| commands.iter().any(|text| text.contains(name.as_str()));
        self.named = self.package.files.keys().filter(is_named).cloned().collect();
        self
    }

    /// Returns the text of the change: up to 2 MiB of what a model would read or a command runs, then the
    /// names and sizes of the other files.
    pub(crate) fn diff(&self) -> String {
        self.write_diff().0
    }

    /// Returns the files whose text is not shown: a text beyond 2 MiB, and what a command runs or names and is
    /// neither a text nor a compiled program.
    #[cfg_attr(not(feature = "plugins"), expect(dead_code, reason = "plugins alone use it"))]
    pub(crate) fn hidden_files(&self) -> Vec<String> {
        self.write_diff().1
    }

    fn write_diff(&self) -> (String, Vec<String>) {
        let empty = PackageContent::default();
        let old = self.old.as_ref().unwrap_or(&empty);
        let names: BTreeSet<&String> = old.files.keys().chain(self.package.files.keys()).collect();
        let mut names: Vec<&String> = names.into_iter().collect();
        names.sort_by_key(|name| self.rank_file(name));
        let (mut diff, mut hidden) = (String::new(), Vec::new());
        for name in names {
            let (before, after) = (old.files.get(name), self.package.files.get(name));
            if before == after {
                continue;
            }
            let texts = [before, after].map(|file| file.and_then(PackageFile::text));
            let has_text = texts[1].is_some() || (after.is_none() && texts[0].is_some());
            let size: usize = texts.iter().flatten().map(|text| text.len()).sum();
            if has_text && diff.len() + size <= MAX_DIFF_BYTES {
                let [before, after] = texts;
                diff += &FileDiff::new(name, before, after, DiffDetail::Whole).diff.unified;
            } else {
                diff += &describe_file(name, after);
                hidden
                    .extend(after.filter(|file| self.must_show(name, file)).map(|_| name.clone()));
            }
            let is_executable =
                |file: Option<&PackageFile>| file.is_some_and(|it| it.is_executable);
            if is_executable(after) && !is_executable(before) {
                diff += &format!("[{}: it can be executed]\n", escape_for_display(name));
            }
        }
        (diff, hidden)
    }

    /// Returns the place of a file in the text: what a model reads first, what runs, and the others.
    fn rank_file(&self, name: &str) -> u8 {
        match self.package.files.get(name) {
            _ if name == self.first_file => 0,
            _ if self.named.contains(name) => 1,
            Some(file) if file.is_executable => 1,
            _ => 2,
        }
    }

    fn must_show(&self, name: &str, file: &PackageFile) -> bool {
        file.text().is_some() || (self.rank_file(name) < 2 && !is_compiled_program(&file.bytes))
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
        let (count, bytes) = (files.len(), self.package.total_bytes());
        let noun = if count == 1 { "file" } else { "files" };
        format!("{count} {noun}, {bytes} bytes, {scripts} of them executable")
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

/// Whether the bytes begin like a program for Linux, macOS or Windows.
fn is_compiled_program(bytes: &[u8]) -> bool {
    const STARTS: [&[u8]; 5] =
        [b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe"];
    STARTS.iter().any(|start| bytes.starts_with(start))
}
