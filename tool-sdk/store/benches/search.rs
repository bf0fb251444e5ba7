//! What a search of 10,000 notes costs, beside a bare FTS5 query for the same words on the same
//! notes in the same run.
//!
//! Rounds alternate between the two, so that both meet the same disturbances; the figure is the
//! median of the rounds. The budget is 1.5 times the bare query.

#![expect(clippy::unwrap_used, reason = "a benchmark that fails should stop")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::{Duration, Instant};

use rusqlite::Connection;
use tool_sdk::store::SqliteStore;
use tool_sdk::{MemoryHandle, MemoryOwner, MemoryStore as _, NoteDraft, NoteQuery};

const NOTES: usize = 10_000;
const ROUNDS: usize = 200;
const LIMIT: i64 = 11;

/// Words of the notes: some are rare, some are in many notes.
const WORDS: [&str; 16] = [
    "deploy", "database", "release", "friday", "schema", "index", "server", "client", "token",
    "budget", "garden", "review", "branch", "metric", "latency", "window",
];

/// The queries: a rare pair, a word of many notes, and three words.
const QUERIES: [&str; 3] = ["number4711 deploy", "database", "schema index server"];

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = SqliteStore::in_folder(folder.path());
    let owner = MemoryOwner { user: None, project: Some("p".to_owned()) };
    let bare = bare_index();
    for number in 0..NOTES {
        let text = note_text(number);
        bare.execute("INSERT INTO words (title, content) VALUES ('', ?1)", [&text]).unwrap();
        runtime.block_on(store.create_note(&owner, NoteDraft::new(text))).unwrap();
    }
    let memory = MemoryHandle::new(store);
    println!("{NOTES} notes, median of {ROUNDS} rounds");
    println!("{:<22} {:>10} {:>10} {:>7}", "query", "bare", "search", "ratio");
    for query in QUERIES {
        let expression = bare_expression(query);
        let (mut floor, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let started = Instant::now();
            let found = bare_query(&bare, &expression);
            floor.push(started.elapsed());
            let started = Instant::now();
            let page =
                runtime.block_on(memory.search_notes(&owner, NoteQuery::new(query))).unwrap();
            ours.push(started.elapsed());
            assert_eq!(page.matches.len(), found.min(NoteQuery::DEFAULT_LIMIT));
        }
        let (floor, ours) = (median(floor), median(ours));
        let ratio = ours.as_secs_f64() / floor.as_secs_f64();
        println!("{query:<22} {floor:>10.1?} {ours:>10.1?} {ratio:>7.2}");
    }
}

fn note_text(number: usize) -> String {
    let word = |at: usize| WORDS[(number / (at * at + 1) + at * 7) % WORDS.len()];
    let words: Vec<&str> = (0..60).map(word).collect();
    format!("number{number} {}", words.join(" "))
}

/// The same notes in an index of FTS5 and nothing else.
fn bare_index() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch(
            "CREATE VIRTUAL TABLE words USING fts5(
                title, content, tokenize = 'unicode61 remove_diacritics 2')",
        )
        .unwrap();
    connection
}

/// The expression that the search makes: the last word may be the start of one.
fn bare_expression(query: &str) -> String {
    let words: Vec<String> = query.split(' ').map(|word| format!("\"{word}\"")).collect();
    format!("{}*", words.join(" AND "))
}

/// Runs the query with ranking and the built-in snippet, and counts the matches.
fn bare_query(connection: &Connection, expression: &str) -> usize {
    let sql = "SELECT rowid, content, snippet(words, 1, '', '', '…', 32) FROM words
         WHERE words MATCH ?1 ORDER BY rank LIMIT ?2";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map((expression, LIMIT), |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
    });
    rows.unwrap().map(Result::unwrap).count()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
