//! What several tests need: sample tools and values made from schemas.

pub(crate) mod samples;
pub(crate) mod values;

/// The folders of the published packages, relative to the repository's folder.
pub(crate) fn published_packages() -> Vec<String> {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("it is readable");
    let members = manifest.split("members = [").nth(1).and_then(|it| it.split(']').next());
    let members = members.expect("the workspace has members").split('"').skip(1).step_by(2);
    let published = members.filter(|member| member.starts_with("tool-"));
    published.map(str::to_owned).collect()
}

/// The source folders of the published packages.
pub(crate) fn published_sources() -> Vec<String> {
    published_packages().iter().map(|package| format!("{package}/src")).collect()
}

/// The repository's folder.
pub(crate) fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in it").to_owned()
}
