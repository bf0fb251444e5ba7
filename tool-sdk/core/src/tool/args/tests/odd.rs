//! Tools with unusual types: leniency for strict callers, hidden parameters, and schemas that
//! cannot be enforced.

use serde_json::{Value, json};

use super::*;
use crate::tool::Tool;
use crate::tool::native::FnTool;

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Edit {
    old: String,
    #[serde(default)]
    all: bool,
    count: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(tag = "kind")]
enum Form {
    A { x: u32 },
    B { y: String, z: Option<bool> },
}

static EDITS: Table = Table::new(ToolSpec {
    name: "edit",
    args: ArgsSpec::Params(&[ParamSpec {
        name: "edits",
        description: "",
        ty: param_type::<Vec<Edit>>(),
        default: None,
        options: ParamOptions::NONE,
    }]),
    ..ToolSpec::DEFAULT
});

static FORM: Table = Table::new(ToolSpec {
    name: "form",
    args: ArgsSpec::Struct(struct_type::<Form>()),
    ..ToolSpec::DEFAULT
});

fn strict(text: &str) -> RawArgs<'_> {
    RawArgs::new(text).lenient(Leniency::default().null_is_absent().stringified())
}

fn edits(raw: &RawArgs<'_>) -> Result<(Vec<Edit>, ParsedArgs), InvalidArgs> {
    let mut edits: Option<Vec<Edit>> = None;
    let taken = parse_args(&EDITS, raw, &mut [&mut edits])?;
    Ok((filled(edits), taken))
}

fn form(raw: &RawArgs<'_>) -> Result<(Form, ParsedArgs), InvalidArgs> {
    let mut form: Option<Form> = None;
    let taken = parse_struct(&FORM, raw, &mut form)?;
    Ok((filled(form), taken))
}

