//! What is offered for always: it is what is kept, and with it the call runs.

use tool_sdk::{GrantStore, ToolSettings};
use tool_std::exec::exec_command;
use tool_std::fs::read_file;

use super::*;

/// Says yes for always to all that is offered.
#[derive(Clone, Default)]
struct Generous(Arc<Mutex<Vec<Arc<ApprovalRequest>>>>);

impl Approver for Generous {
    fn request_approval(
        &self,
        ask: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        let reply = match ask.suggestions.as_slice() {
            [] => ApprovalResponse::Reject,
            patterns => ApprovalResponse::Always { patterns: patterns.to_vec() },
        };
        self.0.lock().unwrap().push(ask);
        Box::pin(std::future::ready(Some(reply)))
    }
}

// F85, F88: of a call of which something is allowed anyway, too.
#[tokio::test]
async fn what_is_offered_is_what_is_kept_and_lets_the_call_run() {
    let outside = TempDir::new().unwrap();
    fs::write(outside.path().join("f"), "x\n").unwrap();
    let far = outside.path().join("f").display().to_string();
    let run = |cmd: &str| ("exec_command", json!({ "cmd": cmd }));
    for (rules, mode, (tool, arguments), offered) in [
        (
            &["allow exec_command(touch *)"][..],
            Mode::Auto,
            run(&format!("touch z && cat {far}")),
            1,
        ),
        (&["allow exec_command(sort *)"], Mode::Auto, run("timeout 5 sort f; touch z"), 2),
        (&[], Mode::Strict, run("sort f && ls"), 0),
        (&[], Mode::Auto, run("touch z; mkdir d"), 0),
        (&[], Mode::Auto, ("read_file", json!({ "path": far })), 1),
        (&["ask read"], Mode::Auto, ("read_file", json!({ "path": far })), 0),
        (&[], Mode::Strict, ("read_file", json!({ "path": "f" })), 1),
        (&[], Mode::Auto, ("write_file", json!({ "path": "n", "content": "n" })), 1),
        (&[], Mode::Auto, ("write_file", json!({ "path": ".envrc", "content": "n" })), 0),
    ] {
        let (folder, state) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        fs::write(folder.path().join("f"), "x\n").unwrap();
        let store = || GrantStore::open(state.path().join("approvals"), folder.path());
        let registry = Registry::builder().add(tools![read_file, write_file, exec_command]);
        let generous = Generous::default();
        let pipeline = Pipeline::new(registry.build().unwrap())
            .rules(rules.iter().map(|rule| rule.parse::<Rule>().unwrap()))
            .mode(mode)
            .grant_store(store())
            .approver(generous.clone());
        let workspace = Workspace::open([folder.path()]).unwrap();
        let mut settings = ToolSettings::default();
        settings.safe_commands = mode != Mode::Strict;
        let session = Session::new("s").with_service(workspace).with_service(settings);
        let call = || Call::new(tool, arguments.to_string());
        let case = format!("{rules:?} {mode} {arguments}");
        let outcome = pipeline.call(&session, call()).await;

        let asks = generous.0.lock().unwrap().clone();
        let [ask] = asks.as_slice() else { panic!("{case}: {asks:?} {outcome:?}") };
        assert_eq!(ask.suggestions.len(), offered, "{case}: {:?}", ask.suggestions);
        let kept = store().list().unwrap();
        assert_eq!(kept.len(), offered, "{case}");
        for approval in &kept {
            let grant = &approval.grant;
            let line = format!("'{}': '{}'", grant.to.permission, grant.pattern);
            let prompt = ask.prompt().text;
            assert!(prompt.contains(&line), "{case}: {line} in {prompt}");
        }
        if offered > 0 {
            let decision = pipeline.check(&session, call()).await.unwrap().decision;
            assert_eq!(decision.action, tool_sdk::Action::Allow, "{case}: {decision:?}");
        }
    }
}
