//! The command `new`: writes a crate of tools, or a plugin, to start from.
//!
//! **Invariant:** only a folder that did not exist is written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command};
use tool_sdk_core::ToolError;

use super::exit::{self, CommandError, Result};
use super::{Io, args, style};

/// The longest name of a crate.
const MAX_CRATE_NAME: usize = 64;

/// The longest name of a plugin: the names of its tools, such as `NAME_count_lines`, have at most 64 characters.
const MAX_PLUGIN_NAME: usize = 52;

/// A file of a project: its path, its text, and whether it can be executed.
type ProjectFile = (&'static str, &'static str, bool);

/// The files of a crate. `tests/fixtures/new-crate` builds and tests them.
const CRATE_FILES: &[ProjectFile] = &[
    ("Cargo.toml", include_str!("crate/Cargo.toml.txt"), false),
    ("README.md", include_str!("crate/README.md.txt"), false),
    (".gitignore", "/target\n", false),
    (".github/workflows/ci.yml", include_str!("crate/ci.yml"), false),
    ("src/lib.rs", include_str!("crate/lib.rs"), false),
    ("src/main.rs", include_str!("crate/main.rs.txt"), false),
    ("schemas/count_words.json", include_str!("crate/schemas/count_words.json"), false),
];

/// The files of a plugin.
const PLUGIN_FILES: &[ProjectFile] = &[
    ("plugin.toml", include_str!("plugin/plugin.toml.txt"), false),
    ("README.md", include_str!("plugin/README.md.txt"), false),
    ("test.sh", include_str!("plugin/test.sh"), true),
    ("tools/count_lines.sh", include_str!("plugin/count_lines.sh"), true),
    ("tools/reverse.py", include_str!("plugin/reverse.py"), false),
];

/// Builds the clap command `new crate NAME | plugin NAME`.
pub(super) fn build_command() -> Command {
    let name = || {
        Arg::new(args::NAME)
            .value_name("NAME")
            .required(true)
            .help("The name, which is also that of the new folder")
    };
    let of_crate = Command::new("crate")
        .about("Write a crate of tools, with tests, committed schemas and CI")
        .arg(name());
    let of_plugin = Command::new("plugin")
        .about("Write a plugin, with a tool in shell, one in Python, and a test script")
        .arg(name());
    args::with_globals(
        Command::new("new")
            .about("Write a crate of tools or a plugin to start from")
            .arg_required_else_help(true)
            .subcommand_required(true)
            .subcommands([of_crate, of_plugin].map(args::with_globals)),
    )
}

/// Runs `new`.
pub(super) fn run(matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let (files, longest, sub) = match matches.subcommand() {
        Some(("crate", sub)) => (CRATE_FILES, MAX_CRATE_NAME, sub),
        Some(("plugin", sub)) => (PLUGIN_FILES, MAX_PLUGIN_NAME, sub),
        _ => return Err(CommandError::usage("`crate NAME` or `plugin NAME` is missing")),
    };
    let name = sub.get_one::<String>(args::NAME).map(String::as_str).unwrap_or_default();
    check_name(name, longest)?;
    let folder = io.current_dir.join(name);
    write_project(files, name, &folder).map_err(|error| {
        let text = format!("cannot write `{}`: {error}", folder.display());
        match error.kind() {
            io::ErrorKind::AlreadyExists => CommandError::usage(text).hint("choose another name"),
            _ => CommandError::new(exit::FAILED, ToolError::failed(text)),
        }
    })?;
    for (path, ..) in files {
        let path = folder.join(path);
        writeln!(io.stdout, "{}", style::sanitize_text(&path.display().to_string()))?;
    }
    Ok(0)
}

/// Checks that the name is one for a package and for a folder.
fn check_name(name: &str, longest: usize) -> Result<()> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    let is_valid = name.len() <= longest
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(is_inner);
    if is_valid {
        return Ok(());
    }
    let name: String = name.chars().take(100).collect();
    let text = format_args!("`{}` cannot be the name", name.escape_debug());
    Err(CommandError::usage(text).hint(format_args!(
        "a name has 1 to {longest} of a-z, 0-9, `-` and `_`, and begins with a letter"
    )))
}

fn write_project(files: &[ProjectFile], name: &str, folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)?;
    let identifier = name.replace('-', "_");
    let words = [
        ("{{name}}", name),
        ("{{crate}}", &identifier),
        ("{{tool}}", &identifier),
        ("{{version}}", env!("CARGO_PKG_VERSION")),
        ("{{rust_version}}", env!("CARGO_PKG_RUST_VERSION")),
    ];
    for (path, text, is_executable) in files {
        let fill = |text: String, (word, value): &(&str, &str)| text.replace(word, value);
        let text = words.iter().fold((*text).to_owned(), fill);
        write_project_file(&folder.join(path), &text, *is_executable)?;
    }
    Ok(())
}

fn write_project_file(path: &PathBuf, text: &str, is_executable: bool) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, text)?;
    #[cfg(unix)]
    if is_executable {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    #[cfg(not(unix))]
    let _ = is_executable;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::test_support::TestCli;

    #[test]
    fn a_crate_and_a_plugin_are_written_once() {
        let cli = TestCli::default();
        for (kind, file) in [("crate", "src/lib.rs"), ("plugin", "tools/count_lines.sh")] {
            let name = format!("my-{kind}");
            let ran = cli.run(&["new", kind, &name]);
            assert_eq!(ran.code, 0, "{}", ran.err);
            let folder = cli.folder.path().join(&name);
            assert!(ran.out.contains(file) && folder.join(file).is_file(), "{}", ran.out);
            for line in ran.out.lines() {
                let text = fs::read_to_string(line).unwrap();
                assert!(!text.contains("{{"), "{line}: {text}");
            }
            let again = cli.run(&["new", kind, &name]);
            assert!(again.code == 2 && again.err.contains("choose another name"), "{}", again.err);
        }
        let main = fs::read_to_string(cli.folder.path().join("my-crate/src/main.rs")).unwrap();
        assert!(main.contains("link!(my_crate)"), "{main}");
        for name in ["", "../x", "A", "-x", "a b", "1x"] {
            assert_eq!(cli.run(&["new", "plugin", "--", name]).code, 2, "{name}");
        }
    }

    // The names of a new plugin's tools are valid.
    #[test]
    fn the_name_of_a_plugin_fits_into_those_of_its_tools() {
        let cli = TestCli::default();
        let [longest, longer] = [52, 53].map(|count| "p".repeat(count));
        let ran = cli.run(&["new", "plugin", &longer]);
        assert!(ran.code == 2 && ran.err.contains("1 to 52 of"), "{}", ran.err);
        assert_eq!(cli.run(&["new", "plugin", &longest]).code, 0);
        let manifest = cli.folder.path().join(&longest).join("plugin.toml");
        let text = fs::read_to_string(manifest).unwrap();
        let names = text.lines().filter_map(|line| line.strip_prefix("name = "));
        for name in names {
            tool_sdk_core::ToolName::new(name.trim_matches('"').to_owned()).unwrap();
        }
        assert_eq!(cli.run(&["new", "crate", &longer]).code, 0);
    }

    // The test script of a new plugin passes.
    #[cfg(unix)]
    #[test]
    fn a_new_plugin_passes_its_tests() {
        let cli = TestCli::default();
        assert_eq!(cli.run(&["new", "plugin", "texts"]).code, 0);
        let script = cli.folder.path().join("texts/test.sh");
        let ran = std::process::Command::new(script).output().unwrap();
        let out = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && out.matches("ok: ").count() == 4, "{ran:?}");
    }
}
