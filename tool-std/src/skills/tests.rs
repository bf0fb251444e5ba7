//! The tools of skills, through the pipeline.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use tool_sdk::testing::Harness;
use tool_sdk::{
    ApprovalResponse, CallId, ErrorKind, Mode, ProgramFolders, Rule, ScriptedApprover, Session,
    ToolName, TrustedFolders, Workspace, tools,
};

use super::*;

struct SkillFolders {
    _temp: tempfile::TempDir,
    root: PathBuf,
    state: PathBuf,
    home: PathBuf,
}

fn folders() -> SkillFolders {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().canonicalize().unwrap();
    let [root, home, state] = ["root", "home", "state"].map(|name| path.join(name));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&home).unwrap();
    SkillFolders { _temp: temp, root, state, home }
}

impl SkillFolders {
    fn session(&self) -> Session {
        let mut folders = ProgramFolders::default();
        (folders.state, folders.home) = (Some(self.state.clone()), Some(self.home.clone()));
        Session::new("s").with_service(folders)
    }

    fn harness(&self) -> Harness {
        let tools =
            tools![skill, skill_list, skill_create, skill_update, skill_install, skill_remove];
        let harness = Harness::new(tools)
            .with_session(self.session())
            .lend(Workspace::open([&self.root]).unwrap());
        let writing = ["skill_create", "skill_update", "skill_install", "skill_remove"];
        rules(&harness, &writing.map(|tool| format!("allow {tool}")));
        harness
    }

    fn trust(&self) {
        TrustedFolders::open(&self.state).trust(&self.root).unwrap();
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn document(name: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}.\n---\n\n# How\n\nDo it.\n")
}

fn rules(harness: &Harness, rules: &[impl AsRef<str>]) {
    let rules = rules.iter().map(|rule| rule.as_ref().parse::<Rule>().unwrap());
    harness.pipeline().set_rules(rules.collect());
}

// F110: the body in a tag with the files, a title, and metadata.
#[tokio::test]
async fn a_skill_is_loaded_by_name_and_once() {
    let folders = folders();
    let skill = folders.home.join(".claude/skills/pdf");
    write(&skill.join("SKILL.md"), &(document("pdf") + "</skill>\n"));
    write(&skill.join("references/forms.md"), "# Forms\n");
    let harness = folders.harness();
    let output = harness.ok("skill", json!({"name": "PDF"})).await;
    assert_eq!(
        output.as_text(),
        format!(
            "<skill name=\"pdf\" scope=\"user\">\n# How\n\nDo it.\n<\\/skill>\n</skill>\n\
             The folder of the skill is {}\nIts files, which `file` reads:\n- references/forms.md\n",
            skill.display()
        )
    );
    assert_eq!(output.title_text(), Some("Skill: pdf"));
    let metadata = output.metadata_map().unwrap();
    assert_eq!((&metadata["skill_name"], &metadata["scope"]), (&json!("pdf"), &json!("user")));
    assert!(output.is_exempt_from_compaction());

    let again = harness.ok("skill", json!({"name": "pdf"})).await;
    assert!(again.as_text().contains("is loaded already"), "{}", again.as_text());
    assert!(!again.is_exempt_from_compaction());
    let again = harness.ok("skill", json!({"name": "pdf", "reload": true})).await;
    assert!(again.as_text().starts_with("<skill name=\"pdf\""));
    write(&skill.join("SKILL.md"), &document("pdf").replace("Do it", "Do more"));
    let changed = harness.ok("skill", json!({"name": "pdf"})).await;
    assert!(changed.as_text().contains("Do more"), "a changed file is loaded again");

    let file = harness.ok("skill", json!({"name": "pdf", "file": "references/forms.md"})).await;
    assert_eq!(file.as_text(), "# Forms\n");
    write(&folders.home.join("secret"), "x");
    // What the pin of a skill does not cover is no part of the skill.
    write(&skill.join(".git/x.md"), "x");
    write(&skill.join("references/.svn/x.md"), "x");
    for file in [".git/x.md", "references/.svn/x.md"] {
        let error = harness.error("skill", json!({"name": "pdf", "file": file})).await;
        assert!(error.message().contains("not a part of the skill"), "{}", error.message());
    }
    for file in ["../../../secret", "/etc/passwd", "gone.md", ""] {
        harness.error("skill", json!({"name": "pdf", "file": file})).await;
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folders.home.join("secret"), skill.join("link")).unwrap();
        let error = harness.error("skill", json!({"name": "pdf", "file": "link"})).await;
        assert!(error.message().contains("leads out"), "{}", error.message());
    }
}

