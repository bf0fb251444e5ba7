//! Tools for the web: `web_fetch` and `web_search`.
//!
//! The host provides a [`GuardedClient`](tool_sdk::net::GuardedClient) as a service of the session.
//!
//! **Invariant:** what comes from the web is data: it is framed as untrusted, with the URL that it
//! came from.

mod charset;
pub(crate) mod fetch_error;
mod fetch_tool;
mod github_pages;
mod html;
mod page;
mod pdf;
mod redirects;
mod robots;
mod search;
#[cfg(test)]
pub(crate) mod test_server;
mod url_resource;

pub use self::fetch_tool::web_fetch;
pub use self::search::{
    SearchHit, SearchProvider, SearchProviders, SearchQuery, SearchRecency, web_search,
};
