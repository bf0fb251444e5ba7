//! Tools that a `macro_rules!` writes.

use serde_json::json;
use tool_sdk::{tool, tools, toolset};

use crate::pass::{call, definition};

macro_rules! tools_of {
    ($(
        $name:ident($param:ident: $ty:ty = $default:expr, $range:expr, $text:expr) -> $out:ty $body:block
    )*) => {$(
        #[doc = $text]
        #[tool(read, display(primary = $param, summary = "With {value}"), parallel = by($param))]
        fn $name(
            #[doc = concat!("What ", stringify!($name), " takes.")]
            #[arg(default = $default, range = $range)]
            $param: $ty,
        ) -> $out {
            $body
        }
    )*};
}

tools_of! {
    macro_doubles(value: u32 = 2, 1..=9, "Doubles.") -> String { (value * 2).to_string() }
    macro_halves(value: f64 = -1.0, -4.0..=4.0, concat!("Hal", "ves.")) -> String { (value / 2.0).to_string() }
}

macro_rules! one_of_each {
    ($vis:vis $name:ident, $key:literal, $text:literal, $ty:ty, $($risk:tt)*) => {
        #[doc = $text]
        #[tool($($risk)*, name = $key, timeout = "5s")]
        $vis async fn $name(
            #[doc = $text]
            value: $ty,
        ) -> String {
            value.to_string()
        }
    };
}

one_of_each!(pub(super) borrows, "macro_borrows", "Borrows.", &str, write, destructive);
one_of_each!(owns, "macro_owns", "Owns.", String, read);

macro_rules! methods {
    ($ty:ty, $($name:ident => $key:literal),*) => {
        #[toolset]
        impl $ty {
            $(
                /// Says something.
                #[tool(read, name = $key)]
                fn $name(&self, #[doc = "What."] text: &str) -> String {
                    format!("{} {text}", stringify!($name))
                }
            )*
        }
    };
}

struct Spoken;

methods!(Spoken, say => "macro_say");

#[test]
fn fragments_are_what_they_stand_for() {
    assert_eq!(call(tools![macro_doubles], json!({})), "4");
    assert_eq!(call(tools![macro_halves], json!({})), "-0.5");
    assert_eq!(call(tools![borrows], json!({"value": "a"})), "a");
    assert_eq!(call(tools![owns], json!({"value": "a"})), "a");
    assert_eq!(call(Spoken, json!({"text": "a"})), "say a");
    let halves = definition(tools![macro_halves]);
    assert_eq!(halves.description, "Halves.");
    let value = halves.parameters.property("value").expect("it is there");
    assert_eq!(value["description"], "What macro_halves takes.");
    assert_eq!(value["minimum"], -4.0);
}
