//! The command `mcp pack`: an MCP bundle of a program with tools, and its entry for the registry.
//!
//! A bundle is a ZIP archive with the end `.mcpb`, which desktop clients install with one click. It
//! holds the program and a manifest: how the server is started, its tools, and the folder that the
//! user chooses. Any program with this command line can be packed, also by another one.
//!
//! **Invariant:** nothing is written before everything was checked, and an existing file is only
//! replaced with `--force`.

mod archive;
mod executable;
mod manifest;
mod program_report;
mod registry_entry;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use tool_sdk_core::ToolError;

use self::executable::TargetSystem;
use self::program_report::{ListedTool, ProgramReport};
use self::registry_entry::BundleAddress;
use crate::exit::{CommandError, FAILED, Result};
use crate::{App, Io, args, style};

const PROGRAM: &str = "program";
const AUTHOR: &str = "author";
const DESCRIPTION: &str = "description";
const TITLE: &str = "title";
const VERSION: &str = "bundle-version";
const LICENSE: &str = "license";
const ICON: &str = "icon";
const OUTPUT: &str = "output";
const DOWNLOAD_URL: &str = "download-url";
const SERVER_NAME: &str = "server-name";
const NO_FOLDER: &str = "no-folder";
const FORCE: &str = "force";
const OPTIONS: &str = "options";

/// The icon in the archive.
const ICON_FILE: &str = "icon.png";
const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// How large an icon may be.
const MAX_ICON_BYTES: usize = 1 << 20;
/// How many tools the description names by default.
const NAMED_TOOLS: usize = 3;

/// Everything that goes into a bundle.
struct PackedProgram {
    /// Letters, digits, `-` and `_`.
    name: String,
    title: Option<String>,
    version: String,
    description: String,
    author: String,
    license: Option<String>,
    repository: Option<String>,
    tools: Vec<ListedTool>,
    system: TargetSystem,
    executable: Vec<u8>,
    /// A PNG image.
    icon: Option<Vec<u8>>,
    needs_folder: bool,
    /// More options of `serve mcp`.
    options: Vec<String>,
}

impl PackedProgram {
    /// Returns the path of the program in the archive.
    fn entry_point(&self) -> String {
        format!("server/{}{}", self.name, self.system.suffix())
    }
}

/// Builds the clap command `mcp pack`.
pub(super) fn build_command(program: &str) -> Command {
    let text = |name: &'static str, placeholder: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(placeholder).help(help)
    };
    let file = |name: &'static str, placeholder: &'static str, help: &'static str| {
        text(name, placeholder, help).value_parser(value_parser!(PathBuf))
    };
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).action(ArgAction::SetTrue).overrides_with(name)
    };
    Command::new("pack")
        .about("Write an MCP bundle of the program, and its entry for the MCP registry")
        .after_help(format!(
            "Examples:\n  {program} mcp pack --author 'Ada Lovelace'\n  {program} mcp pack \
             target/release/notes --author Ada --download-url \
             https://github.com/ada/notes/releases/download/v1.0.0/notes.mcpb"
        ))
        .args([
            Arg::new(PROGRAM)
                .value_name("PROGRAM")
                .value_parser(value_parser!(PathBuf))
                .help("The compiled program; by default this one"),
            text(AUTHOR, "NAME", "The author, as users of the bundle see it").required(true),
            text(args::NAME, "NAME", "The name of the bundle [default: that of the program]"),
            text(TITLE, "TEXT", "The name for people"),
            text(DESCRIPTION, "TEXT", "What the tools do [default: names some of them]"),
            text(
                VERSION,
                "VERSION",
                "The version [default: what `--version` of the program prints]",
            ),
            text(LICENSE, "ID", "The licence, such as MIT"),
            file(ICON, "FILE", "An icon, a PNG image of at most 1 MiB"),
            file(OUTPUT, "DIR", "The folder to write to [default: .]"),
            text(
                DOWNLOAD_URL,
                "URL",
                "Where the bundle will be published; writes `server.json` for the registry",
            ),
            text(
                SERVER_NAME,
                "NAME",
                "The name in the registry, such as com.example/notes; a release at GitHub has one",
            )
            .requires(DOWNLOAD_URL),
            switch(NO_FOLDER, "Do not ask the user of the bundle for a folder"),
            switch(FORCE, "Replace existing files"),
            Arg::new(OPTIONS)
                .value_name("OPTION")
                .num_args(1..)
                .last(true)
                .help("Options with which the bundle starts the server, such as `--mode ask`"),
        ])
}

