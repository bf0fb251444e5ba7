//! `robots.txt` (RFC 9309): which paths of a host a program should leave alone.
//!
//! **Invariant:** the longest rule that matches decides, and an equal one that allows wins.

/// Returns whether `robots` lets the agent with this product name visit `path`, with its query.
pub(super) fn allows_path(robots: &str, agent: &str, path: &str) -> bool {
    let groups = parse_groups(robots);
    let agent = agent.split('/').next().unwrap_or_default().to_ascii_lowercase();
    let mut own = groups.iter().filter(|group| group.agents.contains(&agent)).peekable();
    let rules: Vec<&PathRule<'_>> = match own.peek() {
        Some(_) => own.flat_map(|group| &group.rules).collect(),
        None => {
            let all = groups.iter().filter(|group| group.agents.iter().any(|name| name == "*"));
            all.flat_map(|group| &group.rules).collect()
        }
    };
    let matching = rules.into_iter().filter(|rule| rule.matches(path));
    matching.max_by_key(|rule| (rule.pattern.len(), rule.allows)).is_none_or(|rule| rule.allows)
}

#[derive(Default)]
struct RobotsGroup<'a> {
    agents: Vec<String>,
    rules: Vec<PathRule<'a>>,
}

struct PathRule<'a> {
    allows: bool,
    pattern: &'a str,
}

fn parse_groups(robots: &str) -> Vec<RobotsGroup<'_>> {
    let mut groups = Vec::new();
    let mut current = RobotsGroup::default();
    for line in robots.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match key.trim().to_ascii_lowercase().as_str() {
            "user-agent" => {
                if !current.rules.is_empty() {
                    groups.push(std::mem::take(&mut current));
                }
                current.agents.push(value.to_ascii_lowercase());
            }
            key @ ("allow" | "disallow") if !value.is_empty() => {
                current.rules.push(PathRule { allows: key == "allow", pattern: value });
            }
            // An empty rule ends the list of agents, and matches nothing.
            "allow" | "disallow" => current.rules.push(PathRule { allows: true, pattern: "" }),
            _ => {}
        }
    }
    groups.push(current);
    groups
}

impl PathRule<'_> {
    /// Whether the path begins as the pattern says: `*` is any text, `$` at the end is its end.
    fn matches(&self, path: &str) -> bool {
        let (pattern, is_whole) = match self.pattern.strip_suffix('$') {
            Some(pattern) => (pattern, true),
            None => (self.pattern, false),
        };
        let mut parts = pattern.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = path.strip_prefix(first) else { return false };
        let mut last_part = None;
        for part in parts {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
            last_part = Some(part);
        }
        // The text of the last `*` may end at a later place.
        !is_whole || rest.is_empty() || last_part.is_some_and(|part| rest.ends_with(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_rule_decides() {
        let robots = "User-agent: other\nDisallow: /\n\nUser-Agent: *\n# all\nDisallow: /a\n\
                      Allow: /a/public # but\nDisallow: /*.pdf$\nDisallow: /x*y\nCrawl-delay: 1";
        for (path, expected) in [
            ("/", true),
            ("/a", false),
            ("/abc", false),
            ("/a/public/b", true),
            ("/b.pdf", false),
            ("/b.pdf.pdf", false),
            ("/b.pdf?x", true),
            ("/xzy", false),
            ("/xz", true),
        ] {
            assert_eq!(allows_path(robots, "tool-sdk/1.0", path), expected, "{path}");
        }
        assert!(!allows_path(robots, "Other", "/b"));
        assert!(allows_path("", "tool-sdk", "/a"));
        assert!(allows_path("User-agent: *\nDisallow:", "tool-sdk", "/a"));
        let both = "User-agent: a\nUser-agent: tool-sdk\nDisallow: /p\nUser-agent: *\nDisallow: /";
        assert!(allows_path(both, "tool-sdk", "/q") && !allows_path(both, "tool-sdk", "/p"));
    }
}
