//! Path resolution: paths inside of the roots, and paths that would escape.

#[cfg(unix)]
mod journal;
#[cfg(target_os = "linux")]
mod many_folders;
#[cfg(target_os = "linux")]
mod permissions;
mod transaction;

use std::fs;
use std::io::Read;

use tempfile::TempDir;

use super::path_syntax::is_reserved_on_windows;
use super::*;
use crate::error::{WorkspaceError, WorkspaceErrorKind};

fn folder() -> (TempDir, Workspace) {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/main.rs"), "fn main() {}").unwrap();
    let workspace = Workspace::open([folder.path()]).unwrap();
    (folder, workspace)
}

fn text(path: &ResolvedPath) -> Result<String, WorkspaceErrorKind> {
    let mut text = String::new();
    let mut file = path.open_file().map_err(|error| error.kind())?;
    file.read_to_string(&mut text).unwrap();
    Ok(text)
}

#[track_caller]
fn check(workspace: &Workspace, path: &str, expected: Result<&str, WorkspaceErrorKind>) {
    let found = workspace.resolve(path).map(|located| located.display());
    let found = found.as_deref().map_err(WorkspaceError::kind);
    assert_eq!(found, expected, "{path:?}");
}

#[test]
fn a_file_has_one_display_path() {
    let (folder, workspace) = folder();
    let absolute = folder.path().join("src/main.rs");
    check(&workspace, "src/main.rs", Ok("src/main.rs"));
    check(&workspace, "./src//main.rs", Ok("src/main.rs"));
    check(&workspace, absolute.to_str().unwrap(), Ok("src/main.rs"));
    check(&workspace, folder.path().to_str().unwrap(), Ok("."));
    check(&workspace, ".", Ok("."));
    assert_eq!(workspace.resolve(".").unwrap().absolute_path(), workspace.roots().next().unwrap());
}

// PA6: a file has one rule path, independent of the root through which it is reached.
#[test]
fn overlapping_roots_give_one_rule_path() {
    let (folder, _) = folder();
    let (outer, inner) = (folder.path().to_owned(), folder.path().join("src"));
    let absolute = inner.join("main.rs");
    for (roots, expected) in [([&outer, &inner], "src/main.rs"), ([&inner, &outer], "main.rs")] {
        let workspace = Workspace::open(roots).unwrap();
        check(&workspace, absolute.to_str().unwrap(), Ok(expected));
        check(&workspace, expected, Ok(expected));
        let above = workspace.resolve(outer.to_str().unwrap()).unwrap();
        assert_eq!(above.join("src/main.rs").display(), expected);
    }
}

#[test]
fn denies_paths_outside_of_the_roots() {
    let (folder, workspace) = folder();
    let sibling = format!("{}-other/x", folder.path().display());
    for path in ["..", "../x", "src/../../x", "/", "/etc/passwd", &sibling] {
        check(&workspace, path, Err(WorkspaceErrorKind::Denied));
    }
    let climbing = format!("{}/../x", folder.path().display());
    check(&workspace, &climbing, Err(WorkspaceErrorKind::Denied));
    let error = workspace.resolve("/etc/passwd").unwrap_err();
    let root = workspace.roots().next().unwrap().to_str().unwrap();
    assert!(error.suggestion().unwrap().contains(root), "{error}");
}

// PA3
#[test]
fn rejects_invalid_paths() {
    let (_folder, workspace) = folder();
    let long_name = "n".repeat(256);
    let long_path = "n/".repeat(2049);
    for path in ["", "a\0b", &long_name, &long_path] {
        check(&workspace, path, Err(WorkspaceErrorKind::InvalidPath));
    }
    check(&workspace, &"n".repeat(255), Ok(&"n".repeat(255)));
}

// PA3
#[test]
fn does_not_expand_tilde_or_variables() {
    let (_folder, workspace) = folder();
    for path in ["~/x", "$HOME/x", "%2e%2e/x", "file:x"] {
        check(&workspace, path, Ok(path));
    }
}

#[test]
fn allows_parent_components_inside_the_root() {
    let (_folder, workspace) = folder();
    let path = workspace.resolve("src/../src/main.rs").unwrap();
    assert_eq!(text(&path).unwrap(), "fn main() {}");
}

// PA4
#[test]
fn only_regular_files_are_opened() {
    let (_folder, workspace) = folder();
    let error = workspace.resolve("src").unwrap().open_file().unwrap_err();
    assert_eq!(error.kind(), WorkspaceErrorKind::Failed);
    assert_eq!(error.message(), "`src` is a folder, not a file");
    assert_eq!(text(&workspace.resolve("nope").unwrap()), Err(WorkspaceErrorKind::NotFound));
    assert_eq!(
        text(&workspace.resolve("src/main.rs/x").unwrap()),
        Err(WorkspaceErrorKind::NotFound)
    );
}

