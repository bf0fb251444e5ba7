//! Tools of others that take paths, and say nothing about them.

use schemars::JsonSchema;
use serde::Deserialize;
use tool_sdk::{Args, AuditLog, GrantStore, Mode, Redactor, WorkspacePath, tool};

use super::*;

/// Empty a file.
#[tool(write, register = false)]
async fn clear(
    /// The file.
    path: WorkspacePath,
) -> String {
    format!("{path} is empty")
}

/// Show a file.
#[tool(read, register = false)]
async fn show(
    /// The file.
    path: Option<WorkspacePath>,
) -> String {
    format!("{path:?}")
}

/// Set a project up.
#[tool(write, display(summary = "Setting up {path}"), register = false)]
async fn set_up(
    /// The file to write.
    #[arg(default = "AGENTS.md")]
    path: WorkspacePath,
) -> String {
    path.to_string()
}

#[derive(Deserialize, JsonSchema)]
struct Several {
    /// The files.
    paths: Vec<WorkspacePath>,
}

/// Empty several files.
#[tool(write, register = false)]
async fn clear_all(args: Args<Several>) -> String {
    args.paths.len().to_string()
}

// F77, PA7: what a path is says what a call touches, also where a tool does not.
#[tokio::test]
async fn a_path_is_a_subject_by_itself() {
    let folder = TempDir::new().unwrap();
    let session = Session::new("s").with_service(Workspace::open([folder.path()]).unwrap());
    for (rules, tool, arguments, expected) in [
        (&["allow clear"][..], "clear", json!({ "path": "src/a" }), "allow"),
        (&["allow clear"], "clear", json!({ "path": ".envrc" }), "ask"),
        (&["allow clear"], "clear", json!({ "path": "/etc/passwd" }), "ask"),
        (&["allow clear(src/*)"], "clear", json!({ "path": "./src/a" }), "allow"),
        (&["allow clear(src/*)"], "clear", json!({ "path": "a" }), "ask"),
        (&["allow clear", "deny clear(src/*)"], "clear", json!({ "path": "src//a" }), "deny"),
        (&[], "show", json!({ "path": "src/a" }), "allow"),
        (&[], "show", json!({ "path": ".envrc" }), "allow"),
        (&[], "show", json!({ "path": "/etc/passwd" }), "ask"),
        (&["deny show(src/*)"], "show", json!({ "path": "src/a" }), "deny"),
        (&["deny show(src/*)"], "show", json!({}), "ask"),
        (&["allow set_up"], "set_up", json!({}), "ask"),
        (&["allow set_up"], "set_up", json!({ "path": "a" }), "allow"),
        (&["allow clear_all"], "clear_all", json!({ "paths": ["a", "b"] }), "allow"),
        (&["allow clear_all"], "clear_all", json!({ "paths": ["a", ".envrc"] }), "ask"),
        (&["allow clear_all(src/*)"], "clear_all", json!({ "paths": ["src/a", "b"] }), "ask"),
    ] {
        let rules = rules.iter().map(|rule| rule.parse::<Rule>().unwrap());
        let tools = Registry::builder().add(tools![clear, show, set_up, clear_all]);
        let pipeline = Pipeline::new(tools.build().unwrap()).rules(rules);
        let text = arguments.to_string();
        let checked = pipeline.check(&session, Call::new(tool, text.as_str())).await.unwrap();
        let decision = serde_json::to_value(checked).unwrap();
        assert_eq!(decision["decision"], expected, "{tool} {text}: {decision}");
    }
}

// F77: without a folder nothing says where a path leads, and no tool is trusted with it.
#[tokio::test]
async fn a_path_that_leads_nowhere_makes_nothing_harmless() {
    let pipeline = Pipeline::new(Registry::builder().add(tools![clear]).build().unwrap());
    let call = Call::new("clear", r#"{"path": "src/a"}"#);
    let checked = pipeline.check(&Session::new("s"), call).await.unwrap();
    assert_eq!(serde_json::to_value(checked).unwrap()["decision"], "ask");
}

// F72, F76, PA6: a rule on an argument that is a path is about that path, however it was sent.
#[tokio::test]
async fn a_rule_on_an_argument_knows_every_spelling_of_its_path() {
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("secrets/deep")).unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    let root = folder.path().canonicalize().unwrap();
    let session = Session::new("s").with_service(Workspace::open([&root]).unwrap());
    let root = root.display();
    let tools = Registry::builder().add(tools![clear, clear_all]).build().unwrap();
    let check = async |rules: &[&str], tool: &str, arguments: Value| {
        let rules = rules.iter().map(|rule| rule.parse::<Rule>().unwrap());
        let pipeline = Pipeline::new(tools.clone()).rules(rules);
        let text = arguments.to_string();
        let checked = pipeline.check(&session, Call::new(tool, text.as_str())).await.unwrap();
        serde_json::to_value(checked).unwrap()["decision"].as_str().unwrap().to_owned()
    };
    let (here, absolute) = (format!("{root}/secrets/a"), format!("{root}/secrets/*"));
    let patterns =
        ["secrets/*", "./secrets/*", "secrets/", "src/../secrets/*", "secrets/a", &absolute];
    let spellings = ["secrets/a", "./secrets/a", "secrets//a", "src/../secrets/a", &here];
    for pattern in patterns {
        for path in spellings {
            for action in ["deny", "ask"] {
                for (tool, sent) in [
                    ("clear", json!({ "path": path })),
                    ("clear_all", json!({ "paths": ["b", path] })),
                ] {
                    let name = if tool == "clear" { "path" } else { "paths" };
                    let rule = format!("{action} {tool}({name}: {pattern})");
                    let decision = check(&["allow *", &rule], tool, sent).await;
                    assert_eq!(decision, action, "{rule} {path}");
                }
            }
        }
        let sent = json!({ "path": "src/a" });
        let rule = format!("deny clear(path: {pattern})");
        assert_eq!(check(&["allow *", &rule], "clear", sent).await, "allow", "{rule}");
    }
    // PA6: where a link leads counts, too.
    #[cfg(unix)]
    std::os::unix::fs::symlink("secrets", folder.path().join("link")).unwrap();
    let linked =
        check(&["allow *", "deny clear(path: secrets/*)"], "clear", json!({ "path": "link/a" }));
    assert_eq!(linked.await, if cfg!(unix) { "deny" } else { "allow" });
    // What is allowed is the place too, and never only what the text looks like.
    for (rule, path, expected) in [
        ("allow clear(path: src/*)", "src/a", "allow"),
        ("allow clear(path: src/*)", "./src/a", "allow"),
        ("allow clear(path: src/)", "src/a", "allow"),
        ("allow clear(path: src/*)", "src/../secrets/a", "ask"),
        ("allow clear(path: src*)", "src/../../x", "ask"),
        ("allow clear(path: src/*)", "src/.envrc", "ask"),
    ] {
        let sent = json!({ "path": path });
        assert_eq!(check(&[rule], "clear", sent).await, expected, "{rule} {path}");
    }
}

