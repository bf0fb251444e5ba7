//! Whether a change is on the disk when it is made.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// Whether changed files are on the disk, and not only in the system's memory, when their tool
/// says that they are changed.
///
/// A power failure after that loses nothing. Without, one within the next seconds may lose the
/// change, or leave a file that was changed empty; for very many files, waiting for the disk
/// takes seconds, too. What another process sees is whole either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Durability {
    /// Where a change has few files.
    #[default]
    Auto,
    /// However long that takes.
    Always,
    /// Whenever the system writes them.
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
    fn every_one_has_one_name() {
        for name in ["auto", "always", "never"] {
            let parsed: Durability = name.parse().unwrap();
            assert_eq!(parsed.to_string(), name);
            assert_eq!(serde_json::from_value::<Durability>(name.into()).unwrap(), parsed);
        }
        assert!("sometimes".parse::<Durability>().unwrap_err().contains("`never`"));
    }
}