#[test]
fn lists_folder_entries() {
    let (folder, workspace) = folder();
    fs::write(folder.path().join("a"), "").unwrap();
    let mut entries: Vec<_> = workspace
        .resolve(".")
        .unwrap()
        .read_dir()
        .unwrap()
        .map(|entry| entry.map(|entry| (entry.name, entry.kind)).unwrap())
        .collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(entries, [("a".into(), FileKind::File), ("src".into(), FileKind::Directory)]);

    let file = workspace.resolve("src/main.rs").unwrap();
    assert_eq!(file.read_dir().err().unwrap().kind(), WorkspaceErrorKind::Failed);
    let metadata = file.metadata().unwrap();
    assert_eq!((metadata.kind, metadata.len), (FileKind::File, 12));
    assert!(metadata.modified.is_some());
}

#[test]
fn relative_paths_prefer_the_root_in_which_they_exist() {
    let (first, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    fs::write(second.path().join("b"), "second").unwrap();
    let workspace = Workspace::open([first.path(), second.path()]).unwrap();
    let path = workspace.resolve("b").unwrap();
    assert_eq!(text(&path).unwrap(), "second");
    // The displayed path resolves to the same file, even when `b` appears in the first root.
    fs::write(first.path().join("b"), "first").unwrap();
    assert_eq!(text(&workspace.resolve("b").unwrap()).unwrap(), "first");
    assert_eq!(text(&workspace.resolve(&path.display()).unwrap()).unwrap(), "second");
    check(&workspace, "new", Ok("new"));
}

#[test]
fn the_innermost_root_wins() {
    let (folder, _) = folder();
    let workspace = Workspace::open([folder.path().to_owned(), folder.path().join("src")]);
    let path = folder.path().join("src/main.rs");
    let path = workspace.unwrap().resolve(path.to_str().unwrap()).unwrap();
    assert_eq!(path.root, 1);
}

#[test]
fn read_only_folders_can_be_read() {
    let (_folder, workspace) = folder();
    let lent = TempDir::new().unwrap();
    let file = lent.path().join("page");
    fs::write(&file, "text").unwrap();
    let lending = workspace.clone().with_read_only(lent.path()).unwrap();

    let path = lending.resolve(file.to_str().unwrap()).unwrap();
    assert_eq!(text(&path).unwrap(), "text");
    assert!(path.is_read_only() && path.parent().unwrap().is_read_only());
    assert_eq!(text(&lending.resolve(&path.display()).unwrap()).unwrap(), "text");
    let names: Vec<_> = lending
        .resolve(lent.path().to_str().unwrap())
        .unwrap()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().name)
        .collect();
    assert_eq!(names, ["page"]);

    // A read-only folder is not a root: relative paths do not lead there, and hints do not name it.
    assert!(!lending.resolve("page").unwrap().is_read_only());
    assert!(lending.roots().eq(workspace.roots()));
    let error = lending.resolve("/etc/passwd").unwrap_err();
    assert!(!error.suggestion().unwrap().contains(lent.path().to_str().unwrap()), "{error}");

    let climbing = lent.path().join("../page");
    check(&lending, climbing.to_str().unwrap(), Err(WorkspaceErrorKind::Denied));
    check(&workspace, file.to_str().unwrap(), Err(WorkspaceErrorKind::Denied));
    let error = lending.with_read_only(file).unwrap_err();
    assert!(error.to_string().starts_with("cannot open the workspace root"), "{error}");
}

#[test]
fn reports_a_root_that_cannot_be_opened() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("missing");
    let error = Workspace::open([&missing]).unwrap_err();
    assert!(error.to_string().contains(missing.to_str().unwrap()), "{error}");
    let error = Workspace::open([""; 0]).unwrap_err();
    assert_eq!(error.message(), "a workspace needs at least one root");
}

