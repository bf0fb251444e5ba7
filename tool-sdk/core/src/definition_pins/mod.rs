//! Pins: the definition of each tool as it was when its user let it run.
//!
//! A server can change a tool at any time. So the whole definition of the tool, and the transport
//! of the server, are stored when a call is first let through. While both stay the same, rules and
//! grants apply; when they change, the approval prompt shows the difference first.
//!
//! What the host pins applies to all users who have not run the tool; what one of several users let
//! run applies to that user alone, and the next difference is shown against it.
//!
//! Several processes may share a folder: each sees what the others pinned at its next decision.
//!
//! **Invariant:** if the stored pins cannot be read, every tool is unseen.

mod file;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use similar::TextDiff;

use self::file::{LoadedPins, PinFile};
use crate::private_file::PrivateFileError;
use crate::private_file::version::FileVersion;
use crate::sha256::sha256_hex;

/// The most that is shown of a difference, and of a line of it, in bytes. Models see less of a
/// description.
const MAX_DIFF_BYTES: usize = 256 << 10;
const MAX_LINE_BYTES: usize = 16 << 10;

/// The time limit for computing a minimal difference.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// The digest of a forgotten tool; no tool has it.
const FORGOTTEN: &str = "";

/// The pinned definitions of tools of other servers.
///
/// Clones share them. In memory they last as long as the process, which starts with every tool
/// unseen.
///
/// # Examples
///
/// ```
/// use tool_sdk_core::ToolPins;
///
/// let pins = ToolPins::in_folder("/var/lib/shelf/mcp");
/// # let _ = pins;
/// ```
#[derive(Clone, Debug, Default)]
pub struct ToolPins(Arc<PinStore>);

#[derive(Debug, Default)]
struct PinStore {
    file: Option<PinFile>,
    cache: Mutex<PinCache>,
}

/// The pins as read last, with the version of the file.
#[derive(Debug, Default)]
struct PinCache {
    pinned: PinnedTools,
    version: Option<FileVersion>,
    /// The last error of the file; logged once until it changes.
    last_error: Option<String>,
}

impl PinCache {
    /// Reads the file if it changed since the last time.
    fn refresh(&mut self, folder: &PinFile) {
        match folder.read_if_changed(self.version.as_ref()) {
            Ok(found) => {
                found.into_iter().for_each(|found| self.replace(found));
                self.last_error = None;
            }
            Err(error) => {
                self.replace(LoadedPins::default());
                let trouble = Some(error.to_string());
                if self.last_error != trouble {
                    tracing::warn!(%error, "cannot read the pinned tool definitions; every tool counts as unseen");
                }
                self.last_error = trouble;
            }
        }
    }

    fn replace(&mut self, found: LoadedPins) {
        let before = std::mem::replace(&mut self.pinned, found.pinned);
        self.pinned.merge_change_counts(&before);
        self.version = found.version;
    }
}

/// The definitions that the host and each user pinned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PinnedTools {
    servers: PinsByServer,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    users: BTreeMap<String, PinsByServer>,
    /// How often each pinned tool changed when it was shown or run. It only grows, so that earlier
    /// approvals stay void even if the tool changes back (MC2).
    #[serde(default, rename = "turns", skip_serializing_if = "BTreeMap::is_empty")]
    change_counts: BTreeMap<String, BTreeMap<String, u64>>,
    /// The digest of each tool after its last change. Files of older versions lack it.
    #[serde(default, rename = "last", skip_serializing_if = "BTreeMap::is_empty")]
    last_digests: BTreeMap<String, BTreeMap<String, String>>,
}

/// Definitions by server and tool.
type PinsByServer = BTreeMap<String, BTreeMap<String, Value>>;

/// A server, and a tool of it by the server's own name.
type ToolId<'a> = (&'a str, &'a str);

impl PinnedTools {
    /// Returns the definition that this user pinned, or else the host's.
    fn pinned_for(&self, user: Option<&str>, (server, tool): ToolId<'_>) -> Option<&Value> {
        let own = user.and_then(|user| self.users.get(user)?.get(server)?.get(tool));
        own.or_else(|| self.servers.get(server)?.get(tool))
    }