// F72: a relative path belongs to the root where it exists, and a denial holds in all of them.
#[tokio::test]
async fn a_denial_of_a_relative_path_holds_in_every_root() {
    let folder = TempDir::new().unwrap();
    for path in ["a", "b/secrets"] {
        fs::create_dir_all(folder.path().join(path)).unwrap();
    }
    for file in ["b/secrets/x", "b/.env"] {
        fs::write(folder.path().join(file), "x").unwrap();
    }
    let root = folder.path().canonicalize().unwrap();
    let roots = [root.join("a"), root.join("b")];
    let session = Session::new("s").with_service(Workspace::open(roots).unwrap());
    let whole = root.join("b/secrets/x");
    let whole = whole.to_str().unwrap();
    for (rule, path, expected) in [
        ("deny show(secrets/*)", "secrets/x", "deny"),
        ("deny show(secrets/*)", "./secrets//x", "deny"),
        ("deny show(secrets/*)", "../b/secrets/x", "deny"),
        ("deny show(secrets/*)", whole, "deny"),
        ("ask show(./secrets/*)", whole, "ask"),
        ("deny show(path: secrets/*)", whole, "deny"),
        ("deny show(./.env)", ".env", "deny"),
        ("deny show(secrets/y)", "secrets/x", "allow"),
    ] {
        let registry = Registry::builder().add(tools![show]).build().unwrap();
        let pipeline = Pipeline::new(registry)
            .rules(["allow external_directory".parse().unwrap(), rule.parse::<Rule>().unwrap()]);
        let call = Call::new("show", json!({ "path": path }));
        let checked = pipeline.check(&session, call).await.unwrap();
        let decision = serde_json::to_value(checked).unwrap();
        assert_eq!(decision["decision"], expected, "{rule} {path}: {decision}");
    }
}

// AP1, PA7, P6: in no mode does a tool write what the guards believe, or what they wrote down.
#[cfg(unix)]
#[tokio::test]
async fn what_the_guards_keep_is_written_by_no_tool() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for path in ["work", "state/approvals"] {
        fs::create_dir_all(root.join(path)).unwrap();
    }
    std::os::unix::fs::symlink(root.join("state"), root.join("work/link")).unwrap();
    let work = root.join("work");
    let session = Session::new("s").with_service(Workspace::open([&work]).unwrap());
    let approvals = root.join("state/approvals");
    for mode in [Mode::Auto, Mode::Strict, Mode::Bypass] {
        let log = AuditLog::open(work.join("audit.jsonl"), Redactor::default()).unwrap();
        let tools = Registry::builder().add(tools![clear, show]).build().unwrap();
        let pipeline = Pipeline::new(tools)
            .rules(["allow *".parse::<Rule>().unwrap()])
            .mode(mode)
            .grant_store(GrantStore::open(&approvals, &work))
            .audit(log);
        let decision = async |tool: &str, path: &Path| {
            let call = Call::new(tool, json!({ "path": path }));
            let checked = pipeline.check(&session, call).await.unwrap();
            serde_json::to_value(checked).unwrap()["decision"].as_str().unwrap().to_owned()
        };
        for path in [
            approvals.join("approvals.json"),
            approvals.join("approvals.lock"),
            approvals.join("deep/new"),
            approvals.clone(),
            work.join("../state/approvals/approvals.json"),
            work.join("audit.jsonl"),
            "audit.jsonl".into(),
        ] {
            assert_eq!(decision("clear", &path).await, "deny", "{mode} {}", path.display());
        }
        assert_eq!(decision("show", &work.join("audit.jsonl")).await, "allow", "{mode}");
        assert_eq!(decision("clear", &work.join("audit.json")).await, "allow", "{mode}");
        assert_eq!(decision("clear", &root.join("state/other")).await, "allow", "{mode}");
    }
}
