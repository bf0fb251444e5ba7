//! The sandbox that a model requests for an MCP server.
//!
//! **Invariant:** a request narrows the policy of the host and never widens it.

use std::str::FromStr;

use tool_sdk::ToolError;
use tool_sdk::process::sandbox::{InvalidSandboxName, SandboxLevel, SandboxMode, SandboxPolicy};

/// The sandbox arguments of a call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SandboxRequest<'a> {
    pub(super) mode: Option<&'a str>,
    pub(super) level: Option<&'a str>,
    pub(super) network: Option<bool>,
}

impl SandboxRequest<'_> {
    /// Returns the name of the first argument that is set.
    pub(super) fn first_argument(&self) -> Option<&'static str> {
        let said = [
            ("sandbox", self.mode.is_some()),
            ("sandbox_level", self.level.is_some()),
            ("sandbox_network", self.network.is_some()),
        ];
        said.into_iter().find(|(_, is_said)| *is_said).map(|(name, _)| name)
    }

    /// Returns the host's policy narrowed by the request.
    pub(super) fn narrow_policy(&self, host: &SandboxPolicy) -> Result<SandboxPolicy, ToolError> {
        let mode = parse_optional::<SandboxMode>(self.mode)?;
        let level = parse_optional::<SandboxLevel>(self.level)?;
        if host.is_off() {
            return match (mode, self.first_argument()) {
                (Some(mode), _) => {
                    let policy = host.clone().with_mode(mode).with_level(level.unwrap_or_default());
                    Ok(policy.with_network(self.network.unwrap_or(false)))
                }
                (None, None) => Ok(host.clone()),
                (None, Some(name)) => Err(ToolError::invalid_args(format_args!(
                    "`{name}` has no effect without `sandbox`"
                ))),
            };
        }
        let wider = |name: &str, host: &str| {
            Err(ToolError::invalid_args(format_args!("`{name}` would be wider than the host's"))
                .hint(format_args!("leave it out; the host says {host}")))
        };
        let is_wider = |mode| match host.mode() {
            SandboxMode::Required => mode != SandboxMode::Required,
            _ => mode == SandboxMode::Off,
        };
        if mode.is_some_and(is_wider) {
            return wider("sandbox", &format!("`{}`", host.mode()));
        }
        let is_wider = |level| match host.level() {
            SandboxLevel::Full => false,
            SandboxLevel::WorkspaceWrite => level == SandboxLevel::Full,
            host => level != host,
        };
        if level.is_some_and(is_wider) {
            return wider("sandbox_level", &format!("`{}`", host.level()));
        }
        if !host.has_network() && self.network == Some(true) {
            return wider("sandbox_network", "that no networks are reached");
        }
        Ok(host
            .clone()
            .with_mode(mode.unwrap_or(host.mode()))
            .with_level(level.unwrap_or(host.level()))
            .with_network(self.network.unwrap_or(host.has_network())))
    }
}

/// Parses an optional sandbox mode or level.
fn parse_optional<T>(text: Option<&str>) -> Result<Option<T>, ToolError>
where
    T: FromStr<Err = InvalidSandboxName>,
{
    text.map(str::parse)
        .transpose()
        .map_err(|error: InvalidSandboxName| ToolError::invalid_args(error))
}

/// Describes the policy for the approval prompt, with how far the kernel enforces it.
pub(super) fn describe_policy(policy: &SandboxPolicy) -> String {
    if policy.is_off() {
        return SandboxMode::Off.to_string();
    }
    let network = if policy.has_network() { ", with networks" } else { "" };
    format!("{}, {}{network}: {}", policy.mode(), policy.level(), policy.status())
}

/// Fails when a required sandbox cannot be enforced, so that no approval is requested for a server
/// that would not start.
pub(super) fn check_enforceable(policy: &SandboxPolicy) -> Result<(), ToolError> {
    if policy.is_off() || policy.is_met_by(&policy.status()) {
        return Ok(());
    }
    let held = policy.status();
    Err(ToolError::unavailable(format_args!("the sandbox cannot hold what is required: {held}"))
        .hint("with `required` the server is not started without a sandbox"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a policy of at most three words.
    fn parse_policy(text: &str) -> SandboxPolicy {
        let mut words = text.split(' ');
        let mode = words.next().unwrap().parse().unwrap();
        let level = words.next().map(|level| level.parse().unwrap()).unwrap_or_default();
        SandboxPolicy::new(mode, level).with_network(words.next() == Some("net"))
    }

    fn parse_request(text: &str) -> SandboxRequest<'_> {
        let mut wish = SandboxRequest::default();
        for word in text.split(' ') {
            match word {
                "off" | "best_effort" | "required" => wish.mode = Some(word),
                "read_only" | "workspace_write" | "full" => wish.level = Some(word),
                "net" => wish.network = Some(true),
                "no_net" => wish.network = Some(false),
                _ => {}
            }
        }
        wish
    }

    #[test]
    fn narrows_the_policy_of_the_host() {
        for (set, wished, expected) in [
            ("off", "", "off"),
            ("off", "best_effort", "best_effort workspace_write"),
            ("off", "required read_only", "required read_only"),
            ("off", "required workspace_write net", "required workspace_write net"),
            ("required full", "best_effort", "best_effort workspace_write"),
            ("required full", "", "required full"),
            ("best_effort workspace_write net", "", "best_effort workspace_write net"),
            ("best_effort workspace_write net", "required", "required workspace_write net"),
            ("best_effort workspace_write net", "no_net", "best_effort workspace_write"),
            ("best_effort workspace_write", "read_only", "best_effort read_only"),
            ("required read_only", "required read_only no_net", "required read_only"),
        ] {
            let granted = parse_request(wished).narrow_policy(&parse_policy(set)).unwrap();
            assert_eq!(granted, parse_policy(expected), "{set}: {wished}");
        }
    }

    #[test]
    fn rejects_a_wider_sandbox() {
        for (set, wished, words) in [
            ("off", "read_only", "`sandbox_level` has no effect without `sandbox`"),
            ("off", "net", "`sandbox_network` has no effect without `sandbox`"),
            ("required workspace_write", "best_effort", "`sandbox` would be wider"),
            ("best_effort workspace_write", "off", "`sandbox` would be wider"),
            ("required workspace_write", "off", "`sandbox` would be wider"),
            ("required workspace_write", "full", "`sandbox_level` would be wider"),
            ("best_effort read_only", "workspace_write", "`sandbox_level` would be wider"),
            ("best_effort workspace_write", "net", "`sandbox_network` would be wider"),
        ] {
            let error = parse_request(wished).narrow_policy(&parse_policy(set)).unwrap_err();
            assert!(error.to_string().contains(words), "{set}: {wished}: {error}");
        }
    }
}
