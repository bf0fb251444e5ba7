//! The tool `skill_update`: changes the description or the text of a skill.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tool_sdk::{Context, Output, Resource, ToolError, tool};

use super::discovery::{FoundSkill, MAX_DOCUMENT_BYTES, SkillLibrary, SkillPlaces};
use super::document::{FILE_NAME, edit_document};
use super::plan::SkillPlan;
use super::{find_skill, unknown_skill};
use crate::packages::host_files::read_text_file;
use crate::packages::planned_calls::{plan_for_call, take_plan};

/// Change the description or the instructions of a skill of the project, or of one that was
/// installed. What is left out stays as it is.
#[tool(
    write,
    category = "skills",
    approval(required = |_, _| true, resources = approval_resources),
    display(
        name = "Update skill",
        primary = name,
        show(name, description),
        summary = "Changing the skill {name}",
        preview = approval_preview
    ),
    parallel = exclusive,
    example = r##"{"name": "release-notes", "body": "# Release notes\n\n1. Run `git log --oneline`."}"##
)]
pub async fn skill_update(
    /// The name of the skill.
    #[arg(length = 1..=64)]
    name: String,
    /// The new description.
    #[arg(length = 1..=1024)]
    description: Option<String>,
    /// The whole new text below the frontmatter.
    #[arg(length = 1..=100_000, alias("content"))]
    body: Option<String>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let change =
        SkillChange { name: &name, description: description.as_deref(), body: body.as_deref() };
    let plan = take_plan(cx, &change, || change.plan(cx))?;
    let places = SkillPlaces::for_session(cx.session());
    let (scope, hash) = (plan.scope.as_str(), plan.change.hash.clone());
    cx.run_blocking(move |stop| {
        stop.hold()?;
        plan.carry_out(&places)
    })
    .await?;
    let text = format!("Changed the skill `{name}`.");
    Ok(Output::text(text)
        .metadata("skill_name", name)
        .metadata("scope", scope)
        .metadata("content_hash", hash))
}

/// Finds a skill of `library` and its folder, where this program may write.
pub(super) fn find_writable(
    name: &str,
    places: &SkillPlaces,
    library: &SkillLibrary,
    cx: &Context,
) -> Result<(FoundSkill, PathBuf), ToolError> {
    let found = find_skill(library, name).ok_or_else(|| unknown_skill(name, library, cx))?;
    let folder =
        found.folder.clone().filter(|folder| places.may_write(folder)).ok_or_else(|| {
            let place = match &found.folder {
                Some(folder) => format!("the user's own, in `{}`", folder.display()),
                None => "a part of this program".to_owned(),
            };
            ToolError::invalid_args(format_args!("the skill `{name}` is {place}"))
                .hint("only skills of the project and installed skills can be changed")
        })?;
    Ok((found.clone(), folder))
}

/// The arguments of a call.
#[derive(Debug)]
struct SkillChange<'a> {
    name: &'a str,
    description: Option<&'a str>,
    body: Option<&'a str>,
}

impl<'a> SkillChange<'a> {
    fn from_args(args: &'a SkillUpdateArgs) -> Self {
        Self {
            name: &args.name,
            description: args.description.as_deref(),
            body: args.body.as_deref(),
        }
    }

    fn plan(&self, cx: &Context) -> Result<SkillPlan, ToolError> {
        let Self { name, description, body } = *self;
        if description.is_none() && body.is_none() {
            return Err(ToolError::invalid_args("nothing is changed")
                .hint("name a new `description` or `body`"));
        }
        let places = SkillPlaces::for_session(cx.session());
        let (found, folder) = find_writable(name, &places, &places.discover(), cx)?;
        let text = read_text_file(&folder.join(FILE_NAME), MAX_DOCUMENT_BYTES).map_err(|why| {
            ToolError::failed(format_args!("cannot read the skill `{name}`: {why}"))
        })?;
        let text = edit_document(&text, description, body)?;
        SkillPlan::for_changed_text(&folder, found.scope, text, &places)
    }
}

fn plan_of_args(args: &SkillUpdateArgs, cx: &Context) -> Result<Arc<SkillPlan>, ToolError> {
    let change = SkillChange::from_args(args);
    plan_for_call(cx, &change, || change.plan(cx))
}

fn approval_resources(args: &SkillUpdateArgs, cx: &Context) -> Vec<Resource> {
    match plan_of_args(args, cx) {
        // Models read it in later sessions, like a skill that a tool writes as a file.
        Ok(plan) => {
            let skill = Resource::new(format!("{}/{}", plan.scope.as_str(), plan.name));
            vec![skill.requires_approval()]
        }
        Err(error) => vec![Resource::new(args.name.as_str()).with_refusal(&error)],
    }
}

fn approval_preview(args: &SkillUpdateArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    Ok(Some(plan_of_args(args, cx)?.preview()))
}
