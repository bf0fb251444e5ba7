//! All agents that there are: built in, of the program, of the user, of a trusted project.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use tool_sdk_core::{RegistryError, Toolset};

use super::built_in::built_in_agents;
use super::definition::{AgentDefinition, AgentOrigin, AgentUsage};
use super::file::{AgentFileFormat, InvalidAgentFile, agent_file_stem, parse_agent_file};

/// The limit of one file in bytes.
const MAX_BYTES: u64 = 256 << 10;
/// How many files of one folder are read.
const MAX_FILES: usize = 200;

/// Where agents of a project are, the one that wins first.
const PROJECT_PLACES: [(&str, AgentFileFormat); 3] = [
    (".agents", AgentFileFormat::Own),
    (".claude/agents", AgentFileFormat::ClaudeCode),
    (".opencode/agent", AgentFileFormat::OpenCode),
];

/// Where agents of the user are, below the home folder.
const USER_PLACES: [(&str, AgentFileFormat); 3] = [
    (".agents", AgentFileFormat::Own),
    (".claude/agents", AgentFileFormat::ClaudeCode),
    (".config/opencode/agent", AgentFileFormat::OpenCode),
];

/// The folders in which agents are looked for.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "hosts name folders")]
pub struct AgentFolders {
    /// The home folder of the user.
    pub home: Option<PathBuf>,
    /// The project, if the user [trusts](tool_sdk_core::TrustedFolders) it. Never pass a folder that
    /// the user does not trust: the agents are text that models follow.
    pub trusted_project: Option<PathBuf>,
}

/// The agents of the program, the user and the project.
///
/// An agent of a project replaces one of the user of the same name, which replaces one that is built
/// in. The rules of a project's agent only make decisions stricter: each call is also decided without
/// them, and as the agent that it replaces would be.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::{AgentCatalog, AgentFolders, AgentOrigin};
///
/// # let project = tempfile::tempdir()?;
/// # let project = project.path();
/// std::fs::create_dir(project.join(".agents"))?;
/// let file = "---\ndescription: Writes release notes\ntools: [read, grep]\n---\nBe brief.\n";
/// std::fs::write(project.join(".agents/notes.md"), file)?;
///
/// let folders = AgentFolders { trusted_project: Some(project.into()), ..AgentFolders::default() };
/// let catalog = AgentCatalog::built_in().with_folders(&folders);
/// let notes = catalog.get("notes").expect("it was found");
/// assert!(matches!(notes.origin, AgentOrigin::Project(_)));
/// assert_eq!(catalog.names().collect::<Vec<_>>(), ["build", "explore", "notes", "plan"]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct AgentCatalog {
    /// Sorted by name.
    agents: Vec<AgentDefinition>,
    /// Agents in whose place another one stands, under names that hosts cannot write.
    replaced: Vec<AgentDefinition>,
    problems: Vec<String>,
}

impl AgentCatalog {
    /// Returns the agents `build`, `plan` and `explore`.
    #[must_use]
    pub fn built_in() -> Self {
        built_in_agents().into_iter().fold(Self::default(), Self::with_agent)
    }

    /// Adds an agent, in the place of one of the same name.
    #[must_use]
    pub fn with_agent(mut self, mut agent: AgentDefinition) -> Self {
        let is_of_project = matches!(agent.origin, AgentOrigin::Project(_));
        if is_of_project {
            agent.profile = agent.profile.only_tightens();
        }
        match self.agents.binary_search_by(|known| known.name().cmp(agent.name())) {
            Ok(at) => {
                if is_of_project {
                    agent.keep_limits_of(&self.agents[at]);
                }
                let mut known = std::mem::replace(&mut self.agents[at], agent);
                if is_of_project {
                    let name = format!("{} ({})", known.name(), known.origin.as_str());
                    let agent = &mut self.agents[at];
                    agent.profile = agent.profile.clone().only_tightens_agent(&*name);
                    known.profile.name = name;
                    self.replaced.push(known);
                }
            }
            Err(at) => self.agents.insert(at, agent),
        }
        self
    }

    /// Adds the agents in files: first those of the user, then those of the project.
    #[must_use]
    pub fn with_folders(mut self, folders: &AgentFolders) -> Self {
        if let Some(home) = &folders.home {
            self = self.with_places(home, &USER_PLACES, AgentOrigin::User);
        }
        if let Some(project) = &folders.trusted_project {
            self = self.with_places(project, &PROJECT_PLACES, AgentOrigin::Project);
        }
        self
    }

    /// Adds the agents of a plugin, whose files lie in `folder`. Their rules only make decisions stricter.
    /// One that has the name of another agent is a problem, and is left out.
    #[must_use]
    pub fn with_plugin_folder(mut self, folder: &Path) -> Self {
        let place = [("", AgentFileFormat::ClaudeCode)];
        let found = Self::default().with_places(folder, &place, AgentOrigin::Plugin);
        self.problems.extend(found.problems);
        for mut agent in found.agents {
            if let Some(known) = self.get(agent.name()) {
                let of = |agent: &AgentDefinition| match agent.origin.path() {
                    Some(path) => path.display().to_string(),
                    None => format!("an agent that is {}", agent.origin.as_str()),
                };
                let problem = format!("{} has the name of {}", of(&agent), of(known));
                self.problems.push(problem);
                continue;
            }
            agent.profile = agent.profile.only_tightens();
            self = self.with_agent(agent);
        }
        self
    }

    /// Returns the catalog without the agents of a plugin, whose files lie in `folder`.
    #[must_use]
    pub fn without_plugin_folder(mut self, folder: &Path) -> Self {
        let is_of_folder = |agent: &AgentDefinition| match &agent.origin {
            AgentOrigin::Plugin(path) => path.starts_with(folder),
            _ => false,
        };
        self.agents.retain(|agent| !is_of_folder(agent));
        self
    }

