//! Where there is no sandbox: everything says so.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::order::Protected;
use super::{Policy, SelfTest};

const WHY: &str = "there is no sandbox: it needs Linux and the feature `sandbox`";

pub(super) fn run_helper_if_asked() {}

pub(super) fn helper(_: &Policy) -> Result<OsString, &'static str> {
    Err(WHY)
}

pub(super) fn temporary() -> Vec<PathBuf> {
    Vec::new()
}

pub(super) fn protected_in(_: &Path) -> io::Result<Protected> {
    Ok(Protected::default())
}

pub(super) fn self_test() -> io::Result<SelfTest> {
    Err(io::Error::other(WHY))
}

/// What holds the place of something protected; there is nothing to hold it for.
#[derive(Debug)]
pub(super) struct StandIn;

impl StandIn {
    pub(super) fn at(_: &Path) -> Option<Self> {
        None
    }
}
