//! Where a program is found that is called by its bare name.
//!
//! A name says which program it is only as long as nobody else puts one of that name before
//! it.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use tool_sdk::process::ChildEnv;

/// Whether `program` is found below one of `roots` by a child with these variables.
pub(super) fn is_below(program: &str, env: &ChildEnv, roots: &[&Path]) -> bool {
    // A path says itself where it leads.
    if program.contains('/') || !leads_below(env, roots) {
        return false;
    }
    let Some(file) = env.find(program) else { return false };
    file.parent().is_some_and(|folder| is_in(folder, roots))
}

/// What was found of folders in which programs are looked for.
struct Known {
    folders: Vec<PathBuf>,
    roots: Vec<PathBuf>,
    leads_below: bool,
}

thread_local! {
    /// What was found last: every command asks, and both mostly stay the same.
    static LAST: RefCell<Option<Known>> = const { RefCell::new(None) };
}

/// Whether a folder in which programs are looked for lies below one of `roots`.
///
/// To let one lead there later, somebody has to change what is outside of them.
fn leads_below(env: &ChildEnv, roots: &[&Path]) -> bool {
    let is_of = |known: &&mut Known| env.folders().eq(&known.folders) && roots == known.roots;
    LAST.with_borrow_mut(|last| match last.as_mut().filter(is_of) {
        Some(known) => known.leads_below,
        None => {
            let folders: Vec<PathBuf> = env.folders().map(Path::to_owned).collect();
            let roots_of = roots.iter().map(|root| root.to_path_buf()).collect();
            let leads_below = folders.iter().any(|folder| is_in(folder, roots));
            *last = Some(Known { folders, roots: roots_of, leads_below });
            leads_below
        }
    })
}

/// Whether a folder lies below one of `roots`, or will when it is made.
pub(super) fn is_in(folder: &Path, roots: &[&Path]) -> bool {
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
    fn a_program_in_the_workspace_is_not_what_its_name_says() {
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
            let env = ChildEnv::of([("PATH", path)]);
            assert_eq!(is_below(program, &env, &[own]), expected, "{program} {folders:?}");
        }
    }
}
