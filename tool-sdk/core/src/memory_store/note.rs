//! Notes, whose they are, and what is asked for and answered about them.
//!
//! **Invariant:** the id of a note is never a path: it has letters, digits, `-` and `_` only.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::Embedding;
use crate::context::Session;
use crate::rfc3339;

/// The longest id of a note in bytes.
const MAX_ID_BYTES: usize = 64;

/// Whose notes a call may see: those of one user, of all projects and of one.
///
/// # Examples
///
/// ```
/// use tool_sdk::{MemoryOwner, Session};
///
/// let session = Session::new("s1").with_user("ada").with_project("garden");
/// let owner = MemoryOwner::from_session(&session);
/// assert_eq!((owner.user.as_deref(), owner.project.as_deref()), (Some("ada"), Some("garden")));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "hosts construct owners")]
pub struct MemoryOwner {
    /// The user; `None` is the user of the host itself.
    pub user: Option<String>,
    /// The project; without one only notes of the scope `user` can be kept.
    pub project: Option<String>,
}

impl MemoryOwner {
    /// Returns the owner of the notes of a session. Anonymous users of a shared server share the
    /// notes of the user `""`, and never see those of the host.
    #[must_use]
    pub fn from_session(session: &Session) -> Self {
        Self {
            user: session.user_key().map(str::to_owned),
            project: session.project().map(str::to_owned),
        }
    }
}

/// Where a note holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MemoryScope {
    /// In one project.
    #[default]
    Project,
    /// In every project of the user.
    User,
}

/// What a note is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MemoryCategory {
    /// How the user wants things done.
    Preference,
    /// Something that is true.
    #[default]
    Fact,
    /// Something that was decided, and why.
    Decision,
    /// A person, a service or another thing with a name.
    Entity,
}

macro_rules! names {
    ($type:ident, $what:literal, $($variant:ident = $name:literal),*) => {
        impl $type {
            /// Every value, in the order of the declaration.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),*
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(name: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().find(|it| it.as_str() == name);
                found.copied().ok_or_else(|| {
                    let names: Vec<_> = Self::ALL.iter().map(|it| it.as_str()).collect();
                    let (name, names) = (name.escape_debug(), names.join(", "));
                    format!(concat!("`{}` is not a ", $what, "; it must be one of {}"), name, names)
                })
            }
        }
    };
}

names!(MemoryScope, "scope", Project = "project", User = "user");
names!(
    MemoryCategory,
    "category",
    Preference = "preference",
    Fact = "fact",
    Decision = "decision",
    Entity = "entity"
);

/// A note. As JSON its times are RFC 3339 in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "stores construct notes")]
pub struct MemoryNote {
    /// The id: letters, digits, `-` and `_`, at most 64 bytes.
    pub id: String,
    /// The title; may be empty.
    pub title: String,
    /// The text.
    pub content: String,
    /// What the note is about.
    pub category: MemoryCategory,
    /// Where it holds.
    pub scope: MemoryScope,
    /// Its tags, sorted.
    pub tags: BTreeSet<String>,
    /// How often it was written: 1 for a new note.
    pub version: u64,
    /// When it was created.
    #[serde(serialize_with = "rfc3339::serialize", rename = "created_at")]
    pub created: SystemTime,
    /// When it was last changed.
    #[serde(serialize_with = "rfc3339::serialize", rename = "updated_at")]
    pub updated: SystemTime,
}

impl MemoryNote {
    /// Returns when the note was created, RFC 3339 in UTC.
    #[must_use]
    pub fn created_at(&self) -> String {
        rfc3339::rfc3339(self.created)
    }

    /// Returns when the note was last changed, RFC 3339 in UTC.
    #[must_use]
    pub fn updated_at(&self) -> String {
        rfc3339::rfc3339(self.updated)
    }

    /// Returns the title, or else the first line of the text.
    #[must_use]
    pub fn summary(&self) -> &str {
        let first = || self.content.lines().find(|line| !line.trim().is_empty());
        if self.title.is_empty() { first().unwrap_or_default().trim() } else { &self.title }
    }
}

/// A note that is to be kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "any value is valid")]
pub struct NoteDraft {
    /// The id of a note that was exported; by default the store makes a new one.
    pub id: Option<String>,
    /// The title.
    pub title: String,
    /// The text.
    pub content: String,
    /// What the note is about.
    pub category: MemoryCategory,
    /// Where it holds.
    pub scope: MemoryScope,
    /// Its tags.
    pub tags: BTreeSet<String>,
}

impl NoteDraft {
    /// Creates a fact of the project without a title.
    #[must_use]
    pub fn new(content: impl Into<String>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }

