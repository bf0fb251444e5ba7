//! What was seen of a tool when somebody let it run: what it is compared with ever after.
//!
//! A server can say something else tomorrow. So the whole of what it said of a tool, and how
//! the server itself is reached, is kept when a call is let through for the first time. As
//! long as both stay the same, rules and approvals hold; when they change, whoever is asked
//! sees the difference first.
//!
//! What the host takes as seen holds for everybody, and what one of several users let run for
//! that user alone.
//!
//! **Invariant:** where anything is wrong with what was kept, nothing was seen.

mod file;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use similar::TextDiff;

use self::file::Folder;
use super::remote::RemoteTool;
use crate::store::StoreError;

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
    seen: Mutex<Option<Seen>>,
}

/// What the host took as seen, and what each of its users did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Seen {
    servers: Servers,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    users: BTreeMap<String, Servers>,
    /// How often each tool became another one for whoever let it run. It only grows, so that
    /// what was approved before is void also when the tool goes back to what it was (MC2).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    turns: BTreeMap<String, BTreeMap<String, u64>>,
}

/// Servers, their tools, and what each said.
type Servers = BTreeMap<String, BTreeMap<String, Value>>;

impl Seen {
    /// What was said of a tool.
    fn of<'s>(servers: &'s Servers, server: &str, tool: &str) -> Option<&'s Value> {
        servers.get(server)?.get(tool)
    }

    /// The turn of a tool, once somebody lets it run as it is now.
    fn turn(&self, (server, tool): (&str, &str), now: &Sight) -> u64 {
        let all = || std::iter::once(&self.servers).chain(self.users.values());
        let seen = || all().filter_map(|servers| Self::of(servers, server, tool));
        let is_new = seen().next().is_some() && !seen().any(|before| *before == now.0);
        let turn = self.turns.get(server).and_then(|tools| tools.get(tool)).copied();
        turn.unwrap_or_default() + u64::from(is_new)
    }
}

/// Everything that a server says of a tool, with how the server is reached.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sight(Value);

impl Sight {
    pub(super) fn of(identity: &Value, tool: &RemoteTool) -> Self {
        Self(json!({
            "server": identity,
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.input_schema,
            "outputSchema": tool.output_schema,
            "annotations": tool.annotations,
        }))
    }

    /// The whole of it, as people read it.
    #[cfg(feature = "cli")]
    pub(super) fn text(&self) -> String {
        lines(&self.0)
    }

