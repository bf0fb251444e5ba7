//! Memory: notes that outlive a session, and where they are kept.
//!
//! A [`MemoryStore`] keeps the notes of all users; a [`MemoryOwner`] says whose notes a call may
//! see. [`InProcessMemoryStore`] keeps them until the program ends. Tools get a [`MemoryHandle`]
//! from their session.
//!
//! **Invariant:** no method returns, changes or reveals a note of another owner.

mod embedder;
mod handle;
mod in_process;
mod note;
mod ranking;
mod search_terms;
mod snippet;
#[cfg(test)]
mod tests;

use std::io;

use futures_util::future::BoxFuture;

pub(crate) use self::embedder::DynEmbedder;
pub use self::embedder::{Embedder, Embedding};
pub use self::handle::MemoryHandle;
pub use self::in_process::InProcessMemoryStore;
pub use self::note::{
    MemoryCategory, MemoryNote, MemoryOwner, MemoryScope, NoteChanges, NoteDraft, NoteMatch,
    NotePage, NoteQuery, NoteWrite, check_note_id, new_note_id,
};
pub use self::ranking::{fuse_rankings, rank_by_similarity};
pub use self::search_terms::SearchTerms;
pub use self::snippet::make_snippet;

/// Keeps notes for several owners.
///
/// An error is one of the store, such as a full disk; its text is shown to the model. That a note
/// is unknown or has changed is a [`NoteWrite`], not an error.
///
/// # Examples
///
/// ```
/// use tool_sdk::{
///     InProcessMemoryStore, MemoryOwner, MemoryScope, MemoryStore, NoteDraft, NoteQuery, NoteWrite,
/// };
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let (store, owner) = (InProcessMemoryStore::default(), MemoryOwner::default());
/// let draft = NoteDraft { scope: MemoryScope::User, ..NoteDraft::new("Ada prefers tea") };
/// let note = store.create_note(&owner, draft).await?;
/// let page = store.search_notes(&owner, &NoteQuery::new("tea")).await?;
/// assert_eq!(page.matches[0].note.id, note.id);
///
/// let removed = store.delete_note(&owner, &note.id, Some(note.version)).await?;
/// assert!(matches!(removed, NoteWrite::Done(_)));
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait MemoryStore: Send + Sync + 'static {
    /// Keeps a new note with version 1 and returns it. Fails with
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if the draft has the id of another note.
    fn create_note(
        &self,
        owner: &MemoryOwner,
        draft: NoteDraft,
    ) -> impl Future<Output = io::Result<MemoryNote>> + Send;

    /// Returns the note with this id, if the owner may see it.
    fn find_note(
        &self,
        owner: &MemoryOwner,
        id: &str,
    ) -> impl Future<Output = io::Result<Option<MemoryNote>>> + Send;

    /// Changes a note whose version is still `version`, and counts its version up by one.
    fn update_note(
        &self,
        owner: &MemoryOwner,
        id: &str,
        version: u64,
        changes: NoteChanges,
    ) -> impl Future<Output = io::Result<NoteWrite>> + Send;

    /// Deletes a note, with `version` only if that is still its version, and returns what it was.
    fn delete_note(
        &self,
        owner: &MemoryOwner,
        id: &str,
        version: Option<u64>,
    ) -> impl Future<Output = io::Result<NoteWrite>> + Send;

    /// Returns the notes that match, the best first; for a query without words all notes, the
    /// last changed first.
    ///
    /// Notes that have all words come alone; if none has, those that have any; if none has,
    /// those that contain each word as a part of a text. With
    /// [`embedding`](NoteQuery::embedding), this ranking is fused with that by similarity.
    fn search_notes(
        &self,
        owner: &MemoryOwner,
        query: &NoteQuery,
    ) -> impl Future<Output = io::Result<NotePage>> + Send;

    /// Returns up to `limit` notes of the owner whose current version has no embedding of `model`.
    fn list_unembedded(
        &self,
        owner: &MemoryOwner,
        model: &str,
        limit: usize,
    ) -> impl Future<Output = io::Result<Vec<MemoryNote>>> + Send;

    /// Keeps the embedding of this version of a note. A note that has changed since is left alone.
    fn save_embedding(
        &self,
        owner: &MemoryOwner,
        id: &str,
        version: u64,
        embedding: Embedding,
    ) -> impl Future<Output = io::Result<()>> + Send;
}

