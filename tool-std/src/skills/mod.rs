//! Skills: instructions for kinds of tasks, which a model loads when a task comes up. The tools
//! `skill`, `skill_list`, `skill_create`, `skill_update`, `skill_install` and `skill_remove`.
//!
//! A skill is a folder with a file `SKILL.md`, as the specification of Agent Skills describes it.
//! Skills are found in the folders `.agents/skills`, `.claude/skills`, `.opencode/skill`,
//! `.opencode/skills` and `.codex/skills` of the workspace's roots and of the home folder, in
//! `.config/opencode/skill` and `.config/opencode/skills` of the home folder, in `skills` of the
//! state folder, where they are installed, and in this program. What is in a project counts only
//! when the user [trusts](tool_sdk::TrustedFolders) its folder.
//!
//! The permission `skill` has the names of skills as patterns: a rule `deny skill(NAME)` also hides
//! the skill from the list. Tools that write ask, and show up to 2 MiB of the text
//! that a model would read; other files are named with their size.
//!
//! **Invariant:** the text of a skill is data. It never widens what a session may do, and
//! installing one runs nothing and grants nothing.

mod create_tool;
mod discovery;
mod document;
mod install_tool;
mod list_tool;
mod load_tool;
mod plan;
mod ranking;
mod remove_tool;
#[cfg(feature = "mcp")]
mod server;
#[cfg(test)]
mod tests;
mod update_tool;

use std::path::Path;

use tool_sdk::{Context, ToolError};

pub use self::create_tool::skill_create;
pub use self::discovery::SkillScope;
use self::discovery::{FoundSkill, SkillLibrary};
pub use self::install_tool::skill_install;
pub use self::list_tool::skill_list;
pub use self::load_tool::skill;
pub use self::remove_tool::skill_remove;
#[cfg(feature = "mcp")]
pub use self::server::SkillProvider;
pub use self::update_tool::skill_update;
use crate::packages::pins::PackagePins;

/// The permission to load a skill; its patterns are names of skills.
const PERMISSION: &str = "skill";

/// Returns the pins of installed skills.
fn skill_pins(state: &Path) -> PackagePins {
    PackagePins::new(state, "skill-pins")
}

/// Returns the skills that no rule denies.
fn visible_skills<'l>(library: &'l SkillLibrary, cx: &Context) -> Vec<&'l FoundSkill> {
    let denied = cx.denied_files(PERMISSION);
    let is_shown = |name: &str| !denied.denies(name, Path::new(name));
    library.skills.iter().filter(|(name, _)| is_shown(name)).map(|(_, skill)| skill).collect()
}

/// Finds a skill by its name, in any case.
fn find_skill<'l>(library: &'l SkillLibrary, name: &str) -> Option<&'l FoundSkill> {
    library.skills.get(name).or_else(|| {
        library.skills.values().find(|skill| skill.document.name.eq_ignore_ascii_case(name))
    })
}

/// Returns the error for an unknown name, which lists the skills that there are.
fn unknown_skill(name: &str, library: &SkillLibrary, cx: &Context) -> ToolError {
    const MAX_LISTED: usize = 50;
    let names: Vec<String> = visible_skills(library, cx)
        .iter()
        .take(MAX_LISTED)
        .map(|skill| format!("`{}`", skill.document.name))
        .collect();
    let hint = match &*names {
        [] => "there are no skills".to_owned(),
        names => format!("the skills are {}", names.join(", ")),
    };
    let name: String = name.chars().take(100).collect();
    ToolError::not_found(format_args!("there is no skill `{}`", name.escape_debug())).hint(hint)
}
