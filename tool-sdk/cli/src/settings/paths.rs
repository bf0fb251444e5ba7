//! Resolves the paths of a command from options and environment: the roots, the configuration file
//! and the state folder; and what the resolved settings name by them.

use std::path::{Path, PathBuf};

use tool_sdk_core::{
    Action, GrantStore, ProgramFolders, Rule, RuleScope, Session, internal::sha256_hex,
};
use tool_sdk_workspace::Workspace;

use super::Settings;
use super::sources::SettingSources;
use crate::exit::{CommandError, Result, with_cause};
use crate::{Io, args};

/// What the state folder holds of other projects and for the program alone: secrets, tokens,
/// conversations, recorded calls and notes. Truncated outputs, skills and plugins are for tools.
const PRIVATE_STATE: [&str; 6] =
    ["chats/*", "history.db*", "http/*", "mcp/*", "secrets/*", "state.db*"];

/// Returns the roots of the command line, else of the environment; none if neither names one.
pub(super) fn named_roots(SettingSources { levels, io }: SettingSources<'_, '_>) -> Vec<PathBuf> {
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
        None => Vec::new(),
    }
}

/// Opens the workspace; fails with the errors of all roots that cannot be opened.
pub(super) fn open_workspace(roots: &[PathBuf]) -> Result<Workspace> {
    Workspace::open(roots).map_err(|error| {
        let mut wrong: Vec<String> = roots.iter().filter_map(|root| open_error(root)).collect();
        if wrong.is_empty() {
            wrong.push(error.to_string());
        }
        CommandError::config(wrong.join("\n"))
            .hint("`--root` and TOOL_SDK_ROOT must name existing folders")
    })
}

/// Returns why a root cannot be opened.
fn open_error(root: &Path) -> Option<String> {
    let error = Workspace::open([root]).err()?;
    if root.as_os_str().is_empty() {
        return Some("the current folder no longer exists".to_owned());
    }
    Some(with_cause(&error))
}

/// Returns the user's own configuration file, whether or not it exists.
///
/// The workspace is never searched for a configuration: a tool that can write there must not be
/// able to change what is allowed.
pub(super) fn default_config(io: &Io<'_>) -> Option<PathBuf> {
    let folder = user_folder("XDG_CONFIG_HOME", ".config", "APPDATA", io)?;
    Some(folder.join("tool-sdk/config.toml"))
}

/// Returns the state folder; `None` if the user has no home folder.
pub(super) fn state_dir(from: SettingSources<'_, '_>) -> Option<PathBuf> {
    from.named_path(args::STATE_DIR, "TOOL_SDK_STATE_DIR").or_else(|| {
        let folder = user_folder("XDG_STATE_HOME", ".local/state", "LOCALAPPDATA", from.io)?;
        Some(folder.join("tool-sdk"))
    })
}

