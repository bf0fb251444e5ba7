//! What wrong calls and wrong set-ups are told.

use tool_sdk::testing::Harness;
use tool_sdk::{ErrorKind, InvalidArgs, Registry, Session, State, cli, tool, tools};

struct Catalogue;

/// Count the books.
#[tool(read, register = false)]
fn count_books(_catalogue: State<Catalogue>) -> &'static str {
    "7"
}

/// List the books.
#[tool(read, register = false)]
fn list_books(
    /// Where to look.
    #[arg(length = 1..=2)]
    shelves: Vec<String>,
    /// How well they must match.
    #[arg(default = 0.5, range = 0.25..)]
    score: f32,
    _catalogue: State<Catalogue>,
) -> String {
    format!("{shelves:?} {score}")
}

/// List the days.
#[tool(read, register = false, validate = check_days)]
fn list_days(
    /// The first day.
    start: u32,
    /// The last day.
    end: u32,
) -> String {
    format!("{start} to {end}")
}

fn check_days(args: &ListDaysArgs) -> Result<(), InvalidArgs> {
    let fault = |name: &str, message: &str| Err(InvalidArgs::for_argument(name, message));
    match (args.start, args.end) {
        (0, 0) => Err(InvalidArgs::for_argument("start", "must not be 0")
            .merge(InvalidArgs::for_argument("end", "must not be 0"))),
        (start, end) if end < start => fault("end", "must not be before `start`"),
        _ => Ok(()),
    }
}

async fn message_of(name: &str, args: &str) -> String {
    let harness = Harness::new(tools![count_books, list_books, list_days]);
    harness.error(name, args).await.to_string()
}

#[tokio::test]
async fn arguments_in_a_code_fence_are_named() {
    let text = message_of("list_days", "```json\n{\"start\": 1, \"end\": 2}\n```").await;
    assert!(
        text.contains("the arguments are in a code fence; send the JSON object alone"),
        "{text}"
    );
}

#[tokio::test]
async fn missing_service_names_its_type_at_the_call() {
    let harness = Harness::new(tools![count_books]);
    let error = harness.error("count_books", "{}").await;
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.message().contains("diagnostics::Catalogue`"), "{error}");
}

#[test]
fn setup_check_lists_each_missing_service_with_its_tools() {
    let harness = Harness::new(tools![count_books, list_books, list_days]);
    let missing = harness.pipeline().check_setup(&Session::new("s1"));
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].tools, ["count_books", "list_books"]);
    let text = missing[0].to_string();
    assert!(text.contains("diagnostics::Catalogue`, which `count_books`, `list_books` need"));
    let session = Session::new("s2").with_service(Catalogue);
    assert!(harness.pipeline().check_setup(&session).is_empty());
}

#[test]
fn command_line_warns_about_missing_services_at_its_start() {
    let registry = Registry::builder().add(tools![count_books, list_days]).build();
    let (mut stdin, mut out, mut err) = (std::io::empty(), Vec::new(), Vec::new());
    let mut io = cli::Io::new(&mut stdin, &mut out, &mut err);
    let words = ["shelf", "call", "list_days", "--start", "1", "--end", "2"];
    let code = cli::run(registry.expect("it is valid"), words.map(Into::into), &mut io);
    let (out, err) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&err));
    assert_eq!((code, &*out), (0, "1 to 2\n"), "{err}");
    assert!(err.contains("warning: no service `it::diagnostics::Catalogue`"), "{err}");
}

#[tokio::test]
async fn bounds_of_lists_are_in_the_expected_line_and_those_of_f32_are_not() {
    let text = message_of("list_books", r#"{"shelves": [], "score": 0.1}"#).await;
    assert!(
        text.contains(r#""shelves": [string; 1..2], "score"?: number ≥ 0.25 = 0.5}"#),
        "{text}"
    );
    assert!(text.contains("`score` is 0.1, but must be at least 0.25\n"), "{text}");
    let text = message_of("list_books", r#"{"shelves": ["a"], "score": 1e39}"#).await;
    assert!(text.contains("but must be a number of 32 bits\n"), "{text}");
    assert!(!text.contains("e38") && !text.contains("e+38"), "{text}");
}

// F195: a tool's own checks run after decoding, and their faults read like the others.
#[tokio::test]
async fn own_checks_report_faults_like_the_schema() {
    let harness = Harness::new(tools![list_days]);
    assert_eq!(harness.ok("list_days", r#"{"start": 1, "end": 2}"#).await.as_text(), "1 to 2");
    assert_eq!(
        message_of("list_days", r#"{"start": 2, "end": 1}"#).await,
        "invalid arguments for `list_days`:\n- `end` must not be before `start`\n\
         expected: {\"start\": integer ≥ 0, \"end\": integer ≥ 0}\n\
         hint: rewrite the arguments so that they match, then call the tool again"
    );
    let text = message_of("list_days", r#"{"start": 0, "end": 0}"#).await;
    assert!(text.contains("- `start` must not be 0\n- `end` must not be 0\n"), "{text}");
    // What the schema refuses is told first.
    let text = message_of("list_days", r#"{"start": "x", "end": 0}"#).await;
    assert!(text.contains("`start` is the string \"x\""), "{text}");
}
