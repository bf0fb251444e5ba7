//! Tests the store against damaged files and foreign folders.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::format::{MAX_BYTES, tests::rewrite_document};
use super::*;
use crate::name::ToolName;
use crate::tool::Resource;

/// A state folder and a workspace that last as long as the test.
struct StoreFixture {
    root: TempDir,
    workspace: PathBuf,
    folder: PathBuf,
}

impl StoreFixture {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let workspace = root.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        let folder = root.path().join("state/approvals");
        Self { root, workspace, folder }
    }

    /// A fixture in which `git_grant *` was approved.
    fn with_grant() -> Self {
        let world = Self::new();
        world.store().add_grants(vec![git_grant()], grant_source()).unwrap();
        assert!(is_granted(&world.store()));
        world
    }

    fn store(&self) -> GrantStore {
        GrantStore::open(&self.folder, &self.workspace)
    }

    fn file_path(&self) -> PathBuf {
        self.folder.join("approvals.json")
    }

    fn set_aside_files(&self) -> Vec<PathBuf> {
        let paths = fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.to_string_lossy().contains(".corrupt-")).collect()
    }
}

fn run_grantee() -> Grantee {
    Grantee::new(ToolName::from_static("run"), "run")
}

fn git_grant() -> Grant {
    Grant::new(run_grantee(), "git *")
}

fn grant_source() -> GrantSource {
    GrantSource::new("session", "call").with_responder("ada")
}

fn is_granted(store: &GrantStore) -> bool {
    store.load_grants().covers(&run_grantee(), &Resource::new("git status"))
}

fn load_warning(store: &GrantStore) -> String {
    store.load_grants().warning.unwrap_or_default()
}

// F76
#[test]
fn what_was_always_allowed_holds_for_a_new_store() {
    let world = StoreFixture::new();
    let first = world.store();
    let stored = first
        .add_grants(vec![git_grant(), Grant::new(run_grantee(), "ls")], grant_source())
        .unwrap();

    let second = world.store();
    let loaded = second.load_grants();
    assert_eq!(loaded.warning, None);
    assert_eq!(loaded.patterns(&run_grantee()).len(), 2);
    assert!(loaded.covers(&run_grantee(), &Resource::new("ls")));
    assert_eq!(second.list().unwrap().len(), 2);
    assert_eq!((stored[0].source.clone(), stored[0].id.len()), (grant_source(), 16));
}

#[test]
fn nothing_is_touched_before_the_first_grant() {
    let world = StoreFixture::new();
    let store = world.store();
    assert!(store.load_grants().grants.is_empty() && store.list().unwrap().is_empty());
    assert!(!store.revoke("0").unwrap());
    assert!(!world.folder.parent().unwrap().exists());
}

// F77
#[test]
fn the_same_grant_is_kept_once_under_its_first_id() {
    let world = StoreFixture::new();
    let first = world.store().add_grants(vec![git_grant(), git_grant()], grant_source()).unwrap();
    assert_eq!(first.len(), 1);
    // Often enough that an id could sort before the first one.
    for _ in 0..20 {
        let again =
            world.store().add_grants(vec![git_grant()], GrantSource::new("other", "")).unwrap();
        assert_eq!(first, again);
    }
    assert_eq!(world.store().list().unwrap(), first);
}

// AP6
#[test]
fn stores_see_each_other() {
    let world = StoreFixture::new();
    let (one, other) = (world.store(), world.store());
    assert!(!is_granted(&other));
    let stored = one.add_grants(vec![git_grant()], grant_source()).unwrap();
    assert!(is_granted(&other) && is_granted(&one));

    assert!(other.revoke(&stored[0].id).unwrap());
    assert!(!other.revoke(&stored[0].id).unwrap());
    assert!(!is_granted(&one) && !is_granted(&other));

    // The same length, and perhaps the same timestamp.
    for _ in 0..50 {
        let stored = one.add_grants(vec![git_grant()], grant_source()).unwrap();
        assert!(is_granted(&other));
        one.revoke(&stored[0].id).unwrap();
        assert!(!is_granted(&other));
    }

    one.add_grants(vec![git_grant()], grant_source()).unwrap();
    assert!(is_granted(&other));
    fs::remove_file(world.file_path()).unwrap();
    assert!(!is_granted(&other));
}

#[test]
fn what_did_not_change_is_not_read_again() {
    let world = StoreFixture::with_grant();
    let store = world.store();
    let (one, other) = (store.load_grants(), store.load_grants());
    assert!(std::sync::Arc::ptr_eq(&one.grants, &other.grants));
}

