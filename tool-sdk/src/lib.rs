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
//! commands as hooks, `mcp` a server and a client of the Model Context Protocol, `mcp-stdio` the
//! same without a server over HTTP, `otel` fields
//! for OpenTelemetry on spans, `process` child processes, `sandbox` their confinement, `testing`
//! a harness and checks for tests, and `workspace` the folders that tools may access.

#![forbid(unsafe_code)]

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

#[doc(inline)]
pub use tool_sdk_core::Batch;
#[doc(no_inline)]
pub use tool_sdk_core::CancellationToken;
#[doc(inline)]
#[expect(deprecated, reason = "re-exported so that its users see the deprecation note")]
pub use tool_sdk_core::LegacyTool;
#[doc(inline)]
pub use tool_sdk_core::LoopGuard;
#[doc(inline)]
pub use tool_sdk_core::Principal;
#[doc(inline)]
pub use tool_sdk_core::PrivateFileError;
#[doc(inline)]
pub use tool_sdk_core::Redactor;
#[cfg(feature = "linked")]
#[doc(inline)]
pub use tool_sdk_core::Registration;
#[cfg(feature = "workspace")]
#[doc(inline)]
pub use tool_sdk_core::WorkspacePath;
#[doc(inline)]
pub use tool_sdk_core::provider;
#[cfg(feature = "testing")]
#[doc(inline)]
pub use tool_sdk_core::testing;
#[doc(hidden)]
pub use tool_sdk_core::{__private, __submit};
#[doc(inline)]
pub use tool_sdk_core::{
    Action, ApprovalId, ApprovalPrompt, ApprovalReceiver, ApprovalRequest, ApprovalResponse,
    ApprovalResponseError, ApprovalSender, Approver, Decision, DecisionSource, Fingerprint, Grant,
    GrantScope, GrantSource, GrantStore, Grantee, InvalidMode, InvalidRule, Mode, Pattern,
    PendingRequest, Rule, RuleConfig, RuleScope, RulesConfig, Ruleset, ScriptedApprover,
    StoredGrant, StoredGrants, approval_channel,
};
#[doc(inline)]
pub use tool_sdk_core::{
    AgentProfile, ModelProfile, Toolset, ToolsetView, UnknownVariant, VariantGroup,
};
#[doc(inline)]
pub use tool_sdk_core::{
    Args, Definition, DynamicTool, ExecutionPermit, Fault, FaultKind, Flags, Icon, IntoOutput,
    IntoTools, InvalidArgs, Json, OutputFuture, Parallel, Param, PreparedCall, Refinement,
    Resource, SourceLocation, Tool, ToolDisplay, ToolFn, ToolLabel, ToolMethods, ToolSource,
    Truncate,
};
#[doc(inline)]
pub use tool_sdk_core::{
    ArgumentNote, Call, CallId, Coercion, Leniency, Outcome, RawArgs, Truncation,
};
#[doc(inline)]
pub use tool_sdk_core::{
    Artifact, CallFailure, EventKind, EventSeverity, MaskedArguments, Subscription, ToolEvent,
};
#[doc(inline)]
pub use tool_sdk_core::{Attachment, AttachmentData, Output};
#[doc(inline)]
pub use tool_sdk_core::{AuditAnswer, AuditEvent, AuditLog, AuditRecord, AuditSink};
#[doc(inline)]
pub use tool_sdk_core::{Budget, FittedText, InvalidBudget, outputs_folder, prepare_outputs};
#[doc(inline)]
pub use tool_sdk_core::{CheckOutcome, Pipeline};
#[doc(inline)]
pub use tool_sdk_core::{
    ClientKind, Context, ConversationMessage, ElicitationOutcome, FromContext, FromContextRef,
    Inquiry, InquiryFuture, InquiryHandler, InquiryKind, Interrupted, PermissionFuture, Session,
    Signal, Sink, State, ToolFacts, ToolSettings, Visibility, VisibilityFilter, WorkStop,
};
#[doc(inline)]
pub use tool_sdk_core::{ErrorKind, ToolError};
#[doc(inline)]
pub use tool_sdk_core::{Hook, HookContext, HookDecision, HookPriority, HookRun, OnError};
#[doc(inline)]
pub use tool_sdk_core::{InvalidToolName, ToolName};
#[doc(inline)]
pub use tool_sdk_core::{
    Registry, RegistryBuilder, RegistryConflict, RegistryError, ToolsFile, ToolsFileError,
};
#[doc(inline)]
pub use tool_sdk_core::{Risk, RiskClass};
#[doc(inline)]
pub use tool_sdk_core::{Schema, SchemaError};
pub use tool_sdk_core::{link, tools};

#[cfg(feature = "cli")]
#[doc(inline)]
pub use tool_sdk_cli as cli;
/// The Model Context Protocol: a [`Server`](mcp::Server) for the tools of a pipeline, and a client
/// for those of other servers.
///
/// Over standard input and output with the feature `mcp-stdio`; over HTTP as well, on axum, with
/// `mcp`.
#[cfg(feature = "mcp-stdio")]
pub mod mcp {
    #[doc(inline)]
    pub use tool_sdk_core::Principal;
    #[cfg(feature = "mcp")]
    #[doc(inline)]
    pub use tool_sdk_http::{
        HttpListener, HttpOptions, InvalidToken, Token, UnixSocket, router, serve_http,
    };
    #[doc(inline)]
    pub use tool_sdk_mcp::*;
}
#[cfg(feature = "hooks")]
#[doc(inline)]
pub use tool_sdk_hooks::{ExternalHooks, HookConfigError};
#[cfg(feature = "macros")]
pub use tool_sdk_macros::{tool, toolset};
#[cfg(feature = "process")]
#[doc(inline)]
pub use tool_sdk_process as process;
#[cfg(feature = "workspace")]
#[doc(inline)]
pub use tool_sdk_workspace::{
    DirEntry, Durability, FileKind, FileLocks, FileMetadata, FileTransaction, FolderEntry,
    OpenFolder, ResolvedPath, Snapshot, Workspace, WorkspaceError, WorkspaceErrorKind,
    escape_for_display,
};
