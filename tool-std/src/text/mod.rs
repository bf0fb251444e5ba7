//! Text as tools show it: pure functions, no files.
//!
//! **Invariant:** nothing here knows a tool.

#[cfg(feature = "search")]
pub(crate) mod excerpt;
#[cfg(feature = "fs")]
pub(crate) mod index;
#[cfg(feature = "fs")]
pub(crate) mod lines;
#[cfg(feature = "fs")]
pub(crate) mod page;
pub(crate) mod similar;
#[cfg(feature = "fs")]
pub(crate) mod typography;

use std::borrow::Cow;

/// The most text that a tool gives back at once, in bytes.
pub(crate) const MAX_BYTES: usize = 50 * 1024;

/// A path or a name that stays on its line, whatever characters somebody put into it.
pub(crate) fn one_line(name: &str) -> Cow<'_, str> {
    if !name.contains(char::is_control) {
        return Cow::Borrowed(name);
    }
    let escaped = name.chars().fold(String::with_capacity(name.len() + 8), |mut out, c| {
        if c.is_control() {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
        out
    });
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_line() {
        assert_eq!(one_line("a\n(End of file)"), r"a\n(End of file)");
        assert_eq!(one_line("grün.rs"), "grün.rs");
    }
}
