//! The modules of packages, which read archives.

#[path = "../../src/packages/entry_name.rs"]
pub(crate) mod entry_name;
#[path = "../../src/packages/host_files.rs"]
pub(crate) mod host_files;
#[path = "../../src/packages/package.rs"]
pub(crate) mod package;
#[path = "../../src/packages/source/mod.rs"]
pub(crate) mod source;
#[path = "../../src/packages/staging.rs"]
pub(crate) mod staging;
