//! The conversations of agents: what was said, called and answered, so that they can be continued.
//!
//! An agent writes its transcript to a [`ConversationStore`] after each prompt;
//! [`MemoryConversationStore`] keeps the last conversations until the program ends.
//!
//! **Invariant:** nothing here knows the format of a transcript, apart from the keys whose values a
//! provider signs.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::redact::{Redactor, is_secret_key};
use crate::session_store::unix_millis;

/// What a list shows of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "agents construct summaries")]
pub struct ConversationSummary {
    /// The id of the conversation.
    pub id: String,
    /// The folder that the conversation is about, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// A title for people, such as the beginning of the first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How many entries the transcript has.
    pub entries: u64,
    /// When the conversation last changed.
    #[serde(with = "unix_millis", rename = "changed_at_ms")]
    pub changed_at: SystemTime,
}

/// A conversation with its transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "agents construct records")]
pub struct ConversationRecord {
    /// What a list shows of it.
    #[serde(flatten)]
    pub summary: ConversationSummary,
    /// The transcript as JSON, from which the agent continues.
    pub transcript: Value,
}

impl ConversationRecord {
    /// Redacts the secrets of title and transcript.
    ///
    /// Signatures and encrypted reasoning stay as they are, because a provider refuses changed ones.
    /// Reasoning that is signed and has a secret is removed: providers accept a message without it.
    /// The content of attachments stays as well.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use tool_sdk::Redactor;
    /// use tool_sdk::history::{ConversationRecord, ConversationSummary};
    ///
    /// let summary = ConversationSummary {
    ///     id: "c1".to_owned(),
    ///     folder: None,
    ///     title: None,
    ///     entries: 1,
    ///     changed_at: SystemTime::now(),
    /// };
    /// let transcript = serde_json::json!({ "entries": [{ "text": "log in with correct horse" }] });
    /// let mut record = ConversationRecord { summary, transcript };
    /// record.redact(&Redactor::new(["correct horse"]));
    /// assert_eq!(record.transcript["entries"][0]["text"], "log in with [redacted]");
    /// ```
    pub fn redact(&mut self, redactor: &Redactor) {
        if let Some(title) = &mut self.summary.title {
            redactor.redact_in_place(title);
        }
        redact_transcript(&mut self.transcript, redactor);
    }
}

/// The keys whose values a provider signs or encrypts.
const SIGNED_KEYS: [&str; 4] =
    ["encrypted_content", "signature", "thoughtSignature", "thought_signature"];

fn redact_transcript(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::Array(items) => items.retain_mut(|item| {
            let signed = is_signed_reasoning(item).then(|| item.clone());
            redact_transcript(item, redactor);
            signed.is_none_or(|signed| signed == *item)
        }),
        Value::Object(members) => {
            for (key, member) in members.iter_mut() {
                if SIGNED_KEYS.contains(&key.as_str()) {
                    continue;
                }
                if is_secret_key(key) {
                    // Also masks values that look like no secret.
                    let mut keyed = serde_json::json!({ key: member.take() });
                    redactor.redact_value(&mut keyed);
                    *member = keyed[key].take();
                }
                redact_transcript(member, redactor);
            }
        }
        text => redactor.redact_value(text),
    }
}

/// Returns whether the value is reasoning whose text the provider has signed.
fn is_signed_reasoning(value: &Value) -> bool {
    value["type"] == "thinking" && value.get("signature").is_some()
}

/// Which conversations a list has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a query has these parts")]
pub struct ConversationQuery {
    /// Only those about this folder.
    pub folder: Option<String>,
    /// How many of the newest are skipped.
    pub skipped: usize,
    /// How many are returned at most.
    pub limit: usize,
}

impl Default for ConversationQuery {
    /// All conversations.
    fn default() -> Self {
        Self { folder: None, skipped: 0, limit: usize::MAX }
    }
}

