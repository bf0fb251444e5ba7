//! Tracks the order of commands and redirections, to decide whether a path still leads where it
//! does now.
//!
//! Paths are resolved before the script runs. The result is valid as long as no command that may
//! run earlier changes the directory or renames, links or mounts files.
//!
//! **Invariant:** without a known order, every command may run before every other.

use std::collections::BTreeSet;

use super::OpaqueReason;
use super::parser::RedirectedFile;

/// The position of a command in the outermost script.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandPosition {
    /// The offset of the top-level command that contains it.
    pub(super) offset: usize,
    /// Whether it runs in the directory of that script and sees the same files.
    pub(super) keeps_folder: bool,
    /// Whether it is the only command, so that a nested script is the whole script.
    pub(super) is_only_command: bool,
    /// Whether it is inside a loop.
    pub(super) is_repeated: bool,
}

impl CommandPosition {
    /// The start of the outermost script.
    pub(super) const START: Self =
        Self { offset: 0, keeps_folder: true, is_only_command: true, is_repeated: false };

    /// The position of commands whose origin is unknown.
    pub(super) const UNKNOWN: Self =
        Self { offset: 0, keeps_folder: false, is_only_command: false, is_repeated: true };
}

/// The recorded folder changes, renames and opened files.
#[derive(Debug, Default)]
pub(super) struct ExecutionOrder {
    /// The files, and the position of the script that opens them.
    files: Vec<(RedirectedFile, CommandPosition)>,
    /// Offsets of the commands that change the directory.
    folder_changes: BTreeSet<usize>,
    /// Offsets of the commands that may rename files.
    renames: BTreeSet<usize>,
}

impl ExecutionOrder {
    pub(super) fn record_files(&mut self, files: Vec<RedirectedFile>, place: CommandPosition) {
        self.files.extend(files.into_iter().map(|file| (file, place)));
    }

    pub(super) fn record_folder_change(&mut self, place: CommandPosition) {
        self.folder_changes.insert(place.offset);
    }

    pub(super) fn record_rename(&mut self, place: CommandPosition) {
        self.renames.insert(place.offset);
    }

    pub(super) fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    pub(super) fn has_folder_changes(&self) -> bool {
        !self.folder_changes.is_empty()
    }

    pub(super) fn has_renames(&self) -> bool {
        !self.renames.is_empty()
    }

    /// Takes every file, each with the reason why its path may resolve differently later.
    ///
    /// `is_led` means that all directory changes happen before the first file is opened.
    pub(super) fn take_files(
        &mut self,
        is_led: bool,
    ) -> Vec<(RedirectedFile, Option<OpaqueReason>)> {
        let files = std::mem::take(&mut self.files);
        let checked = |(file, place)| {
            let why = self.find_doubt(&file, place, is_led);
            (file, why)
        };
        files.into_iter().map(checked).collect()
    }

    fn find_doubt(
        &self,
        file: &RedirectedFile,
        place: CommandPosition,
        is_led: bool,
    ) -> Option<OpaqueReason> {
        // Only the outermost script has a known order.
        let is_after = |commands: &BTreeSet<usize>| match place.is_only_command {
            true => {
                commands.range(..file.opened_before).any(|&command| file.may_open_after(command))
            }
            false => !commands.is_empty(),
        };
        let is_relative = !file.path.starts_with(['/', '~']);
        if is_after(&self.renames) {
            Some(OpaqueReason::FileRenamed)
        } else if !place.keeps_folder || is_relative && !is_led && is_after(&self.folder_changes) {
            Some(OpaqueReason::FolderChanged)
        } else {
            None
        }
    }
}