// Strict function calling requires every property of every object.
#[test]
fn null_is_absent_at_any_depth() {
    let text =
        r#"{"edits":[{"old":"a","all":null,"count":null},{"old":"b","all":true,"count":2}]}"#;
    assert!(edits(&RawArgs::new(text)).is_err());
    let (values, taken) = edits(&strict(text)).unwrap();
    let edit = |old: &str, all, count| Edit { old: old.to_owned(), all, count };
    assert_eq!(values, [edit("a", false, None), edit("b", true, Some(2))]);
    assert_eq!(*taken.notes, [ArgumentNote::new("edits", Coercion::NullAsAbsent)]);

    let faults = |text| edits(&strict(text)).unwrap_err().faults().to_vec();
    // Required fields are not made absent, and other faults are reported alone.
    let found = faults(r#"{"edits":[{"old":null,"all":null,"count":-1}]}"#);
    let words: Vec<_> = found.iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!(
        words,
        [
            "`edits[0].count` is -1, but must be between 0 and 4294967295",
            "`edits[0].old` is null, but must be a string",
        ]
    );
    assert_eq!(faults(r#"{"edits":[{"old":"a","alll":null}]}"#).len(), 1);
}

#[test]
fn null_stands_for_the_fields_of_other_forms() {
    let (value, taken) = form(&strict(r#"{"kind":"A","x":1,"y":null,"z":null}"#)).unwrap();
    assert_eq!(value, Form::A { x: 1 });
    assert_eq!(taken.notes.len(), 2);
    let (value, _) = form(&strict(r#"{"kind":"B","x":null,"y":"b","z":null}"#)).unwrap();
    assert_eq!(value, Form::B { y: "b".to_owned(), z: None });
    assert!(form(&strict(r#"{"kind":"A","x":null,"y":null}"#)).is_err());
    assert!(form(&strict(r#"{"kind":"A","x":1,"other":null}"#)).is_err());
}

static SHY: Table = Table::new(ToolSpec {
    name: "shy",
    args: ArgsSpec::Params(&[ParamSpec {
        name: "admin",
        description: "",
        ty: param_type::<bool>(),
        default: Some(DefaultSpec::Json("false")),
        options: &ParamOptions { hidden: true, aliases: &["root"], ..ParamOptions::DEFAULT },
    }]),
    ..ToolSpec::DEFAULT
});

// The schema accepts exactly the values that decoding accepts: hidden parameters do not exist for
// models.
#[test]
fn what_is_hidden_is_sent_by_hosts_alone() {
    let shy = |raw: RawArgs<'_>| {
        let mut admin: Option<bool> = None;
        parse_args(&SHY, &raw, &mut [&mut admin]).map(|_| admin)
    };
    assert_eq!(shy(RawArgs::new("{}")).unwrap(), None);
    for text in [r#"{"admin":true}"#, r#"{ "root" : true}"#, r#"{"admin":"x"}"#] {
        let found = shy(RawArgs::new(text)).unwrap_err();
        assert_eq!(found.faults()[0].kind, FaultKind::Unknown, "{found}");
    }
    let host = |text| shy(RawArgs::new(text).lenient(Leniency::default().hidden()));
    assert_eq!(host(r#"{"admin":true}"#).unwrap(), Some(true));
    assert!(host(r#"{"admin":"x"}"#).is_err());
}

/// Returns the faults of `arguments`, of which those called `secret` are sensitive.
fn faults_of(schema: Value, arguments: &str) -> Vec<Fault> {
    let schema = json!({ "type": "object", "properties": { "secret": schema } });
    let checks =
        ArgChecks::from_schema(Schema::from_value(schema).unwrap(), &["secret".to_owned()]);
    parse_value("look", &checks, &RawArgs::new(arguments)).unwrap_err().faults().to_vec()
}

#[test]
fn names_inside_of_secrets_are_not_repeated() {
    let closed = json!({ "type": "object", "properties": { "y": { "type": "integer" } },
        "additionalProperties": false });
    let free = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    let formed = json!({ "type": "object", "patternProperties": { "^h": { "type": "integer" } },
        "propertyNames": { "maxLength": 3 } });
    for (schema, arguments, words) in [
        (
            closed.clone(),
            r#"{"secret":{"hunter2":1}}"#,
            &["`secret` has a member of an unknown name"][..],
        ),
        (
            closed,
            r#"{"secret":{"y":"hunter2"}}"#,
            &["`secret.y` is a string, but must be an integer"],
        ),
        (
            free,
            r#"{"secret":{"hunter2":"x"}}"#,
            &["`secret[..]` is a string, but must be an integer"],
        ),
        (
            formed,
            r#"{"secret":{"hunter2":"x"}}"#,
            &[
                "`secret[..]` is a string, but must be an integer",
                "the name of `secret[..]` has 7 characters, but must have at most 3",
            ],
        ),
    ] {
        let found = faults_of(schema, arguments);
        let told: Vec<_> = found.iter().map(|fault| fault.message.as_str()).collect();
        assert_eq!(told, words);
        assert!(found.iter().all(|fault| !fault.pointer.contains("hunter2")), "{found:?}");
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is never decoded")]
struct Login {
    user_name: String,
    #[schemars(extend("writeOnly" = true), regex(pattern = "^[a-z]+$"))]
    pass_code: String,
}

static LOGIN: FnTool = FnTool::new(
    ToolSpec {
        name: "login",
        args: ArgsSpec::Struct(struct_type::<Login>()),
        options: &crate::tool::native::ToolOptions {
            primary: Some("user_name"),
            show: &["user_name", "r#pass_code", "nowhere"],
            ..crate::tool::native::ToolOptions::DEFAULT
        },
        ..ToolSpec::DEFAULT
    },
    |table, raw| {
        let mut login: Option<Login> = None;
        parse_struct(table, raw, &mut login).map(|_| unreachable!("it is wrong"))
    },
);

#[test]
fn fields_of_a_struct_can_be_secret_and_are_shown_by_their_names_in_json() {
    let tool = &LOGIN;
    let display = &tool.definition().display;
    assert_eq!(display.sensitive, ["passCode"]);
    assert_eq!(display.primary.as_deref(), Some("userName"));
    assert_eq!(display.show, ["userName", "passCode", "nowhere"]);
    let found = tool.prepare(&RawArgs::new(r#"{"userName":"a","passCode":"hunter2"}"#)).err();
    let found = found.map(|it| it.to_string()).unwrap_or_default();
    assert!(found.contains("`passCode` is a string") && !found.contains("hunter2"), "{found}");
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Guarded {
    #[schemars(regex(pattern = r"^(?!.*\.\.)[a-z/.]+$"))]
    #[expect(dead_code, reason = "it is never decoded")]
    path: String,
}

macro_rules! only_param {
    ($ty:ty, $default:expr, $($option:tt)*) => {{
        static TABLE: FnTool = FnTool::new(
            ToolSpec {
                name: "odd",
                args: ArgsSpec::Params(&[ParamSpec {
                    name: "p",
                    description: "",
                    ty: param_type::<$ty>(),
                    default: $default,
                    options: &ParamOptions { $($option)* ..ParamOptions::DEFAULT },
                }]),
                ..ToolSpec::DEFAULT
            },
            |_, _| Err(InvalidArgs::new("odd", "is never called")),
        );
        (&TABLE).unusable_reason().unwrap_or_default()
    }};
}

// The published schema is enforced, even where only the schema of a type contains a constraint.
#[test]
fn what_cannot_be_held_is_no_tool() {
    assert!(
        only_param!(Guarded, None,).contains("/properties/p/properties/path/pattern cannot be")
    );
    assert!(only_param!(Vec<Guarded>, None,).contains("pattern cannot be checked"));
    let range = only_param!(u8, None, range: Some(Range::Int(Some(300), Some(400))),);
    assert_eq!(
        range,
        "its schema's /properties/p is wrong: nothing has `minimum` 300 and `maximum` 255"
    );
    const NINE: Option<DefaultSpec> = Some(DefaultSpec::Value(|| json!(9)));
    let default = only_param!(u32, NINE, range: Some(Range::Int(Some(1), Some(2))),);
    assert_eq!(
        default,
        "its schema's /properties/p is wrong: `default` is 9, but must be between 1 and 2"
    );
    let choices = only_param!(String, None, choices: &["a"], pattern: Some("^b$"),);
    assert!(choices.contains("none of its choices"), "{choices}");

    assert_eq!(only_param!(Vec<Edit>, None,), "");
    assert_eq!(only_param!(u8, None, range: Some(Range::Int(Some(1), Some(300))),), "");
    assert_eq!(only_param!(String, None, choices: &["a"], pattern: Some("^a$"),), "");
}

#[test]
fn a_float_is_no_wider_than_its_type() {
    let schema = Schema::for_type::<(f32, f64)>().to_value();
    let most = schema["prefixItems"][0]["maximum"].as_f64().expect("it has one");
    assert_eq!(most, f64::from(f32::MAX));
    assert!(schema["prefixItems"][1].get("maximum").is_none());
    assert_eq!(
        crate::schema::describe_type(&schema["prefixItems"][0]),
        "number",
        "the bounds of a type say nothing"
    );
}

#[test]
fn an_argument_is_one_level_down() {
    let deep = |levels| format!(r#"{{"secret":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
    assert!(JsonValue::parse_arguments(&deep(63)).is_ok());
    assert!(JsonValue::parse_arguments(&deep(64)).is_err());
    assert!(
        JsonValue::parse_argument(
            &"[".repeat(63).chars().chain("]".repeat(63).chars()).collect::<String>()
        )
        .is_ok()
    );
    assert!(
        JsonValue::parse_argument(
            &"[".repeat(64).chars().chain("]".repeat(64).chars()).collect::<String>()
        )
        .is_err()
    );
}

#[test]
fn where_json_is_broken_is_told_in_bytes() {
    for (text, words) in [
        ("\u{feff}{}", "they begin with a byte order mark"),
        ("{\"kind\":\n1/*x*/}", "expected `,` or `}`, at byte 10"),
    ] {
        let found = form(&RawArgs::new(text)).unwrap_err();
        let expected = format!("the arguments are not valid JSON: {words}");
        assert_eq!(found.faults()[0].message, expected);
    }
}
