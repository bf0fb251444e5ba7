//! The tool `ask_clarification`: asks the user a question with a free answer.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tool_sdk::{Context, Output, ToolError, TypedOutput, tool};

use super::question::{QuestionOutcome, ask_user, question_text};
use crate::form_outcome::FormOutcome;

/// The answer to a question.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ClarificationAnswer {
    /// How the question ended.
    pub outcome: FormOutcome,
    /// What the user answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// Ask the user a question, and wait for the answer.
///
/// Use it when the task cannot be done right without knowing the answer, and neither the files nor
/// the conversation have it. Ask one question at a time. For a choice between options use
/// `request_decision`. Do not ask for passwords or keys.
#[tool(
    read,
    category = "collaboration",
    approval(required = |_, _| false),
    display(name = "Question", primary = question, show(question), summary = "Asking: {question}"),
    example = r#"{"question": "Which database do you use in production?", "context": "The migration differs between PostgreSQL and SQLite."}"#
)]
pub async fn ask_clarification(
    /// The question, in a sentence or two.
    #[arg(length = 1..=2000)]
    question: &str,
    /// Why you ask, and what depends on the answer.
    #[arg(length = ..=4000)]
    context: Option<&str>,
    cx: &Context,
) -> Result<TypedOutput<ClarificationAnswer>, ToolError> {
    let schema = json!({
        "type": "object",
        "properties": { "answer": { "type": "string", "title": "Your answer", "minLength": 1 } },
        "required": ["answer"],
    });
    let content = match ask_user(cx, question_text(question, context), schema).await? {
        QuestionOutcome::Answered(content) => content,
        QuestionOutcome::Unanswered(outcome, output) => {
            return Ok(TypedOutput::new(output, ClarificationAnswer { outcome, answer: None }));
        }
    };
    let answer = content.get("answer").and_then(Value::as_str).unwrap_or_default().to_owned();
    let outcome = FormOutcome::Answered;
    let output = Output::text(format!("The user answered: {answer}")).title(outcome.as_str());
    Ok(TypedOutput::new(output, ClarificationAnswer { outcome, answer: Some(answer) }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::json;
    use tool_sdk::testing::Harness;
    use tool_sdk::{
        ElicitationOutcome, ErrorKind, Inquiry, InquiryFuture, InquiryHandler, InquiryKind,
        ScriptedAnswers, Session, tools,
    };

    use super::*;

    fn harness(handler: impl InquiryHandler) -> Harness {
        let session = Session::new("s1").with_inquiry_handler(Arc::new(handler));
        Harness::new(tools![ask_clarification]).with_session(session)
    }

    fn question() -> Value {
        json!({ "question": "Which one?", "context": "Two are there." })
    }

    // F153
    #[tokio::test]
    async fn the_answer_reaches_the_model() {
        let answer = json!({ "answer": "the left one" }).as_object().unwrap().clone();
        let harness = harness(ScriptedAnswers::new([ElicitationOutcome::Accepted(answer)]));
        let output = harness.ok("ask_clarification", question()).await;
        assert_eq!(output.as_text(), "The user answered: the left one");
        let data = json!({ "outcome": "answered", "answer": "the left one" });
        assert_eq!(output.to_structured(), Some(data));
        // The script has no second answer.
        let error = harness.error("ask_clarification", question()).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }

    // F153: no answer is an outcome of its own, and not a rejection.
    #[tokio::test]
    async fn no_answer_is_an_outcome() {
        for (outcome, expected) in [
            (ElicitationOutcome::Declined, "declined"),
            (ElicitationOutcome::Cancelled, "cancelled"),
        ] {
            let harness = harness(ScriptedAnswers::new([outcome]));
            let output = harness.ok("ask_clarification", question()).await;
            assert_eq!(output.to_structured(), Some(json!({ "outcome": expected })));
            assert!(output.as_text().contains("decide yourself"), "{}", output.as_text());
        }
    }

    /// A user who has left.
    struct AbsentUser;

    impl InquiryHandler for AbsentUser {
        fn supports(&self, kind: InquiryKind) -> bool {
            kind == InquiryKind::Form
        }

        fn inquire(self: Arc<Self>, _: Vec<(String, Inquiry)>) -> InquiryFuture {
            Box::pin(std::future::pending())
        }
    }

    // F153: a time-out is an outcome of its own.
    #[tokio::test(start_paused = true)]
    async fn a_timeout_is_an_outcome() {
        let harness = harness(AbsentUser)
            .map_pipeline(|pipeline| pipeline.approval_timeout(Duration::from_secs(5)));
        let output = harness.ok("ask_clarification", question()).await;
        assert_eq!(output.to_structured(), Some(json!({ "outcome": "timed_out" })));
    }

    // F153: without a user the tool does not wait.
    #[tokio::test]
    async fn without_a_user_the_model_decides() {
        let harness = Harness::new(tools![ask_clarification]);
        let error = harness.error("ask_clarification", question()).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.suggestion().is_some_and(|hint| hint.starts_with("decide yourself")));
    }
}
