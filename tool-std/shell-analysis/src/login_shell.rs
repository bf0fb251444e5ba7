//! Runs `bash -lc` as `bash -c`.
//!
//! Many models send `["bash", "-lc", "script"]` for every command without needing a login shell,
//! whose start-up files may redefine any word of the script.
//!
//! **Invariant:** this applies only to the program that the tool starts. A login shell inside a
//! script reads its start-up files and needs approval.

use std::borrow::Cow;

use super::word::bare_name;

/// Replaces the option `-lc` of a shell by `-c`.
pub fn strip_login_option(argv: &[String]) -> Cow<'_, [String]> {
    if !is_login_shell(argv) {
        return Cow::Borrowed(argv);
    }
    let mut argv = argv.to_vec();
    "-c".clone_into(&mut argv[1]);
    Cow::Owned(argv)
}

/// Whether `argv` is a login shell with a script.
pub fn is_login_shell(argv: &[String]) -> bool {
    let is_bash = |shell: &str| matches!(&*bare_name(shell), "bash" | "sh");
    matches!(argv, [shell, option, _, ..] if option == "-lc" && is_bash(shell))
}
