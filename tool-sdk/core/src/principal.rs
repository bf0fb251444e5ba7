//! Principals: who a token belongs to and what they may do.

use std::fmt;

use crate::context::Session;

/// A principal: a person or program with a token of its own.
///
/// Calls are made on its behalf: with its permissions, as its agent, and with approvals that hold
/// for no other principal.
///
/// # Examples
///
/// ```
/// use tool_sdk::Principal;
///
/// let ada = Principal::new("ada").with_permission("notes:write");
/// assert_eq!(ada.name(), "ada");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    name: String,
    agent: Option<String>,
    permissions: Vec<String>,
}

impl Principal {
    /// Returns a principal without permissions.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), agent: None, permissions: Vec::new() }
    }

    /// Grants a permission, such as `notes:write`.
    #[must_use]
    pub fn with_permission(mut self, permission: impl Into<String>) -> Self {
        self.permissions.push(permission.into());
        self
    }

    /// Sets the agent whose tools the principal gets.
    #[must_use]
    pub fn with_agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the session for the principal's calls.
    #[doc(hidden)]
    #[must_use]
    pub fn apply_to(&self, session: Session) -> Session {
        let mut session = session.with_user(self.name.clone());
        if let Some(agent) = &self.agent {
            session = session.with_agent(agent.clone());
        }
        let permissions = self.permissions.iter().cloned();
        permissions.fold(session, Session::with_permission)
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
