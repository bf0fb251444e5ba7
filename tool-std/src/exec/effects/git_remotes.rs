//! Reads the remotes of a repository from its git settings, for `git push`.
//!
//! Settings outside of the workspace are ignored.
//!
//! **Invariant:** settings that cannot be read count as unknown, and no program is run to read
//! them.

use std::collections::VecDeque;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use tool_sdk::Workspace;

/// The maximum size of a settings file, in bytes.
const MAX_CONFIG_BYTES: u64 = 256 << 10;

/// The maximum number of settings files, which may include each other.
const MAX_CONFIG_FILES: usize = 16;

/// Returns the top of the work tree that contains a directory.
pub(super) fn work_tree_top(folder: &Path) -> Option<PathBuf> {
    let is_top = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    folder.ancestors().find(is_top).map(Path::to_owned)
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

/// Parses a settings file; `None` if the syntax is uncertain.
fn parse_config(text: &str) -> Option<GitSettings> {
    let mut settings = GitSettings::default();
    let mut section = String::new();
    for line in text.trim_start_matches('\u{feff}').lines() {
        let mut line = line.trim();
        if line.ends_with('\\') {
            return None;
        }
        while let Some(head) = line.strip_prefix('[') {
            let end = section_end(head)?;
            section = head[..end].to_ascii_lowercase();
            if section.starts_with("url") {
                settings.addresses.push(unquote_value(head[3..end].trim()));
            }
            line = head[end + 1..].trim();
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim().to_ascii_lowercase();
        let is_remote = section.starts_with("remote") && matches!(&*key, "url" | "pushurl");
        if is_remote || matches!(&*key, "pushdefault" | "pushremote" | "remote") {
            settings.addresses.push(unquote_value(value.trim()));
        }
        if section.starts_with("include") && key == "path" {
            settings.includes.push(unquote_value(value.trim()));
        }
    }
    Some(settings)
}

/// Returns the offset of the bracket that closes a section header, outside of quotes.
fn section_end(head: &str) -> Option<usize> {
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

/// Removes quotes and comments from a value.
fn unquote_value(value: &str) -> String {
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
    fn finds_module_and_extension_of_a_name() {
        let text = "\
            [core]\n\tbare = false\n\
            [remote \"h\"]\n\turl = ./bare ; so\n\tpushURL = \"./x y;\\\"z\"\n\
            [url \"./c\"] insteadOf = https://a\n\
            [branch \"main\"]\n\tremote = ../d\n\
            [submodule \"s\"]\n\turl = ./s\n";
        let settings = parse_config(text).unwrap();
        assert_eq!(settings.addresses, ["./bare", "./x y;\"z", "./c", "../d"]);
        assert!(parse_config("[remote \"h\"]\nurl = a\\\nb\n").is_none());
        let odd =
            "\u{feff}[core] [remote \"a]b\"] url = ./e\n[includeIf \"gitdir:\\\"]\"]PATH=\"f\"\n";
        let settings = parse_config(odd).unwrap();
        assert_eq!((settings.addresses, settings.includes), (vec!["./e".into()], vec!["f".into()]));
    }
}
