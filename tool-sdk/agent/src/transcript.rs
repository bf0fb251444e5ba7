//! The conversation of an agent: what was said, called and answered.
//!
//! **Invariant:** every call of a message has an answer in the entry behind it, also after an
//! interruption, because providers refuse a conversation without one.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tool_sdk_core::provider::{
    CallAnswer, ModelApi, ModelMessage, encode_answers, encode_user_message,
};
use tool_sdk_core::{Attachment, ConversationMessage, ErrorKind, ToolError};

use crate::spending::SpentAmounts;

/// A conversation, which can be stored as JSON and continued later.
///
/// Compaction replaces the beginning by a summary in what the model reads; the entries stay.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::Transcript;
/// use tool_sdk::provider::ModelApi;
///
/// let mut transcript = Transcript::from_user("How many pages has the book?");
/// assert_eq!(transcript.encode(ModelApi::Anthropic)[0]["role"], "user");
///
/// let stored = serde_json::to_string(&transcript)?;
/// assert_eq!(serde_json::from_str::<Transcript>(&stored)?, transcript);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Transcript {
    /// All entries, in order.
    pub entries: Vec<TranscriptEntry>,
    /// What the model reads in place of the first entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<TranscriptSummary>,
    /// The ids of calls whose results the model no longer reads.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) pruned: BTreeSet<String>,
    /// What the conversation cost so far, as far as the host keeps it there: with what the agents
    /// below spent.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub spent: SpentAmounts,
}

fn is_nothing(spent: &SpentAmounts) -> bool {
    *spent == SpentAmounts::default()
}

/// One entry of a [`Transcript`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TranscriptEntry {
    /// A message of the user, or of the host in the user's name.
    User {
        /// The text.
        text: String,
        /// Images and documents.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// A message of the model.
    Model {
        /// The message.
        message: ModelMessage,
    },
    /// The answers to the calls of the message before.
    Answers {
        /// One for each call, in their order.
        answers: Vec<CallAnswer>,
    },
}

/// The text that stands for the first entries of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "hosts construct summaries")]
pub struct TranscriptSummary {
    /// The summary.
    pub text: String,
    /// How many entries it stands for.
    pub covered: usize,
}

impl Transcript {
    /// Creates a conversation that begins with a message of the user.
    #[must_use]
    pub fn from_user(text: impl Into<String>) -> Self {
        let mut transcript = Self::default();
        transcript.push_user(text, Vec::new());
        transcript
    }

    /// Adds a message of the user.
    pub fn push_user(&mut self, text: impl Into<String>, attachments: Vec<Attachment>) {
        self.entries.push(TranscriptEntry::User { text: text.into(), attachments });
    }

