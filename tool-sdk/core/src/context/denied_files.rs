//! The files that deny rules keep from a permission, for tools that enforce rules by other means.
//!
//! A sandbox covers files before a command starts, so it has to find them: by the patterns it knows
//! where to search, and by the judgement what is denied.
//!
//! **Invariant:** a file is denied here exactly if a call that names the file would be.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Judges a file by its requested path and its absolute path.
type DenialFn = dyn Fn(&str, &Path) -> bool + Send + Sync;

/// Judges files by the rules about one permission.
pub(crate) trait DenialJudge: Send + Sync {
    /// Whether the file is denied, by its requested path and its absolute path.
    fn denies(&self, asked: &str, absolute: &Path) -> bool;

    /// Whether every file in the folder is denied, whether it exists or not.
    fn denies_all_in(&self, asked: &str, absolute: &Path) -> bool;
}

/// Which files deny rules keep from a permission; see [`Context::denied_files`].
///
/// [`Context::denied_files`]: super::Context::denied_files
///
/// # Examples
///
/// ```
/// use std::path::Path;
/// use tool_sdk::environment::DeniedFiles;
///
/// let none = DeniedFiles::default();
/// assert!(none.is_empty() && !none.denies(".env", Path::new("/work/.env")));
/// ```
#[derive(Clone, Default)]
pub struct DeniedFiles {
    patterns: Vec<String>,
    judge: Option<Arc<dyn DenialJudge>>,
}

impl DeniedFiles {
    pub(crate) fn new(patterns: Vec<String>, judge: impl DenialJudge + 'static) -> Self {
        Self { patterns, judge: Some(Arc::new(judge)) }
    }

    /// Creates the denial of the files that `judge` denies, by the requested path and the absolute
    /// path, and that match one of `patterns`. No folder counts as denied as a whole.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::path::Path;
    /// use tool_sdk::environment::DeniedFiles;
    ///
    /// let denied = DeniedFiles::from_fn(["*.env"], |asked, _| asked.ends_with(".env"));
    /// assert!(denied.denies("a/.env", Path::new("/work/a/.env")));
    /// assert_eq!(denied.patterns().collect::<Vec<_>>(), ["*.env"]);
    /// ```
    #[must_use]
    pub fn from_fn(
        patterns: impl IntoIterator<Item = impl Into<String>>,
        judge: impl Fn(&str, &Path) -> bool + Send + Sync + 'static,
    ) -> Self {
        let judge: Box<DenialFn> = Box::new(judge);
        Self::new(patterns.into_iter().map(Into::into).collect(), judge)
    }

    /// Denies what either of the two denies.
    pub(crate) fn merged_with(mut self, other: Self) -> Self {
        let judges: Vec<_> = self.judge.take().into_iter().chain(other.judge).collect();
        self.patterns.extend(other.patterns);
        match judges.len() {
            0 => self,
            _ => Self::new(self.patterns, judges),
        }
    }

    /// Returns whether no rule denies a file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Returns the patterns of the rules that deny, with the home folder in place of `~`.
    ///
    /// They say where to search. A later rule may allow what a pattern matches, so
    /// [`denies`](Self::denies) decides about each file.
    pub fn patterns(&self) -> impl Iterator<Item = &str> {
        self.patterns.iter().map(String::as_str)
    }

    /// Returns whether a file is denied, by its path as rules spell it and its absolute path.
    #[must_use]
    pub fn denies(&self, asked: &str, absolute: &Path) -> bool {
        self.judge.as_ref().is_some_and(|judge| judge.denies(asked, absolute))
    }

    /// Returns whether every file in a folder is denied, also one that does not exist yet; `false`
    /// when in doubt.
    #[must_use]
    pub fn denies_all_in(&self, asked: &str, absolute: &Path) -> bool {
        self.judge.as_ref().is_some_and(|judge| judge.denies_all_in(asked, absolute))
    }
}

/// Denies what one of the judges denies.
impl DenialJudge for Vec<Arc<dyn DenialJudge>> {
    fn denies(&self, asked: &str, absolute: &Path) -> bool {
        self.iter().any(|judge| judge.denies(asked, absolute))
    }

    fn denies_all_in(&self, asked: &str, absolute: &Path) -> bool {
        self.iter().any(|judge| judge.denies_all_in(asked, absolute))
    }
}

impl DenialJudge for Box<DenialFn> {
    fn denies(&self, asked: &str, absolute: &Path) -> bool {
        self(asked, absolute)
    }

    fn denies_all_in(&self, _: &str, _: &Path) -> bool {
        false
    }
}

impl fmt::Debug for DeniedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeniedFiles").field("patterns", &self.patterns).finish_non_exhaustive()
    }
}