    /// What no other sight has: approvals are tied to it.
    pub(super) fn digest(&self) -> String {
        format!("{:x}", Sha256::digest(lines(&self.0)))
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
        Self(Arc::new(Kept { folder, seen: Mutex::default() }))
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

    /// How the tool differs from what was seen of it, by the host or by this user; nothing when
    /// it is the same.
    pub(super) fn difference(
        &self,
        user: Option<&str>,
        (server, tool): (&str, &str),
        now: &Sight,
    ) -> Option<Difference> {
        let before = self.with(|seen| {
            let own = user.and_then(|user| seen.users.get(user));
            let own = own.and_then(|own| Seen::of(own, server, tool));
            let all = [own, Seen::of(&seen.servers, server, tool)];
            // What the user saw last is what a change is a change of.
            let same = all.into_iter().flatten().find(|before| **before == now.0);
            same.or_else(|| all.into_iter().flatten().next()).cloned()
        });
        if before.as_ref() == Some(&now.0) {
            return None;
        }
        let (old, new) = (before.as_ref().map(lines).unwrap_or_default(), lines(&now.0));
        let diff = TextDiff::from_lines(&old, &new);
        let diff = diff.unified_diff().context_radius(2).header("seen before", "now").to_string();
        Some(Difference { is_first: before.is_none(), diff })
    }

    /// What tells the tool as it is now from all that it was while somebody let it run.
    pub(super) fn revision(&self, (server, tool): (&str, &str), now: &Sight) -> String {
        let digest = now.digest();
        match self.with(|seen| seen.turn((server, tool), now)) {
            0 => digest,
            turn => format!("{digest}.{turn}"),
        }
    }

    /// Takes the tool as seen, by the host where it is no user.
    pub(super) fn pin(
        &self,
        user: Option<&str>,
        (server, tool): (&str, &str),
        now: &Sight,
    ) -> Result<(), StoreError> {
        let add = |seen: &mut Seen| {
            let turn = seen.turn((server, tool), now);
            if turn > 0 {
                seen.turns.entry(server.to_owned()).or_default().insert(tool.to_owned(), turn);
            }
            let servers = match user {
                Some(user) => seen.users.entry(user.to_owned()).or_default(),
                None => &mut seen.servers,
            };
            servers.entry(server.to_owned()).or_default().insert(tool.to_owned(), now.0.clone());
        };
        self.change(add)
    }

    /// Forgets the tools of a server, whoever saw them.
    ///
    /// # Errors
    ///
    /// Fails when that cannot be written down.
    pub fn forget(&self, server: &str) -> Result<(), StoreError> {
        self.change(|seen| {
            seen.servers.remove(server);
            seen.users.values_mut().for_each(|servers| drop(servers.remove(server)));
        })
    }

    fn change(&self, change: impl FnOnce(&mut Seen)) -> Result<(), StoreError> {
        let mut kept = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.0.folder {
            // What other programs saw meanwhile stays seen.
            Some(folder) => *kept = Some(folder.update(change)?),
            None => change(kept.get_or_insert_default()),
        }
        Ok(())
    }

    fn with<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        let mut kept = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let load = || self.0.folder.as_ref().map(Folder::load).unwrap_or_default();
        look(kept.get_or_insert_with(load))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(description: &str, command: &str) -> Sight {
        let tool = RemoteTool::new("t", json!({ "type": "object" })).described(description);
        Sight::of(&json!({ "command": command }), &tool)
    }

    fn diff_of(pins: &Pins, now: &Sight) -> Option<Difference> {
        pins.difference(None, ("s", "t"), now)
    }

    // MC2
    #[test]
    fn what_changes_is_shown_until_it_is_seen() {
        let pins = Pins::in_memory();
        let first = diff_of(&pins, &sight("Reads.", "a")).unwrap();
        assert!(first.is_first && first.diff.contains("+  \"description\": \"Reads.\""));

        pins.pin(None, ("s", "t"), &sight("Reads.", "a")).unwrap();
        assert_eq!(diff_of(&pins, &sight("Reads.", "a")), None);
        let changed = diff_of(&pins, &sight("Reads all.", "a")).unwrap();
        assert!(!changed.is_first);
        assert!(changed.diff.contains("-  \"description\": \"Reads.\""), "{}", changed.diff);
        assert!(changed.diff.contains("+  \"description\": \"Reads all.\""), "{}", changed.diff);
        assert!(diff_of(&pins, &sight("Reads.", "b")).unwrap().diff.contains("\"command\": \"b\""));

        pins.forget("s").unwrap();
        assert!(diff_of(&pins, &sight("Reads.", "a")).unwrap().is_first);
    }

    // F130
    #[test]
    fn what_one_user_saw_nobody_else_did() {
        let pins = Pins::in_memory();
        let (first, second) = (sight("Reads.", "a"), sight("Reads all.", "a"));
        let tool = ("s", "t");
        let is_new = |user, now: &Sight| pins.difference(user, tool, now).map(|it| it.is_first);
        pins.pin(Some("ada"), tool, &first).unwrap();
        assert_eq!(is_new(Some("ada"), &first), None);
        assert_eq!((is_new(Some("bob"), &first), is_new(None, &first)), (Some(true), Some(true)));
        assert_eq!(is_new(Some("ada"), &second), Some(false));

        pins.pin(None, tool, &second).unwrap();
        assert_eq!((is_new(Some("bob"), &second), is_new(Some("ada"), &second)), (None, None));
        let shown = pins.difference(Some("ada"), tool, &sight("Writes.", "a")).unwrap().diff;
        assert!(shown.contains("-  \"description\": \"Reads.\""), "what ada saw: {shown}");

        pins.forget("s").unwrap();
        assert_eq!(is_new(Some("ada"), &first), Some(true));
    }

    // MC2: going back is a change too, and survives the program.
    #[test]
    fn what_goes_back_is_not_what_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let pins = Pins::in_folder(folder.path().join("mcp"));
        let (tool, first, second) = (("s", "t"), sight("Reads.", "a"), sight("Writes.", "a"));
        let before = pins.revision(tool, &first);
        pins.pin(None, tool, &first).unwrap();
        assert_eq!(pins.revision(tool, &first), before, "it was let run as it was listed");
        let listed = pins.revision(tool, &second);
        pins.pin(None, tool, &second).unwrap();
        assert_eq!(pins.revision(tool, &second), listed);
        let again = Pins::in_folder(folder.path().join("mcp"));
        let back = again.revision(tool, &first);
        assert_ne!(back, before);
        again.pin(Some("ada"), tool, &first).unwrap();
        assert_eq!(again.revision(tool, &first), back);
        again.forget("s").unwrap();
        assert_ne!(again.revision(tool, &first), before, "and what is forgotten is not undone");
    }

