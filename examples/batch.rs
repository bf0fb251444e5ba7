//! Several calls in one message: first the user answers all prompts, then calls run side by side
//! where they may, and the outcomes come in the order of the calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Barrier;
use tool_sdk::{
    ApprovalResponse, Batch, Call, Context, Pipeline, Registry, Resource, ScriptedApprover,
    Session, State, tool,
};

/// Where the reads wait for each other, and how many files are being written.
struct Desk {
    readers: Barrier,
    approver: Arc<ScriptedApprover>,
    writing: AtomicUsize,
}

/// Read a file.
#[tool(read)]
async fn look_up(
    /// Path of the file.
    path: String,
    desk: State<Desk>,
) -> String {
    // Continues only when another call reads at the same time.
    desk.readers.wait().await;
    format!("read {path} after {} answers", desk.approver.requests().len())
}

/// Write a file, one call after the other for each path.
#[tool(write, parallel = by(path), approval(resources = written))]
async fn write_down(
    /// Path of the file.
    path: String,
    /// The new text.
    text: String,
    desk: State<Desk>,
) -> String {
    let beside = desk.writing.fetch_add(1, Ordering::Relaxed);
    tokio::task::yield_now().await;
    desk.writing.fetch_sub(1, Ordering::Relaxed);
    format!("wrote {text} to {path} beside {beside} others")
}

fn written(args: &WriteDownArgs, _: &Context) -> Vec<Resource> {
    vec![Resource::new(args.path.clone())]
}

/// Returns the outcomes of the calls if the user gives these answers.
async fn run(
    answers: [ApprovalResponse; 2],
    calls: [(&'static str, &'static str); 4],
) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let approver = Arc::new(ScriptedApprover::new(answers));
    let pipeline = Pipeline::new(Registry::linked()?).shared_approver(Arc::clone(&approver) as _);
    let desk = Desk { readers: Barrier::new(2), approver, writing: AtomicUsize::new(0) };
    let session = Session::new("example").with_service(desk);
    let calls = calls.map(|(name, arguments)| Call::new(name, arguments));
    let outcomes = Batch::new(&pipeline).max_concurrent(8).run(&session, calls).await;
    Ok(outcomes.iter().map(|outcome| outcome.text().into_owned()).collect())
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (read_a, read_b) = (("look_up", r#"{"path": "a"}"#), ("look_up", r#"{"path": "b"}"#));
    let write_1 = ("write_down", r#"{"path": "c", "text": "1"}"#);
    let write_2 = ("write_down", r#"{"path": "c", "text": "2"}"#);

    // The reads run at the same time, or they would wait forever; the writes do not. A read
    // after a write waits for it.
    let texts =
        run([ApprovalResponse::Once, ApprovalResponse::Once], [read_a, read_b, write_1, write_2])
            .await?;
    println!("{}\n", texts.join("\n"));
    assert_eq!(texts[0], "read a after 2 answers");
    assert_eq!(texts[1], "read b after 2 answers");
    assert_eq!(texts[2], "wrote 1 to c beside 0 others");
    assert_eq!(texts[3], "wrote 2 to c beside 0 others");

    // A call that fails or is denied stops no other call.
    let no = ApprovalResponse::RejectWith { feedback: "use another file".to_owned() };
    let texts =
        run([no, ApprovalResponse::Once], [read_a, write_1, ("erase", "{}"), read_b]).await?;
    println!("{}", texts.join("\n"));
    assert!(texts[1].contains("use another file") && texts[2].contains("no tool `erase`"));
    assert_eq!((&*texts[0], &*texts[3]), ("read a after 1 answers", "read b after 1 answers"));
    Ok(())
}

// F47, F48
#[cfg(test)]
#[test]
fn a_batch_keeps_its_order_and_its_promises() {
    main().expect("what it shows holds");
}
