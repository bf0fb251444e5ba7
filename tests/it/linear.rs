//! Taking arguments costs what their length costs, and judging a call what it touches, whoever wrote
//! it.
//!
//! What is counted is what is allocated, in times and in bytes: whatever grows faster than the
//! text shows there, and nothing else on the machine does.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use std::sync::Arc;

use serde_json::json;
use tool_sdk::{
    Action, ApprovalResponse, Call, Context, Pipeline, RawArgs, Registry, Resource,
    ScriptedApprover, Session, Tool, tool, tools,
};

tool_sdk::link!(tool_std);

/// The system's allocator, counted for each thread.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static ALLOCATED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

fn count(bytes: usize) {
    let (times, all) = ALLOCATED.get();
    ALLOCATED.set((times + 1, all + bytes as u64));
}

#[expect(unsafe_code, reason = "an allocator is nothing else; it only counts and passes on")]
// SAFETY: every method hands its arguments to the system's allocator as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// How often and how many bytes the tool allocates to take, or refuse, this text.
fn cost(tool: &dyn Tool, text: &str) -> (u64, u64) {
    let raw = RawArgs::new(text);
    let before = ALLOCATED.get();
    let _ = std::hint::black_box(tool.prepare(&raw));
    let after = ALLOCATED.get();
    (after.0 - before.0, after.1 - before.1)
}

/// An object of a good path and these members.
fn object(members: impl Iterator<Item = String>) -> String {
    let members: Vec<String> = members.collect();
    format!(r#"{{"path":"a",{}}}"#, members.join(","))
}

type Text = fn(usize) -> String;

/// Good text, and text of somebody who wants it to take long; each as long as it is told to be.
const TEXTS: [(&str, Text); 11] = [
    ("a long value", |n| object([format!(r#""content":"{}""#, "x".repeat(8 * n))].into_iter())),
    ("escapes", |n| object([format!(r#""content":"{}""#, r"\u00e9\n".repeat(n))].into_iter())),
    ("a long list", |n| object([format!(r#""tags":[{}"x"]"#, r#""x","#.repeat(n))].into_iter())),
    ("unknown keys", |n| object((0..n).map(|at| format!(r#""unknown_{at}":1"#)))),
    ("near names", |n| object((0..n).map(|at| format!(r#""pat{at}":1"#)))),
    ("one key again and again", |n| object((0..n).map(|_| r#""path":"b""#.to_owned()))),
    ("bad values", |n| object((0..n).map(|_| r#""limit":"x""#.to_owned()))),
    ("deep values", |n| {
        let deep = "[".repeat(60) + &"]".repeat(60);
        object((0..n / 20).map(|at| format!(r#""deep_{at}":{deep}"#)))
    }),
    ("keys of a value", |n| {
        let keys: Vec<String> = (0..n).map(|at| format!(r#""k{at}":{{}}"#)).collect();
        object([format!(r#""edits":[{{{}}}]"#, keys.join(","))].into_iter())
    }),
    ("numbers as nobody writes them", |n| {
        object([format!(r#""limit":[{}1.0]"#, "5e0,".repeat(n))].into_iter())
    }),
    ("no end", |n| format!(r#"{{"path":{}"#, r#"{"a":"#.repeat(n))),
];

// F38: four times the text costs four times as much at most, and never sixteen times.
#[test]
fn what_arguments_cost_grows_with_their_length() {
    let registry = Registry::linked().expect("no two tools share a name");
    for (what, text) in TEXTS {
        let (short, long) = (text(2000), text(8000));
        for tool in &registry {
            // What is made once is not counted.
            cost(&**tool, &short);
            let (few, some) = cost(&**tool, &short);
            let (many, all) = cost(&**tool, &long);
            let name = &tool.definition().name;
            assert!(many <= 6 * few + 64, "{what}, `{name}`: {few} allocations, then {many}");
            assert!(all <= 6 * some + (16 << 10), "{what}, `{name}`: {some} bytes, then {all}");
        }
    }
}

/// Touch many files.
#[tool(write, register = false, approval(resources = touched))]
fn touch(
    /// Which ones.
    paths: Vec<String>,
) -> String {
    paths.len().to_string()
}

fn touched(args: &TouchArgs, _: &Context) -> Vec<Resource> {
    args.paths.iter().map(|path| Resource::path(path.clone(), format!("/w/{path}"))).collect()
}

fn paths(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("d{}/f{at}", at % 100)).collect()
}

/// What is allocated to ask about a call that touches so much, and then to judge one of which
/// everything was approved.
fn cost_to_judge(count: usize) -> [(u64, u64); 2] {
    let yes = [ApprovalResponse::Session { patterns: paths(count) }, ApprovalResponse::Once];
    let approver = Arc::new(ScriptedApprover::new(yes));
    let registry = Registry::builder().add(tools![touch]).build().expect("a registry");
    let pipeline = Pipeline::new(registry).shared_approver(approver.clone());
    let session = Session::new("s");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(async {
        let call = |paths: Vec<String>| Call::new("touch", json!({ "paths": paths }));
        assert_eq!(pipeline.call(&session, call(paths(1))).await.text(), "1");
        let before = ALLOCATED.get();
        let checked = pipeline.check(&session, call(paths(count))).await.expect("a decision");
        let judged = ALLOCATED.get();
        assert_eq!(checked.decision.action, Action::Allow);
        pipeline.revoke_grants(&session, None);
        let forgotten = ALLOCATED.get();
        assert_eq!(pipeline.call(&session, call(paths(count))).await.text(), count.to_string());
        let asked = ALLOCATED.get();
        assert_eq!(approver.requests().len(), 2);
        assert!(approver.requests()[1].suggestions.is_empty());
        let spent = |to: (u64, u64), from: (u64, u64)| (to.0 - from.0, to.1 - from.1);
        [spent(judged, before), spent(asked, forgotten)]
    })
}

// F86: a patch of a megabyte touches 33,000 files, and nobody waits a minute to be asked about it.
#[test]
fn what_judging_costs_grows_with_what_a_call_touches() {
    let (short, long) = (cost_to_judge(1000), cost_to_judge(4000));
    for ((what, (few, some)), (many, all)) in ["approved", "asked"].into_iter().zip(short).zip(long)
    {
        assert!(many <= 6 * few, "{what}: {few} allocations, then {many}");
        assert!(all <= 6 * some, "{what}: {some} bytes, then {all}");
    }
}