// AP5
#[test]
fn approvals_hold_in_their_workspace_only() {
    let world = StoreFixture::with_grant();
    let elsewhere = world.root.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let other = GrantStore::open(&world.folder, &elsewhere);
    assert!(!is_granted(&other) && load_warning(&other).is_empty());
    assert_eq!(other.list().unwrap().len(), 1);

    // Another folder takes the place of the one where it was approved.
    let old = world.store();
    fs::rename(&world.workspace, world.root.path().join("moved")).unwrap();
    assert!(!is_granted(&world.store()));
    fs::create_dir(&world.workspace).unwrap();
    assert!(!is_granted(&world.store()));
    assert!(load_warning(&old).contains("start a new session"));
    assert!(matches!(
        old.add_grants(vec![git_grant()], grant_source()),
        Err(PrivateFileError::WorkspaceReplaced { .. })
    ));
}

// AP3: a damaged file never allows more, and it is never lost.
#[test]
fn a_corrupt_file_is_set_aside() {
    let future = b"{\"version\":2}\n".to_vec();
    let text = fs::read_to_string(StoreFixture::with_grant().file_path()).unwrap();
    let edited = text.replace("git *", "*").into_bytes();
    let cut = text.as_bytes()[..text.len() - 1].to_vec();
    let zeroed = [&cut[..], &[0]].concat();
    let unknown = |body: &str| body.replace("\"pattern\"", "\"until\":1,\"pattern\"");
    let unknown = rewrite_document(&text, unknown).into_bytes();
    // A document of another process after the first one is refused.
    let mut double = text.clone().into_bytes();
    double.extend_from_within(..);
    let huge = vec![b' '; usize::try_from(MAX_BYTES).unwrap() + 1];
    for (bytes, why) in [
        (Vec::new(), "it is empty"),
        (edited, "its checksum does not match"),
        (cut, "it does not have the expected form"),
        (zeroed, "it does not have the expected form"),
        (b"{}".to_vec(), "it does not have the expected form"),
        (b"\xff\n".to_vec(), "it is not text"),
        (vec![0; 100], "it does not have the expected form"),
        (double, "its checksum does not match"),
        (unknown, "it does not have the expected form"),
        (future, "another version wrote it"),
        (huge, "it is too large"),
    ] {
        let world = StoreFixture::with_grant();
        let store = world.store();
        fs::write(world.file_path(), &bytes).unwrap();

        let loaded = store.load_grants();
        assert!(loaded.grants.is_empty());
        assert!(loaded.warning.is_some_and(|warning| warning.contains(why)), "{why}");
        let asides = world.set_aside_files();
        assert_eq!(asides.len(), 1);
        assert!(fs::read(&asides[0]).unwrap() == bytes, "{why}");
        assert!(!world.file_path().exists() && load_warning(&store).is_empty());

        // A writer finds the damaged file as well, and continues.
        fs::write(world.file_path(), &bytes).unwrap();
        #[cfg(unix)]
        set_mode(&world.file_path(), 0o600);
        store.add_grants(vec![git_grant()], grant_source()).unwrap();
        assert!(load_warning(&store).contains(why) && is_granted(&store));
        assert_eq!(world.set_aside_files().len(), 2);
    }
}

#[test]
fn a_list_of_a_corrupt_file_says_so() {
    let world = StoreFixture::with_grant();
    fs::write(world.file_path(), "").unwrap();
    assert!(matches!(world.store().list(), Err(PrivateFileError::Corrupt { .. })));
    assert!(world.store().list().unwrap().is_empty());
}

#[test]
fn what_does_not_fit_is_not_written() {
    let world = StoreFixture::with_grant();
    let long = "x".repeat(usize::try_from(MAX_BYTES).unwrap());
    let result = world.store().add_grants(vec![Grant::new(run_grantee(), long)], grant_source());
    assert!(matches!(result, Err(PrivateFileError::Full { .. })));
    assert!(is_granted(&world.store()));
}

// AP1
#[test]
fn a_store_that_tools_may_write_to_is_refused() {
    let world = StoreFixture::with_grant();
    let inside = [world.root.path().join("other"), world.root.path().join("state")];
    let beside = [world.workspace.clone(), world.folder.join("below")];
    for (roots, is_refused) in [(&inside, true), (&beside, false)] {
        let store = world.store().with_writable_roots(roots);
        assert_eq!(is_granted(&store), !is_refused);
        assert_eq!(store.add_grants(vec![git_grant()], grant_source()).is_err(), is_refused);
    }

    let fresh = StoreFixture::new();
    let store = fresh.store().with_writable_roots(&[fresh.root.path().to_owned()]);
    assert!(matches!(
        store.add_grants(vec![git_grant()], grant_source()),
        Err(PrivateFileError::Untrusted { .. })
    ));
    assert!(!fresh.folder.parent().unwrap().exists());
}