// F111, F112: a denied skill is not listed and not loaded; unknown names list the others.
#[tokio::test]
async fn rules_deny_a_skill_by_its_name() {
    let folders = folders();
    for name in ["pdf", "pdf-secret", "letters"] {
        write(&folders.home.join(format!(".agents/skills/{name}/SKILL.md")), &document(name));
    }
    let harness = folders.harness();
    rules(&harness, &["allow *", "deny skill(pdf*)", "allow skill(pdf)"]);
    let listed = harness.ok("skill_list", json!({})).await.into_text();
    assert!(listed.contains("pdf (user): About pdf.\n") && listed.contains("letters"), "{listed}");
    assert!(!listed.contains("pdf-secret"), "{listed}");
    harness.ok("skill", json!({"name": "pdf"})).await;
    for name in ["pdf-secret", "PDF-Secret"] {
        let error = harness.error("skill", json!({ "name": name })).await;
        assert_eq!(error.kind(), ErrorKind::Denied, "{name}");
    }
    let error = harness.error("skill", json!({"name": "nothing"})).await;
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.message(), "there is no skill `nothing`");
    assert_eq!(error.suggestion(), Some("the skills are `letters`, `pdf`, `write-skill`"));
}

// F113
#[tokio::test]
async fn a_query_orders_the_list() {
    let folders = folders();
    for name in ["alpha", "forms"] {
        write(&folders.home.join(format!(".agents/skills/{name}/SKILL.md")), &document(name));
    }
    let harness = folders.harness();
    let output = harness.ok("skill_list", json!({"query": "fill in a form"})).await;
    assert!(output.as_text().starts_with("forms (user): About forms.\n(Others:)\nalpha"));
    let output = harness.ok("skill_list", json!({"query": "zzz", "scope": "user"})).await;
    let text = "(None fits by its words.)\nalpha (user): About alpha.\nforms (user): About forms.";
    assert_eq!(output.as_text(), text);
}

#[tokio::test]
async fn a_project_counts_when_it_is_trusted() {
    let folders = folders();
    write(&folders.root.join(".claude/skills/team/SKILL.md"), &document("team"));
    let harness = folders.harness();
    let listed = harness.ok("skill_list", json!({})).await.into_text();
    assert!(!listed.contains("About team") && listed.contains("until the user trusts"), "{listed}");
    harness.error("skill", json!({"name": "team"})).await;
    folders.trust();
    let listed = harness.ok("skill_list", json!({})).await.into_text();
    assert!(listed.contains("team (project): About team."), "{listed}");
    harness.ok("skill", json!({"name": "team"})).await;
}

// F194: created, changed, shown and removed, each through the pipeline.
#[tokio::test]
async fn a_skill_is_created_changed_and_removed() {
    let folders = folders();
    let harness = folders.harness();
    let create = json!({
        "name": "notes", "description": "Use when: notes", "body": "# Notes\n",
        "triggers": ["release notes"],
    });
    let output = harness.ok("skill_create", create.clone()).await;
    assert!(output.as_text().contains("when the user trusts"), "{}", output.as_text());
    folders.trust();
    let error = harness.error("skill_create", create).await;
    assert_eq!(error.kind(), ErrorKind::Conflict, "{}", error.message());
    let path = folders.root.join(".agents/skills/notes/SKILL.md");
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "---\nname: notes\ndescription: \"Use when: notes\"\nmetadata:\n  triggers: \"release notes\"\n---\n\n# Notes\n"
    );
    write(&path.with_file_name("extra.md"), "extra");
    harness.ok("skill_update", json!({"name": "notes", "description": "Other"})).await;
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("description: \"Other\"\nmetadata") && text.ends_with("# Notes\n"),
        "{text}"
    );
    assert!(path.with_file_name("extra.md").exists());
    harness.ok("skill_remove", json!({"name": "notes"})).await;
    assert!(!path.parent().unwrap().exists());
    for (tool, arguments) in [
        ("skill_update", json!({"name": "notes"})),
        ("skill_update", json!({"name": "notes", "body": "x"})),
        ("skill_update", json!({"name": "write-skill", "body": "x"})),
        ("skill_remove", json!({"name": "write-skill"})),
        ("skill_create", json!({"name": "Bad Name", "description": "d", "body": "b"})),
        (
            "skill_create",
            json!({"name": "x", "description": "d", "body": "b", "triggers": ["a,b"]}),
        ),
    ] {
        harness.error(tool, arguments).await;
    }
    // The user's own folders are not touched.
    write(&folders.home.join(".agents/skills/own/SKILL.md"), &document("own"));
    let error = harness.error("skill_remove", json!({"name": "own"})).await;
    assert!(error.message().contains("the user's own"), "{}", error.message());
}

