//! Changes of files that are made together, or not at all.

use std::sync::Arc;

use super::drafts::{Begun, Draft};
use super::each::each;
use super::staged::{Change, Staged};
use super::turns::{Patience, Turns};
use super::{Durability, Located, Snapshot};
use crate::error::ToolError;

/// How many files are written or replaced before it is asked again whether anybody still wants it.
const TOGETHER: usize = 256;

/// How many changes are few enough that waiting for the disk takes no time that anybody notices.
const FEW: usize = 16;

/// How many bytes are replaced in one turn, so that it ends before the others lose patience.
const BYTES: usize = 64 * 1024 * 1024;

/// Changes of files that are made together, or not at all.
///
/// Each file changes at once: its new content is written beside it and takes its name, so
/// that a reader sees the old file or the new one, and a disk that is full keeps the old
/// one. A file that is no longer what the [`Snapshot`] says, also in its mode or owner, is a
/// `conflict`. When one change fails, those before it are undone.
///
/// Nothing is removed before all that is written is in its place. Folders on the way are
/// made. Each place belongs to one change. A file that is replaced keeps its mode, on Linux its
/// access control list and other extended attributes, and its owner where the system allows
/// that; a file of several names (hard links) is replaced under this one only. What this user
/// may not write is not replaced either. Whatever ends the work early, no temporary file stays.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Changes, ErrorKind, Workspace};
///
/// # let folder = tempfile::tempdir()?;
/// let workspace = Workspace::open([folder.path()])?;
/// let place = workspace.resolve("new/notes.txt")?;
///
/// let before = place.snapshot(1024)?;
/// assert_eq!(before.content(), None);
/// Changes::new().write(place.clone(), before.clone(), "hello").apply(|| false)?;
/// assert_eq!(place.snapshot(1024)?.content(), Some(&b"hello"[..]));
///
/// // Somebody else was faster.
/// let error = Changes::new().write(place, before, "bye").apply(|| false).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Conflict);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
#[must_use = "nothing changes before `apply`"]
pub struct Changes {
    list: Vec<Planned>,
    durable: Option<bool>,
}

/// A change, and how far it is.
enum Planned {
    Change(Change),
    Written(Draft),
}

impl Changes {
    /// No changes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a file new content, which was made from `before`; makes it when there was none.
    pub fn write(self, place: Located, before: Snapshot, content: impl Into<Vec<u8>>) -> Self {
        let like = before.clone();
        self.and(Change { place, before, after: Some(content.into()), like })
    }

    /// Removes a file that was read as `before`.
    pub fn remove(self, place: Located, before: Snapshot) -> Self {
        let like = Snapshot::absent();
        self.and(Change { place, before, after: None, like })
    }

    /// Gives a file another place, and new content while it is at it; what was read at `to`
    /// is replaced. The file keeps its mode.
    pub fn rename(
        self,
        (from, before): (Located, Snapshot),
        (to, replaced): (Located, Snapshot),
        content: impl Into<Vec<u8>>,
    ) -> Self {
        let after = Some(content.into());
        self.and(Change { place: to, before: replaced, after, like: before.clone() })
            .remove(from, before)
    }

    /// Whether the files are on the disk, and not only in the system's memory, when
    /// [`apply`](Self::apply) returns; without this, it is as the workspace of the first one
    /// [says](crate::Workspace::durability).
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = Some(durable);
        self
    }

    /// Gives a file the new content that is written beside it already.
    pub fn put(mut self, draft: Draft) -> Self {
        self.list.push(Planned::Written(draft));
        self
    }

    fn is_durable(&self) -> bool {
        let of_workspace = || match self.list.first().map(|it| it.place().durability()) {
            Some(Durability::Always) => true,
            Some(Durability::Never) => false,
            Some(Durability::Auto) | None => self.list.len() <= FEW,
        };
        self.durable.unwrap_or_else(of_workspace)
    }

    fn and(mut self, change: Change) -> Self {
        self.list.push(Planned::Change(change));
        self
    }

    /// Makes the changes, unless `stopped` says on the way that nobody wants them any more.
    ///
    /// # Errors
    ///
    /// Fails with `conflict` when a file is not what its snapshot says, with `denied` when
    /// it may not be written, with `aborted` when it was stopped, and with `failed` for what
    /// else can go wrong. Nothing has changed then; where something could not be undone
    /// because others changed it, the hint says so.
    pub fn apply(self, stopped: impl Fn() -> bool) -> Result<(), ToolError> {
        // Declared first: folders that were made go after the files in them, and the end of the
        // program waits for all of it.
        let mut begun = vec![Begun::new()?];
        let durable = self.is_durable();
        let mut staged = Vec::with_capacity(self.list.len());
        for planned in self.list {
            staged.push(match planned {
                Planned::Written(draft) => {
                    if !begun.iter().any(|begun| Arc::ptr_eq(begun, &draft.begun)) {
                        begun.push(draft.begun);
                    }
                    draft.staged
                }
                Planned::Change(change) => {
                    let change = Change { place: change.place.into_real()?, ..change };
                    Staged::new(change, &begun[0].folders)?
                }
            });
        }
        let stopped = || begun[0].underway.is_unwanted() || stopped();
        // Waiting for the disk takes so long that it is worth asking before each file.
        let together = if durable { 1 } else { TOGETHER };
        let mut unwritten: Vec<&mut Staged> =
            staged.iter_mut().filter(|change| change.is_unwritten(durable)).collect();
        for some in unwritten.chunks_mut(together) {
            go_on(&stopped)?;
            each(some, |change| change.write(durable))?;
        }
        commit(&mut staged, &stopped).map_err(|error| undo(staged, error))?;
        begun.iter().for_each(|begun| begun.folders.keep(durable));
        Ok(())
    }
}