    #[test]
    fn every_change_is_another_digest() {
        let seen = sight("Reads.", "a").digest();
        assert_eq!(seen, sight("Reads.", "a").digest());
        let long = |end: &str| sight(&("x".repeat(10_000) + end), "a").digest();
        let others = [sight("Reads all.", "a").digest(), sight("Reads.", "b").digest(), long("")];
        assert!(!others.contains(&seen) && long("a") != long("b"));
    }

    #[test]
    fn what_was_seen_outlasts_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("mcp");
        let now = sight("Reads.", "a");
        Pins::in_folder(&folder).pin(None, ("s", "t"), &now).unwrap();
        let others = Pins::in_folder(&folder);
        assert_eq!(diff_of(&others, &now), None);

        // Two programs do not forget what the other one saw.
        let (one, two) = (Pins::in_folder(&folder), Pins::in_folder(&folder));
        assert_eq!((diff_of(&one, &now), diff_of(&two, &now)), (None, None));
        one.pin(None, ("s", "x"), &now).unwrap();
        two.pin(None, ("s", "y"), &now).unwrap();
        let third = Pins::in_folder(&folder);
        assert!(
            ["t", "x", "y"].iter().all(|tool| third.difference(None, ("s", tool), &now).is_none())
        );
    }

    #[cfg(unix)]
    #[test]
    fn what_others_could_have_written_was_not_seen() {
        use std::fs::{self, Permissions};
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("mcp");
        let now = sight("Reads.", "a");
        Pins::in_folder(&folder).pin(None, ("s", "t"), &now).unwrap();
        let path = folder.join("pins.json");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        assert!(diff_of(&Pins::in_folder(&folder), &now).is_some());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "{").unwrap();
        assert!(diff_of(&Pins::in_folder(&folder), &now).is_some(), "no JSON");
    }
    #[test]
    fn what_nobody_understands_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("mcp");
        let now = sight("Reads.", "a");
        for later in ["{", r#"{"version":2,"servers":{}}"#] {
            let pins = Pins::in_folder(&folder);
            pins.pin(None, ("s", "t"), &now).unwrap();
            std::fs::write(folder.join("pins.json"), later).unwrap();
            Pins::in_folder(&folder).pin(None, ("s", "t"), &now).unwrap();
            assert_eq!(diff_of(&Pins::in_folder(&folder), &now), None);
            let files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
            let mut kept = files.map(|file| std::fs::read_to_string(file).unwrap());
            assert!(kept.any(|text| text == later), "{later}");
        }
    }
}
