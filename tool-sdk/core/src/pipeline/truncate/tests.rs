//! Tests truncation from outside: what is returned, what is stored, and what the model reads.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::call::{Call, Outcome, Truncation};
use crate::content::Output;
use crate::context::Session;
use crate::error::ToolError;
use crate::event::EventKind;
use crate::name::ToolName;
use crate::permission::{Action, Mode, Rule};
use crate::pipeline::Pipeline;
use crate::registry::Registry;
use crate::risk::{Risk, RiskClass};
use crate::schema::Schema;
use crate::tool::{Definition, DynamicTool, Truncate};
use crate::truncate::{Budget, outputs_folder, save_output};

/// A tool called `name` that takes strings.
fn definition(name: &'static str, takes: &[&str]) -> Definition {
    let properties: Value = takes.iter().map(|name| (*name, json!({"type": "string"}))).collect();
    let schema = json!({"type": "object", "properties": properties});
    let schema = Schema::from_value(schema).expect("it is a schema");
    Definition::new(ToolName::from_static(name), "Does it.", schema)
}

fn reader(name: &'static str, takes: &[&str]) -> Definition {
    definition(name, takes).risk(Risk::new(RiskClass::Read))
}

fn requiring(argument: &str, tool: Definition) -> Definition {
    let mut schema = tool.parameters.to_value();
    schema["required"] = json!([argument]);
    Definition { parameters: Schema::from_value(schema).expect("it is a schema"), ..tool }
}

fn agents(name: &'static str, takes: &[&str]) -> Definition {
    Definition { category: Some("agents".into()), ..definition(name, takes) }
}

/// A pipeline with the tool `t`, which returns `output`, and others that are never called.
fn pipeline(t: Definition, output: Output, others: Vec<Definition>) -> Pipeline {
    let give = move |_, _| std::future::ready(output.clone());
    let others = others.into_iter().map(|it| DynamicTool::new(it, |_, _| async { "" }));
    let builder = Registry::builder().add(DynamicTool::new(t, give));
    let registry = others.fold(builder, |builder, tool| builder.add(tool)).build().unwrap();
    Pipeline::new(registry).mode(Mode::Bypass)
}

fn plain(output: impl Into<Output>) -> Pipeline {
    pipeline(definition("t", &[]), output.into(), Vec::new())
}

async fn call(pipeline: &Pipeline) -> Outcome {
    pipeline.call(&Session::new("s"), Call::new("t", "{}").id("c")).await
}

fn truncated(outcome: &Outcome) -> &Truncation {
    outcome.truncation().expect("something is left out")
}

/// Returns the line in brackets.
fn notice(outcome: &Outcome) -> String {
    let text = outcome.text();
    text.lines().find(|line| line.starts_with('[')).expect("there is a notice").to_owned()
}

// F45: every text is at most as long as the limit, plus the notice.
#[tokio::test]
async fn a_limit_bounds_every_text() {
    let texts = ["x".repeat(5000), "ä\n".repeat(5000), "🦀".repeat(900), "\n".repeat(5000)];
    for text in texts {
        for keep in [Truncate::Head, Truncate::Tail, Truncate::Middle, Truncate::None] {
            for limit in [100, 1000] {
                let mut tool = definition("t", &[]);
                tool.truncate = Some(keep);
                let pipeline = pipeline(tool, text.clone().into(), Vec::new());
                let outcome = call(&pipeline.budget(Budget::default().with_bytes(limit))).await;
                let notice = notice(&outcome);
                // The notice is surrounded by line ends.
                assert!(outcome.text().len() <= limit + notice.len() + 2, "{}", outcome.text());
                assert!(outcome.text().chars().count() > notice.chars().count() + limit / 5);
            }
        }
    }
}

