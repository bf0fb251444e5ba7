//! Lists commands that never rename, link or mount files.
//!
//! A redirection is checked against the place where its path leads now. That holds only if no
//! earlier command can link, move or mount files. Programs that build, test or interpret are
//! listed although they run arbitrary project code: such code could write any file itself, so a
//! redirection after it grants nothing new.
//!
//! **Invariant:** a command that is not listed may rename files.

use super::dangerous;
use super::word::{ShellWord, bare_name, list_contains};

/// Programs that never rename files, with any arguments.
const NEVER_RENAMES: &str = "\
    : [ awk basename break chgrp chmod chown cmp comm continue curl date declare df diff dirname \
    dirs du exit export file fold hostname jobs join jq kill local lsof md5sum mkdir popd printenv \
    printf ps pushd readlink readonly realpath return set sha256sum shift sleep sort ssh strings \
    tee test times touch type typeset ulimit umask unset wait xxd yes";

/// Programs that run project code or code from their arguments.
const BUILD_TOOLS: &str = "\
    ant aws bazel black bun bundle c++ cargo cc clang clang++ cmake composer ctest deno docker \
    dotnet eslint g++ gcc go gradle java javac jest just kubectl make meson mix mvn mypy mysql \
    ninja node npm npx perl php pip pnpm poetry podman prettier psql pytest python rake rspec ruby \
    ruff rustc rustup sqlite swift terraform tox tsc uv vitest yarn";

/// Git subcommands that leave the files of the work tree in place.
const GIT_COMMANDS: &str = "\
    add blame branch cat-file commit describe diff fetch for-each-ref grep log ls-files push \
    reflog remote rev-list rev-parse shortlog show status tag";

/// Whether a command never renames files, provided that the program is what its name says.
///
/// `open_end` means that more words may be appended at run time.
pub(super) fn never_renames_files(words: &[ShellWord], open_end: bool) -> bool {
    let Some((head, rest)) = words.split_first() else { return true };
    let name = bare_name(&head.value);
    match &*name {
        // Without options it does not copy links inside directories.
        "cp" => {
            !open_end && rest.iter().all(|word| word.is_literal() && !word.value.starts_with('-'))
        }
        "sed" => !dangerous::may_run_argument(words),
        "git" => rest.first().is_some_and(|command| list_contains(GIT_COMMANDS, &command.value)),
        name => {
            // `python3.12` is `python`.
            let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            list_contains(NEVER_RENAMES, name)
                || list_contains(BUILD_TOOLS, name)
                || list_contains(BUILD_TOOLS, family)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<ShellWord> {
        text.split(' ').map(ShellWord::from_literal).collect()
    }

    #[test]
    fn creating_files_never_renames() {
        for text in
            ["mkdir -p a", "touch a", "make", "python3.12 x.py", "git commit -m x", "cp a b"]
        {
            assert!(never_renames_files(&words(text), false), "{text}");
        }
    }

    #[test]
    fn links_moves_and_unpackers_may_rename() {
        for text in [
            "ln -s a b",
            "mv a b",
            "cp -r a b",
            "cp -P a b",
            "rm a",
            "tar xf a",
            "unzip a",
            "git checkout a",
            "git -C a status",
            "git stash",
            "mount a b",
            "rsync -a a b",
            "install a b",
            "unheard-of",
        ] {
            assert!(!never_renames_files(&words(text), false), "{text}");
        }
    }
}
