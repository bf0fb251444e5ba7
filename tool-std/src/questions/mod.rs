//! Tools with which a model asks the user: `ask_clarification` and `request_decision`.
//!
//! The question is a form of the session's [`InquiryHandler`](tool_sdk::InquiryHandler): at a
//! terminal, in an MCP client, or answered by a script. An answer is data and allows nothing.

mod clarification;
mod decision;
mod question;

pub use self::clarification::{ClarificationAnswer, ask_clarification};
pub use self::decision::{DecisionAnswer, DecisionOption, request_decision};
pub use crate::form_outcome::FormOutcome;
