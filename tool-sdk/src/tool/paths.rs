//! The paths among the arguments of a call, for tools that do not say what they touch.

use std::any::{Any, TypeId};

use super::path::{WorkspacePath, collect_decoded_paths};
use super::{ArgsSpec, ParamSpec, Resource, Table};
use crate::context::Context;
#[cfg(feature = "hooks")]
use crate::context::Session;
use crate::risk::RiskClass;
#[cfg(feature = "hooks")]
use crate::workspace::Workspace;

/// The paths that `decode` comes by, as they were sent and as absolute ones.
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

/// Whether an argument of this type holds paths, as far as that is known of a type.
pub(super) fn type_holds_paths(argument: TypeId) -> bool {
    fn is_one_of<T: 'static>(argument: TypeId) -> bool {
        argument == TypeId::of::<T>() || argument == TypeId::of::<Option<T>>()
    }
    is_one_of::<WorkspacePath>(argument) || is_one_of::<Vec<WorkspacePath>>(argument)
}

/// Every path that came with the arguments of a call, or stands in for one that did not.
#[derive(Debug, Default)]
pub(in crate::tool) struct ArgPaths {
    paths: Box<[WorkspacePath]>,
    /// Whether the tool does nothing but read.
    is_read_only: bool,
}

impl ArgPaths {
    /// Whether what these slots are filled with may hold paths: nobody can tell that of a type
    /// that he does not know, and most parameters are of one that everybody knows.
    #[inline]
    pub(in crate::tool) fn may_hold_paths(slots: &[&mut dyn Any]) -> bool {
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

    /// What `decode` gives, and the paths that it met.
    pub(in crate::tool) fn collect<T>(decode: impl FnOnce() -> T) -> (T, Self) {
        let (decoded, paths) = collect_decoded_paths(decode);
        (decoded, Self { paths: paths.into(), is_read_only: false })
    }

    /// The same of a tool with this table.
    pub(in crate::tool) fn for_table(self, table: &Table) -> Self {
        Self { is_read_only: table.spec().risk.class == RiskClass::Read, ..self }
    }

    /// Fills the places of absent paths that have a default: they are judged like those that
    /// were sent.
    pub(in crate::tool) fn fill_defaults(self, table: &Table, slots: &mut [&mut dyn Any]) -> Self {
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
    pub(in crate::tool) fn resources(&self, cx: &Context) -> Option<Vec<Resource>> {
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
