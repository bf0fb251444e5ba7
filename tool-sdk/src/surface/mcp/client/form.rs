//! A form that a server wants filled in: made fit to be shown, and what counts as an answer.
//!
//! **Invariant:** nothing in what is shown hides, and what goes back is what the form asks
//! for and nothing else. A form that asks for a secret is not shown, and an answer that holds
//! one is not sent.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::suspicion::{self, WORDS};
use super::validator::{Judge, Verdict};
use crate::permission::spelt;
use crate::redact::{Redactor, is_secret_key};
use crate::schema::Schema;

/// More is no form that anybody fills in.
const MOST_FIELDS: usize = 32;
const MOST_BYTES: usize = 32 << 10;

static SECRETS: LazyLock<Redactor> = LazyLock::new(Redactor::from_env);

/// A form that may be shown.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) message: String,
    pub(super) schema: Value,
    judge: Judge,
}

impl Form {
    /// Takes a server's form.
    ///
    /// # Errors
    ///
    /// Says why it is not shown.
    pub(super) fn of(params: &Value) -> Result<Self, &'static str> {
        if params["mode"].as_str().is_some_and(|mode| mode != "form") {
            return Err("it is no form");
        }
        let mut schema = params["requestedSchema"].clone();
        let Some(fields) = schema["properties"].as_object() else {
            return Err("it has no fields");
        };
        if fields.len() > MOST_FIELDS || params.to_string().len() > MOST_BYTES {
            return Err("nobody could read all of it");
        }
        if fields.keys().any(|name| is_secret_name(name)) {
            return Err("it asks for a secret");
        }
        let message = params["message"].as_str().unwrap_or_default();
        if speaks_of_secrets(message) || asks_for_secrets(&schema) {
            return Err("it asks for a secret");
        }
        if let Some(fields) = schema["properties"].as_object_mut() {
            fields.values_mut().for_each(spell_out);
        }
        spell_out(&mut schema);
        if hides(&schema) {
            return Err("something in it does not show");
        }
        let judge =
            Judge::of(&schema, Schema::from_value).map_err(|_| "its schema is not usable")?;
        Ok(Self { message: suspicion::readable(message), schema, judge })
    }

    /// What goes back of what somebody filled in. A field that was left out has the value that
    /// the form showed for it.
    ///
    /// # Errors
    ///
    /// Says why nothing does.
    pub(super) fn filled_in(&self, content: Map<String, Value>) -> Result<Value, &'static str> {
        let mut content = content;
        let fields = self.schema["properties"].as_object().into_iter().flatten();
        let mut answer = Map::new();
        for (name, field) in fields {
            if let Some(value) = content.remove(name).or_else(|| field.get("default").cloned()) {
                answer.insert(name.clone(), value);
            }
        }
        if !content.is_empty() {
            return Err("it holds more than was asked for");
        }
        let answer = Value::Object(answer);
        if !matches!(self.judge.judge(&answer, 0, |_| ()), Verdict::Fits) {
            return Err("it is not what was asked for");
        }
        let mut redacted = answer.clone();
        SECRETS.redact_value(&mut redacted);
        if redacted != answer || fields_of(&answer).any(looks_like_a_secret) {
            return Err("it holds a secret");
        }
        Ok(answer)
    }
}

/// The texts that were filled in.
fn fields_of(answer: &Value) -> impl Iterator<Item = &str> {
    let values = answer.as_object().into_iter().flat_map(Map::values);
    values
        .flat_map(|one| one.as_array().map_or(std::slice::from_ref(one), Vec::as_slice))
        .filter_map(Value::as_str)
}

/// Tokens that say by their first letters what they are, beside those that are kept out of logs.
static TOKENS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x-u) \b (?:
              AGE-SECRET-KEY-1[0-9A-Z]{20,}
            | dop_v1_[0-9a-f]{32,}
            | pypi-[A-Za-z0-9_-]{32,}
            | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}
            | SK[0-9a-f]{32} \b
          )",
    )
    .expect("the pattern is fixed")
});

