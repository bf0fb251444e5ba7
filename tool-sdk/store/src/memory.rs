//! Notes on SQLite, found by FTS5.
//!
//! **Invariant:** text of a model reaches `MATCH` only as quoted phrases.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::types::Type;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Row, named_params, params};
use tool_sdk_core::internal::{SearchTerms, fuse_rankings, make_snippet, rank_by_similarity};
use tool_sdk_core::{
    Embedding, MemoryNote, MemoryOwner, MemoryScope, MemoryStore, NoteChanges, NoteDraft,
    NoteMatch, NotePage, NoteQuery, NoteWrite,
};

use crate::SqliteStore;

/// The columns of a note, as [`read_note`] wants them.
pub(crate) const COLUMNS: &str =
    "n.id, n.title, n.content, n.category, n.project, n.tags, n.version, n.created, n.updated";

/// What a note must be for an owner to see it.
const VISIBLE: &str = "n.owner = :owner AND (n.project IS NULL OR n.project = :project)";

/// The filters of a query. Each parameter that is NULL admits everything.
const ADMITTED: &str = "(:scope IS NULL OR (n.project IS NULL) = (:scope = 'user'))
    AND (:category IS NULL OR n.category = :category)
    AND (:tags IS NULL OR NOT EXISTS (
        SELECT 1 FROM json_each(:tags) AS wanted
        WHERE wanted.value NOT IN (SELECT value FROM json_each(n.tags))))";

/// How many matches of each ranking are fused.
const MAX_FUSED: usize = 200;

