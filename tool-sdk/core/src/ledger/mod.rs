//! The ledger of mutations: what changed the world outside of the session, and how each change
//! went.
//!
//! The ledger is a file of JSON lines to which entries are only appended, each flushed to disk before
//! the change goes on. A [`Ledger`] counts equal mutations ([`evaluate_loop_guard`]) and takes each
//! transaction through its phases.
//!
//! **Invariant:** an entry that was acknowledged is never lost, and a line that cannot be read is
//! skipped, never removed.
//!
//! [`evaluate_loop_guard`]: Ledger::evaluate_loop_guard

mod file;
mod transaction;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::file::LedgerFile;
pub use self::transaction::{MutationPhase, MutationTransaction, TimelineEntry};
use crate::error::ToolError;
use crate::private_file::PrivateFileError;

/// One phase of a mutation: a line of the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LedgerEntry {
    /// When it was appended, in milliseconds since 1970.
    pub time_ms: u64,
    /// The transaction.
    pub transaction: String,
    /// The session that makes the mutation.
    pub session: String,
    /// What is changed and how, such as `deploy api to production`. Equal mutations have the same
    /// fingerprint.
    pub fingerprint: String,
    /// The phase.
    pub phase: MutationPhase,
    /// Facts about the phase.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

/// How often a mutation may be made in a window of time.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tool_sdk::LedgerLimits;
///
/// let mut limits = LedgerLimits::default();
/// assert_eq!((limits.threshold, limits.window), (3, Duration::from_secs(3600)));
/// limits.threshold = 2;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerLimits {
    /// The mutation that is blocked: with 3, the third equal one in the window.
    pub threshold: u32,
    /// The window.
    pub window: Duration,
}

impl Default for LedgerLimits {
    fn default() -> Self {
        Self { threshold: 3, window: Duration::from_hours(1) }
    }
}

/// Whether a mutation repeats too often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct MutationLoop {
    /// Whether the next equal mutation is blocked.
    pub blocked: bool,
    /// How many equal mutations were applied in the window.
    pub recent_count: u32,
    /// The mutation that is blocked.
    pub threshold: u32,
    /// The window in seconds.
    pub window_seconds: u64,
    /// When the last equal mutation was applied, in milliseconds since 1970.
    pub last_seen_ms: Option<u64>,
}

/// Undoes what a failed transaction has changed.
pub type RollbackHook = Arc<dyn Fn(&MutationTransaction) -> Result<(), ToolError> + Send + Sync>;

/// The mutations of a project. Cheap to clone; clones share the entries.
///
/// Several processes may append to one file; each call reads what the others appended.
///
/// # Examples
///
/// ```
/// use serde_json::Value;
/// use tool_sdk::{Ledger, MutationPhase};
///
/// let ledger = Ledger::default().with_rollback(|transaction| {
///     println!("undo {}", transaction.fingerprint);
///     Ok(())
/// });
/// let deploy = ledger.begin("s1", "deploy api", Value::Null)?;
/// ledger.record(&deploy.id, MutationPhase::Applied, Value::Null)?;
/// // A failure after a change calls the rollback hook.
/// let failed = ledger.record(&deploy.id, MutationPhase::Failed, Value::Null)?;
/// assert_eq!(failed.phase(), MutationPhase::RolledBack);
/// # Ok::<(), tool_sdk::ToolError>(())
/// ```
#[derive(Clone, Default)]
pub struct Ledger(Arc<LedgerInner>);

#[derive(Default)]
struct LedgerInner {
    state: Mutex<LedgerState>,
    limits: LedgerLimits,
    rollback: Option<RollbackHook>,
}

/// The entries that were read so far, and the file that they come from.
#[derive(Default)]
struct LedgerState {
    entries: Vec<LedgerEntry>,
    file: Option<LedgerFile>,
    /// How many lines of the file could not be read.
    skipped: usize,
}

