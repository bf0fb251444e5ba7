//! Asking somebody: what is asked, who answers, and what an answer means.
//!
//! An [`Ask`] is made from the frozen call, so that what is shown is what runs. Whoever
//! implements [`Approver`] shows it and answers; [`Reply`] says how far the answer goes.

mod approvers;
mod desk;
mod request;

#[cfg(feature = "mcp")]
pub(crate) use self::approvers::unanswered;
pub use self::approvers::{AskChannel, AskInbox, PendingAsk, Scripted, ask_channel};
pub use self::desk::ReplyError;
pub(crate) use self::desk::{Answering, Desk, Settled, Taken, Waiting};
pub use self::request::{Approver, Ask, AskId, Reply};
pub(crate) use self::request::{Backstage, Change, Witness};
