//! Formats values in a one-line summary.
//!
//! Generated code calls `(&&&&SummaryValue(&value)).render()`: by autoref, the compiler takes the
//! first of the traits below that fits the type, so `Option` and lists need no trait of their
//! own. With one more `&`, a path is shown by its target.

use std::fmt::{Debug, Display};

/// A value in a summary.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "generated code builds it")]
pub struct SummaryValue<'a, T: ?Sized>(pub &'a T);

/// The maximum number of characters of one value.
const MAX_VALUE_CHARS: usize = 120;

fn first_line(value: &dyn Display) -> String {
    let text = value.to_string();
    let first = text.lines().next().unwrap_or_default();
    match first.char_indices().nth(MAX_VALUE_CHARS) {
        Some((cut, _)) => format!("{}…", &first[..cut]),
        None if first.len() < text.len() => format!("{first} …"),
        None => text,
    }
}

/// Formats a path by its target, so that calls on one file have equal summaries however the path
/// is spelled.
pub trait ViaPlace {
    /// Returns the target as text.
    fn render(&self) -> String;
}

/// Formats by `Display`.
pub trait ViaDisplay {
    /// Returns the value as one line.
    fn render(&self) -> String;
}

impl<T: Display + ?Sized> ViaDisplay for &&&SummaryValue<'_, T> {
    fn render(&self) -> String {
        first_line(&self.0)
    }
}

/// Formats an optional value: empty for `None`.
pub trait ViaOption {
    /// Returns the value as one line.
    fn render(&self) -> String;
}

impl<T: Display> ViaOption for &&SummaryValue<'_, Option<T>> {
    fn render(&self) -> String {
        self.0.as_ref().map(|value| first_line(value)).unwrap_or_default()
    }
}

/// Formats a list, joined by blanks.
pub trait ViaList {
    /// Returns the value as one line.
    fn render(&self) -> String;
}

impl<T: Display> ViaList for &SummaryValue<'_, Vec<T>> {
    fn render(&self) -> String {
        self.0.iter().map(|value| first_line(value)).collect::<Vec<_>>().join(" ")
    }
}

/// A type that a summary can show.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as text",
    label = "it has neither `Display` nor `Debug`",
    note = "derive `Debug` for `{Self}`, or leave it out of `summary` and `parallel`"
)]
pub trait InSummary: Debug {}

#[diagnostic::do_not_recommend]
impl<T: Debug + ?Sized> InSummary for T {}

/// Formats any other type by `Debug`.
pub trait ViaDebug {
    /// The type of the value.
    type Value: ?Sized;

    /// Returns the value as one line.
    fn render(&self) -> String
    where
        Self::Value: InSummary;
}

impl<T: ?Sized> ViaDebug for SummaryValue<'_, T> {
    type Value = T;

    fn render(&self) -> String
    where
        T: InSummary,
    {
        first_line(&format_args!("{:?}", self.0))
    }
}

#[cfg(test)]
#[expect(clippy::needless_borrow, reason = "generated code cannot know which it needs")]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_reads_well() {
        assert_eq!((&&&&SummaryValue("a\nb")).render(), "a …");
        assert_eq!((&&&&SummaryValue(&7)).render(), "7");
        assert_eq!((&&&&SummaryValue(&Some("x"))).render(), "x");
        assert_eq!((&&&&SummaryValue(&None::<u32>)).render(), "");
        assert_eq!((&&&&SummaryValue(&vec!["a", "b"])).render(), "a b");
        assert_eq!((&&&&SummaryValue(&(1, "z"))).render(), "(1, \"z\")");
    }
}
