//! The check of a session before the first call: services that tools need and the host has not
//! provided.

use std::fmt;

use super::Pipeline;
use crate::context::Session;
use crate::name::ToolName;

/// A service that tools need and a session does not have.
///
/// `Display` says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingService {
    /// The type of the service: the `T` of `State<T>`.
    pub type_name: &'static str,
    /// The tools that need it, by name.
    pub tools: Vec<ToolName>,
}

impl fmt::Display for MissingService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<String> = self.tools.iter().map(|name| format!("`{name}`")).collect();
        write!(
            f,
            "no service `{}`, which {} need{}; add it with `Session::with_service`, in a program \
             with a command line by `App::with_session`",
            self.type_name,
            tools.join(", "),
            if tools.len() == 1 { "s" } else { "" },
        )
    }
}

/// Checks before the first call.
impl Pipeline {
    /// Returns the services that the tools of `session` need and the host has not provided. A call
    /// of one of these tools ends with an error of kind `config`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Pipeline, Registry, Session, State, tool, tools};
    ///
    /// struct Database;
    ///
    /// /// Count the rows.
    /// #[tool(read)]
    /// fn count_rows(_database: State<Database>) -> &'static str {
    ///     "7"
    /// }
    ///
    /// let pipeline = Pipeline::new(Registry::builder().add(tools![count_rows]).build()?);
    /// let missing = pipeline.check_setup(&Session::new("s1"));
    /// assert_eq!(missing[0].tools[0], "count_rows");
    ///
    /// let session = Session::new("s2").with_service(Database);
    /// assert!(pipeline.check_setup(&session).is_empty());
    /// # Ok::<(), tool_sdk::RegistryError>(())
    /// ```
    #[must_use]
    pub fn check_setup(&self, session: &Session) -> Vec<MissingService> {
        let mut missing: Vec<MissingService> = Vec::new();
        for tool in self.toolset().view_for(session).tools() {
            for service in tool.required_services() {
                if (service.is_provided)(session) {
                    continue;
                }
                let type_name = (service.type_name)();
                let name = tool.definition().name.clone();
                match missing.iter_mut().find(|known| known.type_name == type_name) {
                    Some(known) if known.tools.contains(&name) => {}
                    Some(known) => known.tools.push(name),
                    None => missing.push(MissingService { type_name, tools: vec![name] }),
                }
            }
        }
        missing
    }
}
