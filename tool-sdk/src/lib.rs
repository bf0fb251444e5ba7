//! Tools for language models: annotate an async function with `#[tool]`, and the macro generates
//! the JSON schema and its enforcement, display metadata, risk, and link-time registration. One
//! pipeline runs the tools on every surface.
//!
//! ```
//! use tool_sdk::{Call, Pipeline, Registry, Session, tool};
//!
//! /// Count the words of a text.
//! #[tool(read, display(summary = "Counting words"))]
//! async fn count_words(
//!     /// The text to look at.
//!     text: String,
//!     /// Words shorter than this do not count.
//!     #[arg(default = 1, range = 1..=50)]
//!     min_length: usize,
//! ) -> String {
//!     text.split_whitespace().filter(|word| word.len() >= min_length).count().to_string()
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let pipeline = Pipeline::new(Registry::linked()?);
//! let session = Session::new("docs");
//!
//! let outcome = pipeline.call(&session, Call::new("count_words", r#"{"text": "to be"}"#)).await;
//! assert_eq!(outcome.text(), "2");
//!
//! let outcome = pipeline.call(&session, Call::new("count_words", r#"{"txt": 1}"#)).await;
//! assert!(outcome.text().contains("unknown argument `txt`; did you mean `text`?"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Reading order
//!
//! The modules are in layers, and a module uses only those before it:
//!
//! 1. vocabulary: [`ToolName`], [`Output`], [`Risk`], [`ToolError`], [`Schema`], [`Call`];
//! 2. environment: [`Session`] and [`Context`], what a running tool can see and do;
//! 3. tools: [`Tool`] and [`Definition`]; [`Registry`] holds all tools of a program;
//! 4. guards, each of which answers one question about a call: [`Ruleset`], [`Approver`],
//!    [`Hook`], [`LoopGuard`], [`Budget`];
//! 5. audience: [`Toolset`] selects the tools for a session; [`Subscription`] and [`AuditLog`]
//!    report what happens;
//! 6. [`Pipeline`], the one way to run a tool, and [`Batch`] for several calls at once;
//! 7. surfaces: [`provider`] formats, the Model Context Protocol, the command line.
//!
//! # Features
//!
//! `macros` and `linked` are enabled by default. Each other feature adds one part and its
//! dependencies: `cli` a command line, `external-schemas` rare keywords of JSON Schema, `hooks`
//! commands as hooks, `mcp` a server and a client of the Model Context Protocol, `otel` fields
//! for OpenTelemetry on spans, `process` child processes, `sandbox` their confinement, `testing`
//! a harness and checks for tests, and `workspace` the folders that tools may access.

extern crate self as tool_sdk;

mod audit;
mod batch;
mod call;
mod content;
mod context;
mod error;
mod event;
mod hook;
mod loop_guard;
mod name;
mod permission;
mod pipeline;
mod redact;
mod registry;
mod risk;
mod scheduler;
mod schema;

mod private_file;
mod surface;
#[cfg(feature = "testing")]
pub mod testing;
mod tool;
mod toolset;
mod truncate;

#[doc(hidden)]
pub mod __private;
mod macros;

// F29: the code in the documentation compiles and runs.
/// The chapters of the guide and the READMEs, as doctests.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../guide/agent.md")]
    mod agent {}
    #[doc = include_str!("../guide/command_line.md")]
    mod command_line {}
    #[doc = include_str!("../guide/errors.md")]
    mod errors {}
    #[cfg(feature = "mcp")]
    #[doc = include_str!("../guide/foreign_servers.md")]
    mod foreign_servers {}
    #[doc = include_str!("../guide/guards.md")]
    mod guards {}
    #[cfg(feature = "hooks")]
    #[doc = include_str!("../guide/hooks.md")]
    mod hooks {}
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[cfg(all(feature = "process", unix))]
    #[doc = include_str!("../guide/sandbox.md")]
    mod sandbox {}
    #[cfg(feature = "mcp")]
    #[doc = include_str!("../guide/serving.md")]
    mod serving {}
    #[doc = include_str!("../guide/testing.md")]
    mod testing {}
    #[doc = include_str!("../guide/tools.md")]
    mod tools {}
    #[doc = include_str!("../../README.md")]
    mod top_readme {}
}

