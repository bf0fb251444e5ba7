//! The service by which tools reach the notes of their session.

use std::fmt;
use std::io;
use std::sync::Arc;

use super::{
    DynEmbedder, DynMemoryStore, Embedder, Embedding, MemoryNote, MemoryOwner, MemoryStore,
    NoteChanges, NoteDraft, NotePage, NoteQuery, NoteWrite, fuse_rankings, rank_by_similarity,
};
use crate::context::Session;
use crate::error::ToolError;

/// How many notes without an embedding a search embeds at most; the next search continues.
const MAX_EMBEDDED_PER_SEARCH: usize = 64;

/// A [`MemoryStore`] as a service of sessions, with an [`Embedder`] if there is one.
///
/// # Examples
///
/// ```
/// use tool_sdk::{InProcessMemoryStore, MemoryHandle, Session};
///
/// let memory = MemoryHandle::new(InProcessMemoryStore::default());
/// let session = Session::new("s1").with_service(memory);
/// ```
#[derive(Clone)]
pub struct MemoryHandle {
    store: Arc<dyn DynMemoryStore>,
    embedder: Option<Arc<dyn DynEmbedder>>,
    /// The project of sessions that name none.
    project: Option<String>,
}

impl fmt::Debug for MemoryHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let model = self.embedder.as_ref().map(|embedder| embedder.model());
        f.debug_struct("MemoryHandle").field("embedder", &model).finish_non_exhaustive()
    }
}

impl MemoryHandle {
    /// Wraps a store; notes are ranked by their words.
    #[must_use]
    pub fn new(store: impl MemoryStore) -> Self {
        Self { store: Arc::new(store), embedder: None, project: None }
    }

    /// Ranks notes by meaning as well: by words and by embeddings, fused by reciprocal rank.
    #[must_use]
    pub fn with_embedder(self, embedder: impl Embedder) -> Self {
        Self { embedder: Some(Arc::new(embedder)), ..self }
    }

    /// Sets the project of sessions that name none, such as the path of their workspace.
    #[must_use]
    pub fn with_project(self, project: impl Into<String>) -> Self {
        Self { project: Some(project.into()), ..self }
    }

    /// Returns the owner of the notes of a session.
    #[must_use]
    pub fn owner_for(&self, session: &Session) -> MemoryOwner {
        let owner = MemoryOwner::from_session(session);
        MemoryOwner { project: owner.project.or_else(|| self.project.clone()), ..owner }
    }

    /// Keeps a new note.
    ///
    /// # Errors
    ///
    /// Fails when the store does, and for the scope `project` without a project.
    pub async fn create_note(
        &self,
        owner: &MemoryOwner,
        draft: NoteDraft,
    ) -> Result<MemoryNote, ToolError> {
        self.store.create_note(owner, draft).await.map_err(store_error)
    }

    /// Returns the note with this id, if the owner may see it.
    ///
    /// # Errors
    ///
    /// Fails when the store does.
    pub async fn find_note(
        &self,
        owner: &MemoryOwner,
        id: &str,
    ) -> Result<Option<MemoryNote>, ToolError> {
        self.store.find_note(owner, id).await.map_err(store_error)
    }

    /// Changes a note whose version is still `version`.
    ///
    /// # Errors
    ///
    /// Fails when the store does.
    pub async fn update_note(
        &self,
        owner: &MemoryOwner,
        id: &str,
        version: u64,
        changes: NoteChanges,
    ) -> Result<NoteWrite, ToolError> {
        self.store.update_note(owner, id, version, changes).await.map_err(store_error)
    }

    /// Deletes a note.
    ///
    /// # Errors
    ///
    /// Fails when the store does.
    pub async fn delete_note(
        &self,
        owner: &MemoryOwner,
        id: &str,
        version: Option<u64>,
    ) -> Result<NoteWrite, ToolError> {
        self.store.delete_note(owner, id, version).await.map_err(store_error)
    }

    /// Searches notes. Where the embedder fails, they are ranked by their words, and the host is
    /// warned.
    ///
    /// # Errors
    ///
    /// Fails when the store does.
    pub async fn search_notes(
        &self,
        owner: &MemoryOwner,
        mut query: NoteQuery,
    ) -> Result<NotePage, ToolError> {
        if let Some(embedder) = self.embedder.as_deref()
            && !query.text.trim().is_empty()
        {
            match self.embed_query(owner, &query.text, embedder).await {
                Ok(embedding) => query.embedding = Some(embedding),
                Err(error) => {
                    tracing::warn!(%error, "cannot embed notes; they are ranked by their words");
                }
            }
        }
        self.store.search_notes(owner, &query).await.map_err(store_error)
    }

    /// Ranks texts for a query: by the ranking `by_words` of their indices and by embeddings, fused by
    /// reciprocal rank. Texts that neither ranking has are left out.
    ///
    /// Without an embedder, and where it fails, the result is `by_words`; the host is warned of a
    /// failure.
    pub async fn rank_texts(
        &self,
        query: &str,
        texts: &[String],
        by_words: Vec<usize>,
    ) -> Vec<usize> {
        let Some(embedder) = self.embedder.as_deref() else { return by_words };
        let all = std::iter::once(query).chain(texts.iter().map(String::as_str));
        match embedder.embed_texts(all.map(str::to_owned).collect()).await {
            Ok(vectors) if vectors.len() == texts.len() + 1 => {
                let mut vectors = vectors.into_iter();
                let wanted = vectors.next().unwrap_or_default();
                let by_meaning = rank_by_similarity(&wanted, vectors.enumerate(), texts.len());
                fuse_rankings(&[by_meaning, by_words])
            }
            Ok(vectors) => {
                tracing::warn!(
                    vectors = vectors.len(),
                    texts = texts.len() + 1,
                    "embeddings are missing"
                );
                by_words
            }
            Err(error) => {
                tracing::warn!(%error, "cannot embed texts; they are ranked by their words");
                by_words
            }
        }
    }

    /// Embeds the text of a query, together with notes that have no embedding yet.
    async fn embed_query(
        &self,
        owner: &MemoryOwner,
        text: &str,
        embedder: &dyn DynEmbedder,
    ) -> Result<Embedding, ToolError> {
        let model = embedder.model();
        let missing = self.store.list_unembedded(owner, model, MAX_EMBEDDED_PER_SEARCH).await;
        let missing = missing.map_err(store_error)?;
        let mut texts = vec![text.to_owned()];
        texts.extend(missing.iter().map(|note| format!("{}\n{}", note.title, note.content)));
        let wanted = texts.len();
        let mut vectors = embedder.embed_texts(texts).await?;
        if vectors.len() != wanted {
            let got = vectors.len();
            return Err(ToolError::failed(format_args!("{got} vectors for {wanted} texts")));
        }
        let embedding = |vector| Embedding { model: model.to_owned(), vector };
        let query = embedding(vectors.remove(0));
        for (note, vector) in missing.iter().zip(vectors) {
            let saved = self.store.save_embedding(owner, &note.id, note.version, embedding(vector));
            saved.await.map_err(store_error)?;
        }
        Ok(query)
    }
}

/// Turns an error of the store into one that says what the model can do about it.
fn store_error(error: io::Error) -> ToolError {
    match error.kind() {
        io::ErrorKind::InvalidInput => ToolError::invalid_args(&error),
        io::ErrorKind::AlreadyExists => ToolError::conflict(&error),
        io::ErrorKind::NotFound => ToolError::config(&error),
        _ => ToolError::unavailable(format_args!("the memory is not available: {error}"))
            .hint("go on without it, and tell the user"),
    }
    .source(error)
}