// F45: the call's limit overrides the tool's, and the tool's overrides the pipeline's.
#[tokio::test]
async fn the_nearest_limit_counts() {
    let text = "x\n".repeat(100);
    let mut tool = definition("t", &[]);
    let of_pipeline = pipeline(tool.clone(), text.as_str().into(), Vec::new());
    let of_pipeline = of_pipeline.budget(Budget::tokens(10));
    assert_eq!(truncated(&call(&of_pipeline).await).omitted_bytes, 160);

    tool.max_output = Some(20);
    let of_tool = pipeline(tool, text.into(), Vec::new()).budget(Budget::tokens(10));
    assert_eq!(truncated(&call(&of_tool).await).omitted_bytes, 180);
    let of_call = Call::new("t", "{}").max_output(Budget::tokens(2).max_bytes());
    let outcome = of_tool.call(&Session::new("s"), of_call).await;
    assert_eq!(truncated(&outcome).omitted_bytes, 192);
}

// F45, F95: a tool that limits its own output is truncated by a host's limit, not by the default.
#[tokio::test]
async fn what_keeps_itself_short_is_cut_by_what_was_set() {
    let mut tool = definition("t", &[]);
    tool.truncate = Some(Truncate::None);
    let text = "x\n".repeat(3000);
    let of = |budget| pipeline(tool.clone(), text.as_str().into(), Vec::new()).budget(budget);
    assert!(call(&of(Budget::default())).await.truncation().is_none());
    assert!(call(&of(Budget::default().with_bytes(100_000))).await.truncation().is_none());
    assert_eq!(truncated(&call(&of(Budget::default().with_lines(7))).await).omitted_lines, 2993);
}

// F95, F99: a tool that reads the wanted limit leaves truncation to the pipeline, so that the file
// has everything; its heading stays, and does not count.
#[tokio::test]
async fn a_limit_of_the_result_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (heading, body) = ("took 12 ms\n", "line\n".repeat(100));
    let whole = format!("{heading}{body}");
    let output = Output::text(whole.as_str()).heading(heading.len()).limit(50);
    let mut tool = definition("t", &[]);
    tool.truncate = Some(Truncate::Middle);
    let outcome = call(&pipeline(tool, output, Vec::new()).output_dir(folder.path())).await;
    let cut = truncated(&outcome);
    assert_eq!((cut.original_lines, cut.original_bytes), (100, 500));
    assert_eq!((cut.omitted_lines, cut.omitted_bytes), (90, 450));
    let start = format!("{heading}line\nline\n[90 of 100 lines and 450 of 500 bytes left out");
    assert!(outcome.text().starts_with(&start), "{}", outcome.text());
    assert!(outcome.text().ends_with(&format!("]\n{}", "line\n".repeat(8))), "{}", outcome.text());
    assert_eq!(fs::read_to_string(cut.full_output_path.as_ref().unwrap()).unwrap(), whole);
}

// F96: the notice stands where the text was cut.
#[tokio::test]
async fn the_notice_stands_at_the_cut() {
    let numbers: String = (1..=10).map(|number| format!("{number}\n")).collect();
    for (keep, before, after) in [
        (Truncate::Head, "1\n2\n3\n4\n5\n[5 of 10 lines and 11 of 21 bytes left out]", ""),
        (Truncate::Tail, "[5 of 10 lines and 10 of 21 bytes left out]\n", "6\n7\n8\n9\n10\n"),
        (Truncate::Middle, "1\n[5 of 10 lines and 10 of 21 bytes left out]\n", "7\n8\n9\n10\n"),
    ] {
        let mut tool = definition("t", &[]);
        tool.truncate = Some(keep);
        let pipeline = pipeline(tool, numbers.as_str().into(), Vec::new());
        let outcome = call(&pipeline.budget(Budget::new(5, 1000))).await;
        assert_eq!(outcome.text(), format!("{before}{after}"));
    }
}

