//! What a plugin denies holds while its files or the records about it are gone or broken, and while it changes.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use tool_sdk::{ErrorKind, Hook, HookContext, HookDecision, HookPriority, ToolError};

use super::{MANIFEST, folders, write, write_plugin};
use crate::plugins::PackagePlugin;
use crate::plugins::plan::{PluginAction, PluginPlan};
use crate::plugins::plugin_change::{self, PluginChange};

// No change of a project's files switches the denials of an enabled plugin off.
#[tokio::test]
async fn a_changed_plugin_still_denies() {
    let folders = folders();
    let plugin = folders.root.join(".agents/plugins/words");
    write_plugin(&plugin);
    write(&plugin.join("plugin.toml"), &MANIFEST.replace("deny forbidden_*", "deny read_file(*)"));
    write(&folders.root.join("free.txt"), "x");
    folders.trust();
    folders.program().manage("enable", "words").await;
    let changes: [&dyn Fn(); 6] = [
        &|| (),
        &|| write(&plugin.join("new.txt"), "x"),
        &|| write(&plugin.join("plugin.toml"), "name = \"other\""),
        &|| write(&plugin.join("plugin.toml"), "no manifest"),
        &|| std::os::unix::fs::symlink("/etc", plugin.join("link")).unwrap(),
        &|| fs::remove_dir_all(&plugin).unwrap(),
    ];
    for (number, change) in changes.iter().enumerate() {
        change();
        let program = folders.program();
        let error = program.error("read_file", json!({ "path": "free.txt" })).await;
        assert_eq!(error.kind(), ErrorKind::Denied, "{number}: {error}");
        assert!(error.to_string().contains("plugin `words`"), "{number}: {error}");
        assert_eq!(program.problems.len(), usize::from(number > 0), "{:?}", program.problems);
        program.ok("words_count", json!({ "text": "x" })).await;
    }
    // The way out.
    let program = folders.program();
    program.manage("disable", "words").await;
    program.ok("read_file", json!({ "path": "free.txt" })).await;
    assert!(folders.program().pipeline.plugins().loaded().is_empty());
}

// Without the files that were enabled, nothing is called but what leads out of it.
#[tokio::test]
async fn a_plugin_without_its_enabled_files_denies_every_call() {
    let folders = folders();
    write(&folders.root.join("free.txt"), "x");
    folders.program().install_and_enable().await;
    let copies = || fs::read_dir(folders.state.join("plugin-copies")).unwrap();
    let copy = copies().next().unwrap().unwrap().path();
    let pins = fs::read_dir(folders.state.join("enabled-plugins")).unwrap();
    let pin = pins.map(|entry| entry.unwrap().path()).next().unwrap();
    for change in [copy.join("count.sh"), pin] {
        write(&change, "{");
        let program = folders.program();
        assert!(program.problems[0].contains("no tool is called"), "{:?}", program.problems);
        let error = program.error("read_file", json!({ "path": "free.txt" })).await;
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(error.to_string().contains("enable it again"), "{error}");
        program.manage("show", "words").await;
        program.manage("enable", "words").await;
        program.ok("read_file", json!({ "path": "free.txt" })).await;
    }
}

// Where it cannot be read whether the user trusts a project, its enabled plugins are not passed over.
#[tokio::test]
async fn a_trust_store_that_cannot_be_read_denies_every_call() {
    let folders = folders();
    write(&folders.root.join("free.txt"), "x");
    write_plugin(&folders.root.join(".agents/plugins/words"));
    folders.trust();
    let store = folders.state.join("trusted-folders.json");
    let trusted = fs::read_to_string(&store).unwrap();
    fs::write(&store, "[{").unwrap();
    // Nothing is enabled yet.
    let program = folders.program();
    program.ok("read_file", json!({ "path": "free.txt" })).await;
    let listed = program.ok("plugin_manager", json!({ "action": "list" })).await;
    assert!(listed.as_text().contains("is not known whether"), "{}", listed.as_text());

    fs::write(&store, &trusted).unwrap();
    folders.program().manage("enable", "words").await;
    fs::write(&store, "[{").unwrap();
    let program = folders.program();
    assert!(program.problems[0].contains("trusted-folders.json"), "{:?}", program.problems);
    let error = program.error("read_file", json!({ "path": "free.txt" })).await;
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.message().contains("no tool is called without its rules"), "{error}");
    assert!(program.pipeline.toolset().get("words_count").is_none(), "nothing of it runs");
    let error = program.error("plugin_manager", json!({"action": "enable", "name": "words"})).await;
    assert!(error.message().contains("is not known whether"), "{error}");
    // The ways out.
    fs::write(&store, &trusted).unwrap();
    folders.program().ok("words_count", json!({ "text": "x" })).await;
    fs::write(&store, "[{").unwrap();
    let program = folders.program();
    program.manage("disable", "words").await;
    program.ok("read_file", json!({ "path": "free.txt" })).await;
}

