//! The tool `skill_list`: lists the skills, the best match for a task first.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tool_sdk::{Context, Output, ToolError, tool};

use super::discovery::{FoundSkill, SkillLibrary, SkillPlaces};
use super::ranking::{MatchKind, rank_skills};
use super::visible_skills;

/// How much of the list a model reads, in bytes of descriptions and names.
const MAX_LIST_BYTES: usize = 12_000;

/// List the skills: instructions for kinds of tasks, which `skill` loads by name.
///
/// Give the task as `query`, in the words of the user; the skills that fit come first. Load the one
/// that fits before you begin.
#[tool(
    read,
    category = "skills",
    display(name = "Skills", primary = query, summary = "Listing the skills"),
    example = r#"{"query": "fill in this PDF form"}"#
)]
pub async fn skill_list(
    /// The task at hand; what fits comes first. Without it, the skills come by name.
    #[arg(default = "", length = ..=1000)]
    query: String,
    /// How skills are matched: by words and triggers, by meaning, or by both.
    #[arg(default = "hybrid", choices("keyword", "semantic", "hybrid"))]
    matching: String,
    /// Only skills of this scope.
    #[arg(choices("project", "user", "built_in"))]
    scope: Option<String>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let places = SkillPlaces::for_session(cx.session());
    let library = cx.run_blocking(move |_| Ok::<_, ToolError>(places.discover())).await?;
    let mut skills = visible_skills(&library, cx);
    if let Some(scope) = &scope {
        skills.retain(|skill| skill.scope.as_str() == scope);
    }
    let kind = match matching.as_str() {
        "keyword" => MatchKind::Keyword,
        "semantic" => MatchKind::Semantic,
        _ => MatchKind::Hybrid,
    };
    let (ranked, matches) = match query.trim() {
        "" => (skills, 0),
        query => rank_skills(query, skills, kind, cx.session()).await,
    };
    let mut text = format_list(&ranked, matches, !query.trim().is_empty());
    describe_rest(&mut text, &library);
    let listed: Vec<Value> = ranked.iter().map(|skill| skill_json(skill)).collect();
    Ok(Output::text(text.trim_end())
        .metadata("skills", ranked.len())
        .metadata("matches", matches)
        .display(json!({
            "skills": listed,
            "untrusted": library.untrusted,
            "warnings": library.warnings,
        })))
}

fn format_list(skills: &[&FoundSkill], matches: usize, is_query: bool) -> String {
    if skills.is_empty() {
        return "(There are no skills.)\n".to_owned();
    }
    let mut text = String::new();
    for (at, skill) in skills.iter().enumerate() {
        if is_query && at == matches {
            text.push_str(if at == 0 { "(None fits by its words.)\n" } else { "(Others:)\n" });
        }
        let document = &skill.document;
        let line =
            format!("{} ({}): {}\n", document.name, skill.scope.as_str(), document.description);
        if text.len() + line.len() > MAX_LIST_BYTES {
            let _ = writeln!(text, "(And {} more; narrow the query.)", skills.len() - at);
            break;
        }
        text.push_str(&line);
    }
    text
}

/// Says which folders wait for the user's trust, and what could not be read.
fn describe_rest(text: &mut String, library: &SkillLibrary) {
    for folder in &library.untrusted {
        let _ = writeln!(
            text,
            "(The skills of {} do not count until the user trusts the folder.)",
            folder.display()
        );
    }
    match library.warnings.len() {
        0 => {}
        count => {
            let _ = writeln!(text, "({count} warnings, such as: {})", library.warnings[0]);
        }
    }
}

fn skill_json(skill: &FoundSkill) -> Value {
    let document = &skill.document;
    json!({
        "name": document.name,
        "description": document.description,
        "scope": skill.scope.as_str(),
        "folder": skill.folder,
        "license": document.license,
        "triggers": document.triggers,
        "warnings": document.warnings,
    })
}
