//! Input that a running task waits for: an approval, or answers to the questions of its tool.
//!
//! **Invariant:** each question has a key that no other question of the task has, and is answered once.

use rmcp::model::{InputRequests, InputResponses};
use tool_sdk_core::GrantScope;

use crate::server::approval_form;
use crate::server::call::{AwaitedInput, approval_answer, approval_request};

/// Questions that were asked at once.
pub(super) struct TaskInput {
    /// How many inputs the task waited for before, and this one.
    number: u32,
    awaited: AwaitedInput,
    /// The answers that came so far, by the names of their questions.
    given: InputResponses,
}

impl TaskInput {
    pub(super) fn new(number: u32, awaited: AwaitedInput) -> Self {
        Self { number, awaited, given: InputResponses::new() }
    }

    /// Returns true if the call no longer waits for it.
    pub(super) fn is_settled(&self) -> bool {
        match &self.awaited {
            AwaitedInput::Approval(pending) => pending.is_settled(),
            AwaitedInput::Questions(questions) => questions.is_settled(),
        }
    }

    /// Returns the questions that are not answered, by key.
    pub(super) fn open_requests(&self, scope: GrantScope) -> InputRequests {
        let requests = match &self.awaited {
            AwaitedInput::Approval(pending) => approval_request(pending, scope),
            AwaitedInput::Questions(questions) => questions.to_input_requests(),
        };
        let requests = requests.unwrap_or_default().into_iter();
        let open = requests.filter(|(name, _)| !self.given.contains_key(name));
        open.map(|(name, request)| (self.key_prefix() + &name, request)).collect()
    }

    /// Returns true if this is the key of one of its questions.
    pub(super) fn has_key(&self, key: &str) -> bool {
        key.starts_with(&self.key_prefix())
    }

    /// Takes the answers to its questions, and delivers them when all are there. Returns itself while
    /// one is missing.
    pub(super) fn accept(mut self, answers: &InputResponses, scope: GrantScope) -> Option<Self> {
        let prefix = self.key_prefix();
        for (key, answer) in answers {
            let Some(name) = key.strip_prefix(&prefix) else { continue };
            let is_valid = match &self.awaited {
                AwaitedInput::Approval(_) => true,
                AwaitedInput::Questions(questions) => questions.accepts(name, answer),
            };
            if is_valid {
                self.given.entry(name.to_owned()).or_insert_with(|| answer.clone());
            }
        }
        match self.awaited {
            AwaitedInput::Approval(pending) => match approval_answer(&self.given) {
                Some(answer) => {
                    let response = approval_form::parse_approval(pending.request(), scope, &answer);
                    pending.respond(response);
                    None
                }
                None => Some(Self::new(self.number, AwaitedInput::Approval(pending))),
            },
            AwaitedInput::Questions(questions) => match questions.deliver_answers(&self.given) {
                Ok(()) => None,
                Err(questions) => {
                    let awaited = AwaitedInput::Questions(questions);
                    Some(Self { number: self.number, awaited, given: self.given })
                }
            },
        }
    }

    fn key_prefix(&self) -> String {
        format!("{}.", self.number)
    }
}
