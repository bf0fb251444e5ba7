//! The tool `read_file`: reads a text file by pages, and attaches images and PDF files.

mod media;
#[cfg(test)]
mod tests;

use std::io::{Seek, SeekFrom};

use serde_json::json;
use tool_sdk::{
    Context, Output, ResolvedPath, State, ToolError, Workspace, WorkspaceError, WorkspacePath, tool,
};

use self::media::{attach_media, is_binary, media_type};
use super::LineNumbering;
use crate::read_task::{self, ReadTask};
use crate::text::line_index::{FileIdentity, LineIndexCache};
use crate::text::page::{BlockReader, PageEnd, PageError, TextPage, read_page};

/// What the model reads of a page with bytes that are not text.
const NOT_UTF8: &str = "\n(Not UTF-8 text: some bytes are shown as \u{fffd}, so `edit_file` refuses this \
                        file. Convert it with a command first.)";

/// Read a text file, or a range of its lines.
///
/// Each line comes as `number: text`. A long file comes in pages: the last line says which
/// `offset` continues. Images (PNG, JPEG, GIF, WebP) and PDF files come as attachments;
/// other binary files are refused.
#[tool(
    read,
    category = "filesystem",
    permission = "read",
    approval(resources = |args, cx| args.path.read_resources(cx)),
    display(name = "Read", primary = path, show(path, offset, limit), summary = "Reading {path}"),
    aliases("read"),
    truncate = none,
    example = r#"{"path": "src/main.rs"}"#,
    example = r#"{"path": "src/main.rs", "offset": 120, "limit": 40}"#
)]
pub async fn read_file(
    /// Path of the file, relative to the workspace or absolute inside it.
    #[arg(alias("file_path"))]
    path: WorkspacePath,
    /// First line to read, counting from 1.
    #[arg(default = 1, range = 1..)]
    offset: u32,
    /// How many lines to read at most.
    #[arg(default = 2000, range = 1..=5000)]
    limit: u32,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let numbering = LineNumbering::from_context(cx);
    let has_trailing_separator = path.as_str().ends_with(std::path::is_separator);
    let offset = u64::from(offset.max(1));
    let wanted = PageRequest { offset, limit: limit.into(), numbering, has_trailing_separator };
    read_task::run_blocking(path, workspace, cx, move |look| read_requested_page(&look, &wanted))
        .await
}

/// The requested page.
struct PageRequest {
    offset: u64,
    limit: u64,
    numbering: LineNumbering,
    /// Whether the path ends in a separator, like that of a folder.
    has_trailing_separator: bool,
}

fn read_requested_page(look: &ReadTask<'_>, wanted: &PageRequest) -> Result<Output, ToolError> {
    let &PageRequest { offset, limit, numbering, has_trailing_separator } = wanted;
    let place = &look.place;
    let file = &place.open_file().map_err(|error| open_error(error, look))?;
    if has_trailing_separator {
        let path = place.display();
        return Err(ToolError::invalid(
            "path",
            format_args!("`{path}/` names a folder, but `{path}` is a file"),
        )
        .hint(format_args!("read `{path}`")));
    }
    let failed = |fault| explain_page_error(fault, look, offset);
    let stopped = || look.stop.is_stopped();
    let mut blocks = BlockReader::new(file, stopped);
    blocks.fill_buffer().map_err(failed)?;
    let start = blocks.buffered();
    if let Some(mime) = media_type(start) {
        return attach_media(look, mime, start.to_vec(), file);
    }
    if is_binary(place, start) {
        return Err(ToolError::failed(format_args!("`{}` is a binary file", place.display()))
            .hint("only UTF-8 text, PNG, JPEG, GIF and WebP images, and PDF files can be read"));
    }
    let facts = file.metadata().map_err(|error| failed(PageError::Read(error)))?;
    let index = place.root_cache::<LineIndexCache>();
    let identity = FileIdentity::from_metadata(&facts).filter(|_| offset > 1);
    let mut marks = identity.map(|file| index.get(file)).unwrap_or_default();
    if let Some(mark) = marks.checkpoint_before(offset) {
        let mut source = file;
        let moved = source.seek(SeekFrom::Start(mark.offset));
        moved.map_err(|error| failed(PageError::Read(error)))?;
        blocks = BlockReader::from_checkpoint(file, stopped, mark);
    }
    let page = read_page(&mut blocks, offset, limit, facts.len(), &mut marks);
    if let Some(file) = identity {
        index.put(file, marks);
    }
    Ok(format_page(place, offset, page.map_err(failed)?, numbering))
}

/// Formats the page, with a note on what follows.
fn format_page(
    place: &ResolvedPath,
    offset: u64,
    page: TextPage,
    numbering: LineNumbering,
) -> Output {
    let path = place.rule_path();
    let (last, next) = (offset + page.lines.max(1) - 1, offset + page.lines);
    let mut text = numbering.format_lines(page.text);
    text.push_str(&match page.end {
        PageEnd::Source if page.lines == 0 => "(The file is empty.)".to_owned(),
        PageEnd::Source if last == 1 => "\n(End of file, one line in all.)".to_owned(),
        PageEnd::Source => format!("\n(End of file, {last} lines in all.)"),
        PageEnd::Lines { total: Some(total) } => format!(
            "\n(Showing lines {offset}-{last} of {total}. Use offset={next} to continue.)"
        ),
        PageEnd::Lines { total: None } => {
            format!("\n(Showing lines {offset}-{last}. Use offset={next} to continue.)")
        }
        PageEnd::Bytes => format!(
            "\n(Output capped at 50 KiB. Showing lines {offset}-{last}. Use offset={next} to continue.)"
        ),
    });
    if page.is_lossy {
        text.push_str(NOT_UTF8);
    }
    Output::text(text)
        .metadata("path", path.as_str())
        .metadata("start_line", offset)
        .metadata("lines", page.lines)
        .metadata("truncated", page.end != PageEnd::Source)
        .display(read_display(&path, page.lines))
}

fn read_display(path: &str, lines: u64) -> serde_json::Value {
    json!({ "type": "file", "path": path, "operation": "read", "line_count": lines })
}

fn explain_page_error(fault: PageError, look: &ReadTask<'_>, offset: u64) -> ToolError {
    let path = look.place.display();
    match fault {
        PageError::Read(error) => look.read_error(error),
        PageError::Cancelled => ToolError::aborted(format_args!("reading `{path}` was stopped")),
        PageError::PastEnd { lines } => {
            ToolError::invalid("offset", format_args!("line {offset} is past the end of `{path}`"))
                .hint(format_args!("the file has {lines} lines"))
        }
    }
}

/// Adds a hint on what to do instead, when a file cannot be opened.
fn open_error(error: WorkspaceError, look: &ReadTask<'_>) -> ToolError {
    match look.place.metadata() {
        Ok(found) if found.kind.is_dir() => ToolError::from(error).hint("list it with `list_dir`"),
        _ => look.with_suggestions(error),
    }
}
