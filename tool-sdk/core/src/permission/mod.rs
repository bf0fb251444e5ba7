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

pub use self::approval::unanswered_response;
pub use self::approval::{
    ApprovalId, ApprovalReceiver, ApprovalRequest, ApprovalResponse, ApprovalResponseError,
    ApprovalSender, Approver, PendingRequest, ScriptedApprover, approval_channel,
};
pub use self::approval::{ApprovalInternals, CallRewrite, HookObserver};
pub(crate) use self::approval::{
    ApprovalOutcome, ClaimedApproval, EditableCall, PendingAnswer, PendingApprovals,
    ResponseApplication,
};
pub(crate) use self::argument_lookup::{ArgumentLookup, NoArguments};
pub(crate) use self::config::deserialize_profile_rules;
pub use self::config::{RuleConfig, RulesConfig};
pub(crate) use self::decision::PolicyInput;
pub use self::decision::PolicyOverride;
pub use self::decision::{Decision, DecisionSource};
pub use self::fingerprint::Fingerprint;
pub(crate) use self::fingerprint::definition_version;
pub(crate) use self::grants::{FolderIdentity, GrantIndex, SessionGrants, WorkspaceIdentity};
pub use self::grants::{Grant, GrantSource, GrantStore, Grantee, StoredGrant, StoredGrants};
pub(crate) use self::mode::ModeSet;
pub use self::mode::{InvalidMode, Mode};
pub use self::pattern::Pattern;
pub use self::prompt::spell_hidden;
pub use self::prompt::{ApprovalPrompt, GrantScope};
pub use self::prompt::{frame_text, wrap_rows};
pub use self::prompt::{mixed_script_warning, parse_hunk_header};
pub use self::rule::{Action, InvalidRule, Rule, RuleScope};
pub use self::ruleset::RuleNames;
pub use self::ruleset::Ruleset;
