//! Patches that models send as commands, where a tool applies them.
//!
//! **Invariant:** nobody is asked about what is told apart here, and it is never run: both hang
//! on the same answer.

use tool_sdk::{RiskClass, Subject, ToolError};

/// The programs that models know for it; there need not be any.
const PROGRAMS: &[&str] = &["apply_patch", "applypatch"];

/// How a shell is told to run the text that follows.
const SHELLS: &[&str] = &["bash -lc ", "bash -c ", "sh -lc ", "sh -c ", "zsh -lc ", "zsh -c "];

/// What a command line touches: a patch nothing, since it is refused, any other what it is
/// `judged` to.
pub(super) fn subjects(command: &str, judged: impl FnOnce() -> Vec<Subject>) -> Vec<Subject> {
    match is_one(command) {
        true => vec![Subject::new(command).class(RiskClass::Read)],
        false => judged(),
    }
}

/// Refuses a patch, and says what to do instead.
pub(super) fn refuse(command: &str) -> Result<(), ToolError> {
    match is_one(command) {
        true => Err(ToolError::failed("a patch is no command; nothing was run, nothing changed")
            .hint("call the tool `apply_patch` with the patch as `input`")),
        false => Ok(()),
    }
}

/// Whether a command line is a patch, or hands one to a program for patches, perhaps in
/// another folder.
fn is_one(command: &str) -> bool {
    let command = command.trim_start();
    let script = SHELLS.iter().find_map(|shell| command.strip_prefix(shell));
    let script = script.unwrap_or(command).trim_start_matches(['\'', '"', ' ', '\n']);
    let script = elsewhere(script).unwrap_or(script);
    let begins = |program: &&str| {
        let rest = script.strip_prefix(*program);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\n', '<']))
    };
    script.starts_with("*** Begin Patch") || PROGRAMS.iter().any(begins)
}

/// What follows `cd FOLDER &&`.
fn elsewhere(script: &str) -> Option<&str> {
    let (folder, rest) = script.strip_prefix("cd ")?.split_once("&&")?;
    (!folder.contains(['\n', ';', '|'])).then(|| rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    // F140
    #[test]
    fn patches_are_told_from_commands() {
        for command in [
            "*** Begin Patch\n*** Delete File: a\n*** End Patch",
            "apply_patch <<'EOF'\n*** Begin Patch\n*** End Patch\nEOF",
            "apply_patch<<EOF\n*** Begin Patch",
            "  applypatch '*** Begin Patch'",
            "cd sub && apply_patch <<EOF\n",
            "bash -lc apply_patch <<'EOF'\n",
            "bash -lc \"cd 'a b' && apply_patch <<EOF\n",
            "apply_patch",
        ] {
            assert!(is_one(command), "{command}");
        }
        for command in [
            "git apply a.patch",
            "cat apply_patch",
            "apply_patches.sh",
            "cd sub && make",
            "cd a; cd b && apply_patch",
            "echo '*** Begin Patch'",
            "",
        ] {
            assert!(!is_one(command), "{command}");
        }
    }
}
