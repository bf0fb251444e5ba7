//! A provider of the settings: its API, over the guarded client.
//!
//! **Invariant:** the key is sent to the configured URL only; a redirect is not followed.

use tool_sdk::net::{GuardedClient, SearchProviderSetting, Url, WebSettings};
use tool_sdk::{Context, ToolError};

use super::provider_api::ProviderApi;
use super::{SearchHit, SearchProvider, SearchProviders, SearchQuery};
use crate::web::fetch_error::to_tool_error;

/// The most characters of an error response that are shown.
const MAX_SHOWN_CHARS: usize = 200;

/// Returns the providers of the settings.
pub(super) fn configured_providers(client: &GuardedClient) -> SearchProviders {
    let WebSettings { search, search_model, .. } = client.settings();
    search
        .iter()
        .filter_map(|setting| ApiProvider::new(setting, client, search_model))
        .fold(SearchProviders::default(), SearchProviders::with_provider)
}

struct ApiProvider {
    name: &'static str,
    api: ProviderApi,
    base: Url,
    key_name: Option<&'static str>,
    client: GuardedClient,
    model: String,
}

impl ApiProvider {
    fn new(setting: &SearchProviderSetting, client: &GuardedClient, model: &str) -> Option<Self> {
        let api = ProviderApi::from_name(setting.name())?;
        let mut base = match setting.url() {
            Some(url) => url.clone(),
            None => Url::parse(api.default_url()).ok()?,
        };
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let client = client.for_endpoint(&base);
        let (name, key_name) = (setting.name(), setting.key_name());
        Some(Self { name, api, base, key_name, client, model: model.to_owned() })
    }
}

impl SearchProvider for ApiProvider {
    fn name(&self) -> &str {
        self.name
    }

    async fn search(&self, query: &SearchQuery, cx: &Context) -> Result<Vec<SearchHit>, ToolError> {
        let key = match self.key_name {
            Some(name) => Some(cx.secret(name).await?),
            None => None,
        };
        let key = key.as_ref().map_or("", |key| key.expose());
        let request = self.api.to_request(&self.base, query, key, &self.model);
        let request = request.ok_or_else(|| ToolError::config("its URL is wrong"))?;
        let request = request.header("accept", "application/json");
        let response = self.client.send(request).await.map_err(to_tool_error)?;
        let body = String::from_utf8_lossy(response.body());
        if !response.is_success() {
            let start: String = body.chars().take(MAX_SHOWN_CHARS).collect();
            let message = format!("HTTP {}: {}", response.status(), start.trim());
            return Err(ToolError::unavailable(message));
        }
        let value = serde_json::from_str(&body).ok();
        value.and_then(|value| self.api.parse_hits(&value)).ok_or_else(|| {
            ToolError::unavailable("its answer is not one of this API; is the URL right?")
        })
    }
}
