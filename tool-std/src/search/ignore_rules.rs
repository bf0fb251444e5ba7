//! The rules of ignore files: `.ignore`, `.gitignore` and `.git/info/exclude`, as in ripgrep and
//! git.
//!
//! Global ignore files of the user or the system are not used, so that the result does not depend
//! on who runs the search. Nothing above the workspace is read either.
//!
//! **Invariant:** nothing here opens a file; the walk passes in the text.

use std::iter;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The limits of an ignore file in bytes, in lines, and in bytes of a line, because the folder may
/// come from an untrusted source.
pub(super) const MAX_BYTES: usize = 128 * 1024;
const MAX_LINES: usize = 10_000;
const MAX_LINE: usize = 4096;

/// The ignore rules of one folder and of its parent folders.
pub(super) struct IgnoreRules {
    above: Option<Arc<IgnoreRules>>,
    own_globs: PerIgnoreFile<IgnoreGlobs>,
    /// The folder is a repository: Git's ignore files in its parents belong to another one.
    is_repository: bool,
}

/// The globs of one ignore file.
struct IgnoreGlobs {
    set: Gitignore,
    /// Whether the file was truncated.
    is_truncated: bool,
}

/// One value for each kind of ignore file.
#[derive(Default)]
pub(super) struct PerIgnoreFile<T> {
    pub(super) ignore: T,
    pub(super) gitignore: T,
    pub(super) exclude: T,
}

impl IgnoreRules {
    /// Parses the ignore files of `folder`; `above` are the rules of its parent.
    pub(super) fn new(
        above: Option<Arc<Self>>,
        folder: &Path,
        texts: &PerIgnoreFile<String>,
        is_repository: bool,
    ) -> Self {
        let own_globs = PerIgnoreFile {
            ignore: parse_globs(folder, &texts.ignore),
            gitignore: parse_globs(folder, &texts.gitignore),
            exclude: parse_globs(folder, &texts.exclude),
        };
        Self { above, own_globs, is_repository }
    }

    /// Whether `path` is excluded. Of each kind of file, the deepest one decides.
    pub(super) fn is_excluded(&self, path: &Path, is_dir: bool) -> bool {
        let decide = |globs: &IgnoreGlobs| match globs.set.matched(path, is_dir) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        };
        let all = || iter::successors(Some(self), |level| level.above.as_deref());
        let of_git = || iter::successors(Some(self), |level| level.above_in_repository());
        all()
            .find_map(|level| decide(&level.own_globs.ignore))
            .or_else(|| of_git().find_map(|level| decide(&level.own_globs.gitignore)))
            .or_else(|| of_git().find_map(|level| decide(&level.own_globs.exclude)))
            .unwrap_or(false)
    }

    /// Returns how many ignore files of this folder were truncated.
    pub(super) fn truncated_count(&self) -> u64 {
        let PerIgnoreFile { ignore, gitignore, exclude } = &self.own_globs;
        [ignore, gitignore, exclude].into_iter().filter(|globs| globs.is_truncated).count() as u64
    }

    fn above_in_repository(&self) -> Option<&Self> {
        self.above.as_deref().filter(|_| !self.is_repository)
    }
}

/// Parses an ignore file; invalid lines are skipped.
fn parse_globs(folder: &Path, text: &str) -> IgnoreGlobs {
    let all = text.trim_start_matches('\u{feff}');
    // The last line that fits may be incomplete.
    let text = match all.char_indices().find(|(at, _)| *at > MAX_BYTES) {
        Some((end, _)) => all[..end].rsplit_once('\n').map_or("", |(whole, _)| whole),
        None => all,
    };
    let mut lines: Vec<&str> = text.lines().take(MAX_LINES).collect();
    let mut is_cut = text.len() < all.len() || text.lines().nth(MAX_LINES).is_some();
    loop {
        if let Some(set) = compile_globs(folder, &lines, &mut is_cut) {
            return IgnoreGlobs { set, is_truncated: is_cut };
        }
        // All lines together exceed the limit of the matcher, so only the first half is used.
        is_cut = true;
        lines.truncate(lines.len() / 2);
    }
}

