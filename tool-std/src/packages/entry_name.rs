//! Checks the names of skills and of the files of a package.
//!
//! **Invariant:** a name that passes, joined to a folder, is a file below that folder on every
//! system, and a person sees all of its characters.

use tool_sdk::ToolError;
use unicode_normalization::is_nfc;

/// The longest path of a file in a package, in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// The longest component of such a path, in bytes.
const MAX_COMPONENT_BYTES: usize = 255;

/// The longest name of a skill.
const MAX_SKILL_NAME: usize = 64;

/// Device names that Windows finds in every folder.
const DEVICE_NAMES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Checks the path of a file in a package: relative, with `/` between its components.
pub(crate) fn check_entry_name(path: &str) -> Result<(), ToolError> {
    let refuse = |why: &str| {
        let path: String = path.chars().take(200).collect();
        let text = format_args!("the package names a file `{}`: {why}", path.escape_debug());
        Err(ToolError::invalid_args(text).hint("nothing was installed; do not use this package"))
    };
    if path.len() > MAX_PATH_BYTES {
        return refuse("the path is longer than 4096 bytes");
    }
    for component in path.split('/') {
        if let Some(why) = component_fault(component) {
            return refuse(why);
        }
    }
    if !is_nfc(path) {
        return refuse("its characters are not composed (Unicode NFC)");
    }
    Ok(())
}

/// Returns why a component of a path is refused.
fn component_fault(component: &str) -> Option<&'static str> {
    if component.is_empty() || component == "." || component == ".." {
        return Some("each part of a path must be a name");
    }
    if component.len() > MAX_COMPONENT_BYTES {
        return Some("a name is longer than 255 bytes");
    }
    if component.contains(['\\', ':']) {
        return Some("a name contains `\\` or `:`");
    }
    if component.chars().any(is_hidden_char) {
        return Some("a name contains characters that do not show");
    }
    if component.ends_with(['.', ' ']) {
        return Some("a name ends in a dot or a blank");
    }
    let stem = component.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_port = |start: &str| {
        stem.strip_prefix(start).is_some_and(|rest| matches!(rest.as_bytes(), [b'0'..=b'9']))
    };
    if DEVICE_NAMES.contains(&stem.as_str()) || is_port("com") || is_port("lpt") {
        return Some("a name is that of a device on Windows");
    }
    None
}

/// Whether a character does not show, or changes how others are shown: control, zero-width and
/// bidirectional characters, tags, and variation selectors beyond those of emoji.
pub(crate) fn is_hidden_char(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0e}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Returns at most `max` characters of a text in one line, with hidden characters escaped.
pub(crate) fn quote_text(text: &str, max: usize) -> String {
    let text = text.trim();
    let escape = |c: char| match is_hidden_char(c) || c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    let quote: String = text.chars().take(max).map(escape).collect();
    if text.chars().nth(max).is_some() { quote + "…" } else { quote }
}

/// Whether the name may be that of a folder of a package (SK4): `[a-z0-9][a-z0-9._-]{0,63}`,
/// without a dot at the end.
pub(crate) fn is_folder_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_inner = |byte: u8| is_allowed(byte) || matches!(byte, b'.' | b'_' | b'-');
    let bytes = name.as_bytes();
    bytes.len() <= MAX_SKILL_NAME
        && bytes.first().is_some_and(|first| is_allowed(*first))
        && bytes.iter().copied().all(is_inner)
        && check_entry_name(name).is_ok()
}

/// Whether the name follows the specification of Agent Skills: lower-case letters, digits and
/// single hyphens inside, 1 to 64.
pub(crate) fn is_specified_name(name: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    name.len() <= MAX_SKILL_NAME && name.split('-').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    // F114: SK1, the names that archives use to get out of their folder, or to hide.
    #[test]
    fn refuses_names_that_lead_elsewhere_or_hide() {
        for name in [
            "",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a/./b",
            "a//b",
            "a/",
            "a\\..\\b",
            "C:/x",
            "a:stream",
            "a\0b",
            "a\nb",
            "a\u{202e}gnp.exe",
            "a\u{200b}b",
            "a.",
            "a ",
            "nul",
            "x/CON.txt",
            "lpt1",
            "e\u{301}",
            &"x".repeat(256),
            &"ab/".repeat(1400),
        ] {
            assert!(check_entry_name(name).is_err(), "{name:?}");
        }
        for name in ["SKILL.md", "scripts/run.sh", "a/b/ü.md", ".hidden", "console.txt", "com/x"] {
            assert!(check_entry_name(name).is_ok(), "{name:?}");
        }
    }

    // SK4
    #[test]
    fn names_of_folders_and_of_skills() {
        for (name, folder, skill) in [
            ("pdf-forms", true, true),
            ("a", true, true),
            ("a.b_c", true, false),
            ("Pdf", false, false),
            ("-a", false, false),
            ("a-", true, false),
            ("a--b", true, false),
            ("a.", false, false),
            (".a", false, false),
            ("nul", false, true),
            ("../a", false, false),
            ("", false, false),
            (&"a".repeat(65), false, false),
        ] {
            assert_eq!((is_folder_name(name), is_specified_name(name)), (folder, skill), "{name}");
        }
    }
}
