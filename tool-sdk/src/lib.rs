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
//! # Guide
//!
//! The [`guide`] starts each chapter with a task and the shortest program that does it:
//! [tools](guide::tools), [errors](guide::errors), [tests](guide::testing), [a whole crate](guide::vault),
//! [permissions and approvals](guide::guards), [hooks](guide::hooks),
//! [command line](guide::command_line), [MCP servers](guide::serving),
//! [tools of other MCP servers](guide::foreign_servers), [agents](guide::agent),
//! [plans, questions and secrets](guide::collaboration), [plugins](guide::plugins), [sandbox](guide::sandbox),
//! [REST and approvals](guide::http), [state](guide::state). [`macro@tool`] lists every item of the attribute.
//!
//! # Items
//!
//! The central types are documented at the root; the others are in modules by topic. All of them
//! can be named from the root too, as in `use tool_sdk::Rule;`.
//!
//! 1. tools: [`macro@tool`], [`macro@toolset`], [`Args`], [`State`], [`Output`], [`Json`],
//!    [`ToolError`]; [`definition`] and [`arguments`] have the details;
//! 2. environment: [`Session`] and [`Context`], what a running tool can see and do, and
//!    [`environment`];
//! 3. [`Registry`], all tools of a program; [`Toolset`], the tools of one session; [`audience`];
//! 4. [`Pipeline`], the one way to run a tool, [`Batch`] for several calls at once, and
//!    [`limits`];
//! 5. what guards a call: [`permission`] and [`hook`]; what comes and goes: [`plugin`];
//! 6. what reports it: [`event`] and [`audit`];
//! 7. surfaces: [`provider`] formats, [`agent`], [`mcp`], [`http`], [`cli`]; [`remote`] workers;
//! 8. state: [`history`], [`memory`], [`plan`], and [`store`], which keeps them on SQLite;
//! 9. building blocks: [`net`], [`process`] and [`workspace`]; [`testing`].
//!
//! # Features
//!
//! `macros` and `linked` are enabled by default. Each other feature adds one part and its
//! dependencies: `acp` that agent in editors, `agent` model clients and the agent loop, `anyhow` its error as that of a tool, `cli` a command line, `external-schemas` rare keywords of JSON Schema, `frontmatter` that of Markdown files, `hooks`
//! commands as hooks, `http` a server with REST and OpenAPI, `mcp` a server and a client of the Model Context Protocol, `mcp-stdio` the
//! same without a server over HTTP, `net` the guarded HTTP client, `otel` fields
//! for OpenTelemetry on spans, `process` child processes, `remote` tools on other machines, `sandbox` their confinement, `store` state on SQLite, `testing`
//! a harness and checks for tests, and `workspace` the folders that tools may access.

#![forbid(unsafe_code)]

