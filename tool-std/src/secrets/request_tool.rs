//! The tool `request_env_var`: lets the user enter variables and secrets.
//!
//! **Invariant:** a value goes from the form to the store and nowhere else: not into the result, an
//! event or an error.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tool_sdk::{
    Context, ElicitationOutcome, ErrorKind, InquiryKind, InvalidArgs, Output, SecretStore,
    SecretValue, ToolError, TypedOutput, tool,
};

use super::NAME_PATTERN;
use crate::form_outcome::FormOutcome;

/// A variable that the user enters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
#[non_exhaustive]
pub struct RequestedVariable {
    /// The name, such as `WEATHER_API_KEY`.
    #[schemars(length(min = 1, max = 100))]
    pub variable_name: String,
    /// What the value is, and where the user gets it.
    #[schemars(length(max = 500))]
    pub description: Option<String>,
    /// Whether the value is a secret, which you never see. Leave it out for keys, tokens and
    /// passwords.
    #[serde(default = "yes")]
    pub is_secret: bool,
    /// Whether the user must enter it.
    #[serde(default = "yes")]
    pub is_required: bool,
}

/// Which variables the user entered.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct EnteredVariables {
    /// How the form ended.
    pub outcome: FormOutcome,
    /// The names of the variables that are set now.
    pub set: Vec<String>,
    /// The names of those that the user left out.
    pub left_out: Vec<String>,
    /// How long they are kept: `session` or `project`.
    pub scope: String,
}

fn yes() -> bool {
    true
}

/// Ask the user to enter variables that tools need, such as API keys, and keep them.
///
/// You learn which were entered, and not the values of secrets. Check with `check_env_vars` first
/// which are missing.
#[tool(
    read,
    category = "secrets",
    parallel = exclusive,
    approval(required = |_, _| false),
    validate = check_fields,
    display(name = "Variables", primary = reason, show(reason, fields), summary = "Asking for variables"),
    example = r#"{"fields": [{"variable_name": "WEATHER_API_KEY", "description": "The key of your weather account."}], "reason": "The forecast needs it."}"#
)]
pub async fn request_env_var(
    /// The variables, in the order of the form.
    #[arg(length = 1..=10)]
    fields: Vec<RequestedVariable>,
    /// What they are needed for, one sentence.
    #[arg(length = ..=500)]
    reason: Option<&str>,
    /// Whether they are kept for the project, and not only until the session ends.
    #[arg(default = false)]
    save_to_project: bool,
    cx: &Context,
) -> Result<TypedOutput<EnteredVariables>, ToolError> {
    let store = cx.session().secrets();
    check_channel(&fields, save_to_project, &store, cx)?;
    let scope = if save_to_project { "project" } else { "session" };
    let names: Vec<&str> = fields.iter().map(|field| &*field.variable_name).collect();
    cx.emit("variables.requested", json!({ "names": names }));
    let message = match reason {
        Some(reason) => format!("A tool needs variables: {reason}"),
        None => "A tool needs variables.".to_owned(),
    };
    let content = match cx.elicit(message, form_schema(&fields)).await {
        Ok(ElicitationOutcome::Accepted(content)) => content,
        Ok(ElicitationOutcome::Declined) => return Ok(unanswered(FormOutcome::Declined, scope)),
        Ok(ElicitationOutcome::Cancelled) => return Ok(unanswered(FormOutcome::Cancelled, scope)),
        Err(error) if error.kind() == ErrorKind::Timeout => {
            return Ok(unanswered(FormOutcome::TimedOut, scope));
        }
        Err(error) => return Err(error),
    };
    let (mut set, mut left_out) = (Vec::new(), Vec::new());
    for field in fields {
        match entered_value(&content, &field.variable_name) {
            Some(value) => {
                save(&store, &field, value, save_to_project, cx).await?;
                set.push(field.variable_name);
            }
            None => left_out.push(field.variable_name),
        }
    }
    let list = |names: &[String]| if names.is_empty() { "none".into() } else { names.join(", ") };
    let text = format!("set for this {scope}: {}\nleft out: {}", list(&set), list(&left_out));
    let outcome = FormOutcome::Answered;
    let entered = EnteredVariables { outcome, set, left_out, scope: scope.to_owned() };
    cx.emit("variables.entered", json!(entered));
    Ok(TypedOutput::new(Output::text(text), entered))
}

