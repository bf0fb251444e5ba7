//! Tools that were added at run time, and who has them.
//!
//! **Invariant:** two tools of one name never meet in a view: an addition is refused when its
//! audience may overlap with that of a tool that has one of its names.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ToolsetView;
use crate::context::{Session, SessionHandle};
use crate::tool::Tool;

/// Who has a tool that was added at run time.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Registry, Session, ToolAudience, Toolset, tool, tools};
///
/// /// Look into the drawer.
/// #[tool(read)]
/// fn drawer() -> String {
///     "pencils".to_owned()
/// }
///
/// let toolset = Toolset::new(Registry::default());
/// toolset.add_for(ToolAudience::agent("writer"), tools![drawer])?;
///
/// let writer = Session::new("s1").with_agent("writer");
/// assert!(toolset.view_for(&writer).get("drawer").is_some());
/// assert!(toolset.view_for(&Session::new("s2")).get("drawer").is_none());
/// # Ok::<(), tool_sdk::RegistryError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolAudience(AudienceKind);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum AudienceKind {
    #[default]
    Everyone,
    Agent(Arc<str>),
    Session(SessionHandle),
}

impl ToolAudience {
    /// Every session of the toolset.
    #[must_use]
    pub fn everyone() -> Self {
        Self::default()
    }

    /// The sessions of one agent.
    #[must_use]
    pub fn agent(name: &str) -> Self {
        Self(AudienceKind::Agent(name.into()))
    }

    /// One session and its clones. The tools are dropped some time after the session has ended.
    #[must_use]
    pub fn session(session: &Session) -> Self {
        Self(AudienceKind::Session(session.handle()))
    }

    /// Whether the tools are limited to some sessions.
    fn is_limited(&self) -> bool {
        self.0 != AudienceKind::Everyone
    }

    /// Whether the session has the tools.
    fn includes(&self, session: &Session) -> bool {
        match &self.0 {
            AudienceKind::Everyone => true,
            AudienceKind::Agent(name) => session.agent() == Some(name),
            AudienceKind::Session(handle) => handle.is_of(session),
        }
    }

    /// Whether a session of both audiences may exist.
    fn may_overlap(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (AudienceKind::Agent(one), AudienceKind::Agent(other)) => one == other,
            (AudienceKind::Session(one), AudienceKind::Session(other)) => one == other,
            _ => true,
        }
    }

    /// Whether a session may still have the tools.
    fn is_alive(&self) -> bool {
        match &self.0 {
            AudienceKind::Session(handle) => handle.is_alive(),
            _ => true,
        }
    }
}

/// A tool that was added at run time.
#[derive(Clone)]
pub(super) struct ToolAddition {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) audience: ToolAudience,
}

impl ToolAddition {
    /// Returns the tools among `all` that the session has.
    pub(super) fn tools_of<'a>(
        all: &'a [Self],
        session: &'a Session,
    ) -> impl Iterator<Item = &'a Arc<dyn Tool>> + Clone {
        all.iter().filter(|added| added.audience.includes(session)).map(|added| &added.tool)
    }

    /// Returns the tools among `all` that a session of `audience` may have, in groups of which a
    /// session has at most one whole: those for everyone, and those for one audience.
    pub(super) fn groups_beside(all: &[Self], audience: &ToolAudience) -> Vec<Vec<Arc<dyn Tool>>> {
        let everyone = ToolAudience::everyone();
        let mut audiences = vec![&everyone];
        for added in all.iter().filter(|added| added.audience.may_overlap(audience)) {
            if !audiences.contains(&&added.audience) {
                audiences.push(&added.audience);
            }
        }
        let is_in =
            |added: &Self, of: &ToolAudience| added.audience == *of || added.audience == everyone;
        let group = |of: &ToolAudience| {
            let tools = all.iter().filter(|added| is_in(added, of));
            tools.map(|added| Arc::clone(&added.tool)).collect()
        };
        audiences.into_iter().map(group).collect()
    }

    /// Whether the session has tools that not every session has.
    pub(super) fn is_limited_to(all: &[Self], session: &Session) -> bool {
        all.iter().any(|added| added.audience.is_limited() && added.audience.includes(session))
    }

    /// Whether this is the tool, and not every session has it.
    pub(super) fn is_limited_tool(&self, tool: &Arc<dyn Tool>) -> bool {
        self.audience.is_limited() && Arc::ptr_eq(&self.tool, tool)
    }

    /// Drops the tools of sessions that have ended.
    pub(super) fn drop_ended(all: &mut Vec<Self>) {
        all.retain(|added| added.audience.is_alive());
    }
}

/// The views of sessions that have tools or a model of their own, until the toolset changes.
#[derive(Clone, Default)]
pub(super) struct SessionViews(Arc<Mutex<Vec<SessionView>>>);

struct SessionView {
    session: SessionHandle,
    /// The model to which the view is adapted: clones of a session may have different ones.
    model: Option<String>,
    /// The agent whose tools it has, for the same reason.
    agent: Option<String>,
    view: Arc<ToolsetView>,
}

impl SessionView {
    fn is_of(&self, session: &Session) -> bool {
        self.session.is_of(session)
            && self.model.as_deref() == session.model()
            && self.agent.as_deref() == session.agent()
    }
}

impl SessionViews {
    /// Returns the view of a session; makes it on first use.
    pub(super) fn get_or_make(
        &self,
        session: &Session,
        make: impl FnOnce() -> Arc<ToolsetView>,
    ) -> Arc<ToolsetView> {
        if let Some(known) = self.lock().iter().find(|known| known.is_of(session)) {
            return Arc::clone(&known.view);
        }
        // Without the lock: a hook that edits definitions may ask for a view.
        let view = make();
        let made = SessionView {
            session: session.handle(),
            model: session.model().map(str::to_owned),
            agent: session.agent().map(str::to_owned),
            view: Arc::clone(&view),
        };
        let mut views = self.lock();
        views.retain(|known| known.session.is_alive());
        views.push(made);
        view
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SessionView>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