/// Keeps conversations, each as a whole.
///
/// # Examples
///
/// ```
/// use std::time::SystemTime;
/// use tool_sdk::history::{
///     ConversationQuery, ConversationRecord, ConversationStore, ConversationSummary,
///     MemoryConversationStore,
/// };
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = MemoryConversationStore::default();
/// let summary = ConversationSummary {
///     id: "c1".to_owned(),
///     folder: Some("/home/ada/garden".to_owned()),
///     title: Some("Where do roses grow?".to_owned()),
///     entries: 2,
///     changed_at: SystemTime::now(),
/// };
/// let transcript = serde_json::json!({ "entries": [] });
/// store.save_conversation(ConversationRecord { summary, transcript }).await?;
/// let listed = store.list_conversations(&ConversationQuery::default()).await?;
/// assert_eq!(listed[0].id, "c1");
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait ConversationStore: Send + Sync + 'static {
    /// Saves a conversation, in place of what is kept of it.
    fn save_conversation(
        &self,
        record: ConversationRecord,
    ) -> impl Future<Output = io::Result<()>> + Send;

    /// Adds a conversation unless one with this id is kept. Returns whether it was added.
    fn add_conversation(
        &self,
        record: ConversationRecord,
    ) -> impl Future<Output = io::Result<bool>> + Send;

    /// Returns the conversation with this id.
    fn find_conversation(
        &self,
        id: &str,
    ) -> impl Future<Output = io::Result<Option<ConversationRecord>>> + Send;

    /// Returns conversations without their transcripts, the one that changed last first.
    fn list_conversations(
        &self,
        query: &ConversationQuery,
    ) -> impl Future<Output = io::Result<Vec<ConversationSummary>>> + Send;

    /// Removes the conversations that last changed before `time`. Returns how many.
    fn remove_conversations_before(
        &self,
        time: SystemTime,
    ) -> impl Future<Output = io::Result<u64>> + Send;
}

/// A shared store is a store.
impl<S: ConversationStore> ConversationStore for Arc<S> {
    fn save_conversation(
        &self,
        record: ConversationRecord,
    ) -> impl Future<Output = io::Result<()>> + Send {
        S::save_conversation(self, record)
    }

    fn add_conversation(
        &self,
        record: ConversationRecord,
    ) -> impl Future<Output = io::Result<bool>> + Send {
        S::add_conversation(self, record)
    }

    fn find_conversation(
        &self,
        id: &str,
    ) -> impl Future<Output = io::Result<Option<ConversationRecord>>> + Send {
        S::find_conversation(self, id)
    }

    fn list_conversations(
        &self,
        query: &ConversationQuery,
    ) -> impl Future<Output = io::Result<Vec<ConversationSummary>>> + Send {
        S::list_conversations(self, query)
    }

    fn remove_conversations_before(
        &self,
        time: SystemTime,
    ) -> impl Future<Output = io::Result<u64>> + Send {
        S::remove_conversations_before(self, time)
    }
}

/// A [`ConversationStore`] behind a pointer; implemented for every store.
#[doc(hidden)]
pub trait DynConversationStore: Send + Sync + 'static {
    fn save_conversation(&self, record: ConversationRecord) -> BoxFuture<'_, io::Result<()>>;
    fn add_conversation(&self, record: ConversationRecord) -> BoxFuture<'_, io::Result<bool>>;
    fn find_conversation<'a>(
        &'a self,
        id: &'a str,
    ) -> BoxFuture<'a, io::Result<Option<ConversationRecord>>>;
    fn list_conversations<'a>(
        &'a self,
        query: &'a ConversationQuery,
    ) -> BoxFuture<'a, io::Result<Vec<ConversationSummary>>>;
    fn remove_conversations_before(&self, time: SystemTime) -> BoxFuture<'_, io::Result<u64>>;
}

impl<S: ConversationStore> DynConversationStore for S {
    fn save_conversation(&self, record: ConversationRecord) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(ConversationStore::save_conversation(self, record))
    }

    fn add_conversation(&self, record: ConversationRecord) -> BoxFuture<'_, io::Result<bool>> {
        Box::pin(ConversationStore::add_conversation(self, record))
    }

    fn find_conversation<'a>(
        &'a self,
        id: &'a str,
    ) -> BoxFuture<'a, io::Result<Option<ConversationRecord>>> {
        Box::pin(ConversationStore::find_conversation(self, id))
    }

    fn list_conversations<'a>(
        &'a self,
        query: &'a ConversationQuery,
    ) -> BoxFuture<'a, io::Result<Vec<ConversationSummary>>> {
        Box::pin(ConversationStore::list_conversations(self, query))
    }

    fn remove_conversations_before(&self, time: SystemTime) -> BoxFuture<'_, io::Result<u64>> {
        Box::pin(ConversationStore::remove_conversations_before(self, time))
    }
}

/// Keeps the last conversations in memory.
pub struct MemoryConversationStore {
    /// The one that was saved last is at the end.
    conversations: Mutex<VecDeque<ConversationRecord>>,
    max_conversations: usize,
}

impl MemoryConversationStore {
    /// How many conversations are kept by default.
    pub const DEFAULT_MAX_CONVERSATIONS: usize = 100;

    /// Returns a store that keeps the last `max_conversations` conversations, at least one.
    #[must_use]
    pub fn new(max_conversations: usize) -> Self {
        Self { conversations: Mutex::default(), max_conversations: max_conversations.max(1) }
    }

