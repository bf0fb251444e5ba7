//! Packages: skills and plugins on their way from a source into a folder of the program or of a
//! project. Reading a source, its limits, what deserves a look, the difference, the hashes of what was
//! approved, and writing with one rename.
//!
//! **Invariant:** nothing of a package runs here, and the bytes that were shown are those that are
//! written.

pub(crate) mod change;
pub(crate) mod entry_name;
pub(crate) mod host_files;
pub(crate) mod package;
pub(crate) mod pins;
pub(crate) mod places;
pub(crate) mod planned_calls;
pub(crate) mod risk_lines;
pub(crate) mod source;
pub(crate) mod staging;
