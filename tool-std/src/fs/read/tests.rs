//! `read_file`: text, images and other files.

use std::fs;
use std::time::Duration;

use tempfile::TempDir;
use tool_sdk::{Attachment, CallId, ErrorKind, Session, ToolName};

use super::*;

fn context() -> Context {
    Context::new(Session::new("t"), ToolName::from_static("read_file"), CallId::generate())
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
async fn numbers_lines_and_reports_the_end() {
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
async fn a_page_names_the_next_offset() {
    let folder = Folder::with(&[("a.txt", b"one\ntwo\nthree\nfour\n")]);
    assert_eq!(
        folder.text("a.txt", 2, 2).await,
        "2: two\n3: three\n\n(Showing lines 2-3 of 4. Use offset=4 to continue.)"
    );
    assert_eq!(folder.text("a.txt", 4, 2).await, "4: four\n\n(End of file, 4 lines in all.)");
}

// F141
#[tokio::test]
async fn pages_a_large_file_without_counting_its_lines() {
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
async fn suggests_similar_names_for_a_missing_file() {
    let folder = Folder::with(&[("src/main.rs", b""), ("src/lib.rs", b"")]);
    let error = folder.error("src/mian.rs", 1).await;
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.to_string(), "there is no `src/mian.rs`\nhint: did you mean `src/main.rs`?");
    let error = folder.error("scr/main.rs", 1).await;
    assert_eq!(error.suggestion(), Some("there is no folder `scr` either"));
}

// F141
#[tokio::test]
async fn rejects_a_folder() {
    let folder = Folder::with(&[("src/main.rs", b"")]);
    let error = folder.error("src", 1).await;
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert_eq!(error.to_string(), "`src` is a folder, not a file\nhint: list it with `list_dir`");
}

// F141
#[tokio::test]
async fn denies_paths_outside_of_the_workspace() {
    let folder = Folder::with(&[]);
    for path in ["/etc/passwd", "../x"] {
        assert_eq!(folder.error(path, 1).await.kind(), ErrorKind::Denied, "{path}");
    }
}

// F141
#[tokio::test]
async fn rejects_binary_files() {
    let folder = Folder::with(&[
        ("a", b"text\0"),
        ("b", &[1; 100]),
        ("c.docx", b"looks like text"),
        ("d", b"\xa0\xff\x80abc\xfe\x91xyz"),
    ]);
    for path in ["a", "b", "c.docx", "d"] {
        let error = folder.error(path, 1).await;
        assert_eq!(error.kind(), ErrorKind::Failed, "{path}");
        assert!(error.message().ends_with("is a binary file"), "{error}");
    }
}

// F141: such a displayed name leads to no file, and the hint says so.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn explains_a_name_that_is_not_utf8() {
    use std::os::unix::ffi::OsStrExt as _;

    let folder = Folder::with(&[("grin", b"x")]);
    fs::write(folder.0.path().join(std::ffi::OsStr::from_bytes(b"gr\xfcn")), "x").unwrap();
    let error = folder.error("gr\u{fffd}n", 1).await;
    assert!(error.suggestion().unwrap().contains("is not valid UTF-8"), "{error}");
    let error = folder.error("grinn", 1).await;
    assert_eq!(error.suggestion(), Some("did you mean `grin`?"));
}

// F141
#[tokio::test]
async fn shows_invalid_utf8_as_replacement_characters() {
    let folder = Folder::with(&[("latin1", b"gr\xfcn\n")]);
    let text = folder.text("latin1", 1, 1).await;
    assert!(text.starts_with("1: gr\u{fffd}n\n"), "{text}");
    assert!(text.contains("Not UTF-8 text"), "{text}");
    // The text itself may have this character.
    let folder = Folder::with(&[("replaced", "gr\u{fffd}n\n".as_bytes())]);
    let text = folder.text("replaced", 1, 1).await;
    assert!(text.contains("gr\u{fffd}n") && !text.contains("Not UTF-8"), "{text}");
}

// F141
#[tokio::test]
async fn images_are_attached() {
    let image = [b"\x89PNG\r\n\x1a\n".to_vec(), vec![0; 100_000]].concat();
    let folder = Folder::with(&[("a.png", &image)]);
    let output = folder.read("a.png", 1, 10).await.unwrap();
    assert_eq!(output.as_text(), "Image `a.png` (image/png, 100008 bytes) is attached.");
    assert_eq!(output.attachments(), [Attachment::bytes("image/png", image).with_name("a.png")]);
}

// F141
#[tokio::test]
async fn rejects_attachments_above_the_limit() {
    let file = [b"%PDF-1.7\n".to_vec(), vec![b'x'; 10 * 1024 * 1024]].concat();
    let folder = Folder::with(&[("a.pdf", &file)]);
    assert_eq!(
        folder.error("a.pdf", 1).await.message(),
        "`a.pdf` (application/pdf) is larger than 10 MiB"
    );
}

// F141
#[tokio::test]
async fn read_file_fails_after_the_timeout() {
    let folder = Folder::with(&[("a.txt", b"one")]);
    let workspace = Workspace::open([folder.0.path()]).unwrap();
    let cx = context().with_timeout(Some(Duration::ZERO));
    let result = read_file("a.txt".into(), 1, 10, State(workspace.into()), &cx).await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Aborted);
}

// F141: a path with a trailing separator names a folder for every tool.
#[tokio::test]
async fn rejects_a_file_path_with_a_trailing_separator() {
    let folder = Folder::with(&[("e", b"text\n")]);
    for offset in [1, 2] {
        let error = folder.error("e/", offset).await;
        assert_eq!(error.kind(), ErrorKind::InvalidArgs);
        assert_eq!(error.suggestion(), Some("read `e`"));
    }
    assert_eq!(folder.error("x/", 1).await.kind(), ErrorKind::NotFound);
}

// F141: the same name in another Unicode normalization form is suggested.
#[tokio::test]
async fn suggests_names_in_another_unicode_normalization() {
    let folder = Folder::with(&[("\u{fc}n\u{ef}", b"text\n")]);
    let error = folder.error("u\u{308}ni\u{308}", 1).await;
    assert_eq!(error.suggestion(), Some("did you mean `\u{fc}n\u{ef}`?"));
}
