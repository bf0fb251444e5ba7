//! What telling others about the tools costs: the first time, and again.

use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use schemars::{JsonSchema, schema_for};
use serde_json::Value;
use tool_sdk::__private::{FnTool, Table};
use tool_sdk::provider::{self, Dialect};
use tool_sdk::{
    Context, Definition, DynamicTool, RawArgs, Registry, Schema, Tool, ToolFn, ToolName, Toolset,
    tool,
};

/// Programs, and turns in one of them, that list for the first time; the least of each is
/// reported.
const STARTS: usize = 40;
/// Repeated listings; the least of them is reported.
const AGAIN: usize = 200;
/// Listings between two looks at the clock, which itself takes as long as one.
const BETWEEN: usize = 100;

macro_rules! alike {
    ($($name:ident)*) => {
        $(
            /// Look for documents and say where they are.
            #[tool(read, register = false)]
            async fn $name(
                /// What to look for, in words.
                query: String,
                /// How many results at most.
                #[arg(default = 10, range = 1..=100)]
                limit: u32,
                /// Only documents with one of these tags.
                tags: Option<Vec<String>>,
                /// Whether only whole words count.
                #[arg(default = false)]
                exact: bool,
            ) -> String {
                format!("{query}{limit}{tags:?}{exact}")
            }
        )*

        /// A hundred tools in which nothing is computed yet.
        fn hundred() -> Vec<Arc<dyn Tool>> {
            vec![$(fresh(<$name as ToolFn<_>>::tool())),*]
        }
    };
}

/// The tool as it is when the program starts. Its table stays for good, as a static does.
fn fresh(tool: &FnTool) -> Arc<dyn Tool> {
    let prepare = |_: &Table, _: &RawArgs<'_>| unreachable!("the tool is only listed");
    Box::leak(Box::new(FnTool::new(*tool.table().spec(), prepare))).shared()
}

alike! {
    t00 t01 t02 t03 t04 t05 t06 t07 t08 t09
    t10 t11 t12 t13 t14 t15 t16 t17 t18 t19
    t20 t21 t22 t23 t24 t25 t26 t27 t28 t29
    t30 t31 t32 t33 t34 t35 t36 t37 t38 t39
    t40 t41 t42 t43 t44 t45 t46 t47 t48 t49
    t50 t51 t52 t53 t54 t55 t56 t57 t58 t59
    t60 t61 t62 t63 t64 t65 t66 t67 t68 t69
    t70 t71 t72 t73 t74 t75 t76 t77 t78 t79
    t80 t81 t82 t83 t84 t85 t86 t87 t88 t89
    t90 t91 t92 t93 t94 t95 t96 t97 t98 t99
}

/// A tool that is only known when the program runs.
pub(crate) fn dynamic(number: usize) -> Arc<dyn Tool> {
    let schema = r#"{
        "type": "object",
        "properties": {
            "query": { "type": "string", "description": "What to look for, in words." },
            "limit": { "type": "integer", "minimum": 1, "maximum": 100, "default": 10 },
            "tags": { "type": "array", "items": { "type": "string" } },
            "exact": { "type": "boolean", "default": false }
        },
        "required": ["query"]
    }"#;
    let name = ToolName::new(format!("tool_{number}")).unwrap();
    let schema = Schema::from_json(schema).unwrap();
    let definition = Definition::new(name, "Look for documents and say where they are.", schema);
    Arc::new(DynamicTool::new(
        definition,
        |args: Value, _: Context| async move { args.to_string() },
    ))
}

/// The arguments of one of the hundred, as they are written by hand.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "it is there for its schema")]
struct ByHand {
    /// What to look for, in words.
    query: String,
    /// How many results at most.
    #[schemars(range(min = 1, max = 100))]
    #[serde(default = "ten")]
    limit: u32,
    /// Only documents with one of these tags.
    tags: Option<Vec<String>>,
    /// Whether only whole words count.
    #[serde(default)]
    exact: bool,
}

fn ten() -> u32 {
    10
}

/// How a hundred tools come to be listed for the first time.
#[derive(Clone, Copy, Debug)]
enum First {
    /// Only their schemas, by schemars, as text: the floor.
    Floor,
    /// Registry, toolset, definitions and the whole list.
    Ours,
}

impl First {
    fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Ours => "ours",
        }
    }

    /// Nanoseconds per tool.
    fn time(self) -> f64 {
        let tools = hundred();
        let start = Instant::now();
        let nanoseconds = |start: Instant| start.elapsed().as_nanos() as f64 / 100.0;
        match self {
            Self::Floor => {
                for _ in 0..tools.len() {
                    black_box(serde_json::to_string(&schema_for!(ByHand)).unwrap());
                }
                nanoseconds(start)
            }
            Self::Ours => {
                let registry = Registry::builder().add(tools).build().unwrap();
                let tools = Toolset::new(registry);
                let _text = black_box(listing(&tools));
                nanoseconds(start)
            }
        }
    }
}

fn listing(tools: &Toolset) -> Arc<str> {
    provider::encode_listing(&tools.view(), Dialect::Mcp)
}

/// Lists a hundred tools for the first time in this program; prints nanoseconds per tool.
pub(crate) fn cold(lane: &str) {
    let first = if lane == First::Floor.name() { First::Floor } else { First::Ours };
    println!("{}", first.time());
}

pub(crate) fn tables() {
    let program = std::env::current_exe().unwrap();
    let cold = |first: First| {
        let output = Command::new(&program).args(["list", first.name()]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse::<f64>().unwrap()
    };
    let least = |time: &dyn Fn() -> f64| (0..STARTS).map(|_| time()).fold(f64::INFINITY, f64::min);
    println!("listing: least ns per tool of 100, program just started, program warm");
    for first in [First::Floor, First::Ours] {
        let (cold, warm) = (least(&|| cold(first)), least(&|| first.time()));
        println!("  first, {:9} {cold:>10.1} {warm:>10.1}", first.name());
    }

    println!("listing again: least ns in all");
    for size in [10, 100, 1000] {
        let others = (0..size).map(dynamic).collect::<Vec<_>>();
        let tools = Toolset::new(Registry::builder().add(others).build().unwrap());
        let mut least = f64::INFINITY;
        for _ in 0..AGAIN {
            let start = Instant::now();
            for _ in 0..BETWEEN {
                drop(black_box(listing(black_box(&tools))));
            }
            least = least.min(start.elapsed().as_secs_f64() / BETWEEN as f64);
        }
        println!("  again, {size:4} tools {:>10.1}", least * 1e9);
    }
}
