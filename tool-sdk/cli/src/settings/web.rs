//! The settings of tools on the web.
//!
//! | option | variable | key | default |
//! |---|---|---|---|
//! | `--web-hosts` | `TOOL_SDK_WEB_HOSTS` | `web.hosts` | – |
//! | `--web-plain-http` | `TOOL_SDK_WEB_PLAIN_HTTP` | `web.plain_http` | off |
//! | `--web-max-bytes` | `TOOL_SDK_WEB_MAX_BYTES` | `web.max_bytes` | 5242880 |
//! | `--web-timeout` | `TOOL_SDK_WEB_TIMEOUT` | `web.timeout` | 30s |
//! | `--web-cache-time` | `TOOL_SDK_WEB_CACHE_TIME` | `web.cache_time` | 15m |
//! | `--web-robots` | `TOOL_SDK_WEB_ROBOTS` | `web.robots` | off |
//! | `--web-user-agent` | `TOOL_SDK_WEB_USER_AGENT` | `web.user_agent` | tool-sdk/VERSION |
//! | `--web-search` | `TOOL_SDK_WEB_SEARCH` | `web.search` | – |
//! | `--web-search-model` | `TOOL_SDK_WEB_SEARCH_MODEL` | `web.search_model` | openai/gpt-5-mini |
//! | `--web-github` | `TOOL_SDK_WEB_GITHUB` | `web.github` | off |
//!
//! **Invariant:** a host or a provider that cannot be parsed ends the command.

use std::fmt::Display;
use std::num::NonZeroUsize;
use std::str::FromStr;

use clap::{Arg, ArgAction, value_parser};
use serde::Deserialize;
use tool_sdk_net::{GithubSetting, HostPattern, SearchProviderSetting, WebSettings};

use super::TomlValue;
use super::limits::{WrittenDuration, WrittenSwitch, resolve_count};
use super::sources::SettingSources;
use crate::args;
use crate::exit::{CommandError, Result};

/// The table `[web]` of the configuration file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileWeb {
    #[serde(deserialize_with = "parse_items")]
    hosts: Option<Vec<HostPattern>>,
    plain_http: Option<bool>,
    max_bytes: Option<NonZeroUsize>,
    timeout: Option<WrittenDuration>,
    cache_time: Option<WrittenDuration>,
    robots: Option<bool>,
    user_agent: Option<String>,
    #[serde(deserialize_with = "parse_items")]
    search: Option<Vec<SearchProviderSetting>>,
    search_model: Option<String>,
    #[serde(deserialize_with = "parse_item")]
    github: Option<GithubSetting>,
}

fn parse_item<'de, D, T>(from: D) -> std::result::Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    String::deserialize(from)?.parse().map(Some).map_err(serde::de::Error::custom)
}

fn parse_items<'de, D, T>(from: D) -> std::result::Result<Option<Vec<T>>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    let items = Vec::<String>::deserialize(from)?;
    let parsed: std::result::Result<_, _> = items.iter().map(|item| item.parse()).collect();
    parsed.map(Some).map_err(serde::de::Error::custom)
}

pub(super) fn parse_web(web: TomlValue<'_, '_>) -> FileWeb {
    web.read_value().unwrap_or_default()
}

/// The options of this module: name, placeholder and help.
const OPTIONS: [(&str, &str, &str); 10] = [
    (
        "web-hosts",
        "HOST",
        "A host of a private network that tools may reach, such as localhost:8080 or *.corp.example; repeatable [env: TOOL_SDK_WEB_HOSTS]",
    ),
    (
        "web-plain-http",
        "on|off",
        "Whether http is used as it is, and not as https [env: TOOL_SDK_WEB_PLAIN_HTTP] [default: off]",
    ),
    (
        "web-max-bytes",
        "N",
        "How long an answer may be, decompressed [env: TOOL_SDK_WEB_MAX_BYTES] [default: 5242880]",
    ),
    (
        "web-timeout",
        "TIME",
        "How long a page with its redirects may take [env: TOOL_SDK_WEB_TIMEOUT] [default: 30s]",
    ),
    (
        "web-cache-time",
        "TIME",
        "How long an answer is used again without a request [env: TOOL_SDK_WEB_CACHE_TIME] [default: 15m]",
    ),
    (
        "web-robots",
        "on|off",
        "Whether pages that robots.txt excludes are left alone; targets of redirects are not checked [env: TOOL_SDK_WEB_ROBOTS] [default: off]",
    ),
    (
        "web-user-agent",
        "TEXT",
        "How requests name the program [env: TOOL_SDK_WEB_USER_AGENT] [default: tool-sdk/VERSION]",
    ),
    (
        "web-search",
        "PROVIDER",
        "A provider of web search: brave, exa, openrouter, tavily, or searxng=URL; repeatable [env: TOOL_SDK_WEB_SEARCH]",
    ),
    (
        "web-search-model",
        "M",
        "The model with which openrouter searches [env: TOOL_SDK_WEB_SEARCH_MODEL] [default: openai/gpt-5-mini]",
    ),
    (
        "web-github",
        "on|off|URL",
        "Whether the tools for GitHub are offered, and the URL of the API of another server [env: TOOL_SDK_WEB_GITHUB] [default: off]",
    ),
];

