//! Values inside a one-line summary.
//!
//! Generated code calls `(&&&&SummaryValue(&value)).shown()`: the compiler takes the first of the
//! traits below that fits the type, so `Option` and lists read well without a trait of
//! their own. With one `&` more a path is the place that it leads to.

use std::fmt::{Debug, Display};

/// A value of a summary.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "generated code builds it")]
pub struct SummaryValue<'a, T: ?Sized>(pub &'a T);

/// How much of one value a summary shows.
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

/// A path, by the place that it leads to: calls on one file meet however it is spelled.
pub trait ViaPlace {
    /// The place as text.
    fn render(&self) -> String;
}

/// By `Display`.
pub trait ViaDisplay {
    /// The value as one line.
    fn render(&self) -> String;
}

impl<T: Display + ?Sized> ViaDisplay for &&&SummaryValue<'_, T> {
    fn render(&self) -> String {
        first_line(&self.0)
    }
}

/// An optional value: nothing when there is none.
pub trait ViaOption {
    /// The value as one line.
    fn render(&self) -> String;
}

impl<T: Display> ViaOption for &&SummaryValue<'_, Option<T>> {
    fn render(&self) -> String {
        self.0.as_ref().map(|value| first_line(value)).unwrap_or_default()
    }
}

/// A list, joined by blanks.
pub trait ViaList {
    /// The value as one line.
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

/// Anything else, by `Debug`.
pub trait ViaDebug {
    /// The type of the value.
    type Value: ?Sized;

    /// The value as one line.
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
