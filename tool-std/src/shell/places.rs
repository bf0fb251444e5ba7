//! Where the files of redirections lie, as far as the commands before them let it be known.
//!
//! A path is looked up before the script runs. It leads there as long as nothing that may run
//! before the file is opened changes the folder, or what a name leads to.
//!
//! **Invariant:** without an order, every command may run before every other.

use std::collections::BTreeSet;

use super::Why;
use super::rich::File;

/// Where a command stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Where in the script that holds everything the command begins that it is a part of.
    pub(super) at: usize,
    /// Whether it runs in the folder of that script, and finds the same files there.
    pub(super) stays: bool,
    /// Whether there is nothing beside it, so that a script in it holds everything.
    pub(super) sole: bool,
}

impl Place {
    /// Where everything begins.
    pub(super) const START: Self = Self { at: 0, stays: true, sole: true };

    /// The place of what comes from nobody knows where.
    pub(super) const ELSEWHERE: Self = Self { at: 0, stays: false, sole: false };
}

/// What is known of the order of commands and files.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The files, and the place of the script that opens them.
    files: Vec<(File, Place)>,
    /// Where commands stand that change the folder.
    moving: BTreeSet<usize>,
    /// Where commands stand that may rename files.
    renaming: BTreeSet<usize>,
}

impl Places {
    pub(super) fn opens(&mut self, files: Vec<File>, place: Place) {
        self.files.extend(files.into_iter().map(|file| (file, place)));
    }

    pub(super) fn moves(&mut self, place: Place) {
        self.moving.insert(place.at);
    }

    pub(super) fn renames(&mut self, place: Place) {
        self.renaming.insert(place.at);
    }

    pub(super) fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    pub(super) fn is_moved(&self) -> bool {
        !self.moving.is_empty()
    }

    pub(super) fn is_renamed(&self) -> bool {
        !self.renaming.is_empty()
    }

    /// Every file, and why it may lie elsewhere.
    ///
    /// `is_led` says that the folder is changed before any is opened, and never again.
    pub(super) fn files(&mut self, is_led: bool) -> Vec<(File, Option<Why>)> {
        let files = std::mem::take(&mut self.files);
        let judged = |(file, place)| {
            let why = self.doubt(&file, place, is_led);
            (file, why)
        };
        files.into_iter().map(judged).collect()
    }

    fn doubt(&self, file: &File, place: Place, is_led: bool) -> Option<Why> {
        // Only the script that holds everything has an order.
        let is_after = |commands: &BTreeSet<usize>| match place.sole {
            true => commands.range(..file.until).any(|&command| file.is_after(command)),
            false => !commands.is_empty(),
        };
        let is_relative = !file.path.starts_with(['/', '~']);
        if is_after(&self.renaming) {
            Some(Why::Renamed)
        } else if !place.stays || is_relative && !is_led && is_after(&self.moving) {
            Some(Why::Moved)
        } else {
            None
        }
    }
}
