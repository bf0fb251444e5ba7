//! Repositories in folders that git pushes into.
//!
//! The hooks of such a repository run, and whoever may write files could have made all of it: a
//! rule for pushing speaks of other machines.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tool_sdk::Subject;

use crate::shell::{Simple, bare_name};

/// How many words of a command may name one: each is looked for.
const MOST_WORDS: usize = 64;

/// The command, when it pushes into a folder, from one of `folders`.
pub(super) fn subject(command: &Simple, folders: &[PathBuf]) -> Option<Subject> {
    let (program, rest) = command.argv.split_first()?;
    let pushes = bare_name(program) == "git"
        && rest.iter().any(|word| matches!(word.as_str(), "push" | "send-pack"));
    if !pushes || command.hidden {
        return None;
    }
    let operands = rest.iter().filter(|word| !word.starts_with('-'));
    let is_one = |place: &String| {
        folders.iter().any(|folder| is_repository(&folder.join(place)))
            || Path::new(place).is_absolute() && is_repository(Path::new(place))
    };
    let is_pushed = rest.len() > MOST_WORDS || operands.into_iter().any(is_one);
    let why = "it pushes into a folder, and the hooks that lie there run";
    is_pushed.then(|| Subject::new(command.text.clone()).because(why).opaque())
}

/// Whether git takes a path for a repository, with all that it tries to add.
fn is_repository(path: &Path) -> bool {
    let mut with_ending = OsString::from(path);
    with_ending.push(".git");
    let with_ending = PathBuf::from(with_ending);
    let folders = [path.to_owned(), path.join(".git"), with_ending.join(".git"), with_ending];
    // A file there may name another folder.
    folders[1].is_file()
        || folders.iter().any(|folder| folder.join("HEAD").symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::understand;

    // SH6
    #[test]
    fn a_folder_is_pushed_into_only_where_one_is() {
        let place = tempfile::tempdir().unwrap();
        for folder in ["bare", "named.git", "work/.git", "feature"] {
            let folder = place.path().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            if !folder.ends_with("feature") {
                std::fs::write(folder.join("HEAD"), "").unwrap();
            }
        }
        for (script, expected) in [
            ("git push bare HEAD:a", true),
            ("git push -o x ./bare", true),
            ("git push named HEAD:a", true),
            ("git -C . push work", true),
            ("git send-pack bare", true),
            ("git push origin feature", false),
            ("git push", false),
            ("git log bare", false),
        ] {
            let understood = understand(script);
            let subject = subject(&understood.commands[0], &[place.path().to_owned()]);
            assert_eq!(subject.is_some(), expected, "{script}");
        }
    }
}
