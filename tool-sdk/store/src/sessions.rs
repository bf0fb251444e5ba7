//! The history of calls on SQLite.

use std::io;
use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use tool_sdk_core::{CallRecord, EventRecord, SessionStore, SessionSummary};

use crate::SqliteStore;
use crate::memory::{from_millis, invalid, to_millis};

/// Which part of the calls, or of the conversations, is removed when the history exceeds its size
/// limit: one of this many.
const REMOVED_PART: i64 = 10;

impl SessionStore for SqliteStore {
    async fn save_call(&self, record: CallRecord) -> io::Result<()> {
        let max_bytes = self.max_history_bytes;
        let saved = self.history.write(move |transaction| {
            limit_size(transaction, max_bytes)?;
            let json = serde_json::to_string(&record).map_err(|error| invalid(4, error))?;
            let started = to_millis(record.started_at);
            transaction.execute(
                "INSERT INTO calls (call, session, user, started, record)
                 VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (call) DO UPDATE SET session = excluded.session, user = excluded.user,
                    started = excluded.started, record = excluded.record",
                params![record.call, record.session, record.user, started, json],
            )
        });
        saved.await?;
        Ok(())
    }

    async fn find_call(&self, call: &str) -> io::Result<Option<CallRecord>> {
        let call = call.to_owned();
        let found = self.history.read(move |connection| {
            let sql = "SELECT record FROM calls WHERE call = ?1";
            connection.query_row(sql, [call], read_record).optional()
        });
        Ok(found.await?)
    }

    async fn list_calls(&self, session: &str) -> io::Result<Vec<CallRecord>> {
        let session = session.to_owned();
        let listed = self.history.read(move |connection| {
            let sql = "SELECT record FROM calls WHERE session = ?1 ORDER BY started, rowid";
            connection.prepare(sql)?.query_map([session], read_record)?.collect()
        });
        Ok(listed.await?)
    }

    async fn remove_session(&self, session: &str) -> io::Result<()> {
        let session = session.to_owned();
        let removed = self.history.write(move |transaction| {
            transaction.execute("DELETE FROM calls WHERE session = ?1", [session])
        });
        removed.await?;
        self.shrink_history().await
    }

    async fn save_event(&self, record: EventRecord) -> io::Result<()> {
        let saved = self.history.write(move |transaction| {
            // The call may have been removed since.
            transaction.execute(
                "INSERT INTO events (call, at, event)
                 SELECT call, ?2, ?3 FROM calls WHERE call = ?1",
                params![record.call, to_millis(record.at), record.event.to_string()],
            )
        });
        saved.await?;
        Ok(())
    }

    async fn list_events(&self, call: &str) -> io::Result<Vec<EventRecord>> {
        let call = call.to_owned();
        let listed = self.history.read(move |connection| {
            let mut statement = connection.prepare(
                "SELECT e.call, c.session, e.at, e.event
                 FROM events AS e JOIN calls AS c ON c.call = e.call
                 WHERE e.call = ?1 ORDER BY e.number",
            )?;
            statement.query_map([call], read_event)?.collect()
        });
        Ok(listed.await?)
    }

    async fn summarize_sessions(&self) -> io::Result<Vec<SessionSummary>> {
        Ok(self.history.read(select_sessions).await?)
    }

    async fn remove_calls_before(&self, time: SystemTime) -> io::Result<u64> {
        let time = to_millis(time);
        let removed = self.history.write(move |transaction| {
            transaction.execute("DELETE FROM calls WHERE started < ?1", [time])
        });
        let removed = removed.await?;
        self.shrink_history().await?;
        Ok(removed as u64)
    }
}

impl SqliteStore {
    /// Gives pages that are no longer used back to the file system.
    pub(crate) async fn shrink_history(&self) -> io::Result<()> {
        let shrunk =
            self.history.read(|connection| connection.execute_batch("PRAGMA incremental_vacuum"));
        Ok(shrunk.await?)
    }
}

/// Removes the oldest conversations, if they take more than half of `max_bytes`, else the oldest calls, if
/// the database has more than `max_bytes` in use.
pub(crate) fn limit_size(transaction: &Transaction<'_>, max_bytes: u64) -> rusqlite::Result<()> {
    let number = |pragma: &str| -> rusqlite::Result<u64> {
        let value: i64 = transaction.pragma_query_value(None, pragma, |row| row.get(0))?;
        Ok(value.try_into().unwrap_or_default())
    };
    let pages = number("page_count")?.saturating_sub(number("freelist_count")?);
    if pages.saturating_mul(number("page_size")?) <= max_bytes {
        return Ok(());
    }
    let sql = "SELECT coalesce(sum(bytes), 0) FROM conversations";
    let of_conversations: i64 = transaction.query_row(sql, [], |row| row.get(0))?;
    if of_conversations.unsigned_abs() > max_bytes / 2 {
        transaction.execute(
            "DELETE FROM conversations WHERE id IN (
                SELECT id FROM conversations ORDER BY changed
                LIMIT 1 + (SELECT count(*) FROM conversations) / ?1)",
            [REMOVED_PART],
        )?;
        return Ok(());
    }
    transaction.execute(
        "DELETE FROM calls WHERE call IN (
            SELECT call FROM calls ORDER BY started
            LIMIT 1 + (SELECT count(*) FROM calls) / ?1)",
        [REMOVED_PART],
    )?;
    Ok(())
}

fn select_sessions(connection: &Connection) -> rusqlite::Result<Vec<SessionSummary>> {
    let mut statement = connection.prepare(
        "SELECT c.session, count(*), min(c.started), max(c.started),
            (SELECT user FROM calls AS last WHERE last.session = c.session
             ORDER BY last.started DESC, last.rowid DESC LIMIT 1)
         FROM calls AS c GROUP BY c.session ORDER BY max(c.started) DESC",
    )?;
    let read = |row: &Row<'_>| {
        Ok(SessionSummary {
            session: row.get(0)?,
            calls: row.get::<_, i64>(1)?.try_into().unwrap_or_default(),
            first_call: from_millis(row.get(2)?),
            last_call: from_millis(row.get(3)?),
            user: row.get(4)?,
        })
    };
    statement.query_map([], read)?.collect()
}

fn read_record(row: &Row<'_>) -> rusqlite::Result<CallRecord> {
    let json: String = row.get(0)?;
    serde_json::from_str(&json).map_err(|error| invalid(0, error))
}

fn read_event(row: &Row<'_>) -> rusqlite::Result<EventRecord> {
    let json: String = row.get(3)?;
    Ok(EventRecord {
        call: row.get(0)?,
        session: row.get(1)?,
        at: from_millis(row.get(2)?),
        event: serde_json::from_str(&json).map_err(|error| invalid(3, error))?,
    })
}
