//! Tests of pinned definitions, in memory and in a folder that processes share.

use serde_json::json;

use super::*;

fn sight(description: &str, command: &str) -> DefinitionSnapshot {
    DefinitionSnapshot::new(json!({
        "server": { "command": command },
        "name": "t",
        "description": description,
        "inputSchema": { "type": "object" },
    }))
}

fn diff_of(pins: &ToolPins, now: &DefinitionSnapshot) -> Option<DefinitionDiff> {
    pins.diff_since_pinned(None, ("s", "t"), now)
}

// MC2
#[test]
fn diff_is_shown_until_the_definition_is_pinned() {
    let pins = ToolPins::in_memory();
    let first = diff_of(&pins, &sight("Reads.", "a")).unwrap();
    assert!(first.is_first && first.diff.contains("+  \"description\": \"Reads.\""));

    pins.pin_tool(None, ("s", "t"), &sight("Reads.", "a")).unwrap();
    assert_eq!(diff_of(&pins, &sight("Reads.", "a")), None);
    let changed = diff_of(&pins, &sight("Reads all.", "a")).unwrap();
    assert!(!changed.is_first);
    assert!(changed.diff.contains("-  \"description\": \"Reads.\""), "{}", changed.diff);
    assert!(changed.diff.contains("+  \"description\": \"Reads all.\""), "{}", changed.diff);
    assert!(diff_of(&pins, &sight("Reads.", "b")).unwrap().diff.contains("\"command\": \"b\""));

    pins.forget_server("s").unwrap();
    assert!(diff_of(&pins, &sight("Reads.", "a")).unwrap().is_first);
}

// MC2: adding the same server again asks again, and earlier grants are void.
#[test]
fn forgotten_tool_has_a_new_revision() {
    for user in [None, Some("ada")] {
        let folder = tempfile::tempdir().unwrap();
        let of = || ToolPins::in_folder(folder.path().join("mcp"));
        let (pins, tool, now) = (of(), ("s", "t"), sight("Reads.", "a"));
        let mut revisions = Vec::new();
        for _ in 0..3 {
            let revision = pins.revision(tool, &now);
            assert!(!revisions.contains(&revision), "{revisions:?}");
            pins.record_shown(tool, &now);
            pins.record_run(Some(user), tool, &now).unwrap();
            assert_eq!(pins.revision(tool, &now), revision, "it was let run as it was listed");
            assert_eq!(of().revision(tool, &now), revision);
            revisions.push(revision);
            of().forget_server("s").unwrap();
        }
    }
}

// MC2: the diff is short enough to read, and says that there is more.
#[test]
fn long_diff_is_truncated() {
    let long = sight(&"ä".repeat(1 << 20), "a");
    let shown = diff_of(&ToolPins::in_memory(), &long).unwrap().diff;
    assert!(shown.len() < 20_000, "{}", shown.len());
    assert!(shown.contains("\n[2080791 more bytes of this line are left out]\n"), "{shown:.99}");
    assert!(shown.contains("+  \"name\": \"t\""), "what comes after it is there");

    let tool = json!({ "name": "t", "inputSchema": { "enum": vec!["some words"; 50_000] } });
    let shown = diff_of(&ToolPins::in_memory(), &DefinitionSnapshot::new(tool)).unwrap().diff;
    assert!(
        shown.len() < MAX_DIFF_BYTES + 100
            && shown.ends_with(" more bytes of this are left out]\n")
    );
}

// F130
#[test]
fn pin_of_a_user_applies_to_that_user() {
    let pins = ToolPins::in_memory();
    let (first, second) = (sight("Reads.", "a"), sight("Reads all.", "a"));
    let tool = ("s", "t");
    let is_new = |user, now: &DefinitionSnapshot| {
        pins.diff_since_pinned(user, tool, now).map(|it| it.is_first)
    };
    pins.pin_tool(Some("ada"), tool, &first).unwrap();
    assert_eq!(is_new(Some("ada"), &first), None);
    assert_eq!((is_new(Some("bob"), &first), is_new(None, &first)), (Some(true), Some(true)));
    assert_eq!(is_new(Some("ada"), &second), Some(false));

    pins.pin_tool(None, tool, &second).unwrap();
    assert_eq!(is_new(Some("bob"), &second), None, "the host has seen it for everybody");
    assert_eq!(is_new(Some("ada"), &second), Some(false), "ada saw something else last");
    let shown = pins.diff_since_pinned(Some("ada"), tool, &second).unwrap().diff;
    assert!(shown.contains("-  \"description\": \"Reads.\""), "what ada saw: {shown}");

    pins.forget_server("s").unwrap();
    assert_eq!(is_new(Some("ada"), &first), Some(true));
}