/// Returns a folder of the user: that of the variable `xdg`, else the one in the home folder, else
/// that of the variable `windows`. A relative path counts as not set.
fn user_folder(xdg: &str, in_home: &str, windows: &str, io: &Io<'_>) -> Option<PathBuf> {
    let absolute = |name| io.env_var(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    absolute(xdg)
        .or_else(|| absolute("HOME").map(|home| home.join(in_home)))
        .or_else(|| absolute(windows))
}

/// Returns the home folder of the user.
pub(super) fn home_dir(io: &Io<'_>) -> Option<PathBuf> {
    let absolute = |name| io.env_var(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    absolute("HOME").or_else(|| absolute("USERPROFILE"))
}

impl Settings {
    /// Returns the folders that tools find in their session.
    pub(crate) fn program_folders(&self, io: &Io<'_>) -> ProgramFolders {
        let mut folders = ProgramFolders::default();
        folders.state.clone_from(&self.state_dir);
        folders.home = home_dir(io);
        folders.config = default_config(io).and_then(|file| Some(file.parent()?.to_owned()));
        folders
    }

    /// Fails when the current folder is the only root although no option names it, and is a folder
    /// in which a client may start its servers: the home folder, or a folder above it.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "nothing is served"))]
    pub(crate) fn check_broad_roots(&self, program: &str, doing: &str, io: &Io<'_>) -> Result<()> {
        let Some(root) = self.broad_root(io) else { return Ok(()) };
        let folder = root.display();
        Err(CommandError::usage(format_args!(
            "the current folder is `{folder}`, and all of it would be {doing}"
        ))
        .hint(format_args!(
            "name a folder, as in `{program} --root {}/project …`; `--root {folder}` if that is \
             what you mean",
            folder.to_string().trim_end_matches('/')
        )))
    }

    /// Fails when an editor opens a session in the home folder, or in a folder above it, although no
    /// option names it.
    #[cfg(feature = "acp")]
    pub(super) fn check_broad_session_folder(&self, program: &str, io: &Io<'_>) -> Result<()> {
        let Some(root) = self.broad_root(io) else { return Ok(()) };
        let folder = root.display();
        Err(CommandError::usage(format_args!(
            "the session would be opened in `{folder}`, and all of it would be open to the agent"
        ))
        .hint(format_args!(
            "open a folder below it; or start the agent with `{program} --root {folder} …`, if all \
             of it is what you mean"
        )))
    }

    /// Returns the only root, if no option names it and it is the home folder or a folder above it.
    fn broad_root(&self, io: &Io<'_>) -> Option<PathBuf> {
        let [root] = &*self.roots else { return None };
        if self.are_roots_named {
            return None;
        }
        let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let root = canonical(root);
        let homes = ["HOME", "USERPROFILE"].into_iter().filter_map(|name| io.env_var(name));
        let is_home_inside =
            homes.map(PathBuf::from).any(|home| canonical(&home).starts_with(&root));
        (root.parent().is_none() || is_home_inside).then_some(root)
    }

    /// Fails if the state folder lies inside of a root: tools could write there, and forge what was
    /// approved.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only servers need the folder"))]
    pub(crate) fn check_state_outside_roots(&self) -> Result<()> {
        let Some((state, root)) = self.state_inside_root() else { return Ok(()) };
        Err(CommandError::config(format_args!(
            "the state folder `{}` lies inside of the root `{}`, where tools may write",
            state.display(),
            root.display()
        ))
        .hint("choose another one with `--state-dir DIR`, or narrower folders with `--root DIR`"))
    }

    /// Returns the rules that keep tools from reading the program's own secrets where a root contains
    /// them. Elsewhere they lie outside of the workspace, which takes an approval.
    pub(super) fn private_state_rules(&self) -> Vec<Rule> {
        if self.state_inside_root().is_none() {
            return Vec::new();
        }
        let real = self.real_state_dir().filter(|real| Some(real) != self.state_dir.as_ref());
        let places = self.state_dir.iter().cloned().chain(real);
        let rule = |folder: &Path, entry: &str| {
            // A wildcard of the path matches itself.
            let pattern = folder.join(entry).display().to_string();
            let rule = Rule::new(Action::Deny, "read", pattern).locked();
            rule.scope(RuleScope::Default).origin("the program's own files")
        };
        places.flat_map(|folder| PRIVATE_STATE.map(|entry| rule(&folder, entry))).collect()
    }

    /// Returns the state folder without symbolic links. It need not exist yet.
    fn real_state_dir(&self) -> Option<PathBuf> {
        let state = self.state_dir.as_ref()?;
        state.ancestors().find_map(|part| {
            let rest = state.strip_prefix(part).ok()?;
            part.canonicalize().ok().map(|part| part.join(rest))
        })
    }

    /// Returns the state folder and the root that contains it, if one does.
    pub(crate) fn state_inside_root(&self) -> Option<(PathBuf, PathBuf)> {
        let state = self.state_dir.as_ref()?;
        let real = self.real_state_dir()?;
        let is_around = |root: &&PathBuf| {
            real.starts_with(root.canonicalize().unwrap_or_else(|_| (*root).clone()))
        };
        let root = self.roots.iter().find(is_around)?;
        Some((state.clone(), root.clone()))
    }

    /// Returns a check for folders that a client must not name as roots: those around the home folder,
    /// and those around or inside of the program's own files.
    #[cfg(feature = "mcp")]
    pub(crate) fn refused_client_roots(
        &self,
        io: &Io<'_>,
    ) -> impl Fn(&Path) -> bool + Send + Sync + use<> {
        let canonical = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let homes = ["HOME", "USERPROFILE"].into_iter().filter_map(|name| io.env_var(name));
        let homes: Vec<PathBuf> = homes.map(PathBuf::from).map(canonical).collect();
        let own = self.state_dir.iter().chain(&self.config_path).cloned();
        let own: Vec<PathBuf> = own.map(canonical).collect();
        move |folder| {
            folder.parent().is_none()
                || homes.iter().any(|home| home.starts_with(folder))
                || own.iter().any(|own| own.starts_with(folder) || folder.starts_with(own))
        }
    }

    /// Creates the session. Its id is derived from the roots, so that a later command with the same
    /// roots can read stored outputs, and one with other roots cannot.
    pub(crate) fn new_session(&self) -> Session {
        let mut names = Vec::new();
        for root in &self.roots {
            let real = root.canonicalize();
            names.extend(real.as_ref().unwrap_or(root).as_os_str().as_encoded_bytes());
            // Paths contain no zero byte, so it is a separator.
            names.push(0);
        }
        Session::new(format!("cli-{:.16}", sha256_hex(names)))
    }

    /// Returns the path of the ledger of the project, which the first root identifies; `None` where
    /// tools may write to the state folder.
    pub(crate) fn ledger_path(&self) -> Option<PathBuf> {
        let root = self.roots.first()?;
        if self.state_inside_root().is_some() {
            return None;
        }
        let real = root.canonicalize();
        let name = sha256_hex(real.as_ref().unwrap_or(root).as_os_str().as_encoded_bytes());
        Some(self.state_dir.as_ref()?.join("ledger").join(format!("{name:.32}.jsonl")))
    }

    /// Opens the stored approvals of the workspace, which the first root identifies.
    pub(crate) fn open_approvals(&self) -> Option<GrantStore> {
        let dir = self.state_dir.as_ref()?.join("approvals");
        Some(GrantStore::open(dir, self.roots.first()?).with_writable_roots(&self.roots))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support;

    /// Resolves the paths of a command line in an environment.
    fn resolve_paths(args: &[&str], env: &[(&str, &str)]) -> (Vec<PathBuf>, Option<PathBuf>) {
        let env =
            |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into());
        let (mut stdin, mut out, mut err) = (std::io::empty(), Vec::new(), Vec::new());
        let io = Io {
            env: &env,
            current_dir: "/here".into(),
            ..Io::new(&mut stdin, &mut out, &mut err)
        };
        let matches = args::program_command("toy").try_get_matches_from(args).unwrap();
        let levels = args::option_levels(&matches);
        let from = SettingSources { levels: &levels, io: &io };
        (named_roots(from), state_dir(from))
    }

    #[track_caller]
    fn check_roots(args: &[&str], env: &[(&str, &str)], expected: &[&str]) {
        let expected: Vec<_> = expected.iter().map(PathBuf::from).collect();
        assert_eq!(resolve_paths(args, env).0, expected);
    }

    #[track_caller]
    fn check_state(args: &[&str], env: &[(&str, &str)], expected: Option<&str>) {
        assert_eq!(resolve_paths(args, env).1, expected.map(PathBuf::from));
    }

    #[test]
    fn the_command_line_wins_over_the_environment() {
        let env = [("TOOL_SDK_ROOT", "/a:b"), ("TOOL_SDK_STATE_DIR", "/s")];
        check_roots(&["list"], &[], &[]);
        #[cfg(unix)]
        check_roots(&["list"], &env, &["/a", "/here/b"]);
        check_roots(&["--root", "/x", "list"], &env, &["/x"]);
        check_state(&["list"], &env, Some("/s"));
        check_state(&["list", "--state-dir", "t"], &env, Some("/here/t"));
    }

    // A stored output may contain text of files in the roots.
    #[test]
    fn different_roots_have_different_sessions() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().to_str().unwrap();
        let (mut stdin, mut out, mut err) = (std::io::empty(), Vec::new(), Vec::new());
        let io = Io { current_dir: here.into(), ..Io::new(&mut stdin, &mut out, &mut err) };
        let session = |roots: &[&str]| {
            let args = std::iter::once("list").chain(roots.iter().flat_map(|it| ["--root", it]));
            let matches = args::program_command("toy").try_get_matches_from(args).unwrap();
            let settings = Settings::load(&args::option_levels(&matches), &io).ok().unwrap();
            settings.new_session().id().to_string()
        };
        let own = session(&[]);
        assert_eq!((own.len(), &own[..4]), (20, "cli-"));
        assert_eq!(own, session(&[here]));
        for other in [&["/"][..], &[here, "/"]] {
            assert_ne!(own, session(other), "{other:?}");
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
        assert_eq!(crate::run(test_support::test_registry(), words, &mut io), 2);
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
