//! Tests of the secret store: where values come from, and who may read the file.

use std::path::Path;

use super::{SecretFile, SecretSource, SecretStore, SecretValue};
use crate::context::Session;
use crate::error::{ErrorKind, ToolError};

const VALUE: &str = "correct horse";

fn session(store: &SecretStore) -> Session {
    Session::new("s1").with_service(store.clone())
}

fn stored(folder: &Path) -> SecretStore {
    SecretStore::default().with_file(SecretFile::open(folder.join("secrets"), folder))
}

async fn value(store: &SecretStore, session: &Session, name: &str) -> Option<(String, bool)> {
    let found = store.find(session, name).await.unwrap()?;
    Some((found.value.expose().to_owned(), found.is_secret))
}

struct ScriptedSource(Result<Option<&'static str>, &'static str>);

impl SecretSource for ScriptedSource {
    fn describe(&self) -> String {
        "a script".to_owned()
    }

    async fn find_secret(&self, _: &str) -> Result<Option<SecretValue>, ToolError> {
        let found = self.0.map_err(ToolError::config)?;
        Ok(found.map(SecretValue::new))
    }
}

// F154
#[tokio::test]
async fn the_session_is_asked_first_then_the_file_then_the_sources() {
    let folder = tempfile::tempdir().unwrap();
    let store = stored(folder.path()).with_source(ScriptedSource(Ok(Some("from the source"))));
    let (one, other) = (session(&store), session(&store).with_id("s2"));
    assert_eq!(value(&store, &one, "KEY").await, Some(("from the source".to_owned(), true)));
    store.set_for_project("KEY", SecretValue::new("from the file"), false).await.unwrap();
    assert_eq!(value(&store, &one, "KEY").await, Some(("from the file".to_owned(), false)));
    store.set_for_session(&one, "KEY", SecretValue::new(VALUE), true).unwrap();
    assert_eq!(value(&store, &one, "KEY").await, Some((VALUE.to_owned(), true)));
    assert_eq!(value(&store, &other, "KEY").await, Some(("from the file".to_owned(), false)));
    assert!(!format!("{store:?} {:?}", store.find(&one, "KEY").await).contains(VALUE));

    let failing = SecretStore::default().with_source(ScriptedSource(Err("locked")));
    let error = failing.find(&one.with_id("s3"), "KEY").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

// F154
#[tokio::test]
async fn names_and_short_secrets_are_checked() {
    let (store, session) = (SecretStore::default(), Session::new("s1"));
    for name in ["", "1A", "A B", "A\u{430}", "../x", &"A".repeat(101)] {
        let error = store.find(&session, name).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgs, "{name}");
    }
    let short = || SecretValue::new("1234567");
    assert!(store.set_for_session(&session, "PIN", short(), true).is_err());
    assert!(store.set_for_session(&session, "PIN", short(), false).is_ok());
    let error = store.set_for_project("KEY", SecretValue::new(VALUE), true).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

// F154
#[cfg(unix)]
#[tokio::test]
async fn the_file_is_private() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let store = stored(folder.path());
    store.set_for_project("KEY", SecretValue::new(VALUE), true).await.unwrap();
    let path = SecretFile::open(folder.path().join("secrets"), folder.path()).path();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));

    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let error = store.find(&session(&store), "KEY").await.unwrap_err();
    assert!(error.message().contains("others may read it"), "{error}");

    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&path, format!("{{\"KEY\": \"{VALUE}\"")).unwrap();
    let error = store.find(&session(&store), "KEY").await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains(VALUE), "the error does not quote the file");
    // A broken file is not overwritten.
    assert!(store.set_for_project("B", SecretValue::new(VALUE), true).await.is_err());

    // A folder that tools may write to is refused.
    let inside = SecretFile::open(folder.path().join("secrets"), folder.path())
        .with_writable_roots(&[folder.path().to_owned()]);
    assert!(inside.list().await.is_err());
}

#[tokio::test]
async fn variables_of_the_file_are_listed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = stored(folder.path());
    let file = SecretFile::open(folder.path().join("secrets"), folder.path());
    assert!(file.list().await.unwrap().is_empty());
    store.set_for_project("B", SecretValue::new(VALUE), true).await.unwrap();
    store.set_for_project("A", SecretValue::new("x"), false).await.unwrap();
    assert_eq!(file.list().await.unwrap(), [("A".to_owned(), false), ("B".to_owned(), true)]);
    assert!(file.remove("B").await.unwrap());
    assert!(!file.remove("B").await.unwrap());
    assert_eq!(file.list().await.unwrap(), [("A".to_owned(), false)]);
}