pub use self::audit::{AuditAnswer, AuditEvent, AuditLog, AuditRecord, AuditSink};
pub use self::batch::Batch;
pub use self::call::{
    ArgumentNote, Call, CallId, Coercion, Leniency, Outcome, RawArgs, Truncation,
};
pub use self::content::{Attachment, AttachmentData, Output};
pub use self::context::{
    ClientKind, Context, ConversationMessage, ElicitationOutcome, FromContext, FromContextRef,
    Inquiry, InquiryFuture, InquiryHandler, InquiryKind, Interrupted, PermissionFuture, Session,
    Signal, Sink, State, ToolFacts, ToolSettings, Visibility, VisibilityFilter, WorkStop,
};
pub use self::error::{ErrorKind, ToolError};
pub use self::event::{
    Artifact, CallFailure, EventKind, EventSeverity, MaskedArguments, Subscription, ToolEvent,
};
#[cfg(feature = "hooks")]
pub use self::hook::external::{ExternalHooks, HookConfigError};
pub use self::hook::{Hook, HookContext, HookDecision, HookPriority, HookRun, OnError};
pub use self::loop_guard::LoopGuard;
pub use self::name::{InvalidToolName, ToolName};
pub use self::permission::{
    Action, ApprovalId, ApprovalPrompt, ApprovalReceiver, ApprovalRequest, ApprovalResponse,
    ApprovalResponseError, ApprovalSender, Approver, Decision, DecisionSource, Fingerprint, Grant,
    GrantScope, GrantSource, GrantStore, Grantee, InvalidMode, InvalidRule, Mode, Pattern,
    PendingRequest, Rule, RuleConfig, RuleScope, RulesConfig, Ruleset, ScriptedApprover,
    StoredGrant, StoredGrants, approval_channel,
};
pub use self::pipeline::{CheckOutcome, Pipeline};
pub use self::private_file::PrivateFileError;
pub use self::redact::Redactor;
#[cfg(feature = "linked")]
pub use self::registry::Registration;
pub use self::registry::{
    Registry, RegistryBuilder, RegistryConflict, RegistryError, ToolsFile, ToolsFileError,
};
pub use self::risk::{Risk, RiskClass};
pub use self::schema::{Schema, SchemaError};
#[cfg(feature = "cli")]
pub use self::surface::cli;
#[cfg(feature = "mcp")]
pub use self::surface::mcp;
pub use self::surface::provider;
#[expect(deprecated, reason = "re-exported so that its users see the deprecation note")]
pub use self::tool::LegacyTool;
#[cfg(feature = "workspace")]
pub use self::tool::WorkspacePath;
pub use self::tool::{
    Args, Definition, DynamicTool, ExecutionPermit, Fault, FaultKind, Flags, Icon, IntoOutput,
    IntoTools, InvalidArgs, Json, OutputFuture, Parallel, Param, PreparedCall, Refinement,
    Resource, SourceLocation, Tool, ToolDisplay, ToolFn, ToolLabel, ToolMethods, ToolSource,
    Truncate,
};
pub use self::toolset::{
    AgentProfile, ModelProfile, Toolset, ToolsetView, UnknownVariant, VariantGroup,
};
pub use self::truncate::{Budget, FittedText, InvalidBudget, outputs_folder, prepare_outputs};
pub use tokio_util::sync::CancellationToken;
#[cfg(feature = "macros")]
pub use tool_sdk_macros::{tool, toolset};
#[cfg(feature = "process")]
#[doc(inline)]
pub use tool_sdk_process as process;
#[cfg(feature = "workspace")]
#[doc(inline)]
pub use tool_sdk_workspace::{
    DirEntry, Durability, FileKind, FileLocks, FileMetadata, FileTransaction, FolderEntry,
    OpenFolder, PageCacheReader, ResolvedPath, Snapshot, StagedWrite, StagedWrites, Workspace,
    WorkspaceError, WorkspaceErrorKind, escape_for_display,
};
