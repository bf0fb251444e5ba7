//! Notes in memory, until the program ends.
//!
//! Its ranking is that of the trait's documentation, with counts of words in place of BM25.

use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::search_terms::split_tokens;
use super::{
    Embedding, MemoryNote, MemoryOwner, MemoryScope, MemoryStore, NoteChanges, NoteDraft,
    NoteMatch, NotePage, NoteQuery, NoteWrite, SearchTerms, fuse_rankings, make_snippet,
    rank_by_similarity,
};

/// How much a word counts in the title, in the tags and in the text.
const TITLE_WEIGHT: usize = 4;
const TAG_WEIGHT: usize = 2;

/// Keeps notes in memory, until the program ends.
#[derive(Default)]
pub struct InProcessMemoryStore {
    notes: Mutex<Vec<OwnedNote>>,
}

struct OwnedNote {
    user: Option<String>,
    /// Of the scope `project`.
    project: Option<String>,
    note: MemoryNote,
    /// The embeddings, with the version that each belongs to.
    embeddings: Vec<(u64, Embedding)>,
}

impl OwnedNote {
    fn is_visible_to(&self, owner: &MemoryOwner) -> bool {
        let is_here = self.project.is_none() || self.project == owner.project;
        self.user == owner.user && is_here
    }

    fn embedding(&self, model: &str) -> Option<&Embedding> {
        let current = self.embeddings.iter().filter(|(version, _)| *version == self.note.version);
        current.map(|(_, embedding)| embedding).find(|embedding| embedding.model == model)
    }
}

impl InProcessMemoryStore {
    /// A poisoned lock still guards whole notes: no operation panics half-way.
    fn lock_notes(&self) -> MutexGuard<'_, Vec<OwnedNote>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for InProcessMemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessMemoryStore").field("notes", &self.lock_notes().len()).finish()
    }
}

