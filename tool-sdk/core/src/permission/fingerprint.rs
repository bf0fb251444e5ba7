//! Fingerprints: what an approval is bound to, one value for a call exactly as it will run.
//!
//! A fingerprint that is too fine asks once more than needed; one that is too coarse runs a call
//! that the user was not shown. So nothing is rounded, guessed or left out: two calls share a
//! fingerprint only when they differ in blanks, in the order of keys, or in how the same characters
//! are escaped.

use crate::sha256::to_hex;
use std::fmt;

use hmac_sha256::Hash;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Error, json};

use crate::tool::Definition;
use crate::tool::args::MAX_DEPTH;

/// Identifies a call as it will run, as 64 hexadecimal digits.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Definition, Fingerprint, Schema, ToolName};
///
/// let tool = Definition::new(ToolName::new("run")?, "Runs a program.", Schema::default());
/// let facts = [("cwd", "/srv")];
/// let shown = Fingerprint::compute(&tool, r#"{"cmd": "make", "jobs": 2}"#, &facts);
///
/// assert_eq!(shown, Fingerprint::compute(&tool, r#"{"jobs":2,"cmd":"make"}"#, &facts));
/// assert_ne!(shown, Fingerprint::compute(&tool, r#"{"jobs":2,"cmd":"make "}"#, &facts));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Returns the fingerprint of a call of the tool with these arguments.
    ///
    /// `facts` are what else the call depends on, by name and in order: each resource, the working
    /// folder, the roots, the sandbox, the scope of the session. A name may occur more than once.
    #[must_use]
    pub fn compute(definition: &Definition, arguments: &str, facts: &[(&str, &str)]) -> Self {
        // Arguments that are not JSON never run, but must still differ from all others.
        let (form, arguments) = match canonicalize_json(arguments) {
            Ok(canonical) => ("json", canonical),
            Err(_) => ("text", arguments.to_owned()),
        };
        let mut hash = FieldHasher::new("tool-sdk call 1");
        hash.add(definition.name.as_str());
        hash.add(&json!(definition.source).to_string());
        hash.add(&definition_hash(definition));
        hash.add(form);
        hash.add(&arguments);
        for (name, value) in facts {
            hash.add(name);
            hash.add(value);
        }
        Self(hash.finish())
    }

    /// Returns the fingerprint as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.0
    }
}

/// Returns what a grant for a foreign tool names its definition by: the revision, if the tool has
/// one, and a hash.
///
/// A foreign tool whose definition changed after an approval is another tool, and grants for the
/// old one are void. A program that lists grants without the tools compares only the revision.
pub(crate) fn definition_version(definition: &Definition) -> String {
    let hash = definition_hash(definition);
    match &definition.revision {
        Some(revision) => format!("{revision} {hash}"),
        None => hash,
    }
}

/// Returns a hash of a tool's definition.
fn definition_hash(definition: &Definition) -> String {
    let said = json!({
        "name": definition.name,
        "title": definition.title,
        "description": definition.description,
        "parameters": definition.parameters,
        "output": definition.output,
        "risk": definition.risk,
        "source": definition.source,
        "revision": definition.revision,
    })
    .to_string();
    let mut hash = FieldHasher::new("tool-sdk definition 1");
    // A schema that is nested too deep to be sorted is hashed as it is written.
    hash.add(&canonicalize_json(&said).unwrap_or(said));
    hash.finish()
}

/// Returns JSON text in its canonical form: keys sorted by their bytes, no blanks, one spelling for
/// each string.
///
/// Numbers stay as they are written. RFC 8785 reads each as a double, so that 9007199254740993 and
/// 9007199254740992 are equal, while a tool that reads integers sees two values. So `1`, `1.0` and
/// `1e0` differ too. Duplicate keys are all kept.
///
/// # Errors
///
/// Fails when the text is not JSON, or nests deeper than arguments may.
pub(crate) fn canonicalize_json(json: &str) -> Result<String, Error> {
    let mut out = String::with_capacity(json.len());
    write_canonical(serde_json::from_str(json)?, 0, &mut out)?;
    Ok(out)
}