// F97: the hints name tools that exist.
#[tokio::test]
async fn hints_name_the_tools_that_are_there() {
    let pages = ["path", "offset", "limit"];
    let page = || requiring("path", reader("pager", &pages));
    let list = || reader("lister", &pages);
    let names = || reader("names", &["pattern", "path"]);
    let search = || reader("seek", &["pattern", "path", "include"]);
    let writer = || requiring("path", definition("writer", &[&pages[..], &["pattern"]].concat()));
    let hidden = || {
        let mut hidden = agents("hidden", &["prompt"]);
        hidden.flags.hidden = true;
        hidden
    };
    let cases = [
        (vec![], ""),
        (vec![writer(), hidden()], ""),
        (vec![list()], ""),
        (vec![list(), page()], "; page through it with `pager` (offset, limit)"),
        (vec![names(), search()], "; search it with `seek`"),
        (vec![names()], ""),
        (vec![agents("close", &["id"]), agents("helper", &["prompt"])], "; hand it to `helper`"),
        (
            vec![page(), search(), agents("close", &["id"])],
            "; page through it with `pager` (offset, limit) or search it with `seek` or hand it \
             to `close`",
        ),
    ];
    for (others, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let t = pipeline(definition("t", &[]), "x\n".repeat(5000).into(), others);
        let told = notice(&call(&t).await);
        assert!(told.ends_with("bytes left out]"), "nothing is kept: {told}");

        let outcome = call(&t.output_dir(folder.path())).await;
        let path = truncated(&outcome).full_output_path.clone().unwrap();
        let expected = format!("; the whole output is in {}{expected}]", path.display());
        assert!(notice(&outcome).ends_with(&expected), "{}", notice(&outcome));
    }
}

// F95, F99: the file holds the whole text, and the record says where and how much was cut.
#[tokio::test]
async fn what_is_cut_is_kept_in_the_sessions_folder() {
    let folder = tempfile::tempdir().unwrap();
    let whole = "ä\r\n".repeat(3000);
    let pipeline = plain(whole.as_str()).output_dir(folder.path());
    let (first, second) = (call(&pipeline).await, call(&pipeline).await);
    for (outcome, name) in [(first, "c.output.txt"), (second, "c-2.output.txt")] {
        let record = serde_json::to_value(truncated(&outcome)).unwrap();
        let path = outputs_folder(folder.path(), "s").join(name);
        let expected = json!({
            "original_lines": 3000, "original_bytes": 12_000,
            "omitted_lines": 1000, "omitted_bytes": 4000,
            "dropped_lines": 0, "dropped_bytes": 0, "unprintable_bytes": 0,
            "full_output_path": path,
        });
        assert_eq!(record, expected);
        assert_eq!(fs::read_to_string(path).unwrap(), whole);
    }
}