    /// Whether a pinned tool has another definition now.
    fn has_changed(&self, (server, tool): ToolId<'_>, now: &DefinitionSnapshot) -> bool {
        match self.last_digests.get(server).and_then(|tools| tools.get(tool)) {
            Some(last) => *last != now.digest,
            None => {
                let all = std::iter::once(&self.servers).chain(self.users.values());
                let mut seen = all.filter_map(|servers| servers.get(server)?.get(tool));
                seen.any(|before| *before != now.description)
            }
        }
    }

    /// Returns the number of changes, including the current one if it is not recorded yet.
    fn change_count(&self, (server, tool): ToolId<'_>, now: &DefinitionSnapshot) -> u64 {
        let turn = self.change_counts.get(server).and_then(|tools| tools.get(tool)).copied();
        turn.unwrap_or_default() + u64::from(self.has_changed((server, tool), now))
    }

    /// Returns the revision of a tool: its digest, and how often it changed.
    fn revision(&self, id: ToolId<'_>, now: &DefinitionSnapshot) -> String {
        format_revision(&now.digest, self.change_count(id, now))
    }

    /// Merges change counts: a file without them does not undo changes.
    fn merge_change_counts(&mut self, known: &Self) {
        let said = |seen: &Self, server: &str, tool: &str| {
            let last = seen.last_digests.get(server)?.get(tool)?;
            Some((
                seen.change_counts.get(server).and_then(|tools| tools.get(tool)).copied(),
                last.clone(),
            ))
        };
        for (server, tool) in known
            .last_digests
            .iter()
            .flat_map(|(server, tools)| tools.keys().map(move |tool| (server, tool)))
        {
            let (mine, theirs) = (said(self, server, tool), said(known, server, tool));
            if let Some((turn, last)) = theirs
                && mine.is_none_or(|(mine, _)| turn > mine)
            {
                self.last_digests.entry(server.clone()).or_default().insert(tool.clone(), last);
                let turns = turn.map(|turn| (tool.clone(), turn));
                self.change_counts.entry(server.clone()).or_default().extend(turns);
            }
        }
    }

    /// Records the current definition of a tool.
    fn record_change(&mut self, (server, tool): ToolId<'_>, now: &DefinitionSnapshot) {
        let turn = self.change_count((server, tool), now);
        if turn > 0 {
            self.change_counts.entry(server.to_owned()).or_default().insert(tool.to_owned(), turn);
        }
        let last = self.last_digests.entry(server.to_owned()).or_default();
        last.insert(tool.to_owned(), now.digest.clone());
    }
}

/// Formats a revision.
fn format_revision(digest: &str, turn: u64) -> String {
    match turn {
        0 => digest.to_owned(),
        turn => format!("{digest}.{turn}"),
    }
}

/// The whole definition of a tool, with the transport of its server.
#[derive(Clone, Debug, PartialEq)]
pub struct DefinitionSnapshot {
    description: Value,
    /// A hash of the definition; grants are bound to it.
    digest: String,
}

impl DefinitionSnapshot {
    /// Returns the definition that `description` holds, with what identifies its source.
    #[must_use]
    pub fn new(description: Value) -> Self {
        let digest = sha256_hex(to_sorted_lines(&description));
        Self { description, digest }
    }

    /// Returns the definition as readable text.
    #[must_use]
    pub fn to_text(&self) -> String {
        to_sorted_lines(&self.description)
    }
}

/// The difference between the current and the pinned definition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "only crates of the SDK use it")]
pub struct DefinitionDiff {
    /// Whether no definition was pinned.
    pub is_first: bool,
    /// A unified diff.
    pub diff: String,
}