#[test]
fn detects_reserved_windows_names() {
    for name in ["NUL", "nul.txt", "COM1", "lpt9.log", "a:b", "a.", "a "] {
        assert!(is_reserved_on_windows(name), "{name}");
    }
    for name in ["null", "COM", "COM10", "a.txt", ".git"] {
        assert!(!is_reserved_on_windows(name), "{name}");
    }
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[test]
    fn links_do_not_escape_the_root() {
        let (folder, workspace) = folder();
        let outside = TempDir::new().unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        symlink(outside.path(), folder.path().join("out")).unwrap();
        symlink(outside.path().join("secret"), folder.path().join("secret")).unwrap();
        symlink("../../..", folder.path().join("src/up")).unwrap();
        symlink("src/main.rs", folder.path().join("in")).unwrap();

        for name in ["out/secret", "secret", "src/up/etc/passwd"] {
            let path = workspace.resolve(name).unwrap();
            let error = path.open_file().unwrap_err();
            assert_eq!(error.kind(), WorkspaceErrorKind::Denied, "{name}");
            assert!(error.message().contains("leads outside the workspace"), "{error}");
            assert_eq!(path.metadata().unwrap_err().kind(), WorkspaceErrorKind::Denied, "{name}");
        }
        let out = workspace.resolve("out").unwrap();
        assert_eq!(out.read_dir().err().unwrap().kind(), WorkspaceErrorKind::Denied);
        assert_eq!(text(&workspace.resolve("in").unwrap()).unwrap(), "fn main() {}");
    }

    #[test]
    fn links_do_not_escape_a_read_only_folder() {
        let (folder, workspace) = folder();
        let lent = TempDir::new().unwrap();
        symlink(folder.path().join("src/main.rs"), lent.path().join("in")).unwrap();
        symlink("/etc/passwd", lent.path().join("out")).unwrap();
        let workspace = workspace.with_read_only(lent.path()).unwrap();
        for name in ["in", "out"] {
            let path = workspace.resolve(lent.path().join(name).to_str().unwrap()).unwrap();
            assert_eq!(text(&path), Err(WorkspaceErrorKind::Denied), "{name}");
        }
    }

    #[test]
    fn rejects_a_pipe_without_blocking() {
        let (folder, workspace) = folder();
        let made = Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
        assert!(made.success());
        let error = workspace.resolve("pipe").unwrap().open_file().unwrap_err();
        assert_eq!(error.message(), "`pipe` is a pipe or a device, not a file");
    }

    // PA1: a new folder at the path of a removed root is a different folder; the error says so.
    #[test]
    fn reports_a_removed_root() {
        let (folder, workspace) = folder();
        fs::remove_dir_all(folder.path()).unwrap();
        for _ in 0..2 {
            let at = |path: &str| workspace.resolve(path).unwrap();
            let new = at("new");
            let write = FileTransaction::new().write(new.clone(), Snapshot::absent(), "x");
            let errors = [
                at("src/main.rs").open_file().unwrap_err(),
                at(".").open_folder().unwrap_err(),
                at("src").open_folder().unwrap_err(),
                at("src").metadata().unwrap_err(),
                new.snapshot(9).unwrap_err(),
                write.commit(|| false).unwrap_err(),
            ];
            for error in errors {
                assert_eq!(error.kind(), WorkspaceErrorKind::Failed);
                assert!(error.message().ends_with("was removed since it was opened"), "{error}");
            }
            fs::create_dir_all(folder.path().join("src")).unwrap();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    // PA1: the path that rules and users see is that of the open folder.
    #[test]
    fn rejects_a_root_that_is_replaced_while_it_is_opened() {
        let top = TempDir::new().unwrap();
        let at = |name: &str| top.path().join(name);
        for name in ["a", "b"] {
            fs::create_dir(at(name)).unwrap();
        }
        symlink("a", at("link")).unwrap();
        for name in ["a", "link"] {
            let dir = || Dir::open_ambient_dir(at(name), ambient_authority()).unwrap();
            assert!(Root::from_dir(dir(), RootAccess::ReadWrite, at(name)).is_ok());
            let before = dir();
            fs::rename(at("a"), at("old")).unwrap();
            fs::rename(at("b"), at("a")).unwrap();
            fs::rename(at("old"), at("b")).unwrap();
            let error = Root::from_dir(before, RootAccess::ReadWrite, at(name)).err().unwrap();
            assert_eq!(error.to_string(), "the folder was replaced while it was opened");
        }
    }

    #[test]
    fn a_root_may_be_given_through_a_link() {
        let (folder, _) = folder();
        let names = TempDir::new().unwrap();
        let link = names.path().join("project");
        symlink(folder.path(), &link).unwrap();
        let workspace = Workspace::open([&link]).unwrap();
        let path = link.join("src/main.rs");
        check(&workspace, path.to_str().unwrap(), Ok("src/main.rs"));
        let path = folder.path().join("src/main.rs");
        check(&workspace, path.to_str().unwrap(), Ok("src/main.rs"));
    }
}
