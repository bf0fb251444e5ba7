use crate::SqliteStore;

// F151, F152
#[tokio::test]
async fn keeps_the_promises_of_the_memory_store() {
    let folder = tempfile::tempdir().unwrap();
    tool_sdk_core::testing::check_memory_store(&SqliteStore::in_folder(folder.path())).await;
}

#[tokio::test]
async fn keeps_the_promises_of_the_session_store() {
    let folder = tempfile::tempdir().unwrap();
    tool_sdk_core::testing::check_session_store(&SqliteStore::in_folder(folder.path())).await;
}
