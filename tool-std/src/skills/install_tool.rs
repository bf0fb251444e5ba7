//! The tool `skill_install`: installs a skill from a folder or an archive.

use std::sync::Arc;

use serde_json::Value;
use tool_sdk::{Context, Output, Resource, RiskClass, ToolError, Workspace, WorkspacePath, tool};

use super::discovery::{SkillPlaces, SkillScope};
use super::plan::{InstallRequest, SkillPlan};
use crate::packages::planned_calls::{plan_for_call, take_plan};
use crate::packages::staging::ReplacementPolicy;

/// Install a skill from a folder, a git repository that is on this computer, a zip file, an MCP
/// bundle (mcpb), a tar or a tar.gz file.
///
/// The prompt shows up to 2 MiB of text; other files are named with their size. Nothing of the skill
/// runs, and nothing is granted. With `dry_run` you get the plan: the files, the content hash, the
/// lines that deserve a look and the same text.
#[tool(
    write,
    category = "skills",
    approval(
        required = |args, _| !args.dry_run,
        resources = approval_resources,
        dangerous = |args| !args.dry_run,
        facts = approval_facts
    ),
    display(
        name = "Install skill",
        primary = source,
        show(source, skill, scope, replace, dry_run),
        summary = "Installing a skill from {source}",
        preview = approval_preview
    ),
    parallel = exclusive,
    example = r#"{"source": "downloads/pdf-forms.zip", "dry_run": true}"#
)]
pub async fn skill_install(
    /// Path of the folder or of the archive.
    source: WorkspacePath,
    /// Which skill, where the source has several: its name or its folder in the source.
    #[arg(length = 1..=4096)]
    skill: Option<String>,
    /// Whether it is installed for this project, or for all projects of the user.
    #[arg(default = "user", choices("project", "user"))]
    scope: String,
    /// Replace a skill of that name which is installed already.
    #[arg(default = false)]
    replace: bool,
    /// Only say what would be installed.
    #[arg(default = false)]
    dry_run: bool,
    cx: &Context,
) -> Result<Output, ToolError> {
    let request =
        SourceRequest { source: &source, skill: skill.as_deref(), scope: &scope, replace };
    let plan = take_plan(cx, &request, || request.plan(cx))?;
    let output = |text: String, plan: &SkillPlan| {
        Output::text(text)
            .metadata("skill_name", plan.name.as_str())
            .metadata("scope", plan.scope.as_str())
            .metadata("content_hash", plan.change.hash.as_str())
    };
    if dry_run {
        return Ok(output(plan.describe(), &plan).metadata("dry_run", true));
    }
    let places = SkillPlaces::for_session(cx.session());
    let waits = !places.counts(plan.scope);
    let did = if plan.replaces() { "Replaced" } else { "Installed" };
    let mut text = format!(
        "{did} the skill `{}` in {}. Its content hash is {}.",
        plan.name,
        plan.folder().display(),
        plan.change.hash
    );
    if waits {
        text.push_str(" It counts when the user trusts the folder of the project.");
    }
    let done = plan.clone();
    cx.run_blocking(move |stop| {
        stop.hold()?;
        plan.carry_out(&places)
    })
    .await?;
    Ok(output(text, &done))
}

/// The arguments of a call.
#[derive(Debug)]
struct SourceRequest<'a> {
    source: &'a WorkspacePath,
    skill: Option<&'a str>,
    scope: &'a str,
    replace: bool,
}

impl<'a> SourceRequest<'a> {
    fn from_args(args: &'a SkillInstallArgs) -> Self {
        Self {
            source: &args.source,
            skill: args.skill.as_deref(),
            scope: &args.scope,
            replace: args.replace,
        }
    }

    fn plan(&self, cx: &Context) -> Result<SkillPlan, ToolError> {
        let workspace = cx.state::<Workspace>()?;
        let source = self.source.locate(&workspace)?.absolute_path();
        let request = InstallRequest {
            source: &source,
            skill: self.skill,
            scope: SkillScope::from_argument(self.scope),
            replacement: if self.replace {
                ReplacementPolicy::Allowed
            } else {
                ReplacementPolicy::Refused
            },
        };
        SkillPlan::for_install(request, &SkillPlaces::for_session(cx.session()))
    }
}

fn plan_of_args(args: &SkillInstallArgs, cx: &Context) -> Result<Arc<SkillPlan>, ToolError> {
    let request = SourceRequest::from_args(args);
    plan_for_call(cx, &request, || request.plan(cx))
}

/// The source is read, and the skill of its name is written.
fn approval_resources(args: &SkillInstallArgs, cx: &Context) -> Vec<Resource> {
    let mut resources = args.source.read_resources(cx);
    match plan_of_args(args, cx) {
        Ok(plan) => {
            let skill = Resource::new(format!("{}/{}", plan.scope.as_str(), plan.name));
            resources.push(match args.dry_run {
                true => skill.with_class(RiskClass::Read),
                // Models read it in later sessions, like a skill that a tool writes as a file.
                false => skill.with_class(RiskClass::Write).requires_approval(),
            });
        }
        Err(error) => {
            let skill = Resource::new(args.source.as_str()).with_class(RiskClass::Read);
            resources.push(skill.with_refusal(&error));
        }
    }
    resources
}

/// An approval holds for the content that was shown.
fn approval_facts(args: &SkillInstallArgs, cx: &Context) -> Vec<(&'static str, String)> {
    match plan_of_args(args, cx) {
        Ok(plan) => vec![("content", plan.change.hash.clone())],
        Err(_) => Vec::new(),
    }
}

fn approval_preview(args: &SkillInstallArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    Ok(Some(plan_of_args(args, cx)?.preview()))
}
