//! `GET /v1/audit`: the newest records of the audit log.
//!
//! The log is a file of JSON lines; its end is read, so that the size of the log does not matter.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::caller::AdministrationCaller;
use super::grants::blocking;
use super::problem::ProblemDetails;
use super::service::RestService;

/// How much of the end of the log is read.
const MAX_READ_BYTES: u64 = 8 * 1024 * 1024;
/// How many records a response has by default, and at most.
const PAGE_SIZE: usize = 200;
const MAX_PAGE_SIZE: usize = 1000;

/// The query of `GET /v1/audit`. Each part narrows the records.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditQuery {
    /// `decided` or `ran`.
    what: Option<String>,
    /// `allow`, `ask` or `deny`.
    decision: Option<String>,
    /// A part of the tool's name.
    tool: Option<String>,
    /// The id of a session or of a call, or its beginning.
    id: Option<String>,
    limit: Option<usize>,
}

/// The body of `GET /v1/audit`.
#[derive(Debug, Serialize)]
pub(super) struct AuditPage {
    /// The newest record first.
    records: Vec<Value>,
    /// Whether all records that fit are here; otherwise older ones are in the file.
    is_complete: bool,
}

/// `GET /v1/audit`
pub(super) async fn list_records(
    State(service): State<Arc<RestService>>,
    _: AdministrationCaller,
    Query(query): Query<AuditQuery>,
) -> Result<Json<AuditPage>, ProblemDetails> {
    let limit = query.limit.unwrap_or(PAGE_SIZE);
    if !(1..=MAX_PAGE_SIZE).contains(&limit) {
        let error = format!("`limit` is {limit}, but must be between 1 and {MAX_PAGE_SIZE}");
        return Err(ProblemDetails::bad_request(error));
    }
    let file = service.pipeline.audit_file();
    let file = file.ok_or_else(|| ProblemDetails::not_found("the server writes no audit log"))?;
    let page = blocking(move || read_page(&file, &query, limit)).await?;
    page.map(Json).map_err(|error| {
        tracing::warn!("cannot read the audit log: {error}");
        ProblemDetails::busy("the audit log cannot be read")
    })
}

fn read_page(file: &Path, query: &AuditQuery, limit: usize) -> io::Result<AuditPage> {
    let (text, is_whole) = read_end(file, MAX_READ_BYTES)?;
    let lines = text.lines().rev();
    // A line that is being written, or is damaged, must not hide the others.
    let records = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut fitting = records.filter(|record| query.matches(record));
    let records: Vec<Value> = fitting.by_ref().take(limit).collect();
    let is_complete = is_whole && fitting.next().is_none();
    Ok(AuditPage { records, is_complete })
}

/// Returns the last lines of a file, and whether they are all of it.
fn read_end(file: &Path, max_bytes: u64) -> io::Result<(String, bool)> {
    let mut file = File::open(file)?;
    let length = file.metadata()?.len();
    let start = length.saturating_sub(max_bytes);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole_lines = match start {
        0 => &*text,
        _ => text.split_once('\n').map_or("", |(_, rest)| rest),
    };
    Ok((whole_lines.to_owned(), start == 0))
}

impl AuditQuery {
    fn matches(&self, record: &Value) -> bool {
        let is = |key: &str, wanted: &Option<String>| {
            wanted.as_deref().is_none_or(|wanted| record[key].as_str() == Some(wanted))
        };
        let starts =
            |key: &str, id: &str| record[key].as_str().is_some_and(|it| it.starts_with(id));
        is("what", &self.what)
            && is("decision", &self.decision)
            && self
                .tool
                .as_deref()
                .is_none_or(|tool| record["tool"].as_str().is_some_and(|name| name.contains(tool)))
            && self.id.as_deref().is_none_or(|id| starts("session", id) || starts("call", id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_whole_lines_from_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log");
        std::fs::write(&file, "{\"tool\":\"a\"}\n{\"tool\":\"bb\"}\n{\"tool\":\"c\"}\n{\"to")
            .unwrap();
        let (text, is_whole) = read_end(&file, 24).unwrap();
        assert_eq!((text.lines().next(), is_whole), (Some("{\"tool\":\"c\"}"), false));
        let page = read_page(&file, &AuditQuery::default(), 2).unwrap();
        let tools: Vec<_> = page.records.iter().map(|it| it["tool"].as_str().unwrap()).collect();
        assert_eq!((tools, page.is_complete), (vec!["c", "bb"], false));
        let query = AuditQuery { tool: Some("b".to_owned()), ..AuditQuery::default() };
        let page = read_page(&file, &query, 2).unwrap();
        assert_eq!((page.records.len(), page.is_complete), (1, true));
    }
}
