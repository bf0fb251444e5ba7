//! Compares names of symbols with what was searched.

use crate::symbol::SymbolDefinition;

/// What names of symbols are compared with: a part of a name in any case, or a name with `*`, which
/// stands for any characters. Behind a container, as in `Circle::area` or `Circle.area`, only symbols
/// in containers that end with that name match.
///
/// # Examples
///
/// ```
/// use tool_std_code::SymbolPattern;
///
/// let pattern = SymbolPattern::new("read");
/// assert!(pattern.name_rank("read") < pattern.name_rank("read_file"));
/// assert!(pattern.name_rank("read_file") < pattern.name_rank("spread"));
/// assert_eq!(pattern.name_rank("write"), None);
/// assert!(SymbolPattern::new("get_*_var").name_rank("get_env_var").is_some());
/// ```
#[derive(Clone, Debug)]
pub struct SymbolPattern {
    container: Option<String>,
    name: String,
    lowercase: String,
}

impl SymbolPattern {
    /// Creates the pattern of a text such as `area`, `Circle::area` or `draw_*`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let (container, name) = split_qualified(text);
        Self {
            container: container.map(str::to_owned),
            name: name.to_owned(),
            lowercase: name.to_lowercase(),
        }
    }

    /// Returns how well a definition matches; 0 is best. `None` when it does not.
    #[must_use]
    pub fn rank_definition(&self, definition: &SymbolDefinition) -> Option<u32> {
        self.is_in_container(definition).then(|| self.name_rank(&definition.name)).flatten()
    }

    /// Whether a definition has exactly the name of the pattern, in its container.
    #[must_use]
    pub fn is_name_of(&self, definition: &SymbolDefinition) -> bool {
        self.name == *definition.name && self.is_in_container(definition)
    }

    /// Returns the name without the container.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns how well a name matches: 0 for the name itself, 1 for another case of it, 2 for a
    /// beginning or a match with `*`, 3 for the beginning of a word in it, 4 for any other part.
    #[must_use]
    pub fn name_rank(&self, name: &str) -> Option<u32> {
        if self.name == name {
            return Some(0);
        }
        let lowercase = name.to_lowercase();
        if self.name.contains('*') {
            return matches_wildcards(&self.lowercase, &lowercase).then_some(2);
        }
        if lowercase == self.lowercase {
            return Some(1);
        }
        match lowercase.find(&self.lowercase)? {
            0 => Some(2),
            at => Some(if is_word_start(name, at) { 3 } else { 4 }),
        }
    }

    fn is_in_container(&self, definition: &SymbolDefinition) -> bool {
        let Some(wanted) = &self.container else { return true };
        let wanted = wanted.rsplit([':', '.']).filter(|part| !part.is_empty());
        let mut around = definition.container.rsplit([':', '.']).filter(|part| !part.is_empty());
        wanted.into_iter().all(|part| around.next() == Some(part))
    }
}

/// Splits `a::b::c` and `a.b.c` before the last name.
fn split_qualified(text: &str) -> (Option<&str>, &str) {
    let text = text.trim();
    let split = text.rsplit_once("::").or_else(|| text.rsplit_once('.'));
    match split {
        Some((container, name)) if !container.is_empty() && !name.is_empty() => {
            (Some(container), name)
        }
        _ => (None, text),
    }
}

/// Whether a word of `snake_case` or `camelCase` begins at `at`, which is a place in the name in
/// lower case; for names with characters whose case changes their length, the place may be another.
fn is_word_start(name: &str, at: usize) -> bool {
    let Some((before, after)) = name.split_at_checked(at) else { return false };
    let (last, first) = (before.chars().next_back(), after.chars().next());
    last.is_some_and(|c| !c.is_alphanumeric())
        || first.is_some_and(char::is_uppercase) && !last.is_some_and(char::is_uppercase)
}

/// Whether `text` is `pattern`, in which `*` stands for any characters. Linear in both for each `*`.
fn matches_wildcards(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_wildcards() {
        let cases = [
            ("*", "anything", true),
            ("get_*", "get_env", true),
            ("get_*", "forget_env", false),
            ("*_env", "get_env", true),
            ("a*b*c", "axcyb", false),
            ("a*b*c", "axbyc", true),
            ("ab*b", "ab", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches_wildcards(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn splits_before_the_last_name() {
        assert_eq!(split_qualified("a::b::c"), (Some("a::b"), "c"));
        assert_eq!(split_qualified("Circle.area"), (Some("Circle"), "area"));
        assert_eq!(split_qualified(".area"), (None, ".area"));
        assert_eq!(split_qualified("area"), (None, "area"));
    }

    #[test]
    fn a_word_in_a_name_ranks_before_other_parts() {
        let pattern = SymbolPattern::new("file");
        assert_eq!(pattern.name_rank("readFile"), Some(3));
        assert_eq!(pattern.name_rank("read_file"), Some(3));
        assert_eq!(pattern.name_rank("profile"), Some(4));
        assert_eq!(pattern.name_rank("FILE"), Some(1));
    }
}
