//! Resolves the workspace roots and the state folder from options and environment.

use std::path::PathBuf;

use clap::ArgMatches;
use sha2::{Digest as _, Sha256};

use super::exit::{CommandError, Result, with_cause};
use super::settings::ResolvedSettings;
use super::{Io, args};
use crate::context::Session;
use crate::permission::GrantStore;
use crate::workspace::Workspace;

/// Opens the workspace: the roots of the command line, else of the environment, else the current
/// folder. `levels` are the parsed options from left to right.
pub(super) fn open_workspace(levels: &[&ArgMatches], io: &Io<'_>) -> Result<Workspace> {
    let roots = workspace_roots(levels, io);
    Workspace::open(&roots).map_err(|error| {
        let mut wrong: Vec<String> = roots.iter().filter_map(open_error).collect();
        if wrong.is_empty() {
            wrong.push(error.to_string());
        }
        CommandError::config(wrong.join("\n"))
            .hint("`--root` and TOOL_SDK_ROOT must name existing folders")
    })
}

/// Returns why a root cannot be opened.
fn open_error(root: &PathBuf) -> Option<String> {
    let error = Workspace::open([root]).err()?;
    if root.as_os_str().is_empty() {
        return Some("the current folder no longer exists".to_owned());
    }
    Some(with_cause(&error))
}

/// Loads the settings and checks that the roots can be opened, so that every command rejects
/// invalid options, even those that it does not use.
pub(super) fn load_checked_settings(
    levels: &[&ArgMatches],
    io: &Io<'_>,
) -> Result<ResolvedSettings> {
    open_workspace(levels, io)?;
    ResolvedSettings::load(levels, io)
}

pub(super) fn workspace_roots(levels: &[&ArgMatches], io: &Io<'_>) -> Vec<PathBuf> {
    let given: Vec<PathBuf> = levels
        .iter()
        .filter_map(|matches| matches.get_many::<PathBuf>(args::ROOT))
        .flatten()
        .map(|root| io.resolve_path(root))
        .collect();
    if !given.is_empty() {
        return given;
    }
    match io.env_var("TOOL_SDK_ROOT") {
        Some(list) => std::env::split_paths(&list).map(|root| io.resolve_path(root)).collect(),
        None => vec![io.current_dir.clone()],
    }
}

/// Creates the session. Its id is derived from the roots, so that a later command with the same
/// roots can read stored outputs, and one with other roots cannot.
pub(super) fn new_session(levels: &[&ArgMatches], io: &Io<'_>) -> Session {
    let mut digest = Sha256::new();
    for root in workspace_roots(levels, io) {
        let root = root.canonicalize().unwrap_or(root);
        digest.update(root.as_os_str().as_encoded_bytes());
        // Paths contain no zero byte, so it is a separator.
        digest.update([0]);
    }
    Session::new(format!("cli-{:.16}", format!("{:x}", digest.finalize())))
}

/// Opens the stored approvals of the workspace, which the first root identifies.
pub(super) fn open_approvals(levels: &[&ArgMatches], io: &Io<'_>) -> Option<GrantStore> {
    let dir = state_dir(levels, io)?.join("approvals");
    let roots = workspace_roots(levels, io);
    let store = GrantStore::open(dir, roots.first()?);
    Some(store.with_writable_roots(&roots))
}

/// Returns the state folder; `None` if the user has no home folder.
pub(super) fn state_dir(levels: &[&ArgMatches], io: &Io<'_>) -> Option<PathBuf> {
    levels
        .iter()
        .rev()
        .find_map(|matches| matches.get_one::<PathBuf>(args::STATE_DIR).cloned())
        .or_else(|| io.env_var("TOOL_SDK_STATE_DIR").map(PathBuf::from))
        .map(|dir| io.resolve_path(dir))
        .or_else(|| default_state_dir(io))
}