impl Ledger {
    /// Opens the ledger in the file `path`, which is created with mode `0600` by the first entry.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read, or when others may write to it.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, PrivateFileError> {
        let mut state =
            LedgerState { file: Some(LedgerFile::new(path.into())), ..Default::default() };
        state.read_new()?;
        Ok(Self(Arc::new(LedgerInner { state: Mutex::new(state), ..Default::default() })))
    }

    /// Sets how often a mutation may be made.
    #[must_use]
    pub fn with_limits(self, limits: LedgerLimits) -> Self {
        self.rebuild(|inner| inner.limits = limits)
    }

    /// Sets what undoes the changes of a transaction that fails after it was applied.
    #[must_use]
    pub fn with_rollback(
        self,
        rollback: impl Fn(&MutationTransaction) -> Result<(), ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.rebuild(|inner| inner.rollback = Some(Arc::new(rollback)))
    }

    fn rebuild(self, change: impl FnOnce(&mut LedgerInner)) -> Self {
        let mut inner = match Arc::try_unwrap(self.0) {
            Ok(inner) => inner,
            Err(shared) => LedgerInner {
                state: Mutex::new(std::mem::take(&mut *lock(&shared.state))),
                limits: shared.limits,
                rollback: shared.rollback.clone(),
            },
        };
        change(&mut inner);
        Self(Arc::new(inner))
    }

    /// Begins a transaction in the phase `plan`.
    ///
    /// # Errors
    ///
    /// Fails with kind `denied` when equal mutations were applied too often; the transaction is
    /// recorded as `blocked` then. Fails with kind `unavailable` when the ledger cannot be written.
    pub fn begin(
        &self,
        session: &str,
        fingerprint: &str,
        details: Value,
    ) -> Result<MutationTransaction, ToolError> {
        let mut state = lock(&self.0.state);
        let id = new_id()?;
        let entry = |phase| LedgerEntry {
            time_ms: now_ms(),
            transaction: id.clone(),
            session: session.to_owned(),
            fingerprint: fingerprint.to_owned(),
            phase,
            details: details.clone(),
        };
        // Under one lock, so that two processes do not both make the last mutation that is allowed.
        let found = state.append(|entries| {
            let found = evaluate(entries, fingerprint, &self.0.limits, now_ms());
            let phase = if found.blocked { MutationPhase::Blocked } else { MutationPhase::Plan };
            Ok((entry(phase), found))
        })?;
        if found.blocked {
            let MutationLoop { recent_count, window_seconds, .. } = found;
            return Err(ToolError::denied(format_args!(
                "the mutation `{fingerprint}` was made {recent_count} times in the last \
                 {window_seconds} s and is blocked"
            ))
            .hint("find out why it did not have its effect before you make it again"));
        }
        state.find(&id)
    }

    /// Takes a transaction to another phase.
    ///
    /// When a transaction fails after it was applied, the rollback hook is called, and the phase
    /// `rolled_back` or `rollback_failed` follows.
    ///
    /// # Errors
    ///
    /// Fails with kind `not_found` for an unknown transaction, with kind `conflict` when the phase
    /// cannot follow, and with kind `unavailable` when the ledger cannot be written. The
    /// transaction is unchanged then.
    pub fn record(
        &self,
        id: &str,
        phase: MutationPhase,
        details: Value,
    ) -> Result<MutationTransaction, ToolError> {
        if !phase.is_for_callers() {
            return Err(ToolError::invalid_args(format_args!(
                "the phase `{phase}` is only set by the ledger"
            )));
        }
        let (transaction, was_applied) = self.append_phase(id, phase, details)?;
        match &self.0.rollback {
            Some(rollback) if was_applied && phase == MutationPhase::Failed => {
                // Without the lock: the hook may use the ledger.
                let undone = rollback(&transaction);
                let (phase, details) = match undone {
                    Ok(()) => (MutationPhase::RolledBack, Value::Null),
                    Err(error) => (MutationPhase::RollbackFailed, error.message().into()),
                };
                Ok(self.append_phase(id, phase, details)?.0)
            }
            _ => Ok(transaction),
        }
    }

    /// Returns the transaction after the phase, and whether it had been applied before.
    fn append_phase(
        &self,
        id: &str,
        phase: MutationPhase,
        details: Value,
    ) -> Result<(MutationTransaction, bool), ToolError> {
        let mut state = lock(&self.0.state);
        let was_applied = state.append(|entries| {
            let transaction = MutationTransaction::from_entries(entries, id)?;
            transaction.check_next(phase)?;
            let entry = LedgerEntry {
                time_ms: now_ms(),
                transaction: id.to_owned(),
                session: transaction.session.clone(),
                fingerprint: transaction.fingerprint.clone(),
                phase,
                details,
            };
            Ok((entry, transaction.was_applied()))
        })?;
        Ok((state.find(id)?, was_applied))
    }

    /// Returns whether the next mutation with this fingerprint would be blocked. Dry runs do not
    /// count.
    ///
    /// # Errors
    ///
    /// Fails with kind `unavailable` when the ledger cannot be read.
    pub fn evaluate_loop_guard(&self, fingerprint: &str) -> Result<MutationLoop, ToolError> {
        let mut state = lock(&self.0.state);
        state.read_new().map_err(unavailable)?;
        Ok(evaluate(&state.entries, fingerprint, &self.0.limits, now_ms()))
    }

    /// Returns a transaction with its timeline.
    ///
    /// # Errors
    ///
    /// Fails with kind `not_found` for an unknown transaction.
    pub fn transaction(&self, id: &str) -> Result<MutationTransaction, ToolError> {
        let mut state = lock(&self.0.state);
        state.read_new().map_err(unavailable)?;
        state.find(id)
    }

    /// Returns the last `limit` transactions, the newest first.
    ///
    /// # Errors
    ///
    /// Fails with kind `unavailable` when the ledger cannot be read.
    pub fn transactions(&self, limit: usize) -> Result<Vec<MutationTransaction>, ToolError> {
        let mut state = lock(&self.0.state);
        state.read_new().map_err(unavailable)?;
        let mut ids: Vec<&str> = Vec::new();
        for entry in state.entries.iter().rev() {
            if !ids.contains(&&*entry.transaction) {
                ids.push(&entry.transaction);
            }
            if ids.len() == limit {
                break;
            }
        }
        ids.iter().map(|id| MutationTransaction::from_entries(&state.entries, id)).collect()
    }

    /// Returns how many lines of the file could not be read. They are skipped and stay in the file.
    #[must_use]
    pub fn skipped_lines(&self) -> usize {
        lock(&self.0.state).skipped
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("entries", &lock(&self.0.state).entries.len()).finish()
    }
}

