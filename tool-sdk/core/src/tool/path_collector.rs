//! Collects the paths among the arguments of a call, for tools that do not name their resources.
//!
//! A [`WorkspacePath`] may be anywhere in a value of an arbitrary type, and no function from
//! outside finds it there. So every path that is made while [`PathCollector::collect`] runs is
//! recorded in a thread-local list: one that is decoded, and one that is the default of a field.
//! It has to be a thread-local: below `flatten`, in an untagged or
//! internally tagged enum, serde buffers the value and decodes the buffer with a deserializer of
//! its own, which carries no state of ours.
//!
//! **Invariant:** a path that was made is judged, whether or not the value keeps it. A decoder
//! that tries several variants may record a path twice or one that it dropped; that is stricter,
//! and never looser.

use std::any::{Any, TypeId};
use std::cell::RefCell;

#[cfg(feature = "workspace")]
use super::ArgsSpec;
#[cfg(feature = "workspace")]
use super::path::WorkspacePath;
use super::{Resource, Table};
use crate::context::Context;
use crate::context::Session;
use crate::risk::RiskClass;

/// The stand-in for builds without workspace: no argument is a path.
#[cfg(not(feature = "workspace"))]
#[derive(Clone, Debug)]
enum WorkspacePath {}

thread_local! {
    /// The paths that were made on this thread while a collector is active.
    static COLLECTED: RefCell<Option<Vec<WorkspacePath>>> = const { RefCell::new(None) };
}

/// Collects every path that a decoder makes.
pub(super) struct PathCollector {
    /// What an outer collector had collected before this one became active.
    outer: Option<Vec<WorkspacePath>>,
}

impl PathCollector {
    /// Runs `decode`; returns its result and every path that it made. A collector around this
    /// one gets these paths, too.
    fn collect<T>(decode: impl FnOnce() -> T) -> (T, Vec<WorkspacePath>) {
        let mut collector = Self { outer: COLLECTED.replace(Some(Vec::new())) };
        let value = decode();
        let paths = COLLECTED.take().unwrap_or_default();
        if let Some(outer) = &mut collector.outer {
            outer.extend(paths.iter().cloned());
        }
        (value, paths)
    }

    /// Records a path, if a collector is active.
    #[cfg(feature = "workspace")]
    pub(super) fn record(path: &WorkspacePath) {
        COLLECTED.with_borrow_mut(|paths| {
            if let Some(paths) = paths {
                paths.push(path.clone());
            }
        });
    }
}

/// Restores the outer collector, also when a decoder panics.
impl Drop for PathCollector {
    fn drop(&mut self) {
        COLLECTED.set(self.outer.take());
    }
}

/// The paths among the arguments of a call, including the defaults of absent arguments.
#[derive(Debug, Default)]
pub(crate) struct ArgPaths {
    paths: Vec<WorkspacePath>,
    /// Whether the tool only reads.
    is_read_only: bool,
}

impl ArgPaths {
    /// Decodes the arguments of a call of the tool with this table; returns the result and the
    /// paths among them.
    pub(crate) fn collect<T>(table: &Table, decode: impl FnOnce() -> T) -> (T, Self) {
        let (decoded, paths) = PathCollector::collect(decode);
        (decoded, Self { paths, is_read_only: table.spec().risk.class == RiskClass::Read })
    }

    /// Returns the resources of a call whose tool does not name them: its paths, if there are
    /// any.
    pub(crate) fn resources(&self, cx: &Context) -> Option<Vec<Resource>> {
        let resources =
            self.paths.iter().flat_map(|path| path.default_resources(cx, !self.is_read_only));
        (!self.paths.is_empty()).then(|| resources.collect())
    }
}

/// Fills the slots of absent paths that have a default, so that the defaults are authorized like
/// paths that were sent.
#[cfg(feature = "workspace")]
pub(super) fn fill_path_defaults(table: &Table, slots: &mut [&mut dyn Any]) {
    let ArgsSpec::Params(params) = table.spec().args else { return };
    for (param, slot) in params.iter().zip(slots) {
        let Some(default) = param.default else { continue };
        if let Some(slot @ None) = slot.downcast_mut::<Option<WorkspacePath>>() {
            *slot = default.value().and_then(|it| it.as_str().map(WorkspacePath::from));
        }
    }
}

#[cfg(not(feature = "workspace"))]
pub(super) fn fill_path_defaults(_: &Table, _: &mut [&mut dyn Any]) {}

/// Returns the paths that `decode` decodes, as sent and as absolute paths.
pub(super) fn absolute_paths(decode: impl FnOnce(), session: &Session) -> Vec<(String, String)> {
    let ((), paths) = PathCollector::collect(decode);
    paths.iter().filter_map(|path| path.sent_and_absolute(session)).collect()
}

/// Whether an argument of this type holds paths; `false` for types that are not known here.
pub(super) fn type_holds_paths(argument: TypeId) -> bool {
    fn is_one_of<T: 'static>(argument: TypeId) -> bool {
        argument == TypeId::of::<T>() || argument == TypeId::of::<Option<T>>()
    }
    is_one_of::<WorkspacePath>(argument) || is_one_of::<Vec<WorkspacePath>>(argument)
}

#[cfg(not(feature = "workspace"))]
impl WorkspacePath {
    fn default_resources(&self, _: &Context, _: bool) -> Vec<Resource> {
        match *self {}
    }

    fn sent_and_absolute(&self, _: &Session) -> Option<(String, String)> {
        match *self {}
    }
}
