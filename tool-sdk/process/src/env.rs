//! The environment of a child process, built from an allow-list.
//!
//! The host's variables pass by name. Variables that a model or a file asks for are checked
//! against names that hold secrets or make programs load code.
//!
//! **Invariant:** a variable that is not on the allow-list reaches a child only by an explicit
//! [`ChildEnv::with_var`] or [`ChildEnv::with_untrusted_var`].

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Variables that programs need to run, and those for locale and time zone. Full names only: a
/// prefix such as `LC_` would also match `LC_TOKEN`.
const ALLOWED_NAMES: &[&str] = &[
    "HOME",
    "LANG",
    "LC_ADDRESS",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
];

/// Variables without which no program starts on Windows. Other systems do not set them.
const ALLOWED_ON_WINDOWS: &[&str] =
    &["COMSPEC", "PATHEXT", "SYSTEMROOT", "TEMP", "TMP", "USERPROFILE", "WINDIR"];

/// Returns the allow-list.
fn allowed_names() -> impl Iterator<Item = &'static str> {
    ALLOWED_NAMES.iter().chain(ALLOWED_ON_WINDOWS).copied()
}

/// Substrings of names that hold secrets.
const SECRET_NAME_PARTS: &[&str] =
    &["AUTH", "COOKIE", "CRED", "KEY", "PASS", "PRIVATE", "SECRET", "TOKEN", "_DSN"];

/// The path of the file with which a program reaches an X display; no secret itself.
const X_AUTHORITY: &str = "XAUTHORITY";

/// Names that make a program load code or redirect its traffic, and those that change how a
/// shell reads a script.
const INJECTION_NAMES: &[&str] = &[
    "BASHOPTS",
    "BASH_ENV",
    "CDPATH",
    "ENV",
    "GLOBIGNORE",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "NODE_OPTIONS",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "ZDOTDIR",
];

/// Prefixes and the suffix of names of the same kind.
const INJECTION_PREFIXES: &[&str] = &["DYLD_", "GIT_", "LD_", "PERL5", "PYTHON", "RUBY"];
const INJECTION_SUFFIX: &str = "_PROXY";

/// Exceptions to `GIT_`: the author and committer are neither secrets nor code.
const GIT_IDENTITY_PREFIXES: &[&str] = &["GIT_AUTHOR_", "GIT_COMMITTER_"];

/// The environment of a child process.
///
/// It starts from an allow-list, so that no secret of the host reaches the child. Relative
/// entries of `PATH` are removed, so that the working directory does not decide which program
/// runs.
///
/// # Examples
///
/// ```
/// use tool_sdk::process::ChildEnv;
///
/// let parent = [("PATH", "/usr/bin"), ("DEPLOY_TOKEN", "hunter2"), ("EDITOR", "vi")];
/// let env = ChildEnv::from_parent(parent).with_var("CI", "1");
///
/// assert_eq!(env.var_names().collect::<Vec<_>>(), ["CI", "PATH"]);
/// assert!(env.with_untrusted_var("LD_PRELOAD", "./evil.so").is_err());
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ChildEnv(BTreeMap<OsString, OsString>);

/// A variable name that only the host may set for a child.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{name}` must not be set for a child process; leave it out")]
#[non_exhaustive]
pub struct ForbiddenName {
    /// The name.
    pub name: String,
}

impl ChildEnv {
    /// Returns the allowed variables of this process.
    #[must_use]
    pub fn from_host() -> Self {
        // Looking up each name is faster than copying the whole environment.
        Self::from_parent(allowed_names().filter_map(|name| Some((name, env::var_os(name)?))))
    }

    /// Returns `PATH` of this process and no other variable.
    #[must_use]
    pub fn path_only() -> Self {
        Self::from_parent(env::var_os("PATH").map(|path| ("PATH", path)))
    }