impl ToolPins {
    /// Keeps pins for the lifetime of the process.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Keeps pins in a folder that only the user may write to.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        let folder = Some(PinFile::new(folder.into()));
        Self(Arc::new(PinStore { file: folder, cache: Mutex::default() }))
    }

    /// Rejects a folder inside one of these roots, into which tools may write. Call it before anything
    /// else.
    #[must_use]
    pub fn not_inside(mut self, roots: &[PathBuf]) -> Self {
        if let Some(folder) = Arc::get_mut(&mut self.0).and_then(|kept| kept.file.as_mut()) {
            folder.not_inside(roots);
        }
        self
    }

    /// Whether the definition is the one that this user pinned, or else the host.
    #[doc(hidden)]
    pub fn is_pinned(&self, user: Option<&str>, id: ToolId<'_>, now: &DefinitionSnapshot) -> bool {
        self.read_current(|seen| seen.pinned_for(user, id) == Some(&now.description))
    }

    /// Whether this user, or else the host, pinned any definition of the tool.
    #[doc(hidden)]
    pub fn has_pin(&self, user: Option<&str>, id: ToolId<'_>) -> bool {
        self.read_current(|seen| seen.pinned_for(user, id).is_some())
    }

    /// Returns the difference to the definition that this user pinned, or else the host; `None` if it is
    /// the same.
    #[doc(hidden)]
    pub fn diff_since_pinned(
        &self,
        user: Option<&str>,
        id: ToolId<'_>,
        now: &DefinitionSnapshot,
    ) -> Option<DefinitionDiff> {
        if self.is_pinned(user, id, now) {
            return None;
        }
        let before = self.read_current(|seen| seen.pinned_for(user, id).cloned());
        let (old, new) = (
            before.as_ref().map(to_sorted_lines).unwrap_or_default(),
            to_sorted_lines(&now.description),
        );
        let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(&old, &new);
        let old_name = if before.is_some() { "seen before" } else { "never seen before" };
        let diff = diff.unified_diff().context_radius(2).header(old_name, "now").to_string();
        Some(DefinitionDiff { is_first: before.is_none(), diff: truncate_diff(&diff) })
    }

    /// Returns the revision of a tool, which differs from all earlier ones.
    #[doc(hidden)]
    #[must_use]
    pub fn revision(&self, id: ToolId<'_>, now: &DefinitionSnapshot) -> String {
        self.read_current(|seen| seen.revision(id, now))
    }

    /// Whether an approval of a tool is void, because the tool changed since. `is_tool` says of a
    /// server and its own name of a tool whether they are that tool. `definition` is what the grant
    /// names: the revision and, behind a blank, a hash.
    #[doc(hidden)]
    pub fn is_approval_void(&self, is_tool: impl Fn(&str, &str) -> bool, definition: &str) -> bool {
        let revision = definition.split(' ').next().unwrap_or_default();
        self.read_current(|seen| {
            let all = seen.last_digests.iter().flat_map(|(server, tools)| {
                tools.iter().map(move |(tool, last)| (server.as_str(), tool.as_str(), last))
            });
            let mut own = all.filter(|(server, tool, _)| is_tool(server, tool)).peekable();
            own.peek().is_some()
                && own.all(|(server, tool, last)| {
                    let turns =
                        seen.change_counts.get(server).and_then(|tools| tools.get(tool)).copied();
                    format_revision(last, turns.unwrap_or_default()) != revision
                })
        })
    }

    /// Whether this is still the revision of the tool, according to the last read of the file.
    #[doc(hidden)]
    pub fn is_cached_revision(
        &self,
        revision: &str,
        id: ToolId<'_>,
        now: &DefinitionSnapshot,
    ) -> bool {
        self.lock_cache().pinned.revision(id, now) == revision
    }

    /// Records the definition for which a call is being decided: approvals of earlier definitions are
    /// void from now on.
    #[doc(hidden)]
    pub fn record_shown(&self, id: ToolId<'_>, now: &DefinitionSnapshot) {
        if !self.read_current(|seen| seen.has_changed(id, now)) {
            return;
        }
        if let Err(error) = self.update(|seen| seen.record_change(id, now)) {
            tracing::warn!(%error, "cannot store that a tool of another server changed");
            self.lock_cache().pinned.record_change(id, now);
        }
    }

    /// Records that a call runs. Pins the definition for the user who approved it in a prompt; without a
    /// prompt only a change is recorded.
    #[doc(hidden)]
    pub fn record_run(
        &self,
        asked: Option<Option<&str>>,
        id: ToolId<'_>,
        now: &DefinitionSnapshot,
    ) -> Result<(), PrivateFileError> {
        let (is_seen, has_turned) = self.read_current(|seen| {
            let is_seen =
                asked.is_none_or(|user| seen.pinned_for(user, id) == Some(&now.description));
            (is_seen, seen.has_changed(id, now))
        });
        match asked {
            Some(user) if !is_seen || has_turned => self.pin_tool(user, id, now),
            None if has_turned => self.update(|seen| seen.record_change(id, now)),
            _ => Ok(()),
        }
    }

    /// Pins the definition for a user, or for the host if there is none.
    #[doc(hidden)]
    pub fn pin_tool(
        &self,
        user: Option<&str>,
        (server, tool): ToolId<'_>,
        now: &DefinitionSnapshot,
    ) -> Result<(), PrivateFileError> {
        self.update(|seen| {
            seen.record_change((server, tool), now);
            let servers = match user {
                Some(user) => seen.users.entry(user.to_owned()).or_default(),
                None => &mut seen.servers,
            };
            let tools = servers.entry(server.to_owned()).or_default();
            tools.insert(tool.to_owned(), now.description.clone());
        })
    }

    /// Forgets the tools of a server, for all users. Approvals of them are void, even if the same
    /// server is added again with the same tools.
    ///
    /// # Errors
    ///
    /// Fails when the pins cannot be stored.
    pub fn forget_server(&self, server: &str) -> Result<(), PrivateFileError> {
        self.update(|seen| {
            let users = seen.users.values_mut();
            let gone = std::iter::once(&mut seen.servers).chain(users);
            let gone: Vec<_> = gone.filter_map(|servers| servers.remove(server)).collect();
            // A tool that comes back counts as changed.
            let last = seen.last_digests.entry(server.to_owned()).or_default();
            let tools = gone.into_iter().flat_map(BTreeMap::into_keys);
            last.extend(tools.map(|tool| (tool, FORGOTTEN.to_owned())));
            last.values_mut().for_each(|digest| FORGOTTEN.clone_into(digest));
        })
    }

    fn update(&self, change: impl FnOnce(&mut PinnedTools)) -> Result<(), PrivateFileError> {
        let mut known = self.lock_cache();
        match &self.0.file {
            // Start from the file, to keep the pins of other processes.
            Some(folder) => {
                let found = folder.update_locked(|seen| {
                    seen.merge_change_counts(&known.pinned);
                    change(seen);
                })?;
                known.replace(found);
            }
            None => change(&mut known.pinned),
        }
        Ok(())
    }

    /// Reads the current pins, including those of other processes.
    fn read_current<T>(&self, look: impl FnOnce(&PinnedTools) -> T) -> T {
        let mut known = self.lock_cache();
        self.0.file.iter().for_each(|folder| known.refresh(folder));
        look(&known.pinned)
    }

    fn lock_cache(&self) -> MutexGuard<'_, PinCache> {
        self.0.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Truncates a diff and its lines, with a note about the rest. Lines of a diff never start with `[`.
fn truncate_diff(diff: &str) -> String {
    let mut shown = String::with_capacity(diff.len().min(MAX_DIFF_BYTES));
    let mut lines = diff.split_inclusive('\n');
    for line in lines.by_ref() {
        let end = line.floor_char_boundary(MAX_LINE_BYTES);
        if shown.len() + end > MAX_DIFF_BYTES {
            let rest = line.len() + lines.map(str::len).sum::<usize>();
            shown.push_str(&format!("[{rest} more bytes of this are left out]\n"));
            break;
        }
        shown.push_str(&line[..end]);
        if end < line.len() {
            shown.push_str(&format!(
                "\n[{} more bytes of this line are left out]\n",
                line.len() - end
            ));
        }
    }
    shown
}

/// Formats a value for a line diff: one entry a line, keys sorted.
fn to_sorted_lines(value: &Value) -> String {
    format!("{:#}\n", sort_keys(value))
}

fn sort_keys(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<&String, &Value> = members.iter().collect();
            members.into_iter().map(|(key, one)| (key.clone(), sort_keys(one))).collect()
        }
        Value::Array(items) => items.iter().map(sort_keys).collect(),
        other => other.clone(),
    }
}
