//! Detects `git push` into a local repository.
//!
//! The hooks of such a repository run, and anything that can write files could have created it,
//! while a rule for pushing is meant for remote machines. Git resolves the repository relative to
//! the directory and to the top of the work tree, and its settings may map a name to a path.
//!
//! **Invariant:** if the directory or a word is unknown, the push may go to a local repository.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tool_sdk::{Resource, Workspace};

use super::git_remotes;
use super::program_lookup;
use crate::shell::{ScriptAnalysis, SimpleCommand, WordCertainty, bare_name};

/// The maximum number of words that may name a repository.
const MAX_WORDS: usize = 64;

/// Git subcommands that push, and those that may push with one of these as a further word.
const PUSH: &[&str] = &["http-push", "push", "send-pack"];
const MAY_PUSH: &[&str] = &["annex", "flow", "lfs", "subtree", "svn", "town"];

/// Options of `git push` that take the next word; they may be abbreviated.
const VALUED: &[&str] =
    &["--exec", "--push-option", "--receive-pack", "--recurse-submodules", "--repo"];

/// Returns resources for the commands that push into a local repository when they run in one of
/// `folders`, which is empty if they are unknown.
pub(super) fn push_resources(
    analysis: &ScriptAnalysis,
    folders: &[PathBuf],
    workspace: &Workspace,
) -> Vec<Resource> {
    let pushes: Vec<&SimpleCommand> =
        analysis.commands.iter().filter(|command| is_push(command)).collect();
    let tops = folders.iter().filter_map(|folder| git_remotes::work_tree_top(folder));
    let bases: Vec<PathBuf> = folders.iter().cloned().chain(tops).collect();
    let names_repository = |word: &str| {
        bases.iter().any(|base| is_repository(&base.join(word)))
            || Path::new(word).is_absolute() && is_repository(Path::new(word))
    };
    let roots: Vec<&Path> = workspace.roots().collect();
    // The remote settings now, and those that the script may create.
    let is_named = |base: &PathBuf| {
        let is_own =
            |place: PathBuf| is_repository(&place) && program_lookup::is_folder_in(&place, &roots);
        git_remotes::remote_addresses(base, workspace)
            .is_none_or(|it| it.iter().any(|it| is_own(base.join(local_path(it)))))
    };
    let names_one = analysis.commands.iter().any(|command| sets_remote(command, &names_repository))
        || bases.iter().any(is_named);
    let into_folder = |command: &&&SimpleCommand| {
        names_one
            || command.may_run_elsewhere
            || folders.is_empty()
            || repository_words(command)
                .is_none_or(|words| words.iter().any(|it| names_repository(local_path(it))))
    };
    let why = "it may push into a local repository, whose hooks run";
    let asks =
        |command: &&SimpleCommand| Resource::new(command.text.clone()).with_reason(why).opaque();
    pushes.iter().filter(into_folder).map(asks).collect()
}

/// Whether a command is, or may be, a git push.
pub(super) fn is_push(command: &SimpleCommand) -> bool {
    let Some((program, rest)) = command.argv.split_first() else { return false };
    if command.is_embedded || bare_name(program) != "git" {
        return false;
    }
    let has_one = || rest.iter().any(|word| PUSH.contains(&word.as_str()));
    rest.first().is_some_and(|first| {
        let may_push = first.starts_with('-') || MAY_PUSH.contains(&first.as_str());
        PUSH.contains(&first.as_str()) || (may_push || command.may_be_alias) && has_one()
    })
}

/// Returns the words of which one is the repository; `None` if that is unknown.
fn repository_words(command: &SimpleCommand) -> Option<Vec<&str>> {
    let words = &command.argv[1..];
    let at = words.iter().position(|word| PUSH.contains(&word.as_str()))?;
    // For other subcommands the position is unknown.
    let is_plain = at == 0;
    let mut found = Vec::new();
    for (place, word) in words.iter().enumerate().skip(at + 1) {
        if command.word_certainty[place + 1] != WordCertainty::Literal || found.len() == MAX_WORDS {
            return None;
        }
        if word.starts_with('-') {
            continue;
        }
        found.push(word.as_str());
        if is_plain && !takes_value(&words[place - 1]) {
            break;
        }
    }
    Some(found)
}

/// Whether an option of `git push` may take the next word.
fn takes_value(option: &str) -> bool {
    match option.strip_prefix('-') {
        Some(long) if long.starts_with('-') => VALUED.iter().any(|it| it.starts_with(option)),
        Some(letters) => letters.ends_with('o'),
        None => false,
    }
}

