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
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use similar::TextDiff;

use self::file::{Folder, Found};
#[cfg(feature = "cli")]
use super::name::is_called;
use super::remote::RemoteTool;
use crate::store::StoreError;
use crate::store::version::Version;

/// The most that is shown of a difference, and of a line of it, in bytes. Models see less of a
/// description.
const MOST_SHOWN: usize = 256 << 10;
const MOST_OF_LINE: usize = 16 << 10;

/// The time limit for computing a minimal difference.
const PATIENCE: Duration = Duration::from_millis(500);

/// The digest of a forgotten tool; no tool has it.
const GONE: &str = "";

/// The pinned definitions of tools of other servers.
///
/// Clones share them. In memory they last as long as the process, which starts with every tool
/// unseen.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Pipeline, Registry, mcp};
///
/// let pipeline = Pipeline::new(Registry::default());
/// let pins = mcp::Pins::in_folder("/var/lib/shelf/mcp");
/// let servers = mcp::Upstreams::of(&pipeline).with_pins(pins);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pins(Arc<Kept>);

#[derive(Debug, Default)]
struct Kept {
    folder: Option<Folder>,
    known: Mutex<Known>,
}

/// The pins as read last, with the version of the file.
#[derive(Debug, Default)]
struct Known {
    seen: Seen,
    version: Option<Version>,
    /// The last error of the file; logged once until it changes.
    trouble: Option<String>,
}

impl Known {
    /// Reads the file if it changed since the last time.
    fn refresh(&mut self, folder: &Folder) {
        match folder.newer(self.version.as_ref()) {
            Ok(found) => {
                found.into_iter().for_each(|found| self.take(found));
                self.trouble = None;
            }
            Err(error) => {
                self.take(Found::default());
                let trouble = Some(error.to_string());
                if self.trouble != trouble {
                    tracing::warn!(%error, "cannot read the pinned tool definitions; every tool counts as unseen");
                }
                self.trouble = trouble;
            }
        }
    }

    fn take(&mut self, found: Found) {
        let before = std::mem::replace(&mut self.seen, found.seen);
        self.seen.turn_as(&before);
        self.version = found.version;
    }
}

/// The definitions that the host and each user pinned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Seen {
    servers: Servers,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    users: BTreeMap<String, Servers>,
    /// How often each pinned tool changed when it was shown or run. It only grows, so that earlier
    /// approvals stay void even if the tool changes back (MC2).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    turns: BTreeMap<String, BTreeMap<String, u64>>,
    /// The digest of each tool after its last change. Files of older versions lack it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    last: BTreeMap<String, BTreeMap<String, String>>,
}

/// Definitions by server and tool.
type Servers = BTreeMap<String, BTreeMap<String, Value>>;

/// A server, and a tool of it by the server's own name.
type Id<'a> = (&'a str, &'a str);

impl Seen {
    /// Returns the definition that this user pinned, or else the host's.
    fn by(&self, user: Option<&str>, (server, tool): Id<'_>) -> Option<&Value> {
        let own = user.and_then(|user| self.users.get(user)?.get(server)?.get(tool));
        own.or_else(|| self.servers.get(server)?.get(tool))
    }

    /// Whether a pinned tool has another definition now.
    fn has_turned(&self, (server, tool): Id<'_>, now: &Sight) -> bool {
        match self.last.get(server).and_then(|tools| tools.get(tool)) {
            Some(last) => *last != now.digest,
            None => {
                let all = std::iter::once(&self.servers).chain(self.users.values());
                let mut seen = all.filter_map(|servers| servers.get(server)?.get(tool));
                seen.any(|before| *before != now.said)
            }
        }
    }

    /// Returns the number of changes, including the current one if it is not recorded yet.
    fn turn(&self, (server, tool): Id<'_>, now: &Sight) -> u64 {
        let turn = self.turns.get(server).and_then(|tools| tools.get(tool)).copied();
        turn.unwrap_or_default() + u64::from(self.has_turned((server, tool), now))
    }

    /// Returns the revision of a tool: its digest, and how often it changed.
    fn revision(&self, id: Id<'_>, now: &Sight) -> String {
        written(&now.digest, self.turn(id, now))
    }