// A record that does not say of which plugin it is may be that of one whose folder is gone.
#[tokio::test]
async fn a_record_that_cannot_be_read_denies_every_call() {
    let folders = folders();
    write(&folders.root.join("free.txt"), "x");
    folders.program().install_and_enable().await;
    fs::remove_dir_all(folders.state.join("plugins/words")).unwrap();
    let records = fs::read_dir(folders.state.join("enabled-plugins")).unwrap();
    let record = records.map(|entry| entry.unwrap().path()).next().unwrap();
    fs::write(&record, "{").unwrap();
    // One that was being written is none.
    fs::write(record.with_extension("tmp-1"), "{").unwrap();
    let program = folders.program();
    assert_eq!(program.problems.len(), 1, "{:?}", program.problems);
    let error = program.error("read_file", json!({ "path": "free.txt" })).await;
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.message().contains(&record.display().to_string()), "{error}");
    fs::remove_file(&record).unwrap();
    folders.program().ok("read_file", json!({ "path": "free.txt" })).await;
}

// A change that has begun is completed when its call is cancelled, at each of its steps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_change_leaves_the_plugin_loaded() {
    let folders = folders();
    let program = folders.program();
    program.install_and_enable().await;
    for round in 0..12 {
        // A process that has to end takes a while.
        program.ok("words_echo", json!({})).await;
        let limit = Duration::from_millis(round);
        let reload = program.call("plugin_manager", json!({ "action": "reload", "name": "words" }));
        let _ = tokio::time::timeout(limit, reload).await;
        drop(plugin_change::CHANGES.lock().await);
        let loaded = program.pipeline.plugins().loaded();
        let ids: Vec<&str> = loaded.iter().map(|scope| scope.id()).collect();
        assert_eq!(ids, ["words"], "after {limit:?}");
    }
}

// While a plugin is loaded again, no call gets past its rules.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_runs_while_a_plugin_changes() {
    let folders = folders();
    write(&folders.root.join("free.txt"), "x");
    let manifest = MANIFEST.replace("deny forbidden_*", "deny read_file(*)");
    write(&folders.root.join("new/plugin.toml"), &manifest);
    let program = Arc::new(folders.program());
    program.install_and_enable().await;
    // The process does not end by itself, so a change takes its time; how soon the next call comes is up to
    // the scheduler.
    let (mut rounds, mut held_back) = (0, 0);
    while rounds < 3 || held_back == 0 {
        rounds += 1;
        assert!(rounds <= 100, "no call came while the plugin was changing");
        program.ok("words_echo", json!({ "linger": true })).await;
        let reload = {
            let program = Arc::clone(&program);
            tokio::spawn(async move { program.manage("reload", "words").await })
        };
        while !reload.is_finished() {
            let error = program.error("read_file", json!({ "path": "free.txt" })).await;
            assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
            held_back += usize::from(error.message().contains("is being changed"));
        }
        reload.await.unwrap();
    }
    program.manage("disable", "words").await;
    program.ok("read_file", json!({ "path": "free.txt" })).await;
}

/// Holds the first call of `read_file` between the hooks and the rules.
#[derive(Clone, Default)]
struct HeldCall {
    was_held: Arc<AtomicBool>,
    is_held: Arc<Notify>,
    goes_on: Arc<Notify>,
}

impl Hook for HeldCall {
    async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        if !self.was_held.swap(true, Ordering::Relaxed) {
            self.is_held.notify_one();
            self.goes_on.notified().await;
        }
        Ok(HookDecision::none())
    }
}