/// Runs `mcp pack`.
pub(super) fn run(app: &App, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let (packed, address) = collect_parts(app, matches, io)?;
    let folder = match matches.get_one::<PathBuf>(OUTPUT) {
        Some(folder) => io.resolve_path(folder),
        None => io.current_dir.clone(),
    };
    let bundle_path = folder.join(format!("{}.mcpb", packed.name));
    let entry_path = folder.join("server.json");
    if !matches.get_flag(FORCE) {
        check_missing(&bundle_path)?;
        if address.is_some() {
            check_missing(&entry_path)?;
        }
    }
    let manifest = manifest::bundle_manifest(&packed);
    let bundle = archive::write_archive(&packed, &manifest)
        .map_err(|error| failed(format_args!("cannot make the bundle: {error}")))?;
    let sha256: String =
        hmac_sha256::Hash::hash(&bundle).iter().map(|byte| format!("{byte:02x}")).collect();
    fs::create_dir_all(&folder).map_err(write_error(&folder))?;
    replace_file(&bundle_path, &bundle)?;
    print_line(format_args!("wrote {}, SHA-256 {sha256}", bundle_path.display()), io);
    match &address {
        Some(address) => {
            let entry = registry_entry::registry_entry(&packed, address, &sha256);
            replace_file(&entry_path, format!("{entry:#}\n").as_bytes())?;
            print_line(format_args!("wrote {}", entry_path.display()), io);
        }
        None => print_line(
            format_args!("hint: `--download-url URL` writes `server.json` for the registry, too"),
            io,
        ),
    }
    Ok(0)
}

/// Reads and checks everything that the files are made of.
fn collect_parts(
    app: &App,
    matches: &ArgMatches,
    io: &Io<'_>,
) -> Result<(PackedProgram, Option<BundleAddress>)> {
    let text = |id: &str| matches.get_one::<String>(id).cloned();
    let (path, report) = match matches.get_one::<PathBuf>(PROGRAM) {
        Some(path) => {
            let path = io.resolve_path(path);
            (path.clone(), None)
        }
        None => {
            let path = io.program_path.clone().ok_or_else(|| {
                CommandError::usage("the path of this program is not known")
                    .hint("name the file of the program")
            })?;
            (path, Some(ProgramReport::of_app(app)))
        }
    };
    let executable = fs::read(&path).map_err(|error| {
        CommandError::usage(format_args!("cannot read `{}`: {error}", path.display()))
    })?;
    let system = TargetSystem::of_executable(&executable, &path.to_string_lossy())?;
    let report = match report {
        Some(report) => report,
        None => ProgramReport::of_program(&path)?,
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = bundle_name(text(args::NAME).as_deref(), &stem)?;
    let version = bundle_version(text(VERSION).or(report.version))?;
    let url = text(DOWNLOAD_URL);
    let address = url
        .map(|url| BundleAddress::parse(&url, matches.get_one(SERVER_NAME), &name))
        .transpose()?;
    let icon = matches.get_one::<PathBuf>(ICON).map(|path| read_icon(path, io)).transpose()?;
    let packed = PackedProgram {
        title: text(TITLE),
        description: match text(DESCRIPTION) {
            Some(written) => written,
            None => default_description(&report.tools),
        },
        author: text(AUTHOR).unwrap_or_default(),
        license: text(LICENSE),
        repository: address.as_ref().and_then(|address| address.repository.clone()),
        tools: report.tools,
        needs_folder: !matches.get_flag(NO_FOLDER),
        options: matches.get_many(OPTIONS).into_iter().flatten().cloned().collect(),
        name,
        version,
        system,
        executable,
        icon,
    };
    for (option, value) in [
        (AUTHOR, Some(&packed.author)),
        (DESCRIPTION, Some(&packed.description)),
        (TITLE, packed.title.as_ref()),
        (LICENSE, packed.license.as_ref()),
    ] {
        if value.is_some_and(|value| value.trim().is_empty()) {
            return Err(CommandError::usage(format_args!("`--{option}` is empty")));
        }
    }
    Ok((packed, address))
}

/// Returns the name of the bundle, which is also that of its files.
fn bundle_name(written: Option<&str>, program: &str) -> Result<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    match written {
        Some(name) if !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain) => {
            Ok(name.to_owned())
        }
        Some(name) => Err(CommandError::usage(format_args!(
            "`{}` is not a name for a bundle: use a-z, A-Z, 0-9, - and _, at most 64",
            name.escape_debug()
        ))),
        None => Ok(program.chars().take(64).map(|c| if is_plain(c) { c } else { '-' }).collect()),
    }
}

