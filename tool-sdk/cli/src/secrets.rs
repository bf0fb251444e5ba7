//! The variables and secrets of the tools: where their values come from, and the command `secrets`
//! that sets, lists and removes those of the project.

use std::ffi::OsString;
use std::fmt;
use std::io::Read as _;
use std::str::FromStr;
use std::time::Duration;

use clap::{Arg, ArgMatches, Command};
use serde_json::{Value, json};
use tool_sdk_core::{
    EnvironmentSecrets, Redactor, SecretFile, SecretSource, SecretStore, SecretValue, ToolError,
};
use tool_sdk_process::{self as process, ExitOutcome};

use super::exit::{self, CommandError, Result};
use super::settings::Settings;
use super::{Io, args, style};

const PLAIN: &str = "plain";

/// What stands for the name of a variable in the words of a command.
const PLACEHOLDER: &str = "{name}";

/// How long the command may take; it may ask for the passphrase of a key.
const TIMEOUT: Duration = Duration::from_mins(2);

/// How much a secret may be long, in characters.
const MAX_INPUT: u64 = 64 << 10;

/// A command that prints a secret, such as `pass show agents/{name}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SecretsCommand(Vec<String>);

impl SecretsCommand {
    /// Creates a command from its program and arguments.
    pub(super) fn new(words: Vec<String>) -> std::result::Result<Self, String> {
        match &*words {
            [] => Err("a program is missing, as in `pass show agents/{name}`".to_owned()),
            [_, arguments @ ..] if arguments.iter().any(|word| word.contains(PLACEHOLDER)) => {
                Ok(Self(words))
            }
            _ => Err(format!("no argument contains `{PLACEHOLDER}`, the name of the secret")),
        }
    }
}

impl FromStr for SecretsCommand {
    type Err = String;

    /// Splits the text at blanks.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        Self::new(text.split_whitespace().map(str::to_owned).collect())
    }
}

impl fmt::Display for SecretsCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

impl SecretSource for SecretsCommand {
    fn describe(&self) -> String {
        format!("the command `{self}`")
    }

    /// Runs the command. A secret that the command does not print, because it fails or prints
    /// nothing, is not there; the output of a failed command is never shown.
    async fn find_secret(&self, name: &str) -> std::result::Result<Option<SecretValue>, ToolError> {
        let words: Vec<String> =
            self.0.iter().map(|word| word.replace(PLACEHOLDER, name)).collect();
        let Some((program, arguments)) = words.split_first() else { return Ok(None) };
        let arguments = arguments.iter().map(OsString::from);
        let command = process::Command::new(program, arguments).timeout(TIMEOUT);
        let output = process::run(command).await.map_err(|error| {
            let message = format!("the secrets cannot be read: {}", exit::with_cause(&error));
            ToolError::config(message).hint("check the setting `secrets_command`")
        })?;
        match output.exit {
            ExitOutcome::Code(0) => {}
            ExitOutcome::TimedOut => {
                return Err(ToolError::config(format_args!(
                    "`{program}` did not print the secret `{name}` in time"
                )));
            }
            _ => return Ok(None),
        }
        let text = output.stdout.to_text();
        let value = text.trim_end_matches(['\r', '\n']);
        Ok((!value.is_empty()).then(|| SecretValue::new(value)))
    }
}

impl Settings {
    /// Returns the file with the variables of the project, which the first root identifies.
    pub(super) fn secret_file(&self) -> Option<SecretFile> {
        let folder = self.state_dir.as_ref()?.join("secrets");
        let file = SecretFile::open(folder, self.roots.first()?).with_writable_roots(&self.roots);
        Some(match &self.writable {
            Some(writable) => file.with_writable_roots(writable),
            None => file,
        })
    }

    /// Returns the store from which tools read their variables.
    pub(super) fn secret_store(&self) -> SecretStore {
        let store = SecretStore::default().with_redactor(Redactor::from_env());
        let store = match self.secret_file() {
            Some(file) => store.with_file(file),
            None => store,
        };
        let store = match &self.secrets_command {
            Some(command) => store.with_source(command.clone()),
            None => store,
        };
        store.with_source(EnvironmentSecrets)
    }
}

/// Builds the clap command `secrets set | list | remove`.
pub(super) fn build_command() -> Command {
    let name = || {
        Arg::new(args::NAME)
            .value_name("NAME")
            .required(true)
            .help("The name of the variable, such as WEATHER_API_KEY")
    };
    let set = Command::new("set")
        .about("Set a variable of the project; its value is typed, or read from standard input")
        .arg(name())
        .arg(args::switch_arg(PLAIN, "The value is not a secret: models may read it"));
    let list = Command::new("list")
        .about("List the names of the project's variables, without their values")
        .arg(args::json_flag("Print a JSON array"));
    let remove = Command::new("remove").about("Remove a variable of the project").arg(name());
    args::with_globals(
        Command::new("secrets")
            .about("Set, list and remove the variables that tools of this project read")
            .arg_required_else_help(true)
            .subcommand_required(true)
            .subcommands([set, list, remove].map(args::with_globals)),
    )
}