// AP1: a model that can write files cannot write itself a grant.
#[test]
fn a_store_in_the_workspace_is_refused() {
    let world = StoreFixture::with_grant();
    let forged = fs::read(world.file_path()).unwrap();
    let folder = world.workspace.join("state/approvals");
    let store = GrantStore::open(&folder, &world.workspace);
    assert!(matches!(
        store.add_grants(vec![git_grant()], grant_source()),
        Err(PrivateFileError::Untrusted { .. })
    ));
    assert!(!folder.exists());

    crate::private_file::location::create_private_folder(&folder).unwrap();
    let mut file =
        crate::private_file::location::create_new(&folder.join("approvals.json")).unwrap();
    std::io::Write::write_all(&mut file, &forged).unwrap();
    assert!(!is_granted(&store));
    assert!(store.list().is_err());
}

#[test]
fn a_warning_is_told_once() {
    let world = StoreFixture::with_grant();
    let store = world.store().with_writable_roots(&[world.root.path().to_owned()]);
    assert!(load_warning(&store).contains("tools may write to it"));
    assert!(load_warning(&store).is_empty() && !is_granted(&store));
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    fn is_root() -> bool {
        rustix::process::geteuid().is_root()
    }

    #[test]
    fn what_is_made_is_private() {
        let world = StoreFixture::with_grant();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&world.folder), 0o700);
        assert_eq!(mode(world.folder.parent().unwrap()), 0o700);
        for entry in fs::read_dir(&world.folder).unwrap() {
            assert_eq!(mode(&entry.unwrap().path()), 0o600);
        }
    }

    /// Moves `path` away and puts a link to it in its place.
    fn replace_by_link(path: &Path) {
        let moved = path.with_extension("moved");
        fs::rename(path, &moved).unwrap();
        symlink(&moved, path).unwrap();
    }

    fn replace_by_folder(path: &Path) {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    }

    // AP1
    #[test]
    fn what_others_could_have_written_is_refused() {
        type Spoil = fn(&StoreFixture);
        let mut cases: Vec<(&str, Spoil)> = vec![
            ("others may write", |it| set_mode(&it.file_path(), 0o602)),
            ("others may write", |it| set_mode(&it.file_path(), 0o620)),
            ("others may write", |it| set_mode(&it.folder, 0o777)),
            ("others may write", |it| set_mode(&it.folder, 0o720)),
            ("it is a link", |it| replace_by_link(&it.file_path())),
            ("it is a link", |it| replace_by_link(&it.folder)),
            ("it is not a file", |it| replace_by_folder(&it.file_path())),
            ("it is not a folder", |it| {
                fs::rename(&it.folder, it.root.path().join("moved")).unwrap();
                fs::write(&it.folder, "").unwrap();
            }),
        ];
        if is_root() {
            cases.push(("another user", |it| chown(it.file_path(), Some(1), None).unwrap()));
            cases.push(("another user", |it| chown(&it.folder, Some(1), None).unwrap()));
        }
        for (why, spoil) in cases {
            let world = StoreFixture::with_grant();
            let old = world.store();
            assert!(is_granted(&old));
            spoil(&world);
            for store in [old, world.store()] {
                let loaded = store.load_grants();
                assert!(loaded.grants.is_empty(), "{why}");
                assert!(loaded.warning.is_some_and(|it| it.contains(why)), "{why}");
                for result in [
                    store.add_grants(vec![git_grant()], grant_source()).map(drop),
                    store.list().map(drop),
                    store.revoke("0").map(drop),
                ] {
                    let Err(PrivateFileError::Untrusted { why: found, .. }) = result else {
                        panic!("{why}: {result:?}")
                    };
                    assert!(found.contains(why), "{found}");
                }
            }
        }
    }

    #[test]
    fn a_lock_that_others_could_hold_is_refused() {
        let world = StoreFixture::with_grant();
        set_mode(&world.folder.join("approvals.lock"), 0o666);
        let result = world.store().add_grants(vec![git_grant()], grant_source());
        assert!(matches!(result, Err(PrivateFileError::Untrusted { .. })));
    }

    // F77: when the new file cannot be written, the old one stays.
    #[test]
    fn a_folder_that_cannot_be_written_to_is_an_error() {
        if is_root() {
            return;
        }
        let world = StoreFixture::with_grant();
        set_mode(&world.folder, 0o500);
        let result = world.store().add_grants(vec![Grant::new(run_grantee(), "*")], grant_source());
        set_mode(&world.folder, 0o700);
        assert!(matches!(result, Err(PrivateFileError::Io { .. })));
        assert!(is_granted(&world.store()));
    }
}
