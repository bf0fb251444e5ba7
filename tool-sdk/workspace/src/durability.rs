//! Durability of file changes: whether a commit waits for the disk (`fsync`).

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// Whether changed files are flushed to disk (`fsync`) before a tool reports success.
///
/// With it, a later power failure loses nothing. Without it, a power failure within the next
/// seconds may lose the change or leave a changed file empty. Flushing many files takes seconds.
/// Other processes see whole files in both cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Durability {
    /// Flush transactions of up to 16 files.
    #[default]
    Auto,
    /// Always flush, however long it takes.
    Always,
    /// Never flush; the system writes the files when it likes.
    Never,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        })
    }
}

impl FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Auto, Self::Always, Self::Never];
        all.into_iter().find(|it| it.to_string() == text).ok_or_else(|| {
            format!("`{}` is not one of `auto`, `always`, `never`", text.escape_debug())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_displayed() {
        for name in ["auto", "always", "never"] {
            let parsed: Durability = name.parse().unwrap();
            assert_eq!(parsed.to_string(), name);
            assert_eq!(serde_json::from_value::<Durability>(name.into()).unwrap(), parsed);
        }
        assert!("sometimes".parse::<Durability>().unwrap_err().contains("`never`"));
    }
}