impl MemoryStore for SqliteStore {
    async fn create_note(&self, owner: &MemoryOwner, draft: NoteDraft) -> io::Result<MemoryNote> {
        let note = draft.into_note(owner, now())?;
        let project = owner.project.clone().filter(|_| note.scope == MemoryScope::Project);
        let (owner, kept) = (owner_key(owner), note.clone());
        let created = self.state.write(move |transaction| {
            let inserted = transaction.execute(
                "INSERT INTO notes (owner, project, id, title, content, category, tags, version,
                    created, updated)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)",
                params![
                    owner,
                    project,
                    kept.id,
                    kept.title,
                    kept.content,
                    kept.category.as_str(),
                    tags_json(&kept.tags),
                    to_sql_number(kept.version),
                    to_millis(kept.created),
                ],
            );
            match inserted {
                Ok(_) => Ok(true),
                Err(error) if is_constraint(&error) => Ok(false),
                Err(error) => Err(error),
            }
        });
        if created.await? {
            return Ok(note);
        }
        let why = format!("there is a note `{}` already", note.id);
        Err(io::Error::new(io::ErrorKind::AlreadyExists, why))
    }

    async fn find_note(&self, owner: &MemoryOwner, id: &str) -> io::Result<Option<MemoryNote>> {
        let (owner, id) = (owner.clone(), id.to_owned());
        Ok(self.state.read(move |connection| select_note(connection, &owner, &id)).await?)
    }

    async fn update_note(
        &self,
        owner: &MemoryOwner,
        id: &str,
        version: u64,
        changes: NoteChanges,
    ) -> io::Result<NoteWrite> {
        let (owner, id) = (owner.clone(), id.to_owned());
        let updated = self.state.write(move |transaction| {
            let Some(mut note) = select_note(transaction, &owner, &id)? else {
                return Ok(NoteWrite::NotFound);
            };
            if note.version != version {
                return Ok(NoteWrite::Conflict { current: note.version });
            }
            changes.apply_to(&mut note, now());
            transaction.execute(
                "UPDATE notes SET title = ?3, content = ?4, category = ?5, tags = ?6, version = ?7,
                    updated = ?8
                 WHERE owner = ?1 AND id = ?2",
                params![
                    owner_key(&owner),
                    id,
                    note.title,
                    note.content,
                    note.category.as_str(),
                    tags_json(&note.tags),
                    to_sql_number(note.version),
                    to_millis(note.updated),
                ],
            )?;
            Ok(NoteWrite::Done(note))
        });
        Ok(updated.await?)
    }

    async fn delete_note(
        &self,
        owner: &MemoryOwner,
        id: &str,
        version: Option<u64>,
    ) -> io::Result<NoteWrite> {
        let (owner, id) = (owner.clone(), id.to_owned());
        let deleted = self.state.write(move |transaction| {
            let Some(note) = select_note(transaction, &owner, &id)? else {
                return Ok(NoteWrite::NotFound);
            };
            if version.is_some_and(|version| version != note.version) {
                return Ok(NoteWrite::Conflict { current: note.version });
            }
            let of_note = params![owner_key(&owner), id];
            transaction.execute("DELETE FROM notes WHERE owner = ?1 AND id = ?2", of_note)?;
            Ok(NoteWrite::Done(note))
        });
        Ok(deleted.await?)
    }

    async fn search_notes(&self, owner: &MemoryOwner, query: &NoteQuery) -> io::Result<NotePage> {
        let (owner, query) = (owner.clone(), query.clone());
        Ok(self.state.read(move |connection| search(connection, &owner, &query)).await?)
    }

    async fn list_unembedded(
        &self,
        owner: &MemoryOwner,
        model: &str,
        limit: usize,
    ) -> io::Result<Vec<MemoryNote>> {
        let (owner, model) = (owner.clone(), model.to_owned());
        let listed = self.state.read(move |connection| {
            let mut statement = connection.prepare(&format!(
                "SELECT {COLUMNS} FROM notes AS n
                 WHERE {VISIBLE} AND NOT EXISTS (
                    SELECT 1 FROM note_embeddings AS e
                    WHERE e.note = n.number AND e.model = :model AND e.version = n.version)
                 ORDER BY n.number LIMIT :limit"
            ))?;
            let found = statement.query_map(
                named_params! {
                    ":owner": owner_key(&owner),
                    ":project": owner.project,
                    ":model": model,
                    ":limit": to_limit(limit),
                },
                read_note,
            )?;
            found.collect()
        });
        Ok(listed.await?)
    }

    async fn save_embedding(
        &self,
        owner: &MemoryOwner,
        id: &str,
        version: u64,
        embedding: Embedding,
    ) -> io::Result<()> {
        let (owner, id) = (owner.clone(), id.to_owned());
        let saved = self.state.write(move |transaction| {
            transaction.execute(
                &format!(
                    "INSERT INTO note_embeddings (note, model, version, vector)
                     SELECT n.number, :model, :version, :vector FROM notes AS n
                     WHERE {VISIBLE} AND n.id = :id AND n.version = :version
                     ON CONFLICT (note, model) DO UPDATE
                        SET version = excluded.version, vector = excluded.vector"
                ),
                named_params! {
                    ":owner": owner_key(&owner),
                    ":project": owner.project,
                    ":id": id,
                    ":model": embedding.model,
                    ":version": to_sql_number(version),
                    ":vector": vector_bytes(&embedding.vector),
                },
            )
        });
        saved.await?;
        Ok(())
    }
}

fn select_note(
    connection: &Connection,
    owner: &MemoryOwner,
    id: &str,
) -> rusqlite::Result<Option<MemoryNote>> {
    let sql = format!("SELECT {COLUMNS} FROM notes AS n WHERE {VISIBLE} AND n.id = :id");
    let of_note = named_params! {
        ":owner": owner_key(owner),
        ":project": owner.project,
        ":id": id,
    };
    connection.query_row(&sql, of_note, read_note).optional()
}

