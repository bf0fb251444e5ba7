//! A call of a tool that there is not: it has an end like any other, and close names.

use super::Pipeline;
use super::frame::Frame;
use super::trace::Traced;
use crate::call::{Call, Outcome, RawArgs};
use crate::context::Session;
use crate::error::ToolError;
use crate::name::ToolName;
use crate::schema::Schema;
use crate::tool::{Definition, InvalidArgs, Prepared, Tool};
use crate::toolset::Policy;

/// Stands where there is no tool; it takes no arguments at all.
struct Nothing(Definition);

impl Tool for Nothing {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn prepare(&self, _: &RawArgs<'_>) -> Result<Box<dyn Prepared>, InvalidArgs> {
        Err(InvalidArgs::new(self.0.name.as_str().to_owned(), "there is no such tool"))
    }
}

/// What is told of a tool that there is not: a name that none can have does not go into an event
/// either.
pub(super) fn told(name: &str) -> ToolName {
    ToolName::new(name.to_owned()).unwrap_or(const { ToolName::from_static("_") })
}

impl Pipeline {
    /// Ends a call of a tool that there is not, which was only just found out.
    #[cold]
    pub(super) fn unresolved<T: Traced>(
        &self,
        session: &Session,
        call: &Call<'_>,
        resolving: T,
    ) -> Outcome {
        let mut result = Some(Err(self.unknown(session, &call.name)));
        drop(resolving);
        let nothing = Nothing(Definition::new(told(&call.name), "", Schema::default()));
        let policy = Policy::of_nothing();
        let view = self.core.toolset.view_for(session);
        let id = call.known_as();
        Frame::new(&self.core, session, call, &id, &nothing, &policy, &view).end::<T>(&mut result)
    }

    #[cold]
    pub(super) fn unknown(&self, session: &Session, name: &str) -> ToolError {
        let view = self.core.toolset.view_for(session);
        view.unknown(name, || {
            let names: Vec<&str> =
                view.definitions().take(20).map(|definition| definition.name.as_str()).collect();
            match names.as_slice() {
                [] => "there are no tools here".to_owned(),
                names => format!("the tools are: {}", names.join(", ")),
            }
        })
    }
}
