//! The check of conversation stores, for the stores of the SDK and of hosts.

use std::io;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::conversation_store::{
    ConversationQuery, ConversationRecord, ConversationStore, ConversationSummary,
};

/// Checks what a [`ConversationStore`] promises, on an empty store.
///
/// # Panics
///
/// Panics when the store breaks a promise.
///
/// # Examples
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = tool_sdk::history::MemoryConversationStore::default();
/// tool_sdk::testing::check_conversation_store(&store).await;
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn check_conversation_store(store: &impl ConversationStore) {
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let record = |id: &str, folder: Option<&str>, seconds| ConversationRecord {
        summary: ConversationSummary {
            id: id.to_owned(),
            folder: folder.map(str::to_owned),
            title: Some(format!("about {id} \u{1f339}")),
            entries: 1,
            changed_at: at(seconds),
        },
        transcript: json!({ "entries": [{ "type": "user", "text": id }] }),
    };
    assert_eq!(ok(store.find_conversation("a").await), None);
    let first = record("a", Some("/garden"), 1);
    ok(store.save_conversation(first.clone()).await);
    ok(store.save_conversation(record("b", Some("/garden"), 3)).await);
    ok(store.save_conversation(record("c", None, 2)).await);
    assert_eq!(ok(store.find_conversation("a").await), Some(first.clone()));

    let list = async |folder: Option<&str>, skipped, limit| {
        let query = ConversationQuery { folder: folder.map(str::to_owned), skipped, limit };
        let found = ok(store.list_conversations(&query).await);
        found.into_iter().map(|it| it.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None, 0, usize::MAX).await, ["b", "c", "a"], "the last change comes first");
    assert_eq!(list(None, 1, 1).await, ["c"], "a page");
    assert_eq!(list(Some("/garden"), 0, 9).await, ["b", "a"]);
    assert_eq!(list(Some("/gard"), 0, 9).await, [""; 0], "a folder is no prefix");

    let later = ConversationRecord {
        summary: ConversationSummary { entries: 2, title: None, ..record("a", None, 4).summary },
        transcript: json!({ "entries": [1, 2], "summary": null }),
    };
    assert!(!ok(store.add_conversation(later.clone()).await), "an id that is kept is not added");
    assert_eq!(ok(store.find_conversation("a").await), Some(first));
    ok(store.save_conversation(later.clone()).await);
    assert_eq!(
        ok(store.find_conversation("a").await).as_ref(),
        Some(&later),
        "the last one counts"
    );
    let all = ok(store.list_conversations(&ConversationQuery::default()).await);
    assert_eq!((all.len(), &all[0]), (3, &later.summary));
    assert!(ok(store.add_conversation(record("d", None, 0)).await));

    assert_eq!(ok(store.remove_conversations_before(at(3)).await), 2, "by the last change");
    assert_eq!(list(None, 0, usize::MAX).await, ["a", "b"]);
    assert_eq!(ok(store.find_conversation("c").await), None);
}

fn ok<T>(result: io::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("the store failed: {error}"))
}