    /// Returns the allowed variables of `parent`.
    #[must_use]
    pub fn from_parent<N, V>(parent: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        let mut passed = BTreeMap::new();
        for (name, value) in parent {
            let (name, value) = (name.into(), value.into());
            if !is_allowed(&name) {
                continue;
            }
            let value = if name == "PATH" { remove_relative_dirs(value) } else { value };
            passed.insert(name, value);
        }
        Self(passed)
    }

    /// Adds a variable of any name. For values that the host chose itself.
    #[must_use]
    pub fn with_var(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// Adds a variable that was requested by a model or a configuration file.
    ///
    /// # Errors
    ///
    /// Fails for names that hold secrets or make programs load code.
    pub fn with_untrusted_var(self, name: &str, value: &str) -> Result<Self, ForbiddenName> {
        if is_forbidden(name, value) {
            return Err(ForbiddenName { name: name.to_owned() });
        }
        Ok(self.with_var(name, value))
    }

    /// Returns the variable names in alphabetical order.
    pub fn var_names(&self) -> impl Iterator<Item = &OsStr> {
        self.0.keys().map(OsString::as_os_str)
    }

    /// Returns the variables in alphabetical order. Values that the host added may be secrets.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Finds the file that a child with these variables executes for the bare name `program`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::process::ChildEnv;
    ///
    /// assert_eq!(ChildEnv::from_parent([("PATH", "/nowhere")]).find_program("sh"), None);
    /// # if cfg!(unix) {
    /// let env = ChildEnv::from_parent([("PATH", "/nowhere:/bin")]);
    /// assert!(env.find_program("sh").is_some());
    /// # }
    /// ```
    #[must_use]
    pub fn find_program(&self, program: &str) -> Option<PathBuf> {
        let path = self.0.get(OsStr::new("PATH"))?;
        split_path_dirs(path).map(|folder| folder.join(program)).find(|file| is_executable(file))
    }

    /// Returns the directories of `PATH`, in search order.
    #[cfg(unix)]
    pub fn path_dirs(&self) -> impl Iterator<Item = &Path> {
        self.0.get(OsStr::new("PATH")).into_iter().flat_map(|path| split_path_dirs(path))
    }

    /// Returns the home directory of a child with these variables.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::path::Path;
    /// use tool_sdk::process::ChildEnv;
    ///
    /// let env = ChildEnv::from_parent([("HOME", "/home/ada")]);
    /// assert_eq!(env.home_dir(), Some(Path::new("/home/ada")));
    /// assert_eq!(ChildEnv::default().home_dir(), None);
    /// ```
    #[must_use]
    pub fn home_dir(&self) -> Option<&Path> {
        self.0.get(OsStr::new("HOME")).map(Path::new)
    }

    pub(super) fn as_map(&self) -> &BTreeMap<OsString, OsString> {
        &self.0
    }
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use rustix::fs::{Access, access};
    access(file, Access::EXEC_OK).is_ok() && file.metadata().is_ok_and(|it| it.is_file())
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

/// Prints names only, because values may be secrets.
impl fmt::Debug for ChildEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChildEnv").field(&self.0.keys().collect::<Vec<_>>()).finish()
    }
}

fn is_allowed(name: &OsStr) -> bool {
    allowed_names().any(|passed| name == passed)
}

fn remove_relative_dirs(path: OsString) -> OsString {
    if split_path_dirs(&path).all(|folder| folder.is_absolute()) {
        return path;
    }
    let absolute = env::split_paths(&path).filter(|folder| folder.is_absolute());
    // Cannot fail: the parts come from `split_paths`.
    env::join_paths(absolute).unwrap_or_default()
}

/// Splits a `PATH` without copying its entries.
#[cfg(unix)]
pub(super) fn split_path_dirs(path: &OsStr) -> impl Iterator<Item = &Path> {
    use std::os::unix::ffi::OsStrExt as _;
    path.as_bytes().split(|&byte| byte == b':').map(|folder| Path::new(OsStr::from_bytes(folder)))
}

/// Splits a `PATH`, whose entries may be quoted on Windows.
#[cfg(not(unix))]
fn split_path_dirs(path: &OsStr) -> impl Iterator<Item = PathBuf> {
    env::split_paths(path)
}