// F29: the code in the documentation compiles and runs.
/// The guide: each chapter starts with a task.
///
/// * [Write a tool](guide::tools), [return errors](guide::errors), [test tools](guide::testing),
///   [publish a crate of tools](guide::vault)
/// * [Decide which calls may run](guide::guards), [add hooks](guide::hooks),
///   [confine commands](guide::sandbox), [load plugins](guide::plugins)
/// * [Write an agent](guide::agent), [plan, ask the user, and use secrets](guide::collaboration),
///   [add a command line](guide::command_line)
/// * [Serve your tools over MCP](guide::serving), [over HTTP](guide::http),
///   [use the tools of MCP servers](guide::foreign_servers), [run tools on other machines](guide::remote)
/// * [Keep state](guide::state)
#[cfg(any(doc, doctest))]
pub mod guide {
    #[cfg_attr(not(doctest), doc = include_str!("../guide/rustdoc_links.txt"))]
    #[doc = include_str!("../guide/agent.md")]
    pub mod agent {}
    #[cfg_attr(not(doctest), doc = include_str!("../guide/rustdoc_links.txt"))]
    #[doc = include_str!("../guide/collaboration.md")]
    pub mod collaboration {}
    #[cfg_attr(not(doctest), doc = include_str!("../guide/rustdoc_links.txt"))]
    #[doc = include_str!("../guide/command_line.md")]
    pub mod command_line {}
    #[cfg_attr(not(doctest), doc = include_str!("../guide/rustdoc_links.txt"))]
    #[doc = include_str!("../guide/errors.md")]
    pub mod errors {}
    #[cfg(any(feature = "mcp", not(doctest)))]
    #[cfg_attr(not(doctest), doc = include_str!("../guide/rustdoc_links.txt"))]
    #[doc = include_str!("../guide/foreign_servers.md")]
    pub mod foreign_servers {}
    #[cfg_attr(not(doctest), doc = include_str!("../guide/rustdoc_links.txt"))]
    #[doc = include_str!("../guide/guards.md")]
    pub mod guards {}
    #[cfg(any(feature = "hooks", not(doctest)))]
    #[cfg_attr(not(doctest), doc = include_str!("../guide/rustdoc_links.txt"))]
    #[doc = include_str!("../guide/hooks.md")]
    pub mod hooks {}
    #[cfg(any(feature = "http", not(doctest)))]
    #[cfg_attr(not(doctest), doc = include_str!("../guide/rustdoc_links.txt"))]
    #[doc = include_str!("../guide/http.md")]
    pub mod http {}
    #[cfg_attr(not(doctest), doc = include_str!("../guide/rustdoc_links.txt"))]
    #[doc = include_str!("../guide/plugins.md")]
    pub mod plugins {}
    #[cfg(any(feature = "remote", not(doctest)))]
    #[cfg_attr(not(doctest), doc = include_str!("../guide/rustdoc_links.txt"))]
    #[doc = include_str!("../guide/remote.md")]
    pub mod remote {}
    #[cfg(any(all(feature = "process", unix), not(doctest)))]
    #[cfg_attr(not(doctest), doc = include_str!("../guide/rustdoc_links.txt"))]
    #[doc = include_str!("../guide/sandbox.md")]
    pub mod sandbox {}
    #[cfg(any(feature = "mcp", not(doctest)))]
    #[cfg_attr(not(doctest), doc = include_str!("../guide/rustdoc_links.txt"))]
    #[doc = include_str!("../guide/serving.md")]
    pub mod serving {}
    #[cfg(any(feature = "store", not(doctest)))]
    #[cfg_attr(not(doctest), doc = include_str!("../guide/rustdoc_links.txt"))]
    #[doc = include_str!("../guide/state.md")]
    pub mod state {}
    #[cfg_attr(not(doctest), doc = include_str!("../guide/rustdoc_links.txt"))]
    #[doc = include_str!("../guide/testing.md")]
    pub mod testing {}
    #[cfg_attr(not(doctest), doc = include_str!("../guide/rustdoc_links.txt"))]
    #[doc = include_str!("../guide/tools.md")]
    pub mod tools {}
    #[cfg(any(all(feature = "cli", feature = "workspace"), not(doctest)))]
    #[cfg_attr(not(doctest), doc = include_str!("../guide/rustdoc_links.txt"))]
    #[doc = include_str!("../guide/vault.md")]
    pub mod vault {}
}

/// Texts outside of this crate's documentation, as doctests.
#[cfg(doctest)]
mod texts {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../../tool-macros/docs/tool.md")]
    mod tool {}
    #[doc = include_str!("../../tool-macros/docs/toolset.md")]
    mod toolset {}
    #[doc = include_str!("../../README.md")]
    mod top_readme {}
}

#[doc(no_inline)]
pub use tool_sdk_core::CancellationToken;
#[doc(inline)]
pub use tool_sdk_core::provider;
#[cfg(feature = "testing")]
#[doc(inline)]
pub use tool_sdk_core::testing;
#[doc(hidden)]
pub use tool_sdk_core::{__private, __submit};
#[doc(inline)]
pub use tool_sdk_core::{
    Args, Attachment, AttachmentData, Batch, Call, Context, Definition, ErrorKind, IntoOutput,
    Json, Outcome, Output, Pipeline, Principal, Registry, RegistryBuilder, Session, State, Tool,
    ToolError, Toolset, TypedOutput,
};
#[cfg(feature = "frontmatter")]
#[doc(inline)]
pub use tool_sdk_core::{Frontmatter, InvalidFrontmatter};
pub use tool_sdk_core::{link, tools};
#[cfg(feature = "macros")]
pub use tool_sdk_macros::{tool, toolset};

