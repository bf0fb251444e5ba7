//! The tool `plugin_manager`: lists, shows, installs, enables, updates and removes plugins.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tool_sdk::{
    Context, Output, PluginManager, Resource, RiskClass, ToolError, Workspace, WorkspacePath, tool,
};

use super::library::{PluginPlaces, installed_pins};
use super::manifest::MAX_LINE;
use super::plan::{PluginAction, PluginPlan};
use super::plugin_change::PluginChange;
use crate::packages::entry_name::quote_text;
use crate::packages::planned_calls::{plan_for_call, take_plan};
use crate::packages::staging::ReplacementPolicy;

/// The most lines about what a plugin brings that a model reads.
const MAX_LINES: usize = 200;

/// List, show, install, enable, disable, reload, update and uninstall plugins: packages that bring tools,
/// hooks, rules, skills, agents and MCP servers.
///
/// `install` copies a plugin from a folder, a git repository that is on this computer, a zip file, a tar
/// or a tar.gz file; nothing of it is used. `enable` asks the user, who sees what the plugin brings and the
/// text of its files; it runs from a copy of these files until it is enabled again. With `dry_run` you get the plan.
#[tool(
    write,
    category = "plugins",
    permission = "plugin",
    approval(
        required = |args, _| args.changes_something(),
        resources = approval_resources,
        dangerous = |args| args.changes_something(),
        facts = approval_facts
    ),
    display(
        name = "Plugins",
        primary = name,
        show(action, name, source, dry_run),
        summary = "Plugins: {action} {name}",
        preview = approval_preview
    ),
    parallel = exclusive,
    example = r#"{"action": "list"}"#,
    example = r#"{"action": "install", "source": "downloads/notes.zip", "dry_run": true}"#
)]
pub async fn plugin_manager(
    /// What to do.
    #[arg(choices(
        "list",
        "show",
        "install",
        "enable",
        "disable",
        "reload",
        "update",
        "uninstall"
    ))]
    action: String,
    /// The name of the plugin. For `install`, which one, where the source has several.
    #[arg(length = 1..=64)]
    name: Option<String>,
    /// For `install` and `update`: the path of a folder or an archive. `update` takes the source of the
    /// installation by default.
    source: Option<WorkspacePath>,
    /// Only say what would be done.
    #[arg(default = false)]
    dry_run: bool,
    cx: &Context,
) -> Result<Output, ToolError> {
    let places = PluginPlaces::for_session(cx.session());
    let request = PluginRequest { action: &action, name: name.as_deref(), source: source.as_ref() };
    if PluginAction::from_argument(&action).is_none() {
        return match request.name {
            None if action == "show" => Err(missing("name")),
            name if action == "show" => show_plugin(name.unwrap_or_default(), places, cx).await,
            _ => list_plugins(places, cx).await,
        };
    }
    let plan = take_plan(cx, &request, || request.plan(cx))?;
    let with_facts = |text: String| {
        Output::text(text)
            .metadata("plugin", plan.name())
            .metadata("content_hash", plan.change.hash.as_str())
    };
    if dry_run {
        return Ok(with_facts(plan.describe()).metadata("dry_run", true));
    }
    let notes = PluginChange::new(Arc::clone(&plan), places, cx).carry_out().await?;
    let mut text = plan.describe_done();
    if plan.replaces_enabled {
        text += " The version that is enabled stays in use until this one is enabled.";
    } else if matches!(plan.action, PluginAction::Install | PluginAction::Update) {
        text += " It is used when it is enabled.";
    }
    for note in notes {
        let _ = write!(text, "\n{note}");
    }
    Ok(with_facts(text))
}

