//! The variables that a model may hand to a server which it asks for.
//!
//! Whoever is asked approves of a command, so that no variable may make another program of it:
//! not by where programs are looked for, nor by where a program finds its settings, its
//! libraries and what it downloads. No list of such names is whole, so that the values of all
//! others are shown.
//!
//! **Invariant:** what is taken is shown as it is; what could not be shown is not taken.

use tool_sdk::process::ChildEnv;
use tool_sdk::{Redactor, ToolError};

/// What every child has already, and what programs start for their users.
const NAMES: &[&str] = &[
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

/// How the names start that loaders, runtimes and package managers read.
const STARTS: &[&str] = &[
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

/// How the names end that say where something comes from, or what is started.
const ENDS: &[&str] = &[
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

/// Each name with its value.
///
/// # Errors
///
/// Fails for what only the user may set.
pub(super) fn checked(env: &[String]) -> Result<Vec<(&str, &str)>, ToolError> {
    env.iter().map(|variable| one(variable)).collect()
}

/// Each variable as whoever is asked reads it: of what is not taken the name alone.
pub(super) fn shown(env: &[String]) -> Vec<&str> {
    env.iter().map(|variable| readable(variable)).collect()
}

fn readable(variable: &str) -> &str {
    match one(variable) {
        Ok(_) => variable,
        Err(_) => variable.split('=').next().unwrap_or_default(),
    }
}

fn one(variable: &str) -> Result<(&str, &str), ToolError> {
    let (name, value) = variable
        .split_once('=')
        .ok_or_else(|| ToolError::invalid("env", "each variable is written as NAME=VALUE"))?;
    let by_user = |error: ToolError| error.hint("the user may set it in the configuration");
    ChildEnv::default()
        .with_untrusted(name, value)
        .map_err(|error| by_user(ToolError::invalid("env", error)))?;
    if variable.contains('\0') {
        return Err(ToolError::invalid(
            "env",
            "no program can be given a variable with a NUL in it",
        ));
    }
    if leads_elsewhere(name) {
        let why = format_args!("`{name}` may make another program of it; leave it out");
        return Err(by_user(ToolError::invalid("env", why)));
    }
    if Redactor::from_env().redact(value) != value {
        let why = format_args!("the value of `{name}` looks like a secret; leave it out");
        return Err(by_user(ToolError::invalid("env", why)));
    }
    Ok((name, value))
}

/// Whether it decides what a program is, or where it gets what it runs.
fn leads_elsewhere(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    NAMES.contains(&upper.as_str())
        || STARTS.iter().any(|start| upper.starts_with(start))
        || ENDS.iter().any(|end| upper.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    // CH1, 4.2.4: what was shown is what runs.
    #[test]
    fn no_variable_makes_another_program_of_a_command() {
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
            assert!(checked(&variable).is_err(), "{name}");
            assert_eq!(shown(&variable), [name]);
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
            assert!(checked(&variable).is_ok(), "{variable:?}");
            assert_eq!(shown(&variable), variable);
        }
    }

    // F126: models put secrets where they do not belong.
    #[test]
    fn what_looks_like_a_secret_is_neither_taken_nor_shown() {
        for variable in ["LOGIN=ghp_0123456789abcdefghijklmnopqrstuvwxyz", "API_TOKEN=hunter2"] {
            let variable = [variable.to_owned()];
            assert!(checked(&variable).is_err(), "{variable:?}");
            assert!(!shown(&variable)[0].contains('='));
        }
        for none in ["novalue", "FOO=1\0", "F\0OO=1"] {
            assert!(checked(&[none.to_owned()]).is_err(), "{none:?}");
        }
    }
}
