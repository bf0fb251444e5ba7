//! An index of all grants of one tool, for calls that touch as many resources as there are grants.

use std::borrow::Cow;
use std::collections::HashSet;

use super::grant::matches_resource;
use crate::permission::Pattern;
use crate::tool::Resource;

/// The grants of one grantee: patterns without wildcards are looked up in a set, and only the
/// others are compared one by one.
#[derive(Debug)]
pub(crate) struct GrantIndex {
    patterns: Vec<Pattern>,
    /// The texts without wildcards.
    texts: HashSet<Vec<u8>>,
    /// The same texts, normalized as paths.
    paths: HashSet<Vec<u8>>,
    /// The indices of the patterns that match more than their own text.
    wildcard_indices: Vec<usize>,
    covers_everything: bool,
}

impl GrantIndex {
    /// Returns an index of patterns that were granted to the same grantee.
    pub(crate) fn new(patterns: Vec<Pattern>) -> Self {
        let (mut texts, mut paths, mut wildcard_indices) =
            (HashSet::new(), HashSet::new(), Vec::new());
        for (at, pattern) in patterns.iter().enumerate() {
            match pattern.as_literal() {
                Some(text) => {
                    paths.insert(normalize_slashes(text).into_owned());
                    texts.insert(text.to_vec());
                }
                None => wildcard_indices.push(at),
            }
        }
        let covers_everything = patterns.iter().any(Pattern::is_any);
        Self { patterns, texts, paths, wildcard_indices, covers_everything }
    }

    /// Returns the patterns, for tools that evaluate them themselves.
    pub(crate) fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// Whether one of the patterns covers `resource`, a resource of the grantee.
    pub(crate) fn covers(&self, resource: &Resource) -> bool {
        if resource.is_opaque() {
            return self.covers_everything;
        }
        let is_plain = match resource.absolute() {
            Some(_) => resource
                .spellings()
                .any(|path| self.paths.contains(&*normalize_slashes(path.as_bytes()))),
            None => self.texts.contains(resource.text().as_bytes()),
        };
        let matches_name =
            |name: &str| self.patterns.iter().any(|pattern| pattern.matches_any_case(name));
        is_plain
            || resource.names().any(matches_name)
            || self
                .wildcard_indices
                .iter()
                .any(|&at| matches_resource(&self.patterns[at], resource))
    }
}

/// Returns the path in the form in which patterns compare it.
fn normalize_slashes(path: &[u8]) -> Cow<'_, [u8]> {
    match path.contains(&b'\\') {
        true => path.iter().map(|&byte| if byte == b'\\' { b'/' } else { byte }).collect(),
        false => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::ToolName;
    use crate::permission::{Grant, Grantee};

    // F76, F86: the index covers exactly what the single grants cover.
    #[test]
    fn together_they_cover_what_each_of_them_covers() {
        let patterns = [
            "src/a.rs",
            "src\\b.rs",
            "/w/src/c.rs",
            "src/",
            "./d",
            "a//b",
            "git push",
            "git *",
            "npm:*",
            "rm \\ x",
            "*.md",
            "?",
            "",
            "~/x",
            "*",
        ];
        let subjects: Vec<Resource> = ["src/a.rs", "src/b.rs", "src\\a.rs", "d", "a/b", "x.md"]
            .into_iter()
            .chain(["git push", "git", "npm", "npm i", "rm / x", "rm \\ x", "y", "", "~/x", "?"])
            .flat_map(|text| {
                let plain = || Resource::new(text);
                [plain(), plain().opaque(), Resource::path(text, format!("/w/{text}"))]
            })
            .chain([Resource::path("c", "/w/src/c.rs"), Resource::new("z").with_name("npm:x")])
            .collect();
        let to = Grantee::new(ToolName::from_static("any"), "any");
        // Every pair, so that no pattern hides another.
        for (one, other) in patterns.iter().flat_map(|one| patterns.map(|other| (one, other))) {
            let both = [*one, other].map(Pattern::new);
            let granted = GrantIndex::new(both.to_vec());
            let each = both.map(|pattern| Grant::new(to.clone(), pattern));
            for resource in &subjects {
                let expected = each.iter().any(|grant| grant.covers(&to, resource));
                assert_eq!(granted.covers(resource), expected, "{one}, {other}: {resource:?}");
            }
        }
    }
}