// A call that passed the hooks before a change meets the plugin's rules while the plugin is not loaded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_passed_the_hooks_meets_the_rules_of_a_changing_plugin() {
    let folders = folders();
    write(&folders.root.join("free.txt"), "x");
    let manifest = MANIFEST.replace("deny forbidden_*", "deny read_file(*)");
    write(&folders.root.join("new/plugin.toml"), &manifest);
    let held = HeldCall::default();
    let program = folders
        .program_with(|pipeline| pipeline.hook("read_file", HookPriority::LOGGING, held.clone()));
    let program = Arc::new(program);
    program.install_and_enable().await;
    // The process of the plugin does not end by itself, so the plugin is gone for a while.
    program.ok("words_echo", json!({ "linger": true })).await;
    let calling = {
        let program = Arc::clone(&program);
        tokio::spawn(async move { program.error("read_file", json!({ "path": "free.txt" })).await })
    };
    held.is_held.notified().await;
    let reload = {
        let program = Arc::clone(&program);
        tokio::spawn(async move { program.manage("reload", "words").await })
    };
    let is_loaded = || program.pipeline.plugins().loaded().iter().any(|it| it.id() == "words");
    while is_loaded() {
        tokio::task::yield_now().await;
    }
    held.goes_on.notify_one();
    let error = calling.await.unwrap();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    reload.await.unwrap();
}

// Where it cannot be read at the end of a change whether the plugin is enabled, calls stay held back.
#[tokio::test]
async fn a_reload_that_cannot_read_the_record_denies_every_call() {
    let folders = folders();
    write(&folders.root.join("free.txt"), "x");
    let program = folders.program();
    program.install_and_enable().await;
    let places = folders.places();
    let found = places.find_plugin("words").unwrap();
    let plan = PluginPlan::for_plugin(PluginAction::Reload, found, &places).unwrap();
    let plugins = Some(Arc::new(program.pipeline.plugins()));
    let change = PluginChange { plan: Arc::new(plan), places, plugins };
    let records = fs::read_dir(folders.state.join("enabled-plugins")).unwrap();
    let record = records.map(|entry| entry.unwrap().path()).next().unwrap();
    fs::write(&record, "{").unwrap();
    fs::remove_dir_all(folders.state.join("plugins/words")).unwrap();
    let error = change.carry_out().await.unwrap_err();
    assert!(error.message().contains(&record.display().to_string()), "{error}");
    let error = program.error("read_file", json!({ "path": "free.txt" })).await;
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.message().contains("no tool is called without its rules"), "{error}");
    // The way out.
    program.install_and_enable().await;
    program.ok("read_file", json!({ "path": "free.txt" })).await;
}

// What an earlier change left behind is in use until the next change has ended.
#[tokio::test]
async fn a_change_goes_on_where_calls_are_held_back_already() {
    let folders = folders();
    write(&folders.root.join("free.txt"), "x");
    let program = folders.program();
    program.install_and_enable().await;
    let why = "an earlier change panicked".to_owned();
    let left = PackagePlugin::refuse_calls("words (being changed)", &folders.root, why);
    program.pipeline.plugins().load(&left).unwrap();
    let error = program.error("read_file", json!({ "path": "free.txt" })).await;
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    program.manage("reload", "words").await;
    program.ok("read_file", json!({ "path": "free.txt" })).await;
}

// A plugin that clashes with a tool of the host is enabled for what it denies.
#[tokio::test]
async fn a_plugin_that_clashes_still_denies() {
    let folders = folders();
    let manifest = MANIFEST
        .replace("deny forbidden_*", "deny plugin(show/*)")
        .replace("name = \"words_count\"", "name = \"read_file\"");
    write(&folders.root.join("new/plugin.toml"), &manifest);
    let program = folders.program();
    program.ok("plugin_manager", json!({ "action": "install", "source": "new" })).await;
    let error = program.error("plugin_manager", json!({"action": "enable", "name": "words"})).await;
    assert!(error.message().contains("its rules and hooks hold"), "{error}");
    let error = program.error("plugin_manager", json!({"action": "show", "name": "words"})).await;
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    program.manage("disable", "words").await;
    program.manage("show", "words").await;
}
