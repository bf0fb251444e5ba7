//! Detects `git push` into a local repository.
//!
//! The hooks of such a repository run, and anything that can write files could have created it,
//! while a rule for pushing is meant for remote machines. Git resolves the repository relative to
//! the directory and to the top of the work tree, and its settings may map a name to a path.
//!
//! Settings outside of the workspace are ignored, and no program is run to read them.
//!
//! **Invariant:** if the directory, a word or the settings are unknown, the push may go to a local
//! repository.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use tool_sdk::{Resource, Workspace};
use tool_shell_analysis::{SimpleCommand, internal::bare_name};

use super::base_folder::is_folder_in;
use super::git::work_tree_top;
use super::operands::{is_known, operand_words};

/// The maximum number of words that may name a repository.
const MAX_WORDS: usize = 64;

/// The maximum size of a settings file, in bytes.
const MAX_CONFIG_BYTES: u64 = 256 << 10;

/// The maximum number of settings files, which may include each other.
const MAX_CONFIG_FILES: usize = 16;

/// Git subcommands that push, and those that may push with one of these as a further word.
const PUSH: &[&str] = &["http-push", "push", "send-pack"];
const MAY_PUSH: &[&str] = &["annex", "flow", "lfs", "subtree", "svn", "town"];

/// Options of `git push` that take the next word; they may be abbreviated.
const VALUED: &[&str] =
    &["--exec", "--push-option", "--receive-pack", "--recurse-submodules", "--repo"];

/// Settings whose values are addresses or names of remotes.
const REMOTE_KEYS: &[&str] = &["pushdefault", "pushremote", "pushurl", "remote", "url"];

/// Returns resources for the pushes that may go to a local repository.
///
/// They run in one of `folders`, which is empty if these are unknown; `remotes` are the commands
/// that may set a remote before.
pub(super) fn push_resources(
    pushes: &[&SimpleCommand],
    remotes: &[&SimpleCommand],
    folders: &[PathBuf],
    workspace: &Workspace,
) -> Vec<Resource> {
    if pushes.is_empty() {
        return Vec::new();
    }
    let tops = folders.iter().filter_map(|folder| work_tree_top(folder));
    let bases: Vec<PathBuf> = folders.iter().cloned().chain(tops).collect();
    let is_local = |address: &str| {
        let path = local_path(address);
        bases.iter().any(|base| is_repository(&base.join(path)))
    };
    let is_remote_local = remotes.iter().any(|command| sets_remote(command, &is_local))
        || bases.iter().any(|base| has_local_remote(base, workspace));
    let may_be_local = |command: &SimpleCommand| {
        is_remote_local
            || command.may_run_elsewhere
            || folders.is_empty()
            || repository_words(command).is_none_or(|words| words.into_iter().any(is_local))
    };
    let why = "it may push into a local repository, whose hooks run";
    let resource = |command: &SimpleCommand| {
        may_be_local(command).then(|| Resource::new(command.text.clone()).with_reason(why).opaque())
    };
    pushes.iter().filter_map(|command| resource(command)).collect()
}