/// Fails when the user cannot be asked for these variables.
fn check_channel(
    fields: &[RequestedVariable],
    save_to_project: bool,
    store: &SecretStore,
    cx: &Context,
) -> Result<(), ToolError> {
    let has_secrets = fields.iter().any(|field| field.is_secret);
    let reason = match cx.session() {
        session if !session.can_inquire(InquiryKind::Form) => "no user can be asked here",
        session if has_secrets && !session.can_inquire_secrets() => {
            "the user's client shows what is typed, so that secrets are not entered there"
        }
        _ if save_to_project && !store.has_file() => {
            return Err(ToolError::config("there is no file for the variables of this project")
                .hint("leave out `save_to_project`"));
        }
        _ => return Ok(()),
    };
    let names: Vec<&str> = fields.iter().map(|field| &*field.variable_name).collect();
    Err(ToolError::unavailable(reason).hint(format_args!(
        "ask the user to set {} with the command `secrets set NAME` of this program, then check \
         with `check_env_vars`",
        names.join(", ")
    )))
}

fn form_schema(fields: &[RequestedVariable]) -> Value {
    let mut properties = Map::new();
    for field in fields {
        let mut property = json!({ "type": "string", "title": field.variable_name });
        if let Some(description) = &field.description {
            property["description"] = json!(description);
        }
        if field.is_secret {
            property["format"] = json!("password");
        }
        properties.insert(field.variable_name.clone(), property);
    }
    let required = fields.iter().filter(|field| field.is_required);
    let required: Vec<&str> = required.map(|field| &*field.variable_name).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

fn entered_value(content: &Map<String, Value>, name: &str) -> Option<SecretValue> {
    let value = content.get(name)?.as_str()?;
    (!value.is_empty()).then(|| SecretValue::new(value))
}

async fn save(
    store: &SecretStore,
    field: &RequestedVariable,
    value: SecretValue,
    save_to_project: bool,
    cx: &Context,
) -> Result<(), ToolError> {
    let RequestedVariable { variable_name, is_secret, .. } = field;
    match save_to_project {
        true => store.set_for_project(variable_name, value, *is_secret).await,
        false => store.set_for_session(cx.session(), variable_name, value, *is_secret),
    }
}

fn unanswered(outcome: FormOutcome, scope: &str) -> TypedOutput<EnteredVariables> {
    let text =
        "The user did not enter the variables. Go on without them, or say what cannot be done.";
    let (set, left_out) = (Vec::new(), Vec::new());
    let entered = EnteredVariables { outcome, set, left_out, scope: scope.to_owned() };
    TypedOutput::new(Output::text(text).title(outcome.as_str()), entered)
}

/// Whether a text can be the name of a variable.
pub(super) fn is_name(name: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_rest = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.starts_with(is_start) && name.chars().all(is_rest) && name.len() <= 100
}

fn check_fields(args: &RequestEnvVarArgs) -> Result<(), InvalidArgs> {
    for (at, field) in args.fields.iter().enumerate() {
        let name = &field.variable_name;
        if !is_name(name) {
            let message = format_args!(
                "[{at}] has the name `{}`, which does not match {NAME_PATTERN}",
                name.escape_debug()
            );
            return Err(InvalidArgs::for_argument("fields", message));
        }
        if args.fields[..at].iter().any(|other| other.variable_name == *name) {
            let message = format_args!("[{at}] has the same name as a field before it");
            return Err(InvalidArgs::for_argument("fields", message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tool_sdk::testing::Harness;
    use tool_sdk::{Inquiry, InquiryFuture, InquiryHandler, ScriptedAnswers, Session, tools};

    use super::*;
    use crate::secrets::{check_env_vars, get_env_var};

    const VALUE: &str = "correct horse battery";

    fn harness(handler: Option<Arc<dyn InquiryHandler>>) -> Harness {
        let session = Session::new("s1").with_service(SecretStore::default());
        let session = match handler {
            Some(handler) => session.with_inquiry_handler(handler),
            None => session,
        };
        Harness::new(tools![check_env_vars, get_env_var, request_env_var]).with_session(session)
    }

    fn request() -> Value {
        json!({ "fields": [
            { "variable_name": "API_KEY" },
            { "variable_name": "API_URL", "is_secret": false },
            { "variable_name": "EXTRA", "is_required": false },
        ] })
    }

    // F154
    #[tokio::test]
    async fn what_the_user_enters_is_set_and_not_shown() {
        let answer = json!({ "API_KEY": VALUE, "API_URL": "http://a" }).as_object().cloned();
        let script =
            Arc::new(ScriptedAnswers::new([ElicitationOutcome::Accepted(answer.unwrap())]));
        let harness = harness(Some(Arc::clone(&script) as _));
        let names = json!({ "required_vars": ["API_KEY", "EXTRA"] });
        let before = harness.ok("check_env_vars", names.clone()).await;
        assert_eq!(before.as_text(), "available: none\nmissing: API_KEY, EXTRA");

        let entered = harness.ok("request_env_var", request()).await;
        assert_eq!(entered.as_text(), "set for this session: API_KEY, API_URL\nleft out: EXTRA");
        let form = &script.asked_forms()[0]["requestedSchema"];
        assert_eq!(form["properties"]["API_KEY"]["format"], "password");
        assert_eq!(form["required"], json!(["API_KEY", "API_URL"]));

        let after = harness.ok("check_env_vars", names).await;
        assert_eq!(after.as_text(), "available: API_KEY\nmissing: EXTRA");
        let key = harness.ok("get_env_var", json!({ "variable_name": "API_KEY" })).await;
        assert_eq!(
            key.as_text(),
            "API_KEY: set (21 characters, secret, ****tery), from this session"
        );
        let url = harness.ok("get_env_var", json!({ "variable_name": "API_URL" })).await;
        assert_eq!(url.as_text(), "API_URL: `http://a`, from this session");
        let unset = harness.error("get_env_var", json!({ "variable_name": "EXTRA" })).await;
        assert_eq!(unset.kind(), ErrorKind::NotFound);
    }

    /// A client that shows what is typed.
    struct OpenForms;

    impl InquiryHandler for OpenForms {
        fn supports(&self, kind: InquiryKind) -> bool {
            kind == InquiryKind::Form
        }

        fn inquire(self: Arc<Self>, _: Vec<(String, Inquiry)>) -> InquiryFuture {
            let answer = json!({ "action": "accept", "content": { "API_URL": "http://a" } });
            Box::pin(std::future::ready(Ok(vec![answer])))
        }
    }

    // F154
    #[tokio::test]
    async fn secrets_are_not_typed_where_they_are_shown() {
        for handler in [None, Some(Arc::new(OpenForms) as Arc<dyn InquiryHandler>)] {
            let error = harness(handler).error("request_env_var", request()).await;
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(error.suggestion().is_some_and(|hint| hint.contains("secrets set")), "{error}");
        }
        let plain = json!({ "fields": [{ "variable_name": "API_URL", "is_secret": false }] });
        harness(Some(Arc::new(OpenForms))).ok("request_env_var", plain).await;
    }

    #[tokio::test]
    async fn wrong_names_and_missing_files_are_refused() {
        let script = || Some(Arc::new(ScriptedAnswers::new([])) as Arc<dyn InquiryHandler>);
        for fields in [
            json!([{ "variable_name": "a b" }]),
            json!([{ "variable_name": "A" }, { "variable_name": "A" }]),
        ] {
            let error =
                harness(script()).error("request_env_var", json!({ "fields": fields })).await;
            assert_eq!(error.kind(), ErrorKind::InvalidArgs);
        }
        let mut saved = request();
        saved["save_to_project"] = json!(true);
        let error = harness(script()).error("request_env_var", saved).await;
        assert_eq!(error.kind(), ErrorKind::Config);
        for outcome in [ElicitationOutcome::Declined, ElicitationOutcome::Cancelled] {
            let script = Arc::new(ScriptedAnswers::new([outcome]));
            harness(Some(script)).ok("request_env_var", request()).await;
        }
    }
}
