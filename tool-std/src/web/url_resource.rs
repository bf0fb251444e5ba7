//! A URL as a resource that rules and people know: by its text, and by its host.
//!
//! **Invariant:** the URL that is judged is the URL that is requested.

use tool_sdk::net::{GuardedClient, Url};
use tool_sdk::{Context, FromContext as _, RequestedAccess, Resource, RiskClass, State, ToolError};

use super::fetch_error::to_tool_error;
use super::github_pages;

/// What a call requests, and the hosts whose rules are about it.
pub(super) struct FetchTarget {
    pub(super) url: Url,
    /// The host of the URL as it was given, if a raw file replaces it.
    given_host: Option<String>,
}

impl FetchTarget {
    /// Parses and judges the URL of a call. A page of GitHub that shows a file becomes the file.
    pub(super) fn parse(text: &str, client: &GuardedClient) -> Result<Self, ToolError> {
        let given = client.parse_url(text).map_err(to_tool_error)?;
        Ok(match github_pages::raw_file_url(&given) {
            Some(url) => Self { url, given_host: given.host_str().map(str::to_owned) },
            None => Self { url: given, given_host: None },
        })
    }

    fn to_resource(&self) -> Resource {
        let mut names = host_names(&self.url);
        names.extend(self.given_host.as_deref().map(domain_name));
        let resource =
            Resource::new(self.url.as_str()).with_class(RiskClass::Read).asks_by_default();
        names.into_iter().fold(resource, Resource::with_name)
    }
}

/// Returns the resources of a call with this URL.
pub(super) fn fetch_resources(url: &str, cx: &Context) -> Vec<Resource> {
    let target = State::<GuardedClient>::from_context(cx)
        .and_then(|client| FetchTarget::parse(url, &client));
    match target {
        Ok(target) => vec![target.to_resource()],
        Err(error) => vec![Resource::new(url).with_refusal(&error)],
    }
}

/// Returns the names that an approval of more than one call can be about: the host that is requested.
pub(super) fn suggested_names(url: &str) -> Vec<String> {
    let Ok(url) = Url::parse(url.trim()) else { return Vec::new() };
    let url = github_pages::raw_file_url(&url).unwrap_or(url);
    host_names(&url).into_iter().take(1).collect()
}

/// Returns the request for the target of a redirect.
pub(super) fn redirect_access(to: &Url) -> RequestedAccess {
    let access = RequestedAccess::new(to.as_str()).read_only();
    host_names(to).into_iter().fold(access, RequestedAccess::with_name)
}

/// Returns `domain:HOST`, also with the letters of an international name.
fn host_names(url: &Url) -> Vec<String> {
    let Some(host) = url.host_str() else { return Vec::new() };
    let letters = tool_sdk::net::host_in_unicode(host);
    let mut names = vec![domain_name(host)];
    if letters != host {
        names.push(domain_name(&letters));
    }
    names
}

fn domain_name(host: &str) -> String {
    format!("domain:{host}")
}