/// Returns the options of tools on the web.
pub(crate) fn web_options() -> impl Iterator<Item = Arg> {
    OPTIONS.into_iter().map(|(name, placeholder, help)| {
        let arg = args::value_arg(name, placeholder, help).help_heading("Web");
        match placeholder {
            "TIME" => arg.value_parser(value_parser!(WrittenDuration)),
            "N" => arg.value_parser(super::limits::parse_count),
            "on|off" => arg.value_parser(value_parser!(WrittenSwitch)),
            "on|off|URL" => arg.value_parser(value_parser!(GithubSetting)),
            "HOST" | "PROVIDER" => arg.action(ArgAction::Append),
            _ => arg,
        }
    })
}

/// Resolves the settings.
pub(super) fn resolve_web(file: &FileWeb, from: SettingSources<'_, '_>) -> Result<WebSettings> {
    let mut web = WebSettings::default();
    let time = |option, variable, file: Option<WrittenDuration>| -> Result<_> {
        let given = from.option_or_variable::<WrittenDuration>(option, variable)?;
        Ok(given.or(file).map(|time| time.0))
    };
    let switch = |option, variable, file: Option<bool>| -> Result<_> {
        let given = from.option_or_variable::<WrittenSwitch>(option, variable)?;
        Ok(given.map(|switch| switch == WrittenSwitch::On).or(file).unwrap_or_default())
    };
    let text = |option, variable, file: &Option<String>| -> Result<_> {
        Ok(from.option_or_variable::<String>(option, variable)?.or(file.clone()))
    };
    let hosts = resolve_items(from, "web-hosts", "TOOL_SDK_WEB_HOSTS")?.or(file.hosts.clone());
    web.urls.named_hosts = hosts.unwrap_or_default();
    web.urls.allows_plain_http =
        switch("web-plain-http", "TOOL_SDK_WEB_PLAIN_HTTP", file.plain_http)?;
    let bytes = resolve_count("web-max-bytes", "TOOL_SDK_WEB_MAX_BYTES", file.max_bytes, from)?;
    web.limits.body_bytes = bytes.unwrap_or(web.limits.body_bytes);
    let timeout = time("web-timeout", "TOOL_SDK_WEB_TIMEOUT", file.timeout)?;
    web.limits.total_timeout = timeout.unwrap_or(web.limits.total_timeout);
    let cache_time = time("web-cache-time", "TOOL_SDK_WEB_CACHE_TIME", file.cache_time)?;
    web.cache_time = cache_time.unwrap_or(web.cache_time);
    web.obeys_robots = switch("web-robots", "TOOL_SDK_WEB_ROBOTS", file.robots)?;
    let user_agent = text("web-user-agent", "TOOL_SDK_WEB_USER_AGENT", &file.user_agent)?;
    if let Some(name) = user_agent {
        if name.contains(|c: char| !c.is_ascii() || c.is_control()) {
            return Err(CommandError::config("`web.user_agent` must be printable ASCII"));
        }
        web.user_agent = name;
    }
    let search = resolve_items(from, "web-search", "TOOL_SDK_WEB_SEARCH")?.or(file.search.clone());
    web.search = search.unwrap_or_default();
    let model = text("web-search-model", "TOOL_SDK_WEB_SEARCH_MODEL", &file.search_model)?;
    web.search_model = model.unwrap_or(web.search_model);
    let github = from.option_or_variable::<GithubSetting>("web-github", "TOOL_SDK_WEB_GITHUB")?;
    web.github = github.or(file.github.clone()).unwrap_or_default();
    Ok(web)
}

/// Parses the values of a repeatable option, or else the items of a variable.
fn resolve_items<T: FromStr<Err: Display>>(
    from: SettingSources<'_, '_>,
    option: &str,
    variable: &str,
) -> Result<Option<Vec<T>>> {
    let wrong = |error| CommandError::config(format_args!("`--{option}` or {variable}: {error}"));
    let Some(items) = from.repeated(option, variable)? else { return Ok(None) };
    items.iter().map(|item| item.parse().map_err(wrong)).collect::<Result<_>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    // F147, F178, F192: every setting has an option, a variable and a key.
    #[test]
    fn every_setting_is_in_the_help_and_in_the_guide() {
        let guide = include_str!("../../../guide/command_line.md");
        for (name, _, help) in OPTIONS {
            assert!(guide.contains(&format!("`--{name} ")), "{name}");
            let key = name.replace('-', "_").replacen('_', ".", 1);
            assert!(guide.contains(&format!("`{key}`")), "{key}");
            let variable = help.split_once("[env: ").unwrap().1.split_once(']').unwrap().0;
            assert!(guide.contains(variable), "{variable}");
            assert!(args::RESERVED.contains(&name), "{name}");
        }
    }
}