/// Whether somebody filled in a secret that is not kept out of logs, where it would be a word or
/// code: the beginning of a key, or something that is said to be a password.
fn looks_like_a_secret(text: &str) -> bool {
    let begins_a_key = text
        .split("-----BEGIN ")
        .skip(1)
        .any(|rest| rest.split("-----").next().is_some_and(|name| name.contains("PRIVATE KEY")));
    let told = |(at, _): (usize, &str)| {
        let is_word = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        let name = text[..at].rsplit(|c| !is_word(c)).next().unwrap_or_default();
        let has_value = text[at + 1..].chars().next().is_some_and(|c| !c.is_whitespace());
        has_value && is_secret_key(name)
    };
    begins_a_key || TOKENS.is_match(text) || text.match_indices('=').any(told)
}

/// Whether the words for people speak of a secret, or a field is one that hides what is typed.
fn asks_for_secrets(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, one)| match one {
            Value::String(text) if key == "format" => text == "password",
            Value::String(text) => {
                let is_read = WORDS.contains(&key.as_str()) || key == "default";
                is_read && speaks_of_secrets(text)
            }
            // Choices are read by people as well.
            Value::Array(choices) if CHOICES.contains(&key.as_str()) => {
                choices.iter().filter_map(Value::as_str).any(speaks_of_secrets)
            }
            one => asks_for_secrets(one),
        }),
        Value::Array(items) => items.iter().any(asks_for_secrets),
        _ => false,
    }
}

/// Lists of texts that are choices.
const CHOICES: &[&str] = &["enum", "enumNames"];

/// What people call a secret in a form, beside what is one wherever it stands.
const SECRETS_OF_PEOPLE: &[&str] = &[
    "2facode",
    "apikeys",
    "authenticatorcode",
    "contraseña",
    "cvc",
    "cvv",
    "enterpin",
    "kennwort",
    "motdepasse",
    "onetimecode",
    "onetimepassword",
    "onetimepin",
    "otp",
    "passcode",
    "passwords",
    "passwort",
    "pincode",
    "pinnumber",
    "pw",
    "pwd",
    "senha",
    "yourpin",
    "пароль",
];

/// The same in languages that set no blanks around a word.
const UNSPACED: &[&str] = &["口令", "密码", "密碼", "パスワード", "暗証番号", "비밀번호"];

/// Whether a field is called as secrets are.
fn is_secret_name(name: &str) -> bool {
    let lower = name.to_lowercase();
    let is_short = |word: &str| matches!(word, "pass" | "pwd");
    is_secret_key(name)
        || lower.contains("passw")
        || lower.split(|c: char| !c.is_alphanumeric()).any(is_short)
}

/// Whether a word, or a few of them together, name a secret.
fn speaks_of_secrets(text: &str) -> bool {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_one = |word: &str| is_secret_key(word) || SECRETS_OF_PEOPLE.contains(&word);
    let is_secret = |words: &[&str]| is_one(&words.concat().to_lowercase());
    [1, 2, 3].iter().any(|&many| words.windows(many).any(is_secret))
        || UNSPACED.iter().any(|word| text.contains(word))
}

/// Spells out what does not show in the words for people.
fn spell_out(schema: &mut Value) {
    for word in WORDS {
        if let Some(Value::String(text)) = schema.get_mut(word) {
            *text = spelt(text).into_owned();
        }
    }
    if let Some(names) = schema.get_mut("enumNames").and_then(Value::as_array_mut) {
        for name in names {
            if let Value::String(text) = name {
                *text = spelt(text).into_owned();
            }
        }
    }
}

