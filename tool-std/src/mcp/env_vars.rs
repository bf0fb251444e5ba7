//! Validates the environment variables that a model requests for an MCP server.
//!
//! The user approves a command line, so no variable may change which program it runs: neither the
//! search path for programs nor the place where a program finds its settings, its libraries and its
//! downloads. No deny list of names is complete, so the values of all other variables are shown in
//! the approval prompt.
//!
//! **Invariant:** an accepted variable is shown with its value; a variable that cannot be shown is
//! rejected.

use tool_sdk::process::ChildEnv;
use tool_sdk::{Redactor, ToolError};

/// Denied names: variables that every child process has already, and those that name programs to
/// start.
const DENIED_NAMES: &[&str] = &[
    "APPDATA",
    "BROWSER",
    "COMSPEC",
    "EDITOR",
    "GOENV",
    "GOPROXY",
    "GOROOT",
    "GOSUMDB",
    "GOTOOLCHAIN",
    "GOVCS",
    "HOME",
    "LOCALAPPDATA",
    "LOGNAME",
    "PAGER",
    "PATHEXT",
    "PREFIX",
    "PROGRAMDATA",
    "SHELL",
    "SYSTEMROOT",
    "TEMP",
    "TERMINFO",
    "TMP",
    "TMPDIR",
    "USER",
    "USERPROFILE",
    "VISUAL",
    "WINDIR",
];

/// Denied prefixes: variables that loaders, runtimes and package managers read.
const DENIED_PREFIXES: &[&str] = &[
    "ASDF_",
    "BUNDLE_",
    "BUN_",
    "CARGO_",
    "COMPOSER_",
    "CONDA_",
    "COREPACK_",
    "CURL_",
    "DENO_",
    "DOCKER_",
    "DOTNET_",
    "ELECTRON_",
    "ERL_",
    "GCONV_",
    "GEM_",
    "GLIBC_",
    "HOMEBREW_",
    "JAVA_",
    "JDK_",
    "LESS",
    "LUA_",
    "MALLOC_",
    "MAVEN_",
    "MISE_",
    "NIX_",
    "NODE_",
    "NPM_",
    "NVM_",
    "OPENSSL_",
    "PHP",
    "PIP",
    "PNPM_",
    "POETRY_",
    "PYENV_",
    "RUSTC",
    "RUSTUP_",
    "SSH_",
    "SSL_",
    "UV_",
    "VIRTUAL_ENV",
    "VOLTA_",
    "XDG_",
    "YARN_",
    "_JAVA_",
];

/// Denied suffixes: variables that say where something is loaded from, or what is started.
const DENIED_SUFFIXES: &[&str] = &[
    "FLAGS",
    "PATH",
    "_ARGS",
    "_BIN",
    "_BUNDLE",
    "_CERTS",
    "_CMD",
    "_COMMAND",
    "_CONFIG",
    "_EDITOR",
    "_EXE",
    "_HOME",
    "_INDEX",
    "_INDEX_URL",
    "_INIT",
    "_INTERPRETER",
    "_MIRROR",
    "_MODULES",
    "_OPTIONS",
    "_OPTS",
    "_PAGER",
    "_PLUGINS",
    "_PREFIX",
    "_PRELOAD",
    "_PROGRAM",
    "_REGISTRY",
    "_SHELL",
    "_STARTUP",
];

/// Splits each variable into name and value.
///
/// # Errors
///
/// Fails for a variable that only the user may set.
pub(super) fn validate_variables(env: &[String]) -> Result<Vec<(&str, &str)>, ToolError> {
    env.iter().map(|variable| validate_variable(variable)).collect()
}

/// Returns each variable as the approval prompt shows it: a rejected one only by its name.
pub(super) fn display_variables(env: &[String]) -> Vec<&str> {
    env.iter().map(|variable| display_variable(variable)).collect()
}

fn display_variable(variable: &str) -> &str {
    match validate_variable(variable) {
        Ok(_) => variable,
        Err(_) => variable.split('=').next().unwrap_or_default(),
    }
}

fn validate_variable(variable: &str) -> Result<(&str, &str), ToolError> {
    let (name, value) = variable
        .split_once('=')
        .ok_or_else(|| ToolError::invalid("env", "each variable is written as NAME=VALUE"))?;
    let by_user = |error: ToolError| error.hint("the user may set it in the configuration");
    ChildEnv::default()
        .with_untrusted_var(name, value)
        .map_err(|error| by_user(ToolError::invalid("env", error)))?;
    if variable.contains('\0') {
        return Err(ToolError::invalid(
            "env",
            "it has a NUL byte, which no environment variable can hold",
        ));
    }
    if redirects_program(name) {
        let why = format_args!("`{name}` may change which program runs; leave it out");
        return Err(by_user(ToolError::invalid("env", why)));
    }
    if Redactor::from_env().redact(value) != value {
        let why = format_args!("the value of `{name}` looks like a secret; leave it out");
        return Err(by_user(ToolError::invalid("env", why)));
    }
    Ok((name, value))
}

/// Whether a variable decides which program runs or where it loads code from.
fn redirects_program(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    DENIED_NAMES.contains(&upper.as_str())
        || DENIED_PREFIXES.iter().any(|start| upper.starts_with(start))
        || DENIED_SUFFIXES.iter().any(|end| upper.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    // CH1, 4.2.4: what was shown is what runs.
    #[test]
    fn rejects_variables_that_redirect_a_program() {
        for name in [
            "PATH",
            "Path",
            "HOME",
            "XDG_CONFIG_HOME",
            "NODE_PATH",
            "NPM_CONFIG_REGISTRY",
            "npm_config_registry",
            "PIP_INDEX_URL",
            "UV_INDEX_URL",
            "SSL_CERT_FILE",
            "NODE_EXTRA_CA_CERTS",
            "GCONV_PATH",
            "EDITOR",
            "PAGER",
            "GIT_PAGER",
            "LD_PRELOAD",
            "PYTHONPATH",
            "CLASSPATH",
            "_JAVA_OPTIONS",
            "GOFLAGS",
            "SHELL",
            "TMPDIR",
        ] {
            let variable = [format!("{name}=/tmp/evil")];
            assert!(validate_variables(&variable).is_err(), "{name}");
            assert_eq!(display_variables(&variable), [name]);
        }
        for variable in [
            "RUST_LOG=debug",
            "LOG_LEVEL=info",
            "DATABASE_URL=postgres://db.local/notes",
            "PORT=80",
            "TZ=UTC",
            "LC_ALL=C",
            "CI=1",
            "GOOGLE_REGION=x",
            "GIT_AUTHOR_NAME=Ada",
        ] {
            let variable = [variable.to_owned()];
            assert!(validate_variables(&variable).is_ok(), "{variable:?}");
            assert_eq!(display_variables(&variable), variable);
        }
    }

    // F126: models put secrets where they do not belong.
    #[test]
    fn rejects_and_hides_secrets() {
        for variable in ["LOGIN=ghp_0123456789abcdefghijklmnopqrstuvwxyz", "API_TOKEN=hunter2"] {
            let variable = [variable.to_owned()];
            assert!(validate_variables(&variable).is_err(), "{variable:?}");
            assert!(!display_variables(&variable)[0].contains('='));
        }
        for none in ["novalue", "FOO=1\0", "F\0OO=1"] {
            assert!(validate_variables(&[none.to_owned()]).is_err(), "{none:?}");
        }
    }
}
