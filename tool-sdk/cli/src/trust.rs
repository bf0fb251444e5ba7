//! The command `trust`: the folders whose agents, skills, plugins and reactions count.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, value_parser};
use serde_json::{Value, json};
use tool_sdk_core::{PrivateFileError, ToolError, TrustedFolder, TrustedFolders};

use super::exit::{self, CommandError, Result};
use super::settings::Settings;
use super::{Io, args, style};

const DIR: &str = "dir";

/// What a folder can bring, by the folders in which programs look for it.
const PLACES: &[&str] = &[
    ".agents",
    ".agents/plugins",
    ".agents/skills",
    ".claude/agents",
    ".claude/plugins",
    ".claude/skills",
    ".codex/skills",
    ".opencode/agent",
    ".opencode/skill",
    ".opencode/skills",
];

/// The file of reactions in the folder `.agents`; its agents are Markdown files.
const REACTIONS_FILE: &str = "reactions.toml";

/// How many files of one place are shown.
const MAX_SHOWN: usize = 20;

impl Settings {
    /// Returns the folders that the user trusts; `None` without a state folder.
    pub(super) fn trusted_folders(&self) -> Option<TrustedFolders> {
        let trusted = TrustedFolders::open(self.state_dir.as_ref()?);
        let writable = self.writable.as_deref().unwrap_or(&self.roots);
        Some(trusted.with_writable_roots(&self.roots).with_writable_roots(writable))
    }

    /// Returns the roots that bring something for models and are not trusted, with the number of
    /// things that wait.
    pub(super) fn untrusted_folders(&self) -> Vec<(PathBuf, usize)> {
        let trusted = self.trusted_folders();
        let is_trusted = |root: &Path| {
            trusted.as_ref().is_some_and(|trusted| trusted.is_trusted(root).unwrap_or(false))
        };
        let waiting = self.roots.iter().map(|root| (root.clone(), brought_files(root).len()));
        waiting.filter(|(root, count)| *count > 0 && !is_trusted(root)).collect()
    }
}

/// Builds the clap command `trust [DIR] | list | remove [DIR]`.
pub(super) fn build_command() -> Command {
    let folder = || {
        Arg::new(DIR)
            .value_name("DIR")
            .value_parser(value_parser!(PathBuf))
            .help("The folder; the current one by default")
    };
    let list = Command::new("list")
        .about("List the trusted folders")
        .arg(args::json_flag("Print a JSON array"));
    let remove = Command::new("remove").about("Trust a folder no more").arg(folder());
    args::with_globals(
        Command::new("trust")
            .about("Let the agents, skills, plugins and reactions of a folder count")
            .long_about(
                "Let the agents, skills, plugins and reactions of a folder count. Agents, skills and \
                 reactions are text that a model reads and follows, so read them first. Plugins can be \
                 enabled then; that asks for each of them. Trust allows no call: rules and approvals \
                 decide as before.",
            )
            .args_conflicts_with_subcommands(true)
            .arg(folder())
            .subcommands([list, remove].map(args::with_globals)),
    )
}

/// Runs `trust`.
pub(super) fn run(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let trusted = settings.trusted_folders().ok_or_else(|| {
        CommandError::config("there is no state folder to keep trusted folders in")
            .hint("`--state-dir` or HOME sets it")
    })?;
    let folder = |matches: &ArgMatches, io: &Io<'_>| {
        let named = matches.get_one::<PathBuf>(DIR);
        named.map_or_else(|| io.current_dir.clone(), |path| io.resolve_path(path))
    };
    match matches.subcommand() {
        Some(("list", sub)) => list(&trusted.list().map_err(file_error)?, sub, io),
        Some(("remove", sub)) => {
            let folder = folder(sub, io);
            if trusted.revoke(&folder).map_err(file_error)? {
                print_folder("trusted no more:", &folder, io);
                return Ok(0);
            }
            let message = format!("`{}` is not trusted", folder.display());
            Err(CommandError::new(exit::USAGE, ToolError::not_found(message))
                .hint("`trust list` shows the trusted folders"))
        }
        _ => add(&trusted, &folder(matches, io), settings, io),
    }
}