// F95: the output folder can be given to tools that read before it contains anything.
#[cfg(feature = "workspace")]
#[tokio::test]
async fn what_is_kept_can_be_lent() {
    use std::io::Read as _;

    use tool_sdk_workspace::Workspace;

    use crate::truncate::prepare_outputs;

    let (project, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let outputs = prepare_outputs(folder.path(), "s").unwrap();
    let workspace = Workspace::open([project.path()]).unwrap().with_read_only(outputs).unwrap();
    let outcome = call(&plain("x\n".repeat(3000)).output_dir(folder.path())).await;
    let path = truncated(&outcome).full_output_path.clone().unwrap();

    let mut text = String::new();
    let place = workspace.resolve(path.to_str().unwrap()).unwrap();
    place.open_file().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((text.len(), place.is_read_only()), (6000, true));
    let others = outputs_folder(folder.path(), "other").join("c.output.txt");
    assert!(workspace.resolve(others.to_str().unwrap()).is_err());
}

// F98: storing an output removes old ones.
#[test]
fn keeping_sweeps_what_is_old() {
    // With one blocking thread, tasks run in the order in which they are spawned.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let long = plain("x\n".repeat(3000));
    let ago = |days: u64| std::time::SystemTime::now() - Duration::from_hours(24 * days);
    let aged = ["old", "young"].map(|id| save_output(folder.path(), "s", id, "text").unwrap());
    for (path, days) in aged.iter().zip([10, 3]) {
        fs::File::open(path).unwrap().set_modified(ago(days)).unwrap();
    }
    runtime.block_on(async {
        call(&long.output_dir(folder.path())).await;
        tokio::task::spawn_blocking(|| ()).await.unwrap();
    });
    assert_eq!(aged.map(|path| path.exists()), [false, true]);
}

// F99: what the tool lost counts, also when nothing else is cut.
#[tokio::test]
async fn what_was_never_captured_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let short = plain(Output::text("first\nlast").report_dropped(7, 90)).output_dir(folder.path());
    let outcome = call(&short).await;
    assert_eq!(
        outcome.text(),
        "first\nlast\n[7 of 9 lines and 90 of 100 bytes left out, of which 7 lines and 90 bytes \
         were never captured]"
    );
    assert_eq!(truncated(&outcome).full_output_path, None);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

    let long =
        plain(Output::text("x\n".repeat(3000)).report_dropped(500, 4000)).output_dir(folder.path());
    let outcome = call(&long).await;
    let record = truncated(&outcome);
    assert_eq!((record.original_lines, record.original_bytes), (3500, 10_000));
    assert_eq!((record.omitted_lines, record.omitted_bytes), (1500, 6000));
    let path = record.full_output_path.as_ref().unwrap();
    let expected = format!(
        "[1500 of 3500 lines and 6000 of 10000 bytes left out, of which 500 lines and 4000 bytes \
         were never captured; what was captured is in {}]",
        path.display()
    );
    assert_eq!(notice(&outcome), expected);

    // The mark itself is not output, whether it is kept or cut.
    let marked = |text: String| {
        plain(Output::text(text).report_dropped(500, 4000).dropped_marker("\n[lost]\n"))
    };
    for (before, after) in [(1, 1), (1500, 1500), (2900, 100)] {
        let text = format!("{}\n[lost]\n{}", "x\n".repeat(before), "x\n".repeat(after));
        let record = truncated(&call(&marked(text)).await).clone();
        let lines = before + after;
        assert_eq!((record.original_lines, record.original_bytes), (lines + 500, lines * 2 + 4000));
        // Two of the 2000 lines that are kept may be the mark.
        let kept = record.original_bytes - record.omitted_bytes;
        assert_eq!(kept, if before > 2000 { 4000 } else { lines.min(1998) * 2 });
    }

    // When nothing else is missing, the notice replaces the mark.
    let text = call(&marked("a\n\n[lost]\nb\n".to_owned())).await.text().into_owned();
    let notice = "[500 of 502 lines and 4000 of 4004 bytes left out, of which 500 lines and 4000 \
                  bytes were never captured]";
    assert_eq!(text, format!("a\n{notice}\nb\n"));

    let nothing = call(&plain(Output::text("all").report_dropped(0, 0))).await;
    assert_eq!((nothing.text().as_ref(), nothing.truncation()), ("all", None));
}

// F99: counts refer to the bytes from which the text was made; the footing stays.
#[tokio::test]
async fn what_is_no_text_is_counted_apart() {
    let (heading, footing) = ("took 12 ms\n", "a remark");
    // Of each line of eight bytes, two are text, and one is shown as three.
    let text = format!("{heading}{}{footing}", "a\u{fffd}\n".repeat(3000));
    let output = Output::text(text).original_bytes(8 * 3000 + 100).report_dropped(7, 100);
    let output = output.heading(heading.len()).footing(footing.len());
    for keep in [Truncate::Head, Truncate::Tail, Truncate::Middle] {
        let mut tool = definition("t", &[]);
        tool.truncate = Some(keep);
        let outcome = call(&pipeline(tool, output.clone(), Vec::new())).await;
        let cut = truncated(&outcome);
        assert_eq!((cut.original_lines, cut.original_bytes), (3007, 24_100));
        assert_eq!((cut.omitted_lines, cut.omitted_bytes), (1007, 24_100 - 2 * 2000));
        assert_eq!((cut.dropped_bytes, cut.unprintable_bytes), (100, 6 * 3000));
        let text = outcome.text();
        assert!(text.starts_with(heading) && text.ends_with("\na remark"), "{text}");
        assert!(notice(&outcome).contains("never captured and 18000 bytes are not text"));
    }
}

// A structured value stays whole when its text is cut for the model.
#[tokio::test]
async fn structured_values_stay_whole() {
    let value = json!({"rows": vec!["row"; 10_000]});
    let text = value.to_string();
    for output in [
        Output::json(&value).unwrap(),
        Output::json(&value).unwrap().report_dropped(1, 1),
        Output::text(text.as_str()).structured(value.clone()),
    ] {
        let outcome = call(&plain(output)).await;
        assert!(outcome.text().len() < 52_000 && outcome.text().starts_with(&text[..51_200]));
        let output = outcome.result.unwrap();
        assert_eq!(output.to_structured().as_ref(), Some(&value));
        assert_eq!(output.into_json(), text);
    }
}

