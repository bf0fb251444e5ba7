//! Rejects patches that models send as commands, and names the tool that applies them.
//!
//! **Invariant:** approval and execution use the same check, so a patch is never asked about and
//! never run.

use tool_sdk::{Resource, RiskClass, ToolError};

/// Program names that models use for patches; they need not be installed.
const PROGRAMS: &[&str] = &["apply_patch", "applypatch"];

/// Prefixes with which a shell runs the text that follows.
const SHELL_PREFIXES: &[&str] =
    &["bash -lc ", "bash -c ", "sh -lc ", "sh -c ", "zsh -lc ", "zsh -c "];

/// Returns the resources of a command line. A patch has none, because it is rejected; for any
/// other command `otherwise` is called.
pub(super) fn patch_resources(
    command: &str,
    otherwise: impl FnOnce() -> Vec<Resource>,
) -> Vec<Resource> {
    match is_patch_command(command) {
        true => vec![Resource::new(command).with_class(RiskClass::Read)],
        false => otherwise(),
    }
}

/// Fails if the command line is a patch.
pub(super) fn reject_patch(command: &str) -> Result<(), ToolError> {
    match is_patch_command(command) {
        true => Err(ToolError::failed("a patch is not a command; nothing was run or changed")
            .hint("call the tool `apply_patch` with the patch as `input`")),
        false => Ok(()),
    }
}

/// Whether a command line is a patch or runs a patch program, possibly after `cd FOLDER &&`.
fn is_patch_command(command: &str) -> bool {
    let command = command.trim_start();
    let script = SHELL_PREFIXES.iter().find_map(|shell| command.strip_prefix(shell));
    let script = script.unwrap_or(command).trim_start_matches(['\'', '"', ' ', '\n']);
    let script = strip_leading_cd(script).unwrap_or(script);
    let begins = |program: &&str| {
        let rest = script.strip_prefix(*program);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\n', '<']))
    };
    script.starts_with("*** Begin Patch") || PROGRAMS.iter().any(begins)
}

/// Removes a leading `cd FOLDER &&`.
fn strip_leading_cd(script: &str) -> Option<&str> {
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
            assert!(is_patch_command(command), "{command}");
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
            assert!(!is_patch_command(command), "{command}");
        }
    }
}