/// Runs a search: all words, else any word, else parts of the text; with an embedding, fused with
/// the most similar notes.
fn search(
    connection: &Connection,
    owner: &MemoryOwner,
    query: &NoteQuery,
) -> rusqlite::Result<NotePage> {
    let terms = SearchTerms::parse(&query.text);
    let search = NoteSearch { connection, owner, query };
    let Some(wanted) = &query.embedding else {
        // One more than wanted tells whether there are more.
        let limit = query.limit.saturating_add(1);
        let mut notes = search.select_by_words(&terms, query.offset, limit)?;
        let has_more = notes.len() > query.limit;
        notes.truncate(query.limit);
        return Ok(NotePage { matches: with_snippets(notes, &terms), has_more });
    };
    let by_words = search.select_by_words(&terms, 0, MAX_FUSED)?;
    let by_words: Vec<String> = by_words.into_iter().map(|note| note.id).collect();
    let ids = fuse_rankings(&[by_words, search.select_by_similarity(wanted)?]);
    let page = ids.iter().skip(query.offset).take(query.limit);
    let notes: Vec<Option<MemoryNote>> =
        page.map(|id| select_note(connection, owner, id)).collect::<rusqlite::Result<_>>()?;
    let has_more = ids.len() > query.offset.saturating_add(query.limit);
    let notes = notes.into_iter().flatten().collect();
    Ok(NotePage { matches: with_snippets(notes, &terms), has_more })
}

fn with_snippets(notes: Vec<MemoryNote>, terms: &SearchTerms) -> Vec<NoteMatch> {
    let with_snippet =
        |note: MemoryNote| NoteMatch { snippet: make_snippet(&note.content, terms), note };
    notes.into_iter().map(with_snippet).collect()
}

/// A search on a connection.
struct NoteSearch<'a> {
    connection: &'a Connection,
    owner: &'a MemoryOwner,
    query: &'a NoteQuery,
}

impl NoteSearch<'_> {
    fn select_by_words(
        &self,
        terms: &SearchTerms,
        offset: usize,
        limit: usize,
    ) -> rusqlite::Result<Vec<MemoryNote>> {
        if terms.is_empty() {
            let from = "notes AS n";
            return self.select(from, "TRUE", "n.updated DESC, n.number DESC", "", offset, limit);
        }
        for expression in [match_all(terms), match_any(terms)] {
            let found = self.select_ranked(&expression, offset, limit)?;
            // An empty page after the first is the end of the matches, or there is none at all.
            if !found.is_empty() || (offset > 0 && self.has_match(&expression)?) {
                return Ok(found);
            }
        }
        let parts = serde_json::to_string(&terms.lowercase_words()).unwrap_or_default();
        // `lower` folds ASCII letters only; words in other scripts are found as they are written.
        let contained = "NOT EXISTS (
            SELECT 1 FROM json_each(:text) AS part
            WHERE instr(lower(n.title || char(10) || n.tags || char(10) || n.content), part.value) = 0)";
        self.select("notes AS n", contained, "n.updated DESC, n.number DESC", &parts, offset, limit)
    }

    /// Returns whether an expression of FTS5 matches a note that the query admits.
    fn has_match(&self, expression: &str) -> rusqlite::Result<bool> {
        Ok(!self.select_ranked(expression, 0, 1)?.is_empty())
    }

    /// Selects the notes that an expression of FTS5 matches, the best first.
    fn select_ranked(
        &self,
        expression: &str,
        offset: usize,
        limit: usize,
    ) -> rusqlite::Result<Vec<MemoryNote>> {
        // A cross join keeps this order: the index ranks all matches, and only the notes of the page
        // are looked up.
        let from = "note_words AS w CROSS JOIN notes AS n ON n.number = w.rowid";
        self.select(from, "w.note_words MATCH :text", "w.rank", expression, offset, limit)
    }

    fn select(
        &self,
        from: &str,
        condition: &str,
        order: &str,
        text: &str,
        offset: usize,
        limit: usize,
    ) -> rusqlite::Result<Vec<MemoryNote>> {
        let mut statement = self.connection.prepare(&format!(
            "SELECT {COLUMNS} FROM {from}
             WHERE {condition} AND {VISIBLE} AND {ADMITTED} AND :text IS NOT NULL
             ORDER BY {order} LIMIT :limit OFFSET :offset"
        ))?;
        let query = self.query;
        let tags = (!query.tags.is_empty()).then(|| tags_json(&query.tags));
        let found = statement.query_map(
            named_params! {
                ":text": text,
                ":owner": owner_key(self.owner),
                ":project": self.owner.project,
                ":scope": query.scope.map(MemoryScope::as_str),
                ":category": query.category.map(|category| category.as_str()),
                ":tags": tags,
                ":limit": to_limit(limit),
                ":offset": to_limit(offset),
            },
            read_note,
        )?;
        found.collect()
    }

    /// Returns the ids of the notes whose embeddings are most similar.
    fn select_by_similarity(&self, wanted: &Embedding) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.connection.prepare(&format!(
            "SELECT n.id, e.vector FROM note_embeddings AS e JOIN notes AS n ON n.number = e.note
             WHERE e.model = :model AND e.version = n.version AND {VISIBLE} AND {ADMITTED}"
        ))?;
        let query = self.query;
        let tags = (!query.tags.is_empty()).then(|| tags_json(&query.tags));
        let found = statement.query_map(
            named_params! {
                ":model": wanted.model,
                ":owner": owner_key(self.owner),
                ":project": self.owner.project,
                ":scope": query.scope.map(MemoryScope::as_str),
                ":category": query.category.map(|category| category.as_str()),
                ":tags": tags,
            },
            |row| Ok((row.get(0)?, read_vector(&row.get::<_, Vec<u8>>(1)?))),
        )?;
        let vectors: Vec<(String, Vec<f32>)> = found.collect::<rusqlite::Result<_>>()?;
        Ok(rank_by_similarity(&wanted.vector, vectors, MAX_FUSED))
    }
}