// MC2: changing back is a change too, and survives a restart.
#[test]
fn changing_back_is_a_new_revision() {
    let folder = tempfile::tempdir().unwrap();
    let pins = ToolPins::in_folder(folder.path().join("mcp"));
    let (tool, first, second) = (("s", "t"), sight("Reads.", "a"), sight("Writes.", "a"));
    let before = pins.revision(tool, &first);
    pins.pin_tool(None, tool, &first).unwrap();
    assert_eq!(pins.revision(tool, &first), before, "it was let run as it was listed");
    let listed = pins.revision(tool, &second);
    pins.pin_tool(None, tool, &second).unwrap();
    assert_eq!(pins.revision(tool, &second), listed);
    let again = ToolPins::in_folder(folder.path().join("mcp"));
    let back = again.revision(tool, &first);
    assert_ne!(back, before);
    again.pin_tool(Some("ada"), tool, &first).unwrap();
    assert_eq!(again.revision(tool, &first), back);
    again.forget_server("s").unwrap();
    assert_ne!(again.revision(tool, &first), before, "and what is forgotten is not undone");
}

// F130, MC2: neither a pin of the host nor of another user undoes a change.
#[test]
fn pins_of_others_do_not_undo_a_change() {
    for others in [&[None][..], &[Some("bob")], &[None, Some("bob")]] {
        let pins = ToolPins::in_memory();
        let (tool, first, second) = (("s", "t"), sight("Reads.", "a"), sight("Writes.", "a"));
        for user in others {
            pins.pin_tool(*user, tool, &first).unwrap();
        }
        pins.record_run(Some(Some("ada")), tool, &first).unwrap();
        let mut revisions = vec![pins.revision(tool, &first)];
        pins.record_run(Some(Some("carol")), tool, &second).unwrap();
        for now in [&first, &second, &first, &second] {
            let revision = pins.revision(tool, now);
            assert!(!revisions.contains(&revision), "{others:?}: {revisions:?}");
            pins.record_run(Some(Some("ada")), tool, now).unwrap();
            assert_eq!(pins.revision(tool, now), revision, "it was let run as it was listed");
            assert_eq!(pins.diff_since_pinned(Some("ada"), tool, now), None);
            revisions.push(revision);
        }
        assert!(pins.diff_since_pinned(Some("ada"), tool, &first).is_some(), "{others:?}");
    }
}

// MC2: also when the call is denied.
#[test]
fn showing_a_change_records_it() {
    let folder = tempfile::tempdir().unwrap();
    let pins = || ToolPins::in_folder(folder.path().join("mcp"));
    let (tool, first, second) = (("s", "t"), sight("Reads.", "a"), sight("Writes.", "a"));
    pins().record_shown(tool, &first);
    assert!(!folder.path().join("mcp").exists(), "nobody has let it run");
    pins().pin_tool(Some("ada"), tool, &first).unwrap();
    let before = pins().revision(tool, &first);
    pins().record_shown(tool, &first);
    assert_eq!(pins().revision(tool, &first), before);
    pins().record_shown(tool, &second);
    assert_ne!(pins().revision(tool, &first), before);
    assert_eq!(pins().diff_since_pinned(Some("ada"), tool, &first), None, "ada let it run");

    // If the file cannot be written, the change counts for the lifetime of the process.
    std::fs::write(folder.path().join("file"), "").unwrap();
    let nowhere = ToolPins::in_folder(folder.path().join("file"));
    nowhere.lock_cache().pinned.record_change(tool, &first);
    nowhere.record_shown(tool, &second);
    assert_ne!(nowhere.revision(tool, &first), before);
}

// MC2: pins of older versions stay valid, and so do grants of tools that did not change.
#[test]
fn reads_files_without_change_counts() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("mcp");
    let (tool, first, second) = (("s", "t"), sight("Reads.", "a"), sight("Writes.", "a"));
    ToolPins::in_folder(&folder).pin_tool(None, tool, &first).unwrap();
    let path = folder.join("pins.json");
    let old: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let mut old = old.as_object().unwrap().clone();
    assert!(old.remove("last").is_some());
    std::fs::write(&path, Value::Object(old).to_string()).unwrap();

    let pins = ToolPins::in_folder(&folder);
    assert_eq!(diff_of(&pins, &first), None);
    assert_eq!(pins.revision(tool, &first), first.digest);
    assert_eq!(pins.revision(tool, &second), format!("{}.1", second.digest));
    pins.record_shown(tool, &second);
    assert_eq!(pins.revision(tool, &first), format!("{}.2", first.digest));
}

#[test]
fn every_change_has_another_digest() {
    let seen = sight("Reads.", "a").digest;
    assert_eq!(seen, sight("Reads.", "a").digest);
    let long = |end: &str| sight(&("x".repeat(10_000) + end), "a").digest;
    let others = [sight("Reads all.", "a").digest, sight("Reads.", "b").digest, long("")];
    assert!(!others.contains(&seen) && long("a") != long("b"));
}

#[test]
fn pins_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("mcp");
    let now = sight("Reads.", "a");
    ToolPins::in_folder(&folder).pin_tool(None, ("s", "t"), &now).unwrap();
    let others = ToolPins::in_folder(&folder);
    assert_eq!(diff_of(&others, &now), None);

    // Two processes do not overwrite each other's pins.
    let (one, two) = (ToolPins::in_folder(&folder), ToolPins::in_folder(&folder));
    assert_eq!((diff_of(&one, &now), diff_of(&two, &now)), (None, None));
    one.pin_tool(None, ("s", "x"), &now).unwrap();
    two.pin_tool(None, ("s", "y"), &now).unwrap();
    let third = ToolPins::in_folder(&folder);
    assert!(
        ["t", "x", "y"]
            .iter()
            .all(|tool| third.diff_since_pinned(None, ("s", tool), &now).is_none())
    );
}

