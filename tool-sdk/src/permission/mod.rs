//! Whether a call may run: rules, modes, approvals and asking.
//!
//! Rules say allow, ask or deny; approvals only lift an ask; a mode clamps what is left. A
//! denial is final: nothing in this module turns one into anything else.
//!
//! **Invariant:** nothing here knows a tool by its name.

mod approvals;
mod arguments;
mod ask;
mod decision;
mod fingerprint;
mod mode;
mod pattern;
mod prompt;
mod rule;
mod ruleset;
mod session;
mod written;

pub use self::approvals::{ApprovalStore, Grant, GrantSource, Grantee, Loaded, StoredApproval};
pub(crate) use self::approvals::{Approvals, Granted};
pub(crate) use self::arguments::Arguments;
#[cfg(feature = "mcp")]
pub(crate) use self::ask::unanswered;
pub(crate) use self::ask::{Answering, Backstage, Change, Desk, Settled, Taken, Waiting, Witness};
pub use self::ask::{
    Approver, Ask, AskChannel, AskId, AskInbox, PendingAsk, Reply, ReplyError, Scripted,
    ask_channel,
};
pub use self::decision::{By, Decision};
pub(crate) use self::decision::{Case, Floor};
pub use self::fingerprint::Fingerprint;
pub(crate) use self::fingerprint::definition_hash;
pub(crate) use self::mode::Modes;
pub use self::mode::{InvalidMode, Mode};
pub use self::pattern::Pattern;
#[cfg(feature = "cli")]
pub(crate) use self::prompt::framed;
#[cfg(feature = "mcp")]
pub(crate) use self::prompt::mixed;
#[cfg(any(feature = "mcp", feature = "cli"))]
pub(crate) use self::prompt::spelt;
pub use self::prompt::{Extent, Prompt};
pub use self::rule::{Action, InvalidRule, Rule, Scope};
pub(crate) use self::ruleset::Names;
pub use self::ruleset::Ruleset;
pub(crate) use self::written::rules_of_profile;
pub use self::written::{WrittenRule, WrittenRules};
