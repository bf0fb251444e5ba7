//! The sandbox where it is not supported: every function reports that.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::order::Protected;
use super::{Policy, SelfTest};

const UNSUPPORTED: &str = "there is no sandbox: it needs Linux and the feature `sandbox`";

pub(super) fn run_helper_if_asked() {}

pub(super) fn helper(_: &Policy) -> Result<OsString, &'static str> {
    Err(UNSUPPORTED)
}

pub(super) fn temporary() -> Vec<PathBuf> {
    Vec::new()
}

pub(super) fn protected_in(_: &Path) -> io::Result<Protected> {
    Ok(Protected::default())
}

pub(super) fn self_test() -> io::Result<SelfTest> {
    Err(io::Error::other(UNSUPPORTED))
}

/// A placeholder for a missing protected file; never created here.
#[derive(Debug)]
pub(super) struct StandIn;

impl StandIn {
    pub(super) fn at(_: &Path) -> Option<Self> {
        None
    }
}