/// Returns the FTS5 expression for notes with all words.
fn match_all(terms: &SearchTerms) -> String {
    phrases(terms).join(" AND ")
}

/// Returns the FTS5 expression for notes with any word.
fn match_any(terms: &SearchTerms) -> String {
    phrases(terms).join(" OR ")
}

/// Quotes each word; the last one may be the start of a word.
fn phrases(terms: &SearchTerms) -> Vec<String> {
    let quote = |word: &String| format!("\"{}\"", word.replace('"', "\"\""));
    let mut phrases: Vec<String> = terms.words.iter().map(quote).collect();
    if let Some(last) = phrases.last_mut().filter(|_| terms.is_last_prefix()) {
        last.push('*');
    }
    phrases
}

pub(crate) fn read_note(row: &Row<'_>) -> rusqlite::Result<MemoryNote> {
    let (category, tags): (String, String) = (row.get(3)?, row.get(5)?);
    let project: Option<String> = row.get(4)?;
    let tags: BTreeSet<String> = serde_json::from_str(&tags).map_err(|error| invalid(5, error))?;
    Ok(MemoryNote {
        id: row.get(0)?,
        title: row.get(1)?,
        content: row.get(2)?,
        category: category.parse().map_err(|why: String| invalid(3, why))?,
        scope: if project.is_some() { MemoryScope::Project } else { MemoryScope::User },
        tags,
        version: row.get::<_, i64>(6)?.try_into().unwrap_or_default(),
        created: from_millis(row.get(7)?),
        updated: from_millis(row.get(8)?),
    })
}

/// An error for a value that cannot be read back.
pub(crate) fn invalid(
    column: usize,
    why: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, why.into())
}

/// Returns the column `owner`: empty for the user of the host, and `u/NAME` for another user.
fn owner_key(owner: &MemoryOwner) -> String {
    owner.user.as_ref().map(|user| format!("u/{user}")).unwrap_or_default()
}

fn tags_json(tags: &BTreeSet<String>) -> String {
    serde_json::to_string(tags).unwrap_or_default()
}

fn vector_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn read_vector(bytes: &[u8]) -> Vec<f32> {
    let (values, _) = bytes.as_chunks::<4>();
    values.iter().map(|value| f32::from_le_bytes(*value)).collect()
}

pub(crate) fn now_millis() -> i64 {
    to_millis(SystemTime::now())
}

/// Returns the time in whole milliseconds, as the database keeps it.
fn now() -> SystemTime {
    from_millis(now_millis())
}

pub(crate) fn to_millis(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn from_millis(millis: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis.try_into().unwrap_or_default())
}

pub(crate) fn to_sql_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn to_limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn is_constraint(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}