    fn with_places(
        mut self,
        folder: &Path,
        places: &[(&str, AgentFileFormat)],
        origin: impl Fn(PathBuf) -> AgentOrigin,
    ) -> Self {
        let mut found: Vec<AgentDefinition> = Vec::new();
        for (place, format) in places {
            let below = folder.join(place).join("agents");
            if *format == AgentFileFormat::Own && !agent_files(&below).is_empty() {
                let problem =
                    format!("its agents are not read; agents are files `{place}/NAME.md`");
                self.problems.push(format!("{}: {problem}", below.display()));
            }
            for path in agent_files(&folder.join(place)) {
                match read_agent(&path, *format) {
                    Ok(Some(mut agent)) => {
                        if let Some(first) = found.iter().find(|it| it.name() == agent.name()) {
                            let shown = first.origin.path().unwrap_or(folder).display();
                            let problem = format!("`{shown}` has the same name and wins");
                            self.problems.push(format!("{}: {problem}", path.display()));
                            continue;
                        }
                        agent.origin = origin(path);
                        found.push(agent);
                    }
                    Ok(None) => {}
                    Err(error) => self.problems.push(format!("{}: {error}", path.display())),
                }
            }
        }
        found.into_iter().fold(self, Self::with_agent)
    }

    /// Returns the agent of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&AgentDefinition> {
        self.agents.iter().find(|agent| agent.name() == name)
    }

    /// Returns the agents, sorted by name.
    pub fn agents(&self) -> impl Iterator<Item = &AgentDefinition> {
        self.agents.iter()
    }

    /// Returns the agents that other agents may start, sorted by name.
    pub fn subagents(&self) -> impl Iterator<Item = &AgentDefinition> {
        self.agents.iter().filter(|agent| agent.usage != AgentUsage::Primary)
    }

    /// Returns the names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.agents.iter().map(AgentDefinition::name)
    }

    /// Returns the files that define no agent, and why, for the user.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Adds the profiles and the tools of the agents to a toolset.
    ///
    /// # Errors
    ///
    /// Fails when a tool of an agent has a name that another tool has.
    pub fn add_to(&self, toolset: Toolset) -> Result<Toolset, RegistryError> {
        let mut all = self.replaced.iter().chain(&self.agents);
        all.try_fold(toolset, |toolset, agent| agent.add_to(toolset))
    }
}

/// Returns the Markdown files of a folder, sorted. Links are left out: they could lead elsewhere.
fn agent_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let is_file = |path: &PathBuf| {
        agent_file_stem(path).is_some() && fs::symlink_metadata(path).is_ok_and(|it| it.is_file())
    };
    let mut paths: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(is_file).collect();
    paths.sort_unstable();
    paths.truncate(MAX_FILES);
    paths
}

fn read_agent(
    path: &Path,
    format: AgentFileFormat,
) -> Result<Option<AgentDefinition>, InvalidAgentFile> {
    let unreadable = |error: std::io::Error| InvalidAgentFile::Unreadable(error.to_string());
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(InvalidAgentFile::Unreadable(format!("it has more than {MAX_BYTES} bytes")));
    }
    parse_agent_file(&text, agent_file_stem(path).unwrap_or_default(), format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_wins_over_the_user_and_both_over_what_is_built_in() {
        let temp = tempfile::tempdir().unwrap();
        let (home, project) = (temp.path().join("home"), temp.path().join("project"));
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            home.join(".agents/plan.md"),
            "---\ndescription: of the user\nmode: strict\nmodel: a/b\nlimits: { turns: 3, calls: 9 }\n---\n",
        );
        write(home.join(".agents/mine.md"), "---\ndescription: mine\nrules: [allow x]\n---\n");
        write(
            project.join(".agents/plan.md"),
            "---\ndescription: of the project\nmodel: c/d\nlimits: { turns: 5 }\n---\n",
        );
        write(project.join(".claude/agents/plan.md"), "---\ndescription: hidden\n---\n");
        write(project.join(".claude/agents/other.md"), "---\ndescription: other\n---\n");
        write(project.join(".agents/README.md"), "# Agents\n");
        write(project.join(".agents/bad.md"), "---\nname: bad\n---\n");
        let untrusted = AgentFolders { home: Some(home.clone()), trusted_project: None };
        let catalog = AgentCatalog::built_in().with_folders(&untrusted);
        assert_eq!(catalog.names().collect::<Vec<_>>(), ["build", "explore", "mine", "plan"]);
        assert_eq!(catalog.get("plan").unwrap().description, "of the user");
        assert!(!catalog.get("mine").unwrap().profile.only_tightens);

        let trusted = AgentFolders { trusted_project: Some(project), ..untrusted };
        let catalog = AgentCatalog::built_in().with_folders(&trusted);
        let plan = catalog.get("plan").unwrap();
        assert_eq!((&*plan.description, plan.profile.only_tightens), ("of the project", true));
        assert_eq!(plan.profile.replaced_agent.as_deref(), Some("plan (user)"));
        assert_eq!((plan.max_turns, plan.limits.max_calls), (Some(3), Some(9)));
        assert_eq!(plan.model.as_deref(), Some("a/b"));
        assert!(catalog.get("other").is_some() && catalog.get("bad").is_none());
        let problems = catalog.problems().join("\n");
        assert!(problems.contains("bad.md: `description` is missing"), "{problems}");
        assert!(problems.contains("has the same name and wins"), "{problems}");
        assert_eq!(catalog.problems().len(), 2);
        let subagents: Vec<_> = catalog.subagents().map(AgentDefinition::name).collect();
        assert_eq!(subagents, ["build", "explore", "mine", "other", "plan"]);
    }
}
