//! What telling others about the tools costs: the first time, and again.

use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use tool_sdk::provider::{self, Dialect};
use tool_sdk::{
    Context, Definition, DynamicTool, Registry, Schema, Tool, ToolName, Toolset, tool, tools,
};

/// Programs that list for the first time; the least of them is reported.
const STARTS: usize = 20;
/// Repeated listings; the least of them is reported.
const AGAIN: usize = 200;

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

        fn hundred() -> Registry {
            Registry::builder().add(tools![$($name),*]).build().unwrap()
        }
    };
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

/// The whole list as text.
fn text(tools: &Toolset) -> String {
    provider::tools(tools.view().definitions(), Dialect::Mcp).to_string()
}

/// Lists a hundred tools for the first time in this program; prints nanoseconds.
pub(crate) fn cold() {
    let start = Instant::now();
    let listed = text(&Toolset::new(hundred()));
    println!("{} {}", start.elapsed().as_nanos(), listed.len());
}

pub(crate) fn tables() {
    let program = std::env::current_exe().unwrap();
    let cold = || {
        let output = Command::new(&program).args(["list", "cold"]).output().unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        output.split(' ').next().and_then(|time| time.parse::<f64>().ok()).unwrap()
    };
    let first = (0..STARTS).map(|_| cold()).fold(f64::INFINITY, f64::min);
    println!("listing\n  first, 100 tools {:>10.1} ns per tool", first / 100.0);

    for size in [10, 100, 1000] {
        let others = (0..size).map(dynamic).collect::<Vec<_>>();
        let tools = Toolset::new(Registry::builder().add(others).build().unwrap());
        let mut least = f64::INFINITY;
        for _ in 0..AGAIN {
            let start = Instant::now();
            drop(std::hint::black_box(text(&tools)));
            least = least.min(start.elapsed().as_secs_f64());
        }
        println!("  again, {size:4} tools {:>10.1} ns in all", least * 1e9);
    }
}
