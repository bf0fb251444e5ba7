//! Which commands leave the names of files alone.
//!
//! A redirection is judged by where its path leads now. That holds only as long as no command
//! before it makes a link, moves a file or mounts something. So all of them must be known not
//! to. Programs that build, test or interpret are among these: they run whatever a project
//! says, and could write any file themselves, so that a redirection after them gives nothing
//! away that they were not given.
//!
//! **Invariant:** what is not listed may rename.

use super::danger;
use super::word::{Word, bare_name, is_listed};

/// Programs that rename nothing, whatever their arguments are.
const LEAVES: &str = "\
    : [ awk basename break chgrp chmod chown cmp comm continue curl date declare df diff dirname \
    dirs du exit export file fold hostname jobs join jq kill local lsof md5sum mkdir popd printenv \
    printf ps pushd readlink readonly realpath return set sha256sum shift sleep sort ssh strings \
    tee test times touch type typeset ulimit umask unset wait xxd yes";

/// Programs that run what the project or their arguments say.
const BUILD: &str = "\
    ant aws bazel black bun bundle c++ cargo cc clang clang++ cmake composer ctest deno docker \
    dotnet eslint g++ gcc go gradle java javac jest just kubectl make meson mix mvn mypy mysql \
    ninja node npm npx perl php pip pnpm poetry podman prettier psql pytest python rake rspec ruby \
    ruff rustc rustup sqlite swift terraform tox tsc uv vitest yarn";

/// Commands of git that leave the files of the work tree where they are.
const GIT: &str = "\
    add blame branch cat-file commit describe diff fetch for-each-ref grep log ls-files push \
    reflog remote rev-list rev-parse shortlog show status tag";

/// Whether a command of a program that is what its name says renames nothing.
///
/// `open_end` says that more words may come.
pub(super) fn leaves(words: &[Word], open_end: bool) -> bool {
    let Some((head, rest)) = words.split_first() else { return true };
    let name = bare_name(&head.value);
    match &*name {
        // It copies the links in folders, but not without an option.
        "cp" => {
            !open_end && rest.iter().all(|word| word.is_literal() && !word.value.starts_with('-'))
        }
        "sed" => !danger::may_run(words),
        "git" => rest.first().is_some_and(|command| is_listed(GIT, &command.value)),
        name => {
            // `python3.12` is `python` too.
            let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            is_listed(LEAVES, name) || is_listed(BUILD, name) || is_listed(BUILD, family)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Word> {
        text.split(' ').map(Word::literal).collect()
    }

    #[test]
    fn what_makes_files_and_folders_renames_nothing() {
        for text in
            ["mkdir -p a", "touch a", "make", "python3.12 x.py", "git commit -m x", "cp a b"]
        {
            assert!(leaves(&words(text), false), "{text}");
        }
    }

    #[test]
    fn what_links_moves_or_unpacks_may_rename() {
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
            assert!(!leaves(&words(text), false), "{text}");
        }
    }
}