/// What a tool is: its definition, risk, schema and how it prepares a call.
pub mod definition {
    #[expect(deprecated, reason = "re-exported so that its users see the deprecation note")]
    #[doc(inline)]
    pub use tool_sdk_core::LegacyTool;
    #[cfg(feature = "linked")]
    #[doc(inline)]
    pub use tool_sdk_core::Registration;
    #[doc(inline)]
    pub use tool_sdk_core::{
        CallFacts, CompletionFuture, DynamicTool, ExecutionPermit, FailureRecord, Flags, Icon,
        IntoTools, InvalidToolName, OutputFuture, Parallel, PreparedCall, Refinement,
        RegistryConflict, RegistryError, Resource, Risk, RiskClass, Schema, SchemaError,
        SourceLocation, TaskSupport, ToolDisplay, ToolFn, ToolLabel, ToolMethods, ToolName,
        ToolSource, ToolsFile, ToolsFileError, Truncate,
    };
}

/// The arguments of a call, and what is accepted beyond the contract of a tool.
pub mod arguments {
    #[cfg(feature = "workspace")]
    #[doc(inline)]
    pub use tool_sdk_core::WorkspacePath;
    #[doc(inline)]
    pub use tool_sdk_core::{
        ArgumentNote, CallId, Coercion, Fault, FaultKind, InvalidArgs, Leniency, Param, RawArgs,
    };
}

/// What a running tool gets from its session and from the client.
pub mod environment {
    #[doc(inline)]
    pub use tool_sdk_core::{
        AccessDecision, ClientKind, CloseCallback, ConversationMessage, DeniedFiles,
        ElicitationOutcome, FromContext, FromContextRef, Inquiry, InquiryFuture, InquiryHandler,
        InquiryKind, Interrupted, MissingService, PermissionFuture, ProgramFolders,
        RequestedAccess, ScriptedAnswers, SessionIds, Signal, Sink, ToolFacts, ToolSettings,
        Visibility, VisibilityFilter, WorkStop,
    };
}

/// Which tools a session sees: by agent, model and variant.
pub mod audience {
    #[doc(inline)]
    pub use tool_sdk_core::{
        AgentProfile, ModelProfile, ToolAudience, ToolsetView, UnknownVariant, VariantGroup,
    };
}

/// Limits of calls: the size of outputs, repeated calls, and secrets.
pub mod limits {
    #[doc(inline)]
    pub use tool_sdk_core::{
        Budget, FittedText, InvalidBudget, LoopGuard, LoopGuardSettings, Redactor, Truncation,
        outputs_folder, prepare_outputs,
    };
}

/// Whether a call may run: rules, modes, approvals and grants.
pub mod permission {
    #[doc(inline)]
    pub use tool_sdk_core::{
        Action, ApprovalId, ApprovalPrompt, ApprovalReceiver, ApprovalRequest, ApprovalResponse,
        ApprovalResponseError, ApprovalSender, Approver, CheckOutcome, Decision, DecisionSource,
        Fingerprint, Grant, GrantScope, GrantSource, GrantStore, Grantee, InvalidMode, InvalidRule,
        Mode, Pattern, PendingRequest, PrivateFileError, Rule, RuleConfig, RuleScope, RulesConfig,
        Ruleset, ScriptedApprover, StoredGrant, StoredGrants, TrustedFolder, TrustedFolders,
        approval_channel,
    };
}

/// Code that runs before and after each call.
pub mod hook {
    #[doc(inline)]
    pub use tool_sdk_core::{Hook, HookContext, HookDecision, HookPriority, HookRun, OnError};
    #[cfg(feature = "hooks")]
    #[doc(inline)]
    pub use tool_sdk_hooks::{ExternalHooks, HookConfigError};
}

/// Tools, hooks and rules that come and go while a program runs.
pub mod plugin {
    #[doc(inline)]
    pub use tool_sdk_core::{
        Plugin, PluginError, PluginHost, PluginManager, PluginPart, PluginRegistrar, PluginScope,
    };
}

/// What subscribers see of calls while they run.
pub mod event {
    #[doc(inline)]
    pub use tool_sdk_core::{
        Artifact, CallEvents, CallFailure, CallUpdate, EventKind, EventSeverity, MaskedArguments,
        Subscription, ToolEvent,
    };
}

/// A record of every decision and run.
pub mod audit {
    #[doc(inline)]
    pub use tool_sdk_core::{
        ArgumentEdit, AuditAnswer, AuditEvent, AuditLog, AuditRecord, AuditSink,
    };
}

