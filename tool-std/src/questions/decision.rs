//! The tool `request_decision`: lets the user choose between options.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tool_sdk::{Context, InvalidArgs, Output, ToolError, TypedOutput, tool};

use super::question::{QuestionOutcome, ask_user, question_text};
use crate::form_outcome::FormOutcome;

/// How often the form is shown again after an answer that it does not allow. Forms of MCP clients
/// may not enforce the limits of their fields.
const MAX_TRIES: usize = 3;

/// One option.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
#[non_exhaustive]
pub struct DecisionOption {
    /// A short name, which is also the answer.
    #[schemars(length(min = 1, max = 200))]
    pub label: String,
    /// What choosing it means.
    #[schemars(length(max = 1000))]
    pub description: Option<String>,
}

/// Let the user choose between options, and wait for the choice.
///
/// Use it when the user has to decide between ways that differ in what they get. Say what you would
/// choose in `recommendation`. The user may also answer in their own words, unless `allow_other` is
/// false. For a question without options use `ask_clarification`.
#[tool(
    read,
    category = "collaboration",
    approval(required = |_, _| false),
    validate = check_options,
    display(name = "Decision", primary = question, show(question, options), summary = "Asking: {question}"),
    example = r#"{"question": "Which parser?", "options": [{"label": "nom", "description": "Small functions."}, {"label": "pest", "description": "A grammar file."}], "recommendation": "nom"}"#
)]
#[expect(clippy::too_many_arguments, reason = "each parameter of the tool is one")]
pub async fn request_decision(
    /// What is to be decided.
    #[arg(length = 1..=2000)]
    question: &str,
    /// The options, the most useful first.
    #[arg(length = 2..=20)]
    options: Vec<DecisionOption>,
    /// The label of the option that you would choose.
    recommendation: Option<String>,
    /// Whether the user chooses one option or several.
    #[arg(default = "single", choices("single", "multiple"))]
    selection_mode: &str,
    /// How many options the user may choose at most, with `multiple`; all of them by default.
    #[arg(range = 1..=20)]
    max_selections: Option<usize>,
    /// Whether the user may answer in their own words instead.
    #[arg(default = true)]
    allow_other: bool,
    /// What the user should know before choosing.
    #[arg(length = ..=4000)]
    context: Option<&str>,
    cx: &Context,
) -> Result<TypedOutput<DecisionAnswer>, ToolError> {
    let form = DecisionForm {
        options: &options,
        recommendation: recommendation.as_deref(),
        max_selections: match selection_mode {
            "multiple" => Some(max_selections.unwrap_or(options.len())),
            _ => None,
        },
        allow_other,
    };
    let message = form.describe(&question_text(question, context));
    let mut asked = message.clone();
    for _ in 0..MAX_TRIES {
        let content = match ask_user(cx, asked, form.schema()).await? {
            QuestionOutcome::Answered(content) => content,
            QuestionOutcome::Unanswered(outcome, output) => {
                let answer = DecisionAnswer { outcome, selected: Vec::new(), other: None };
                return Ok(TypedOutput::new(output, answer));
            }
        };
        match form.read_answer(&content) {
            Ok(answer) => return Ok(answer.into_output()),
            Err(problem) => asked = format!("{problem}\n\n{message}"),
        }
    }
    Err(ToolError::unavailable("the user's client sent an answer that the form does not allow")
        .hint("decide yourself, and say in your answer what you assumed"))
}

/// Checks what the options have to do with each other.
fn check_options(args: &RequestDecisionArgs) -> Result<(), InvalidArgs> {
    let labels: Vec<&str> = args.options.iter().map(|option| option.label.trim()).collect();
    for (at, label) in labels.iter().enumerate() {
        if label.is_empty() || labels[..at].contains(label) {
            let message = format_args!("[{at}] must have a label of its own");
            return Err(InvalidArgs::for_argument("options", message));
        }
    }
    if let Some(recommended) = &args.recommendation
        && !labels.contains(&recommended.trim())
    {
        let message = format_args!("must be one of the labels: {}", labels.join(", "));
        return Err(InvalidArgs::for_argument("recommendation", message));
    }
    match args.max_selections {
        Some(_) if args.selection_mode != "multiple" => Err(InvalidArgs::for_argument(
            "max_selections",
            "needs `selection_mode` to be `multiple`",
        )),
        Some(most) if most > labels.len() => Err(InvalidArgs::for_argument(
            "max_selections",
            format_args!("is {most}, but there are {} options", labels.len()),
        )),
        _ => Ok(()),
    }
}