// F100: output that a tool marks as fitted is not cut again, even if it contains more.
#[tokio::test]
async fn nothing_is_cut_twice() {
    let whole = "x\n".repeat(5000);
    let once = call(&plain(whole.as_str())).await.text().into_owned();
    assert_eq!(once.matches("left out").count(), 1);
    let again = call(&plain(once.as_str()).budget(Budget::new(2001, 51_200))).await;
    assert_eq!((again.text().as_ref(), again.truncation()), (once.as_str(), None));
}

/// A pipeline with the tool `t`, which fails.
fn failing(message: String, hint: Option<&'static str>) -> Pipeline {
    let tool = DynamicTool::new(definition("t", &[]), move |_, _| {
        let error = ToolError::failed(&message);
        let error = hint.iter().fold(error, |error, hint| error.hint(hint));
        std::future::ready(Err::<String, _>(error))
    });
    Pipeline::new(Registry::builder().add(tool).build().unwrap()).mode(Mode::Bypass)
}

// F100: errors are cut in the same place: in the middle, with a count.
#[tokio::test]
async fn failures_are_cut_too() {
    let lines = |count| (1..=count).map(|nth| format!("line {nth}\n")).collect::<String>();
    let folder = tempfile::tempdir().unwrap();
    for hint in [None, Some("look at the end")] {
        let message = lines(2000) + "error: the cause";
        let pipeline = failing(message.clone(), hint).output_dir(folder.path());
        let mut events = pipeline.subscribe();
        let outcome = call(&pipeline).await;
        let text = outcome.text();
        let ending = hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        assert!(text.starts_with("line 1\nline 2\n") && text.len() <= 4096, "{text}");
        assert!(text.ends_with(&format!("line 2000\nerror: the cause{ending}")), "{text}");

        let record = truncated(&outcome);
        assert_eq!((record.original_lines, record.original_bytes), (2001, message.len()));
        let left = text.lines().filter(|it| it.starts_with("line ") || it.starts_with("error"));
        assert_eq!(record.omitted_lines, 2001 - left.count());
        let path = record.full_output_path.as_ref().unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), message + &ending);
        assert!(notice(&outcome).contains(&format!("the whole output is in {}", path.display())));
        let told = std::iter::from_fn(|| events.try_recv());
        assert_eq!(told.filter(|it| matches!(it.kind, EventKind::Truncated(_))).count(), 1);
    }

    let outcome = call(&failing("x".repeat(5000), None)).await;
    assert!(outcome.text().starts_with("xxx") && outcome.text().ends_with("xxx"));
    assert!(outcome.text().len() <= 4096 && truncated(&outcome).full_output_path.is_none());
    assert_eq!(call(&failing("x".repeat(4096), None)).await.truncation(), None);
}

