//! The paths among the arguments of a call, for tools that do not name their resources.

use std::any::{Any, TypeId};

use super::path::{WorkspacePath, collect_decoded_paths};
use super::{ArgsSpec, ParamSpec, Resource, Table};
use crate::context::Context;
#[cfg(feature = "hooks")]
use crate::context::Session;
use crate::risk::RiskClass;
#[cfg(feature = "hooks")]
use crate::workspace::Workspace;

/// Returns the paths that `decode` decodes, as sent and as absolute paths.
#[cfg(feature = "hooks")]
pub(super) fn absolute_paths(decode: impl FnOnce(), session: &Session) -> Vec<(String, String)> {
    let Some(workspace) = session.services().get::<Workspace>() else { return Vec::new() };
    let ((), paths) = collect_decoded_paths(decode);
    let absolute = |path: &WorkspacePath| {
        let absolute = path.to_absolute(&workspace)?;
        Some((path.as_str().to_owned(), absolute.to_string_lossy().into_owned()))
    };
    paths.iter().filter_map(absolute).collect()
}

/// Whether an argument of this type holds paths; `false` for types that are not known here.
pub(super) fn type_holds_paths(argument: TypeId) -> bool {
    fn is_one_of<T: 'static>(argument: TypeId) -> bool {
        argument == TypeId::of::<T>() || argument == TypeId::of::<Option<T>>()
    }
    is_one_of::<WorkspacePath>(argument) || is_one_of::<Vec<WorkspacePath>>(argument)
}

/// The paths among the arguments of a call, including the defaults of absent arguments.
#[derive(Debug, Default)]
pub(crate) struct ArgPaths {
    paths: Box<[WorkspacePath]>,
    /// Whether the tool only reads.
    is_read_only: bool,
}

impl ArgPaths {
    /// Whether the values of these slots may hold paths. Only the common types listed here
    /// certainly hold none; the contents of any other type are unknown.
    #[inline]
    pub(crate) fn may_hold_paths(slots: &[&mut dyn Any]) -> bool {
        fn is_one_of<T: 'static>(slot: TypeId) -> bool {
            slot == TypeId::of::<Option<T>>() || slot == TypeId::of::<Option<Option<T>>>()
        }
        let is_bare = |slot: &&mut dyn Any| {
            let slot = (**slot).type_id();
            is_one_of::<String>(slot)
                || is_one_of::<bool>(slot)
                || is_one_of::<u32>(slot)
                || is_one_of::<i64>(slot)
                || is_one_of::<u64>(slot)
                || is_one_of::<usize>(slot)
                || is_one_of::<f64>(slot)
        };
        !slots.iter().all(is_bare)
    }

    /// Runs `decode`; returns its result and the paths that it decoded.
    pub(crate) fn collect<T>(decode: impl FnOnce() -> T) -> (T, Self) {
        let (decoded, paths) = collect_decoded_paths(decode);
        (decoded, Self { paths: paths.into(), is_read_only: false })
    }

    /// Sets whether the tool with this table only reads.
    pub(crate) fn for_table(self, table: &Table) -> Self {
        Self { is_read_only: table.spec().risk.class == RiskClass::Read, ..self }
    }

    /// Fills the slots of absent paths that have a default, so that the defaults are authorized
    /// like paths that were sent.
    pub(crate) fn fill_defaults(self, table: &Table, slots: &mut [&mut dyn Any]) -> Self {
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

    /// Whether there are no paths.
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Returns the resources of a call whose tool does not name them: its paths, if there are
    /// any.
    pub(crate) fn resources(&self, cx: &Context) -> Option<Vec<Resource>> {
        let touched =
            self.paths.iter().flat_map(|path| path.default_resources(cx, !self.is_read_only));
        (!self.is_empty()).then(|| touched.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_of_what_is_known_is_said_that_it_holds_no_path() {
        let mut bare: [&mut dyn Any; 3] =
            [&mut Some(String::new()), &mut None::<i64>, &mut None::<Option<u32>>];
        assert!(!ArgPaths::may_hold_paths(&bare));
        assert!(!ArgPaths::may_hold_paths(&[]));
        let (mut one, mut some, mut other) =
            (None::<WorkspacePath>, None::<Option<WorkspacePath>>, None::<Vec<String>>);
        for slot in [&mut one as &mut dyn Any, &mut some, &mut other] {
            bare[1] = slot;
            assert!(ArgPaths::may_hold_paths(&bare));
        }
    }
}
