//! The commands `completions` and `man`: files for shells and for the manual, generated from the
//! clap definition.
//!
//! **Invariant:** neither reads settings, so both work while the configuration is broken.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use tool_sdk_core::{ToolError, Toolset};

use super::args::{self, ToolVerb, UNBREAKABLE};
use super::exit::{CommandError, FAILED, Result};
use super::{Io, flag, style};

const FOLDER: &str = "folder";
const SHELL: &str = "shell";

/// Builds the clap command `completions SHELL`.
pub(super) fn completions_command(program: &str) -> Command {
    let shell = Arg::new(SHELL).value_name("SHELL").required(true).help("The shell");
    Command::new("completions")
        .about("Print completions for a shell: of the commands, the options, and the tools")
        .after_help(format!(
            "For bash: `{program} completions bash > ~/.local/share/bash-completion/completions/{program}`"
        ))
        .arg(shell.value_parser(value_parser!(Shell)))
}

/// Builds the clap command `man DIR`.
pub(super) fn man_command() -> Command {
    let folder = Arg::new(FOLDER).value_name("DIR").required(true);
    Command::new("man")
        .about("Write a manual page for each command into a folder")
        .arg(folder.help("The folder; created if missing").value_parser(value_parser!(PathBuf)))
}

/// Prints the completions of the command with the tools as commands below `call` and `check`.
pub(super) fn print_completions(
    command: Command,
    program: &str,
    tools: &Toolset,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> Result {
    let Some(&shell) = matches.get_one::<Shell>(SHELL) else {
        return Err(CommandError::usage("the name of a shell is missing"));
    };
    let view = tools.view();
    let with_tools = |verb: ToolVerb| {
        let tools: Vec<Command> = view
            .definitions()
            .map(|tool| args::tool_command(program, verb, tool, &flag::tool_flags(tool)))
            .collect();
        move |command: Command| command.subcommands(tools)
    };
    let mut command = [ToolVerb::Call, ToolVerb::Check]
        .into_iter()
        .fold(command, |command, verb| command.mut_subcommand(verb.as_str(), with_tools(verb)));
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, program, &mut script);
    let mut script = String::from_utf8_lossy(&script).replace(UNBREAKABLE, " ");
    if shell == Shell::Bash {
        script = fix_case_labels(&script, program);
    }
    io.stdout.write_all(script.as_bytes())?;
    Ok(0)
}

/// Spells the name of the program in the labels of a bash script's `case` as its loop does. For a name with a
/// hyphen clap_complete writes `__subcmd__` there and `__` in the loop (clap-rs/clap#6421), so that nothing
/// below the first command is completed.
fn fix_case_labels(script: &str, program: &str) -> String {
    let in_labels = format!("{}__subcmd__", program.replace('-', "__subcmd__"));
    script.replace(&in_labels, &format!("{}__subcmd__", program.replace('-', "__")))
}

/// Writes a page for the program and for each of its commands, such as `tool-std-mcp-add.1`.
pub(super) fn write_manual(command: Command, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let Some(folder) = matches.get_one::<PathBuf>(FOLDER) else {
        return Err(CommandError::usage("the name of a folder is missing"));
    };
    let folder = io.resolve_path(folder);
    let failed = |error: std::io::Error| {
        let words = format_args!("cannot write into `{}`: {error}", folder.display());
        CommandError::new(FAILED, ToolError::failed(words))
    };
    fs::create_dir_all(&folder).map_err(failed)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let name = command.get_name().to_owned();
    let count = write_pages(&command, &name, &folder).map_err(failed)?;
    let done = format!("wrote {count} pages into `{}`", folder.display());
    io.print_stderr(style::sanitize_text(&done));
    Ok(0)
}

fn write_pages(command: &Command, name: &str, folder: &Path) -> std::io::Result<usize> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone().name(name.to_owned())).render(&mut page)?;
    let page = String::from_utf8_lossy(&page).replace(UNBREAKABLE, " ");
    fs::write(folder.join(format!("{name}.1")), page)?;
    let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    visible
        .map(|sub| write_pages(sub, &format!("{name}-{}", sub.get_name()), folder))
        .try_fold(1, |count, written| Ok(count + written?))
}

#[cfg(test)]
mod tests {
    use crate::test_support::{TestCli, run};

    #[test]
    fn completions_know_commands_tools_and_flags() {
        for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
            let ran = run(&["completions", shell]);
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{shell}");
            for word in ["approvals", "kinds", "state-dir"] {
                assert!(ran.out.contains(word), "{shell}: {word}");
            }
            assert!(!ran.out.contains('\u{a0}'), "{shell}");
        }
        let wrong = run(&["completions", "csh"]);
        assert!(wrong.code == 2 && wrong.err.contains("powershell"), "{}", wrong.err);
    }

    #[test]
    fn each_command_has_a_manual_page() {
        let setting = TestCli::default();
        // A broken configuration does not matter.
        let config = setting.write_text("c.toml", "oops");
        let ran = setting.run(&["--config", &config, "man", "pages"]);
        assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
        for name in ["toy.1", "toy-call.1", "toy-approvals-revoke.1"] {
            let page = std::fs::read_to_string(setting.folder.path().join("pages").join(name));
            let page = page.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(page.contains(".SH SYNOPSIS") && !page.contains('\u{a0}'), "{page}");
        }
    }
}