// F96: a tool is only named when it can open the file.
#[cfg(feature = "workspace")]
#[tokio::test]
async fn what_cannot_be_opened_is_no_way_to_the_rest() {
    use tool_sdk_workspace::Workspace;

    use crate::truncate::prepare_outputs;

    let (project, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let page = requiring("path", reader("page", &["path", "offset", "limit"]));
    let pipeline = pipeline(definition("t", &[]), "x\n".repeat(3000).into(), vec![page]);
    let pipeline = pipeline.output_dir(folder.path());
    let workspace = Workspace::open([project.path()]).unwrap();
    let outputs = prepare_outputs(folder.path(), "s").unwrap();
    let lent = workspace.clone().with_read_only(outputs).unwrap();
    for (workspace, is_named) in [(workspace, false), (lent, true)] {
        let session = Session::new("s").with_service(workspace);
        let outcome = pipeline.call(&session, Call::new("t", "{}")).await;
        let notice = notice(&outcome);
        assert!(notice.contains("the whole output is in"), "{notice}");
        assert_eq!(notice.contains("page through it with `page`"), is_named, "{notice}");
    }
}

/// Cases of another system; the text differs here:
///
/// | there | here |
/// | --- | --- |
/// | `...90 lines truncated...` | `90 of 100 lines` |
/// | `...N bytes truncated...` | `of N bytes left out` |
/// | "The tool call succeeded but the output was truncated" | the notice alone |
/// | `Grep`, `Task tool` | the tools' own names |
/// | a permission for `task` | the tool is in the toolset or not |
/// | a file `tool_<id>` | a file named after the call |
/// | one line over the limit leaves an empty preview | it is cut inside |
const THEIR_CASES: &str = include_str!("../../../tests/fixtures/opencode-truncation/cases.json");

fn as_written_here(words: &str) -> &str {
    match words {
        "...90 lines truncated..." => "[90 of 100 lines",
        "bytes truncated..." => "of 1000 bytes left out",
        "The tool call succeeded but the output was truncated" => "the whole output is in",
        "Grep" => "search it with `seek`",
        "Task tool" => "hand it to `helper`",
        line => line,
    }
}

fn texts<'c>(case: &'c Value, key: &str) -> Vec<&'c str> {
    case[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

// F94 to F97, with the cases of a system in production.
#[tokio::test]
async fn cases_of_another_system_hold() {
    let cases: Value = serde_json::from_str(THEIR_CASES).unwrap();
    for case in cases["cases"].as_array().unwrap() {
        let limit = |key: &str, default| {
            let given = case[key].as_u64().or_else(|| case["config"][key].as_u64());
            given.map_or(default, |limit| usize::try_from(limit).unwrap())
        };
        let budget = Budget::new(limit("max_lines", 2000), limit("max_bytes", 51_200));
        let mut others = vec![reader("seek", &["pattern", "path", "include"])];
        if case["task_permission"] == "allow" {
            others.push(agents("helper", &["prompt"]));
        }
        let mut tool = definition("t", &[]);
        tool.truncate = (case["direction"] == "tail").then_some(Truncate::Tail);
        let content = case["content"].as_str().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let pipeline = pipeline(tool, content.into(), others).budget(budget);
        let outcome = call(&pipeline.output_dir(folder.path())).await;

        let name = &case["name"];
        let is_cut = case["truncated"].as_bool().unwrap_or(true);
        assert_eq!(outcome.truncation().is_some(), is_cut, "{name}");
        for words in texts(case, "contains") {
            assert!(outcome.text().contains(as_written_here(words)), "{name}: {words}");
        }
        for words in texts(case, "not_contains") {
            assert!(!outcome.text().contains(as_written_here(words)), "{name}: {words}");
        }
        match outcome.truncation() {
            Some(record) => {
                let path = record.full_output_path.as_ref().expect("it is kept");
                assert_eq!(fs::read_to_string(path).unwrap(), content, "{name}");
            }
            None => assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{name}"),
        }
    }
}

// F96, P15: a tool is only named when no rule denies it the file.
#[tokio::test]
async fn what_a_rule_forbids_is_no_way_to_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let shows = |tool: Definition| Definition { permission: Some("view".into()), ..tool };
    let page = shows(requiring("path", reader("page", &["path", "offset", "limit"])));
    let seek = shows(reader("seek", &["pattern", "path", "include"]));
    let below = format!("view({}/*)", folder.path().display());
    for (denied, is_paged, is_searched) in [
        ("view(*.rs)", true, true),
        ("view(*.txt)", false, false),
        (&*below, false, false),
        ("seek(*.txt)", false, false),
    ] {
        let others = vec![page.clone(), seek.clone()];
        let pipeline = pipeline(definition("t", &[]), "x\n".repeat(3000).into(), others);
        let rule = Rule::parse(Action::Deny, denied).unwrap();
        let outcome = call(&pipeline.output_dir(folder.path()).rules([rule])).await;
        let notice = notice(&outcome);
        assert!(notice.contains("the whole output is in"), "{notice}");
        let named = (notice.contains("`page`"), notice.contains("`seek`"));
        assert_eq!(named, (is_paged, is_searched), "{denied}: {notice}");
    }
}
