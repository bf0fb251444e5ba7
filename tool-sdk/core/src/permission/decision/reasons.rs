//! Combines the reasons of a decision to which several resources led.
//!
//! **Invariant:** each reason appears once, with the resources that it is about.

use std::borrow::Cow;

use crate::tool::Resource;

/// The most reasons, and the most resources named for each; the others are only in the list of
/// resources.
const MAX_REASONS: usize = 8;

/// The most characters of a resource that are shown.
const MAX_NAME_CHARS: usize = 100;

/// Reasons, and the names of the resources that each is about.
#[derive(Debug, Default)]
pub(super) struct DecisionReasons {
    entries: Vec<(Cow<'static, str>, Vec<String>)>,
    has_more: bool,
}

impl DecisionReasons {
    /// Adds a reason; `resource` is the resource that it is about, when it is to be named.
    pub(super) fn add(&mut self, reason: Cow<'static, str>, resource: Option<&Resource>) {
        let name = resource.map(|resource| shorten_name(resource.text()));
        // Some reasons start with the name.
        let name = name.filter(|name| !reason.starts_with(&format!("`{name}`")));
        let has_room = self.entries.len() < MAX_REASONS;
        match self.entries.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => {
                let is_new = name.filter(|name| !names.contains(name));
                let has_room = names.len() <= MAX_REASONS;
                names.extend(is_new.filter(|_| has_room));
            }
            None if has_room => {
                self.entries.push((reason, name.into_iter().collect()));
            }
            None => self.has_more = true,
        }
    }

    /// Returns all reasons in one line.
    pub(super) fn into_text(self) -> Cow<'static, str> {
        if let [(reason, names)] = self.entries.as_slice()
            && names.is_empty()
        {
            return reason.clone();
        }
        let more = self.has_more.then(|| "and more".to_owned());
        let said = self.entries.into_iter().map(|(reason, names)| match names.len() {
            0 => reason.into_owned(),
            1..=MAX_REASONS => format!("`{}`: {reason}", names.join("`, `")),
            _ => format!("`{}` and more: {reason}", names[..MAX_REASONS].join("`, `")),
        });
        said.chain(more).collect::<Vec<_>>().join("; ").into()
    }
}

/// Returns a text on one line, truncated when it is long. Control characters are escaped.
fn shorten_name(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars().take(MAX_NAME_CHARS) {
        match c.is_control() {
            true => name.extend(c.escape_default()),
            false => name.push(c),
        }
    }
    if text.chars().nth(MAX_NAME_CHARS).is_some() {
        name.push_str("...");
    }
    name
}
