//! The check of memory stores, for the stores of the SDK and of hosts.

use std::collections::BTreeSet;
use std::io;

use crate::memory_store::{
    Embedding, MemoryCategory, MemoryOwner, MemoryScope, MemoryStore, NoteChanges, NoteDraft,
    NoteQuery, NoteWrite,
};

/// Checks what a [`MemoryStore`] promises, on an empty store.
///
/// # Panics
///
/// Panics when the store breaks a promise.
///
/// # Examples
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// tool_sdk::testing::check_memory_store(&tool_sdk::InProcessMemoryStore::default()).await;
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn check_memory_store(store: &impl MemoryStore) {
    check_writes(store).await;
    check_owners(store).await;
    check_searches(store).await;
    check_filters_and_pages(store).await;
    check_embeddings(store).await;
}

fn owner(user: &str, project: &str) -> MemoryOwner {
    MemoryOwner { user: Some(user.to_owned()), project: Some(project.to_owned()) }
}

async fn check_writes(store: &impl MemoryStore) {
    let ada = owner("writes", "p");
    let draft = NoteDraft { title: "Tea".to_owned(), ..NoteDraft::new("Ada prefers tea") };
    let note = ok(store.create_note(&ada, draft).await);
    assert_eq!(note.version, 1, "a new note has version 1");
    assert_eq!(ok(store.find_note(&ada, &note.id).await).as_ref(), Some(&note), "it is found");

    let changes = NoteChanges { content: Some("coffee".to_owned()), ..NoteChanges::default() };
    let NoteWrite::Done(changed) = ok(store.update_note(&ada, &note.id, 1, changes.clone()).await)
    else {
        panic!("a note of this version is changed");
    };
    assert_eq!((changed.version, &*changed.content, &*changed.title), (2, "coffee", "Tea"));
    let lost = ok(store.update_note(&ada, &note.id, 1, changes).await);
    assert_eq!(lost, NoteWrite::Conflict { current: 2 }, "a lost update is a conflict");
    let lost = ok(store.delete_note(&ada, &note.id, Some(1)).await);
    assert_eq!(lost, NoteWrite::Conflict { current: 2 }, "an outdated deletion is a conflict");
    assert_eq!(ok(store.find_note(&ada, &note.id).await), Some(changed.clone()), "it stayed");

    let taken = NoteDraft { id: Some(note.id.clone()), ..NoteDraft::new("other") };
    let error = store.create_note(&ada, taken).await.expect_err("an id is used once");
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    let path = NoteDraft { id: Some("../x".to_owned()), ..NoteDraft::new("other") };
    let error = store.create_note(&ada, path).await.expect_err("a path is no id");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);

    let removed = ok(store.delete_note(&ada, &note.id, Some(2)).await);
    assert_eq!(removed, NoteWrite::Done(changed), "a deleted note is returned");
    assert_eq!(ok(store.delete_note(&ada, &note.id, None).await), NoteWrite::NotFound);
    assert_eq!(found(store, &ada, "coffee").await, [""; 0], "a deleted note is not found");
}