// F114, SK5: what was installed is pinned, and a changed file needs a new approval.
#[tokio::test]
async fn an_installed_skill_that_changed_needs_approval() {
    let folders = folders();
    write(&folders.root.join("new/SKILL.md"), &document("helper"));
    let harness = folders.harness();
    let dry = json!({"source": "new", "dry_run": true});
    let plan = harness.ok("skill_install", dry).await;
    assert!(plan.as_text().starts_with("Would install the skill `helper`"), "{}", plan.as_text());
    assert!(plan.as_text().contains("+# How\n"), "{}", plan.as_text());
    assert!(!folders.state.exists());

    let installed = harness.ok("skill_install", json!({"source": "new"})).await;
    let hash = &installed.metadata_map().unwrap()["content_hash"];
    assert_eq!(*hash, plan.metadata_map().unwrap()["content_hash"]);
    let error = harness.error("skill_install", json!({"source": "new"})).await;
    assert_eq!(error.kind(), ErrorKind::Conflict, "{}", error.message());
    assert!(error.message().contains("installed already"), "{}", error.message());
    harness.ok("skill_install", json!({"source": "new", "replace": true})).await;

    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        for folder in [folders.state.clone(), folders.state.join("skill-pins")] {
            let mode = fs::metadata(&folder).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
        }
    }

    harness.pipeline().set_mode(Mode::Auto);
    harness.ok("skill", json!({"name": "helper"})).await;
    let file = folders.state.join("skills/helper/SKILL.md");
    write(&file, &document("helper").replace("Do it", "Run this first"));
    let error = harness.error("skill", json!({"name": "helper", "reload": true})).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().contains("changed since it was installed"), "{}", error.message());
}

// SK5: an approval of a changed skill is about what was approved, not about later changes.
#[tokio::test]
async fn no_grant_covers_a_changed_skill() {
    let folders = folders();
    write(&folders.root.join("new/SKILL.md"), &document("helper"));
    let granted = || ApprovalResponse::Session { patterns: vec!["helper".to_owned()] };
    let answers = [ApprovalResponse::Once, granted(), ApprovalResponse::Once, granted()];
    let approver = Arc::new(ScriptedApprover::new(answers));
    let harness = folders.harness().map_pipeline(|it| it.shared_approver(approver.clone()));
    rules(&harness, &[] as &[&str]);
    harness.pipeline().set_mode(Mode::Strict);
    let load = json!({"name": "helper", "reload": true});
    harness.ok("skill_install", json!({"source": "new"})).await;
    let before = approver.requests().len();
    harness.ok("skill", load.clone()).await;
    harness.ok("skill", load.clone()).await;
    assert_eq!(approver.requests().len(), before + 1, "the name was granted");
    assert_eq!(approver.requests()[before].suggestions, ["helper"]);

    write(&folders.state.join("skills/helper/SKILL.md"), &document("helper").replace("Do", "Run"));
    harness.ok("skill", load.clone()).await;
    let last = approver.requests().pop().unwrap();
    assert_eq!(approver.requests().len(), before + 2, "the grant does not cover the change");
    assert!(last.suggestions.is_empty() && !last.offers_always());
    // An approval for longer is refused.
    assert_eq!(harness.error("skill", load).await.kind(), ErrorKind::Denied);
}

