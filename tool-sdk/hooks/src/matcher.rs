//! Matchers: which tools a hook runs for.

use regex::{Regex, RegexBuilder};

/// The limits of a regular expression in bytes: its text, and its compiled size.
const MAX_PATTERN: usize = 4 << 10;
const MAX_COMPILED: usize = 1 << 20;

/// The matcher of a hook.
#[derive(Clone, Debug)]
pub(super) enum ToolMatcher {
    /// Matches every tool.
    All,
    /// Matches these names exactly.
    Names(Vec<String>),
    /// Matches names that contain a match.
    Regex(Regex),
}

impl ToolMatcher {
    /// Parses a matcher: an empty one and `*` match every tool, plain words are names, and
    /// everything else is a regular expression that is searched in the name.
    pub(super) fn parse(pattern: &str) -> Result<Self, String> {
        if matches!(pattern.trim(), "" | "*") {
            return Ok(Self::All);
        }
        if pattern.chars().all(is_name_char) {
            let names = pattern.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty());
            let names: Vec<_> = names.map(str::to_owned).collect();
            return match names.is_empty() {
                true => Err(format!("`{pattern}` names no tool")),
                false => Ok(Self::Names(names)),
            };
        }
        if pattern.len() > MAX_PATTERN {
            return Err(format!("a matcher must not be longer than {MAX_PATTERN} bytes"));
        }
        RegexBuilder::new(pattern)
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(8 * MAX_COMPILED)
            .nest_limit(64)
            .case_insensitive(true)
            .build()
            .map(Self::Regex)
            .map_err(|error| format!("`{pattern}` is not a regular expression: {error}"))
    }

    /// Returns the first of the tool's names that matches, ignoring case; `None` without a match.
    /// The name is spelled as in the matcher, because its commands compare with that.
    pub(super) fn matched_name<'t>(
        &'t self,
        mut tool: impl Iterator<Item = &'t str>,
    ) -> Option<&'t str> {
        match self {
            Self::All => tool.next(),
            Self::Names(names) => tool.find_map(|tool| {
                names.iter().map(String::as_str).find(|it| eq_ignore_case(it, tool))
            }),
            Self::Regex(regex) => {
                let tool = tool.find(|tool| regex.is_match(tool))?;
                Some(find_spelling(tool, regex.as_str()).unwrap_or(tool))
            }
        }
    }

    /// Returns the names or the expression that match none of `tools`, each given by all its names.
    pub(super) fn unmatched_names(&self, tools: &[Vec<&str>]) -> Vec<&str> {
        match self {
            Self::All => Vec::new(),
            Self::Names(names) => {
                let is_known =
                    |name: &str| tools.iter().flatten().any(|tool| eq_ignore_case(name, tool));
                names.iter().map(String::as_str).filter(|name| !is_known(name)).collect()
            }
            Self::Regex(regex) => {
                let is_known =
                    tools.iter().any(|names| self.matched_name(names.iter().copied()).is_some());
                if is_known { Vec::new() } else { vec![regex.as_str()] }
            }
        }
    }
}

fn eq_ignore_case(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// Finds the spelling of `name` in `pattern`, ignoring case.
fn find_spelling<'p>(name: &str, pattern: &'p str) -> Option<&'p str> {
    (0..pattern.len())
        .filter_map(|start| pattern.get(start..start + name.len()))
        .find(|it| eq_ignore_case(it, name))
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '|' | ',' | ' ' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, tool: &str, expected: bool) {
        let matcher = ToolMatcher::parse(pattern).unwrap();
        assert_eq!(
            matcher.matched_name(std::iter::once(tool)).is_some(),
            expected,
            "{pattern} {tool}"
        );
    }

    // F67
    #[test]
    fn returns_the_name_in_the_matchers_spelling() {
        let names = ["run_line", "bash"];
        for (pattern, expected) in [
            ("*", Some("run_line")),
            ("Bash", Some("Bash")),
            ("Read|Bash", Some("Bash")),
            ("Bash|run_line", Some("run_line")),
            ("^(Read|Bash)$", Some("Bash")),
            ("^B.*", Some("bash")),
            ("Run_Line", Some("Run_Line")),
            ("Read", None),
            ("^Read", None),
        ] {
            let matcher = ToolMatcher::parse(pattern).unwrap();
            assert_eq!(matcher.matched_name(names.into_iter()), expected, "{pattern}");
        }
    }

    #[test]
    fn plain_words_match_whole_names() {
        check("mcp__brave-search", "mcp__brave-search", true);
        check("mcp__brave-search", "mcp__brave-search__web", false);
        check("edit, write", "write", true);
        check("edit|write,", "edit", true);
        check("edit|write", "rewrite", false);
        check(" * ", "anything", true);
    }

    #[test]
    fn everything_else_is_a_regular_expression() {
        check("mcp__.*", "mcp__memory__get", true);
        check("^read_", "spread_out", false);
        check("file.?", "my_file_1", true);
        check("^Read$", "read", true);
    }

    #[test]
    fn finds_names_that_match_no_tool() {
        let tools = [vec!["look", "Peek"], vec!["jump"]];
        for (pattern, expected) in [
            ("*", &[][..]),
            ("peek|JUMP", &[]),
            ("peek|pounce, run", &["pounce", "run"]),
            ("^lo+k$", &[]),
            ("^pounce.*", &["^pounce.*"]),
        ] {
            assert_eq!(
                ToolMatcher::parse(pattern).unwrap().unmatched_names(&tools),
                expected,
                "{pattern}"
            );
        }
    }

    // RX1
    #[test]
    fn rejects_invalid_and_expensive_expressions() {
        for pattern in ["(", "a{1000}{1000}{1000}", &"(a)".repeat(2000), "| ,"] {
            assert!(ToolMatcher::parse(pattern).is_err(), "{:.20}", pattern);
        }
    }
}