/// The history of calls, the conversations of agents, and where both are kept.
pub mod history {
    #[doc(inline)]
    pub use tool_sdk_core::{
        CallRecord, CallStatus, ConversationQuery, ConversationRecord, ConversationStore,
        ConversationSummary, EventRecord, MemoryConversationStore, MemorySessionStore,
        SessionRecorder, SessionStore, SessionSummary,
    };
}

/// Memory: notes that outlive a session, and where they are kept.
pub mod memory {
    #[doc(inline)]
    pub use tool_sdk_core::{
        Embedder, Embedding, InProcessMemoryStore, MemoryCategory, MemoryHandle, MemoryNote,
        MemoryOwner, MemoryScope, MemoryStore, NoteChanges, NoteDraft, NoteMatch, NotePage,
        NoteQuery, NoteWrite,
    };
}

/// The plans and todo lists of sessions, and where they are kept.
pub mod plan {
    #[doc(inline)]
    pub use tool_sdk_core::{
        MemoryPlanStore, PlanChange, PlanDraft, PlanStep, PlanStore, PlanStoreHandle, SessionPlan,
        TodoItem, TodoPriority, TodoStatus,
    };
}

/// A record of what changed the world outside of a session.
pub mod ledger {
    #[doc(inline)]
    pub use tool_sdk_core::{
        Ledger, LedgerEntry, LedgerLimits, MutationLoop, MutationPhase, MutationTransaction,
        RollbackHook, TimelineEntry,
    };
}

/// Secrets that tools read and that are shown nowhere.
pub mod secrets {
    #[doc(inline)]
    pub use tool_sdk_core::{
        EnvironmentSecrets, SecretFile, SecretSource, SecretStore, SecretValue, StoredSecret,
    };
}

/// Confined access to files below the folders that a session may use.
#[cfg(feature = "workspace")]
pub mod workspace {
    #[doc(inline)]
    pub use tool_sdk_workspace::{
        DirEntry, Durability, FileKind, FileLocks, FileMetadata, FileTransaction, FolderEntry,
        OpenFolder, ResolvedPath, Snapshot, Workspace, WorkspaceError, WorkspaceErrorKind,
        escape_for_display,
    };
}

// The short paths of the items that the modules document.
#[cfg(feature = "workspace")]
#[doc(hidden)]
pub use self::workspace::*;
#[doc(hidden)]
pub use self::{
    arguments::*, audience::*, audit::*, definition::*, environment::*, event::*, history::*,
    hook::*, ledger::*, limits::*, memory::*, permission::*, plan::*, plugin::*, secrets::*,
};

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
        AccessTokenIssuer, HttpListener, HttpOptions, InvalidIssuer, InvalidToken, Token,
        TokenIdentity, TokenScope, TokenScopes, TokenVerifier, UnixSocket, UnknownScope, router,
        serve_http,
    };
    #[doc(inline)]
    pub use tool_sdk_mcp::*;
}
/// One HTTP server for the tools of a pipeline: REST, OpenAPI, live events, approvals, metrics, and
/// the Model Context Protocol.
///
/// [`serve`](http::serve) listens; [`router`](http::router) returns the routes, for hosts with a
/// server of their own.
#[cfg(feature = "http")]
pub mod http {
    #[doc(inline)]
    pub use tool_sdk_http::rest::{
        ChatGptProfile, ClientProfile, OpenApiContent, RestOptions, openapi_document, router, serve,
    };
    #[doc(inline)]
    pub use tool_sdk_http::{
        AccessTokenIssuer, ConsoleAccess, HttpListener, HttpOptions, InvalidIssuer, InvalidToken,
        Token, TokenIdentity, TokenScope, TokenScopes, TokenVerifier, UnixSocket, UnknownScope,
    };
}
/// Agents: model clients, and the loop from a message to calls and back.
#[cfg(feature = "agent")]
pub mod agent {
    #[doc(inline)]
    pub use tool_sdk_agent::*;
}
#[cfg(feature = "net")]
#[doc(inline)]
pub use tool_sdk_net as net;
#[cfg(feature = "process")]
#[doc(inline)]
pub use tool_sdk_process as process;
#[cfg(feature = "remote")]
#[doc(inline)]
pub use tool_sdk_remote as remote;
#[cfg(feature = "store")]
#[doc(inline)]
pub use tool_sdk_store as store;