impl MemoryStore for InProcessMemoryStore {
    async fn create_note(&self, owner: &MemoryOwner, draft: NoteDraft) -> io::Result<MemoryNote> {
        let note = draft.into_note(owner, SystemTime::now())?;
        let mut notes = self.lock_notes();
        if notes.iter().any(|it| it.user == owner.user && it.note.id == note.id) {
            let why = format!("there is a note `{}` already", note.id);
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        let project = owner.project.clone().filter(|_| note.scope == MemoryScope::Project);
        let (user, kept) = (owner.user.clone(), note.clone());
        notes.push(OwnedNote { user, project, note: kept, embeddings: Vec::new() });
        Ok(note)
    }

    async fn find_note(&self, owner: &MemoryOwner, id: &str) -> io::Result<Option<MemoryNote>> {
        let notes = self.lock_notes();
        let mut visible = notes.iter().filter(|it| it.is_visible_to(owner));
        Ok(visible.find(|it| it.note.id == id).map(|it| it.note.clone()))
    }

    async fn update_note(
        &self,
        owner: &MemoryOwner,
        id: &str,
        version: u64,
        changes: NoteChanges,
    ) -> io::Result<NoteWrite> {
        let mut notes = self.lock_notes();
        let found = notes.iter_mut().find(|it| it.is_visible_to(owner) && it.note.id == id);
        let Some(OwnedNote { note, .. }) = found else { return Ok(NoteWrite::NotFound) };
        if note.version != version {
            return Ok(NoteWrite::Conflict { current: note.version });
        }
        changes.apply_to(note, SystemTime::now());
        Ok(NoteWrite::Done(note.clone()))
    }

    async fn delete_note(
        &self,
        owner: &MemoryOwner,
        id: &str,
        version: Option<u64>,
    ) -> io::Result<NoteWrite> {
        let mut notes = self.lock_notes();
        let found = notes.iter().position(|it| it.is_visible_to(owner) && it.note.id == id);
        let Some(at) = found else { return Ok(NoteWrite::NotFound) };
        let current = notes[at].note.version;
        if version.is_some_and(|version| version != current) {
            return Ok(NoteWrite::Conflict { current });
        }
        Ok(NoteWrite::Done(notes.remove(at).note))
    }

    async fn search_notes(&self, owner: &MemoryOwner, query: &NoteQuery) -> io::Result<NotePage> {
        let notes = self.lock_notes();
        let mut admitted: Vec<&OwnedNote> =
            notes.iter().filter(|it| it.is_visible_to(owner) && query.admits(&it.note)).collect();
        admitted.sort_by_key(|it| std::cmp::Reverse(it.note.updated));
        let terms = SearchTerms::parse(&query.text);
        let mut ranking = rank_by_words(&admitted, &terms);
        if let Some(wanted) = &query.embedding {
            let vectors = admitted
                .iter()
                .enumerate()
                .filter_map(|(at, it)| Some((at, it.embedding(&wanted.model)?.vector.clone())));
            let similar = rank_by_similarity(&wanted.vector, vectors, admitted.len());
            ranking = fuse_rankings(&[ranking, similar]);
        }
        let page = ranking.iter().skip(query.offset).take(query.limit);
        let matches = page
            .map(|at| admitted[*at].note.clone())
            .map(|note| NoteMatch { snippet: make_snippet(&note.content, &terms), note });
        let has_more = ranking.len() > query.offset.saturating_add(query.limit);
        Ok(NotePage { matches: matches.collect(), has_more })
    }

    async fn list_unembedded(
        &self,
        owner: &MemoryOwner,
        model: &str,
        limit: usize,
    ) -> io::Result<Vec<MemoryNote>> {
        let notes = self.lock_notes();
        let missing = notes.iter().filter(|it| it.is_visible_to(owner));
        let missing = missing.filter(|it| it.embedding(model).is_none());
        Ok(missing.take(limit).map(|it| it.note.clone()).collect())
    }

    async fn save_embedding(
        &self,
        owner: &MemoryOwner,
        id: &str,
        version: u64,
        embedding: Embedding,
    ) -> io::Result<()> {
        let mut notes = self.lock_notes();
        let found = notes.iter_mut().find(|it| it.is_visible_to(owner) && it.note.id == id);
        if let Some(note) = found.filter(|it| it.note.version == version) {
            note.embeddings.retain(|(_, other)| other.model != embedding.model);
            note.embeddings.push((version, embedding));
        }
        Ok(())
    }
}

/// Ranks notes by their words, as places in `notes`; without words in the order of `notes`.
fn rank_by_words(notes: &[&OwnedNote], terms: &SearchTerms) -> Vec<usize> {
    if terms.is_empty() {
        return (0..notes.len()).collect();
    }
    let phrases = terms.tokens();
    let counts: Vec<Vec<usize>> =
        notes.iter().map(|it| count_phrases(&it.note, &phrases, terms.is_last_prefix())).collect();
    let has_all = |counts: &Vec<usize>| counts.iter().all(|count| *count > 0);
    let needs_all = counts.iter().any(has_all);
    let is_match = |counts: &Vec<usize>| {
        if needs_all { has_all(counts) } else { counts.iter().any(|it| *it > 0) }
    };
    let mut found: Vec<usize> = (0..notes.len()).filter(|at| is_match(&counts[*at])).collect();
    found.sort_by_key(|at| std::cmp::Reverse(counts[*at].iter().sum::<usize>()));
    if found.is_empty() {
        let words = terms.lowercase_words();
        found = (0..notes.len()).filter(|at| contains_parts(&notes[*at].note, &words)).collect();
    }
    found
}

/// Counts how often each phrase occurs, by its weight. With `is_last_prefix`, the last token of the
/// last phrase may be the start of a word.
fn count_phrases(note: &MemoryNote, phrases: &[Vec<String>], is_last_prefix: bool) -> Vec<usize> {
    let tags = note.tags.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
    let fields = [
        (split_tokens(&note.title), TITLE_WEIGHT),
        (split_tokens(&tags), TAG_WEIGHT),
        (split_tokens(&note.content), 1),
    ];
    let count = |(nth, phrase): (usize, &Vec<String>)| {
        let is_last = is_last_prefix && nth + 1 == phrases.len();
        let occurrences = |tokens: &[String]| {
            tokens.windows(phrase.len()).filter(|it| is_phrase(it, phrase, is_last)).count()
        };
        fields.iter().map(|(tokens, weight)| occurrences(tokens) * weight).sum()
    };
    phrases.iter().enumerate().map(count).collect()
}

fn is_phrase(tokens: &[String], phrase: &[String], is_prefix: bool) -> bool {
    let Some((last, before)) = phrase.split_last() else { return false };
    let (end, start) = (&tokens[before.len()], &tokens[..before.len()]);
    start == before && if is_prefix { end.starts_with(last) } else { end == last }
}

/// Returns whether title, tags or text contain each word, also inside of another.
fn contains_parts(note: &MemoryNote, words: &[String]) -> bool {
    let tags = note.tags.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    let whole = format!("{}\n{tags}\n{}", note.title, note.content).to_lowercase();
    words.iter().all(|word| whole.contains(word))
}
