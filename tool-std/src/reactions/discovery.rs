//! Finds the files of rules: the user's in the configuration folder, and those of projects.
//!
//! **Invariant:** rules of a project count only if the user trusts its folder, and only if the file
//! lies inside of it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tool_sdk::{ProgramFolders, Session, TrustedFolders, Workspace};

use super::host_files::read_text_file;
use super::rule::{EventRule, RuleScope};
use super::rule_file::parse_rules;

/// The file in the configuration folder of the user.
const USER_FILE: &str = "reactions.toml";

/// The file in a project.
const PROJECT_FILE: &str = ".agents/reactions.toml";

/// The rules of a session, and what keeps others away. Clones share the rules.
///
/// # Examples
///
/// ```
/// use tool_sdk::Session;
/// use tool_std::reactions::ReactionRules;
///
/// let rules = ReactionRules::parse(
///     "[[reaction]]\n\
///      name = \"failures\"\n\
///      on = \"failed\"\n\
///      actions = [{ tool = \"log\", message = \"${event.tool} failed\" }]\n",
///     "rules.toml",
/// )?;
/// assert_eq!(rules.len(), 1);
/// // Without folders, a session finds none.
/// assert!(ReactionRules::find(&Session::new("s1")).is_empty());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ReactionRules {
    pub(super) rules: Arc<[EventRule]>,
    /// Errors of files, one `FILE:LINE: PROBLEM` each.
    pub(super) problems: Vec<String>,
    /// Files with rules in folders that the user does not trust.
    pub(super) untrusted: Vec<PathBuf>,
}

impl ReactionRules {
    /// Finds and parses the rules for a session: those of `reactions.toml` in the
    /// [configuration folder](ProgramFolders), and those of `.agents/reactions.toml` in each root of the
    /// workspace that the user [trusts](TrustedFolders). A file with an error has no rules.
    #[must_use]
    pub fn find(session: &Session) -> Self {
        let folders = ProgramFolders::from_session(session);
        let workspace = session.service::<Workspace>();
        let roots: Vec<PathBuf> =
            workspace.iter().flat_map(|it| it.roots()).map(Path::to_owned).collect();
        let (mut found, mut rules) = (Self::default(), Vec::new());
        if let Some(config) = &folders.config {
            found.read_file(&config.join(USER_FILE), RuleScope::User, &mut rules);
        }
        for root in &roots {
            let file = root.join(PROJECT_FILE);
            if !file.exists() {
                continue;
            }
            if !is_trusted(&folders, &roots, root) {
                found.untrusted.push(file);
            } else if is_inside(&file, root) {
                found.read_file(&file, RuleScope::Project, &mut rules);
            } else {
                let problem = format!("{}: the file lies outside of its project", file.display());
                found.problems.push(problem);
            }
        }
        found.rules = rules.into();
        found
    }

    /// Parses rules of the program.
    ///
    /// # Errors
    ///
    /// Fails with every error of the text, one `FILE:LINE: PROBLEM` a line.
    pub fn parse(text: &str, file: impl AsRef<Path>) -> Result<Self, String> {
        let rules = parse_rules(text, file.as_ref(), RuleScope::Host);
        let rules = rules.map_err(|problems| problems.join("\n"))?.into();
        Ok(Self { rules, ..Self::default() })
    }

    /// Returns how many rules there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Returns whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns what the user should know of the files: their errors, and those that wait for trust.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let waiting = self.untrusted.iter().map(|file| {
            format!("the rules in {} count when the folder is trusted: `trust`", file.display())
        });
        self.problems.iter().cloned().chain(waiting).collect()
    }

    fn read_file(&mut self, file: &Path, scope: RuleScope, rules: &mut Vec<EventRule>) {
        let text = match read_text_file(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                return self.problems.push(format!("cannot read {}: {error}", file.display()));
            }
        };
        match parse_rules(&text, file, scope) {
            Ok(parsed) => rules.extend(parsed),
            Err(problems) => self.problems.extend(problems),
        }
    }
}

/// Whether the user trusts the folder. What cannot be read is no trust.
fn is_trusted(folders: &ProgramFolders, roots: &[PathBuf], root: &Path) -> bool {
    let Some(state) = &folders.state else { return false };
    let trusted = TrustedFolders::open(state).with_writable_roots(roots);
    trusted.is_trusted(root).unwrap_or(false)
}

/// Whether the file, with its links resolved, lies inside of the folder.
fn is_inside(file: &Path, folder: &Path) -> bool {
    match (file.canonicalize(), folder.canonicalize()) {
        (Ok(file), Ok(folder)) => file.starts_with(folder),
        _ => false,
    }
}