    /// Returns the text of the user's newest message.
    #[must_use]
    pub fn last_user_text(&self) -> Option<&str> {
        self.entries.iter().rev().find_map(|entry| match entry {
            TranscriptEntry::User { text, .. } => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns the text of the model's newest message.
    #[must_use]
    pub fn last_model_text(&self) -> Option<String> {
        self.entries.iter().rev().find_map(|entry| match entry {
            TranscriptEntry::Model { message } => Some(message.text()),
            _ => None,
        })
    }

    /// Returns the entries that the model reads as they are, behind the summary.
    #[must_use]
    pub fn visible_entries(&self) -> &[TranscriptEntry] {
        let covered = self.summary.as_ref().map_or(0, |summary| summary.covered);
        self.entries.get(covered..).unwrap_or_default()
    }

    /// Encodes what the model reads as the messages or items of a request.
    #[must_use]
    pub fn encode(&self, api: ModelApi) -> Vec<Value> {
        let summary = self.summary.iter().map(|summary| {
            let text = format!(
                "The conversation before this point was replaced by this summary:\n\n{}",
                summary.text
            );
            encode_user_message(&text, &[], api)
        });
        let entries = self.visible_entries().iter().flat_map(|entry| self.encode_entry(entry, api));
        summary.chain(entries).collect()
    }

    fn encode_entry(&self, entry: &TranscriptEntry, api: ModelApi) -> Vec<Value> {
        match entry {
            TranscriptEntry::User { text, attachments } => {
                vec![encode_user_message(text, attachments, api)]
            }
            TranscriptEntry::Model { message } => message.encode(api),
            TranscriptEntry::Answers { answers } => {
                let answers: Vec<CallAnswer> =
                    answers.iter().map(|it| self.visible_answer(it).into_owned()).collect();
                encode_answers(&answers, api)
            }
        }
    }

    /// Returns the answer as the model reads it.
    fn visible_answer<'a>(&self, answer: &'a CallAnswer) -> Cow<'a, CallAnswer> {
        if !self.pruned.contains(&answer.id) {
            return Cow::Borrowed(answer);
        }
        let text = format!(
            "[the result of this call, {} bytes, was removed to save space; call the tool again if \
             you need it]",
            answer.text.len()
        );
        let mut pruned = CallAnswer::text(answer.id.clone(), answer.name.clone(), text);
        pruned.is_error = answer.is_error;
        Cow::Owned(pruned)
    }

    /// Estimates the tokens of what the model reads.
    pub(crate) fn estimate_tokens(&self) -> u64 {
        let summary = self.summary.as_ref().map_or(0, |summary| summary.text.len() as u64 / 4);
        let entries = self.visible_entries().iter().map(|entry| self.estimate_entry(entry));
        summary + entries.sum::<u64>()
    }

    /// Estimates the tokens of an entry, at four bytes each.
    pub(crate) fn estimate_entry(&self, entry: &TranscriptEntry) -> u64 {
        /// What providers count for an image of usual size.
        const IMAGE_TOKENS: u64 = 1_500;
        let text = |text: &str, attachments: &[Attachment]| {
            text.len() as u64 / 4 + attachments.len() as u64 * IMAGE_TOKENS
        };
        match entry {
            TranscriptEntry::User { text: said, attachments } => text(said, attachments),
            TranscriptEntry::Model { message } => match message.usage.output {
                0 => text(&message.raw.to_string(), &[]),
                counted => counted,
            },
            TranscriptEntry::Answers { answers } => {
                let visible = answers.iter().map(|answer| self.visible_answer(answer));
                visible.map(|it| text(&it.text, &it.attachments)).sum()
            }
        }
    }

    /// Answers the calls of the last message that have none, as after an interruption, with the
    /// error `reason`. Returns their number.
    pub fn answer_open_calls(&mut self, reason: &ToolError) -> usize {
        let Some(TranscriptEntry::Model { message }) = self.entries.last() else { return 0 };
        let answers: Vec<CallAnswer> = message
            .calls()
            .into_iter()
            .map(|call| {
                let id = call.id.as_ref().map(ToString::to_string).unwrap_or_default();
                CallAnswer::error(id, call.name, reason)
            })
            .collect();
        let count = answers.len();
        if count > 0 {
            self.entries.push(TranscriptEntry::Answers { answers });
        }
        count
    }

    /// Makes a conversation that was stored in the middle of its work continuable: calls without
    /// an answer get one that says that they may have run.
    pub fn recover(&mut self) {
        let reason = ToolError::new(
            ErrorKind::Aborted,
            "the program ended before the result was stored; the call may have run",
        );
        self.answer_open_calls(&reason.hint("look whether it did before you repeat it"));
    }

    /// Returns the conversation for tools to read: user and model texts.
    pub(crate) fn to_messages(&self) -> Vec<ConversationMessage> {
        let message = |entry: &TranscriptEntry| match entry {
            TranscriptEntry::User { text, .. } => {
                Some(ConversationMessage::text("user", text.clone()))
            }
            TranscriptEntry::Model { message } => {
                let text = message.text();
                (!text.is_empty()).then(|| ConversationMessage::text("assistant", text))
            }
            TranscriptEntry::Answers { .. } => None,
        };
        self.visible_entries().iter().filter_map(message).collect()
    }
}