    /// Merges change counts: a file without them does not undo changes.
    fn turn_as(&mut self, known: &Self) {
        let said = |seen: &Self, server: &str, tool: &str| {
            let last = seen.last.get(server)?.get(tool)?;
            Some((seen.turns.get(server).and_then(|tools| tools.get(tool)).copied(), last.clone()))
        };
        for (server, tool) in known
            .last
            .iter()
            .flat_map(|(server, tools)| tools.keys().map(move |tool| (server, tool)))
        {
            let (mine, theirs) = (said(self, server, tool), said(known, server, tool));
            if let Some((turn, last)) = theirs
                && mine.is_none_or(|(mine, _)| turn > mine)
            {
                self.last.entry(server.clone()).or_default().insert(tool.clone(), last);
                let turns = turn.map(|turn| (tool.clone(), turn));
                self.turns.entry(server.clone()).or_default().extend(turns);
            }
        }
    }

    /// Records the current definition of a tool.
    fn note(&mut self, (server, tool): Id<'_>, now: &Sight) {
        let turn = self.turn((server, tool), now);
        if turn > 0 {
            self.turns.entry(server.to_owned()).or_default().insert(tool.to_owned(), turn);
        }
        let last = self.last.entry(server.to_owned()).or_default();
        last.insert(tool.to_owned(), now.digest.clone());
    }
}

/// Formats a revision.
fn written(digest: &str, turn: u64) -> String {
    match turn {
        0 => digest.to_owned(),
        turn => format!("{digest}.{turn}"),
    }
}

/// The whole definition of a tool, with the transport of its server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sight {
    said: Value,
    /// A hash of the definition; grants are bound to it.
    digest: String,
}

impl Sight {
    pub(super) fn of(identity: &Value, tool: &RemoteTool) -> Self {
        let said = json!({
            "server": identity,
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.input_schema,
            "outputSchema": tool.output_schema,
            "annotations": tool.annotations,
        });
        let digest = format!("{:x}", Sha256::digest(lines(&said)));
        Self { said, digest }
    }

    /// Returns the definition as readable text.
    #[cfg(feature = "cli")]
    pub(super) fn text(&self) -> String {
        lines(&self.said)
    }
}

/// The difference between the current and the pinned definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) is_first: bool,
    /// A unified diff.
    pub(super) diff: String,
}

