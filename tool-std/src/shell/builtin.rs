//! The commands that bash runs itself, and what they do to it.
//!
//! **Invariant:** a builtin that is not known to leave the shell as it was may change it.

use super::word::Word;

/// Builtins that no program stands for.
const ONLY_BUILTIN: &[&str] = &[
    ".",
    ":",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "declare",
    "dirs",
    "disown",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "times",
    "trap",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

/// Builtins that are programs as well, and may change the shell or speak of it: `printf` sets
/// variables with `-v` and `%n`, `kill` knows its jobs.
const ALSO_PROGRAMS: &[&str] = &["kill", "printf"];

/// Whether bash alone can run it.
pub(super) fn is_only_builtin(name: &str) -> bool {
    ONLY_BUILTIN.contains(&name)
}

/// Whether a shell that has run a plain command is as it was before, and whether what the
/// command does has nothing to do with what the shell ran earlier.
pub(super) fn leaves_shell(words: &[Word]) -> bool {
    let Some((name, rest)) = words.split_first() else { return false };
    match name.value.as_str() {
        ":" | "echo" | "false" | "pwd" | "true" => true,
        "[" | "test" => !rest.iter().any(may_ask_for_variable),
        name => !is_only_builtin(name) && !ALSO_PROGRAMS.contains(&name),
    }
}

/// Whether a word of a test may be an operator that looks at variables of the shell, and runs
/// what stands in their subscripts.
fn may_ask_for_variable(word: &Word) -> bool {
    matches!(word.value.as_str(), "-R" | "-v") || !word.is_literal() && word.value != "]"
}

#[cfg(test)]
mod tests {
    use super::super::understand;

    #[test]
    fn programs_and_harmless_builtins_leave_the_shell() {
        for script in [
            "ls",
            "ls -l | wc -l",
            "true && echo a || false; pwd",
            "[ -f x ] && test -d y",
            ": ; git status\nls *.rs",
            "./set; /usr/bin/cd x; env cd x",
            "sh -c 'cd /; X=1'",
        ] {
            assert!(understand(script).leaves_shell(), "{script}");
        }
    }

    #[test]
    fn everything_else_may_change_it() {
        let builtins = super::ONLY_BUILTIN.iter().chain(super::ALSO_PROGRAMS);
        for name in builtins.filter(|name| **name != ":") {
            for script in
                [format!("{name} x"), format!("true; {name} x"), format!("'{name}' x | ls")]
            {
                assert!(!understand(&script).leaves_shell(), "{script}");
            }
        }
        for script in [
            "",
            "A=1",
            "A=1 ls",
            "ls > x",
            "ls &",
            "echo $X",
            "echo `ls`",
            "(ls)",
            "{ ls; }",
            "f() { ls; }",
            "if true; then ls; fi",
            "! ls",
            "time ls",
            "[[ a ]]",
            "c\\d /",
            "test -v X",
            "[ -R X ]",
            "[ * x ]",
            "ls # x",
            "%1",
        ] {
            assert!(!understand(script).leaves_shell(), "{script}");
        }
    }
}