/// Whether a text in it does not show as it is.
fn hides(schema: &Value) -> bool {
    match schema {
        Value::String(text) => spelt(text) != *text,
        Value::Array(items) => items.iter().any(hides),
        Value::Object(members) => members.iter().any(|(key, one)| spelt(key) != *key || hides(one)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asking(fields: Value) -> Result<Form, &'static str> {
        Form::of(&json!({
            "message": "Who?\u{202e}", "requestedSchema": { "type": "object", "properties": fields },
        }))
    }

    // MC7
    #[test]
    fn a_form_that_hides_or_pries_is_not_shown() {
        let form =
            asking(json!({ "name": { "type": "string", "title": "Na\u{200b}me" } })).unwrap();
        assert_eq!(form.message, "Who?\\u{202e}");
        assert_eq!(form.schema["properties"]["name"]["title"], "Na\\u{200b}me");
        for (fields, why) in [
            (json!({ "password": { "type": "string" } }), "secret"),
            (json!({ "userPassword2": { "type": "string" } }), "secret"),
            (json!({ "your_pass": { "type": "string" } }), "secret"),
            (json!({ "x": { "type": "string", "title": "Your API key" } }), "secret"),
            (json!({ "x": { "type": "string", "title": "Password:" } }), "secret"),
            (json!({ "x": { "type": "string", "description": "The API key of ada." } }), "secret"),
            (json!({ "x": { "type": "string", "description": "pass\u{200b}word" } }), "secret"),
            (json!({ "x": { "type": "string", "format": "password" } }), "secret"),
            (json!({ "x": { "enum": ["a"], "enumNames": ["The password"] } }), "secret"),
            (json!({ "x": { "enum": ["PIN code", "b"] } }), "secret"),
            (json!({ "x": { "type": "string", "title": "One-time code" } }), "secret"),
            (json!({ "x": { "type": "string", "title": "Mot de passe" } }), "secret"),
            (json!({ "x": { "type": "string", "default": "your password" } }), "secret"),
            (json!({ "a\u{200b}": { "type": "string" } }), "does not show"),
            (json!({ "a": { "type": "string", "enum": ["x\u{202e}"] } }), "does not show"),
            (json!({ "a": { "type": "string", "description": "x".repeat(MOST_BYTES) } }), "read"),
            (json!("fields"), "no fields"),
        ] {
            let refused = asking(fields.clone()).unwrap_err();
            assert!(refused.contains(why), "{fields}: {refused}");
        }
        let schema = json!({ "type": "object", "properties": { "x": { "type": "string" } } });
        for (message, is_shown) in [
            ("Type your token, please.", false),
            ("Enter PIN.", false),
            ("Your passwords?", false),
            ("Your PW?", false),
            ("请输入密码", false),
            ("请输入姓名", true),
            ("Which GPIO pin?", true),
            ("Pick one time that works for you.", true),
        ] {
            let form = Form::of(&json!({ "message": message, "requestedSchema": schema }));
            assert_eq!(form.is_ok(), is_shown, "{message}");
        }
        assert!(Form::of(&json!({ "mode": "url", "url": "https://a/" })).is_err());
    }

    // MC7
    #[test]
    fn only_what_was_asked_for_goes_back() {
        let form = asking(json!({
            "name": { "type": "string" }, "age": { "type": "integer", "default": 30 },
        }))
        .unwrap();
        let filled = |content: Value| form.filled_in(content.as_object().unwrap().clone());
        assert_eq!(filled(json!({ "name": "ada" })), Ok(json!({ "name": "ada", "age": 30 })));
        assert_eq!(filled(json!({ "age": 3 })), Ok(json!({ "age": 3 })));
        for wrong in [
            json!({ "name": 3 }),
            json!({ "name": "ada", "more": "x" }),
            json!({ "name": "Authorization: Bearer 3x4mpl3" }),
            json!({ "name": "-----BEGIN PRIVATE KEY-----\nMIIE" }),
            json!({ "name": "-----BEGIN PGP PRIVATE KEY BLOCK-----" }),
            json!({ "name": "password=hunter2xyz" }),
            json!({ "name": "see https://a.example/?access_token=abc" }),
            json!({ "name": format!("pypi-AgEIcHlwaS5vcmcJ{}", "a".repeat(32)) }),
            json!({ "name": format!("SG.{}.{}", "a1".repeat(11), "b2".repeat(21)) }),
            json!({ "name": format!("dop_v1_{}", "0f".repeat(32)) }),
            json!({ "name": format!("AGE-SECRET-KEY-1{}", "Q0".repeat(29)) }),
            json!({ "name": format!("SK{}", "0f".repeat(16)) }),
        ] {
            assert!(filled(wrong.clone()).is_err(), "{wrong}");
        }
        for usual in [
            "SG. Lewis",
            "SKY",
            "pypi-publish",
            "a=b",
            "token = none",
            "the password is in the safe",
            "-----BEGIN CERTIFICATE----- is no PRIVATE KEY",
            "size=3",
        ] {
            assert!(filled(json!({ "name": usual })).is_ok(), "{usual}");
        }
    }
}