fn default_state_dir(io: &Io<'_>) -> Option<PathBuf> {
    let absolute = |name| io.env_var(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .or_else(|| absolute("LOCALAPPDATA"))
        .map(|base| base.join("tool-sdk"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::cli::test_support;

    struct ResolvedPaths {
        roots: Vec<PathBuf>,
        state_dir: Option<PathBuf>,
        session: String,
    }

    /// Resolves the paths of a command line in an environment.
    fn resolve_paths(args: &[&str], env: &[(&str, &str)]) -> ResolvedPaths {
        let env =
            |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into());
        let (mut stdin, mut out, mut err) = (std::io::empty(), Vec::new(), Vec::new());
        let io = Io {
            env: &env,
            current_dir: "/here".into(),
            ..Io::new(&mut stdin, &mut out, &mut err)
        };
        let matches = args::program_command("toy").try_get_matches_from(args).unwrap();
        let levels = [&matches, matches.subcommand().unwrap().1];
        let session = new_session(&levels, &io).id().to_string();
        ResolvedPaths {
            roots: workspace_roots(&levels, &io),
            state_dir: state_dir(&levels, &io),
            session,
        }
    }

    #[track_caller]
    fn check_roots(args: &[&str], env: &[(&str, &str)], expected: &[&str]) {
        assert_eq!(
            resolve_paths(args, env).roots,
            expected.iter().map(PathBuf::from).collect::<Vec<_>>()
        );
    }

    #[track_caller]
    fn check_state(args: &[&str], env: &[(&str, &str)], expected: Option<&str>) {
        assert_eq!(resolve_paths(args, env).state_dir, expected.map(PathBuf::from));
    }

    #[test]
    fn the_command_line_wins_over_the_environment() {
        let env = [("TOOL_SDK_ROOT", "/a:b"), ("TOOL_SDK_STATE_DIR", "/s")];
        check_roots(&["list"], &[], &["/here"]);
        #[cfg(unix)]
        check_roots(&["list"], &env, &["/a", "/here/b"]);
        check_roots(&["--root", "/x", "list"], &env, &["/x"]);
        check_state(&["list"], &env, Some("/s"));
        check_state(&["list", "--state-dir", "t"], &env, Some("/here/t"));
    }

    // A stored output may contain text of files in the roots.
    #[test]
    fn different_roots_have_different_sessions() {
        let session = |args: &[&str]| resolve_paths(&[&["list"], args].concat(), &[]).session;
        let here = session(&[]);
        assert_eq!((here.len(), &here[..4]), (20, "cli-"));
        assert_eq!(here, session(&["--root", "/here"]));
        for other in [&["--root", "/"][..], &["--root", "/here", "--root", "/"]] {
            assert_ne!(here, session(other), "{other:?}");
        }
    }

    #[test]
    fn reports_every_root_that_cannot_be_opened() {
        let setting = test_support::TestCli::default();
        let file = setting.write_text("file", "");
        let ran = setting.run(&["list", "--root", "nowhere", "--root", ".", "--root", &file]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""));
        let lines: Vec<&str> = ran.err.lines().collect();
        assert_eq!(lines.len(), 3, "{}", ran.err);
        for (line, folder) in lines.iter().zip(["nowhere`: ", "file`: "]) {
            assert!(line.contains(folder), "{}", ran.err);
        }
        assert!(lines[2].starts_with("hint: `--root`"), "{}", ran.err);
    }

    #[test]
    fn reports_a_deleted_current_folder() {
        let (mut stdin, mut out, mut err) = (std::io::empty(), Vec::new(), Vec::new());
        let mut io = Io::new(&mut stdin, &mut out, &mut err);
        io.current_dir = PathBuf::new();
        let words = ["toy", "list"].map(Into::into);
        assert_eq!(crate::surface::cli::run(test_support::test_registry(), words, &mut io), 2);
        let err = String::from_utf8(err).unwrap();
        assert!(err.starts_with("error: the current folder no longer exists\nhint: "), "{err}");
    }

    #[test]
    fn options_stand_before_and_after_the_command() {
        check_roots(
            &["--root", "/a", "list", "--root", "/b", "--root=/c"],
            &[],
            &["/a", "/b", "/c"],
        );
        check_state(&["--state-dir=/a", "list", "--state-dir=/b"], &[], Some("/b"));
    }

    #[test]
    fn the_state_folder_is_the_users() {
        let home = ("HOME", "/home/ada");
        check_state(&["list"], &[home], Some("/home/ada/.local/state/tool-sdk"));
        check_state(&["list"], &[home, ("XDG_STATE_HOME", "/s")], Some("/s/tool-sdk"));
        check_state(
            &["list"],
            &[home, ("XDG_STATE_HOME", "relative")],
            Some("/home/ada/.local/state/tool-sdk"),
        );
        check_state(
            &["list"],
            &[home, ("TOOL_SDK_STATE_DIR", "")],
            Some("/home/ada/.local/state/tool-sdk"),
        );
        check_state(&["list"], &[], None);
    }
}
