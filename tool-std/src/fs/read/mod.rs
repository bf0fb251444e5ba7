//! `read_file`: a text file page by page, an image or a PDF as it is.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::json;
use tool_sdk::{
    Attachment, Context, InMemory, Located, Output, Sight, State, Stop, ToolError, Workspace,
    WorkspacePath, tool,
};

use super::Numbering;
use crate::near::with_similar;
use crate::stop;
use crate::text::index::{Identity, LineIndex, Marks};
use crate::text::page::{Blocks, End, Fault, Page, page};

/// How much of a file is looked at to tell text from anything else.
const SNIFFED: usize = 4096;

/// How much of a file is read without going to another thread, where it is in memory.
const AT_ONCE: usize = 320 * 1024;

/// The largest image or PDF that is passed on.
const MAX_ATTACHMENT: u64 = 10 * 1024 * 1024;

/// Files whose content is never text, although their start may look like it.
const BINARY: &[&str] = &[
    "7z", "avi", "bmp", "bz2", "class", "dll", "doc", "docx", "dylib", "exe", "flac", "gz", "ico",
    "jar", "mkv", "mov", "mp3", "mp4", "odp", "ods", "odt", "ogg", "otf", "ppt", "pptx", "pyc",
    "rar", "so", "sqlite", "tar", "tgz", "tif", "tiff", "ttf", "wasm", "wav", "webm", "woff",
    "woff2", "xls", "xlsx", "xz", "zip", "zst",
];

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
    if offset <= 1
        && !cx.is_cancelled()
        && let Some(page) =
            path.locate(&workspace).ok().and_then(|place| at_once(&place, limit, numbering))
    {
        return Ok(page);
    }
    let sight = cx.sight("read");
    cx.blocking(move |stop| {
        stop::check(stop)?;
        let place = path.locate(&workspace)?;
        let file = place.open_file().map_err(|error| advise(error, &place, &sight, stop))?;
        let wanted = Wanted { offset: u64::from(offset.max(1)), limit: limit.into(), numbering };
        read(&place, &file, &wanted, stop)
    })
    .await
}

/// The first page of a text that is in memory; whatever is not as easy is for another
/// thread, mistakes included.
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

/// The page that is asked for.
struct Wanted {
    offset: u64,
    limit: u64,
    numbering: Numbering,
}

fn read(place: &Located, file: &File, wanted: &Wanted, stop: &Stop) -> Result<Output, ToolError> {
    let Wanted { offset, limit, numbering } = *wanted;
    let failed = |fault| explain(fault, place, offset);
    let stopped = || stop.is_stopped();
    let mut blocks = Blocks::new(file, stopped);
    blocks.more().map_err(failed)?;
    let start = blocks.rest();
    if let Some(mime) = media_type(start) {
        return attach(place, mime, start.to_vec(), file);
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

/// The page with what the model should know about the rest.
fn show(place: &Located, offset: u64, page: Page, numbering: Numbering) -> Output {
    let path = place.display();
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

fn explain(fault: Fault, place: &Located, offset: u64) -> ToolError {
    let path = place.display();
    match fault {
        Fault::Read(error) => {
            ToolError::failed(format_args!("cannot read `{path}`: {error}")).source(error)
        }
        Fault::Stopped => ToolError::aborted(format_args!("reading `{path}` was stopped")),
        Fault::PastEnd { lines } => {
            ToolError::invalid("offset", format_args!("line {offset} is past the end of `{path}`"))
                .hint(format_args!("the file has {lines} lines"))
        }
    }
}

/// The media type of a file that a model can look at, by how it starts.
fn media_type(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'%', b'P', b'D', b'F', b'-', ..] => Some("application/pdf"),
        _ => None,
    }
}

/// Passes on a file of which `bytes` were read already.
fn attach(
    place: &Located,
    mime: &'static str,
    mut bytes: Vec<u8>,
    file: &File,
) -> Result<Output, ToolError> {
    let path = place.display();
    // The size comes from reading: what the system claims may be out of date.
    let room = (MAX_ATTACHMENT + 1).saturating_sub(bytes.len() as u64);
    file.take(room)
        .read_to_end(&mut bytes)
        .map_err(|error| explain(Fault::Read(error), place, 1))?;
    if bytes.len() as u64 > MAX_ATTACHMENT {
        return Err(ToolError::failed(format_args!("`{path}` ({mime}) is larger than 10 MiB"))
            .hint("make a smaller version of it"));
    }
    let what = if mime == "application/pdf" { "PDF" } else { "Image" };
    let text = format!("{what} `{path}` ({mime}, {} bytes) is attached.", bytes.len());
    let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Output::text(text)
        .metadata("path", path.as_str())
        .metadata("truncated", false)
        .display(display(&path, 0))
        .attach(Attachment::bytes(mime, bytes).named(name)))
}

/// Whether a file that starts like this is no text.
fn is_binary(place: &Located, start: &[u8]) -> bool {
    looks_binary(start) || (!start.is_empty() && has_binary_name(place))
}

