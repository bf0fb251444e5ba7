//! A file that a tool changes: what it says now, and what becomes of it.
//!
//! **Invariant:** of a file that may not be read nothing is told but whether a change was made.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tool_sdk::{
    Changes, Context, Draft, Drafts, ErrorKind, Located, Sight, Snapshot, ToolError, Workspace,
    WorkspacePath,
};

use crate::diff::{Change, Detail, FileDiff, is_same_change};
use crate::look::is_told;
use crate::text::lines::{are_too_many, new_line_end, split_bom, with_ends_of};

/// The largest file that is changed, which the tools name in their descriptions. Old and new
/// text are in memory at the same time.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// How long somebody who is to be asked waits for what is shown.
const PATIENCE: Duration = Duration::from_secs(2);

/// That something does not fit a file that may not be read. It is the same whatever does not
/// fit, and whichever file it is: who is told that one edit of several does not fit, or one
/// file of several, knows that the others do.
pub(super) fn unfit_untold() -> ToolError {
    ToolError::failed(
        "what was sent does not fit a file that may not be read, or changes nothing in it",
    )
    .hint("the rules do not let the file be read, so that nothing more is told of what it says")
}

/// Whether a text is more than what is changed again.
pub(super) fn is_too_long(text: &str) -> bool {
    text.len() as u64 > MAX_FILE || are_too_many(text.as_bytes())
}

/// A file that is to be changed, as it is now.
pub(super) struct Target {
    place: Located,
    before: Snapshot,
    is_told: bool,
}

/// A path that a call names, where it leads, and whether what is there may be told.
pub(super) struct Named<'p> {
    pub(super) path: &'p WorkspacePath,
    pub(super) place: Located,
    pub(super) is_told: bool,
}

impl<'p> Named<'p> {
    /// As the rules about reading have it.
    pub(super) fn new(
        path: &'p WorkspacePath,
        place: Located,
        workspace: &Workspace,
        sight: &Sight,
    ) -> Self {
        let is_told = is_told(path, &place, workspace, sight);
        Self { path, place, is_told }
    }

    /// Of a call that has not run yet.
    pub(super) fn by(path: &'p WorkspacePath, cx: &Context) -> Result<Self, ToolError> {
        let workspace = cx.state::<Workspace>()?;
        let place = path.locate(&workspace)?;
        Ok(Self::new(path, place, &workspace, &cx.sight("read")))
    }

    /// Whether nobody has to be asked before what is there is told: it lies in the workspace, and
    /// no rule says otherwise.
    fn is_free(&self) -> bool {
        self.is_told && !self.place.is_outside()
    }

    /// Reads the file; that there is none is no failure.
    pub(super) fn read(&self) -> Result<Target, ToolError> {
        Ok(self.target(self.snapshot()?))
    }

    /// Reads the file for somebody who is shown what becomes of it.
    pub(super) fn show(&self) -> Result<Target, ToolError> {
        Ok(self.target(self.path.keep_shown(self.snapshot()?).clone()))
    }

    /// The link itself that is at the place.
    pub(super) fn link(&self) -> Result<Target, ToolError> {
        Ok(self.target(self.path.keep_shown(self.place.snapshot_of_link()?).clone()))
    }

    /// The file as it is now, with what `make` makes of it and `text` finds therein.
    ///
    /// Where somebody was shown what becomes of the file, the same lines go and come, though
    /// perhaps at another place by now. Anything else is a conflict.
    pub(super) fn read_to_edit<T>(
        &self,
        drafts: Option<&Drafts>,
        make: impl Fn(&Target) -> Result<T, ToolError>,
        text: impl Fn(&T) -> &str,
    ) -> Result<(Target, T), ToolError> {
        let now = match drafts {
            Some(drafts) => {
                self.target(Self::checked(&self.place, drafts.snapshot(&self.place, MAX_FILE)?)?)
            }
            None => self.read()?,
        };
        let made = make(&now)?;
        let is_as_shown = |shown: &Target| {
            let was = make(shown).ok()?;
            let change = [shown.text().ok()?, text(&was)];
            Some(is_same_change(change, [now.text().ok()?, text(&made)]))
        };
        match self.path.shown() {
            Some(shown)
                if shown.content() != now.bytes()
                    && is_as_shown(&self.target(shown.clone())) != Some(true) =>
            {
                Err(now.is_another())
            }
            _ => Ok((now, made)),
        }
    }

    /// The file as somebody was shown it, or as it is now where nobody was.
    pub(super) fn shown(&self) -> Result<Target, ToolError> {
        match self.path.shown() {
            Some(before) => Ok(self.target(before.clone())),
            None => self.read(),
        }
    }

    fn snapshot(&self) -> Result<Snapshot, ToolError> {
        Self::checked(&self.place, self.place.snapshot(MAX_FILE)?)
    }

    fn checked(place: &Located, before: Snapshot) -> Result<Snapshot, ToolError> {
        if before.content().is_some_and(are_too_many) {
            return Err(ToolError::failed(format_args!(
                "`{}` has more than two million lines, too many to change it",
                place.display()
            ))
            .hint("use a command"));
        }
        Ok(before)
    }

    fn target(&self, before: Snapshot) -> Target {
        Target { place: self.place.clone(), before, is_told: self.is_told }
    }
}

impl Target {
    /// Whether what the file says may be told; where it may not, what does not fit is
    /// [`unfit_untold`].
    pub(super) fn is_told(&self) -> bool {
        self.is_told
    }

    /// The file, for people and models.
    pub(super) fn path(&self) -> String {
        self.place.display()
    }

    /// The file, for programs.
    pub(super) fn spelling(&self) -> String {
        self.place.spelling()
    }

    /// Whether there is a file.
    pub(super) fn exists(&self) -> bool {
        self.before.content().is_some()
    }

