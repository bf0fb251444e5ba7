//! Paths that serde decodes from a buffer, or that a type decodes by itself: each is authorized.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use tool_sdk::{Args, WorkspacePath, tool};

use super::*;

#[derive(Deserialize, JsonSchema)]
struct Target {
    /// The file.
    path: WorkspacePath,
}

#[derive(Deserialize, JsonSchema)]
struct Flattened {
    /// Whether to sync it.
    #[expect(dead_code, reason = "only decoded")]
    sync: Option<bool>,
    #[serde(flatten)]
    target: Target,
}

/// Empty a file below `flatten`.
#[tool(write, register = false)]
async fn clear_flattened(args: Args<Flattened>) -> String {
    args.target.path.to_string()
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum OneOrMany {
    One(WorkspacePath),
    Many(Vec<WorkspacePath>),
}

/// Empty one file or many.
#[tool(write, register = false)]
async fn clear_untagged(
    /// The files.
    paths: OneOrMany,
) -> String {
    match paths {
        OneOrMany::One(path) => path.to_string(),
        OneOrMany::Many(paths) => format!("{paths:?}"),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Action {
    Clear { path: WorkspacePath },
}

/// Empty a file by an internally tagged enum.
#[tool(write, register = false)]
async fn clear_tagged(
    /// What to do.
    action: Action,
) -> String {
    let Action::Clear { path } = action;
    path.to_string()
}

#[derive(JsonSchema)]
#[schemars(with = "String")]
struct Located {
    path: WorkspacePath,
    line: u32,
}

/// Decodes `PATH:LINE`.
impl<'de> Deserialize<'de> for Located {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (path, line) = text.split_once(':').unwrap_or((&text, "1"));
        Ok(Self { path: path.into(), line: line.parse().map_err(serde::de::Error::custom)? })
    }
}

/// Empty a file by a type that decodes itself.
#[tool(write, register = false)]
async fn clear_custom(
    /// The place, as `PATH:LINE`.
    place: Located,
) -> String {
    format!("{}:{}", place.path, place.line)
}

#[derive(Deserialize, JsonSchema)]
struct WithSchema {
    /// The file.
    #[schemars(with = "String")]
    path: WorkspacePath,
}

/// Empty a file whose schema comes from another type.
#[tool(write, register = false)]
async fn clear_with_schema(args: Args<WithSchema>) -> String {
    args.path.to_string()
}

#[derive(Deserialize, JsonSchema)]
struct WithDefault {
    /// The file.
    #[serde(default = "settings_file")]
    path: WorkspacePath,
}

fn settings_file() -> WorkspacePath {
    "secrets/settings".into()
}

/// Empty a file that is the default of a field.
#[tool(write, register = false)]
async fn clear_default(args: Args<WithDefault>) -> String {
    args.path.to_string()
}

// F77: where serde buffers a value, or a type decodes itself, a path is authorized all the same.
#[tokio::test]
async fn authorizes_a_path_however_it_is_decoded() {
    let folder = TempDir::new().unwrap();
    let session = Session::new("s").with_service(Workspace::open([folder.path()]).unwrap());
    let tools = tools![
        clear_flattened,
        clear_untagged,
        clear_tagged,
        clear_custom,
        clear_with_schema,
        clear_default
    ];
    let rules = ["allow *", "deny edit(secrets/*)", "deny clear_*(secrets/*)"];
    let rules = rules.iter().map(|rule| rule.parse::<Rule>().unwrap());
    let pipeline = Pipeline::new(Registry::builder().add(tools).build().unwrap()).rules(rules);
    type MakeArguments = fn(&str) -> Value;
    let nested: [(&str, MakeArguments); 7] = [
        ("clear_flattened", |path| json!({ "sync": true, "path": path })),
        ("clear_untagged", |path| json!({ "paths": path })),
        ("clear_untagged", |path| json!({ "paths": ["src/a", path] })),
        ("clear_tagged", |path| json!({ "action": { "kind": "clear", "path": path } })),
        ("clear_custom", |path| json!({ "place": format!("{path}:3") })),
        ("clear_with_schema", |path| json!({ "path": path })),
        ("clear_default", |path| json!({ "path": path })),
    ];
    let check = async |tool: &str, arguments: Value| {
        let text = arguments.to_string();
        let checked = pipeline.check(&session, Call::new(tool, text.as_str())).await.unwrap();
        serde_json::to_value(checked).unwrap()
    };
    for (tool, arguments) in nested {
        for (path, expected) in [("src/a", "allow"), ("secrets/key", "deny")] {
            let checked = check(tool, arguments(path)).await;
            assert_eq!(checked["decision"], expected, "{tool} {path}: {checked}");
            let resources = checked["subjects"].as_array().unwrap();
            assert!(resources.iter().any(|it| it == path), "{tool} {path}: {checked}");
        }
    }
    let checked = check("clear_default", json!({})).await;
    assert_eq!(checked["decision"], "deny", "the default of a field: {checked}");
}
