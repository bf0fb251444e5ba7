//! Which of many things a running tool may show.
//!
//! A search meets files that its arguments did not name. Nobody is asked about each of
//! them; the rules say which are left out.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

type Judge = dyn Fn(&str, &Path) -> bool + Send + Sync;

/// Which of the files that a tool meets it may show; see [`Context::sight`].
///
/// [`Context::sight`]: super::Context::sight
///
/// # Examples
///
/// ```
/// use std::path::Path;
/// use tool_sdk::Sight;
///
/// let sight = Sight::of(|asked, _| asked != ".env");
/// assert!(sight.shows("main.rs", Path::new("/work/main.rs")));
/// assert!(!sight.shows(".env", Path::new("/work/.env")));
/// ```
#[derive(Clone)]
pub struct Sight(Option<Arc<Judge>>);

impl Sight {
    /// Nothing is left out.
    pub const EVERYTHING: Self = Self(None);

    /// What `judge` says of a file as it would be asked for, and where it is.
    #[must_use]
    pub fn of(judge: impl Fn(&str, &Path) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(judge)))
    }

    /// Whether nothing is left out, so that nothing has to be judged.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.0.is_none()
    }

    /// Whether a file may be shown: as it would be asked for, and where it is.
    #[must_use]
    pub fn shows(&self, asked: &str, absolute: &Path) -> bool {
        self.0.as_ref().is_none_or(|judge| judge(asked, absolute))
    }
}

impl fmt::Debug for Sight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_everything() { "Sight::EVERYTHING" } else { "Sight" })
    }
}
