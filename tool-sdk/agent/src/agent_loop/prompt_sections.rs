//! Sections of the system prompt that change while an agent works.
//!
//! **Invariant:** sections are bounded in number and size, because every request repeats them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many sections there may be.
const MAX_SECTIONS: usize = 32;

/// How long a section may be, in bytes.
const MAX_SECTION_BYTES: usize = 8 * 1024;

/// Named sections behind the system prompt of an agent. Each request has them as they are then.
/// Clones share them.
///
/// At most 32 sections of at most 8 KiB each. They come in the order of their names, so the prompt
/// is the same for the same sections, and a provider finds it in its cache.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::PromptSections;
///
/// let sections = PromptSections::default();
/// sections.set("release", "A release is being made. Do not push.")?;
/// assert!(sections.to_text().contains("Do not push"));
/// sections.set("release", "")?;
/// assert_eq!(sections.to_text(), "");
/// # Ok::<(), tool_sdk::agent::PromptSectionError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct PromptSections(Arc<Mutex<BTreeMap<String, String>>>);

/// Why a section was not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PromptSectionError {
    /// The text is longer than 8 KiB.
    #[error("a section of the prompt has at most {MAX_SECTION_BYTES} bytes; write a shorter text")]
    TooLong,
    /// There are 32 other sections.
    #[error("the prompt has {MAX_SECTIONS} sections already; remove one by an empty text")]
    TooMany,
}

impl PromptSections {
    /// Sets the text of the section `name`; an empty text removes the section. Returns the text
    /// before.
    ///
    /// # Errors
    ///
    /// Fails when the text is too long or there are too many sections; all stay as they are then.
    pub fn set(&self, name: &str, text: &str) -> Result<Option<String>, PromptSectionError> {
        let mut sections = self.sections();
        if text.trim().is_empty() {
            return Ok(sections.remove(name));
        }
        if text.len() > MAX_SECTION_BYTES {
            return Err(PromptSectionError::TooLong);
        }
        if sections.len() >= MAX_SECTIONS && !sections.contains_key(name) {
            return Err(PromptSectionError::TooMany);
        }
        Ok(sections.insert(name.to_owned(), text.trim().to_owned()))
    }

    /// Returns the sections as they stand behind the system prompt; empty without any.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (name, section) in &*self.sections() {
            // Fails for no string.
            let _ = write!(text, "\n\n## {name}\n\n{section}");
        }
        text
    }

    fn sections(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_bounded_in_number_and_size() {
        let sections = PromptSections::default();
        assert_eq!(sections.set("a", &"x".repeat(8193)), Err(PromptSectionError::TooLong));
        for number in 0..MAX_SECTIONS {
            sections.set(&format!("s{number:02}"), "text").unwrap();
        }
        assert_eq!(sections.set("more", "text"), Err(PromptSectionError::TooMany));
        assert_eq!(sections.set("s00", "other"), Ok(Some("text".to_owned())));
        sections.set("s01", " ").unwrap();
        assert_eq!(sections.set("more", "text"), Ok(None));
        assert!(sections.to_text().starts_with("\n\n## more\n\ntext\n\n## s00\n\nother"));
    }
}
