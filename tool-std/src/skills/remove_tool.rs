//! The tool `skill_remove`: removes a skill with its files.

use serde_json::{Value, json};
use tool_sdk::{Context, Output, Resource, ToolError, tool};

use super::discovery::SkillPlaces;
use super::skill_pins;
use super::update_tool::find_writable;
use crate::packages::package::PackageLimits;
use crate::packages::source::read_source;
use crate::packages::staging::remove_package;

/// Remove a skill of the project, or one that was installed, with all of its files. They cannot be
/// restored.
#[tool(
    write,
    destructive,
    category = "skills",
    approval(required = |_, _| true, resources = approval_resources),
    display(
        name = "Remove skill",
        primary = name,
        show(name),
        summary = "Removing the skill {name}",
        preview = approval_preview
    ),
    parallel = exclusive
)]
pub async fn skill_remove(
    /// The name of the skill.
    #[arg(length = 1..=64)]
    name: String,
    cx: &Context,
) -> Result<Output, ToolError> {
    let places = SkillPlaces::for_session(cx.session());
    let discover = move |_: &_| {
        let library = places.discover();
        Ok::<_, ToolError>((places, library))
    };
    let (places, library) = cx.run_blocking(discover).await?;
    let (found, folder) = find_writable(&name, &places, &library, cx)?;
    let name = found.document.name;
    let text = format!("Removed the skill `{name}`, which was in {}.", folder.display());
    cx.run_blocking(move |stop| {
        stop.hold()?;
        remove_package(&folder)?;
        if let Some(state) = &places.folders.state {
            skill_pins(state).remove(&folder);
        }
        Ok::<_, ToolError>(())
    })
    .await?;
    Ok(Output::text(text).metadata("skill_name", name))
}

fn approval_resources(args: &SkillRemoveArgs, cx: &Context) -> Vec<Resource> {
    let places = SkillPlaces::for_session(cx.session());
    match find_writable(&args.name, &places, &places.discover(), cx) {
        Ok((found, _)) => {
            let skill = format!("{}/{}", found.scope.as_str(), found.document.name);
            vec![Resource::new(skill).requires_approval()]
        }
        Err(error) => vec![Resource::new(args.name.as_str()).with_refusal(&error)],
    }
}

fn approval_preview(args: &SkillRemoveArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    let places = SkillPlaces::for_session(cx.session());
    let (_, folder) = find_writable(&args.name, &places, &places.discover(), cx)?;
    let package = read_source(&folder, PackageLimits::default())?.package;
    let files: Vec<&String> = package.files.keys().take(200).collect();
    Ok(Some(json!({ "folder of the skill": folder.display().to_string(), "files": files })))
}