impl Planned {
    fn place(&self) -> &Located {
        match self {
            Self::Change(change) => &change.place,
            Self::Written(draft) => draft.staged.place(),
        }
    }
}

/// Puts everything in its place; what is removed goes last.
fn commit(staged: &mut [Staged], stopped: &impl Fn() -> bool) -> Result<(), ToolError> {
    staged.sort_by_key(Staged::removes);
    let written = staged.partition_point(|change| !change.removes());
    let (written, removed) = staged.split_at_mut(written);
    let mut patience = Patience::default();
    for some in in_turns(written) {
        let _turns = Turns::take(some.iter().map(Staged::dir), &mut patience, stopped);
        go_on(stopped)?;
        each(some, Staged::commit)?;
    }
    for some in in_turns(removed) {
        let _turns = Turns::take(some.iter().map(Staged::dir), &mut patience, stopped);
        go_on(stopped)?;
        some.iter_mut().try_for_each(Staged::commit)?;
    }
    Ok(())
}

/// The changes in parts, each of which is made in one turn.
fn in_turns(mut rest: &mut [Staged]) -> impl Iterator<Item = &mut [Staged]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |change: &&Staged| {
            bytes += change.bytes();
            bytes <= BYTES
        };
        let count = rest.iter().take(TOGETHER).take_while(fits).count();
        rest.split_off_mut(..count.max(1))
    })
}

fn go_on(stopped: &impl Fn() -> bool) -> Result<(), ToolError> {
    match stopped() {
        true => Err(ToolError::aborted("the call ended early, and nothing was written")),
        false => Ok(()),
    }
}

/// Undoes what was done, the last first; says what could not be.
fn undo(mut staged: Vec<Staged>, error: ToolError) -> ToolError {
    staged.retain(Staged::is_done);
    staged.reverse();
    let mut patience = Patience::default();
    let mut stuck = Vec::new();
    for some in in_turns(&mut staged) {
        let _turns = Turns::take(some.iter().map(Staged::dir), &mut patience, &|| false);
        stuck.extend(some.iter().filter_map(|change| {
            let error = change.undo().err()?;
            Some(format!("`{}` ({error})", change.place().display()))
        }));
    }
    match stuck.is_empty() {
        true => error,
        false => error.hint(format_args!(
            "the change of {} could not be undone; look at what is there before you go on",
            stuck.join(" and ")
        )),
    }
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.list.iter().map(Planned::place)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;
    use crate::workspace::staged::Folders;

    #[test]
    fn the_workspace_says_whether_changes_are_durable() {
        let folder = tempfile::tempdir().unwrap();
        let is_durable = |durability: Option<Durability>, files: usize, said: Option<bool>| {
            let workspace = Workspace::open([folder.path()]).unwrap();
            let workspace = match durability {
                Some(durability) => workspace.durability(durability),
                None => workspace,
            };
            let changes = (0..files).fold(Changes::new(), |changes, at| {
                let place = workspace.resolve(&format!("f{at}")).unwrap();
                changes.write(place, Snapshot::absent(), "")
            });
            said.into_iter().fold(changes, Changes::durable).is_durable()
        };
        for (durability, files, said, expected) in [
            (None, FEW, None, true),
            (None, FEW + 1, None, false),
            (Some(Durability::Auto), FEW, None, true),
            (Some(Durability::Auto), FEW + 1, None, false),
            (Some(Durability::Always), FEW + 1, None, true),
            (Some(Durability::Never), 1, None, false),
            (Some(Durability::Never), 1, Some(true), true),
            (Some(Durability::Always), 1, Some(false), false),
        ] {
            assert_eq!(is_durable(durability, files, said), expected, "{durability:?} {files}");
        }
    }

    #[test]
    fn a_turn_has_so_many_files_and_so_many_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open([folder.path()]).unwrap();
        let folders = Folders::default();
        let stage = |len| {
            let change = Change {
                place: workspace.resolve("file").unwrap(),
                before: Snapshot::absent(),
                after: Some(vec![0; len]),
                like: Snapshot::absent(),
            };
            Staged::new(change, &folders).unwrap()
        };
        let cases: [(&[usize], &[usize]); 4] = [
            (&[], &[]),
            (&[1; TOGETHER + 1], &[TOGETHER, 1]),
            (&[BYTES, 1, BYTES - 1, 1], &[1, 2, 1]),
            (&[BYTES + 1, BYTES + 1], &[1, 1]),
        ];
        for (lens, expected) in cases {
            let mut staged: Vec<_> = lens.iter().map(|len| stage(*len)).collect();
            let counts: Vec<usize> = in_turns(&mut staged).map(|some| some.len()).collect();
            assert_eq!(counts, expected);
        }
    }
}
