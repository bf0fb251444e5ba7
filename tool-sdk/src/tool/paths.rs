//! The paths among the arguments of a call, for tools that do not say what they touch.

use std::any::Any;

use super::path::{WorkspacePath, decoding};
use super::{ArgsSpec, ParamSpec, Subject, Table};
use crate::context::Context;
#[cfg(feature = "hooks")]
use crate::context::Session;
use crate::effect::RiskClass;
#[cfg(feature = "hooks")]
use crate::workspace::Workspace;

/// The paths that `decode` comes by, as they were sent and as absolute ones.
#[cfg(feature = "hooks")]
pub(super) fn absolute(decode: impl FnOnce(), session: &Session) -> Vec<(String, String)> {
    let Some(workspace) = session.lent().get::<Workspace>() else { return Vec::new() };
    let ((), paths) = decoding(decode);
    let absolute = |path: &WorkspacePath| {
        let absolute = path.absolute(&workspace)?;
        Some((path.as_str().to_owned(), absolute.to_string_lossy().into_owned()))
    };
    paths.iter().filter_map(absolute).collect()
}

/// Every path that came with the arguments of a call, or stands in for one that did not.
#[derive(Debug, Default)]
pub(in crate::tool) struct Paths {
    paths: Box<[WorkspacePath]>,
    /// Whether the tool does nothing but read.
    are_read: bool,
}

impl Paths {
    /// What `decode` gives, and the paths that it met.
    pub(in crate::tool) fn among<T>(decode: impl FnOnce() -> T) -> (T, Self) {
        let (decoded, paths) = decoding(decode);
        (decoded, Self { paths: paths.into(), are_read: false })
    }

    /// The same of a tool with this table.
    pub(in crate::tool) fn of(self, table: &Table) -> Self {
        Self { are_read: table.spec().risk.class == RiskClass::Read, ..self }
    }

    /// Fills the places of absent paths that have a default: they are judged like those that
    /// were sent.
    pub(in crate::tool) fn with_defaults(self, table: &Table, slots: &mut [&mut dyn Any]) -> Self {
        let ArgsSpec::Params(params) = table.spec().args else { return self };
        let fill = |(param, slot): (&ParamSpec, &mut &mut dyn Any)| {
            let default = param.default?;
            let slot = slot.downcast_mut::<Option<WorkspacePath>>().filter(|it| it.is_none())?;
            *slot = default.value()?.as_str().map(WorkspacePath::from);
            slot.clone()
        };
        let mut defaults = params.iter().zip(slots).filter_map(fill).peekable();
        if defaults.peek().is_none() {
            return self;
        }
        Self { paths: self.paths.into_iter().chain(defaults).collect(), ..self }
    }

    /// Whether there is none.
    pub(in crate::tool) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// What a call touches whose tool does not say: the paths, where there are any.
    pub(in crate::tool) fn subjects(&self, cx: &Context) -> Option<Vec<Subject>> {
        let touched = self.paths.iter().flat_map(|path| path.touched(cx, !self.are_read));
        (!self.is_empty()).then(|| touched.collect())
    }
}
