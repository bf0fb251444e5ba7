//! The conversations of agents on SQLite, in the database of the history.

use std::io;
use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use tool_sdk_core::{
    ConversationQuery, ConversationRecord, ConversationStore, ConversationSummary,
};

use crate::SqliteStore;
use crate::memory::{from_millis, invalid, to_limit, to_millis, to_sql_number};
use crate::sessions::limit_size;

/// The columns of a summary.
pub(crate) const SUMMARY_COLUMNS: &str = "id, folder, title, entries, changed";

/// What replaces a conversation that is kept.
const REPLACE: &str = "ON CONFLICT (id) DO UPDATE SET folder = excluded.folder,
    title = excluded.title, entries = excluded.entries, changed = excluded.changed,
    bytes = excluded.bytes, transcript = excluded.transcript";

impl ConversationStore for SqliteStore {
    async fn save_conversation(&self, record: ConversationRecord) -> io::Result<()> {
        let max_bytes = self.max_history_bytes;
        let saved = self.history.write(move |transaction| {
            limit_size(transaction, max_bytes)?;
            insert(transaction, &record, REPLACE)
        });
        saved.await?;
        Ok(())
    }

    async fn add_conversation(&self, record: ConversationRecord) -> io::Result<bool> {
        let added = self
            .history
            .write(move |transaction| insert(transaction, &record, "ON CONFLICT (id) DO NOTHING"));
        Ok(added.await? > 0)
    }

    async fn find_conversation(&self, id: &str) -> io::Result<Option<ConversationRecord>> {
        let id = id.to_owned();
        let found = self.history.read_existing(move |connection| {
            let sql =
                format!("SELECT {SUMMARY_COLUMNS}, transcript FROM conversations WHERE id = ?1");
            connection.query_row(&sql, [id], read_conversation).optional()
        });
        Ok(found.await?.flatten())
    }

    async fn list_conversations(
        &self,
        query: &ConversationQuery,
    ) -> io::Result<Vec<ConversationSummary>> {
        let query = query.clone();
        let listed =
            self.history.read_existing(move |connection| select_summaries(connection, &query));
        Ok(listed.await?.unwrap_or_default())
    }

    async fn remove_conversations_before(&self, time: SystemTime) -> io::Result<u64> {
        let time = to_millis(time);
        let removed = self.history.write(move |transaction| {
            transaction.execute("DELETE FROM conversations WHERE changed < ?1", [time])
        });
        let removed = removed.await?;
        self.shrink_history().await?;
        Ok(removed as u64)
    }
}

/// Inserts a conversation, and does as `conflict` says if its id is kept. Returns how many rows changed.
fn insert(
    transaction: &Transaction<'_>,
    record: &ConversationRecord,
    conflict: &str,
) -> rusqlite::Result<usize> {
    let ConversationSummary { id, folder, title, entries, changed_at } = &record.summary;
    let transcript = record.transcript.to_string();
    let sql = format!(
        "INSERT INTO conversations ({SUMMARY_COLUMNS}, bytes, transcript)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) {conflict}"
    );
    let (entries, changed) = (to_sql_number(*entries), to_millis(*changed_at));
    let bytes = to_limit(transcript.len());
    transaction.execute(&sql, params![id, folder, title, entries, changed, bytes, transcript])
}

fn select_summaries(
    connection: &Connection,
    query: &ConversationQuery,
) -> rusqlite::Result<Vec<ConversationSummary>> {
    let sql = format!(
        "SELECT {SUMMARY_COLUMNS} FROM conversations WHERE ?1 IS NULL OR folder = ?1
         ORDER BY changed DESC, id DESC LIMIT ?2 OFFSET ?3"
    );
    let (limit, skipped) = (to_limit(query.limit), to_limit(query.skipped));
    let mut statement = connection.prepare(&sql)?;
    statement.query_map(params![query.folder, limit, skipped], read_summary)?.collect()
}

/// Reads the first columns, which are [`SUMMARY_COLUMNS`].
fn read_summary(row: &Row<'_>) -> rusqlite::Result<ConversationSummary> {
    Ok(ConversationSummary {
        id: row.get(0)?,
        folder: row.get(1)?,
        title: row.get(2)?,
        entries: row.get::<_, i64>(3)?.try_into().unwrap_or_default(),
        changed_at: from_millis(row.get(4)?),
    })
}

/// Reads [`SUMMARY_COLUMNS`] and the transcript.
pub(crate) fn read_conversation(row: &Row<'_>) -> rusqlite::Result<ConversationRecord> {
    let transcript: String = row.get(5)?;
    let transcript = serde_json::from_str(&transcript).map_err(|error| invalid(5, error))?;
    Ok(ConversationRecord { summary: read_summary(row)?, transcript })
}