// MC2, AP6: changes that another process records are seen at the next read.
#[test]
fn processes_share_pins() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("mcp");
    let (tool, first, second) = (("s", "t"), sight("Reads.", "a"), sight("Writes.", "a"));
    let (one, two) = (ToolPins::in_folder(&folder), ToolPins::in_folder(&folder));
    assert!(diff_of(&two, &first).unwrap().is_first);
    one.pin_tool(None, tool, &first).unwrap();
    assert_eq!(diff_of(&two, &first), None);
    let before = two.revision(tool, &first);
    one.record_shown(tool, &second);
    assert_ne!(two.revision(tool, &first), before);
    one.forget_server("s").unwrap();
    assert!(diff_of(&two, &first).unwrap().is_first);
    assert_ne!(two.revision(tool, &first), before, "and what is forgotten is not undone");

    // The file is read again only when it changed; change counts survive its removal.
    let version = |pins: &ToolPins| pins.lock_cache().version.as_ref().map(|it| format!("{it:?}"));
    let read = version(&two);
    assert!(
        two.0
            .file
            .as_ref()
            .unwrap()
            .read_if_changed(two.lock_cache().version.as_ref())
            .unwrap()
            .is_none()
    );
    two.pin_tool(None, tool, &second).unwrap();
    assert_ne!(version(&two), read);
    assert!(
        two.0
            .file
            .as_ref()
            .unwrap()
            .read_if_changed(two.lock_cache().version.as_ref())
            .unwrap()
            .is_none()
    );
    std::fs::remove_file(folder.join("pins.json")).unwrap();
    assert!(diff_of(&two, &second).unwrap().is_first);
    assert_ne!(two.revision(tool, &first), before);
}

#[cfg(unix)]
#[test]
fn ignores_files_that_others_could_write() {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("mcp");
    let now = sight("Reads.", "a");
    ToolPins::in_folder(&folder).pin_tool(None, ("s", "t"), &now).unwrap();
    let path = folder.join("pins.json");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    assert!(diff_of(&ToolPins::in_folder(&folder), &now).is_some());
    fs::remove_file(&path).unwrap();
    fs::write(&path, "{").unwrap();
    assert!(diff_of(&ToolPins::in_folder(&folder), &now).is_some(), "no JSON");
}
#[test]
fn unparsable_file_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("mcp");
    let now = sight("Reads.", "a");
    for later in ["{", r#"{"version":2,"servers":{}}"#] {
        let pins = ToolPins::in_folder(&folder);
        pins.pin_tool(None, ("s", "t"), &now).unwrap();
        std::fs::write(folder.join("pins.json"), later).unwrap();
        ToolPins::in_folder(&folder).pin_tool(None, ("s", "t"), &now).unwrap();
        assert_eq!(diff_of(&ToolPins::in_folder(&folder), &now), None);
        let files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
        let mut kept = files.map(|file| std::fs::read_to_string(file).unwrap());
        assert!(kept.any(|text| text == later), "{later}");
    }
}

// MC2: a run by rule or mode does not pin the definition, but records the change.
#[test]
fn run_without_a_prompt_does_not_pin() {
    let (pins, tool) = (ToolPins::in_memory(), ("s", "t"));
    let (first, second) = (sight("Reads.", "a"), sight("Writes.", "a"));
    pins.record_run(None, tool, &first).unwrap();
    assert!(!pins.is_pinned(None, tool, &first));
    pins.record_run(Some(None), tool, &first).unwrap();
    assert!(pins.is_pinned(None, tool, &first));
    let before = pins.revision(tool, &first);
    pins.record_run(None, tool, &second).unwrap();
    assert!(pins.is_pinned(None, tool, &first) && !pins.is_pinned(None, tool, &second));
    assert_ne!(pins.revision(tool, &first), before);
}

#[test]
fn approval_of_another_definition_is_void() {
    let (pins, tool) = (ToolPins::in_memory(), ("s", "t"));
    let (first, second) = (sight("Reads.", "a"), sight("Writes.", "a"));
    let before = pins.revision(tool, &first);
    assert!(!pins.is_approval_void(|_, tool| tool == "t", &before), "nothing is known of it");
    pins.pin_tool(None, tool, &first).unwrap();
    assert!(!pins.is_approval_void(|_, tool| tool == "t", &before));
    pins.record_shown(tool, &second);
    assert!(
        pins.is_approval_void(|_, tool| tool == "t", &before)
            && !pins.is_approval_void(|_, tool| tool == "u", &before)
    );
    assert!(!pins.is_approval_void(|_, tool| tool == "t", &pins.revision(tool, &second)));
    pins.forget_server("s").unwrap();
    assert!(pins.is_approval_void(|_, tool| tool == "t", &pins.revision(("s", "x"), &second)));
}