impl LedgerState {
    /// Reads what other processes appended.
    fn read_new(&mut self) -> Result<(), PrivateFileError> {
        match &mut self.file {
            Some(file) => file.read_new(&mut self.entries, &mut self.skipped),
            None => Ok(()),
        }
    }

    /// Appends the entry that `make` makes of all entries so far, while no other process appends.
    fn append<T>(
        &mut self,
        make: impl FnOnce(&[LedgerEntry]) -> Result<(LedgerEntry, T), ToolError>,
    ) -> Result<T, ToolError> {
        let Some(file) = &mut self.file else {
            let (entry, value) = make(&self.entries)?;
            self.entries.push(entry);
            return Ok(value);
        };
        let writer = file.lock().map_err(unavailable)?;
        file.read_new(&mut self.entries, &mut self.skipped).map_err(unavailable)?;
        let (entry, value) = make(&self.entries)?;
        file.append(&writer, &entry).map_err(unavailable)?;
        file.read_new(&mut self.entries, &mut self.skipped).map_err(unavailable)?;
        Ok(value)
    }

    fn find(&self, id: &str) -> Result<MutationTransaction, ToolError> {
        MutationTransaction::from_entries(&self.entries, id)
    }
}

/// Counts the transactions with this fingerprint that were applied in the window.
fn evaluate(
    entries: &[LedgerEntry],
    fingerprint: &str,
    limits: &LedgerLimits,
    now_ms: u64,
) -> MutationLoop {
    let window_ms = u64::try_from(limits.window.as_millis()).unwrap_or(u64::MAX);
    let start = now_ms.saturating_sub(window_ms);
    let applied = entries
        .iter()
        .filter(|entry| entry.phase == MutationPhase::Applied && entry.fingerprint == fingerprint);
    let last_seen_ms = applied.clone().map(|entry| entry.time_ms).max();
    let recent = applied.filter(|entry| entry.time_ms >= start).count();
    let recent_count = u32::try_from(recent).unwrap_or(u32::MAX);
    MutationLoop {
        blocked: recent_count.saturating_add(1) >= limits.threshold,
        recent_count,
        threshold: limits.threshold,
        window_seconds: limits.window.as_secs(),
        last_seen_ms,
    }
}

fn lock(state: &Mutex<LedgerState>) -> MutexGuard<'_, LedgerState> {
    // A poisoned lock still guards whole entries: the file is read again.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unavailable(error: PrivateFileError) -> ToolError {
    ToolError::unavailable(format_args!("the ledger cannot be used: {error}")).source(error)
}

fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn new_id() -> Result<String, ToolError> {
    let bits = getrandom::u64();
    let bits = bits
        .map_err(|error| ToolError::internal("the system has no random numbers").source(error))?;
    Ok(format!("m{bits:016x}"))
}

#[cfg(test)]
mod tests;
