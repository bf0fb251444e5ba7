//! Elicitation forms: checks a server's form before it is shown, and the answer before it is sent.
//!
//! **Invariant:** everything in a form that is shown is visible, and the answer that is sent has
//! exactly the fields that were requested. A form that asks for a secret is not shown, and an
//! answer that contains one is not sent.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};
use tool_sdk_core::{
    Redactor, Schema,
    internal::{is_secret_key, spell_hidden},
};

use super::description_lint::{self, LABEL_KEYWORDS};
use super::validator::SchemaValidator;

/// The most fields of a form; a person does not review more.
const MAX_FIELDS: usize = 32;
const MAX_BYTES: usize = 32 << 10;

static SECRET_REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::from_env);

/// A form that may be shown to the user.
#[derive(Debug)]
pub(super) struct ElicitationForm {
    pub(super) message: String,
    pub(super) schema: Value,
    validator: SchemaValidator,
}

impl ElicitationForm {
    /// Parses the params of `elicitation/create`.
    ///
    /// # Errors
    ///
    /// Returns why the form must not be shown.
    pub(super) fn parse(params: &Value) -> Result<Self, &'static str> {
        if params["mode"].as_str().is_some_and(|mode| mode != "form") {
            return Err("its mode is not `form`");
        }
        let mut schema = params["requestedSchema"].clone();
        let Some(fields) = schema["properties"].as_object() else {
            return Err("it has no fields");
        };
        if fields.len() > MAX_FIELDS || params.to_string().len() > MAX_BYTES {
            return Err("it is too large for a person to read");
        }
        if fields.keys().any(|name| is_secret_name(name)) {
            return Err("it asks for a secret");
        }
        let message = params["message"].as_str().unwrap_or_default();
        if mentions_secret(message) || asks_for_secrets(&schema) {
            return Err("it asks for a secret");
        }
        if let Some(fields) = schema["properties"].as_object_mut() {
            fields.values_mut().for_each(escape_labels);
        }
        escape_labels(&mut schema);
        if has_invisible_text(&schema) {
            return Err("it contains invisible characters");
        }
        let validator = SchemaValidator::compile(&schema, Schema::from_value)
            .ok()
            .filter(|validator| validator.broken_rule().is_none())
            .ok_or("its schema is not usable")?;
        Ok(Self { message: description_lint::clean_text(message), schema, validator })
    }

    /// Checks the user's answer and returns it as it is sent. A field that was left out gets the
    /// default that the form showed.
    ///
    /// # Errors
    ///
    /// Returns why the answer must not be sent.
    pub(super) fn accept_answer(&self, content: Map<String, Value>) -> Result<Value, &'static str> {
        let mut content = content;
        let fields = self.schema["properties"].as_object().into_iter().flatten();
        let mut answer = Map::new();
        for (name, field) in fields {
            if let Some(value) = content.remove(name).or_else(|| field.get("default").cloned()) {
                answer.insert(name.clone(), value);
            }
        }
        if !content.is_empty() {
            return Err("it has fields that the form does not ask for");
        }
        let answer = Value::Object(answer);
        if self.validator.validate(&answer, 0, |_| ()).is_err() {
            return Err("it does not match the form's schema");
        }
        let mut redacted = answer.clone();
        SECRET_REDACTOR.redact_value(&mut redacted);
        if redacted != answer || text_values(&answer).any(looks_like_secret) {
            return Err("it contains a secret");
        }
        Ok(answer)
    }
}

/// Returns the text values of an answer.
fn text_values(answer: &Value) -> impl Iterator<Item = &str> {
    let values = answer.as_object().into_iter().flat_map(Map::values);
    values
        .flat_map(|one| one.as_array().map_or(std::slice::from_ref(one), Vec::as_slice))
        .filter_map(Value::as_str)
}