    /// Returns the note that a store keeps for the draft from `now` on.
    ///
    /// # Errors
    ///
    /// Fails for an id that is not one, and for the scope `project` without a project.
    #[doc(hidden)]
    pub fn into_note(self, owner: &MemoryOwner, now: SystemTime) -> io::Result<MemoryNote> {
        if self.scope == MemoryScope::Project && owner.project.is_none() {
            let why = "this session has no project; keep the note in the scope `user`";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let id = match self.id {
            Some(id) => check_note_id(&id).map(|()| id)?,
            None => new_note_id()?,
        };
        Ok(MemoryNote {
            id,
            title: self.title,
            content: self.content,
            category: self.category,
            scope: self.scope,
            tags: self.tags,
            version: 1,
            created: now,
            updated: now,
        })
    }
}

/// What changes of a note; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "any value is valid")]
pub struct NoteChanges {
    /// The new title.
    pub title: Option<String>,
    /// The new text.
    pub content: Option<String>,
    /// The new category.
    pub category: Option<MemoryCategory>,
    /// The new tags, in place of all earlier ones.
    pub tags: Option<BTreeSet<String>>,
}

impl NoteChanges {
    /// Applies the changes, and counts the version up.
    #[doc(hidden)]
    pub fn apply_to(self, note: &mut MemoryNote, now: SystemTime) {
        note.title = self.title.unwrap_or_else(|| std::mem::take(&mut note.title));
        note.content = self.content.unwrap_or_else(|| std::mem::take(&mut note.content));
        note.category = self.category.unwrap_or(note.category);
        note.tags = self.tags.unwrap_or_else(|| std::mem::take(&mut note.tags));
        note.version = note.version.saturating_add(1);
        note.updated = now;
    }
}

/// The answer to a change of one note.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoteWrite {
    /// It was made; the note as it is now, or as it was when it was deleted.
    Done(MemoryNote),
    /// There is no such note, or it is one of another owner.
    NotFound,
    /// The note was changed since it was read, and stays as it is.
    Conflict {
        /// Its version now.
        current: u64,
    },
}

/// A search for notes.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "any value is valid")]
pub struct NoteQuery {
    /// The words to look for, in any order; none lists all notes.
    pub text: String,
    /// Only notes of this scope.
    pub scope: Option<MemoryScope>,
    /// Only notes of this category.
    pub category: Option<MemoryCategory>,
    /// Only notes that have all of these tags.
    pub tags: BTreeSet<String>,
    /// How many matches are skipped.
    pub offset: usize,
    /// How many matches are returned at most.
    pub limit: usize,
    /// The embedding of the text, to rank by meaning as well.
    pub embedding: Option<Embedding>,
}

impl NoteQuery {
    /// How many matches a search returns by default.
    pub const DEFAULT_LIMIT: usize = 10;

    /// Creates a query for words in all notes of an owner.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            scope: None,
            category: None,
            tags: BTreeSet::new(),
            offset: 0,
            limit: Self::DEFAULT_LIMIT,
            embedding: None,
        }
    }

    /// Returns whether a note passes the filters; its text is not looked at.
    #[doc(hidden)]
    #[must_use]
    pub fn admits(&self, note: &MemoryNote) -> bool {
        self.scope.is_none_or(|scope| scope == note.scope)
            && self.category.is_none_or(|category| category == note.category)
            && self.tags.is_subset(&note.tags)
    }
}

/// A note that a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores construct matches")]
pub struct NoteMatch {
    /// The note.
    pub note: MemoryNote,
    /// The part of its text around the first match.
    pub snippet: String,
}

/// A page of the notes that a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores construct pages")]
pub struct NotePage {
    /// The matches, the best first.
    pub matches: Vec<NoteMatch>,
    /// Whether there are more after them.
    pub has_more: bool,
}

/// Returns a new id: `note-` and 16 random hexadecimal digits.
///
/// # Errors
///
/// Fails when the system has no random numbers.
#[doc(hidden)]
pub fn new_note_id() -> io::Result<String> {
    Ok(format!("note-{:016x}", getrandom::u64()?))
}

/// Checks that `id` can be the id of a note, so that a path never is one.
///
/// # Errors
///
/// Fails with [`InvalidInput`](io::ErrorKind::InvalidInput) and the reason.
#[doc(hidden)]
pub fn check_note_id(id: &str) -> io::Result<()> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(is_allowed) {
        return Ok(());
    }
    let why = format!(
        "`{:.80}` is not the id of a note; ids have letters, digits, `-` and `_` only",
        id.escape_debug().to_string()
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}
