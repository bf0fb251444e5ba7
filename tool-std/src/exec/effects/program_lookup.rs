//! Looks up programs in the search path.
//!
//! A bare name identifies a program only as long as no file in the workspace shadows it.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use tool_sdk::process::ChildEnv;

use crate::shell::{self, SimpleCommand};

/// Whether `program` resolves to a file below one of `roots` in this environment.
pub(crate) fn is_program_below(program: &str, env: &ChildEnv, roots: &[&Path]) -> bool {
    // A path is checked as a path.
    if program.contains('/') || !path_leads_below(env, roots) {
        return false;
    }
    let Some(file) = env.find_program(program) else { return false };
    file.parent().is_some_and(|folder| is_folder_in(folder, roots))
}

/// The directories with git's own programs.
const GIT_EXEC_PATHS: &[&str] = &[
    "/usr/lib/git-core",
    "/usr/libexec/git-core",
    "/usr/local/libexec/git-core",
    "/opt/homebrew/opt/git/libexec/git-core",
];

/// Whether a git subcommand is an installed program, which takes precedence over an alias.
pub(crate) fn is_external_git_command(command: &SimpleCommand) -> bool {
    let Some(program) = shell::external_git_program(&command.argv) else { return false };
    GIT_EXEC_PATHS.iter().any(|folder| Path::new(folder).join(&program).is_file())
        || ChildEnv::path_only().find_program(&program).is_some()
}

/// A cached check of the search path.
struct SearchPathCache {
    folders: Vec<PathBuf>,
    roots: Vec<PathBuf>,
    leads_below: bool,
}

thread_local! {
    /// A cache of one entry, because every command checks the same search path and roots.
    static LAST: RefCell<Option<SearchPathCache>> = const { RefCell::new(None) };
}

/// Whether a directory of the search path is below one of `roots`.
///
/// Changing this later needs a change outside of the roots.
fn path_leads_below(env: &ChildEnv, roots: &[&Path]) -> bool {
    let is_of =
        |known: &&mut SearchPathCache| env.path_dirs().eq(&known.folders) && roots == known.roots;
    LAST.with_borrow_mut(|last| match last.as_mut().filter(is_of) {
        Some(known) => known.leads_below,
        None => {
            let folders: Vec<PathBuf> = env.path_dirs().map(Path::to_owned).collect();
            let roots_of = roots.iter().map(|root| root.to_path_buf()).collect();
            let leads_below = folders.iter().any(|folder| is_folder_in(folder, roots));
            *last = Some(SearchPathCache { folders, roots: roots_of, leads_below });
            leads_below
        }
    })
}

/// Whether a directory is below one of `roots`, also if it does not exist yet.
pub(crate) fn is_folder_in(folder: &Path, roots: &[&Path]) -> bool {
    let there = folder.ancestors().find_map(|there| there.canonicalize().ok());
    let place = there.as_deref().unwrap_or(folder);
    roots.iter().any(|root| place.starts_with(root) || folder.starts_with(root))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    // SH4: a folder of the workspace on the path may hold any program.
    #[test]
    fn workspace_program_is_not_trusted_by_name() {
        let (system, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let bin = own.path().join("bin");
        fs::create_dir(&bin).unwrap();
        for folder in [system.path(), &bin] {
            fs::write(folder.join("cat"), "").unwrap();
            fs::set_permissions(folder.join("cat"), Permissions::from_mode(0o755)).unwrap();
        }
        let (own, system) = (own.path(), system.path());
        let later = system.join("later");
        std::os::unix::fs::symlink(&bin, &later).unwrap();
        for (program, folders, expected) in [
            ("cat", [bin.as_path(), system], true),
            ("cat", [system, &bin], false),
            ("rg", [&bin, system], false),
            ("/bin/cat", [&bin, system], false),
            ("cat", [&later, system], true),
            ("cat", [system, system], false),
        ] {
            let path = format!("{}:{}", folders[0].display(), folders[1].display());
            let env = ChildEnv::from_parent([("PATH", path)]);
            assert_eq!(is_program_below(program, &env, &[own]), expected, "{program} {folders:?}");
        }
    }
}
