//! Login shells that are started as plain ones.
//!
//! Many models write `["bash", "-lc", "script"]` for every command, and mean nothing by it. The
//! start-up files of a login shell may give every word of the script another meaning.
//!
//! **Invariant:** only what is started here can be started so. A login shell within a script reads
//! its files, and is asked about.

use std::borrow::Cow;

use super::word::bare_name;

/// What is started for a program with its arguments.
pub(crate) fn without_login(argv: &[String]) -> Cow<'_, [String]> {
    if !is_login(argv) {
        return Cow::Borrowed(argv);
    }
    let mut argv = argv.to_vec();
    "-c".clone_into(&mut argv[1]);
    Cow::Owned(argv)
}

/// Whether it is a login shell with a script.
pub(crate) fn is_login(argv: &[String]) -> bool {
    let is_bash = |shell: &str| matches!(&*bare_name(shell), "bash" | "sh");
    matches!(argv, [shell, option, _, ..] if option == "-lc" && is_bash(shell))
}