    /// What the file says, in whatever encoding.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        self.before.content()
    }

    /// What the file says.
    pub(super) fn text(&self) -> Result<&str, ToolError> {
        let Some(content) = self.before.content() else {
            return Err(ToolError::not_found(format_args!("there is no `{}`", self.path())));
        };
        std::str::from_utf8(content).map_err(|error| {
            if !self.is_told {
                return unfit_untold();
            }
            let message = format_args!("`{}` is not UTF-8 text, and cannot be edited", self.path());
            ToolError::failed(message).source(error)
        })
    }

    /// What the file was and what it is once it is replaced, where it was no text in UTF-8 and
    /// that may be told.
    pub(super) fn was(&self) -> Option<&'static str> {
        match self.bytes().filter(|_| self.is_told)? {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
                Some("was UTF-16 text with a byte order mark, and is UTF-8 without one now")
            }
            _ if self.text().is_err() => Some("was not UTF-8 text, and is now"),
            _ => None,
        }
    }

    /// A new text with the byte order mark and the line ends of the old one.
    pub(super) fn fitting(&self, content: String) -> String {
        let Some(old) = self.bytes().map(String::from_utf8_lossy) else { return content };
        let (bom, old) = split_bom(&old);
        let new = split_bom(&content).1;
        match old.contains(['\n', '\r']) {
            true => format!("{bom}{}", with_ends_of(new, old, new_line_end(old))),
            // There is no end to go by.
            false => format!("{bom}{new}"),
        }
    }

    /// That the file is not the one that somebody was shown.
    pub(super) fn is_another(&self) -> ToolError {
        ToolError::conflict(format_args!(
            "`{}` was changed since it was looked at for this call, and was not written",
            self.path()
        ))
        .hint("read it again, and base the change on what it says now")
    }

    /// The difference to what the file is to say; `None` when there is to be no file.
    pub(super) fn diff(&self, new: Option<&str>, detail: Detail) -> FileDiff {
        if !self.is_told && self.exists() {
            return FileDiff::untold(&self.spelling());
        }
        let old = self.before.content().map(|content| match self.text() {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(content),
        });
        FileDiff::new(&self.spelling(), old.as_deref(), new, detail)
    }

    /// The same from its [`text`](Self::text), where it is known what changes.
    pub(super) fn diff_along(
        &self,
        old: &str,
        new: &str,
        changes: &[Change],
        detail: Detail,
    ) -> FileDiff {
        match self.is_told {
            true => FileDiff::along(&self.spelling(), old, new, changes, detail),
            false => FileDiff::untold(&self.spelling()),
        }
    }

    /// Writes what the file is to say beside it.
    pub(super) fn draft(&self, drafts: &Drafts, new: String) -> Result<Draft, ToolError> {
        drafts.write(self.place.clone(), self.before.clone(), new)
    }

    /// Adds to `changes` what is to become of the file.
    pub(super) fn change(self, changes: Changes, new: Option<String>) -> Changes {
        match new {
            Some(text) => changes.write(self.place, self.before, text),
            None => changes.remove(self.place, self.before),
        }
    }

    /// Adds to `changes` that the file gets the place of `to`, and a new text.
    pub(super) fn change_place(self, changes: Changes, to: Self, text: String) -> Changes {
        changes.rename((self.place, self.before), (to.place, to.before), text)
    }
}

/// Whether a link is at the place itself, through which then nothing is reached.
pub(super) fn is_link(place: &Located) -> bool {
    place.metadata().is_ok_and(|there| there.kind.is_symlink())
}

/// Refuses a path that says it is a folder's: a file of that name is not what was meant.
pub(super) fn is_of_a_file(path: &str) -> Result<(), ToolError> {
    if !path.ends_with(std::path::is_separator) {
        return Ok(());
    }
    Err(ToolError::invalid("path", format_args!("`{path}` names a folder, not a file"))
        .hint("name a file in it; missing folders are made on the way"))
}

/// What a person is shown before a call runs. A call that cannot run ends with the reason, where
/// that may be told of all its `paths` without asking anybody; else the person reads it.
pub(super) fn preview<'p>(
    shown: Result<Value, ToolError>,
    paths: impl IntoIterator<Item = &'p WorkspacePath>,
    cx: &Context,
) -> Result<Option<Value>, ToolError> {
    let is_free = |path| Named::by(path, cx).is_ok_and(|named| named.is_free());
    match shown {
        Ok(shown) => Ok(Some(shown)),
        Err(error) if is_final(&error) && paths.into_iter().all(is_free) => Err(error),
        Err(error) => Ok(Some(json!({ "error": error.to_string() }))),
    }
}

/// Whether a call that failed so fails whenever it runs.
fn is_final(error: &ToolError) -> bool {
    matches!(error.kind(), ErrorKind::Failed | ErrorKind::NotFound | ErrorKind::InvalidArgs)
}

/// Says from some time on that a preview has taken too long, or that nobody waits for it.
pub(super) fn patience(cx: &Context) -> impl Fn() -> bool + Sync {
    let until = Instant::now() + PATIENCE;
    move || cx.is_cancelled() || Instant::now() >= until
}

/// What a screen can draw of one changed file.
pub(super) fn display(operation: &str, diff: &FileDiff) -> Value {
    let mut data = diff.to_json();
    data["type"] = "diff".into();
    data["operation"] = operation.into();
    data
}

/// How many lines a change adds and removes, in brackets behind what was done.
pub(super) fn counts(diff: &FileDiff) -> Cow<'static, str> {
    match diff.counts() {
        None => "".into(),
        Some((0, 0)) => " (no line changed)".into(),
        Some((added, removed)) => format!(" (+{added} -{removed} lines)").into(),
    }
}
