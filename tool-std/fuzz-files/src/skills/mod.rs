//! The documents of skills, and the archives that they come in.

#[path = "../../../src/skills/document.rs"]
mod document;

use std::path::Path;

use self::document::{SkillDocument, edit_document, format_document};
use crate::packages::entry_name::{check_entry_name, is_hidden_char};
use crate::packages::package::PackageLimits;
use crate::packages::source::{read_archive, read_source};
use crate::packages::staging::{ReplacementPolicy, TargetFolder, install_package};

/// Any text is a skill or is refused; one that is read is read again after it was changed.
pub fn a_skill_is_read(text: &str) {
    let Ok(skill) = SkillDocument::parse(text, "folder") else { return };
    assert!(!skill.name.chars().any(|c| is_hidden_char(c) || "/\\\"<>".contains(c)), "{text:?}");
    assert!(!skill.description.is_empty() && !skill.description.chars().any(is_hidden_char));

    let edited = edit_document(text, None, Some("new body")).expect("it has frontmatter");
    let again = SkillDocument::parse(&edited, "folder").expect("only its body changed");
    assert_eq!((&again.name, again.body.trim()), (&skill.name, "new body"), "{text:?}");

    let plain = format_document("name", &skill.description, &[], &skill.body);
    let again = SkillDocument::parse(&plain, "name").expect("it was written here");
    assert_eq!(again.description, skill.description, "{text:?}");
}

/// Any bytes are an archive or are refused; what is read stays within its limits, is written below
/// its folder, and is read from there as it was.
pub fn an_archive_stays_inside(bytes: &[u8]) {
    let limits =
        PackageLimits { total_bytes: 1 << 16, file_bytes: 1 << 14, entries: 64, ratio: 100 };
    let Ok(found) = read_archive(bytes, Path::new("x.mcpb"), limits) else { return };
    let package = found.package;
    assert!(package.files.len() <= limits.entries);
    assert!(package.total_bytes() as u64 <= limits.total_bytes);
    assert!(package.files.keys().all(|name| check_entry_name(name).is_ok()));
    let temp = tempfile::tempdir().expect("a folder");
    let folder = TargetFolder { base: temp.path().join("inside"), below: "skills" };
    install_package(&package, &folder, "a", ReplacementPolicy::Refused)
        .expect("the names are safe");
    let there = read_source(&folder.path().join("a"), limits).expect("it was written");
    assert_eq!(there.package.content_hash(), package.content_hash());
    let beside = std::fs::read_dir(temp.path()).expect("it is there").count();
    assert_eq!(beside, 1, "only the folder of the skills");
}
