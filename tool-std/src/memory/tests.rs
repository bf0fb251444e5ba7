//! The memory tools on a memory of their own.

use serde_json::{Value, json};
use tool_sdk::testing::Harness;
use tool_sdk::{ErrorKind, InProcessMemoryStore, MemoryHandle, Mode, Rule, Session, tools};

use super::*;

fn harness() -> Harness {
    let tools = tools![memory_search, memory_get, memory_create, memory_update, memory_delete];
    Harness::new(tools)
        .with_session(Session::new("s").with_project("p"))
        .lend(MemoryHandle::new(InProcessMemoryStore::default()))
}

/// Keeps a note and returns its id.
async fn create(harness: &Harness, arguments: Value) -> String {
    let output = harness.ok("memory_create", arguments).await;
    let text = output.as_text();
    text.split('`').nth(1).unwrap_or_else(|| panic!("{text}")).to_owned()
}

// F152: a note that was kept is found, shown, changed and deleted.
#[tokio::test]
async fn a_note_is_kept_found_changed_and_deleted() {
    let harness = harness();
    let id = create(
        &harness,
        json!({"content": "Deploys never happen on Fridays.", "title": "Deploys",
               "category": "decision", "tags": ["Ops ", "release"]}),
    )
    .await;
    let found = harness.ok("memory_search", json!({"query": "friday deploys"})).await;
    let text = found.as_text();
    assert!(text.starts_with(&format!("{id} (version 1, decision, project, 20")), "{text}");
    assert!(
        text.ends_with(") Deploys #ops #release\n    Deploys never happen on Fridays."),
        "{text}"
    );

    let update = json!({"id": id, "version": 1, "content": "Deploys never happen on Mondays."});
    let output = harness.ok("memory_update", update.clone()).await;
    assert_eq!(output.as_text(), format!("Changed `{id}`; it is at version 2 now."));
    let error = harness.error("memory_update", update).await;
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("is at version 2 now"), "{}", error.message());

    let deleted = harness.ok("memory_delete", json!({"id": id, "version": 2})).await;
    assert_eq!(deleted.as_text(), format!("Deleted `{id}`: Deploys"));
    let found = harness.ok("memory_search", json!({"query": "deploys"})).await;
    assert_eq!(found.as_text(), "(No note matches.)");
}

// F151: an unknown id is an error with a way out, a known one JSON with id and summary.
#[tokio::test]
async fn a_note_is_json_with_id_and_summary() {
    let harness = harness();
    let id = create(&harness, json!({"content": "\nFirst line.\nSecond line."})).await;
    for (tool, argument) in [("memory_get", "id"), ("get_memory", "memory_id")] {
        let output = harness.ok(tool, json!({ argument: id })).await;
        let note: Value = serde_json::from_str(output.as_text()).unwrap();
        assert_eq!((&note["id"], &note["summary"]), (&json!(id), &json!("First line.")));
        assert_eq!((&note["version"], &note["scope"]), (&json!(1), &json!("project")));
        let error = harness.error(tool, json!({ argument: "note-0" })).await;
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(error.message(), "there is no note `note-0`");
    }
}

// F152: ids are not paths.
#[tokio::test]
async fn a_path_is_refused_as_an_id() {
    let harness = harness();
    for id in ["../../etc/passwd", "/etc/passwd", "a/b", ".", "", "a\u{0}b"] {
        for (tool, arguments) in [
            ("memory_get", json!({ "id": id })),
            ("memory_update", json!({ "id": id, "version": 1, "content": "x" })),
            ("memory_delete", json!({ "id": id })),
        ] {
            let error = harness.error(tool, arguments).await;
            assert_eq!(error.kind(), ErrorKind::InvalidArgs, "{tool} {id:?}");
        }
    }
}

#[tokio::test]
async fn matches_come_in_pages() {
    let harness = harness();
    for number in 0..3 {
        create(&harness, json!({"content": format!("entry {number}"), "scope": "user"})).await;
    }
    let text = harness.ok("memory_search", json!({"query": "entry", "limit": 2})).await.into_text();
    assert!(text.ends_with("\n(There are more. Continue with offset 2.)"), "{text}");
    let rest = json!({"query": "entry", "limit": 2, "offset": 2});
    let text = harness.ok("memory_search", rest).await.into_text();
    assert_eq!(text.lines().count(), 2, "{text}");
    let beyond = harness.ok("memory_search", json!({"query": "entry", "offset": 9})).await;
    assert_eq!(beyond.as_text(), "(No more notes.)");
    let project = json!({"query": "entry", "scope": "project"});
    assert_eq!(harness.ok("memory_search", project).await.as_text(), "(No note matches.)");
}

#[tokio::test]
async fn tags_are_checked() {
    let harness = harness();
    for tag in ["", " ", "a,b", "a\nb", &"x".repeat(51)] {
        let error = harness.error("memory_create", json!({"content": "x", "tags": [tag]})).await;
        assert_eq!(error.kind(), ErrorKind::InvalidArgs, "{tag:?}");
        assert!(error.message().contains("is not a tag"), "{}", error.message());
    }
    let error = harness.error("memory_create", json!({"content": "", "title": "a\nb"})).await;
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    assert!(error.message().contains("`content`") && error.message().contains("`title`"));
}

#[tokio::test]
async fn an_update_without_a_change_is_refused() {
    let harness = harness();
    let id = create(&harness, json!({"content": "x"})).await;
    let error = harness.error("memory_update", json!({"id": id, "version": 1})).await;
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    assert_eq!(error.message(), "nothing is changed");
}

// Later sessions read what is kept, so that keeping needs approval and reading does not.
#[tokio::test]
async fn writing_needs_approval_and_reading_does_not() {
    let asks = harness();
    asks.pipeline().set_mode(Mode::Auto);
    asks.ok("memory_search", json!({"query": "x"})).await;
    for (tool, arguments) in [
        ("memory_create", json!({"content": "x"})),
        ("memory_update", json!({"id": "a", "version": 1, "content": "x"})),
        ("memory_delete", json!({"id": "a"})),
    ] {
        assert_eq!(asks.error(tool, arguments).await.kind(), ErrorKind::Denied, "{tool}");
    }
    let rule: Rule = "allow memory(create/project)".parse().unwrap();
    asks.pipeline().set_rules([rule].into_iter().collect());
    create(&asks, json!({"content": "x"})).await;
    let error = asks.error("memory_create", json!({"content": "x", "scope": "user"})).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
}

#[tokio::test]
async fn a_host_without_a_memory_is_a_configuration_error() {
    let harness = Harness::new(tools![memory_search]);
    let error = harness.error("memory_search", json!({})).await;
    assert_eq!(error.kind(), ErrorKind::Config);
}
