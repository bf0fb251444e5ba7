//! What a path may look like, before anything looks at the disk.

use std::path::{Component, Path};

use crate::error::ToolError;

/// The longest path that is looked at, in bytes.
const MAX_PATH: usize = 4096;

/// The longest name within a path, in bytes.
const MAX_NAME: usize = 255;

/// Refuses what no file can be called, before anything looks at the disk.
pub(super) fn check(path: &str) -> Result<(), ToolError> {
    if path.is_empty() {
        return Err(
            ToolError::invalid_args("the path is empty").hint("send `.` for the workspace itself")
        );
    }
    if path.contains('\0') {
        return Err(ToolError::invalid_args("the path holds a NUL character"));
    }
    if path.len() > MAX_PATH {
        return Err(ToolError::invalid_args(format_args!(
            "the path has {} bytes, more than {MAX_PATH}",
            path.len()
        )));
    }
    for component in Path::new(path).components() {
        let Component::Normal(name) = component else { continue };
        if name.len() > MAX_NAME {
            return Err(ToolError::invalid_args(format_args!(
                "a name in the path has {} bytes, more than {MAX_NAME}",
                name.len()
            )));
        }
        if cfg!(windows) && is_special_on_windows(&name.to_string_lossy()) {
            return Err(ToolError::invalid_args(format_args!(
                "`{}` means something else than a file on this system",
                name.display()
            )));
        }
    }
    Ok(())
}

/// Device names, alternate streams, and names that Windows would silently shorten.
pub(super) fn is_special_on_windows(name: &str) -> bool {
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

/// Whether the path belongs to no folder: on Windows, a drive is enough for that.
pub(super) fn is_absolute(path: &Path) -> bool {
    path.has_root() || matches!(path.components().next(), Some(Component::Prefix(_)))
}

/// Whether `..` leads above the start, links aside; those the handle refuses.
pub(super) fn leaves(path: &Path) -> bool {
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
