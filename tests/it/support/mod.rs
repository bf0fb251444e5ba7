//! What several tests need: sample tools and values made from schemas.

pub(crate) mod samples;
pub(crate) mod values;

/// The repository's folder.
pub(crate) fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in it").to_owned()
}
