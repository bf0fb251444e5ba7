//! The guarded HTTP client: for tools that fetch addresses from a model.
//!
//! This crate is a part of [tool-sdk](https://docs.rs/tool-sdk), which re-exports it with the
//! feature `net`. Programs name `tool_sdk` only.
//!
//! A [`UrlPolicy`] judges a URL by its text. The client resolves its host once, connects only to
//! public addresses among the answers, and returns to the judgement at each redirect. Hosts in the
//! user's own network are reached only if the user names them.
//!
//! **Invariant:** no request leaves for an address that was not judged. Whether a tool may reach a
//! URL at all is decided by permission rules, outside of this crate.

#![forbid(unsafe_code)]

mod address;
#[cfg(feature = "client")]
mod body;
#[cfg(feature = "client")]
mod fetch_error;
#[cfg(feature = "client")]
mod github_setting;
#[cfg(feature = "client")]
mod guarded_client;
mod host_pattern;
#[cfg(feature = "client")]
mod resolver;
#[cfg(feature = "client")]
mod response_cache;
#[cfg(feature = "client")]
mod settings;
#[cfg(test)]
mod tests;
mod url_policy;
#[cfg(feature = "client")]
mod utc_date;

pub use url::Url;

pub use self::address::is_public_address;
#[cfg(feature = "client")]
pub use self::fetch_error::FetchError;
#[cfg(feature = "client")]
pub use self::github_setting::{GithubSetting, InvalidGithubSetting};
#[cfg(feature = "client")]
pub use self::guarded_client::{
    FetchOutcome, GuardedClient, RedirectDecision, RedirectHop, RedirectJudge, WebRequest,
    WebResponse,
};
pub use self::host_pattern::{HostPattern, InvalidHostPattern};
#[cfg(feature = "client")]
pub use self::resolver::{HostResolver, SystemResolver};
#[cfg(feature = "client")]
pub use self::settings::{
    InvalidSearchProvider, ResponseLimits, SearchProviderSetting, WebSettings,
};
pub use self::url_policy::{
    RefusedUrl, UrlPolicy, has_credentials, host_in_unicode, is_loopback_host, is_loopback_url,
};
#[cfg(feature = "client")]
pub use self::utc_date::utc_date;