    /// A poisoned lock still guards whole records: no operation panics half-way.
    fn lock_conversations(&self) -> MutexGuard<'_, VecDeque<ConversationRecord>> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a conversation in place of the oldest one if the store is full.
    fn push(&self, conversations: &mut VecDeque<ConversationRecord>, record: ConversationRecord) {
        if conversations.len() == self.max_conversations {
            conversations.pop_front();
        }
        conversations.push_back(record);
    }
}

impl Default for MemoryConversationStore {
    fn default() -> Self {
        Self::new(Self::DEFAULT_MAX_CONVERSATIONS)
    }
}

impl fmt::Debug for MemoryConversationStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.lock_conversations().len();
        f.debug_struct("MemoryConversationStore").field("conversations", &count).finish()
    }
}

impl ConversationStore for MemoryConversationStore {
    async fn save_conversation(&self, record: ConversationRecord) -> io::Result<()> {
        let mut conversations = self.lock_conversations();
        conversations.retain(|it| it.summary.id != record.summary.id);
        self.push(&mut conversations, record);
        Ok(())
    }

    async fn add_conversation(&self, record: ConversationRecord) -> io::Result<bool> {
        let mut conversations = self.lock_conversations();
        if conversations.iter().any(|it| it.summary.id == record.summary.id) {
            return Ok(false);
        }
        self.push(&mut conversations, record);
        Ok(true)
    }

    async fn find_conversation(&self, id: &str) -> io::Result<Option<ConversationRecord>> {
        let conversations = self.lock_conversations();
        Ok(conversations.iter().find(|it| it.summary.id == id).cloned())
    }

    async fn list_conversations(
        &self,
        query: &ConversationQuery,
    ) -> io::Result<Vec<ConversationSummary>> {
        let conversations = self.lock_conversations();
        let mut found: Vec<&ConversationSummary> = conversations
            .iter()
            .rev()
            .map(|it| &it.summary)
            .filter(|it| query.folder.is_none() || it.folder == query.folder)
            .collect();
        found.sort_by_key(|it| std::cmp::Reverse(it.changed_at));
        Ok(found.into_iter().skip(query.skipped).take(query.limit).cloned().collect())
    }

    async fn remove_conversations_before(&self, time: SystemTime) -> io::Result<u64> {
        let mut conversations = self.lock_conversations();
        let before = conversations.len();
        conversations.retain(|it| it.summary.changed_at >= time);
        Ok((before - conversations.len()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use serde_json::json;

    use super::{
        ConversationQuery, ConversationRecord, ConversationStore as _, ConversationSummary,
        MemoryConversationStore, Redactor,
    };

    const SECRET: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";

    fn record(id: &str, transcript: serde_json::Value) -> ConversationRecord {
        let summary = ConversationSummary {
            id: id.to_owned(),
            folder: None,
            title: Some(format!("my token is {SECRET}")),
            entries: 1,
            changed_at: SystemTime::UNIX_EPOCH,
        };
        ConversationRecord { summary, transcript }
    }

    #[tokio::test]
    async fn keeps_the_last_conversations() {
        let store = MemoryConversationStore::new(2);
        for id in ["a", "b", "a", "c"] {
            store.save_conversation(record(id, json!({}))).await.unwrap();
        }
        let listed = store.list_conversations(&ConversationQuery::default()).await.unwrap();
        assert_eq!(listed.iter().map(|it| &*it.id).collect::<Vec<_>>(), ["c", "a"]);
    }

    #[cfg(feature = "testing")]
    #[tokio::test]
    async fn the_store_in_memory_keeps_the_promises() {
        crate::testing::check_conversation_store(&MemoryConversationStore::default()).await;
    }

    // What a provider has signed goes back unchanged, or not at all.
    #[test]
    fn redacts_texts_and_leaves_signatures() {
        let signature = format!("sig{SECRET}");
        let thinking =
            |text: &str| json!({ "type": "thinking", "thinking": text, "signature": signature });
        let mut stored = record(
            "a",
            json!({ "entries": [
                { "type": "user", "text": format!("use {SECRET}") },
                { "type": "model", "message": { "raw": { "content": [
                    thinking("harmless"),
                    thinking(SECRET),
                    { "type": "tool_use", "input": { "password": "hunter2", "host": "h" } },
                    { "type": "reasoning", "encrypted_content": SECRET },
                ] } } },
            ] }),
        );
        stored.redact(&Redactor::default());
        assert_eq!(stored.summary.title.as_deref(), Some("my token is [redacted]"));
        assert_eq!(
            stored.transcript,
            json!({ "entries": [
                { "type": "user", "text": "use [redacted]" },
                { "type": "model", "message": { "raw": { "content": [
                    thinking("harmless"),
                    { "type": "tool_use", "input": { "password": "[redacted]", "host": "h" } },
                    { "type": "reasoning", "encrypted_content": SECRET },
                ] } } },
            ] })
        );
    }
}
