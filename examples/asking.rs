//! Approval requests: what the user is shown, and how long an answer counts.
//!
//! An approval is for one call, for the rest of the session, or for always. The last two grant
//! patterns: those that the request offers, or those that the user writes.

use std::path::Path;

use tokio::task::JoinHandle;
use tool_sdk::{
    ApprovalResponse, Call, Context, GrantStore, Pipeline, Registry, Resource, Session,
    approval_channel, tool,
};

/// Open a page.
#[tool(execute, open_world, approval(resources = opened))]
fn open_page(
    /// Its address.
    url: String,
) -> String {
    format!("opened {url}")
}

fn opened(args: &OpenPageArgs, _: &Context) -> Vec<Resource> {
    vec![Resource::new(args.url.clone())]
}

/// Plays the user: gives these answers, then returns what was shown.
fn with_approver(
    pipeline: Pipeline,
    replies: impl IntoIterator<Item = ApprovalResponse, IntoIter: Send> + 'static,
) -> (Pipeline, JoinHandle<Vec<String>>) {
    let (approver, mut inbox) = approval_channel();
    let mut replies = replies.into_iter();
    let screen = tokio::spawn(async move {
        let mut shown = Vec::new();
        while let Some(pending) = inbox.recv().await {
            shown.push(pending.request().suggestions.join(", "));
            pending.respond(replies.next().unwrap_or(ApprovalResponse::Reject));
        }
        shown
    });
    (pipeline.approver(approver), screen)
}

/// Opens pages; returns which calls ran, and what the user was asked.
async fn open(
    registry: Registry,
    state: &Path,
    workspace: &Path,
    replies: Vec<ApprovalResponse>,
    pages: &[&str],
) -> Result<(Vec<bool>, Vec<String>), Box<dyn std::error::Error>> {
    let store = GrantStore::open(state.join("approvals"), workspace);
    let (pipeline, screen) = with_approver(Pipeline::new(registry).grant_store(store), replies);
    let (session, mut ran) = (Session::new("example"), Vec::new());
    for page in pages {
        let call = Call::new("open_page", format!(r#"{{"url": "{page}"}}"#));
        ran.push(pipeline.call(&session, call).await.result.is_ok());
    }
    // The inbox ends with the last pipeline that asks.
    drop(pipeline);
    Ok((ran, screen.await?))
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Grants are stored where no tool can write: outside of the workspace.
    let (state, workspace) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let patterns = |pattern: &str| vec![pattern.to_owned()];
    let open = async |replies, pages| {
        open(Registry::linked()?, state.path(), workspace.path(), replies, pages).await
    };

    // "Once" is for one call: the same page asks again, and there is no answer left.
    let (ran, shown) =
        open(vec![ApprovalResponse::Once], &["https://a.example", "https://a.example"]).await?;
    assert_eq!((ran, shown.len()), (vec![true, false], 2));

    // "Session": calls that match the pattern do not ask again.
    let reply = ApprovalResponse::Session { patterns: patterns("https://b.example/*") };
    let pages = ["https://b.example/1", "https://b.example/2", "https://c.example"];
    let (ran, shown) = open(vec![reply], &pages).await?;
    assert_eq!(ran, [true, true, false]);
    assert_eq!(shown, ["https://b.example/1", "https://c.example"]);

    // "Always": a later session in the same workspace does not ask either.
    let reply = ApprovalResponse::Always { patterns: patterns("https://d.example/*") };
    let (ran, _) = open(vec![reply], &["https://d.example/1"]).await?;
    let (later, shown) = open(Vec::new(), &["https://d.example/2", "https://b.example/3"]).await?;
    assert_eq!((ran, later), (vec![true], vec![true, false]));
    println!("asked in the last session: {shown:?}");
    Ok(())
}

// F76
#[cfg(test)]
#[test]
fn an_answer_goes_as_far_as_it_says() {
    main().expect("what it shows holds");
}
