//! Validates the syntax of paths, before any access to the disk.

use std::path::{Component, Path};

use crate::error::WorkspaceError;

/// The maximum length of a path.
const MAX_PATH_BYTES: usize = 4096;

/// The maximum length of a path component.
const MAX_NAME_BYTES: usize = 255;

/// Rejects paths that no file can have.
pub(super) fn validate_path(path: &str) -> Result<(), WorkspaceError> {
    if path.is_empty() {
        return Err(WorkspaceError::invalid_path("the path is empty")
            .with_hint("send `.` for the workspace itself"));
    }
    if path.contains('\0') {
        return Err(WorkspaceError::invalid_path("the path contains a NUL character"));
    }
    if path.len() > MAX_PATH_BYTES {
        return Err(WorkspaceError::invalid_path(format_args!(
            "the path has {} bytes, but at most {MAX_PATH_BYTES} are allowed",
            path.len()
        )));
    }
    for component in Path::new(path).components() {
        let Component::Normal(name) = component else { continue };
        if name.len() > MAX_NAME_BYTES {
            return Err(WorkspaceError::invalid_path(format_args!(
                "a name in the path has {} bytes, but at most {MAX_NAME_BYTES} are allowed",
                name.len()
            )));
        }
        if cfg!(windows) && is_reserved_on_windows(&name.to_string_lossy()) {
            return Err(WorkspaceError::invalid_path(format_args!(
                "`{}` is a reserved name on this system, not a file",
                name.display()
            )));
        }
    }
    Ok(())
}

/// Returns whether Windows reserves the name: a device, an alternate stream, or a name whose
/// trailing dots or blanks it would strip.
pub(super) fn is_reserved_on_windows(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
    name.contains(':')
        || name.ends_with(['.', ' '])
        || matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$")
        || numbered.is_some_and(|rest| {
            matches!(
                rest,
                "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³"
            )
        })
}

/// Returns whether the path is absolute. On Windows a drive prefix such as `C:` is enough.
pub(super) fn is_absolute(path: &Path) -> bool {
    path.has_root() || matches!(path.components().next(), Some(Component::Prefix(_)))
}

/// Returns whether `..` leads above the root. Symbolic links are checked when a path is opened.
pub(super) fn escapes_root(path: &Path) -> bool {
    let mut depth = 0_usize;
    for component in path.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::CurDir => {}
            _ => return true,
        }
    }
    false
}