/// The form of a decision.
struct DecisionForm<'a> {
    options: &'a [DecisionOption],
    recommendation: Option<&'a str>,
    /// The limit of a choice of several options; `None` for a choice of one.
    max_selections: Option<usize>,
    allow_other: bool,
}

/// What the user decided.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct DecisionAnswer {
    /// How the question ended.
    pub outcome: FormOutcome,
    /// The labels of the chosen options.
    pub selected: Vec<String>,
    /// The answer in the user's own words.
    pub other: Option<String>,
}

impl DecisionForm<'_> {
    fn labels(&self) -> Vec<&str> {
        self.options.iter().map(|option| option.label.trim()).collect()
    }

    /// Returns the message of the form: the question, and each option with its description.
    fn describe(&self, question: &str) -> String {
        let mut text = format!("{question}\n");
        let recommended = self.recommendation.map(str::trim);
        for option in self.options {
            let label = option.label.trim();
            let _ = write!(text, "\n- {label}");
            if recommended == Some(label) {
                text.push_str(" (recommended)");
            }
            if let Some(description) = &option.description {
                let _ = write!(text, ": {}", description.trim());
            }
        }
        text
    }

    fn schema(&self) -> Value {
        let labels = self.labels();
        let mut choice = match self.max_selections {
            None => json!({ "type": "string", "title": "Your choice", "enum": labels }),
            Some(most) => json!({
                "type": "array",
                "title": if most == labels.len() {
                    "Your choices".to_owned()
                } else {
                    format!("Your choices, at most {most}")
                },
                "items": { "type": "string", "enum": labels },
                "minItems": u8::from(!self.allow_other),
                "maxItems": most,
            }),
        };
        // Beside a free answer, a default would be chosen by users who write one.
        if let Some(label) = self.recommendation.filter(|_| !self.allow_other) {
            choice["default"] = match self.max_selections {
                None => json!(label.trim()),
                Some(_) => json!([label.trim()]),
            };
        }
        let mut properties = Map::from_iter([("choice".to_owned(), choice)]);
        if !self.allow_other {
            return json!({ "type": "object", "properties": properties, "required": ["choice"] });
        }
        let other = json!({
            "type": "string",
            "title": "Another answer",
            "description": "In your own words, in place of a choice or with it.",
        });
        properties.insert("other".to_owned(), other);
        json!({ "type": "object", "properties": properties })
    }

    /// Reads the answer, or returns what is wrong with it, for the user.
    fn read_answer(&self, content: &Map<String, Value>) -> Result<DecisionAnswer, String> {
        let chosen = match content.get("choice") {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let labels = self.labels();
        if let Some(unknown) = chosen.iter().find(|label| !labels.contains(label)) {
            return Err(format!("`{unknown}` is not an option."));
        }
        let mut selected: Vec<String> = Vec::new();
        for label in chosen {
            if selected.iter().all(|known| known != label) {
                selected.push(label.to_owned());
            }
        }
        let most = self.max_selections.unwrap_or(1);
        if selected.len() > most {
            return Err(format!("Please choose at most {most}; you chose {}.", selected.len()));
        }
        let other = content.get("other").and_then(Value::as_str).map(str::trim);
        let other = other.filter(|text| !text.is_empty() && self.allow_other).map(str::to_owned);
        if selected.is_empty() && other.is_none() {
            return Err("Please choose an option.".to_owned());
        }
        Ok(DecisionAnswer { outcome: FormOutcome::Answered, selected, other })
    }
}