impl Pins {
    /// Keeps pins for the lifetime of the process.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Keeps pins in a folder that only the user may write to.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        let folder = Some(Folder::new(folder.into()));
        Self(Arc::new(Kept { folder, known: Mutex::default() }))
    }

    /// Rejects a folder inside one of these roots, into which tools may write. Call it before anything
    /// else.
    #[must_use]
    pub fn not_inside(mut self, roots: &[PathBuf]) -> Self {
        if let Some(folder) = Arc::get_mut(&mut self.0).and_then(|kept| kept.folder.as_mut()) {
            folder.not_inside(roots);
        }
        self
    }

    /// Whether the definition is the one that this user pinned, or else the host.
    pub(super) fn is_seen(&self, user: Option<&str>, id: Id<'_>, now: &Sight) -> bool {
        self.with(|seen| seen.by(user, id) == Some(&now.said))
    }

    /// Returns the difference to the definition that this user pinned, or else the host; `None` if it is
    /// the same.
    pub(super) fn difference(
        &self,
        user: Option<&str>,
        id: Id<'_>,
        now: &Sight,
    ) -> Option<Difference> {
        if self.is_seen(user, id, now) {
            return None;
        }
        let before = self.with(|seen| seen.by(user, id).cloned());
        let (old, new) = (before.as_ref().map(lines).unwrap_or_default(), lines(&now.said));
        let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(&old, &new);
        let diff = diff.unified_diff().context_radius(2).header("seen before", "now").to_string();
        Some(Difference { is_first: before.is_none(), diff: readable(&diff) })
    }

    /// Returns the revision of a tool, which differs from all earlier ones.
    pub(super) fn revision(&self, id: Id<'_>, now: &Sight) -> String {
        self.with(|seen| seen.revision(id, now))
    }

    /// Whether an approval of the tool that models call `name` is void, because the tool changed since.
    #[cfg(feature = "cli")]
    pub(in crate::surface) fn is_void(&self, name: &str, revision: &str) -> bool {
        self.with(|seen| {
            let all = seen.last.iter().flat_map(|(server, tools)| {
                tools.iter().map(move |(tool, last)| (server.as_str(), tool.as_str(), last))
            });
            let mut own = all.filter(|(server, tool, _)| is_called(server, tool, name)).peekable();
            own.peek().is_some()
                && own.all(|(server, tool, last)| {
                    let turns = seen.turns.get(server).and_then(|tools| tools.get(tool)).copied();
                    written(last, turns.unwrap_or_default()) != revision
                })
        })
    }

    /// Whether this is still the revision of the tool, according to the last read of the file.
    pub(super) fn is_revision(&self, revision: &str, id: Id<'_>, now: &Sight) -> bool {
        self.lock().seen.revision(id, now) == revision
    }

    /// Records the definition for which a call is being decided: approvals of earlier definitions are
    /// void from now on.
    pub(super) fn shown(&self, id: Id<'_>, now: &Sight) {
        if !self.with(|seen| seen.has_turned(id, now)) {
            return;
        }
        if let Err(error) = self.change(|seen| seen.note(id, now)) {
            tracing::warn!(%error, "cannot store that a tool of another server changed");
            self.lock().seen.note(id, now);
        }
    }

    /// Records that a call runs. Pins the definition for the user who approved it in a prompt; without a
    /// prompt only a change is recorded.
    pub(super) fn let_run(
        &self,
        asked: Option<Option<&str>>,
        id: Id<'_>,
        now: &Sight,
    ) -> Result<(), StoreError> {
        let (is_seen, has_turned) = self.with(|seen| {
            let is_seen = asked.is_none_or(|user| seen.by(user, id) == Some(&now.said));
            (is_seen, seen.has_turned(id, now))
        });
        match asked {
            Some(user) if !is_seen || has_turned => self.pin(user, id, now),
            None if has_turned => self.change(|seen| seen.note(id, now)),
            _ => Ok(()),
        }
    }

    /// Pins the definition for a user, or for the host if there is none.
    pub(super) fn pin(
        &self,
        user: Option<&str>,
        (server, tool): Id<'_>,
        now: &Sight,
    ) -> Result<(), StoreError> {
        self.change(|seen| {
            seen.note((server, tool), now);
            let servers = match user {
                Some(user) => seen.users.entry(user.to_owned()).or_default(),
                None => &mut seen.servers,
            };
            let tools = servers.entry(server.to_owned()).or_default();
            tools.insert(tool.to_owned(), now.said.clone());
        })
    }

    /// Forgets the tools of a server, for all users. Approvals of them are void, even if the same
    /// server is added again with the same tools.
    ///
    /// # Errors
    ///
    /// Fails when the pins cannot be stored.
    pub fn forget(&self, server: &str) -> Result<(), StoreError> {
        self.change(|seen| {
            let users = seen.users.values_mut();
            let gone = std::iter::once(&mut seen.servers).chain(users);
            let gone: Vec<_> = gone.filter_map(|servers| servers.remove(server)).collect();
            // A tool that comes back counts as changed.
            let last = seen.last.entry(server.to_owned()).or_default();
            let tools = gone.into_iter().flat_map(BTreeMap::into_keys);
            last.extend(tools.map(|tool| (tool, GONE.to_owned())));
            last.values_mut().for_each(|digest| GONE.clone_into(digest));
        })
    }

    fn change(&self, change: impl FnOnce(&mut Seen)) -> Result<(), StoreError> {
        let mut known = self.lock();
        match &self.0.folder {
            // Start from the file, to keep the pins of other processes.
            Some(folder) => {
                let found = folder.update(|seen| {
                    seen.turn_as(&known.seen);
                    change(seen);
                })?;
                known.take(found);
            }
            None => change(&mut known.seen),
        }
        Ok(())
    }

    /// Reads the current pins, including those of other processes.
    fn with<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        let mut known = self.lock();
        self.0.folder.iter().for_each(|folder| known.refresh(folder));
        look(&known.seen)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Truncates a diff and its lines, with a note about the rest. Lines of a diff never start with `[`.
fn readable(diff: &str) -> String {
    let mut shown = String::with_capacity(diff.len().min(MOST_SHOWN));
    let mut lines = diff.split_inclusive('\n');
    for line in lines.by_ref() {
        let end = line.floor_char_boundary(MOST_OF_LINE);
        if shown.len() + end > MOST_SHOWN {
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
fn lines(value: &Value) -> String {
    format!("{:#}\n", sorted(value))
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<&String, &Value> = members.iter().collect();
            members.into_iter().map(|(key, one)| (key.clone(), sorted(one))).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
