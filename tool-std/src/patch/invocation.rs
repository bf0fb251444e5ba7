//! Patches that arrive inside a command line.
//!
//! Only what is nothing but a patch is taken out; a script that does anything else runs as
//! the script that it is.

use std::path::Path;

use super::grammar;

/// The names under which models call for a patch.
const PROGRAMS: &[&str] = &["apply_patch", "applypatch"];

/// What a command line has to do with a patch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Invocation<'c> {
    /// Nothing.
    Other,
    /// It is the text of a patch without a program to take it.
    Bare,
    /// It applies a patch.
    Patch {
        /// The text of the patch.
        text: &'c str,
        /// The folder that the script enters first.
        folder: Option<&'c str>,
    },
}

impl<'c> Invocation<'c> {
    /// What a program's name and arguments mean.
    pub(crate) fn of_arguments(arguments: &[&'c str]) -> Self {
        match *arguments {
            [program, text] if PROGRAMS.contains(&program) => Self::Patch { text, folder: None },
            [script] => Self::of_script(script),
            [shell, ref flags @ .., script] if takes_script(shell, flags) => {
                Self::of_script(script)
            }
            _ => Self::Other,
        }
    }

    /// What a script means: `[cd FOLDER &&] apply_patch <<'WORD'`, and the patch up to `WORD`.
    pub(crate) fn of_script(script: &'c str) -> Self {
        if grammar::parse(script).is_ok() {
            return Self::Bare;
        }
        let (folder, command) = match enters(script.trim_start()) {
            Some((folder, command)) => (Some(folder), command),
            None => (None, script.trim_start()),
        };
        match without_program(command, PROGRAMS).and_then(heredoc) {
            Some(text) => Self::Patch { text, folder },
            None => Self::Other,
        }
    }
}

/// Takes away what a shell would need around a patch.
pub(super) fn unwrap(text: &str) -> &str {
    let command = text.trim_start();
    let document = without_program(command, PROGRAMS)
        .or_else(|| without_program(command, &["cat"]))
        .unwrap_or(command);
    heredoc(document).unwrap_or(text)
}

/// Whether a program with these flags runs the script that follows.
fn takes_script(program: &str, flags: &[&str]) -> bool {
    let name = Path::new(program).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    match name.to_ascii_lowercase().as_str() {
        "bash" | "sh" | "zsh" => matches!(flags, ["-c" | "-lc"]),
        "powershell" | "pwsh" => matches!(flags, ["-Command"] | ["-NoProfile", "-Command"]),
        "cmd" => matches!(flags, ["/c"]),
        _ => false,
    }
}

/// The folder and the rest of `cd FOLDER && REST`.
fn enters(script: &str) -> Option<(&str, &str)> {
    let (folder, rest) = word(script.strip_prefix("cd")?.strip_prefix([' ', '\t'])?.trim_start())?;
    let rest = rest.trim_start_matches([' ', '\t']).strip_prefix("&&")?;
    Some((folder, rest.trim_start()))
}

/// One word of a script that stands for itself, and what follows.
fn word(text: &str) -> Option<(&str, &str)> {
    let is_special = |c: char| matches!(c, '$' | '`' | '\\');
    let (word, rest) = if let Some(quoted) = text.strip_prefix('\'') {
        quoted.split_once('\'')?
    } else if let Some(quoted) = text.strip_prefix('"') {
        quoted.split_once('"').filter(|(word, _)| !word.contains(is_special))?
    } else {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-');
        text.split_at(text.find(|c| !is_plain(c)).unwrap_or(text.len()))
    };
    let ends = rest.is_empty() || rest.starts_with([' ', '\t', '\n', '\r', '&']);
    (ends && !word.is_empty() && !word.starts_with('-')).then_some((word, rest))
}

/// What follows one of `programs` that has no arguments of its own.
fn without_program<'c>(command: &'c str, programs: &[&str]) -> Option<&'c str> {
    let rest = programs.iter().find_map(|program| command.strip_prefix(program))?;
    Some(rest.trim_start_matches([' ', '\t']))
}

/// The text of `<<WORD`, when nothing follows the line that ends it.
fn heredoc(text: &str) -> Option<&str> {
    let (head, body) = text.strip_prefix("<<")?.split_once('\n')?;
    let (end, rest) = word(head.trim())?;
    if !rest.is_empty() {
        return None;
    }
    let mut at = 0;
    for line in body.split_inclusive('\n') {
        if line.trim_end() == end {
            let is_last = body[at + line.len()..].trim().is_empty();
            return is_last.then(|| body[..at].trim_end_matches(['\r', '\n']));
        }
        at += line.len();
    }
    None
}
