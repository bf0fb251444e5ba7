//! The sandbox where it is not supported: every function reports that.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::helper_protocol::ProtectedPaths;
use super::{SandboxPolicy, SelfTestReport};

const UNSUPPORTED: &str = "there is no sandbox: it needs Linux and the feature `sandbox`";

pub(super) fn run_helper_if_asked() {}

pub(super) fn helper_program(_: &SandboxPolicy) -> Result<OsString, &'static str> {
    Err(UNSUPPORTED)
}

pub(super) fn temporary_folders() -> Vec<PathBuf> {
    Vec::new()
}

pub(super) fn find_protected(_: &Path) -> io::Result<ProtectedPaths> {
    Ok(ProtectedPaths::default())
}

pub(super) fn run_self_test() -> io::Result<SelfTestReport> {
    Err(io::Error::other(UNSUPPORTED))
}

/// A placeholder for a missing protected file; never created here.
#[derive(Debug)]
pub(super) struct PlaceholderDir;

impl PlaceholderDir {
    pub(super) fn create(_: &Path) -> Option<Self> {
        None
    }
}
