//! What was seen of a tool when somebody let it run: what it is compared with ever after.
//!
//! A server can say something else tomorrow. So the whole of what it said of a tool, and how
//! the server itself is reached, is kept when a call is let through for the first time. As
//! long as both stay the same, rules and approvals hold; when they change, whoever is asked
//! sees the difference first.
//!
//! What the host takes as seen holds for everybody who has let nothing run of their own, and
//! what one of several users let run for that user alone: what they saw last is what a change
//! is a change of.
//!
//! Several programs may keep it in one folder: what one of them notes, the others know at their
//! next decision.
//!
//! **Invariant:** where anything is wrong with what was kept, nothing was seen.

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

/// The most that is shown of a difference, and of a line of it, in bytes. Of a description models
/// are told less.
const MOST_SHOWN: usize = 256 << 10;
const MOST_OF_LINE: usize = 16 << 10;

/// How long a difference is looked for that is as short as can be.
const PATIENCE: Duration = Duration::from_millis(500);

/// The digest of a tool that is forgotten; no tool has it.
const GONE: &str = "";

/// What was seen of the tools of other servers.
///
/// Clones share it. In memory it lasts as long as the program, and every program begins with
/// tools that nobody has seen.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Pipeline, Registry, mcp};
///
/// let pipeline = Pipeline::new(Registry::default());
/// let pins = mcp::Pins::in_folder("/var/lib/shelf/mcp");
/// let upstreams = mcp::Upstreams::of(&pipeline).with_pins(pins);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pins(Arc<Kept>);

#[derive(Debug, Default)]
struct Kept {
    folder: Option<Folder>,
    known: Mutex<Known>,
}

/// What was seen as it is known here, and in which state of the file.
#[derive(Debug, Default)]
struct Known {
    seen: Seen,
    version: Option<Version>,
    /// What is wrong with the file; told once for as long as it stays the same.
    trouble: Option<String>,
}

impl Known {
    /// Brings it up to date with the file, which is read only when it is another one than the
    /// last time.
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
                    tracing::warn!(%error, "what was seen of tools of other servers is not known");
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

/// What the host took as seen, and what each of its users did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Seen {
    servers: Servers,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    users: BTreeMap<String, Servers>,
    /// How often each tool that somebody had let run became another one, whoever was asked
    /// about it or let it run then. It only grows, so that what was approved before is void
    /// also when the tool goes back to what it was (MC2).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    turns: BTreeMap<String, BTreeMap<String, u64>>,
    /// The digest of what each tool was after its last turn. Files of older versions say none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    last: BTreeMap<String, BTreeMap<String, String>>,
}

/// Servers, their tools, and what each said.
type Servers = BTreeMap<String, BTreeMap<String, Value>>;

/// A server, and a tool of it by the server's own name.
type Id<'a> = (&'a str, &'a str);

impl Seen {
    /// What this user saw of a tool, or the host where the user saw nothing of it.
    fn by(&self, user: Option<&str>, (server, tool): Id<'_>) -> Option<&Value> {
        let own = user.and_then(|user| self.users.get(user)?.get(server)?.get(tool));
        own.or_else(|| self.servers.get(server)?.get(tool))
    }

    /// Whether a tool that somebody had let run is another one now.
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

    /// The turn of a tool, once somebody is asked about it as it is now, or lets it run.
    fn turn(&self, (server, tool): Id<'_>, now: &Sight) -> u64 {
        let turn = self.turns.get(server).and_then(|tools| tools.get(tool)).copied();
        turn.unwrap_or_default() + u64::from(self.has_turned((server, tool), now))
    }

    /// What tells a tool as it is now from all that it was while somebody let it run.
    fn revision(&self, id: Id<'_>, now: &Sight) -> String {
        written(&now.digest, self.turn(id, now))
    }

    /// Takes over what is known of turns: they are not undone by a file that does not tell.
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

    /// Notes what a tool is now.
    fn note(&mut self, (server, tool): Id<'_>, now: &Sight) {
        let turn = self.turn((server, tool), now);
        if turn > 0 {
            self.turns.entry(server.to_owned()).or_default().insert(tool.to_owned(), turn);
        }
        let last = self.last.entry(server.to_owned()).or_default();
        last.insert(tool.to_owned(), now.digest.clone());
    }
}

