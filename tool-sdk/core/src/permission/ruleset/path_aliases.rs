//! Resolves the patterns of rules that name a place through a symbolic link.
//!
//! The path of a call contains no links. A rule that denies `~/secrets/*` where the home folder is
//! a link, or `/work/project/.env` where `/work` is one, must match the file under any of its
//! names.

use std::path::{Component, Path, PathBuf};

use super::Ruleset;
use crate::permission::Action;
use crate::tool::PathAlias;

impl Ruleset {
    /// Returns the names by which rules that ask or deny reach a place through a link. Relative
    /// names start in any of `roots`, which contain no links.
    pub(crate) fn symlink_aliases(&self, roots: &[PathBuf]) -> Vec<PathAlias> {
        let mut ways = Vec::new();
        for rule in self.0.iter().filter(|rule| rule.action != Action::Allow) {
            let Some(name) = rule.pattern.path_prefix() else { continue };
            let bases = match Path::new(name).has_root() {
                true => &[PathBuf::new()][..],
                false => roots,
            };
            let led = bases.iter().filter_map(|base| resolve_if_linked(base, Path::new(name)));
            for place in led {
                let way = PathAlias { target: place, alias: name.into() };
                if !ways.contains(&way) {
                    ways.push(way);
                }
            }
        }
        ways
    }
}

/// Returns where `name` leads from `base`; `None` when there is no link on the way.
fn resolve_if_linked(base: &Path, name: &Path) -> Option<PathBuf> {
    let mut at = base.to_owned();
    for part in name.components() {
        match part {
            Component::ParentDir => _ = at.pop(),
            part => at.push(part),
        }
        // A missing file is not a link.
        if at.symlink_metadata().ok()?.is_symlink() {
            return resolve_links(&base.join(name));
        }
    }
    None
}

/// Resolves the links of a path whose end may not exist yet.
fn resolve_links(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|there| {
        let rest = path.strip_prefix(there).ok()?;
        Some(there.canonicalize().ok()?.join(rest))
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::tool::Resource;

    // F72: a root or a home folder that is a link, and a link in the middle.
    #[test]
    fn a_rule_that_names_a_link_forbids_what_lies_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("real/secrets")).unwrap();
        fs::write(top.join("real/.env.prod"), "").unwrap();
        symlink(top.join("real"), top.join("work")).unwrap();
        symlink("secrets", top.join("real/link")).unwrap();
        symlink(".env.prod", top.join("real/.env")).unwrap();
        let root = top.join("real");
        let is_forbidden = |rule: &str, path: &str| {
            let rule = rule.replace("TOP", top.to_str().unwrap());
            let rules = Ruleset::new([rule.parse().unwrap()]);
            let mut resource = Resource::path(path, root.join(path));
            resource.set_path_aliases(&rules.symlink_aliases(std::slice::from_ref(&root)));
            rules.deciding_rule(&resource, &|_: &str| None, true).is_some()
        };
        for rule in ["TOP/work/secrets/*", "TOP/work/secrets/", "TOP/*/secrets/key", "link/*"] {
            assert!(is_forbidden(&format!("deny read({rule})"), "secrets/key"), "{rule}");
            assert!(is_forbidden(&format!("ask read({rule})"), "secrets/key"), "{rule}");
            assert!(!is_forbidden(&format!("deny read({rule})"), "public/key"), "{rule}");
        }
        for rule in ["./link/new/*", "TOP/work/link/new/*", "TOP/work/../work/secrets/new/key"] {
            assert!(is_forbidden(&format!("deny read({rule})"), "secrets/new/key"), "{rule}");
        }
        assert!(is_forbidden("deny read(.env)", ".env.prod"));
        // A rule that allows means only the name that it contains.
        assert!(!is_forbidden("allow read(link/*)", "secrets/key"));
        assert!(!is_forbidden("deny read(nowhere/*)", "secrets/key"));
    }
}
