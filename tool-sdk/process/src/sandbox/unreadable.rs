//! The paths that a child must not read, and the reasons why some of them may be missing.
//!
//! A host knows which files its rules keep from being read. The sandbox covers those that exist
//! when the child starts.
//!
//! **Invariant:** a path that is not handed to the helper is a gap, and a gap has a reason.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::status::{EnforcementLevel, SandboxStatus};

/// How many paths are covered, and how long they may be together: the kernel limits the length of
/// the argument that carries the request to the helper.
const MAX_PATHS: usize = 1_024;
const MAX_PATH_BYTES: usize = 64 << 10;

/// The paths that a child must not read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct UnreadablePaths {
    paths: BTreeSet<PathBuf>,
    path_bytes: usize,
    gaps: BTreeSet<String>,
}

impl UnreadablePaths {
    pub(super) fn add_path(&mut self, path: PathBuf) {
        if self.paths.contains(&path) {
            return;
        }
        let length = path.as_os_str().len();
        if path.to_str().is_none() {
            self.add_gap(format!("`{}` is not valid UTF-8", path.display()));
        } else if self.paths.len() == MAX_PATHS || self.path_bytes + length > MAX_PATH_BYTES {
            self.add_gap("too many files match the rules that deny reading".to_owned());
        } else {
            self.path_bytes += length;
            self.paths.insert(path);
        }
    }

    pub(super) fn add_gap(&mut self, reason: String) {
        self.gaps.insert(reason);
    }

    pub(super) const fn paths(&self) -> &BTreeSet<PathBuf> {
        &self.paths
    }

    /// Lowers the level of a status that covers all [`paths`](Self::paths) by the gaps.
    pub(super) fn apply_gaps(&self, status: &mut SandboxStatus) {
        let level = status.reads.unwrap_or_default();
        status.reads = Some(match self.gaps.is_empty() {
            true => level,
            false => level.min(EnforcementLevel::Partial),
        });
        let reasons = self.gaps.iter().map(|gap| format!("readable although denied: {gap}"));
        status.reasons.extend(reasons);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(unreadable: &UnreadablePaths) -> SandboxStatus {
        let mut status =
            SandboxStatus { reads: Some(EnforcementLevel::Full), ..SandboxStatus::default() };
        unreadable.apply_gaps(&mut status);
        status
    }

    #[test]
    fn a_path_beyond_the_limits_is_a_gap() {
        let mut unreadable = UnreadablePaths::default();
        for number in 0..MAX_PATHS {
            unreadable.add_path(format!("/{number}").into());
        }
        assert_eq!(reads(&unreadable).reads, Some(EnforcementLevel::Full));
        unreadable.add_path("/0".into());
        assert!(reads(&unreadable).reasons.is_empty());

        unreadable.add_path("/one-more".into());
        let status = reads(&unreadable);
        assert_eq!(status.reads, Some(EnforcementLevel::Partial));
        assert_eq!(status.reasons.len(), 1, "{status}");
        assert_eq!(unreadable.paths().len(), MAX_PATHS);

        let mut unreadable = UnreadablePaths::default();
        unreadable.add_path(format!("/{}", "x".repeat(MAX_PATH_BYTES)).into());
        assert_eq!(reads(&unreadable).reads, Some(EnforcementLevel::Partial));
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_no_text_is_a_gap() {
        use std::os::unix::ffi::OsStringExt as _;
        let mut unreadable = UnreadablePaths::default();
        unreadable.add_path(std::ffi::OsString::from_vec(b"/\xff".to_vec()).into());
        let status = reads(&unreadable);
        assert_eq!(status.reads, Some(EnforcementLevel::Partial));
        assert!(status.reasons[0].contains("not valid UTF-8"), "{status}");
    }

    #[test]
    fn gaps_do_not_raise_a_level() {
        let mut unreadable = UnreadablePaths::default();
        unreadable.add_gap("why".to_owned());
        let mut status = SandboxStatus::default();
        unreadable.apply_gaps(&mut status);
        assert_eq!(status.reads, Some(EnforcementLevel::None));
    }
}