/// Compiles the globs of these lines; `None` when they are too many together.
fn compile_globs(folder: &Path, lines: &[&str], is_cut: &mut bool) -> Option<Gitignore> {
    if lines.is_empty() {
        return Some(Gitignore::empty());
    }
    // The topmost folder gets the name `.`, because an empty one would match a part of each path.
    let top = folder.as_os_str().is_empty();
    let mut builder = GitignoreBuilder::new(if top { Path::new(".") } else { folder });
    for line in lines {
        match line.len() <= MAX_LINE {
            true => drop(builder.add_line(None, line)),
            false => *is_cut = true,
        }
    }
    builder.build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(
        above: Option<Arc<IgnoreRules>>,
        folder: &str,
        ignore: &str,
        gitignore: &str,
    ) -> IgnoreRules {
        let texts = PerIgnoreFile {
            ignore: ignore.to_owned(),
            gitignore: gitignore.to_owned(),
            exclude: String::new(),
        };
        IgnoreRules::new(above, Path::new(folder), &texts, false)
    }

    #[track_caller]
    fn check(ignored: &IgnoreRules, excluded: &[&str], kept: &[&str]) {
        for (paths, expected) in [(excluded, true), (kept, false)] {
            for path in paths {
                let (path, is_dir) = (path.trim_end_matches('/'), path.ends_with('/'));
                assert_eq!(ignored.is_excluded(Path::new(path), is_dir), expected, "{path}");
            }
        }
    }

    // F145
    #[test]
    fn ignore_patterns_match_as_in_git() {
        let top = level(None, "", "", "\u{feff}*.log\n/build/\n# no\n\n!keep.log\n[\nlogs/\n");
        check(
            &top,
            &["a.log", "src/a.log", "build/", "src/logs/"],
            &["keep.log", "src/build/", "build", "logs", "# no"],
        );
    }

    // The folder may come from an untrusted source, so the cost of its ignore files is limited.
    #[test]
    fn truncates_long_ignore_files() {
        let lines = |count: usize, line: &str| format!("first\n{}", line.repeat(count));
        let long = "x".repeat(MAX_LINE + 1);
        let costly = "*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?\n";
        for (text, is_cut) in [
            (lines(MAX_LINES - 1, "a\n"), false),
            (lines(MAX_LINES, "a\n"), true),
            (lines(MAX_BYTES / costly.len(), costly), true),
            (lines(2 * MAX_BYTES, "\n"), true),
            (lines(1, &"y".repeat(MAX_BYTES)), true),
            (format!("{long}\nfirst\n"), true),
        ] {
            let level = level(None, "", "", &text);
            check(&level, &["first"], &["last"]);
            assert_eq!(level.truncated_count(), u64::from(is_cut), "{} bytes", text.len());
        }
    }

    #[test]
    fn the_deepest_file_decides_and_ignore_comes_before_git() {
        let top = Arc::new(level(None, "", "*.txt\n", "*.rs\n/gen\n"));
        let below = level(Some(top), "src", "", "!*.rs\n!*.txt\n/gen\n");
        check(&below, &["src/a.txt", "src/gen"], &["src/a.rs", "src/x/gen"]);
    }

    #[test]
    fn a_nested_repository_ignores_the_outer_gitignore() {
        let top = Arc::new(level(None, "", "*.txt\n", "*.rs\n"));
        let texts = PerIgnoreFile { exclude: "*.md\n".to_owned(), ..PerIgnoreFile::default() };
        let repository = IgnoreRules::new(Some(top), Path::new("sub"), &texts, true);
        check(&repository, &["sub/a.txt", "sub/a.md"], &["sub/a.rs"]);
        let below = level(Some(Arc::new(repository)), "sub/x", "", "");
        check(&below, &["sub/x/a.md"], &["sub/x/a.rs"]);
    }
}
