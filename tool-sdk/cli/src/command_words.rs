//! The words of a command line, before clap parses them: the name of the program, the place of the
//! command, and `help call NAME`.
//!
//! **Invariant:** no word behind the name of a tool is read here; it is the tool's.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Command;

/// Rewrites `help call NAME` to `call NAME --help`, because the parameters of a tool are not part
/// of the program's own clap command. Program options may come before and after it.
pub(super) fn rewrite_help_command(mut words: Vec<OsString>, command: &Command) -> Vec<OsString> {
    let at = command_position(&words, command);
    if let Some([help, verb, tool]) = words.get(at..at + 3)
        && help == "help"
        && (verb == "call" || verb == "check")
        && !tool.to_string_lossy().starts_with('-')
    {
        words.remove(at);
        words.insert(at + 2, "--help".into());
    }
    words
}

/// Returns the index of the command, behind the program options.
pub(super) fn command_position(words: &[OsString], command: &Command) -> usize {
    let mut at = 0;
    while let Some(option) = words.get(at).and_then(|word| word.to_str()?.strip_prefix("--")) {
        let own = command.get_arguments().find(|arg| arg.get_long() == Some(option));
        at += if own.is_some_and(|arg| arg.get_action().takes_values()) { 2 } else { 1 };
    }
    at
}

/// Returns the name under which the program was started, without folder and extension.
pub(super) fn program_name(first: Option<OsString>) -> String {
    first
        .as_deref()
        .map(Path::new)
        .and_then(Path::file_stem)
        .map(OsStr::to_string_lossy)
        .filter(|name| !name.is_empty())
        .map_or_else(|| "tools".to_owned(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_called_what_it_was_started_as() {
        assert_eq!(program_name(Some("/usr/bin/my-tools".into())), "my-tools");
        assert_eq!(program_name(Some("tools.exe".into())), "tools");
        assert_eq!(program_name(None), "tools");
    }
}
