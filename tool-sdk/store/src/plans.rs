//! The plans and todo lists of sessions on SQLite.

use std::io;

use rusqlite::{Connection, OptionalExtension as _, params};
use tool_sdk_core::{PlanStore, SessionPlan};

use crate::SqliteStore;
use crate::memory::{invalid, now_millis};

impl PlanStore for SqliteStore {
    async fn load_plan(&self, key: &str) -> io::Result<SessionPlan> {
        let key = key.to_owned();
        // Each call asks for the plan of its session; that alone creates no database.
        let loaded = self.state.read_existing(move |connection| select_plan(connection, &key));
        Ok(loaded.await?.flatten().unwrap_or_default())
    }

    async fn save_plan(&self, key: &str, mut plan: SessionPlan) -> io::Result<Option<u64>> {
        let key = key.to_owned();
        let saved = self.state.write(move |transaction| {
            let stored = select_plan(transaction, &key)?.map_or(0, |stored| stored.version);
            if stored != plan.version {
                return Ok(None);
            }
            plan.version += 1;
            let json = serde_json::to_string(&plan).map_err(|error| invalid(0, error))?;
            transaction.execute(
                "INSERT INTO plans (key, updated, plan) VALUES (?1, ?2, ?3)
                 ON CONFLICT (key) DO UPDATE SET updated = excluded.updated, plan = excluded.plan",
                params![key, now_millis(), json],
            )?;
            Ok(Some(plan.version))
        });
        Ok(saved.await?)
    }

    async fn remove_plan(&self, key: &str) -> io::Result<()> {
        let key = key.to_owned();
        let removed = self.state.write(move |transaction| {
            transaction.execute("DELETE FROM plans WHERE key = ?1", [key])
        });
        removed.await?;
        Ok(())
    }
}

fn select_plan(connection: &Connection, key: &str) -> rusqlite::Result<Option<SessionPlan>> {
    let sql = "SELECT plan FROM plans WHERE key = ?1";
    let json: Option<String> = connection.query_row(sql, [key], |row| row.get(0)).optional()?;
    json.map(|json| serde_json::from_str(&json).map_err(|error| invalid(0, error))).transpose()
}