/// A [`MemoryStore`] behind a pointer; implemented for every store.
#[doc(hidden)]
pub trait DynMemoryStore: Send + Sync + 'static {
    fn create_note<'a>(
        &'a self,
        owner: &'a MemoryOwner,
        draft: NoteDraft,
    ) -> BoxFuture<'a, io::Result<MemoryNote>>;
    fn find_note<'a>(
        &'a self,
        owner: &'a MemoryOwner,
        id: &'a str,
    ) -> BoxFuture<'a, io::Result<Option<MemoryNote>>>;
    fn update_note<'a>(
        &'a self,
        owner: &'a MemoryOwner,
        id: &'a str,
        version: u64,
        changes: NoteChanges,
    ) -> BoxFuture<'a, io::Result<NoteWrite>>;
    fn delete_note<'a>(
        &'a self,
        owner: &'a MemoryOwner,
        id: &'a str,
        version: Option<u64>,
    ) -> BoxFuture<'a, io::Result<NoteWrite>>;
    fn search_notes<'a>(
        &'a self,
        owner: &'a MemoryOwner,
        query: &'a NoteQuery,
    ) -> BoxFuture<'a, io::Result<NotePage>>;
    fn list_unembedded<'a>(
        &'a self,
        owner: &'a MemoryOwner,
        model: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, io::Result<Vec<MemoryNote>>>;
    fn save_embedding<'a>(
        &'a self,
        owner: &'a MemoryOwner,
        id: &'a str,
        version: u64,
        embedding: Embedding,
    ) -> BoxFuture<'a, io::Result<()>>;
}

impl<S: MemoryStore> DynMemoryStore for S {
    fn create_note<'a>(
        &'a self,
        owner: &'a MemoryOwner,
        draft: NoteDraft,
    ) -> BoxFuture<'a, io::Result<MemoryNote>> {
        Box::pin(MemoryStore::create_note(self, owner, draft))
    }

    fn find_note<'a>(
        &'a self,
        owner: &'a MemoryOwner,
        id: &'a str,
    ) -> BoxFuture<'a, io::Result<Option<MemoryNote>>> {
        Box::pin(MemoryStore::find_note(self, owner, id))
    }

    fn update_note<'a>(
        &'a self,
        owner: &'a MemoryOwner,
        id: &'a str,
        version: u64,
        changes: NoteChanges,
    ) -> BoxFuture<'a, io::Result<NoteWrite>> {
        Box::pin(MemoryStore::update_note(self, owner, id, version, changes))
    }

    fn delete_note<'a>(
        &'a self,
        owner: &'a MemoryOwner,
        id: &'a str,
        version: Option<u64>,
    ) -> BoxFuture<'a, io::Result<NoteWrite>> {
        Box::pin(MemoryStore::delete_note(self, owner, id, version))
    }

    fn search_notes<'a>(
        &'a self,
        owner: &'a MemoryOwner,
        query: &'a NoteQuery,
    ) -> BoxFuture<'a, io::Result<NotePage>> {
        Box::pin(MemoryStore::search_notes(self, owner, query))
    }

    fn list_unembedded<'a>(
        &'a self,
        owner: &'a MemoryOwner,
        model: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, io::Result<Vec<MemoryNote>>> {
        Box::pin(MemoryStore::list_unembedded(self, owner, model, limit))
    }

    fn save_embedding<'a>(
        &'a self,
        owner: &'a MemoryOwner,
        id: &'a str,
        version: u64,
        embedding: Embedding,
    ) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(MemoryStore::save_embedding(self, owner, id, version, embedding))
    }
}