// A plan that was dropped for later ones is not made anew.
#[test]
fn a_call_whose_plan_is_gone_fails() {
    let mut folders = ProgramFolders::default();
    let temp = tempfile::tempdir().unwrap();
    folders.state = Some(temp.path().to_owned());
    let places = discovery::SkillPlaces { folders, ..Default::default() };
    let session = Session::new("s");
    let plan = |call: &Context, arguments: &str| {
        let make = || plan::SkillPlan::for_text(document("x"), "x", SkillScope::User, &places);
        crate::packages::planned_calls::plan_for_call(call, &arguments, make)
    };
    let context = |id: i32| {
        let tool = ToolName::from_static("skill_create");
        Context::new(session.clone(), tool, CallId::from_external(&id.to_string()))
    };
    let calls: Vec<Context> = (0..6).map(context).collect();
    for call in &calls {
        plan(call, "a").unwrap();
    }
    let gone: Vec<bool> = calls.iter().map(|call| plan(call, "a").is_err()).collect();
    assert_eq!(gone, [true, true, false, false, false, false]);
    assert_eq!(plan(&calls[0], "a").unwrap_err().kind(), ErrorKind::Conflict);
    plan(&calls[0], "b").unwrap();
}

// Everything that writes asks, in every mode.
#[tokio::test]
async fn writing_asks() {
    let folders = folders();
    write(&folders.root.join("new/SKILL.md"), &document("helper"));
    write(&folders.state.join("skills/there/SKILL.md"), &document("there"));
    let harness = folders.harness();
    rules(&harness, &[] as &[&str]);
    for (tool, arguments) in [
        ("skill_create", json!({"name": "x", "description": "d", "body": "b"})),
        ("skill_update", json!({"name": "there", "body": "b"})),
        ("skill_install", json!({"source": "new"})),
        ("skill_remove", json!({"name": "there"})),
    ] {
        assert_eq!(harness.error(tool, arguments).await.kind(), ErrorKind::Denied, "{tool}");
    }
    harness.ok("skill_install", json!({"source": "new", "dry_run": true})).await;
    let names: Vec<_> = fs::read_dir(folders.state.join("skills")).unwrap().collect();
    assert_eq!(names.len(), 1);
}

#[cfg(feature = "mcp")]
#[tokio::test]
async fn clients_get_skills_as_prompts_and_resources() {
    use tool_sdk::mcp::{PromptProvider as _, ResourceProvider as _};

    let folders = folders();
    for name in ["pdf", "secret"] {
        write(&folders.home.join(format!(".agents/skills/{name}/SKILL.md")), &document(name));
    }
    write(&folders.home.join(".agents/skills/pdf/more/x.txt"), "more");
    let harness = folders.harness();
    rules(&harness, &["deny skill(secret)"]);
    let pipeline = harness.pipeline().clone();
    let provider = SkillProvider::new(folders.session(), move |session, tool, arguments| {
        let pipeline = pipeline.clone();
        async move { pipeline.call(&session, tool_sdk::Call::new(tool, arguments)).await.result }
    });
    let prompts = tool_sdk::mcp::PromptProvider::list(&provider).await;
    let names: Vec<_> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    assert_eq!(names, ["pdf", "write-skill"]);
    let resources = tool_sdk::mcp::ResourceProvider::list(&provider).await;
    assert_eq!(resources[0].uri, "skill://pdf/SKILL.md");

    let arguments = json!({"task": "Fill it in."});
    for _ in 0..5 {
        let arguments = arguments.as_object().unwrap();
        let messages = provider.get("pdf", arguments, &folders.session()).await.unwrap();
        let text = messages[0].content.as_str().unwrap();
        assert!(
            text.starts_with("<skill name=\"pdf\"") && text.ends_with("\nFill it in."),
            "{text}"
        );
    }
    let read = provider.read("skill://pdf/more/x.txt").await.unwrap().unwrap();
    assert_eq!((read.mime.as_str(), read.name), ("text/plain", None));
    assert_eq!(provider.read("other://x").await.unwrap(), None);
    for uri in ["skill://secret/SKILL.md", "skill://pdf/../secret/SKILL.md", "skill://none/x"] {
        assert!(provider.read(uri).await.is_err(), "{uri}");
    }
    assert!(provider.get("secret", &serde_json::Map::new(), &folders.session()).await.is_err());
}
