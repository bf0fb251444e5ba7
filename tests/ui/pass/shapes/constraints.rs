//! Every limit of a parameter, with literals, constants and expressions.

use std::collections::BTreeMap;

use serde_json::json;
use tool_sdk::{tool, tools};

use crate::pass::{call, definition};

const LOW: i64 = -5;
const HIGH: u8 = 5;
const LONG: usize = 8;

struct Limits;

impl Limits {
    const HALF: f64 = 0.5;
}

/// Takes numbers.
#[tool(read)]
fn constraints_of_numbers(
    /// Both ends.
    #[arg(range = 1..=100)]
    both: u8,
    /// Without its end.
    #[arg(range = -1..1)]
    open: i32,
    /// From below.
    #[arg(range = 1.., default = 1)]
    from: u64,
    /// To above.
    #[arg(range = ..=10)]
    to: Option<i128>,
    /// Constants.
    #[arg(range = LOW..HIGH, default = HIGH as i64 - 1)]
    constants: i64,
    /// A float.
    #[arg(range = 0..=1.5, default = Limits::HALF)]
    float: f64,
    /// A float.
    #[arg(range = -0.5.., default = -0.25)]
    half: Option<f32>,
) -> String {
    format!("{both} {open} {from} {to:?} {constants} {float} {half:?}")
}

/// Takes texts.
#[expect(clippy::too_many_arguments, reason = "one for each constraint")]
#[tool(read)]
fn constraints_of_texts(
    /// Both ends.
    #[arg(length = 1..=5)]
    both: &str,
    /// Without its end.
    #[arg(length = 1..5)]
    list: Vec<u8>,
    /// A constant.
    #[arg(length = ..=LONG)]
    map: Option<BTreeMap<String, u8>>,
    /// A pattern.
    #[arg(pattern = r"^\d+$", default = "1")]
    digits: String,
    /// Choices.
    #[arg(choices("a", "b"), default = "a")]
    choice: Option<&str>,
    /// All of them.
    #[arg(length = 1..=5, pattern = "^a", choices("a", "ab"), alias("every", "each"), rename = "All")]
    all: String,
    /// A secret.
    #[arg(sensitive)]
    secret: Option<String>,
    /// Not told.
    #[arg(hidden, default = vec![1, 2])]
    hidden: Vec<u8>,
) -> String {
    format!("{both} {list:?} {map:?} {digits} {choice:?} {all} {secret:?} {hidden:?}")
}

/// Takes what is absent as `Default` has it.
#[tool(read)]
fn defaults_of_types(
    /// A flag.
    #[arg(default)]
    flag: bool,
    /// A number.
    #[arg(default, range = ..9)]
    number: u8,
    /// A float.
    #[arg(default)]
    float: f32,
    /// A borrowed text.
    #[arg(default)]
    borrowed: &str,
    /// A text.
    #[arg(default, length = ..9)]
    text: String,
    /// A list.
    #[arg(default)]
    list: Vec<u8>,
    /// A map.
    #[arg(default)]
    map: BTreeMap<String, u8>,
) -> String {
    format!("{flag} {number} {float} {borrowed:?} {text:?} {list:?} {map:?}")
}

#[test]
fn a_default_without_a_value_is_that_of_the_type() {
    assert_eq!(call(tools![defaults_of_types], json!({})), r#"false 0 0 "" "" [] {}"#);
    let schema = definition(tools![defaults_of_types]).parameters;
    let default = |name| schema.property(name).expect("it is there")["default"].clone();
    assert_eq!((default("number"), default("map")), (json!(0), json!({})));
}

#[test]
fn numbers_have_bounds() {
    assert_eq!(
        call(tools![constraints_of_numbers], json!({"both": 1, "open": -1})),
        "1 -1 1 None 4 0.5 Some(-0.25)"
    );
    let schema = definition(tools![constraints_of_numbers]).parameters;
    let bounds = |name| {
        let property = schema.property(name).expect("it is there");
        (property["minimum"].clone(), property["maximum"].clone())
    };
    assert_eq!(bounds("open"), (json!(-1), json!(0)));
    assert_eq!(bounds("constants"), (json!(-5), json!(4)));
    assert_eq!(bounds("float"), (json!(0.0), json!(1.5)));
}

#[test]
fn texts_have_a_length_and_a_form() {
    assert_eq!(
        call(tools![constraints_of_texts], json!({"both": "x", "list": [1], "each": "ab"})),
        r#"x [1] None 1 Some("a") ab None [1, 2]"#
    );
}
