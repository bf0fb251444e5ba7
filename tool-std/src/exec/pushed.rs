//! Repositories in folders that git pushes into.
//!
//! The hooks of such a repository run, and whoever may write files could have made all of it: a
//! rule for pushing speaks of other machines. Git takes a folder for one from where it runs and
//! from the top of the work tree, and a name may stand for one in its settings.
//!
//! **Invariant:** where nobody knows in which folder git runs, or what a word is, it may push
//! into one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tool_sdk::{Subject, Workspace};

use super::found;
use super::remotes;
use crate::shell::{Known, Simple, Understood, bare_name};

/// How many words of a command may name one: each is looked for.
const MOST_WORDS: usize = 64;

/// Commands of git that push, and those that may, with one of these among their words.
const PUSH: &[&str] = &["http-push", "push", "send-pack"];
const MAY_PUSH: &[&str] = &["annex", "flow", "lfs", "subtree", "svn", "town"];

/// Options of `git push` that take the next word, and may be cut short.
const VALUED: &[&str] =
    &["--exec", "--push-option", "--receive-pack", "--recurse-submodules", "--repo"];

/// The commands of a line that push into a folder, when they run in one of `folders`; there are
/// none when nobody knows where. In the workspace others may have made a repository.
pub(super) fn subjects(
    of: &Understood,
    folders: &[PathBuf],
    workspace: &Workspace,
) -> Vec<Subject> {
    let pushes: Vec<&Simple> = of.commands.iter().filter(|command| pushes(command)).collect();
    let tops = folders.iter().filter_map(|folder| remotes::top(folder));
    let bases: Vec<PathBuf> = folders.iter().cloned().chain(tops).collect();
    let is_one = |word: &str| {
        bases.iter().any(|base| is_repository(&base.join(word)))
            || Path::new(word).is_absolute() && is_repository(Path::new(word))
    };
    let roots: Vec<&Path> = workspace.roots().collect();
    // What stands for a name now, and what may stand for it by then.
    let is_named = |base: &PathBuf| {
        let is_own = |place: PathBuf| is_repository(&place) && found::is_in(&place, &roots);
        remotes::of(base, workspace)
            .is_none_or(|it| it.iter().any(|it| is_own(base.join(local(it)))))
    };
    let names_one = of.commands.iter().any(|command| sets_remote(command, &is_one))
        || bases.iter().any(is_named);
    let into_folder = |command: &&&Simple| {
        names_one
            || command.elsewhere
            || folders.is_empty()
            || repositories(command).is_none_or(|words| words.iter().any(|it| is_one(local(it))))
    };
    let why = "it may push into a folder, and the hooks that lie there run";
    let asks = |command: &&Simple| Subject::new(command.text.clone()).because(why).opaque();
    pushes.iter().filter(into_folder).map(asks).collect()
}

/// Whether it is a command of git that pushes, or may be one.
pub(super) fn pushes(command: &Simple) -> bool {
    let Some((program, rest)) = command.argv.split_first() else { return false };
    if command.hidden || bare_name(program) != "git" {
        return false;
    }
    let has_one = || rest.iter().any(|word| PUSH.contains(&word.as_str()));
    rest.first().is_some_and(|first| {
        let may_push = first.starts_with('-') || MAY_PUSH.contains(&first.as_str());
        PUSH.contains(&first.as_str()) || (may_push || command.may_be_alias) && has_one()
    })
}

/// The words of which one is the repository; nothing where that is not known.
fn repositories(command: &Simple) -> Option<Vec<&str>> {
    let words = &command.argv[1..];
    let at = words.iter().position(|word| PUSH.contains(&word.as_str()))?;
    // Of other commands nobody knows which word it is.
    let is_plain = at == 0;
    let mut found = Vec::new();
    for (place, word) in words.iter().enumerate().skip(at + 1) {
        if command.known[place + 1] != Known::Literal || found.len() == MOST_WORDS {
            return None;
        }
        if word.starts_with('-') {
            continue;
        }
        found.push(word.as_str());
        if is_plain && !takes_next(&words[place - 1]) {
            break;
        }
    }
    Some(found)
}

/// Whether an option of `git push` may take the next word.
fn takes_next(option: &str) -> bool {
    match option.strip_prefix('-') {
        Some(long) if long.starts_with('-') => VALUED.iter().any(|it| it.starts_with(option)),
        Some(letters) => letters.ends_with('o'),
        None => false,
    }
}

/// Whether it may say that a name stands for a folder: later commands of the line see that.
fn sets_remote(command: &Simple, is_one: &dyn Fn(&str) -> bool) -> bool {
    let Some((program, rest)) = command.argv.split_first() else { return false };
    let sets = |word: &String| matches!(word.as_str(), "clone" | "fetch" | "pull" | "remote");
    if command.hidden || bare_name(program) != "git" || !rest.iter().any(sets) {
        return false;
    }
    let words = rest.iter().zip(command.known.iter().skip(1));
    rest.len() > MOST_WORDS
        || words.into_iter().any(|(word, known)| *known != Known::Literal || is_one(local(word)))
}

/// The path in an address, when it is one of this machine.
fn local(address: &str) -> &str {
    address.strip_prefix("file://").unwrap_or(address)
}

/// Whether git takes a path for a repository, with all that it tries to add.
fn is_repository(path: &Path) -> bool {
    let mut with_ending = OsString::from(path);
    with_ending.push(".git");
    let with_ending = PathBuf::from(with_ending);
    let folders = [path.to_owned(), path.join(".git"), with_ending.join(".git"), with_ending];
    // A file there may name another folder.
    folders[1].is_file()
        || folders.iter().any(|folder| folder.join("HEAD").symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::understand;

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
        // What another file says counts, and what nobody can read is not known.
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
            let understood = understand(script);
            let subjects = subjects(&understood, &[place.join(folder)], &workspace);
            assert_eq!(!subjects.is_empty(), expected, "{folder}: {script}");
        }
        let elsewhere = subjects(&understand("git push origin"), &[], &workspace);
        assert_eq!(elsewhere.len(), 1);
    }
}
