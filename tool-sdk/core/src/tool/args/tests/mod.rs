//! Decoding of arguments, with a hand-written table as generated code has it.

#[cfg(feature = "external-schemas")]
mod agree;
mod by_schema;
#[cfg(feature = "external-schemas")]
mod external;
mod odd;

use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

use super::*;
use crate::call::{Coercion, Leniency};
use crate::schema::Schema;
use crate::tool::native::{DefaultSpec, ParamOptions, ParamSpec, Range, ToolSpec, filled};
use crate::tool::param::param_type;
use crate::tool::{ArgsSpec, struct_type};

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Spot {
    line: u32,
    /// A note.
    note: Option<String>,
}

static TABLE: Table = Table::new(ToolSpec {
    name: "look",
    description: "Looks.",
    args: ArgsSpec::Params(&[
        ParamSpec {
            name: "path",
            description: "Path, relative to the workspace.\nMore.",
            ty: param_type::<String>(),
            default: None,
            options: &ParamOptions { aliases: &["file"], ..ParamOptions::DEFAULT },
        },
        ParamSpec {
            name: "limit",
            description: "",
            ty: param_type::<u32>(),
            default: Some(DefaultSpec::Json("2000")),
            options: &ParamOptions {
                range: Some(Range::Int(Some(1), Some(5000))),
                ..ParamOptions::DEFAULT
            },
        },
        ParamSpec {
            name: "tags",
            description: "",
            ty: param_type::<Option<Vec<String>>>(),
            default: None,
            options: &ParamOptions { length: Some((0, 3)), ..ParamOptions::DEFAULT },
        },
        ParamSpec {
            name: "spot",
            description: "",
            ty: param_type::<Option<Spot>>(),
            default: None,
            options: ParamOptions::NONE,
        },
        ParamSpec {
            name: "token",
            description: "",
            ty: param_type::<String>(),
            default: Some(DefaultSpec::Json("\"\"")),
            options: &ParamOptions {
                pattern: Some("^[a-z]*$"),
                sensitive: true,
                ..ParamOptions::DEFAULT
            },
        },
    ]),
    ..ToolSpec::DEFAULT
});

type Values = (String, u32, Option<Vec<String>>, Option<Spot>);

fn parse_look(raw: &RawArgs<'_>) -> Result<(Values, ParsedArgs), InvalidArgs> {
    let mut path: Option<String> = None;
    let mut limit: Option<u32> = None;
    let mut tags: Option<Option<Vec<String>>> = None;
    let mut spot: Option<Option<Spot>> = None;
    let mut token: Option<String> = None;
    let taken =
        parse_args(&TABLE, raw, &mut [&mut path, &mut limit, &mut tags, &mut spot, &mut token])?;
    Ok(((filled(path), limit.unwrap_or(2000), filled(tags), filled(spot)), taken))
}

#[track_caller]
fn parse_values(text: &str) -> Values {
    parse_look(&RawArgs::new(text)).unwrap().0
}

/// Returns the faults of `text`, without the first line and the signature.
#[track_caller]
fn faults_of_look(text: &str) -> Vec<String> {
    let error = parse_look(&RawArgs::new(text)).expect_err("the arguments are wrong");
    let message = error.to_string();
    assert!(message.starts_with("invalid arguments for `look`:\n- "), "{message}");
    assert!(message.contains("\nexpected: {\"path\": string"), "{message}");
    error.faults().iter().map(|fault| fault.message.clone()).collect()
}