impl DecisionAnswer {
    fn into_output(self) -> TypedOutput<Self> {
        let quoted: Vec<String> =
            self.selected.iter().map(|label| format!("\"{label}\"")).collect();
        let text = match (&*quoted, &self.other) {
            ([], other) => format!(
                "The user answered in their own words: {}",
                other.as_deref().unwrap_or_default()
            ),
            (chosen, None) => format!("The user chose: {}", chosen.join(", ")),
            (chosen, Some(other)) => {
                format!("The user chose: {}, and added: {other}", chosen.join(", "))
            }
        };
        TypedOutput::new(Output::text(text).title(self.outcome.as_str()), self)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tool_sdk::testing::Harness;
    use tool_sdk::{ElicitationOutcome, ErrorKind, ScriptedAnswers, Session, tools};

    use super::*;

    fn options() -> Value {
        json!([{ "label": "A", "description": "First." }, { "label": "B" }, { "label": "C" }])
    }

    fn script(answers: &[Value]) -> Arc<ScriptedAnswers> {
        let answers = answers.iter().map(|answer| {
            ElicitationOutcome::Accepted(answer.as_object().cloned().unwrap_or_default())
        });
        Arc::new(ScriptedAnswers::new(answers))
    }

    fn harness(script: &Arc<ScriptedAnswers>) -> Harness {
        let session = Session::new("s1").with_inquiry_handler(Arc::clone(script) as _);
        Harness::new(tools![request_decision]).with_session(session)
    }

    async fn decide(arguments: Value, answers: &[Value]) -> (Output, Vec<Value>) {
        let script = script(answers);
        let output = harness(&script).ok("request_decision", arguments).await;
        (output, script.asked_forms())
    }

    // F153
    #[tokio::test]
    async fn one_option_or_a_free_answer() {
        let arguments =
            json!({ "question": "Which?", "options": options(), "recommendation": "B" });
        let (output, asked) = decide(arguments.clone(), &[json!({ "choice": "B" })]).await;
        assert_eq!(output.as_text(), "The user chose: \"B\"");
        assert_eq!(asked[0]["message"], "Which?\n\n- A: First.\n- B (recommended)\n- C");
        let (output, _) = decide(arguments.clone(), &[json!({ "other": "neither" })]).await;
        assert_eq!(output.as_text(), "The user answered in their own words: neither");
        let both = json!({ "choice": "A", "other": "but slowly" });
        let (output, _) = decide(arguments.clone(), &[both]).await;
        assert_eq!(output.as_text(), "The user chose: \"A\", and added: but slowly");

        let mut closed = arguments;
        closed["allow_other"] = json!(false);
        let (_, asked) = decide(closed, &[json!({ "choice": "A" })]).await;
        let form = &asked[0]["requestedSchema"];
        assert_eq!(form["properties"]["choice"]["default"], "B");
        assert_eq!(form["required"], json!(["choice"]));
        assert_eq!(form["properties"].get("other"), None);
    }

    // F153: more options than `max_selections` are never passed on.
    #[tokio::test]
    async fn several_options_respect_max_selections() {
        let arguments = json!({
            "question": "Which?", "options": options(), "selection_mode": "multiple",
            "max_selections": 2,
        });
        let (output, asked) = decide(
            arguments.clone(),
            &[
                json!({ "choice": ["A", "B", "C"] }),
                json!({ "choice": ["Z"] }),
                json!({ "choice": ["C", "A", "C"] }),
            ],
        )
        .await;
        let data = output.to_structured().unwrap();
        assert_eq!(data["selected"], json!(["C", "A"]));
        assert_eq!(asked[0]["requestedSchema"]["properties"]["choice"]["maxItems"], 2);
        let message = asked[1]["message"].as_str().unwrap();
        assert!(message.starts_with("Please choose at most 2; you chose 3."), "{message}");

        let wrong = json!({ "choice": ["A", "B", "C"] });
        let script = script(&[wrong.clone(), wrong.clone(), wrong]);
        let error = harness(&script).error("request_decision", arguments).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }

    #[tokio::test]
    async fn contradictions_are_refused() {
        for (changes, expected) in [
            (json!({ "recommendation": "Z" }), "must be one of the labels: A, B, C"),
            (json!({ "max_selections": 2 }), "needs `selection_mode` to be `multiple`"),
            (
                json!({ "max_selections": 4, "selection_mode": "multiple" }),
                "is 4, but there are 3 options",
            ),
            (json!({ "options": [{ "label": "A" }, { "label": " A" }] }), "a label of its own"),
        ] {
            let mut arguments = json!({ "question": "Which?", "options": options() });
            for (name, value) in changes.as_object().unwrap() {
                arguments[name] = value.clone();
            }
            let error = harness(&script(&[])).error("request_decision", arguments).await;
            assert_eq!(error.kind(), ErrorKind::InvalidArgs);
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