/// Whether there is a NUL, or too much that is unprintable.
fn looks_binary(start: &[u8]) -> bool {
    let start = &start[..start.len().min(SNIFFED)];
    // In sums of one byte, which become vector instructions.
    let is_unprintable = |&byte: &u8| u8::from(matches!(byte, 0..=8 | 14..=31));
    let sums = start.chunks(usize::from(u8::MAX));
    let unprintable: usize =
        sums.map(|some| usize::from(some.iter().map(is_unprintable).sum::<u8>())).sum();
    start.contains(&0) || unprintable * 10 > start.len() * 3
}

fn has_binary_name(place: &Located) -> bool {
    let extension = place.file_name().and_then(|name| Path::new(name).extension());
    extension
        .is_some_and(|extension| BINARY.iter().any(|binary| extension.eq_ignore_ascii_case(binary)))
}

/// Says what to do instead of reading what cannot be read.
fn advise(error: ToolError, place: &Located, sight: &Sight, stop: &Stop) -> ToolError {
    match place.metadata() {
        Ok(found) if found.kind.is_dir() => error.hint("list it with `list_dir`"),
        _ => with_similar(error, place, sight, stop),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use tempfile::TempDir;
    use tool_sdk::{CallId, ErrorKind, Session, ToolName};

    use super::*;

    fn context() -> Context {
        Context::new(Session::new("t"), ToolName::from_static("read_file"), CallId::next())
    }

    struct Folder(TempDir);

    impl Folder {
        fn with(files: &[(&str, &[u8])]) -> Self {
            let folder = TempDir::new().unwrap();
            for (path, content) in files {
                let path = folder.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            Self(folder)
        }

        async fn read(&self, path: &str, offset: u32, limit: u32) -> Result<Output, ToolError> {
            let workspace = Workspace::open([self.0.path()]).unwrap();
            read_file(path.into(), offset, limit, State(workspace.into()), &context()).await
        }

        async fn text(&self, path: &str, offset: u32, limit: u32) -> String {
            self.read(path, offset, limit).await.unwrap().into_text()
        }

        async fn error(&self, path: &str, offset: u32) -> ToolError {
            self.read(path, offset, 10).await.unwrap_err()
        }
    }

    // F141
    #[tokio::test]
    async fn lines_are_numbered_and_the_end_is_told() {
        let folder = Folder::with(&[("a.txt", b"one\r\ntwo\nthree")]);
        let output = folder.read("a.txt", 1, 10).await.unwrap();
        assert_eq!(output.as_text(), "1: one\n2: two\n3: three\n\n(End of file, 3 lines in all.)");
        let metadata = serde_json::to_value(output.metadata_map().unwrap()).unwrap();
        assert_eq!(
            metadata,
            json!({ "path": "a.txt", "start_line": 1, "lines": 3, "truncated": false })
        );
        assert_eq!(
            output.display_data().unwrap(),
            &json!({ "type": "file", "path": "a.txt", "operation": "read", "line_count": 3 })
        );
    }

    // F141
    #[tokio::test]
    async fn a_page_says_how_to_continue() {
        let folder = Folder::with(&[("a.txt", b"one\ntwo\nthree\nfour\n")]);
        assert_eq!(
            folder.text("a.txt", 2, 2).await,
            "2: two\n3: three\n\n(Showing lines 2-3 of 4. Use offset=4 to continue.)"
        );
        assert_eq!(folder.text("a.txt", 4, 2).await, "4: four\n\n(End of file, 4 lines in all.)");
    }

    // F141
    #[tokio::test]
    async fn a_large_file_is_not_counted_and_not_shown_whole() {
        let line = format!("{}\n", "x".repeat(99)).repeat(10_000);
        let folder = Folder::with(&[("big", line.as_bytes())]);
        let text = folder.text("big", 1, 5).await;
        assert!(text.ends_with("\n(Showing lines 1-5. Use offset=6 to continue.)"), "{text}");
        let text = folder.text("big", 1, 5000).await;
        assert!(text.len() < 52_000);
        let footer = text.lines().last().unwrap();
        assert_eq!(
            footer,
            "(Output capped at 50 KiB. Showing lines 1-488. Use offset=489 to continue.)"
        );
        assert!(folder.text("big", 9_999, 5).await.ends_with("(End of file, 10000 lines in all.)"));
    }

    // F141
    #[tokio::test]
    async fn an_empty_file_says_so() {
        let folder = Folder::with(&[("empty", b""), ("empty.zip", b"")]);
        assert_eq!(folder.text("empty", 1, 10).await, "(The file is empty.)");
        assert_eq!(folder.text("empty.zip", 1, 10).await, "(The file is empty.)");
        assert_eq!(folder.error("empty", 2).await.kind(), ErrorKind::InvalidArgs);
    }

    // F141
    #[tokio::test]
    async fn an_offset_past_the_end_names_the_number_of_lines() {
        let folder = Folder::with(&[("a.txt", b"one\ntwo\n")]);
        let error = folder.error("a.txt", 3).await;
        assert_eq!(error.kind(), ErrorKind::InvalidArgs);
        assert_eq!(
            error.to_string(),
            "`offset`: line 3 is past the end of `a.txt`\nhint: the file has 2 lines"
        );
    }

    // F141
    #[tokio::test]
    async fn a_slip_in_the_name_is_answered() {
        let folder = Folder::with(&[("src/main.rs", b""), ("src/lib.rs", b"")]);
        let error = folder.error("src/mian.rs", 1).await;
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(
            error.to_string(),
            "there is no `src/mian.rs`\nhint: did you mean `src/main.rs`?"
        );
        let error = folder.error("scr/main.rs", 1).await;
        assert_eq!(error.suggestion(), Some("there is no folder `scr` either"));
    }

    // F141
    #[tokio::test]
    async fn a_folder_is_no_file() {
        let folder = Folder::with(&[("src/main.rs", b"")]);
        let error = folder.error("src", 1).await;
        assert_eq!(error.kind(), ErrorKind::Failed);
        assert_eq!(
            error.to_string(),
            "`src` is a folder, not a file\nhint: list it with `list_dir`"
        );
    }

    // F141
    #[tokio::test]
    async fn outside_is_denied() {
        let folder = Folder::with(&[]);
        for path in ["/etc/passwd", "../x"] {
            assert_eq!(folder.error(path, 1).await.kind(), ErrorKind::Denied, "{path}");
        }
    }

    // F141
    #[tokio::test]
    async fn binary_files_are_refused() {
        let folder =
            Folder::with(&[("a", b"text\0"), ("b", &[1; 100]), ("c.docx", b"looks like text")]);
        for path in ["a", "b", "c.docx"] {
            let error = folder.error(path, 1).await;
            assert_eq!(error.kind(), ErrorKind::Failed, "{path}");
            assert!(error.message().ends_with("is a binary file"), "{error}");
        }
    }

    // F141: what is shown of such a name leads to no file, and that is said.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_name_that_cannot_be_sent_is_explained() {
        use std::os::unix::ffi::OsStrExt as _;

        let folder = Folder::with(&[("grin", b"x")]);
        fs::write(folder.0.path().join(std::ffi::OsStr::from_bytes(b"gr\xfcn")), "x").unwrap();
        let error = folder.error("gr\u{fffd}n", 1).await;
        assert!(error.suggestion().unwrap().contains("is not UTF-8"), "{error}");
        let error = folder.error("grinn", 1).await;
        assert_eq!(error.suggestion(), Some("did you mean `grin`?"));
    }

    // F141
    #[tokio::test]
    async fn bad_bytes_are_shown_as_such() {
        let folder = Folder::with(&[("latin1", b"gr\xfcn\n")]);
        assert!(folder.text("latin1", 1, 1).await.starts_with("1: gr\u{fffd}n\n"));
    }

    // F141
    #[tokio::test]
    async fn images_are_attached() {
        let image = [b"\x89PNG\r\n\x1a\n".to_vec(), vec![0; 100_000]].concat();
        let folder = Folder::with(&[("a.png", &image)]);
        let output = folder.read("a.png", 1, 10).await.unwrap();
        assert_eq!(output.as_text(), "Image `a.png` (image/png, 100008 bytes) is attached.");
        assert_eq!(output.attachments(), [Attachment::bytes("image/png", image).named("a.png")]);
    }

    // F141
    #[tokio::test]
    async fn an_attachment_has_a_limit() {
        let file = [b"%PDF-1.7\n".to_vec(), vec![b'x'; 10 * 1024 * 1024]].concat();
        let folder = Folder::with(&[("a.pdf", &file)]);
        assert_eq!(
            folder.error("a.pdf", 1).await.message(),
            "`a.pdf` (application/pdf) is larger than 10 MiB"
        );
    }

    // F141
    #[tokio::test]
    async fn nothing_is_read_when_the_time_is_up() {
        let folder = Folder::with(&[("a.txt", b"one")]);
        let workspace = Workspace::open([folder.0.path()]).unwrap();
        let cx = context().with_timeout(Some(Duration::ZERO));
        let result = read_file("a.txt".into(), 1, 10, State(workspace.into()), &cx).await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Aborted);
    }

    // F141
    #[test]
    fn colours_do_not_make_a_text_binary() {
        assert!(!looks_binary(b"\x1b[31mred\x1b[0m and plain\n"));
        assert!(!looks_binary(b""));
        assert!(looks_binary(b"\x01\x02text"));
    }

    // F141
    #[test]
    fn media_is_told_by_content() {
        assert_eq!(media_type(b"\xff\xd8\xff\xe0rest"), Some("image/jpeg"));
        assert_eq!(media_type(b"GIF89a..."), Some("image/gif"));
        assert_eq!(media_type(b"RIFF\x01\x02\x03\x04WEBPVP8 "), Some("image/webp"));
        assert_eq!(media_type(b"%PDF-1.4"), Some("application/pdf"));
        assert_eq!(media_type(b"GIF of the day"), None);
    }
}