/// A revision as it is written.
fn written(digest: &str, turn: u64) -> String {
    match turn {
        0 => digest.to_owned(),
        turn => format!("{digest}.{turn}"),
    }
}

/// Everything that a server says of a tool, with how the server is reached.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sight {
    said: Value,
    /// What no other sight has: approvals are tied to it.
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

    /// The whole of it, as people read it.
    #[cfg(feature = "cli")]
    pub(super) fn text(&self) -> String {
        lines(&self.said)
    }
}

/// What is not as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) is_first: bool,
    /// What changed, line by line.
    pub(super) diff: String,
}

impl Pins {
    /// Keeps what is seen for as long as the program runs.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Keeps what is seen in a folder that only the user may write to.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        let folder = Some(Folder::new(folder.into()));
        Self(Arc::new(Kept { folder, known: Mutex::default() }))
    }

    /// Trusts nothing that lies in one of these folders, into which tools may write. To be
    /// said before anything else is done.
    #[must_use]
    pub fn not_inside(mut self, roots: &[PathBuf]) -> Self {
        if let Some(folder) = Arc::get_mut(&mut self.0).and_then(|kept| kept.folder.as_mut()) {
            folder.not_inside(roots);
        }
        self
    }

    /// Whether this is what the user saw of the tool last, or the host where the user saw
    /// nothing of it.
    pub(super) fn is_seen(&self, user: Option<&str>, id: Id<'_>, now: &Sight) -> bool {
        self.with(|seen| seen.by(user, id) == Some(&now.said))
    }

    /// How the tool differs from what this user saw of it last, or the host where the user saw
    /// nothing of it; nothing when it is the same.
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

    /// What tells the tool as it is now from all that it was while somebody let it run.
    pub(super) fn revision(&self, id: Id<'_>, now: &Sight) -> String {
        self.with(|seen| seen.revision(id, now))
    }

    /// Whether what was approved of this tool, which models call `name`, is void: it was another one
    /// then.
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

    /// Whether that is its revision still, as far as the last look at the file told.
    pub(super) fn is_revision(&self, revision: &str, id: Id<'_>, now: &Sight) -> bool {
        self.lock().seen.revision(id, now) == revision
    }

    /// Notes that a call of the tool as it is now is decided. Whatever comes of that, nothing that
    /// was approved of what it was before counts any more.
    pub(super) fn shown(&self, id: Id<'_>, now: &Sight) {
        if !self.with(|seen| seen.has_turned(id, now)) {
            return;
        }
        if let Err(error) = self.change(|seen| seen.note(id, now)) {
            tracing::warn!(%error, "that a tool of another server changed is not written down");
            self.lock().seen.note(id, now);
        }
    }

    /// Takes the tool as seen by whoever was asked and lets it run, unless that is known; where
    /// nobody was asked only what it is now is noted.
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

    /// Takes the tool as seen, by the host where it is no user.
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

    /// Forgets the tools of a server, whoever saw them. What was approved of them is void, also
    /// when the same server comes back with the same tools.
    ///
    /// # Errors
    ///
    /// Fails when that cannot be written down.
    pub fn forget(&self, server: &str) -> Result<(), StoreError> {
        self.change(|seen| {
            let users = seen.users.values_mut();
            let gone = std::iter::once(&mut seen.servers).chain(users);
            let gone: Vec<_> = gone.filter_map(|servers| servers.remove(server)).collect();
            // Whatever comes back is another one than what went.
            let last = seen.last.entry(server.to_owned()).or_default();
            let tools = gone.into_iter().flat_map(BTreeMap::into_keys);
            last.extend(tools.map(|tool| (tool, GONE.to_owned())));
            last.values_mut().for_each(|digest| GONE.clone_into(digest));
        })
    }

    fn change(&self, change: impl FnOnce(&mut Seen)) -> Result<(), StoreError> {
        let mut known = self.lock();
        match &self.0.folder {
            // What other programs saw meanwhile stays seen.
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

    /// Looks at what is seen now, whichever program saw it.
    fn with<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        let mut known = self.lock();
        self.0.folder.iter().for_each(|folder| known.refresh(folder));
        look(&known.seen)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As much of a difference as anyone reads, which says how much more there is. No line of a
/// server begins like what is said here.
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

/// A value as people compare it: one entry a line, keys sorted.
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
