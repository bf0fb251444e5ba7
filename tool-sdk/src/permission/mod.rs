//! Permissions: whether a call may run, by rules, modes, grants and approval requests.
//!
//! Rules allow, ask or deny; a grant only lifts an `ask`; a mode limits the rest. A denial is
//! final: nothing in this module turns one into anything else.
//!
//! **Invariant:** nothing here knows a tool by its name.

mod approval;
mod argument_lookup;
mod config;
mod decision;
mod fingerprint;
mod grants;
mod mode;
mod pattern;
mod prompt;
mod rule;
mod ruleset;
mod session;

#[cfg(feature = "mcp")]
pub(crate) use self::approval::unanswered_response;
pub use self::approval::{
    ApprovalId, ApprovalReceiver, ApprovalRequest, ApprovalResponse, ApprovalResponseError,
    ApprovalSender, Approver, PendingRequest, ScriptedApprover, approval_channel,
};
pub(crate) use self::approval::{
    ApprovalInternals, ApprovalOutcome, CallRewrite, ClaimedApproval, HookObserver, PendingAnswer,
    PendingApprovals, ResponseApplication,
};
pub(crate) use self::argument_lookup::ArgumentLookup;
pub(crate) use self::config::deserialize_profile_rules;
pub use self::config::{RuleConfig, RulesConfig};
pub use self::decision::{Decision, DecisionSource};
pub(crate) use self::decision::{PolicyInput, PolicyOverride};
pub use self::fingerprint::Fingerprint;
pub(crate) use self::fingerprint::definition_hash;
pub use self::grants::{Grant, GrantSource, GrantStore, Grantee, StoredGrant, StoredGrants};
pub(crate) use self::grants::{GrantIndex, SessionGrants};
pub(crate) use self::mode::ModeSet;
pub use self::mode::{InvalidMode, Mode};
pub use self::pattern::Pattern;
#[cfg(feature = "cli")]
pub(crate) use self::prompt::frame_text;
#[cfg(feature = "mcp")]
pub(crate) use self::prompt::mixed_script_warning;
#[cfg(any(feature = "mcp", feature = "cli"))]
pub(crate) use self::prompt::spell_hidden;
pub use self::prompt::{ApprovalPrompt, GrantScope};
pub use self::rule::{Action, InvalidRule, Rule, RuleScope};
pub(crate) use self::ruleset::RuleNames;
pub use self::ruleset::Ruleset;
