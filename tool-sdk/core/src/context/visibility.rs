//! Filters which files a running tool may show.
//!
//! A search finds files that its arguments did not name. The user is not asked about each of
//! them; the rules decide which are left out.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Judges a file by its requested path, its absolute path, and whether the call names it.
type VisibilityFn = dyn Fn(&str, &Path, bool) -> Visibility + Send + Sync;

/// How much a tool may reveal about a file that it found.
///
/// Ordered by strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Visibility {
    /// Everything.
    Shown,
    /// Only that it exists: a call that names the file can request approval for it.
    OnRequest,
    /// Nothing, not even that it exists.
    Hidden,
}

/// `false` means hidden.
impl From<bool> for Visibility {
    fn from(shown: bool) -> Self {
        if shown { Self::Shown } else { Self::Hidden }
    }
}

/// Which of the files that a tool meets it may show; see [`Context::visible_files`].
///
/// [`Context::visible_files`]: super::Context::visible_files
///
/// # Examples
///
/// ```
/// use std::path::Path;
/// use tool_sdk::VisibilityFilter;
///
/// let filter = VisibilityFilter::from_fn(|asked, _| asked != ".env");
/// assert!(filter.shows("main.rs", Path::new("/work/main.rs")));
/// assert!(!filter.shows(".env", Path::new("/work/.env")));
/// ```
#[derive(Clone)]
pub struct VisibilityFilter(Option<Arc<VisibilityFn>>);

impl VisibilityFilter {
    /// Shows everything.
    pub const SHOW_ALL: Self = Self(None);

    /// Creates a filter from a function of the requested path and the absolute path.
    #[must_use]
    pub fn from_fn<V: Into<Visibility>>(
        judge: impl Fn(&str, &Path) -> V + Send + Sync + 'static,
    ) -> Self {
        Self::from_named_fn(move |asked, absolute, _| judge(asked, absolute).into())
    }

    /// Like [`from_fn`](Self::from_fn); the function also receives whether the call names the
    /// file.
    pub(crate) fn from_named_fn(
        judge: impl Fn(&str, &Path, bool) -> Visibility + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(judge)))
    }

    /// Shows of each file what the strictest of the filters shows.
    pub(crate) fn strictest(mut filters: Vec<Self>) -> Self {
        filters.retain(|filter| !filter.shows_everything());
        match filters.len() {
            0 | 1 => filters.pop().unwrap_or(Self::SHOW_ALL),
            _ => Self::from_named_fn(move |asked, absolute, is_named| {
                let judged = filters.iter().map(|it| it.evaluate(asked, absolute, is_named));
                judged.max().unwrap_or(Visibility::Hidden)
            }),
        }
    }

    /// Returns whether nothing is left out, so that no file has to be judged.
    #[must_use]
    pub fn shows_everything(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether a file may be shown, by its requested path and its absolute path.
    #[must_use]
    pub fn shows(&self, asked: &str, absolute: &Path) -> bool {
        self.file_visibility(asked, absolute) == Visibility::Shown
    }

    /// Returns how much of a file may be revealed, by its requested path and its absolute path.
    #[must_use]
    pub fn file_visibility(&self, asked: &str, absolute: &Path) -> Visibility {
        self.evaluate(asked, absolute, false)
    }

    /// Returns how much may be revealed of a file that the call names, by its requested path and
    /// its absolute path.
    ///
    /// The rules about the call's own tool were evaluated before the call ran, so their asks do
    /// not apply again. Rules about the permission, and about other tools with that permission,
    /// may be stricter: permission to change a file is not permission to show its contents.
    #[must_use]
    pub fn named_file_visibility(&self, asked: &str, absolute: &Path) -> Visibility {
        self.evaluate(asked, absolute, true)
    }

    fn evaluate(&self, asked: &str, absolute: &Path, is_named: bool) -> Visibility {
        self.0.as_ref().map_or(Visibility::Shown, |judge| judge(asked, absolute, is_named))
    }
}

impl fmt::Debug for VisibilityFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.shows_everything() {
            "VisibilityFilter::SHOW_ALL"
        } else {
            "VisibilityFilter"
        })
    }
}