fn write_canonical(raw: &RawValue, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(serde::de::Error::custom("nested too deep"));
    }
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'"') => {
            let string: String = serde_json::from_str(text)?;
            out.push_str(&serde_json::to_string(&string)?);
        }
        Some(b'[') => {
            out.push('[');
            let items: Vec<&RawValue> = serde_json::from_str(text)?;
            for (at, item) in items.into_iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write_canonical(item, depth + 1, out)?;
            }
            out.push(']');
        }
        Some(b'{') => {
            out.push('{');
            let ObjectMembers(mut members) = serde_json::from_str(text)?;
            // A stable sort, so that the values of a duplicate key keep their order.
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            for (at, (key, value)) in members.into_iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                out.push_str(&serde_json::to_string(&key)?);
                out.push(':');
                write_canonical(value, depth + 1, out)?;
            }
            out.push('}');
        }
        _ => out.push_str(text),
    }
    Ok(())
}

/// The members of an object in their order, each value still text.
struct ObjectMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for ObjectMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = ObjectMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(ObjectMembers(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

/// A hash over several texts, each preceded by its length.
struct FieldHasher(Hash);

impl FieldHasher {
    /// `kind` separates hashes of different things.
    fn new(kind: &str) -> Self {
        let mut fields = Self(Hash::new());
        fields.add(kind);
        fields
    }

    fn add(&mut self, text: &str) {
        self.0.update((text.len() as u64).to_be_bytes());
        self.0.update(text);
    }

    fn finish(self) -> String {
        to_hex(self.0.finalize())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::name::ToolName;
    use crate::risk::{Risk, RiskClass};
    use crate::schema::Schema;
    use crate::tool::ToolSource;

    fn tool(name: &'static str) -> Definition {
        let mut tool =
            Definition::new(ToolName::from_static(name), "Runs a program.", Schema::default());
        tool.source = ToolSource::Mcp { server: "one".to_owned() };
        tool
    }

    fn fingerprint_of(arguments: &str) -> Fingerprint {
        Fingerprint::compute(&tool("run"), arguments, &[])
    }

    #[test]
    fn json_has_one_form() {
        for (json, expected) in [
            (" { \"b\" : [ 1 , 2 ], \"a\" : null }\n", r#"{"a":null,"b":[1,2]}"#),
            (r#"{"\u0061": "\u00e9\/\n"}"#, r#"{"a":"é/\n"}"#),
            ("9007199254740993", "9007199254740993"),
            ("18446744073709551617", "18446744073709551617"),
            ("[1, 1.0, 1e0, -0, true]", "[1,1.0,1e0,-0,true]"),
            (r#"{"a": 2, "b": 0, "a": 1}"#, r#"{"a":2,"a":1,"b":0}"#),
            ("[[], {}]", "[[],{}]"),
        ] {
            assert_eq!(canonicalize_json(json).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_no_json_has_no_form_and_still_a_fingerprint() {
        let deep = "[".repeat(100_000);
        let closed = format!("{}{}", "[".repeat(MAX_DEPTH + 2), "]".repeat(MAX_DEPTH + 2));
        for text in ["", "{", "{} {}", r#""\ud800""#, "[1,]", deep.as_str(), closed.as_str()] {
            assert!(canonicalize_json(text).is_err());
            assert_ne!(fingerprint_of(text), fingerprint_of("{}"));
        }
    }

    // F91
    #[test]
    fn the_order_of_keys_and_blanks_do_not_count() {
        let call = fingerprint_of(r#"{"cmd": "make", "env": {"A": "1", "B": "2"}}"#);
        assert_eq!(call, fingerprint_of(r#"{"env":{"B":"2","A":"1"},"cmd":"make"}"#));
        assert_eq!(
            call,
            fingerprint_of("{\"env\":\n{\"B\":\"\\u0032\",\"A\":\"1\"},\n\"cmd\":\"make\"}")
        );
        assert_eq!(call.as_str().len(), 64);
    }

    #[test]
    fn every_difference_of_a_call_changes_its_fingerprint() {
        let call = fingerprint_of(r#"{"cmd":"make"}"#);
        let facts =
            |facts: &[(&str, &str)]| Fingerprint::compute(&tool("run"), r#"{"cmd":"make"}"#, facts);
        let with = |change: &dyn Fn(&mut Definition)| {
            let mut tool = tool("run");
            change(&mut tool);
            Fingerprint::compute(&tool, r#"{"cmd":"make"}"#, &[])
        };
        let others = [
            fingerprint_of(r#"{"cmd":"make "}"#),
            fingerprint_of(r#"{"cmd":["make"]}"#),
            fingerprint_of(r#""{\"cmd\":\"make\"}""#),
            facts(&[("cwd", "/srv")]),
            facts(&[("cwd", "/srv/")]),
            facts(&[("cwd", ""), ("", "/srv")]),
            Fingerprint::compute(&tool("run2"), r#"{"cmd":"make"}"#, &[]),
            with(&|tool| tool.source = ToolSource::Mcp { server: "two".to_owned() }),
            with(&|tool| tool.source = ToolSource::Native),
            with(&|tool| tool.revision = Some("2".to_owned())),
            with(&|tool| tool.description = "Runs any program.".into()),
            with(&|tool| tool.title = Some("Run".into())),
            with(&|tool| tool.title = Some("".into())),
            with(&|tool| tool.risk = Risk::new(RiskClass::Read)),
            with(&|tool| tool.output = Some(Schema::default())),
        ];
        for (at, one) in others.iter().enumerate() {
            assert_ne!(*one, call, "{at}");
            assert!(!others[..at].contains(one), "{at}");
        }
    }

    #[test]
    fn a_definition_counts_by_what_it_says() {
        let says = definition_hash(&tool("run"));
        let mut moved = tool("run");
        moved.examples.push("{}".into());
        assert_eq!(definition_hash(&moved), says);
        moved.description = "Runs a program!".into();
        assert_ne!(definition_hash(&moved), says);
        let mut elsewhere = tool("run");
        elsewhere.source = ToolSource::Mcp { server: "another".to_owned() };
        assert_ne!(definition_hash(&elsewhere), says);
    }

    /// A value with its keys in reverse order and blanks in between.
    fn reorder_keys(value: &Value) -> String {
        match value {
            Value::Array(items) => {
                format!("[ {} ]", items.iter().map(reorder_keys).collect::<Vec<_>>().join(" ,\n"))
            }
            Value::Object(members) => {
                let members = members.iter().rev();
                let members =
                    members.map(|(key, value)| format!("{} :{}", json!(key), reorder_keys(value)));
                format!("{{\t{}}}", members.collect::<Vec<_>>().join(", "))
            }
            other => other.to_string(),
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            ".{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,2}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        // F91
        #[test]
        fn one_value_has_one_form(value in values()) {
            let form = canonicalize_json(&value.to_string()).unwrap();
            prop_assert_eq!(&canonicalize_json(&reorder_keys(&value)).unwrap(), &form);
            prop_assert_eq!(&canonicalize_json(&form).unwrap(), &form);
            prop_assert_eq!(serde_json::from_str::<Value>(&form).unwrap(), value);
        }

        #[test]
        fn bytes_that_move_between_fields_make_another_fingerprint(
            text in "[a-c]{2,8}", at in 0_usize..8, other in 0_usize..8,
        ) {
            let (at, other) = (at % text.len(), other % text.len());
            let split = |at: usize| {
                let (name, value) = text.split_at(at);
                Fingerprint::compute(&tool("run"), "{}", &[(name, value), (value, name)])
            };
            prop_assert_eq!(split(at) == split(other), at == other);
        }
    }
}