fn add(trusted: &TrustedFolders, folder: &Path, settings: &Settings, io: &mut Io<'_>) -> Result {
    if !folder.is_dir() {
        let message = format!("`{}` is not a folder", folder.display());
        return Err(CommandError::new(exit::USAGE, ToolError::not_found(message)));
    }
    if trusted.is_trusted(folder).map_err(file_error)? {
        print_folder("trusted already:", folder, io);
        return Ok(0);
    }
    let brought = brought_files(folder);
    if brought.is_empty() {
        io.print_stderr("the folder brings nothing for models now; later things will count");
    } else {
        io.print_stderr("these count when the folder is trusted; a model follows their text:");
    }
    for line in brought {
        io.print_stderr(style::sanitize_text(&format!("  {line}")));
    }
    let shown = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let question = format!("trust the folder {}?\n[y] yes  [n] no\n> ", shown.display());
    if !settings.confirm(&style::sanitize_text(&question), io)? {
        let refused = ToolError::denied("the folder is not trusted");
        return Err(CommandError::new(exit::DENIED, refused)
            .hint("a user at the terminal answers the question; --yes answers it, too"));
    }
    trusted.trust(folder).map_err(file_error)?;
    print_folder("trusted:", folder, io);
    Ok(0)
}

/// Returns the files and folders that count in a trusted folder, relative to it.
fn brought_files(folder: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for place in PLACES {
        let Ok(entries) = folder.join(place).read_dir() else { continue };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        // Plugins and skills are places of their own; all else in this one is not read.
        let is_read =
            |name: &String| *place != ".agents" || name.ends_with(".md") || name == REACTIONS_FILE;
        let mut names: Vec<String> = names.filter(is_read).collect();
        names.sort_unstable();
        let more = names.len().saturating_sub(MAX_SHOWN);
        lines.extend(names.iter().take(MAX_SHOWN).map(|name| format!("{place}/{name}")));
        if more > 0 {
            lines.push(format!("{place}: {more} more"));
        }
    }
    lines
}

fn list(folders: &[TrustedFolder], matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    if matches.get_flag(args::JSON) {
        let entry = |folder: &TrustedFolder| {
            json!({
                "path": folder.path,
                "since": folder.since_text(),
                "current": folder.is_current(),
            })
        };
        let entries: Vec<Value> = folders.iter().map(entry).collect();
        writeln!(io.stdout, "{:#}", Value::from(entries))?;
        return Ok(0);
    }
    if folders.is_empty() {
        io.print_stderr("no folder is trusted");
    }
    for folder in folders {
        let note = if folder.is_current() { "" } else { "  (gone, or another folder by now)" };
        let line = format!("{}  since {}{note}", folder.path.display(), folder.since_text());
        writeln!(io.stdout, "{}", style::sanitize_text(&line))?;
    }
    Ok(0)
}

fn print_folder(what: &str, folder: &Path, io: &mut Io<'_>) {
    io.print_stderr(style::sanitize_text(&format!("{what} {}", folder.display())));
}

fn file_error(error: PrivateFileError) -> CommandError {
    CommandError::config(exit::with_cause(&error))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::test_support::TestCli;

    #[test]
    fn a_folder_is_trusted_listed_and_removed() {
        let state = tempfile::tempdir().unwrap();
        let state = state.path().to_str().unwrap();
        let mut cli = TestCli::default();
        fs::create_dir_all(cli.folder.path().join(".agents/skills")).unwrap();
        fs::create_dir_all(cli.folder.path().join(".agents/agents")).unwrap();
        for file in ["review.md", "reactions.toml", "agents/lost.md", "notes.txt"] {
            fs::write(cli.folder.path().join(".agents").join(file), "").unwrap();
        }
        let run = |cli: &TestCli, args: &[&str]| {
            cli.run(&[&["trust"], args, &["--state-dir", state]].concat())
        };
        let unasked = run(&cli, &[]);
        assert_eq!(unasked.code, 3, "{}", unasked.err);
        assert_eq!(run(&cli, &["list", "--json"]).out, "[]\n");

        cli.type_lines(&["n"]);
        assert_eq!(run(&cli, &[]).code, 3);
        cli.type_lines(&["y"]);
        let asked = run(&cli, &[]);
        assert!(asked.code == 0 && asked.err.contains(".agents/review.md"), "{}", asked.err);
        assert!(asked.err.contains(".agents/reactions.toml"), "{}", asked.err);
        for other in ["notes.txt", ".agents/agents", "  .agents/skills\n"] {
            assert!(!asked.err.contains(other), "{}", asked.err);
        }
        assert!(run(&cli, &["."]).err.contains("trusted already"));
        let listed = run(&cli, &["list"]).out;
        assert!(listed.contains(cli.folder.path().to_str().unwrap()), "{listed}");
        assert_eq!(run(&cli, &["remove"]).code, 0);
        assert_eq!(run(&cli, &["remove"]).code, 2);
        assert_eq!(run(&cli, &["nowhere", "--yes"]).code, 2);
    }
}
