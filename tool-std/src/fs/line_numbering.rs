//! The format of line numbers in `read_file`.

use tool_sdk::Context;

/// How the lines of a file are numbered. A host sets it as an extension of its sessions.
///
/// # Examples
///
/// ```
/// use tool_sdk::Session;
/// use tool_std::fs::LineNumbering;
///
/// let session = Session::new("s1").with_service(LineNumbering::Marked);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineNumbering {
    /// `12: text`.
    #[default]
    Plain,
    /// `L12: text`.
    Marked,
}

impl LineNumbering {
    pub(super) fn from_context(cx: &Context) -> Self {
        cx.state::<Self>().map_or_else(|_| Self::default(), |lent| *lent)
    }

    /// Converts lines that begin with `number: ` into this format.
    pub(super) fn format_lines(self, numbered: String) -> String {
        match self {
            Self::Plain => numbered,
            Self::Marked => numbered.split_inclusive('\n').flat_map(|line| ["L", line]).collect(),
        }
    }
}
