//! Where a program is found that is called by its bare name.
//!
//! A name says which program it is only as long as nobody else puts one of that name before
//! it.

use std::env;
use std::ffi::OsStr;
use std::path::Path;

/// Whether `program` is found below one of `roots`, when it is searched for in `path`.
pub(super) fn is_below(program: &str, path: &OsStr, roots: &[&Path]) -> bool {
    if program.contains('/') {
        return false;
    }
    // Relative folders are not passed on.
    let mut folders = env::split_paths(path).filter(|folder| folder.is_absolute());
    let Some(folder) = folders.find(|folder| folder.join(program).is_file()) else { return false };
    let place = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    roots.iter().any(|root| place.starts_with(root) || folder.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    // SH4: a folder of the workspace on the path may hold any program.
    #[test]
    fn a_program_in_the_workspace_is_not_what_its_name_says() {
        let (system, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let bin = own.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::fs::write(system.path().join("cat"), "").unwrap();
        std::fs::write(bin.join("cat"), "").unwrap();
        let roots = [own.path()];
        let path = |folders: &[&Path]| env::join_paths(folders).unwrap();
        for (program, folders, expected) in [
            ("cat", &[bin.as_path(), system.path()][..], true),
            ("cat", &[system.path(), &bin], false),
            ("rg", &[&bin, system.path()], false),
            ("/bin/cat", &[&bin], false),
            ("cat", &[system.path()], false),
            ("rg", &[system.path()], false),
        ] {
            assert_eq!(
                is_below(program, &path(folders), &roots),
                expected,
                "{program} {folders:?}"
            );
        }
    }
}
