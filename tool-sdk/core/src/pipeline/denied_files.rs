//! Judges which files deny rules keep from a permission, whichever tool reads them.
//!
//! **Invariant:** the rules about the permission, and about the tools that have it, decide, as for a call
//! that names the file.

use std::path::Path;

use super::file_rules::{file_rules_of_tools, rules_about_shown_files};
use super::inner::PipelineInner;
use super::session_files;
use super::session_policy::{SessionPolicy, deciding_sessions};
use crate::context::{DenialJudge, DeniedFiles, Session};
use crate::permission::{Action, NoArguments, Rule, Ruleset};
use crate::tool::{PathAlias, Resource};

/// Names below a folder that no rule means: a pattern that matches them all matches every name.
const UNLIKELY_NAMES: [&str; 3] =
    ["\u{f8ff}\u{f8ff}\u{f8ff}", "\u{f8ff}\u{f8ff}\u{f8ff}/\u{f8ff}\u{f8ff}", "\u{f8fe}\u{f8fe}"];

/// Returns the files that rules about `permission` deny.
pub(super) fn denied_files(
    inner: &PipelineInner,
    session: &Session,
    permission: &str,
) -> DeniedFiles {
    deciding_sessions(inner, session)
        .map(|session| session_denials(inner, &session, permission))
        .reduce(DeniedFiles::merged_with)
        .unwrap_or_default()
}

/// Returns the files that the policy of one of the deciding sessions denies.
fn session_denials(inner: &PipelineInner, session: &Session, permission: &str) -> DeniedFiles {
    let view = inner.toolset.view_for(session);
    let SessionPolicy { rules: all_rules, .. } = SessionPolicy::new(&view, session);
    if !all_rules.rules().iter().any(is_denial) {
        return DeniedFiles::default();
    }
    let tools = inner.toolset.all_tools();
    let of_permission = all_rules.for_names(view.permission_names(permission));
    let of_tools = file_rules_of_tools(&all_rules, &view, &tools, permission, "");
    let rules_by_source = std::iter::once(of_permission).chain(of_tools);
    rules_by_source
        .filter(|rules| rules.rules().iter().any(is_denial))
        .map(|rules| denials_of(rules_about_shown_files(&rules, &tools), session))
        .reduce(DeniedFiles::merged_with)
        .unwrap_or_default()
}

/// Returns the files that these rules deny.
fn denials_of(rules: Ruleset, session: &Session) -> DeniedFiles {
    let denials = rules.rules().iter().filter(|rule| is_denial(rule));
    let patterns = denials.map(|rule| rule.pattern.to_expanded_text()).collect();
    let aliases = session_files::path_aliases(session, &rules);
    DeniedFiles::new(patterns, PermissionRules { rules, aliases })
}

fn is_denial(rule: &Rule) -> bool {
    rule.action == Action::Deny
}

/// The rules about one permission.
struct PermissionRules {
    rules: Ruleset,
    aliases: Vec<PathAlias>,
}

impl PermissionRules {
    /// Returns the rule that denies the file.
    fn denying_rule(&self, asked: &str, absolute: &Path) -> Option<&Rule> {
        let mut resource = Resource::path(asked, absolute);
        resource.set_path_aliases(&self.aliases);
        self.rules.deciding_rule(&resource, &NoArguments, true).filter(|rule| is_denial(rule))
    }

    /// Whether a rule that `denial` does not override could decide about a file in the folder.
    fn has_exception(&self, denial: &Rule, asked: &str, absolute: &Path) -> bool {
        let rules = self.rules.rules();
        let at = rules.iter().position(|rule| std::ptr::eq(rule, denial)).unwrap_or_default();
        let folders = [Some(asked), absolute.to_str()];
        let can_match = |rule: &Rule| {
            // A rule that asks also matches through links and at any depth.
            rule.action == Action::Ask
                || folders.iter().flatten().any(|folder| rule.pattern.can_match_below(folder))
        };
        !denial.locked
            && rules.iter().enumerate().any(|(index, rule)| {
                let may_override = rule.locked || index > at;
                may_override && !is_denial(rule) && can_match(rule)
            })
    }
}

impl DenialJudge for PermissionRules {
    fn denies(&self, asked: &str, absolute: &Path) -> bool {
        self.denying_rule(asked, absolute).is_some()
    }

    fn denies_all_in(&self, asked: &str, absolute: &Path) -> bool {
        UNLIKELY_NAMES.iter().all(|name| {
            let denial = self.denying_rule(&format!("{asked}/{name}"), &absolute.join(name));
            denial.is_some_and(|rule| !self.has_exception(rule, asked, absolute))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(rules: &[&str]) -> PermissionRules {
        let rules = Ruleset::new(rules.iter().map(|rule| rule.parse().unwrap()));
        PermissionRules { rules, aliases: Vec::new() }
    }

    fn denies_all(rules: &[&str], folder: &str) -> bool {
        judge(rules).denies_all_in(folder, &Path::new("/work").join(folder))
    }

    #[test]
    fn a_folder_is_denied_as_a_whole_if_every_name_in_it_is() {
        for (rule, expected) in [
            ("deny read(secrets/**)", true),
            ("deny read(secrets/*)", true),
            ("deny read(secrets/)", true),
            ("deny read(/work/secrets/**)", true),
            ("deny read(*)", true),
            ("deny read(secrets/*.key)", false),
            ("deny read(secrets/?)", false),
            ("deny read(secrets/???)", false),
            ("deny read(secrets)", false),
            ("deny read(*.env)", false),
            ("ask read(secrets/**)", false),
        ] {
            assert_eq!(denies_all(&[rule], "secrets"), expected, "{rule}");
        }
        assert!(denies_all(&["deny read(secrets/**)"], "secrets/inner"));
        assert!(!denies_all(&["deny read(secrets/**)"], "secrets2"));
    }

    #[test]
    fn an_exception_in_a_folder_keeps_it_from_being_denied_as_a_whole() {
        let denial = "deny read(secrets/**)";
        for (rule, expected) in [
            ("allow read(secrets/public/*)", false),
            ("allow read(./secrets/public/*)", false),
            ("allow read(/work/secrets/x)", false),
            ("allow read(*.md)", false),
            ("ask read(x)", false),
            ("allow read(src/*)", true),
            ("allow read", false),
        ] {
            assert_eq!(denies_all(&[denial, rule], "secrets"), expected, "{rule}");
            // The last rule decides.
            assert!(denies_all(&[rule, denial], "secrets"), "{rule}");
        }
        let mut rules =
            [denial, "allow read(secrets/public/*)"].map(|rule| rule.parse::<Rule>().unwrap());
        rules[0].locked = true;
        let locked = PermissionRules { rules: Ruleset::new(rules), aliases: Vec::new() };
        assert!(locked.denies_all_in("secrets", Path::new("/work/secrets")));
        assert!(locked.denies("secrets/public/x", Path::new("/work/secrets/public/x")));
    }
}
