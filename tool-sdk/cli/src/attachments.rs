//! Saves the attachments of a result into a folder, for `call --save DIR`.
//!
//! **Invariant:** no existing file is replaced, and no name of a tool leads out of the folder.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tool_sdk_core::{Attachment, AttachmentData, Output};

use super::exit::{CommandError, FAILED, Result};

/// How many files of one name are kept.
const MAX_SAME_NAME: usize = 1000;

/// Writes each attachment that has bytes into the folder, which is created if it is missing.
/// Returns the path of each attachment, `None` for one without bytes.
pub(super) fn save_attachments(output: &Output, folder: &Path) -> Result<Vec<Option<PathBuf>>> {
    let mut paths = Vec::with_capacity(output.attachments().len());
    for attachment in output.attachments() {
        paths.push(match &attachment.data {
            AttachmentData::Bytes(bytes) => {
                Some(write_new(folder, &file_name(attachment), bytes).map_err(|error| {
                    let folder = folder.display();
                    let words = format_args!("cannot save an attachment in `{folder}`: {error}");
                    CommandError::new(FAILED, tool_sdk_core::ToolError::failed(words))
                })?)
            }
            AttachmentData::Uri(_) => None,
        });
    }
    Ok(paths)
}

/// Writes a file under the first free name.
fn write_new(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let (stem, end) = match name.rsplit_once('.') {
        Some((stem, end)) if !stem.is_empty() => (stem, format!(".{end}")),
        _ => (name, String::new()),
    };
    for nth in 0..MAX_SAME_NAME {
        let name = if nth == 0 { name.to_owned() } else { format!("{stem}-{nth}{end}") };
        let path = folder.join(name);
        match File::create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(mut file) => {
                file.write_all(bytes)?;
                return Ok(path);
            }
        }
    }
    Err(io::Error::other(format!("there are {MAX_SAME_NAME} files `{name}` already")))
}

/// Returns a plain file name: the last component of the attachment's name, or one from its type.
fn file_name(attachment: &Attachment) -> String {
    const MAX: usize = 100;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let given = attachment.name.as_deref().unwrap_or_default();
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    // A leading dot would hide the file; the end tells its type.
    let plain = plain.trim_start_matches('.');
    let plain = &plain[plain.len().saturating_sub(MAX)..];
    if !plain.is_empty() {
        return plain.to_owned();
    }
    let subtype = attachment.mime.split(['/', ';', '+']).nth(1).unwrap_or_default();
    let end: String = subtype.chars().filter(char::is_ascii_alphanumeric).take(10).collect();
    format!("attachment.{}", if end.is_empty() { "bin" } else { &end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_name(name: Option<&str>, mime: &str, expected: &str) {
        let attachment = Attachment::bytes(mime, Vec::new());
        let attachment = match name {
            Some(name) => attachment.with_name(name),
            None => attachment,
        };
        assert_eq!(file_name(&attachment), expected);
    }

    #[test]
    fn names_are_plain() {
        check_name(Some("dot.png"), "image/png", "dot.png");
        check_name(Some("../../etc/pass wd"), "image/png", "pass_wd");
        check_name(Some("C:\\x\\.hidden"), "image/png", "hidden");
        check_name(Some("bücher.pdf"), "application/pdf", "b_cher.pdf");
        check_name(Some(".."), "image/svg+xml", "attachment.svg");
        check_name(None, "audio/mpeg; x=y", "attachment.mpeg");
        check_name(None, "", "attachment.bin");
    }

    #[test]
    fn existing_files_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let output =
            Output::text("").attach(Attachment::bytes("image/png", vec![1]).with_name("a.png"));
        let names = [(); 3].map(|()| {
            let saved = save_attachments(&output, &folder.path().join("new")).ok().unwrap();
            saved[0].as_ref().unwrap().file_name().unwrap().to_owned()
        });
        assert_eq!(names, ["a.png", "a-1.png", "a-2.png"]);
    }
}
