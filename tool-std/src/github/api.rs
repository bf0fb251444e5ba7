//! Requests to the API: URL, token, redirects within the API, pages.
//!
//! **Invariant:** every part of a path is one segment of the URL, so an argument cannot lead to another
//! endpoint. A redirect to another origin is an error, because the request carries the token.

use serde_json::Value;
use tool_sdk::net::{GuardedClient, Url, WebRequest, WebResponse};
use tool_sdk::{Context, ErrorKind, SecretValue, ToolError};

use super::api_error::to_api_error;
use crate::web::fetch_error::to_tool_error;

/// The variable with the token.
const TOKEN: &str = "GITHUB_TOKEN";

/// The version of the API.
const API_VERSION: &str = "2022-11-28";

/// The media type of most answers.
pub(super) const JSON: &str = "application/vnd.github+json";

/// The media type of files as they are.
pub(super) const RAW: &str = "application/vnd.github.raw+json";

/// The media type of search results with the places that match.
pub(super) const TEXT_MATCHES: &str = "application/vnd.github.text-match+json";

/// How many redirects of renamed repositories are followed.
const MAX_REDIRECTS: usize = 3;

/// Whether a tool works without a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenNeed {
    /// What is public is shown without one.
    Optional,
    Required,
}

/// The API, with the token of the user.
pub(super) struct GithubApi {
    client: GuardedClient,
    base: Url,
    token: Option<SecretValue>,
}

/// A list or an object, and whether more follows.
pub(super) struct ApiAnswer {
    pub(super) value: Value,
    pub(super) next_page: Option<u32>,
}

impl GithubApi {
    /// Opens the API of the settings.
    ///
    /// # Errors
    ///
    /// Fails with kind `config` when the settings name no API, or the needed token is not set.
    pub(super) async fn open(
        client: &GuardedClient,
        need: TokenNeed,
        cx: &Context,
    ) -> Result<Self, ToolError> {
        let Some(base) = client.settings().github.api_url() else {
            return Err(ToolError::config("the tools for GitHub are off")
                .hint("the user can turn them on with the setting `web.github`, such as `on`"));
        };
        let token = match (cx.secret(TOKEN).await, need) {
            (Ok(token), _) => Some(token),
            (Err(error), TokenNeed::Optional) if error.kind() == ErrorKind::Config => None,
            (Err(error), _) => return Err(error),
        };
        let client = match client.settings().github.is_own_server() {
            true => client.for_endpoint(&base),
            false => client.clone(),
        };
        Ok(Self { client, base, token })
    }

    /// Gets a list or an object.
    pub(super) async fn get(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        accept: &str,
    ) -> Result<ApiAnswer, ToolError> {
        let response = self.get_response(path, query, accept).await?;
        let next_page = response.header("link").and_then(next_page);
        Ok(ApiAnswer { value: parse_json(&response)?, next_page })
    }

    /// Gets an answer as it is.
    pub(super) async fn get_response(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        accept: &str,
    ) -> Result<WebResponse, ToolError> {
        let mut url = self.endpoint(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send(WebRequest::get(url.clone()), accept).await?;
            if !(300..400).contains(&response.status()) {
                return self.check_status(response);
            }
            url = self.redirect_target(&url, &response)?;
        }
        Err(ToolError::failed("GitHub redirects too often")
            .hint("check the name of the repository"))
    }

    /// Sends JSON, and returns the object that it made. It is sent once.
    pub(super) async fn post(&self, path: &[&str], body: &Value) -> Result<Value, ToolError> {
        let request = WebRequest::post_json(self.endpoint(path)?, body.to_string());
        let response = self.send(request, JSON).await?;
        if (300..400).contains(&response.status()) {
            let renamed = ToolError::not_found("the repository has another name now");
            return Err(renamed.hint("read an issue of it first, whose URL has the new name"));
        }
        parse_json(&self.check_status(response)?)
    }

    async fn send(&self, request: WebRequest, accept: &str) -> Result<WebResponse, ToolError> {
        let mut request =
            request.header("accept", accept).header("x-github-api-version", API_VERSION);
        if let Some(token) = &self.token {
            request = request.header("authorization", &format!("Bearer {}", token.expose()));
        }
        self.client.send(request).await.map_err(to_tool_error)
    }

    fn check_status(&self, response: WebResponse) -> Result<WebResponse, ToolError> {
        match response.is_success() {
            true => Ok(response),
            false => Err(to_api_error(&response, self.token.is_some())),
        }
    }

    /// Returns the URL of an endpoint, each part of whose path is one segment.
    fn endpoint(&self, path: &[&str]) -> Result<Url, ToolError> {
        if let Some(wrong) = path.iter().find(|part| matches!(**part, "" | "." | "..")) {
            return Err(ToolError::invalid_args(format_args!(
                "`{wrong}` is not a valid part of a path"
            )));
        }
        let mut url = self.base.clone();
        let is_right = match url.path_segments_mut() {
            Ok(mut segments) => {
                segments.pop_if_empty().extend(path);
                true
            }
            Err(()) => false,
        };
        match is_right {
            true => Ok(url),
            false => Err(ToolError::config("the URL of the API in `web.github` is wrong")),
        }
    }

    fn redirect_target(&self, from: &Url, response: &WebResponse) -> Result<Url, ToolError> {
        let location = response.header("location").unwrap_or_default();
        match from.join(location) {
            Ok(to) if to.origin() == self.base.origin() => Ok(to),
            _ => {
                Err(ToolError::failed("GitHub redirects to another server, which is not followed"))
            }
        }
    }
}

fn parse_json(response: &WebResponse) -> Result<Value, ToolError> {
    serde_json::from_slice(response.body()).map_err(|error| {
        ToolError::unavailable("the answer of GitHub is no JSON")
            .hint("the URL of the API in `web.github` may be wrong")
            .source(error)
    })
}

/// Returns the next page of a `Link` header (RFC 8288).
fn next_page(link: &str) -> Option<u32> {
    let next = link.split(',').find(|part| part.contains("rel=\"next\""))?;
    let (_, rest) = next.split_once('<')?;
    let url = Url::parse(rest.split('>').next()?).ok()?;
    url.query_pairs().find(|(name, _)| name == "page").and_then(|(_, page)| page.parse().ok())
}
