//! Which of many things a running tool may show.
//!
//! A search meets files that its arguments did not name. Nobody is asked about each of
//! them; the rules say which are left out.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Judges a file as it would be asked for, where it is, and whether the call names it.
type VisibilityFn = dyn Fn(&str, &Path, bool) -> Visibility + Send + Sync;

/// What a tool may tell of a file that it met.
///
/// The order is that of strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Visibility {
    /// Everything.
    Shown,
    /// That something is there: whoever names it can ask for it.
    OnRequest,
    /// Nothing: not even that it is there.
    Hidden,
}

/// What is not shown is hidden.
impl From<bool> for Visibility {
    fn from(shown: bool) -> Self {
        if shown { Self::Shown } else { Self::Hidden }
    }
}

/// Which of the files that a tool meets it may show; see [`Context::visible_files`].
///
/// [`Context::visible_files`]: super::Context::sight
///
/// # Examples
///
/// ```
/// use std::path::Path;
/// use tool_sdk::VisibilityFilter;
///
/// let sight = VisibilityFilter::from_fn(|asked, _| asked != ".env");
/// assert!(sight.shows("main.rs", Path::new("/work/main.rs")));
/// assert!(!sight.shows(".env", Path::new("/work/.env")));
/// ```
#[derive(Clone)]
pub struct VisibilityFilter(Option<Arc<VisibilityFn>>);

impl VisibilityFilter {
    /// Nothing is left out.
    pub const SHOW_ALL: Self = Self(None);

    /// What `judge` says of a file as it would be asked for, and where it is.
    #[must_use]
    pub fn from_fn<V: Into<Visibility>>(
        judge: impl Fn(&str, &Path) -> V + Send + Sync + 'static,
    ) -> Self {
        Self::from_named_fn(move |asked, absolute, _| judge(asked, absolute).into())
    }

    /// The same, where it also counts whether the call names the file.
    pub(crate) fn from_named_fn(
        judge: impl Fn(&str, &Path, bool) -> Visibility + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(judge)))
    }

    /// Whether nothing is left out, so that nothing has to be judged.
    #[must_use]
    pub fn shows_everything(&self) -> bool {
        self.0.is_none()
    }

    /// Whether a file may be shown: as it would be asked for, and where it is.
    #[must_use]
    pub fn shows(&self, asked: &str, absolute: &Path) -> bool {
        self.file_visibility(asked, absolute) == Visibility::Shown
    }

    /// What may be told of a file: as it would be asked for, and where it is.
    #[must_use]
    pub fn file_visibility(&self, asked: &str, absolute: &Path) -> Visibility {
        self.evaluate(asked, absolute, false)
    }

    /// What may be told of a file that the call names: as it is asked for, and where it is.
    ///
    /// The call was judged by the rules about its own tool, so that these have nothing left to
    /// ask. Those about the permission, and about other tools with it, may say otherwise: a
    /// file that may be changed is not for that one whose text may be shown.
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
