//! Everything that the databases hold, as JSON values in pages.
//!
//! **Invariant:** a page is read in one short transaction, so an export never keeps others waiting.

use std::io;

use rusqlite::{Connection, Row};
use serde_json::{Value, json};
use tool_sdk_core::internal::rfc3339;

use crate::SqliteStore;
use crate::conversations::{SUMMARY_COLUMNS, read_conversation};
use crate::memory::{COLUMNS, from_millis, invalid, read_note};

/// How many entries a page has at most.
const PAGE: i64 = 500;

/// Where an export goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportCursor {
    table: ExportTable,
    after: i64,
}

/// The tables in the order of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ExportTable {
    #[default]
    Notes,
    Plans,
    Calls,
    Events,
    Conversations,
}

impl ExportTable {
    const fn next(self) -> Option<Self> {
        match self {
            Self::Notes => Some(Self::Plans),
            Self::Plans => Some(Self::Calls),
            Self::Calls => Some(Self::Events),
            Self::Events => Some(Self::Conversations),
            Self::Conversations => None,
        }
    }
}

impl SqliteStore {
    /// Returns the next entries of all users as JSON objects whose `type` is `note`, `plan`,
    /// `call`, `event` or `conversation`, and the cursor for those after them. Databases that do not exist are not created.
    ///
    /// # Errors
    ///
    /// Fails when a database cannot be opened.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::store::{ExportCursor, SqliteStore};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// # let folder = std::env::temp_dir().join("no-such-state");
    /// let store = SqliteStore::in_folder(folder);
    /// let mut cursor = Some(ExportCursor::default());
    /// while let Some(at) = cursor {
    ///     let (entries, next) = store.export_page(at).await?;
    ///     entries.iter().for_each(|entry| println!("{entry}"));
    ///     cursor = next;
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// # })
    /// # .map_err(Box::<dyn std::error::Error>::from)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn export_page(
        &self,
        cursor: ExportCursor,
    ) -> io::Result<(Vec<Value>, Option<ExportCursor>)> {
        let database = match cursor.table {
            ExportTable::Notes | ExportTable::Plans => &self.state,
            ExportTable::Calls | ExportTable::Events | ExportTable::Conversations => &self.history,
        };
        let next_table = cursor.table.next().map(|table| ExportCursor { table, after: 0 });
        if !database.exists()? {
            return Ok((Vec::new(), next_table));
        }
        let rows = database.read(move |connection| select_page(connection, cursor)).await?;
        let last = rows.last().map(|(number, _)| *number);
        let is_full = i64::try_from(rows.len()).unwrap_or(i64::MAX) == PAGE;
        let next = match last.filter(|_| is_full) {
            Some(after) => Some(ExportCursor { after, ..cursor }),
            None => next_table,
        };
        Ok((rows.into_iter().map(|(_, value)| value).collect(), next))
    }
}

/// Reads a row: its number and the entry.
type ReadEntry = fn(&Row<'_>) -> rusqlite::Result<(i64, Value)>;

fn select_page(
    connection: &Connection,
    cursor: ExportCursor,
) -> rusqlite::Result<Vec<(i64, Value)>> {
    let (sql, read): (String, ReadEntry) = match cursor.table {
        ExportTable::Notes => (
            format!(
                "SELECT {COLUMNS}, n.number, n.owner FROM notes AS n
                 WHERE n.number > ?1 ORDER BY n.number LIMIT ?2"
            ),
            read_exported_note,
        ),
        ExportTable::Plans => (
            "SELECT rowid, plan, key FROM plans WHERE rowid > ?1 ORDER BY rowid LIMIT ?2"
                .to_owned(),
            read_exported_plan,
        ),
        ExportTable::Calls => (
            "SELECT rowid, record FROM calls WHERE rowid > ?1 ORDER BY rowid LIMIT ?2".to_owned(),
            |row| read_json(row, "call"),
        ),
        ExportTable::Events => (
            "SELECT number, event, call, at FROM events WHERE number > ?1 ORDER BY number LIMIT ?2"
                .to_owned(),
            read_exported_event,
        ),
        ExportTable::Conversations => (
            format!(
                "SELECT {SUMMARY_COLUMNS}, transcript, rowid FROM conversations
                 WHERE rowid > ?1 ORDER BY rowid LIMIT ?2"
            ),
            read_exported_conversation,
        ),
    };
    connection.prepare(&sql)?.query_map([cursor.after, PAGE], read)?.collect()
}

fn read_exported_note(row: &Row<'_>) -> rusqlite::Result<(i64, Value)> {
    let mut note = serde_json::to_value(read_note(row)?).map_err(|error| invalid(0, error))?;
    let (number, owner): (i64, String) = (row.get(9)?, row.get(10)?);
    note["type"] = "note".into();
    note["user"] = owner.strip_prefix("u/").into();
    note["project"] = row.get::<_, Option<String>>(4)?.into();
    Ok((number, note))
}

fn read_exported_plan(row: &Row<'_>) -> rusqlite::Result<(i64, Value)> {
    let (number, mut plan) = read_json(row, "plan")?;
    plan["key"] = row.get::<_, String>(2)?.into();
    Ok((number, plan))
}

fn read_exported_event(row: &Row<'_>) -> rusqlite::Result<(i64, Value)> {
    let (number, event) = read_json(row, "event")?;
    let (call, at): (String, i64) = (row.get(2)?, row.get(3)?);
    let entry = json!({
        "type": "event", "call": call, "at": rfc3339(from_millis(at)), "event": event,
    });
    Ok((number, entry))
}

fn read_exported_conversation(row: &Row<'_>) -> rusqlite::Result<(i64, Value)> {
    let record = read_conversation(row)?;
    let changed_at = rfc3339(record.summary.changed_at);
    let entry = json!({
        "type": "conversation",
        "id": record.summary.id,
        "folder": record.summary.folder,
        "title": record.summary.title,
        "changed_at": changed_at,
        "transcript": record.transcript,
    });
    Ok((row.get(6)?, entry))
}

/// Reads a number and a JSON text; an object without a type gets `kind`.
fn read_json(row: &Row<'_>, kind: &str) -> rusqlite::Result<(i64, Value)> {
    let text: String = row.get(1)?;
    let mut value: Value = serde_json::from_str(&text).map_err(|error| invalid(1, error))?;
    if let Some(object) = value.as_object_mut() {
        object.entry("type").or_insert_with(|| kind.into());
    }
    Ok((row.get(0)?, value))
}