/// Whether a command may map a remote name to a local path for later commands.
fn sets_remote(command: &SimpleCommand, names_repository: &dyn Fn(&str) -> bool) -> bool {
    let Some((program, rest)) = command.argv.split_first() else { return false };
    let sets = |word: &String| matches!(word.as_str(), "clone" | "fetch" | "pull" | "remote");
    if command.is_embedded || bare_name(program) != "git" || !rest.iter().any(sets) {
        return false;
    }
    let words = rest.iter().zip(command.word_certainty.iter().skip(1));
    rest.len() > MAX_WORDS
        || words.into_iter().any(|(word, known)| {
            *known != WordCertainty::Literal || names_repository(local_path(word))
        })
}

/// Removes the scheme of a `file://` URL.
fn local_path(address: &str) -> &str {
    address.strip_prefix("file://").unwrap_or(address)
}

/// Whether git accepts a path as a repository, with the suffixes that it tries.
fn is_repository(path: &Path) -> bool {
    let mut with_ending = OsString::from(path);
    with_ending.push(".git");
    let with_ending = PathBuf::from(with_ending);
    let folders = [path.to_owned(), path.join(".git"), with_ending.join(".git"), with_ending];
    // A `.git` file points to another directory.
    folders[1].is_file()
        || folders.iter().any(|folder| folder.join("HEAD").symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::analyze_script;

    fn repository(place: &Path, folder: &str, config: &str) {
        std::fs::create_dir_all(place.join(folder)).unwrap();
        std::fs::write(place.join(folder).join("HEAD"), "").unwrap();
        std::fs::write(place.join(folder).join("config"), config).unwrap();
    }

    // SH6
    #[test]
    fn a_folder_is_pushed_into_only_where_one_is() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        for folder in ["bare", "named.git", "work/.git", "src/inner"] {
            repository(place, folder, "");
        }
        let plain = "[remote \"origin\"]\n\turl = git@host:a\n[remote \"far\"]\n\turl = /far\n";
        repository(place, "plain/.git", plain);
        repository(place, "plain/sub/own", "");
        repository(place, "told/.git", "[remote \"h\"]\n\turl = ../bare\n");
        // Included settings files apply, and unreadable settings are unknown.
        let plain_too = |path: &str| format!("{plain}[include]\n\tpath = {path}\n");
        for (folder, path) in [
            ("team", "../own"),
            ("home", "~/own"),
            ("gone", "../nothing"),
            ("round", "config"),
            ("harmless", "../../plain/.git/config"),
        ] {
            repository(place, &format!("{folder}/.git"), &plain_too(path));
        }
        std::fs::write(place.join("team/own"), "[remote \"h\"]\nurl = ../bare\n").unwrap();
        std::fs::create_dir_all(place.join("feature")).unwrap();
        let workspace = Workspace::open([place]).unwrap();
        for (folder, script, expected) in [
            ("", "git push bare HEAD:a", true),
            ("", "git push -o x ./bare", true),
            ("", "git push named HEAD:a", true),
            ("", "git -C . push work", true),
            ("", "git send-pack bare", true),
            ("", "git push bar* HEAD:a", true),
            ("", "git push origin feature", false),
            ("", "git push", false),
            ("", "git log bare", false),
            ("", "git stash push bare", false),
            ("", "git commit -m push bare", false),
            ("", "git subtree push --prefix=x bare m", true),
            ("", "git remote add h ./bare && git push h HEAD:a", true),
            ("", "git clone bare y && git push origin HEAD:a", true),
            ("", "git remote add h git@host:a && git push h HEAD:a", false),
            ("", "chronic git push origin HEAD:a", true),
            ("plain", "git push origin HEAD:a", false),
            ("plain", "git push -u origin HEAD:refs/heads/*", false),
            ("plain", "git push --force-with-lease", false),
            ("plain/sub", "git push own HEAD:a", true),
            ("plain/sub", "git push sub/own HEAD:a", true),
            ("told", "git push", true),
            ("team", "git push h HEAD:a", true),
            ("home", "git push origin", true),
            ("round", "git push origin", true),
            ("gone", "git push origin", false),
            ("harmless", "git push origin", false),
            ("told", "git stash push", false),
        ] {
            let analysis = analyze_script(script);
            let subjects = push_resources(&analysis, &[place.join(folder)], &workspace);
            assert_eq!(!subjects.is_empty(), expected, "{folder}: {script}");
        }
        let elsewhere = push_resources(&analyze_script("git push origin"), &[], &workspace);
        assert_eq!(elsewhere.len(), 1);
    }
}
