//! Taking arguments costs what their length costs, whoever wrote them.
//!
//! What is counted is what is allocated, in times and in bytes: whatever grows faster than the
//! text shows there, and nothing else on the machine does.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use tool_sdk::{RawArgs, Registry, Tool};

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
