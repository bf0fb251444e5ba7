//! The runtime of `tool-sdk`: tools, arguments, schemas, registry, permissions, hooks, and the
//! pipeline that every call passes.
//!
//! This crate is a part of [tool-sdk](https://docs.rs/tool-sdk), which re-exports it and explains
//! it. Programs name `tool_sdk` only.

#![forbid(unsafe_code)]

extern crate self as tool_sdk;

mod audit;
mod batch;
mod call;
mod content;
mod context;
mod conversation_store;
#[cfg(feature = "definition-pins")]
mod definition_pins;
mod error;
mod event;
#[cfg(feature = "frontmatter")]
mod frontmatter;
mod hook;
mod ledger;
mod loop_guard;
mod memory_store;
mod name;
mod permission;
mod pipeline;
mod plan_mode;
mod plan_store;
mod plugin;
mod principal;
mod redact;
mod registry;
mod rfc3339;
mod risk;
mod scheduler;
mod schema;
mod schema_files;
mod schema_lock;
mod secrets;
mod session_recorder;
mod session_store;
mod sha256;

mod private_file;
pub mod provider;
#[cfg(feature = "testing")]
pub mod testing;
mod tool;
mod toolset;
mod truncate;
mod trusted_folders;

#[doc(hidden)]
pub mod __private;
mod macros;

pub use self::audit::{ArgumentEdit, AuditAnswer, AuditEvent, AuditLog, AuditRecord, AuditSink};
pub use self::batch::Batch;
pub use self::call::{
    ArgumentNote, Call, CallId, Coercion, Leniency, Outcome, RawArgs, Truncation,
};
pub use self::content::{Attachment, AttachmentData, Output};
pub use self::context::{
    AccessDecision, ClientKind, CloseCallback, Context, ConversationMessage, DeniedFiles,
    ElicitationOutcome, FromContext, FromContextRef, Inquiry, InquiryFuture, InquiryHandler,
    InquiryKind, Interrupted, PermissionFuture, ProgramFolders, RequestedAccess, ScriptedAnswers,
    Session, SessionIds, Signal, Sink, State, ToolFacts, ToolSettings, Visibility,
    VisibilityFilter, WorkStop,
};
pub use self::conversation_store::{
    ConversationQuery, ConversationRecord, ConversationStore, ConversationSummary,
    MemoryConversationStore,
};
#[cfg(feature = "definition-pins")]
pub use self::definition_pins::ToolPins;
pub use self::error::{ErrorKind, ToolError};
pub use self::event::{
    Artifact, CallFailure, EventKind, EventSeverity, MaskedArguments, Subscription, ToolEvent,
};
#[cfg(feature = "frontmatter")]
pub use self::frontmatter::{Frontmatter, InvalidFrontmatter};
pub use self::hook::{Hook, HookContext, HookDecision, HookPriority, HookRun, OnError};
pub use self::ledger::{
    Ledger, LedgerEntry, LedgerLimits, MutationLoop, MutationPhase, MutationTransaction,
    RollbackHook, TimelineEntry,
};
pub use self::loop_guard::{LoopGuard, LoopGuardSettings};
pub use self::memory_store::{
    Embedder, Embedding, InProcessMemoryStore, MemoryCategory, MemoryHandle, MemoryNote,
    MemoryOwner, MemoryScope, MemoryStore, NoteChanges, NoteDraft, NoteMatch, NotePage, NoteQuery,
    NoteWrite,
};
pub use self::name::{InvalidToolName, ToolName};
pub use self::permission::{
    Action, ApprovalId, ApprovalPrompt, ApprovalReceiver, ApprovalRequest, ApprovalResponse,
    ApprovalResponseError, ApprovalSender, Approver, Decision, DecisionSource, Fingerprint, Grant,
    GrantScope, GrantSource, GrantStore, Grantee, InvalidMode, InvalidRule, Mode, Pattern,
    PendingRequest, Rule, RuleConfig, RuleScope, RulesConfig, Ruleset, ScriptedApprover,
    StoredGrant, StoredGrants, approval_channel,
};
pub use self::pipeline::{
    CallEvents, CallFacts, CallUpdate, CheckOutcome, FailureRecord, MissingService, Pipeline,
    PluginManager,
};
pub use self::plan_store::{
    MemoryPlanStore, PlanChange, PlanDraft, PlanStep, PlanStore, PlanStoreHandle, SessionPlan,
    TodoItem, TodoPriority, TodoStatus,
};
pub use self::plugin::{Plugin, PluginError, PluginHost, PluginPart, PluginRegistrar, PluginScope};
pub use self::principal::Principal;
pub use self::private_file::PrivateFileError;
pub use self::redact::Redactor;
#[cfg(feature = "linked")]
pub use self::registry::Registration;
pub use self::registry::{
    Registry, RegistryBuilder, RegistryConflict, RegistryError, ToolsFile, ToolsFileError,
};
pub use self::risk::{Risk, RiskClass};
pub use self::schema::{Schema, SchemaError};
pub use self::secrets::{
    EnvironmentSecrets, SecretFile, SecretSource, SecretStore, SecretValue, StoredSecret,
};
pub use self::session_recorder::SessionRecorder;
pub use self::session_store::{
    CallRecord, CallStatus, EventRecord, MemorySessionStore, SessionStore, SessionSummary,
};
#[expect(deprecated, reason = "re-exported so that its users see the deprecation note")]
pub use self::tool::LegacyTool;
#[cfg(feature = "workspace")]
pub use self::tool::WorkspacePath;
pub use self::tool::{
    Args, CompletionFuture, Definition, DynamicTool, ExecutionPermit, Fault, FaultKind, Flags,
    Icon, IntoOutput, IntoTools, InvalidArgs, Json, OutputFuture, Parallel, Param, PreparedCall,
    Refinement, Resource, SourceLocation, TaskSupport, Tool, ToolDisplay, ToolFn, ToolLabel,
    ToolMethods, ToolSource, Truncate, TypedOutput,
};
pub use self::toolset::{
    AgentProfile, ModelProfile, ToolAudience, Toolset, ToolsetView, UnknownVariant, VariantGroup,
};
pub use self::truncate::{Budget, FittedText, InvalidBudget, outputs_folder, prepare_outputs};
pub use self::trusted_folders::{TrustedFolder, TrustedFolders};
pub use tokio_util::sync::CancellationToken;
#[cfg(feature = "macros")]
pub use tool_sdk_macros::{tool, toolset};

