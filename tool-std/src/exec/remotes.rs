//! What names stand for to `git push`, by the settings of a repository.
//!
//! Settings outside of the workspace are not looked at.
//!
//! **Invariant:** what cannot be read is not known, and nothing is run to ask for it.

use std::collections::VecDeque;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use tool_sdk::Workspace;

/// How much of the settings is read, in bytes.
const MOST_READ: u64 = 256 << 10;

/// How many files of settings are read: one may include others.
const MOST_FILES: usize = 16;

/// The top of the work tree that a folder lies in.
pub(super) fn top(folder: &Path) -> Option<PathBuf> {
    let is_top = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    folder.ancestors().find(is_top).map(Path::to_owned)
}

/// The addresses in the settings of the repository whose top is `folder`, none where it is not
/// one; nothing when they are not known.
pub(super) fn of(folder: &Path, workspace: &Workspace) -> Option<Vec<String>> {
    if workspace.resolve(folder.to_str()?).is_err() {
        return Some(Vec::new());
    }
    let (own, common) = match folder.join(".git") {
        git if git.is_dir() => (git.clone(), git),
        git if git.is_file() => {
            let own = folder.join(read(&git, workspace)?.strip_prefix("gitdir:")?.trim());
            let link = own.join("commondir");
            let common = if link.is_file() { read(&link, workspace)? } else { String::new() };
            (own.clone(), own.join(common.trim()))
        }
        _ if folder.join("HEAD").is_file() => (folder.to_owned(), folder.to_owned()),
        _ => return Some(Vec::new()),
    };
    let mut files = VecDeque::from([common.join("config"), own.join("config.worktree")]);
    let (mut found, mut count) = (Vec::new(), 0);
    while let Some(file) = files.pop_front() {
        count += 1;
        if count > MOST_FILES {
            return None;
        }
        if file.symlink_metadata().is_ok() {
            let settings = settings(&read(&file, workspace)?)?;
            found.extend(settings.addresses);
            // Whose they are when is not asked: any of them may count.
            for include in settings.includes {
                // In whose home folder it is, only git knows.
                let is_known = !include.starts_with(['~', '%']);
                files.push_back(is_known.then(|| file.with_file_name(include))?);
            }
        }
    }
    // Git still reads these.
    let is_old = ["branches", "remotes"]
        .iter()
        .any(|old| common.join(old).read_dir().is_ok_and(|mut entries| entries.next().is_some()));
    (!is_old).then_some(found)
}

/// What a file says, and nothing where it lies outside.
fn read(file: &Path, workspace: &Workspace) -> Option<String> {
    let mut text = String::new();
    let Ok(place) = workspace.resolve(file.to_str()?) else { return Some(text) };
    let opened = place.real().ok()?.open_file().ok()?;
    let length = opened.take(MOST_READ).read_to_string(&mut text).ok()?;
    (length < MOST_READ as usize).then_some(text)
}

/// What is looked for in settings.
#[derive(Debug, Default)]
struct Settings {
    /// Addresses and names of remotes.
    addresses: Vec<String>,
    /// Files with more settings.
    includes: Vec<String>,
}

/// What a file of settings says; nothing where that is not certain.
fn settings(text: &str) -> Option<Settings> {
    let mut settings = Settings::default();
    let mut section = String::new();
    for line in text.trim_start_matches('\u{feff}').lines() {
        let mut line = line.trim();
        if line.ends_with('\\') {
            return None;
        }
        while let Some(head) = line.strip_prefix('[') {
            let end = end_of_section(head)?;
            section = head[..end].to_ascii_lowercase();
            if section.starts_with("url") {
                settings.addresses.push(plain(head[3..end].trim()));
            }
            line = head[end + 1..].trim();
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim().to_ascii_lowercase();
        let is_remote = section.starts_with("remote") && matches!(&*key, "url" | "pushurl");
        if is_remote || matches!(&*key, "pushdefault" | "pushremote" | "remote") {
            settings.addresses.push(plain(value.trim()));
        }
        if section.starts_with("include") && key == "path" {
            settings.includes.push(plain(value.trim()));
        }
    }
    Some(settings)
}

/// Where the bracket is that closes the name of a section: another one may stand in quotes.
fn end_of_section(head: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    head.find(|c| {
        let is_plain = !std::mem::take(&mut escaped);
        match c {
            '\\' if quoted => escaped = is_plain,
            '"' if is_plain => quoted = !quoted,
            _ => {}
        }
        c == ']' && !quoted
    })
}

/// A value without its quotes.
fn plain(value: &str) -> String {
    let mut plain = String::with_capacity(value.len());
    let (mut quoted, mut chars) = (false, value.chars());
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '\\' => plain.extend(chars.next()),
            '#' | ';' if !quoted => break,
            c => plain.push(c),
        }
    }
    let end = if value.ends_with('"') { plain.len() } else { plain.trim_end().len() };
    plain.truncate(end);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_may_stand_for_is_found() {
        let text = "\
            [core]\n\tbare = false\n\
            [remote \"h\"]\n\turl = ./bare ; so\n\tpushURL = \"./x y;\\\"z\"\n\
            [url \"./c\"] insteadOf = https://a\n\
            [branch \"main\"]\n\tremote = ../d\n\
            [submodule \"s\"]\n\turl = ./s\n";
        let told = settings(text).unwrap();
        assert_eq!(told.addresses, ["./bare", "./x y;\"z", "./c", "../d"]);
        assert!(settings("[remote \"h\"]\nurl = a\\\nb\n").is_none());
        let odd =
            "\u{feff}[core] [remote \"a]b\"] url = ./e\n[includeIf \"gitdir:\\\"]\"]PATH=\"f\"\n";
        let told = settings(odd).unwrap();
        assert_eq!((told.addresses, told.includes), (vec!["./e".into()], vec!["f".into()]));
    }
}
