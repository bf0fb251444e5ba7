//! Model profiles: which file-editing tools each family of models gets.
//!
//! GPT-5 and Codex models were trained on patches and make fewer mistakes with `apply_patch`. All
//! other models do better with search and replace. With both kinds available, models mix them.

use tool_sdk::ModelProfile;

/// Models that get `apply_patch`.
const PATCH_MODELS: &[&str] = &["gpt-*", "codex*", "*-codex*"];

/// Models that get `edit_file`: all others, including older and open models of the GPT family.
const EDIT_MODELS: &[&str] = &["*", "gpt-3*", "gpt-4*", "gpt-oss*"];

/// The parameters that the profile `small` leaves out, each with its tool: those that a model uses
/// rarely and that have a safe default.
const RARE_PARAMETERS: &[(&str, &[&str])] = &[
    ("edit_file", &["edits", "replace_all"]),
    (
        "exec_command",
        &["env", "justification", "login", "max_output_tokens", "shell", "tty", "wait_for"],
    ),
    ("glob_files", &["limit"]),
    ("grep_files", &["case_insensitive", "context", "limit", "multiline", "output_mode"]),
    ("list_dir", &["limit", "offset"]),
    ("write_stdin", &["max_output_tokens", "wait_for"]),
];

/// Returns the profile for small models, which make fewer mistakes with fewer parameters. A call
/// may still have those that are left out.
fn small_profile() -> ModelProfile {
    let profile = ModelProfile::new(["small"]).prefer("edit_file", ["apply_patch"]);
    RARE_PARAMETERS.iter().fold(profile, |profile, (tool, names)| {
        names.iter().fold(profile, |profile, name| profile.without_parameter(*tool, *name))
    })
}

/// Returns the model profiles for a toolset of the standard tools.
///
/// GPT-5 and later, and the Codex models, get `apply_patch` instead of `edit_file` and
/// `write_file`. All other models get `edit_file` and `write_file` instead of `apply_patch`. The model
/// name `small` stands for small models: they get `edit_file`, and tools without rare parameters.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Registry, Session, Toolset};
///
/// # tool_sdk::link!(tool_std);
/// let toolset = Toolset::new(Registry::linked()?)
///     .with_profiles(tool_std::model_profiles())
///     .for_session(&Session::new("docs").with_model("gpt-5"));
///
/// assert!(toolset.get("edit_file").is_none() || toolset.get("apply_patch").is_none());
/// # Ok::<(), tool_sdk::RegistryError>(())
/// ```
#[must_use]
pub fn model_profiles() -> Vec<ModelProfile> {
    vec![
        ModelProfile::new(PATCH_MODELS.iter().copied())
            .prefer("apply_patch", ["edit_file", "write_file"]),
        ModelProfile::new(EDIT_MODELS.iter().copied()).prefer("edit_file", ["apply_patch"]),
        small_profile(),
    ]
}

#[cfg(test)]
mod tests {
    use tool_sdk::{Registry, Session, Toolset, tool, tools};

    use super::*;

    /// A stand-in for the tool of this name.
    #[tool(write, register = false)]
    fn apply_patch() {}

    /// A stand-in for the tool of this name.
    #[tool(write, register = false)]
    fn edit_file() {}

    /// A stand-in for the tool of this name.
    #[tool(write, register = false)]
    fn write_file() {}

    /// A tool that no profile mentions.
    #[tool(read, register = false)]
    fn look() {}

    fn visible_tools(toolset: Toolset, model: &str) -> Vec<String> {
        let toolset = toolset
            .with_profiles(model_profiles())
            .for_session(&Session::new("test").with_model(model));
        toolset.view().definitions().map(|definition| definition.name.to_string()).collect()
    }

    fn all_tools() -> Toolset {
        let tools = tools![apply_patch, edit_file, write_file, look];
        Toolset::new(Registry::builder().add(tools).build().expect("no conflict"))
    }

    // F102
    #[test]
    fn each_family_gets_the_tools_that_it_is_used_to() {
        for model in [
            "gpt-5",
            "GPT-5.2",
            "gpt-5-mini",
            "openai/gpt-5",
            "azure/openai/gpt-5-codex",
            "gpt-6",
            "gpt-10-turbo",
            "codex-mini-latest",
            "openai/codex-1",
        ] {
            assert_eq!(visible_tools(all_tools(), model), ["apply_patch", "look"], "{model}");
        }
        for model in [
            "claude-opus-4-5",
            "anthropic/claude-sonnet-4",
            "gemini-3-pro",
            "gpt-4",
            "gpt-4o",
            "openai/gpt-4.1-mini",
            "gpt-3.5-turbo",
            "chatgpt-4o-latest",
            "gpt-oss-120b",
            "openai/gpt-oss-20b",
            "gpt-oss:20b",
            "qwen3-coder",
            "somebody-else",
        ] {
            assert_eq!(
                visible_tools(all_tools(), model),
                ["edit_file", "look", "write_file"],
                "{model}"
            );
        }
    }

    // F102: a program without one of the tools keeps the other.
    #[test]
    fn keeps_a_tool_whose_alternative_is_not_linked() {
        let (gpt, claude) = ("gpt-5", "claude-opus-4-5");
        assert_eq!(
            visible_tools(all_tools().without(["apply_patch"]), gpt),
            ["edit_file", "look", "write_file"]
        );
        assert_eq!(
            visible_tools(all_tools().without(["edit_file"]), claude),
            ["apply_patch", "look", "write_file"]
        );
    }
}
