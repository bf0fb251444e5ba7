//! Every item of `#[tool(..)]` at once.

use std::time::Duration;

use tool_sdk::{Parallel, Refinement, RiskClass, Session, Truncate, tool, tools};

use crate::pass::definition;

fn refine(session: &Session) -> Refinement {
    Refinement::default().description(session.id().to_owned())
}

#[tool(
    name = "every_item",
    title = "Every item",
    aliases("each-item", "AllItems"),
    category = "samples",
    description = "Has everything.",
    example = r#"{"path": "a"}"#,
    example = r#"{"path": "b", "limit": 2}"#,
    write,
    destructive,
    idempotent,
    open_world,
    permission = "edit",
    approval(
        required = |_, _| true,
        resources = |args, _| vec![args.path.as_str().into()],
        suggest = |args| vec![args.path.clone()],
        covers = |args, pattern| args.path == pattern,
        dangerous = |args| args.limit > 5,
    ),
    validate = |args| match args.limit {
        0 => Err(tool_sdk::InvalidArgs::for_argument("limit", "must not be 0")),
        _ => Ok(()),
    },
    display(
        name = "Every",
        primary = path,
        show(path, limit),
        summary = "With {path:>5} {{and}} {limit}",
        result = |output| output.as_text().into(),
        preview = |args, _| Ok(Some(args.path.as_str().into())),
    ),
    timeout = "2m",
    max_output = "64 KiB",
    truncate = middle,
    parallel = by(path),
    scopes("oracle", "librarian"),
    requires_auth,
    hidden,
    experimental,
    streaming,
    init = refine,
    register = false,
    crate = tool_sdk,
)]
async fn items(
    /// The path.
    path: String,
    /// The limit.
    #[arg(default = 1)]
    limit: u32,
) -> String {
    format!("{path}{limit}")
}

#[test]
fn the_definition_has_them_all() {
    let definition = definition(tools![items]);
    assert_eq!(definition.name.as_str(), "every_item");
    assert_eq!(definition.title.as_deref(), Some("Every item"));
    assert_eq!(
        definition.aliases.iter().map(|it| it.as_str()).collect::<Vec<_>>(),
        ["each-item", "AllItems"]
    );
    assert_eq!(definition.category.as_deref(), Some("samples"));
    assert_eq!(definition.description, "Has everything.");
    assert_eq!(definition.examples.len(), 2);
    assert_eq!(definition.risk.class, RiskClass::Write);
    assert_eq!(definition.permission(), "edit");
    assert_eq!(definition.display.name.as_deref(), Some("Every"));
    assert_eq!(definition.display.primary.as_deref(), Some("path"));
    assert_eq!(definition.display.show, ["path", "limit"]);
    assert_eq!(definition.timeout, Some(Duration::from_secs(120)));
    assert_eq!(definition.max_output, Some(65_536));
    assert_eq!(definition.truncate, Some(Truncate::Middle));
    assert_eq!(definition.parallel(), Parallel::By("path".into()));
    assert_eq!(definition.scopes, ["oracle", "librarian"]);
    let flags = definition.flags;
    assert!(flags.requires_auth && flags.hidden && flags.experimental && flags.streaming);
}

#[test]
fn what_is_not_registered_is_not_found() {
    let registry = tool_sdk::Registry::linked().expect("no two tools share a name");
    assert!(!registry.contains("every_item"));
}