async fn list_plugins(places: PluginPlaces, cx: &Context) -> Result<Output, ToolError> {
    let library = cx.run_blocking(move |_| Ok::<_, ToolError>(places.find_plugins())).await?;
    let manager = cx.session().service::<PluginManager>();
    let loaded = manager.map(|manager| manager.loaded()).unwrap_or_default();
    let mut text = String::new();
    let mut entries = Vec::new();
    for plugin in &library.plugins {
        let (manifest, status) = (&plugin.manifest, plugin.status.as_str());
        let is_loaded = loaded.iter().any(|scope| scope.id() == manifest.name);
        let _ = writeln!(
            text,
            "{} ({}, {status}): {}",
            manifest.name,
            plugin.origin.as_str(),
            quote_text(&manifest.description, MAX_LINE)
        );
        entries.push(json!({
            "name": manifest.name,
            "version": manifest.version.as_deref().map(|version| quote_text(version, MAX_LINE)),
            "description": quote_text(&manifest.description, MAX_LINE),
            "origin": plugin.origin.as_str(),
            "status": status,
            "loaded": is_loaded,
            "folder": plugin.folder.display().to_string(),
            "content_hash": plugin.hash,
        }));
    }
    if library.plugins.is_empty() {
        text.push_str("There are no plugins.\n");
    }
    let problems: Vec<_> = library.problems.iter().map(|why| quote_text(why, MAX_LINE)).collect();
    for problem in &problems {
        let _ = writeln!(text, "Not used: {problem}");
    }
    for folder in &library.untrusted {
        let _ = writeln!(
            text,
            "The plugins of {} do not count until the user trusts the folder.",
            folder.display()
        );
    }
    Ok(Output::text(text.trim_end())
        .structured(json!({ "plugins": entries, "problems": problems })))
}

async fn show_plugin(name: &str, places: PluginPlaces, cx: &Context) -> Result<Output, ToolError> {
    let name = name.to_owned();
    let plugin = cx.run_blocking(move |_| places.find_plugin(&name)).await?;
    let manifest = &plugin.manifest;
    let mut text = format!(
        "{} {} ({}, {})\n{}\nfolder: {}\ncontent hash: {}\n",
        manifest.name,
        quote_text(manifest.version.as_deref().unwrap_or_default(), MAX_LINE),
        plugin.origin.as_str(),
        plugin.status.as_str(),
        quote_text(&manifest.description, MAX_LINE),
        plugin.folder.display(),
        plugin.hash
    );
    let contents = manifest.describe_contents();
    for line in contents.iter().take(MAX_LINES) {
        let _ = writeln!(text, "brings: {}", quote_text(line, MAX_LINE));
    }
    if contents.len() > MAX_LINES {
        let _ = writeln!(text, "brings: {} more", contents.len() - MAX_LINES);
    }
    for note in manifest.notes.iter().take(MAX_LINES) {
        let _ = writeln!(text, "note: {}", quote_text(note, MAX_LINE));
    }
    Ok(Output::text(text.trim_end()))
}

/// The arguments of a call that changes something.
#[derive(Debug)]
struct PluginRequest<'a> {
    action: &'a str,
    name: Option<&'a str>,
    source: Option<&'a WorkspacePath>,
}

impl<'a> PluginRequest<'a> {
    fn from_args(args: &'a PluginManagerArgs) -> Self {
        Self { action: &args.action, name: args.name.as_deref(), source: args.source.as_ref() }
    }

