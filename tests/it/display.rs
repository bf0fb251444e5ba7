//! How calls are shown: summaries by functions, and what a host shows in place of a tool's own.

use std::sync::atomic::{AtomicUsize, Ordering};

use tool_sdk::{
    ApprovalResponse, Call, Context, EventKind, IntoTools, Pipeline, Registry, ScriptedApprover,
    Session, ToolDisplay, Toolset, tool, tools,
};

static SUMMARIES: AtomicUsize = AtomicUsize::new(0);

/// Sign in.
#[tool(write, register = false, display(name = "Sign in", summary = summarize))]
fn sign_in(
    /// The name of the user.
    user: String,
    /// The password.
    #[arg(sensitive)]
    password: String,
) -> String {
    format!("{user} {}", password.len())
}

fn summarize(args: &SignInArgs) -> String {
    SUMMARIES.fetch_add(1, Ordering::Relaxed);
    format!("Signing in {} with {}\nand more", args.user, args.password)
}

fn toolset(tools: impl IntoTools) -> Toolset {
    Registry::builder().add(tools).build().expect("it is valid").into()
}

/// Runs a call, and returns name and summary in its first event and in its approval request.
async fn shown(toolset: Toolset) -> [(Option<String>, Option<String>); 2] {
    let approver = std::sync::Arc::new(ScriptedApprover::new([ApprovalResponse::Once]));
    let pipeline = Pipeline::new(toolset).shared_approver(approver.clone());
    let mut events = pipeline.subscribe();
    let call = Call::new("sign_in", r#"{"user": "ada", "password": "hunter2"}"#);
    let outcome = pipeline.call(&Session::new("s1"), call).await;
    assert_eq!(outcome.text(), "ada 7");
    let first = events.recv().await.expect("the pipeline is there");
    let EventKind::Pending { summary, .. } = &first.kind else { panic!("{first:?}") };
    let request = approver.requests().remove(0);
    [
        (first.tool.display.name.clone(), summary.clone()),
        (request.display.name.clone(), request.summary.clone()),
    ]
}

// F181: a function summarizes the call, and sensitive values in its text are masked.
#[tokio::test]
async fn function_summarizes_the_call_and_sensitive_values_are_masked() {
    for (name, summary) in shown(toolset(tools![sign_in])).await {
        assert_eq!(name.as_deref(), Some("Sign in"));
        assert_eq!(summary.as_deref(), Some("Signing in ada with ***"));
    }
    assert_eq!(SUMMARIES.load(Ordering::Relaxed), 1);
}

/// Reach a host.
#[tool(read, register = false)]
async fn reach(cx: &Context) -> String {
    cx.request_permission("network", "https://example.com").await.to_string()
}

#[tokio::test]
async fn request_of_a_running_tool_is_shown_as_the_host_says() {
    let mut display = ToolDisplay::default();
    display.name = Some("Connect".to_owned());
    let approver = std::sync::Arc::new(ScriptedApprover::new([ApprovalResponse::Once]));
    let pipeline = Pipeline::new(toolset(tools![reach]).with_display("reach", display))
        .shared_approver(approver.clone());
    let outcome = pipeline.call(&Session::new("s1"), Call::new("reach", "{}")).await;
    assert_eq!(outcome.text(), "true");
    assert_eq!(approver.requests()[0].display.name.as_deref(), Some("Connect"));
}

// F180: what the host sets is what events and prompts carry.
#[tokio::test]
async fn host_overrides_name_and_summary_of_one_tool() {
    let mut display = ToolDisplay::default();
    display.name = Some("Log in".to_owned());
    display.summary = Some("Welcome {user}, {{not}} {password}".to_owned());
    let toolset = toolset(tools![sign_in]).with_display("sign_in", display);
    let view = toolset.view();
    let told = &view.definition("sign_in").expect("it is there").display;
    assert_eq!((told.name.as_deref(), told.sensitive.len()), (Some("Log in"), 1));
    for (name, summary) in shown(toolset).await {
        assert_eq!(name.as_deref(), Some("Log in"));
        assert_eq!(summary.as_deref(), Some("Welcome ada, {not} ***"));
    }
}
