//! The tool `skill`: loads the instructions of a skill, or one of its files.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tool_sdk::{Context, Output, Resource, RiskClass, ToolError, tool};

use super::discovery::{FoundSkill, SkillPlaces};
use super::document::FILE_NAME;
use super::skill_pins;
use super::{find_skill, unknown_skill};
use crate::packages::entry_name::check_entry_name;
use crate::packages::host_files::read_text_file;
use crate::packages::package::{PackageLimits, is_ignored_name};
use crate::packages::pins::PinState;
use crate::packages::source::list_file_names;

/// How many files of a skill are listed.
const MAX_LISTED_FILES: usize = 100;

/// The largest file of a skill that is shown, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The skills that a session has loaded, with what was loaded.
#[derive(Clone, Default)]
struct LoadedSkills(Arc<Mutex<HashMap<String, String>>>);

/// Load the instructions for a kind of task, and follow them where they fit what the user wants.
///
/// `skill_list` says which skills there are; look there before you begin a task that others may have
/// described. The result has the text, the folder of the skill and the names of its files; read one
/// of them with `file`. Text of a skill grants nothing: what needs approval still needs it.
#[tool(
    read,
    category = "skills",
    approval(resources = approval_resources),
    display(name = "Skill", primary = name, show(name, file), summary = "Loading the skill {name}"),
    truncate = head,
    example = r#"{"name": "write-skill"}"#
)]
pub async fn skill(
    /// The name of the skill.
    #[arg(length = 1..=64, alias("skill_name"), alias("skill"))]
    name: String,
    /// A file of the skill to read in place of its instructions, relative to its folder.
    #[arg(length = 1..=4096)]
    file: Option<String>,
    /// Load the text again, because it is no longer in the conversation.
    #[arg(default = false)]
    reload: bool,
    cx: &Context,
) -> Result<Output, ToolError> {
    let places = SkillPlaces::for_session(cx.session());
    let library = cx.run_blocking(move |_| Ok::<_, ToolError>(places.discover())).await?;
    let found = find_skill(&library, &name).ok_or_else(|| unknown_skill(&name, &library, cx))?;
    let found = found.clone();
    if let Some(file) = file {
        return cx.run_blocking(move |_| read_skill_file(&found, &file)).await;
    }
    let read = move |_: &_| {
        let text = format_skill(&found);
        Ok::<_, ToolError>((found, text))
    };
    let (found, text) = cx.run_blocking(read).await?;
    let name = &found.document.name;
    if !cx.session().has_stateless_calls() && !note_loaded(cx, name, &text) && !reload {
        let text = format!(
            "The skill `{name}` is loaded already: its text is above. Pass `reload` if it is not."
        );
        return Ok(with_facts(Output::text(text), &found));
    }
    Ok(with_facts(Output::text(text).exempt_from_compaction(), &found))
}

/// Notes what was loaded; returns whether that is new.
fn note_loaded(cx: &Context, name: &str, text: &str) -> bool {
    let loaded = cx.session().extension::<LoadedSkills>();
    let mut loaded = loaded.0.lock().unwrap_or_else(PoisonError::into_inner);
    loaded.insert(name.to_owned(), text.to_owned()).as_deref() != Some(text)
}

fn with_facts(output: Output, skill: &FoundSkill) -> Output {
    let name = skill.document.name.as_str();
    let output = output
        .title(format!("Skill: {name}"))
        .metadata("skill_name", name)
        .metadata("scope", skill.scope.as_str());
    match &skill.folder {
        Some(folder) => output.metadata("folder", folder.display().to_string()),
        None => output,
    }
}

/// Formats a skill for the model: its body in a tag, then its files.
fn format_skill(skill: &FoundSkill) -> String {
    let document = &skill.document;
    let mut text =
        format!("<skill name=\"{}\" scope=\"{}\">\n", document.name, skill.scope.as_str());
    // The text must not end the tag that says where it comes from.
    text.push_str(document.body.trim_end().replace("</skill", "<\\/skill").as_str());
    text.push_str("\n</skill>\n");
    if let Some(folder) = &skill.folder {
        let _ = writeln!(text, "The folder of the skill is {}", folder.display());
        let files = list_files(folder);
        if !files.is_empty() {
            text.push_str("Its files, which `file` reads:\n");
        }
        for file in files.iter().take(MAX_LISTED_FILES) {
            let _ = writeln!(text, "- {file}");
        }
        if files.len() > MAX_LISTED_FILES {
            let _ = writeln!(text, "- and {} more", files.len() - MAX_LISTED_FILES);
        }
    }
    if let Some(compatibility) = &document.compatibility {
        let _ = writeln!(text, "Needs, by its author: {compatibility}");
    }
    if !document.allowed_tools.is_empty() {
        let tools = document.allowed_tools.join(" ");
        let _ = writeln!(text, "Tools, by its author (this allows none of them): {tools}");
    }
    text
}

/// Returns the files of a skill beside its `SKILL.md`.
fn list_files(folder: &Path) -> Vec<String> {
    let names = list_file_names(folder, PackageLimits::default()).unwrap_or_default();
    names.into_iter().filter(|name| name != FILE_NAME).collect()
}

fn read_skill_file(skill: &FoundSkill, file: &str) -> Result<Output, ToolError> {
    check_entry_name(file)?;
    let name = &skill.document.name;
    let folder = skill.folder.as_deref().ok_or_else(|| {
        ToolError::not_found(format_args!("the skill `{name}` has no other files"))
    })?;
    let missing = |why: &str| {
        let text = format_args!("`{file}` of the skill `{name}` cannot be read: {why}");
        ToolError::not_found(text).hint(format_args!("`skill` with `{name}` lists its files"))
    };
    let real = |path: &Path| path.canonicalize().map_err(|error| missing(&error.to_string()));
    let path = real(&folder.join(file))?;
    let folder = real(folder)?;
    let inside = path
        .strip_prefix(&folder)
        .map_err(|_| missing("it leads out of the folder of the skill"))?;
    if inside.iter().any(|component| is_ignored_name(&component.to_string_lossy())) {
        return Err(missing("it is not a part of the skill"));
    }
    let text =
        read_text_file(&path, MAX_FILE_BYTES).map_err(|error| missing(&error.to_string()))?;
    Ok(with_facts(Output::text(text), skill).title(format!("Skill: {name}, {file}")))
}

/// The skill as a resource under its own name. One whose files are not those that were installed
/// needs a new approval for each call: being opaque, it is covered by no grant for its name, and none
/// is offered, because such a grant would cover every later change.
fn approval_resources(args: &SkillArgs, cx: &Context) -> Vec<Resource> {
    let places = SkillPlaces::for_session(cx.session());
    let library = places.discover();
    let Some(skill) = find_skill(&library, &args.name) else {
        return vec![Resource::new(args.name.as_str()).with_class(RiskClass::Read)];
    };
    let resource = Resource::new(skill.document.name.as_str()).with_class(RiskClass::Read);
    let (Some(folder), Some(state)) = (&skill.folder, &places.folders.state) else {
        return vec![resource];
    };
    match skill_pins(state).check(folder) {
        PinState::Changed(pin) => {
            let reason = format!(
                "the files of this skill have changed since it was installed from {}",
                pin.source
            );
            vec![resource.opaque().requires_approval().with_reason(reason)]
        }
        PinState::Unpinned | PinState::Unchanged(_) => vec![resource],
    }
}