/// Access tokens that their prefix identifies, beside those that the log redactor knows.
static TOKEN_PATTERN: LazyLock<Regex> = LazyLock::new(|| {
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

/// Whether a text contains a secret that the log redactor leaves alone, because in logs it would be
/// an ordinary word or code: the start of a private key, or a value assigned to a secret's name.
fn looks_like_secret(text: &str) -> bool {
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
    begins_a_key || TOKEN_PATTERN.is_match(text) || text.match_indices('=').any(told)
}

/// Whether a label speaks of a secret, or a field has the format `password`.
fn asks_for_secrets(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, one)| match one {
            Value::String(text) if key == "format" => text == "password",
            Value::String(text) => {
                let is_read = LABEL_KEYWORDS.contains(&key.as_str()) || key == "default";
                is_read && mentions_secret(text)
            }
            // The choices are shown to the user as well.
            Value::Array(choices) if CHOICE_KEYWORDS.contains(&key.as_str()) => {
                choices.iter().filter_map(Value::as_str).any(mentions_secret)
            }
            one => asks_for_secrets(one),
        }),
        Value::Array(items) => items.iter().any(asks_for_secrets),
        _ => false,
    }
}

/// Keywords whose value is a list of choices.
const CHOICE_KEYWORDS: &[&str] = &["enum", "enumNames"];

/// What forms call a secret, beside the key names that are secret everywhere.
const SECRET_LABELS: &[&str] = &[
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

/// The same in languages that put no spaces between words.
const UNSPACED_SECRET_LABELS: &[&str] =
    &["口令", "密码", "密碼", "パスワード", "暗証番号", "비밀번호"];

/// Whether the name of a field is one that secrets have.
fn is_secret_name(name: &str) -> bool {
    let lower = name.to_lowercase();
    let is_short = |word: &str| matches!(word, "pass" | "pwd");
    is_secret_key(name)
        || lower.contains("passw")
        || lower.split(|c: char| !c.is_alphanumeric()).any(is_short)
}

/// Whether one to three consecutive words name a secret.
fn mentions_secret(text: &str) -> bool {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_one = |word: &str| is_secret_key(word) || SECRET_LABELS.contains(&word);
    let is_secret = |words: &[&str]| is_one(&words.concat().to_lowercase());
    [1, 2, 3].iter().any(|&many| words.windows(many).any(is_secret))
        || UNSPACED_SECRET_LABELS.iter().any(|word| text.contains(word))
}

/// Escapes invisible characters in the labels of a schema.
fn escape_labels(schema: &mut Value) {
    for word in LABEL_KEYWORDS {
        if let Some(Value::String(text)) = schema.get_mut(word) {
            *text = spell_hidden(text).into_owned();
        }
    }
    if let Some(names) = schema.get_mut("enumNames").and_then(Value::as_array_mut) {
        for name in names {
            if let Value::String(text) = name {
                *text = spell_hidden(text).into_owned();
            }
        }
    }
}

/// Whether any text or key contains invisible characters.
fn has_invisible_text(schema: &Value) -> bool {
    match schema {
        Value::String(text) => spell_hidden(text) != *text,
        Value::Array(items) => items.iter().any(has_invisible_text),
        Value::Object(members) => {
            members.iter().any(|(key, one)| spell_hidden(key) != *key || has_invisible_text(one))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asking(fields: Value) -> Result<ElicitationForm, &'static str> {
        ElicitationForm::parse(&json!({
            "message": "Who?\u{202e}", "requestedSchema": { "type": "object", "properties": fields },
        }))
    }

    // MC7
    #[test]
    fn rejects_forms_that_hide_text_or_ask_for_secrets() {
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
            (json!({ "a\u{200b}": { "type": "string" } }), "invisible"),
            (json!({ "a": { "type": "string", "enum": ["x\u{202e}"] } }), "invisible"),
            (json!({ "a": { "type": "string", "description": "x".repeat(MAX_BYTES) } }), "read"),
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
            let form =
                ElicitationForm::parse(&json!({ "message": message, "requestedSchema": schema }));
            assert_eq!(form.is_ok(), is_shown, "{message}");
        }
        assert!(ElicitationForm::parse(&json!({ "mode": "url", "url": "https://a/" })).is_err());
    }

    // MC7
    #[test]
    fn answer_has_only_requested_fields_and_no_secret() {
        let form = asking(json!({
            "name": { "type": "string" }, "age": { "type": "integer", "default": 30 },
        }))
        .unwrap();
        let filled = |content: Value| form.accept_answer(content.as_object().unwrap().clone());
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