/// Checks that the version is one version, and no range of versions.
fn bundle_version(version: Option<String>) -> Result<String> {
    let Some(version) = version else {
        return Err(CommandError::usage("the program does not say its version")
            .hint(format_args!("write `--{VERSION} 1.0.0`, or set it with `App::version`")));
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-+".contains(c);
    let parts = version.split(['-', '+']).next().unwrap_or_default().split('.');
    let is_number = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    let numbers: Vec<bool> = parts.map(is_number).collect();
    if *numbers == [true; 3] && version.len() <= 255 && version.chars().all(is_plain) {
        return Ok(version);
    }
    let version = version.escape_debug();
    Err(CommandError::usage(format_args!("`{version}` is not a version such as 1.0.0")))
}

/// Describes the tools by the names of some of them.
fn default_description(tools: &[ListedTool]) -> String {
    let names: Vec<&str> = tools.iter().take(NAMED_TOOLS).map(|tool| &*tool.name).collect();
    match tools.len().checked_sub(NAMED_TOOLS) {
        None | Some(0) => format!("The tools {}", names.join(", ")),
        Some(more) => format!("The tools {} and {more} more", names.join(", ")),
    }
}

fn read_icon(path: &Path, io: &Io<'_>) -> Result<Vec<u8>> {
    let path = io.resolve_path(path);
    let shown = path.display();
    let bytes = fs::read(&path)
        .map_err(|error| CommandError::usage(format_args!("cannot read `{shown}`: {error}")))?;
    match bytes.starts_with(PNG_SIGNATURE) && bytes.len() <= MAX_ICON_BYTES {
        true => Ok(bytes),
        false => {
            Err(CommandError::usage(format_args!("`{shown}` is not a PNG image of at most 1 MiB")))
        }
    }
}

fn check_missing(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Err(_) => Ok(()),
        Ok(_) => Err(CommandError::usage(format_args!("`{}` exists already", path.display()))
            .hint("`--force` replaces it, `--output DIR` writes to another folder")),
    }
}

fn replace_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = || {
        // A link is replaced and not followed.
        if path.symlink_metadata().is_ok() {
            fs::remove_file(path)?;
        }
        fs::write(path, bytes)
    };
    written().map_err(write_error(path))
}

fn write_error(path: &Path) -> impl Fn(std::io::Error) -> CommandError {
    move |error| failed(format_args!("cannot write `{}`: {error}", path.display()))
}

fn failed(words: impl std::fmt::Display) -> CommandError {
    CommandError::new(FAILED, ToolError::failed(words))
}

fn print_line(line: impl std::fmt::Display, io: &mut Io<'_>) {
    io.print_stderr(style::sanitize_text(&line.to_string()));
}

#[cfg(test)]
mod tests;
