//! The tool `read_file`: reads a text file by pages, and attaches images and PDF files.

mod media;
#[cfg(test)]
mod tests;

use std::io::{Seek, SeekFrom};

use serde_json::json;
use tool_sdk::{
    Context, InMemory, Located, Output, State, ToolError, Workspace, WorkspacePath, tool,
};

use self::media::{attach, is_binary, media_type};
use super::Numbering;
use crate::look::{self, Look};
use crate::text::index::{Identity, LineIndex, Marks};
use crate::text::page::{Blocks, End, Fault, Page, page};

/// The maximum number of bytes that are read on the async thread, if they are in the page cache.
const AT_ONCE: usize = 320 * 1024;

/// Read a text file, or a range of its lines.
///
/// Each line comes as `number: text`. A long file comes in pages: the last line says which
/// `offset` continues. Images (PNG, JPEG, GIF, WebP) and PDF files come as attachments;
/// other binary files are refused.
#[tool(
    read,
    category = "filesystem",
    permission = "read",
    approval(subjects = |args, cx| args.path.read(cx)),
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
    let numbering = Numbering::of(cx);
    let names_folder = path.as_str().ends_with(std::path::is_separator);
    if offset <= 1
        && !names_folder
        && !cx.is_cancelled()
        && let Some(page) =
            path.locate(&workspace).ok().and_then(|place| at_once(&place, limit, numbering))
    {
        return Ok(page);
    }
    let offset = u64::from(offset.max(1));
    let wanted = Wanted { offset, limit: limit.into(), numbering, names_folder };
    look::at(path, workspace, cx, move |look| read(&look, &wanted)).await
}

/// The fast path: reads the first page of a text file from the page cache. Returns `None` in all
/// other cases, including errors; a blocking thread then handles them.
fn at_once(place: &Located, limit: u32, numbering: Numbering) -> Option<Output> {
    let file = place.open_file().ok()?;
    let len = file.metadata().ok()?.len();
    let mut blocks = Blocks::new(InMemory::new(&file, AT_ONCE), || false);
    blocks.more().ok()?;
    if media_type(blocks.rest()).is_some() || is_binary(place, blocks.rest()) {
        return None;
    }
    let page = page(&mut blocks, 1, limit.into(), len, &mut Marks::default()).ok()?;
    Some(show(place, 1, page, numbering))
}

/// The requested page.
struct Wanted {
    offset: u64,
    limit: u64,
    numbering: Numbering,
    /// Whether the path ends in a separator, like that of a folder.
    names_folder: bool,
}

fn read(look: &Look<'_>, wanted: &Wanted) -> Result<Output, ToolError> {
    let &Wanted { offset, limit, numbering, names_folder } = wanted;
    let place = &look.place;
    let file = &place.open_file().map_err(|error| advise(error, look))?;
    if names_folder {
        let path = place.display();
        return Err(ToolError::invalid(
            "path",
            format_args!("`{path}/` names a folder, but `{path}` is a file"),
        )
        .hint(format_args!("read `{path}`")));
    }
    let failed = |fault| explain(fault, look, offset);
    let stopped = || look.stop.is_stopped();
    let mut blocks = Blocks::new(file, stopped);
    blocks.more().map_err(failed)?;
    let start = blocks.rest();
    if let Some(mime) = media_type(start) {
        return attach(look, mime, start.to_vec(), file);
    }
    if is_binary(place, start) {
        return Err(ToolError::failed(format_args!("`{}` is a binary file", place.display()))
            .hint("only UTF-8 text, PNG, JPEG, GIF and WebP images, and PDF files can be read"));
    }
    let facts = file.metadata().map_err(|error| failed(Fault::Read(error)))?;
    let index = place.memo::<LineIndex>();
    let identity = Identity::of(&facts).filter(|_| offset > 1);
    let mut marks = identity.map(|file| index.get(file)).unwrap_or_default();
    if let Some(mark) = marks.before(offset) {
        let mut source = file;
        let moved = source.seek(SeekFrom::Start(mark.offset));
        moved.map_err(|error| failed(Fault::Read(error)))?;
        blocks = Blocks::at(file, stopped, mark);
    }
    let page = page(&mut blocks, offset, limit, facts.len(), &mut marks);
    if let Some(file) = identity {
        index.put(file, marks);
    }
    Ok(show(place, offset, page.map_err(failed)?, numbering))
}

/// Formats the page, with a note on what follows.
fn show(place: &Located, offset: u64, page: Page, numbering: Numbering) -> Output {
    let path = place.spelling();
    let (last, next) = (offset + page.lines.max(1) - 1, offset + page.lines);
    let mut text = numbering.of_lines(page.text);
    text.push_str(&match page.end {
        End::Source if page.lines == 0 => "(The file is empty.)".to_owned(),
        End::Source if last == 1 => "\n(End of file, one line in all.)".to_owned(),
        End::Source => format!("\n(End of file, {last} lines in all.)"),
        End::Lines { total: Some(total) } => format!(
            "\n(Showing lines {offset}-{last} of {total}. Use offset={next} to continue.)"
        ),
        End::Lines { total: None } => {
            format!("\n(Showing lines {offset}-{last}. Use offset={next} to continue.)")
        }
        End::Bytes => format!(
            "\n(Output capped at 50 KiB. Showing lines {offset}-{last}. Use offset={next} to continue.)"
        ),
    });
    Output::text(text)
        .metadata("path", path.as_str())
        .metadata("start_line", offset)
        .metadata("lines", page.lines)
        .metadata("truncated", page.end != End::Source)
        .display(display(&path, page.lines))
}

fn display(path: &str, lines: u64) -> serde_json::Value {
    json!({ "type": "file", "path": path, "operation": "read", "line_count": lines })
}

fn explain(fault: Fault, look: &Look<'_>, offset: u64) -> ToolError {
    let path = look.place.display();
    match fault {
        Fault::Read(error) => look.unread(error),
        Fault::Stopped => ToolError::aborted(format_args!("reading `{path}` was stopped")),
        Fault::PastEnd { lines } => {
            ToolError::invalid("offset", format_args!("line {offset} is past the end of `{path}`"))
                .hint(format_args!("the file has {lines} lines"))
        }
    }
}

/// Adds a hint on what to do instead, when a file cannot be opened.
fn advise(error: ToolError, look: &Look<'_>) -> ToolError {
    match look.place.metadata() {
        Ok(found) if found.kind.is_dir() => error.hint("list it with `list_dir`"),
        _ => look.with_similar(error),
    }
}