/// For the other crates of the SDK, without a promise of stability.
#[doc(hidden)]
pub mod internal {
    pub use crate::call::LazyCancelToken;
    pub use crate::context::{PluginLifetime, RequiredService, SessionListener};
    pub use crate::conversation_store::DynConversationStore;
    #[cfg(feature = "definition-pins")]
    pub use crate::definition_pins::{DefinitionDiff, DefinitionSnapshot};
    pub use crate::hook::{DecisionDetails, HookCallView, HookVerdict};
    pub use crate::memory_store::{
        DynMemoryStore, SearchTerms, check_note_id, fuse_rankings, make_snippet, new_note_id,
        rank_by_similarity,
    };
    pub use crate::name::matches_glob;
    pub use crate::permission::{
        ApprovalInternals, CallRewrite, HookObserver, PolicyOverride, RuleNames, frame_text,
        mixed_script_warning, parse_hunk_header, spell_hidden, unanswered_response, wrap_rows,
    };
    pub use crate::plan_store::DynPlanStore;
    pub use crate::redact::is_secret_key;
    pub use crate::rfc3339::rfc3339;
    pub use crate::schema::{
        describe_type, expected_value, is_followed_draft, is_meta_schema_ref, redirect_refs,
        with_encoded_refs, with_local_refs, without_remote_refs,
    };
    pub use crate::schema_files::{SchemaFileChange, SchemaFileState, compare_schema_files};
    pub use crate::session_store::DynSessionStore;
    pub use crate::sha256::{sha256_hex, to_hex};
    pub use crate::tool::args::{ArgChecks, parse_text};
    pub use crate::tool::{ExternalArgNames, check_strict, check_unambiguous, closest_name};
    pub use crate::toolset::{
        PrefixReservation, ReservedPrefix, any_forbids_tool, has_useless_pattern,
        nearly_names_argument, printable_name, tools_without_argument,
    };
    pub use crate::truncate::{RETENTION, is_sweep_due, sweep_outputs};

    /// Files that only their owner may read or write.
    pub mod private_file {
        pub use crate::private_file::location::{
            PrivateFolder, append_to, check_private_path, create_new, create_private_folder,
            metadata_if_exists, open_private, sync_folder,
        };
        pub use crate::private_file::version::FileVersion;
        pub use crate::private_file::{
            FileLock, LOCK_TIMEOUT, acquire_lock, acquire_shared_lock, lock_parent_folder,
            remove_unfinished, replace_file, set_aside,
        };
    }

    /// The walk over the subschemas of a schema.
    pub mod walk {
        pub use crate::schema::walk::{
            SubschemaKind, for_each_in_any_draft, for_each_in_any_draft_mut, for_each_subschema,
            for_each_subschema_mut, has_any_keyword, resolve_pointer, resolve_ref, subschema_kind,
        };
    }
}
