//! Where the key of a provider comes from.
//!
//! **Invariant:** `Debug` and errors show no key.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tool_sdk_core::internal::private_file::open_private;
use tool_sdk_process::{Command, ExitOutcome};

/// How long the command that prints a key may take, which may ask for a password.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// The key of a provider, or where it is found when the first request is sent.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::ApiKey;
///
/// let key = ApiKey::command("pass", ["show", "openai"]);
/// assert_eq!(format!("{key:?}"), "ApiKey(command `pass`)");
/// ```
#[derive(Clone)]
pub struct ApiKey(KeySource);

#[derive(Clone)]
enum KeySource {
    Value(String),
    Variable(String),
    File(PathBuf),
    Command(String, Vec<String>),
}

/// The error for a key that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no API key: {0}")]
pub struct ApiKeyError(String);

impl ApiKey {
    /// The key itself.
    #[must_use]
    pub fn value(key: impl Into<String>) -> Self {
        Self(KeySource::Value(key.into()))
    }

    /// The value of an environment variable.
    #[must_use]
    pub fn variable(name: impl Into<String>) -> Self {
        Self(KeySource::Variable(name.into()))
    }

    /// The content of a file that only its owner can read.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(KeySource::File(path.into()))
    }

    /// The output of a command, such as a password manager.
    #[must_use]
    pub fn command<S: Into<String>>(
        program: impl Into<String>,
        args: impl IntoIterator<Item = S>,
    ) -> Self {
        Self(KeySource::Command(program.into(), args.into_iter().map(Into::into).collect()))
    }

    /// Reads the key.
    ///
    /// # Errors
    ///
    /// Fails when there is no key there, when others can read the file, or when the command fails.
    pub async fn read(&self) -> Result<String, ApiKeyError> {
        let key = match &self.0 {
            KeySource::Value(key) => key.clone(),
            KeySource::Variable(name) => std::env::var(name)
                .map_err(|_| ApiKeyError(format!("the variable `{name}` is not set")))?,
            KeySource::File(path) => read_private_file(path)?,
            KeySource::Command(program, args) => run_command(program, args).await?,
        };
        let key = key.trim();
        if key.is_empty() || key.contains(char::is_control) {
            return Err(ApiKeyError(format!("{self} gives no key of one line")));
        }
        Ok(key.to_owned())
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            KeySource::Value(_) => f.write_str("value"),
            KeySource::Variable(name) => write!(f, "variable `{name}`"),
            KeySource::File(path) => write!(f, "file `{}`", path.display()),
            KeySource::Command(program, _) => write!(f, "command `{program}`"),
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({self})")
    }
}

/// Reads a file that only its owner can read; one that others can read is an error.
fn read_private_file(path: &Path) -> Result<String, ApiKeyError> {
    let failed = |error: &dyn fmt::Display| ApiKeyError(format!("{error}"));
    let file = open_private(path).map_err(|error| failed(&error))?;
    let file = file.ok_or_else(|| failed(&format_args!("`{}` does not exist", path.display())))?;
    check_mode(&file).map_err(|problem| failed(&format_args!("`{}` {problem}", path.display())))?;
    let mut text = String::new();
    // No key is longer.
    file.take(16 * 1024).read_to_string(&mut text).map_err(|error| failed(&error))?;
    Ok(text)
}

/// Checks that only the owner can read the file.
#[cfg(unix)]
fn check_mode(file: &std::fs::File) -> Result<(), &'static str> {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = file.metadata().map_err(|_| "cannot be examined")?.permissions().mode();
    if mode & 0o077 == 0 { Ok(()) } else { Err("can be read by others; run `chmod 600` on it") }
}

/// Other systems have no mode.
#[cfg(not(unix))]
fn check_mode(_: &std::fs::File) -> Result<(), &'static str> {
    Ok(())
}

/// Returns what a command prints. Its errors are not repeated, because they may hold secrets.
async fn run_command(program: &str, args: &[String]) -> Result<String, ApiKeyError> {
    let command = Command::new(program, args).timeout(COMMAND_TIMEOUT);
    let failed =
        |problem: &dyn fmt::Display| ApiKeyError(format!("the command `{program}` {problem}"));
    let output = tool_sdk_process::run(command).await.map_err(|_| failed(&"cannot be started"))?;
    match output.exit {
        ExitOutcome::Code(0) => Ok(output.stdout.to_text()),
        ExitOutcome::Code(code) => Err(failed(&format_args!("ended with the code {code}"))),
        _ => Err(failed(&"did not end by itself")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keys_come_from_commands_and_private_files() {
        let key = ApiKey::command("printf", ["sk-1\\n"]);
        assert_eq!(key.read().await, Ok("sk-1".to_owned()));
        let error = ApiKey::command("sh", ["-c", "echo sk-2; exit 3"]).read().await.unwrap_err();
        assert_eq!(error.to_string(), "no API key: the command `sh` ended with the code 3");
        let error = ApiKey::command("true", [""; 0]).read().await.unwrap_err();
        assert_eq!(error.to_string(), "no API key: command `true` gives no key of one line");
        let error = ApiKey::variable("NO_SUCH_VARIABLE_5").read().await.unwrap_err();
        assert!(error.to_string().contains("`NO_SUCH_VARIABLE_5` is not set"), "{error}");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_that_others_can_read_is_refused() {
        use std::fs::{Permissions, set_permissions};
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "sk-3\n").unwrap();
        set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let error = ApiKey::file(&path).read().await.unwrap_err().to_string();
        assert!(error.ends_with("can be read by others; run `chmod 600` on it"), "{error}");
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(ApiKey::file(&path).read().await, Ok("sk-3".to_owned()));
        assert_eq!(format!("{:?}", ApiKey::value("sk-4")), "ApiKey(value)");
    }
}
