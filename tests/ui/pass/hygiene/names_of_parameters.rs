//! Parameters and functions with the names that generated code uses, and with keywords.
#![expect(clippy::just_underscores_and_digits, reason = "a name that generated code uses")]

use serde_json::json;
use tool_sdk::{Context, State, tool, tools, toolset};

use crate::pass::{call, definition, parameters, wait};

/// Joins.
#[expect(clippy::too_many_arguments, reason = "one for each name")]
#[tool(read, display(primary = args, summary = "{args}{cx}{raw}{__0}"))]
fn names_of_parameters(
    /// A.
    args: &str,
    /// B.
    cx: &str,
    /// C.
    raw: &str,
    /// D.
    self_: &str,
    /// E.
    __0: &str,
    /// F.
    __args: &str,
    /// G.
    __cx: &str,
    /// H.
    __raw: &str,
    /// I.
    __notes: &str,
    /// J.
    __value: &str,
    /// K.
    __rt: &str,
    /// L.
    __this: &str,
    /// M.
    names_of_parameters: &str,
    __a: &Context,
) -> String {
    let first = [args, cx, raw, self_, __0, __args, __cx].concat();
    let second = [__raw, __notes, __value, __rt, __this, names_of_parameters].concat();
    format!("{}: {first}{second}", __a.tool())
}

/// Matches.
#[tool(read, display(primary = r#type, show(r#type, r#in), summary = "{type}"), parallel = by(r#type))]
async fn r#match(
    /// The type.
    r#type: &str,
    /// Where.
    #[arg(default = "here")]
    r#in: String,
    State(r#as): State<u8>,
) -> String {
    format!("{type} {in} {as}", r#type = r#type, r#in = r#in, r#as = r#as)
}

struct Names;

#[toolset]
impl Names {
    /// Joins.
    #[tool(read, name = "names_of_parameters_method", display(summary = "{__this}"))]
    async fn r#move(
        &self,
        /// A.
        __this: String,
        /// B.
        __raw: Option<String>,
        __cx: &Context,
    ) -> String {
        format!("{__this}{__raw:?}{}", __cx.tool())
    }
}

#[test]
fn locals_of_generated_code_are_its_own() {
    let all = json!({
        "args": "a", "cx": "b", "raw": "c", "self_": "d", "__0": "e", "__args": "f", "__cx": "g",
        "__raw": "h", "__notes": "i", "__value": "j", "__rt": "k", "__this": "l",
        "names_of_parameters": "m",
    });
    assert_eq!(call(tools![names_of_parameters], all), "names_of_parameters: abcdefghijklm");
    assert_eq!(call(Names, json!({"__this": "x"})), "xNonenames_of_parameters_method");
}

#[test]
fn keywords_lose_their_mark() {
    let definition = definition(tools![r#match]);
    assert_eq!(definition.name.as_str(), "match");
    assert_eq!(parameters(&definition), ["type", "in"]);
    assert_eq!(definition.display.primary.as_deref(), Some("type"));
    assert_eq!(definition.display.show, ["type", "in"]);
    assert_eq!(wait(r#match("a", "b".into(), State(7.into()))), "a b 7");
}
