//! The tool `skill_create`: writes a new skill.

use std::sync::Arc;

use serde_json::Value;
use tool_sdk::{Context, Output, Resource, ToolError, tool};

use super::discovery::{SkillPlaces, SkillScope};
use super::document::{MAX_DESCRIPTION_CHARS, format_document};
use super::plan::SkillPlan;
use crate::packages::entry_name::is_specified_name;
use crate::packages::planned_calls::{plan_for_call, take_plan};

/// Write a skill: instructions that later sessions find and follow for tasks of this kind.
///
/// Load the skill `write-skill` first; it says what a good one is like. One kind of task for each
/// skill. The description says what it does and when to use it, because that is all that is seen
/// before it is loaded.
#[tool(
    write,
    category = "skills",
    approval(required = |_, _| true, resources = approval_resources),
    display(
        name = "Create skill",
        primary = name,
        show(name, scope, description),
        summary = "Writing the skill {name}",
        preview = approval_preview
    ),
    parallel = exclusive,
    example = r##"{"name": "release-notes", "description": "Writes release notes from the git log. Use it when a version is released.", "body": "# Release notes\n\n1. Run `git log`."}"##
)]
pub async fn skill_create(
    /// The name: 1 to 64 of a-z, 0-9 and single hyphens.
    #[arg(length = 1..=64)]
    name: String,
    /// What it does and when to use it, in one or two sentences.
    #[arg(length = 1..=1024)]
    description: String,
    /// The instructions, as Markdown.
    #[arg(length = 1..=100_000, alias("content"))]
    body: String,
    /// Words and phrases of requests that it fits.
    #[arg(default = vec![], length = ..=32)]
    triggers: Vec<String>,
    /// Whether it belongs to this project, or to all projects of the user.
    #[arg(default = "project", choices("project", "user"))]
    scope: String,
    cx: &Context,
) -> Result<Output, ToolError> {
    let request = NewSkill {
        name: &name,
        description: &description,
        body: &body,
        triggers: &triggers,
        scope: &scope,
    };
    let plan = take_plan(cx, &request, || request.plan(cx))?;
    let places = SkillPlaces::for_session(cx.session());
    let (folder, waits) = (plan.folder(), !places.counts(plan.scope));
    cx.run_blocking(move |stop| {
        stop.hold()?;
        plan.carry_out(&places)
    })
    .await?;
    let mut text = format!("Created the skill `{name}` in {}.", folder.display());
    if waits {
        text.push_str(" It counts when the user trusts the folder of the project.");
    }
    Ok(Output::text(text).metadata("skill_name", name).metadata("scope", scope))
}

/// The arguments of a call.
#[derive(Debug)]
struct NewSkill<'a> {
    name: &'a str,
    description: &'a str,
    body: &'a str,
    triggers: &'a [String],
    scope: &'a str,
}

impl<'a> NewSkill<'a> {
    fn from_args(args: &'a SkillCreateArgs) -> Self {
        Self {
            name: &args.name,
            description: &args.description,
            body: &args.body,
            triggers: &args.triggers,
            scope: &args.scope,
        }
    }

    fn plan(&self, cx: &Context) -> Result<SkillPlan, ToolError> {
        if !is_specified_name(self.name) {
            return Err(ToolError::invalid(
                "name",
                "a name has 1 to 64 of a-z, 0-9 and single hyphens inside, such as `release-notes`",
            ));
        }
        if self.description.chars().count() > MAX_DESCRIPTION_CHARS {
            return Err(ToolError::invalid("description", "it is longer than 1024 characters"));
        }
        if self.triggers.iter().any(|trigger| trigger.contains([',', '\n'])) {
            return Err(ToolError::invalid("triggers", "a trigger contains no comma"));
        }
        let scope = SkillScope::from_argument(self.scope);
        let text = format_document(self.name, self.description, self.triggers, self.body);
        let places = SkillPlaces::for_session(cx.session());
        let plan = SkillPlan::for_text(text, self.name, scope, &places)?;
        if let Some(warning) = plan.document.warnings.first() {
            return Err(ToolError::invalid_args(warning));
        }
        if plan.replaces() {
            let text = format_args!("there is a skill `{}` already", self.name);
            return Err(ToolError::conflict(text).hint("change it with `skill_update`"));
        }
        Ok(plan)
    }
}

fn plan_of_args(args: &SkillCreateArgs, cx: &Context) -> Result<Arc<SkillPlan>, ToolError> {
    let request = NewSkill::from_args(args);
    plan_for_call(cx, &request, || request.plan(cx))
}

fn approval_resources(args: &SkillCreateArgs, cx: &Context) -> Vec<Resource> {
    // Models read it in later sessions, like a skill that a tool writes as a file.
    let resource = Resource::new(format!("{}/{}", args.scope, args.name)).requires_approval();
    match plan_of_args(args, cx) {
        Ok(_) => vec![resource],
        Err(error) => vec![resource.with_refusal(&error)],
    }
}

fn approval_preview(args: &SkillCreateArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    Ok(Some(plan_of_args(args, cx)?.preview()))
}
