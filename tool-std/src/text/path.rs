//! Paths as rules read them.

use std::path::{Component, Path, PathBuf};

use tool_sdk::{Context, Subject, Workspace};

/// What a tool that reads `path` touches: what was asked for, and where links lead.
pub(crate) fn touched(path: &str, cx: &Context) -> Vec<Subject> {
    let mut subjects = asked(path);
    let place = cx.state::<Workspace>().and_then(|workspace| workspace.resolve(path)?.real());
    // A path that leads nowhere fails when it is opened, and touches nothing else.
    if let Ok(real) = place {
        let target = Subject::path(real.display(), real.absolute());
        match subjects.iter_mut().find(|subject| subject.text() == target.text()) {
            // The same place, which rules may name by its absolute path too.
            Some(subject) => *subject = target,
            None => subjects.push(target),
        }
    }
    subjects
}

/// What a tool that reads `path` touches: the path without detours, and as it was written
/// where that is something else, because behind a link `..` leads elsewhere.
fn asked(path: &str) -> Vec<Subject> {
    let plain = plain(path);
    let mut subjects = vec![Subject::new(plain.as_str())];
    if plain != path && path.contains("..") {
        subjects.push(Subject::new(path));
    }
    subjects
}

/// The path without `.`, doubled separators, and `..` where a name stands before it.
fn plain(path: &str) -> String {
    let mut parts = PathBuf::new();
    for part in Path::new(path).components() {
        let after_name = matches!(parts.components().next_back(), Some(Component::Normal(_)));
        match part {
            Component::CurDir => {}
            Component::ParentDir if after_name => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    match parts.to_str() {
        Some("") => ".".to_owned(),
        Some(plain) => plain.to_owned(),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: &[&str]) {
        let subjects = asked(path);
        assert!(subjects.iter().map(Subject::text).eq(expected.iter().copied()), "{subjects:?}");
    }

    #[test]
    fn a_path_is_judged_without_detours() {
        check(".env", &[".env"]);
        check("./src//.env", &["src/.env"]);
        check(".", &["."]);
        check("", &["."]);
        check("/etc/./passwd", &["/etc/passwd"]);
        check("src/../.env", &[".env", "src/../.env"]);
        check("src/..", &[".", "src/.."]);
        check("../../x", &["../../x"]);
        check("../a/../x", &["../x", "../a/../x"]);
    }
}
