//! Embedders, errors and ids of the memory.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::error::{ErrorKind, ToolError};

/// Knows two meanings: water and fire.
#[derive(Default)]
struct ElementEmbedder {
    fails: AtomicBool,
}

impl Embedder for std::sync::Arc<ElementEmbedder> {
    fn model(&self) -> &str {
        "elements"
    }

    async fn embed_texts(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, ToolError> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(ToolError::unavailable("no model"));
        }
        let has = |text: &str, words: [&str; 2]| {
            f32::from(u8::from(words.iter().any(|word| text.contains(word))))
        };
        let embed =
            |text: &String| vec![has(text, ["rain", "river"]), has(text, ["fire", "flame"])];
        Ok(texts.iter().map(embed).collect())
    }
}

// F152: notes are found by meaning, and by words when the embedder fails.
#[tokio::test]
async fn an_embedder_adds_a_ranking_and_may_fail() {
    let embedder = std::sync::Arc::new(ElementEmbedder::default());
    let memory = MemoryHandle::new(InProcessMemoryStore::default())
        .with_embedder(std::sync::Arc::clone(&embedder));
    let owner = MemoryOwner::default();
    let draft = |content: &str| NoteDraft { scope: MemoryScope::User, ..NoteDraft::new(content) };
    for content in ["the river is wide", "a flame is hot", "the rain word"] {
        memory.create_note(&owner, draft(content)).await.unwrap();
    }
    let found = memory.search_notes(&owner, NoteQuery::new("rain")).await.unwrap();
    let texts: Vec<_> = found.matches.iter().map(|it| it.note.content.as_str()).collect();
    assert_eq!(texts, ["the rain word", "the river is wide"], "words and meaning, then meaning");

    embedder.fails.store(true, Ordering::Relaxed);
    let found = memory.search_notes(&owner, NoteQuery::new("rain")).await.unwrap();
    assert_eq!(found.matches.len(), 1);
}

#[tokio::test]
async fn an_error_of_the_store_says_what_to_do() {
    let memory = MemoryHandle::new(InProcessMemoryStore::default());
    let owner = MemoryOwner::default();
    let error = memory.create_note(&owner, NoteDraft::new("x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    assert!(error.message().contains("scope `user`"), "{}", error.message());
}

// F152: ids are not paths.
#[test]
fn a_path_is_no_id() {
    for id in ["", "../secret", "a/b", "a.b", "C:x", "é", "a\0", &"x".repeat(65)] {
        assert_eq!(check_note_id(id).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{id:?}");
    }
    check_note_id(&new_note_id().unwrap()).unwrap();
}

// F151, F152
#[cfg(feature = "testing")]
#[tokio::test]
async fn the_store_in_memory_keeps_the_promises() {
    crate::testing::check_memory_store(&InProcessMemoryStore::default()).await;
}
