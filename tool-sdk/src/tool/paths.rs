//! The paths among the arguments of a call, for tools that do not say what they touch.

use std::any::Any;

use super::path::{WorkspacePath, decoding};
use super::{ParamSpec, Subject};
use crate::context::Context;

/// Every path that came with the arguments of a call, or stands in for one that did not.
#[derive(Debug, Default)]
pub(in crate::tool) struct Paths(Box<[WorkspacePath]>);

impl Paths {
    /// What `decode` gives, and the paths that it met.
    pub(in crate::tool) fn among<T>(decode: impl FnOnce() -> T) -> (T, Self) {
        let (decoded, paths) = decoding(decode);
        (decoded, Self(paths.into()))
    }

    /// Fills the places of absent paths that have a default: they are judged like those that
    /// were sent.
    pub(in crate::tool) fn with_defaults(
        self,
        params: &[ParamSpec],
        slots: &mut [&mut dyn Any],
    ) -> Self {
        let fill = |(param, slot): (&ParamSpec, &mut &mut dyn Any)| {
            let default = param.default?;
            let slot = slot.downcast_mut::<Option<WorkspacePath>>().filter(|it| it.is_none())?;
            *slot = default.value()?.as_str().map(WorkspacePath::from);
            slot.clone()
        };
        let defaults = params.iter().zip(slots).filter_map(fill);
        Self(self.0.into_iter().chain(defaults).collect())
    }

    /// Whether there is none.
    pub(in crate::tool) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a call touches whose tool does not say: the paths, where there are any.
    pub(in crate::tool) fn subjects(&self, cx: &Context, writes: bool) -> Option<Vec<Subject>> {
        let touched = self.0.iter().flat_map(|path| path.touched(cx, writes));
        (!self.0.is_empty()).then(|| touched.collect())
    }
}
