//! Reads the JSON arguments of a call from the command line, standard input or a file.
//!
//! **Invariant:** the text is passed on unchanged; only the pipeline parses and checks it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;

use super::Io;
use super::exit::{CommandError, Result};

/// The limit in bytes, against endless input. The pipeline's own limit is lower and has a better
/// error message.
const MAX_BYTES: u64 = 16 << 20;

/// Reads the arguments of a call from `JSON`, `-` or `@FILE`.
pub(super) fn read_arguments(given: &OsStr, io: &mut Io<'_>) -> Result<String> {
    if given == "-" {
        return read_text(&mut *io.stdin, "standard input", MAX_BYTES);
    }
    if let Some(path) = at_file_path(given) {
        return read_arguments_file(path, io);
    }
    let text = given.to_str().ok_or_else(|| {
        CommandError::usage("the arguments are not UTF-8")
            .hint("send them through standard input, with `-`")
    })?;
    Ok(text.to_owned())
}

/// Returns the `FILE` of `@FILE`, which need not be UTF-8.
#[cfg(unix)]
fn at_file_path(given: &OsStr) -> Option<&OsStr> {
    use std::os::unix::ffi::OsStrExt as _;
    given.as_bytes().strip_prefix(b"@").map(OsStr::from_bytes)
}

/// Outside Unix the name must be UTF-8.
#[cfg(not(unix))]
fn at_file_path(given: &OsStr) -> Option<&OsStr> {
    given.to_str()?.strip_prefix('@').map(OsStr::new)
}

fn read_arguments_file(path: &OsStr, io: &Io<'_>) -> Result<String> {
    if path.is_empty() {
        return Err(CommandError::usage("`@` must be followed by the name of a file"));
    }
    let name = path.display();
    let mut file = File::open(io.resolve_path(path))
        .map_err(|error| CommandError::usage(format_args!("cannot open `{name}`: {error}")))?;
    read_text(&mut file, &format!("`{name}`"), MAX_BYTES)
}

/// Reads everything as UTF-8 text, at most `most` bytes.
pub(super) fn read_text(from: &mut dyn Read, name: &str, most: u64) -> Result<String> {
    String::from_utf8(read_bytes(from, name, most)?)
        .map_err(|_| CommandError::usage(format_args!("{name} is not UTF-8")))
}

/// Reads everything, at most `most` bytes.
pub(super) fn read_bytes(from: &mut dyn Read, name: &str, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CommandError::usage(format_args!("cannot read {name}: {error}")))?;
    if bytes.len() as u64 > most {
        let limit = most >> 20;
        return Err(CommandError::usage(format_args!("{name} is longer than {limit} MiB")));
    }
    Ok(bytes)
}
