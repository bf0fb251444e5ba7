//! OAuth 2.1 for servers over HTTP, as the protocol's authorization chapters describe it.
//!
//! ```text
//! 401, 403 ─▶ challenge ─▶ discovery (metadata) ─▶ registration ─▶ flow ─▶ AuthorizationPrompt
//!                                                                   │      loopback
//! request ◀── token_source ◀── store: credentials.json ◀── token ◀──┘
//! ```
//!
//! Only [`ServerManager::authorize`](super::ServerManager::authorize) starts a flow, and only the host
//! calls it. A call that needs authorization fails and says what the user has to run.
//!
//! **Invariant:** a token goes to the one server for which it was issued, and to the authorization
//! server that issued it; no error, log line or `Debug` output contains one.

mod challenge;
mod discovery;
mod error;
mod flow;
mod issuer_keys;
mod loopback;
mod manager_authorization;
mod metadata;
mod prompt;
mod registration;
mod settings;
mod store;
mod token;
mod token_source;

pub use self::error::AuthorizationError;
pub use self::issuer_keys::fetch_issuer_keys;
pub(super) use self::manager_authorization::ManagerAuthorization;
pub use self::prompt::{AuthorizationPrompt, AuthorizationRequest, PromptFailure};
pub use self::settings::OAuthSettings;
pub use self::store::CredentialStore;
pub(super) use self::token_source::TokenSource;
pub use self::token_source::{AuthorizationStatus, LogoutOutcome};