    fn plan(&self, cx: &Context) -> Result<PluginPlan, ToolError> {
        let places = PluginPlaces::for_session(cx.session());
        let action = PluginAction::from_argument(self.action)
            .ok_or_else(|| ToolError::internal("the action changes nothing"))?;
        if action == PluginAction::Install {
            let source = self.source.ok_or_else(|| missing("source"))?;
            let source = locate(source, cx)?;
            return PluginPlan::for_install(
                &source,
                self.name,
                ReplacementPolicy::Refused,
                &places,
            );
        }
        let name = self.name.ok_or_else(|| missing("name"))?;
        let found = places.find_plugin(name)?;
        if action == PluginAction::Update {
            // Refuses what is not installed.
            let plan = PluginPlan::for_plugin(action, found, &places)?;
            let source = match self.source {
                Some(source) => locate(source, cx)?,
                None => recorded_source(&plan, &places)?,
            };
            let allowed = ReplacementPolicy::Allowed;
            let new = PluginPlan::for_install(&source, Some(name), allowed, &places)?;
            if new.name() != name {
                let text = format_args!("the source has the plugin `{}`, not `{name}`", new.name());
                return Err(ToolError::conflict(text).hint("install that one by itself"));
            }
            if new.change.hash == plan.change.hash {
                let text = format_args!("the plugin `{name}` is up to date");
                return Err(ToolError::conflict(text).hint("nothing is to be done"));
            }
            return Ok(new);
        }
        PluginPlan::for_plugin(action, found, &places)
    }
}

fn missing(name: &str) -> ToolError {
    ToolError::invalid_args(format_args!("`{name}` is missing"))
        .hint(format_args!("this action needs `{name}`"))
}

fn locate(source: &WorkspacePath, cx: &Context) -> Result<PathBuf, ToolError> {
    let workspace = cx.state::<Workspace>()?;
    Ok(source.locate(&workspace)?.absolute_path())
}

/// Returns the source from which a plugin was installed.
fn recorded_source(plan: &PluginPlan, places: &PluginPlaces) -> Result<PathBuf, ToolError> {
    let pin = installed_pins(places.state()?).find(&plan.folder);
    let path = pin.as_ref().and_then(|pin| pin.source.split('`').nth(1)).map(PathBuf::from);
    path.filter(|path| path.exists()).ok_or_else(|| {
        ToolError::not_found(format_args!("the source of `{}` is gone", plan.name()))
            .hint("name one with `source`")
    })
}

impl PluginManagerArgs {
    fn changes_something(&self) -> bool {
        !self.dry_run && PluginAction::from_argument(&self.action).is_some()
    }
}

fn plan_of_args(args: &PluginManagerArgs, cx: &Context) -> Result<Arc<PluginPlan>, ToolError> {
    let request = PluginRequest::from_args(args);
    plan_for_call(cx, &request, || request.plan(cx))
}

/// A source is read, and the plugin of its name is changed.
fn approval_resources(args: &PluginManagerArgs, cx: &Context) -> Vec<Resource> {
    let mut resources = match &args.source {
        Some(source) => source.read_resources(cx),
        None => Vec::new(),
    };
    let name = args.name.as_deref().unwrap_or("*");
    if PluginAction::from_argument(&args.action).is_none() {
        let listing = Resource::new(format!("{}/{name}", args.action));
        resources.push(listing.with_class(RiskClass::Read));
        return resources;
    }
    resources.push(match plan_of_args(args, cx) {
        Ok(plan) => {
            let plugin = Resource::new(format!("{}/{}", args.action, plan.name()));
            match args.changes_something() {
                // Its hooks run in later sessions too, and outside of the sandbox.
                true => plugin.with_class(RiskClass::Write).requires_approval(),
                false => plugin.with_class(RiskClass::Read),
            }
        }
        Err(error) => Resource::new(format!("{}/{name}", args.action))
            .with_class(RiskClass::Read)
            .with_refusal(&error),
    });
    resources
}

/// An approval holds for the content that was shown.
fn approval_facts(args: &PluginManagerArgs, cx: &Context) -> Vec<(&'static str, String)> {
    if PluginAction::from_argument(&args.action).is_none() {
        return Vec::new();
    }
    match plan_of_args(args, cx) {
        Ok(plan) => vec![("content", plan.change.hash.clone())],
        Err(_) => Vec::new(),
    }
}

fn approval_preview(args: &PluginManagerArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    if PluginAction::from_argument(&args.action).is_none() {
        return Ok(None);
    }
    Ok(Some(plan_of_args(args, cx)?.preview()))
}