/// Whether a remote in the settings of a repository is a local repository of the workspace.
fn has_local_remote(base: &Path, workspace: &Workspace) -> bool {
    let roots: Vec<&Path> = workspace.roots().collect();
    let is_local = |address: &String| {
        let place = base.join(local_path(address));
        is_repository(&place) && is_folder_in(&place, &roots)
    };
    remote_addresses(base, workspace).is_none_or(|addresses| addresses.iter().any(is_local))
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
        if !is_known(command.word_certainty[place + 1]) || found.len() == MAX_WORDS {
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

/// Whether a command may map a remote name to a path for later commands.
pub(super) fn may_set_remote(command: &SimpleCommand) -> bool {
    let Some((program, rest)) = command.argv.split_first() else { return false };
    let sets = |word: &String| matches!(word.as_str(), "clone" | "fetch" | "pull" | "remote");
    !command.is_embedded && bare_name(program) == "git" && rest.iter().any(sets)
}

/// Whether a word of such a command is, or may be, a local repository.
fn sets_remote(command: &SimpleCommand, is_local: &dyn Fn(&str) -> bool) -> bool {
    command.argv.len() > MAX_WORDS + 1
        || operand_words(command).any(|(word, certainty)| !is_known(certainty) || is_local(word))
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

/// Returns the remote addresses of the repository at `folder`; empty if it is not one, `None` if
/// they are unknown.
pub(super) fn remote_addresses(folder: &Path, workspace: &Workspace) -> Option<Vec<String>> {
    if workspace.resolve(folder.to_str()?).is_err() {
        return Some(Vec::new());
    }
    let (own, common) = match folder.join(".git") {
        git if git.is_dir() => (git.clone(), git),
        git if git.is_file() => {
            let own = folder.join(read_config(&git, workspace)?.strip_prefix("gitdir:")?.trim());
            let link = own.join("commondir");
            let common =
                if link.is_file() { read_config(&link, workspace)? } else { String::new() };
            (own.clone(), own.join(common.trim()))
        }
        _ if folder.join("HEAD").is_file() => (folder.to_owned(), folder.to_owned()),
        _ => return Some(Vec::new()),
    };
    let mut files = VecDeque::from([common.join("config"), own.join("config.worktree")]);
    let (mut found, mut count) = (Vec::new(), 0);
    while let Some(file) = files.pop_front() {
        count += 1;
        if count > MAX_CONFIG_FILES {
            return None;
        }
        if file.symlink_metadata().is_ok() {
            let settings = parse_config(&read_config(&file, workspace)?)?;
            found.extend(settings.addresses);
            // Conditions are ignored: any of the addresses may apply.
            for include in settings.includes {
                // Only git knows the home directory of the include.
                let is_known = !include.starts_with(['~', '%']);
                files.push_back(is_known.then(|| file.with_file_name(include))?);
            }
        }
    }
    // Git still reads these legacy directories.
    let is_old = ["branches", "remotes"]
        .iter()
        .any(|old| common.join(old).read_dir().is_ok_and(|mut entries| entries.next().is_some()));
    (!is_old).then_some(found)
}

/// Reads a settings file; empty if it is outside of the workspace.
fn read_config(file: &Path, workspace: &Workspace) -> Option<String> {
    let mut text = String::new();
    let Ok(place) = workspace.resolve(file.to_str()?) else { return Some(text) };
    let opened = place.canonicalize().ok()?.open_file().ok()?;
    let length = opened.take(MAX_CONFIG_BYTES).read_to_string(&mut text).ok()?;
    (length < MAX_CONFIG_BYTES as usize).then_some(text)
}

/// The relevant settings.
#[derive(Debug, Default)]
struct GitSettings {
    /// Addresses and names of remotes.
    addresses: Vec<String>,
    /// Included settings files.
    includes: Vec<String>,
}

/// Returns the settings that a file may have; `None` if it has escapes or continued lines.
fn parse_config(text: &str) -> Option<GitSettings> {
    if text.contains('\\') {
        return None;
    }
    let mut settings = GitSettings::default();
    for line in text.lines() {
        if line.to_ascii_lowercase().contains("[url") {
            settings.addresses.extend(line.split('"').skip(1).step_by(2).map(str::to_owned));
        }
        for (at, _) in line.match_indices('=') {
            let key = line[..at].trim_end().rsplit([' ', '\t', ']']).next().unwrap_or_default();
            let key = key.to_ascii_lowercase();
            let values = possible_values(&line[at + 1..]);
            if key == "path" {
                settings.includes.extend(values);
            } else if REMOTE_KEYS.contains(&&*key) {
                settings.addresses.extend(values);
            }
        }
    }
    Some(settings)
}

/// Returns the values that a text may stand for: a comment begins at any of these characters, or
/// they are quoted.
fn possible_values(text: &str) -> impl Iterator<Item = String> {
    let ends = text.match_indices([';', '#']).map(|(at, _)| at).chain([text.len()]);
    ends.map(|end| text[..end].trim().replace('"', ""))
}

#[cfg(test)]
mod tests {
    use tool_shell_analysis::analyze_script;

    use super::*;

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
        let resources = |script: &str, folders: &[PathBuf]| {
            let commands = analyze_script(script).commands;
            let pushes: Vec<_> = commands.iter().filter(|it| is_push(it)).collect();
            let remotes: Vec<_> = commands.iter().filter(|it| may_set_remote(it)).collect();
            push_resources(&pushes, &remotes, folders, &workspace)
        };
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
            let subjects = resources(script, &[place.join(folder)]);
            assert_eq!(!subjects.is_empty(), expected, "{folder}: {script}");
        }
        assert_eq!(resources("git push origin", &[]).len(), 1);
    }

    #[test]
    fn finds_every_address_that_settings_may_have() {
        let text = "\
            [core]\n\tbare = false\n\
            [remote \"h\"]\n\turl = ./bare ; so\n\tpushURL = \"./x y;z\"\n\
            [url \"./c\"] insteadOf = \"https://a\"\n\
            [branch \"main\"]\n\tremote = ../d\n\
            \u{feff}[core] [remote \"a]=b\"] url = ./e\n\
            [includeIf \"gitdir:]\"]PATH=\"f\"\n";
        let settings = parse_config(text).unwrap();
        for address in ["./bare", "./x y;z", "./c", "../d", "./e"] {
            assert!(settings.addresses.iter().any(|it| it == address), "{address}: {settings:?}");
        }
        assert_eq!(settings.includes, ["f"]);
        assert!(parse_config("[remote \"h\"]\nurl = a\\\nb\n").is_none());
    }
}
