//! Where a program is found that is called by its bare name.
//!
//! A name says which program it is only as long as nobody else puts one of that name before
//! it.

use std::path::Path;

use tool_sdk::process::ChildEnv;

/// Whether `program` is found below one of `roots` by a child with these variables.
pub(super) fn is_below(program: &str, env: &ChildEnv, roots: &[&Path]) -> bool {
    // A path says itself where it leads.
    let file = if program.contains('/') { None } else { env.find(program) };
    let Some(folder) = file.as_deref().and_then(Path::parent) else { return false };
    let place = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
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
        for (program, folders, expected) in [
            ("cat", [bin.as_path(), system], true),
            ("cat", [system, &bin], false),
            ("rg", [&bin, system], false),
            ("/bin/cat", [&bin, system], false),
        ] {
            let path = format!("{}:{}", folders[0].display(), folders[1].display());
            let env = ChildEnv::of([("PATH", path)]);
            assert_eq!(is_below(program, &env, &[own]), expected, "{program} {folders:?}");
        }
    }
}