fn is_forbidden(name: &str, value: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let starts = |starts: &[&str]| starts.iter().any(|start| upper.starts_with(start));
    if starts(GIT_IDENTITY_PREFIXES) {
        return !is_valid_name(name);
    }
    !is_valid_name(name)
        || (SECRET_NAME_PARTS.iter().any(|part| upper.contains(part)) && upper != X_AUTHORITY)
        || INJECTION_NAMES.contains(&upper.as_str())
        || starts(INJECTION_PREFIXES)
        || upper.ends_with(INJECTION_SUFFIX)
        || (upper.ends_with("_URL") && has_password(value))
}

/// Returns whether `name` is a valid identifier. Bash exports functions under other names.
fn is_valid_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns whether `url` contains a user and a password.
fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    // CH1: the parent's variables pass through an allow-list.
    #[test]
    fn only_what_is_listed_is_passed_on() {
        let parent = [
            ("HOME", "/home/ada"),
            ("LANG", "de_DE.UTF-8"),
            ("LC_TIME", "C"),
            ("TERM", "dumb"),
            ("AWS_SECRET_ACCESS_KEY", "hunter2"),
            ("CARGO_HOME", "/opt/cargo"),
            ("LD_PRELOAD", "/evil.so"),
            ("PYTHONPATH", "/evil"),
            ("https_proxy", "http://evil"),
            ("LC_API_TOKEN", "hunter2"),
        ];
        let env = ChildEnv::from_parent(parent);
        assert_eq!(env.var_names().collect::<Vec<_>>(), ["HOME", "LANG", "LC_TIME", "TERM"]);
    }

    #[cfg(unix)]
    #[test]
    fn no_program_is_found_by_where_it_runs() {
        let env = ChildEnv::from_parent([("PATH", "/usr/bin:.:bin::/bin")]);
        assert_eq!(env.as_map()[OsStr::new("PATH")], "/usr/bin:/bin");
    }

    // CH1: requested variables are rejected by name, case-insensitively.
    #[test]
    fn a_model_cannot_set_what_steers_or_stands_for_secrets() {
        let refused = [
            "GITHUB_TOKEN",
            "api_key",
            "DB_PASSWORD",
            "AUTHORIZATION",
            "SESSION_COOKIE",
            "SENTRY_DSN",
            "LD_LIBRARY_PATH",
            "DYLD_INSERT_LIBRARIES",
            "BASH_ENV",
            "ENV",
            "IFS",
            "SHELLOPTS",
            "PS4",
            "NODE_OPTIONS",
            "PYTHONSTARTUP",
            "PERL5OPT",
            "RUBYOPT",
            "GIT_SSH_COMMAND",
            "JAVA_TOOL_OPTIONS",
            "http_proxy",
            "BASH_FUNC_ls%%",
            "",
            "1X",
            "A=B",
        ];
        for name in refused {
            assert!(ChildEnv::default().with_untrusted_var(name, "x").is_err(), "{name}");
        }
        for name in [
            "RUST_LOG",
            "CI",
            "GIT_AUTHOR_NAME",
            "GIT_COMMITTER_EMAIL",
            "ENVIRONMENT",
            "XAUTHORITY",
        ] {
            assert!(ChildEnv::default().with_untrusted_var(name, "x").is_ok(), "{name}");
        }
    }

    #[test]
    fn an_address_with_a_password_is_a_secret() {
        let set = |value| ChildEnv::default().with_untrusted_var("DATABASE_URL", value).is_ok();
        assert!(set("postgres://db.local/notes"));
        assert!(set("https://example.com/a:b@c"));
        assert!(!set("postgres://ada:hunter2@db.local/notes"));
    }

    #[test]
    fn the_host_may_add_anything_and_no_value_is_shown() {
        let env = ChildEnv::default().with_var("API_KEY", "hunter2");
        assert_eq!(format!("{env:?}"), r#"ChildEnv(["API_KEY"])"#);
    }
}