pub(super) fn run(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let Some((command, behind)) = matches.subcommand() else {
        return Err(CommandError::usage("`set NAME`, `list` or `remove NAME` is missing"));
    };
    let file = settings.secret_file().ok_or_else(|| {
        CommandError::config("there is no state folder to keep variables in")
            .hint("`--state-dir` or HOME sets it")
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let name = behind.try_get_one::<String>(args::NAME).ok().flatten().cloned().unwrap_or_default();
    match command {
        "set" => {
            let value = read_value(&name, io)?;
            let store = SecretStore::default().with_file(file);
            let is_secret = !behind.get_flag(PLAIN);
            let setting = store.set_for_project(&name, SecretValue::new(value), is_secret);
            runtime.block_on(setting).map_err(failed)?;
            io.print_stderr(format_args!("set {name}"));
            Ok(0)
        }
        "remove" => {
            if runtime.block_on(file.remove(&name)).map_err(failed)? {
                io.print_stderr(format_args!("removed {name}"));
                return Ok(0);
            }
            let message = format!("the project has no variable `{}`", name.escape_debug());
            Err(CommandError::new(exit::USAGE, ToolError::not_found(message))
                .hint("`secrets list` shows the names"))
        }
        _ => list(&runtime.block_on(file.list()).map_err(failed)?, behind, io),
    }
}

fn list(variables: &[(String, bool)], matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    if matches.get_flag(args::JSON) {
        let entry =
            |(name, is_secret): &(String, bool)| json!({ "name": name, "secret": is_secret });
        let entries: Vec<Value> = variables.iter().map(entry).collect();
        writeln!(io.stdout, "{:#}", Value::from(entries))?;
    } else if variables.is_empty() {
        io.print_stderr("the project has no variables");
    } else {
        for (name, is_secret) in variables {
            let kind = if *is_secret { "secret" } else { "plain" };
            writeln!(io.stdout, "{}", style::sanitize_text(&format!("{name}  {kind}")))?;
        }
    }
    Ok(0)
}

/// Reads the value from the user, who does not see it, or from standard input.
fn read_value(name: &str, io: &mut Io<'_>) -> Result<String> {
    let typed = match &io.console {
        Some(console) if console.can_hide_input() => {
            console.prompt_hidden(&format!("the value of {name}\n> "), &|| true)?
        }
        _ => {
            let mut text = String::new();
            io.stdin.take(MAX_INPUT).read_to_string(&mut text)?;
            Some(text)
        }
    };
    let value = typed.unwrap_or_default();
    let value = value.trim_end_matches(['\r', '\n']);
    if value.is_empty() {
        return Err(CommandError::usage(format_args!("there is no value for `{name}`")));
    }
    Ok(value.to_owned())
}

fn failed(error: ToolError) -> CommandError {
    CommandError::new(exit::USAGE, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::TestCli;

    #[test]
    fn a_command_needs_a_place_for_the_name() {
        assert!("pass show agents/{name}".parse::<SecretsCommand>().is_ok());
        for wrong in ["", "pass", "pass show", "{name}"] {
            assert!(wrong.parse::<SecretsCommand>().is_err(), "{wrong}");
        }
    }

    // F154: the value comes from the output of a command, which gets the name as one word.
    #[cfg(unix)]
    #[tokio::test]
    async fn a_command_prints_the_secret() {
        let find = async |script: &str| {
            let words = ["sh", "-c", script, "sh", "{name}"].map(str::to_owned).to_vec();
            SecretsCommand::new(words).unwrap().find_secret("KEY").await
        };
        let found = find(r#"echo "value of $1""#).await.unwrap().unwrap();
        assert_eq!(found.expose(), "value of KEY");
        assert_eq!(find("echo nothing here; exit 1").await.unwrap(), None);
        assert_eq!(find("true").await.unwrap(), None);
        let missing: SecretsCommand = "no-such-program {name}".parse().unwrap();
        let error = missing.find_secret("KEY").await.unwrap_err();
        assert!(error.message().contains("no-such-program"), "{error}");
    }

    // F154
    #[test]
    fn variables_are_set_listed_and_removed() {
        let state = tempfile::tempdir().unwrap();
        let dir = ["--state-dir", state.path().to_str().unwrap()];
        let with = |args: &[&'static str]| [args, &dir[..]].concat();
        let mut cli = TestCli { stdin: b"correct horse\n".to_vec(), ..TestCli::default() };
        assert_eq!(cli.run(&with(&["secrets", "set", "KEY"])).code, 0);
        assert_eq!(cli.run(&with(&["secrets", "list"])).out, "KEY  secret\n");
        // The user types the next one.
        cli.type_lines(&["http://127.0.0.1"]);
        assert_eq!(cli.run(&with(&["secrets", "set", "URL", "--plain"])).code, 0);
        let listed = cli.run(&with(&["secrets", "list", "--json"])).out;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(
            listed,
            json!([{ "name": "KEY", "secret": true }, { "name": "URL", "secret": false }])
        );
        assert_eq!(cli.run(&with(&["secrets", "remove", "KEY"])).code, 0);
        assert_eq!(cli.run(&with(&["secrets", "remove", "KEY"])).code, 2);
        for wrong in ["a b", "1A"] {
            let args = [&["secrets", "set", wrong][..], &dir[..]].concat();
            assert_eq!(cli.run(&args).code, 2, "{wrong}");
        }
        cli.stdin = b"short\n".to_vec();
        cli.console = None;
        let short = cli.run(&with(&["secrets", "set", "PIN"]));
        assert!(short.code == 2 && short.err.contains("fewer than 8 bytes"), "{}", short.err);
        assert!(!short.err.contains("short\n"), "{}", short.err);
    }
}