#[test]
fn good_arguments_are_taken_in_any_order() {
    let spot = Some(Spot { line: 3, note: None });
    assert_eq!(parse_values(r#"{"path":"a"}"#), ("a".into(), 2000, None, None));
    assert_eq!(
        parse_values(
            " {\n\"limit\" : 7 , \"spot\":{\"line\":3}, \"tags\":[\"x\"],\t\"path\":\"\\u00e4\"} "
        ),
        ("ä".into(), 7, Some(vec!["x".into()]), spot)
    );
    assert_eq!(parse_values(r#"{"p\u0061th":"a"}"#).0, "a");
}

// F2, F38: all faults of the call are in one message that helps the model.
#[test]
fn every_fault_is_in_one_message() {
    let error = parse_look(&RawArgs::new(r#"{"limit": 9000, "pth": "x"}"#)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid arguments for `look`:\n\
         - `limit` is 9000, but must be between 1 and 5000\n\
         - unknown argument `pth`; did you mean `path`?\n\
         - `path` is required (string): Path, relative to the workspace.\n\
         expected: {\"path\": string, \"limit\"?: integer 1..5000 = 2000, \"tags\"?: [string; ≤ 3], \"spot\"?: {\"line\": integer ≥ 0, \"note\"?: string}, \"token\"?: string = \"\"}"
    );
    assert_eq!(error.faults()[0].pointer, "/limit");
}

#[test]
fn wrong_types_are_named_with_what_came_and_what_is_wanted() {
    for (text, words) in [
        (
            r#"{"path":"a","limit":"5"}"#,
            "`limit` is the string \"5\", but must be an integer between 1 and 5000",
        ),
        (
            r#"{"path":"a","limit":5.5}"#,
            "`limit` is 5.5, but must be an integer between 1 and 5000",
        ),
        (r#"{"path":"a","limit":1e4}"#, "`limit` is 1e4, but must be between 1 and 5000"),
        (r#"{"path":"a","limit":-1}"#, "`limit` is -1, but must be between 1 and 5000"),
        (
            r#"{"path":"a","limit":99999999999999999999999}"#,
            "`limit` is 99999999999999999999999, but must be between 1 and 5000",
        ),
        (r#"{"path":7}"#, "`path` is 7, but must be a string"),
        // Required arguments and items of a list cannot be absent.
        (r#"{"path":null}"#, "`path` is null, but must be a string"),
        (r#"{"path":"a","tags":[null]}"#, "`tags[0]` is null, but must be a string"),
        (
            r#"{"path":"a","tags":null}"#,
            "`tags` is null, but must be a list of strings; leave it out instead",
        ),
        (r#"{"path":"a","tags":["a","b","c","d"]}"#, "`tags` has 4 items, but must have at most 3"),
        (r#"{"path":"a","tags":[1]}"#, "`tags[0]` is 1, but must be a string"),
        (
            r#"{"path":"a","spot":{"line":1,"nte":""}}"#,
            "unknown argument `nte` in `spot`; did you mean `note`?",
        ),
        (r#"{"path":"a","spot":{}}"#, "`spot.line` is required (integer of at least 0)"),
        (
            r#"{"path":"a","spot":{"line":1,"line":2}}"#,
            "`spot` is not acceptable: the key \"line\" comes twice",
        ),
        (r#"{"path":"a","path":"b"}"#, "`path` comes twice"),
        (r#"{"path":"a","file":"b"}"#, "`file` is an alias of `path`, which comes twice"),
        (r#"{"file":"a","path":"b"}"#, "`path` comes twice, once by an alias"),
    ] {
        assert_eq!(faults_of_look(text), [words], "{text}");
    }
}

#[test]
fn what_is_no_json_object_never_runs_a_tool() {
    for (text, words) in [
        ("", "the arguments are empty; send `{}` for a call without arguments"),
        ("null", "the arguments must be a JSON object, not null"),
        ("[]", "the arguments must be a JSON object, not a list"),
        (r#""{}""#, "the arguments must be a JSON object, not a string"),
        (r#"{"path":"a""#, "the arguments are not valid JSON: the text ends too early, at byte 11"),
        (
            r#"{"path":"a",}"#,
            "the arguments are not valid JSON: expected a key in double quotes, at byte 12",
        ),
        (
            r#"{"path":"a"} x"#,
            "the arguments are not valid JSON: something follows the closing `}`, at byte 13",
        ),
        (
            r#"{"path":"a"}{}"#,
            "the arguments are not valid JSON: something follows the closing `}`, at byte 12",
        ),
        (
            r#"{'path':"a"}"#,
            "the arguments are not valid JSON: expected a key in double quotes, at byte 1",
        ),
    ] {
        assert_eq!(faults_of_look(text), [words], "{text}");
    }
}

#[test]
fn size_and_depth_are_bounded() {
    let long = format!(r#"{{"path":"{}"}}"#, "x".repeat(MAX_BYTES));
    assert!(faults_of_look(&long)[0].ends_with("but must be at most 1048576"));

    let deep = format!(r#"{{"path":"a","spot":{}{}}}"#, "[".repeat(65), "]".repeat(65));
    assert!(
        faults_of_look(&deep)[0].contains("nested deeper than 64 levels"),
        "{:?}",
        faults_of_look(&deep)
    );
    let bottomless = format!(r#"{{"path":"a","other":{}"#, "[".repeat(500_000));
    assert!(!faults_of_look(&bottomless).is_empty());
}

#[test]
fn secrets_are_not_repeated() {
    for text in [
        r#"{"path":"a","token":"SECRET"}"#,
        r#"{"path":"a","token":["SECRET"]}"#,
        r#"{"path":"a","token":12345678}"#,
    ] {
        let message = parse_look(&RawArgs::new(text)).unwrap_err().to_string();
        assert!(!message.contains("SECRET") && !message.contains("12345678"), "{message}");
    }
}

#[test]
fn secrets_inside_of_others_are_not_repeated() {
    let schema = Schema::from_value(serde_json::json!({
        "type": "object",
        "properties": {
            "key": {
                "type": "object",
                "properties": {
                    "pins": {"type": "array", "items": {"type": "integer"}},
                    "kind": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/Deep"}]},
                },
            },
            "above": {"type": "number", "exclusiveMinimum": 5},
        },
        "$defs": {"Deep": {"type": "array", "items": {"$ref": "#/$defs/Deep"}}},
    }));
    let checks = ArgChecks::from_schema(schema.unwrap(), &["key".to_owned()]);
    let words = |text| parse_value("look", &checks, &RawArgs::new(text)).unwrap_err().to_string();
    for text in [
        r#"{"key": {"pins": ["hunter2"]}}"#,
        r#"{"key": {"kind": ["hunter2"]}}"#,
        r#"{"key": {"kind": "hunter2"}}"#,
        r#"{"key": "hunter2"}"#,
    ] {
        assert!(!words(text).contains("hunter2"), "{}", words(text));
    }
    assert!(words(r#"{"above": 5}"#).contains("`above` is 5, but must be more than 5"));
}

#[test]
fn bounds_that_leave_one_choice_are_told_as_one() {
    let schema = Schema::from_value(serde_json::json!({
        "type": "object",
        "properties": {
            "pair": {"type": "array", "minItems": 2, "maxItems": 2},
            "letter": {"type": "string", "minLength": 1, "maxLength": 1},
            "one": {"type": "integer", "minimum": 1, "maximum": 1},
        },
    }));
    let checks = ArgChecks::from_schema(schema.unwrap(), &[]);
    let words = |text| parse_value("look", &checks, &RawArgs::new(text)).unwrap_err().to_string();
    for (text, expected) in [
        (r#"{"pair": [7]}"#, "`pair` has 1 item, but must have exactly 2"),
        (r#"{"letter": "ab"}"#, "`letter` has 2 characters, but must have exactly 1"),
        (r#"{"one": 2}"#, "`one` is 2, but must be 1"),
    ] {
        assert!(words(text).contains(expected), "{}", words(text));
    }
}

#[test]
fn aliases_are_taken_and_recorded() {
    let (values, taken) = parse_look(&RawArgs::new(r#"{"file":"a"}"#)).unwrap();
    assert_eq!(values.0, "a");
    assert_eq!(*taken.notes, [ArgumentNote::new("path", Coercion::Alias)]);
}

#[test]
fn leniency_is_declared_and_recorded() {
    let text = r#"{"path":"a","tags":null,"limit":null,"spot":"{\"line\":3}"}"#;
    assert_eq!(faults_of_look(text).len(), 3);

    let raw = RawArgs::new(text).lenient(Leniency::default().null_is_absent().stringified());
    let (values, taken) = parse_look(&raw).unwrap();
    assert_eq!(values, ("a".into(), 2000, None, Some(Spot { line: 3, note: None })));
    assert_eq!(
        *taken.notes,
        [
            ArgumentNote::new("tags", Coercion::NullAsAbsent),
            ArgumentNote::new("limit", Coercion::NullAsAbsent),
            ArgumentNote::new("spot", Coercion::Stringified),
        ]
    );
    // Leniency never makes a required argument absent.
    let raw = RawArgs::new(r#"{"path":null}"#).lenient(Leniency::default().null_is_absent());
    assert!(parse_look(&raw).is_err());
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Query {
    /// What to look for.
    query: String,
    #[serde(default)]
    #[schemars(range(min = 1, max = 9))]
    limit: Option<u8>,
    kind: Kind,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Kind {
    All,
    Within { folder: String },
}

static QUERY: Table = Table::new(ToolSpec {
    name: "query",
    args: ArgsSpec::Struct(struct_type::<Query>()),
    ..ToolSpec::DEFAULT
});

fn parse_query(text: &str) -> Result<Query, InvalidArgs> {
    let mut query: Option<Query> = None;
    parse_struct(&QUERY, &RawArgs::new(text), &mut query)?;
    Ok(filled(query))
}

#[track_caller]
fn query_faults(text: &str) -> Vec<String> {
    let error = parse_query(text).unwrap_err();
    error.faults().iter().map(|fault| fault.message.clone()).collect()
}

#[test]
fn a_struct_is_held_to_its_schema_too() {
    let good = r#"{"query":"x","kind":{"type":"within","folder":"a"}}"#;
    let query = parse_query(good).unwrap();
    assert!(matches!(query.kind, Kind::Within { folder } if folder == "a"));
    assert_eq!((query.query.as_str(), query.limit), ("x", None));

    assert_eq!(
        query_faults(r#"{"limit":10,"kind":{"type":"all"}}"#),
        [
            "`limit` is 10, but must be between 1 and 9",
            "`query` is required (string): What to look for."
        ]
    );
    assert_eq!(
        query_faults(r#"{"query":"x","kind":{"type":"within"},"more":1}"#),
        ["`kind.folder` is required (string)", "unknown argument `more`"]
    );
    assert_eq!(query_faults(r#"{"query":"x","kind":{"type":"withn"}}"#).len(), 1);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = parse_look(&RawArgs::new(text.as_str()));
        let _ = parse_query(&text);
    }

    #[test]
    fn nearly_good_text_makes_short_messages(
        text in r#"\{("(path|limit|tags|spot|token|x{0,300})": ?("[a-z\\]{0,9}"|-?[0-9]{1,30}|null|\[[0-9,"]{0,20}\]|\{("line":[0-9])?\}),? ?){0,40}\}?"#
    ) {
        if let Err(error) = parse_look(&RawArgs::new(text.as_str())) {
            prop_assert!(error.to_string().len() <= 4096);
            prop_assert!(!error.faults().is_empty());
        }
    }
}

// A range that looks like that of a narrower type is not enforced by the type.
#[test]
fn a_range_holds_for_numbers_of_any_width() {
    static WIDE: Table = Table::new(ToolSpec {
        name: "wide",
        description: "Takes a wide number.",
        args: ArgsSpec::Params(&[ParamSpec {
            name: "number",
            description: "",
            ty: param_type::<u128>(),
            default: None,
            options: &ParamOptions {
                range: Some(Range::Int(Some(0), Some(u64::MAX as i128))),
                ..ParamOptions::DEFAULT
            },
        }]),
        ..ToolSpec::DEFAULT
    });
    let number = |text: &str| {
        let mut number: Option<u128> = None;
        parse_args(&WIDE, &RawArgs::new(text), &mut [&mut number]).map(|_| filled(number))
    };
    assert_eq!(number(r#"{"number": 18446744073709551615}"#), Ok(u128::from(u64::MAX)));
    assert!(number(r#"{"number": 18446744073709551616}"#).is_err());
}

// A key is a duplicate even if its first value counts as absent, and is reported once.
#[test]
fn a_null_is_a_value_when_keys_are_counted() {
    let text = r#"{"path": "a", "limit": null, "limit": 5, "limit": 6}"#;
    let raw = RawArgs::new(text).lenient(Leniency::default().null_is_absent());
    let messages: Vec<String> =
        parse_look(&raw).unwrap_err().faults().iter().map(|fault| fault.message.clone()).collect();
    assert_eq!(messages, ["`limit` comes twice"]);
}

// F38: as many faults as fit are reported.
#[test]
fn as_many_faults_are_told_as_have_room() {
    let members: Vec<String> = (0..40).map(|at| format!(r#""unknown_{at}": 1"#)).collect();
    let message =
        parse_look(&RawArgs::new(format!("{{{}}}", members.join(",")))).unwrap_err().to_string();
    assert!(message.contains("`unknown_39`") && message.len() <= 4096, "{message}");
}

// F38: missing arguments are reported even if there is no room for all faults.
#[test]
fn many_faults_are_counted_and_hide_nothing_that_is_missing() {
    for count in [200, 40_000] {
        let members: Vec<String> = (0..count).map(|at| format!(r#""unknown_{at}": 1"#)).collect();
        let text = format!(r#"{{{},"limit":9000}}"#, members.join(","));
        let message = parse_look(&RawArgs::new(text)).unwrap_err().to_string();
        let lines: Vec<&str> = message.lines().collect();
        assert!(lines[1].starts_with("- `path` is required"), "{message}");
        let told = lines.iter().filter(|line| line.starts_with("- unknown")).count();
        let more = count + 1 - told - usize::from(message.contains("`limit` is 9000"));
        assert!(message.contains(&format!("\n- and {more} more\n")), "{message}");
        assert!(message.len() <= 4096, "{}", message.len());
    }
}

// F38: a value is reported as it was sent.
#[test]
fn numbers_are_told_as_they_were_written() {
    for (number, words) in [
        ("-0", "is -0, but must be between 1 and 5000"),
        ("100000000000000000000", "is 100000000000000000000, but must be between 1 and 5000"),
        ("1e20", "is 1e20, but must be between 1 and 5000"),
        ("6000.0", "is 6000.0, but must be between 1 and 5000"),
        ("5.50", "is 5.50, but must be an integer between 1 and 5000"),
    ] {
        let text = format!(r#"{{"path": "a", "limit": {number}}}"#);
        let message = parse_look(&RawArgs::new(text)).unwrap_err().faults()[0].message.clone();
        assert_eq!(message, format!("`limit` {words}"));
    }
    let long = format!(r#"{{"path": "a", "limit": 1{}}}"#, "0".repeat(100));
    assert!(parse_look(&RawArgs::new(long)).unwrap_err().faults()[0].message.len() < 120);
}

// F2: JSON Schema and every integer type decide by the value of a number.
#[test]
fn whole_numbers_may_be_written_in_any_way() {
    for number in ["7", "7.0", "7e0", "70e-1", "0.7E+1", "7.000"] {
        let text = format!(r#"{{"path": "a", "limit": {number}, "spot": {{"line": {number}}}}}"#);
        let (_, limit, _, spot) = parse_values(&text);
        assert_eq!((limit, spot.unwrap().line), (7, 7), "{number}");
    }
    macro_rules! takes {
        ($($number:ty: $($text:literal)*;)*) => {$({
            static ONE: Table = Table::new(ToolSpec {
                name: "one",
                description: "Takes a number.",
                args: ArgsSpec::Params(&[ParamSpec {
                    name: "n",
                    description: "",
                    ty: param_type::<$number>(),
                    default: None,
                    options: ParamOptions::NONE,
                }]),
                ..ToolSpec::DEFAULT
            });
            for (text, expected) in [$(($text, $text.split('.').next().unwrap())),*] {
                let mut slot: Option<$number> = None;
                let raw = RawArgs::new(format!(r#"{{"n":{text}}}"#));
                parse_args(&ONE, &raw, &mut [&mut slot]).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(slot.unwrap().to_string(), expected);
            }
            let mut slot: Option<$number> = None;
            let raw = RawArgs::new(r#"{"n":1e40}"#);
            assert!(parse_args(&ONE, &raw, &mut [&mut slot]).is_err());
        })*};
    }
    takes! {
        i8: "-128.0"; u8: "255.0"; i16: "-32768.0"; u16: "65535.00"; i32: "-1.0"; u32: "0.0";
        i64: "-9223372036854775808.0" "9223372036854775807.0"; u64: "18446744073709551615.0";
        isize: "5.0"; usize: "5.0";
        i128: "-170141183460469231731687303715884105728.0" "170141183460469231731687303715884105727";
        u128: "340282366920938463463374607431768211455.0" "340282366920938463463374607431768211455";
    }
}