async fn check_owners(store: &impl MemoryStore) {
    let (here, there, other) = (owner("ada", "p"), owner("ada", "q"), owner("eve", "p"));
    let host = MemoryOwner { user: None, project: Some("p".to_owned()) };
    let anonymous = MemoryOwner { user: Some(String::new()), project: Some("p".to_owned()) };
    let project = ok(store.create_note(&here, NoteDraft::new("hidden in p")).await);
    let draft = NoteDraft { scope: MemoryScope::User, ..NoteDraft::new("hidden everywhere") };
    let everywhere = ok(store.create_note(&here, draft).await);
    assert_eq!(found(store, &here, "hidden").await.len(), 2);
    assert_eq!(found(store, &there, "hidden").await, ["hidden everywhere"]);
    for owner in [&other, &host, &anonymous] {
        assert_eq!(found(store, owner, "hidden").await, [""; 0], "{owner:?}");
        for id in [&project.id, &everywhere.id] {
            assert_eq!(ok(store.find_note(owner, id).await), None, "{owner:?}");
            let changes = NoteChanges::default();
            let changed = ok(store.update_note(owner, id, 1, changes).await);
            assert_eq!(changed, NoteWrite::NotFound, "{owner:?}");
            let removed = ok(store.delete_note(owner, id, None).await);
            assert_eq!(removed, NoteWrite::NotFound, "{owner:?}");
        }
    }
    let draft = NoteDraft::new("nowhere");
    let homeless = MemoryOwner { user: Some("ada".to_owned()), project: None };
    let error = store.create_note(&homeless, draft).await.expect_err("there is no project");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

async fn check_searches(store: &impl MemoryStore) {
    let ada = owner("search", "p");
    for (title, content) in [
        ("Build", "Use cargo test before each commit"),
        ("Deploy", "Never deploy on Fridays; ask C++ team"),
        ("Cafe", "The Café opens at nine, src/main.rs knows"),
        ("City", "我在东京工作"),
    ] {
        let draft = NoteDraft { title: title.to_owned(), ..NoteDraft::new(content) };
        ok(store.create_note(&ada, draft).await);
    }
    for (text, expected) in [
        ("cargo commit", vec!["Build"]),
        ("COMMIT", vec!["Build"]),
        ("fri", vec!["Deploy"]),
        ("deploy", vec!["Deploy"]),
        ("C++", vec!["Deploy"]),
        ("src/main.rs", vec!["Cafe"]),
        ("café", vec!["Cafe"]),
        ("东京", vec!["City"]),
        ("ommi", vec!["Build"]),
        ("absent", vec![]),
    ] {
        assert_eq!(titles(store, &ada, text).await, expected, "{text:?}");
    }
    let mut either = titles(store, &ada, "cargo fridays").await;
    either.sort_unstable();
    assert_eq!(either, ["Build", "Deploy"], "no note has both words");
    // What a query language would read as syntax.
    for text in [
        "\"",
        "AND",
        "NOT x",
        "title:",
        "a OR",
        "NEAR(a b, 2)",
        "{",
        "^",
        "*",
        "a*",
        "-a",
        "col : x",
        "'; DROP TABLE notes; --",
        "#",
        "/",
        ",",
        "(",
        "a\0b",
        "\u{feff}",
        "%",
        "_",
        "+",
    ] {
        let _ = titles(store, &ada, text).await;
    }
    assert_eq!(titles(store, &ada, "title: cargo").await, ["Build"]);
    assert_eq!(titles(store, &ada, "").await.len(), 4, "no words list all notes");
}

async fn check_filters_and_pages(store: &impl MemoryStore) {
    let ada = owner("pages", "p");
    let tags = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<BTreeSet<_>>();
    for number in 0..5 {
        let draft = NoteDraft {
            category: MemoryCategory::ALL[number % 2],
            scope: MemoryScope::ALL[number % 2],
            tags: tags(if number < 3 { &["low", "all"] } else { &["all"] }),
            ..NoteDraft::new(format!("entry {number}"))
        };
        ok(store.create_note(&ada, draft).await);
    }
    let query = |change: fn(&mut NoteQuery)| {
        let mut query = NoteQuery::new("entry");
        change(&mut query);
        query
    };
    for (query, expected) in [
        (query(|_| ()), 5),
        (query(|it| it.category = Some(MemoryCategory::ALL[0])), 3),
        (query(|it| it.scope = Some(MemoryScope::User)), 2),
        (query(|it| it.tags = BTreeSet::from(["low".to_owned()])), 3),
        (query(|it| it.tags = BTreeSet::from(["low".to_owned(), "all".to_owned()])), 3),
        (query(|it| it.tags = BTreeSet::from(["lo".to_owned()])), 0),
        (query(|it| it.text = "low".to_owned()), 3),
    ] {
        let page = ok(store.search_notes(&ada, &query).await);
        assert_eq!((page.matches.len(), page.has_more), (expected, false), "{query:?}");
    }
    let mut seen = BTreeSet::new();
    for (offset, more) in [(0, true), (2, true), (4, false), (6, false)] {
        let query = NoteQuery { offset, limit: 2, ..NoteQuery::new("entry") };
        let page = ok(store.search_notes(&ada, &query).await);
        assert_eq!(page.has_more, more, "offset {offset}");
        seen.extend(page.matches.into_iter().map(|it| it.note.content));
    }
    assert_eq!(seen.len(), 5, "pages neither repeat nor miss a note");
}

async fn check_embeddings(store: &impl MemoryStore) {
    let ada = owner("embeddings", "p");
    let embedding = |vector: [f32; 2]| Embedding { model: "m".to_owned(), vector: vector.to_vec() };
    let mut ids = Vec::new();
    for (content, vector) in
        [("alpha word", [1.0, 0.0]), ("beta", [0.9, 0.1]), ("gamma", [0.0, 1.0])]
    {
        let note = ok(store.create_note(&ada, NoteDraft::new(content)).await);
        ok(store.save_embedding(&ada, &note.id, 1, embedding(vector)).await);
        ids.push(note.id);
    }
    assert_eq!(ok(store.list_unembedded(&ada, "m", 10).await), []);
    assert_eq!(ok(store.list_unembedded(&ada, "other", 2).await).len(), 2);
    let query = NoteQuery { embedding: Some(embedding([1.0, 0.0])), ..NoteQuery::new("word") };
    let page = ok(store.search_notes(&ada, &query).await);
    let texts: Vec<_> = page.matches.iter().map(|it| it.note.content.as_str()).collect();
    assert_eq!(texts, ["alpha word", "beta"], "words and similarity are fused");

    let changes = NoteChanges { content: Some("delta".to_owned()), ..NoteChanges::default() };
    ok(store.update_note(&ada, &ids[1], 1, changes).await);
    let missing = ok(store.list_unembedded(&ada, "m", 10).await);
    assert_eq!(missing.len(), 1, "a changed note is embedded again");
    ok(store.save_embedding(&ada, &ids[1], 1, embedding([1.0, 0.0])).await);
    assert_eq!(ok(store.list_unembedded(&ada, "m", 10).await).len(), 1, "not of the old version");
}

fn ok<T>(result: io::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("the store failed: {error}"))
}

/// Returns the texts of the notes that a search finds.
async fn found(store: &impl MemoryStore, owner: &MemoryOwner, text: &str) -> Vec<String> {
    let page = ok(store.search_notes(owner, &NoteQuery::new(text)).await);
    page.matches.into_iter().map(|it| it.note.content).collect()
}

/// Returns the titles of the notes that a search finds.
async fn titles(store: &impl MemoryStore, owner: &MemoryOwner, text: &str) -> Vec<String> {
    let page = ok(store.search_notes(owner, &NoteQuery::new(text)).await);
    page.matches.into_iter().map(|it| it.note.title).collect()
}
