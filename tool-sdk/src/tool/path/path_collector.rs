//! Collects the paths that are decoded as parts of a value of unknown type.

use std::cell::RefCell;

use super::WorkspacePath;

thread_local! {
    /// The paths that were decoded on this thread, while a collector is active.
    static DECODED: RefCell<Option<Vec<WorkspacePath>>> = const { RefCell::new(None) };
}

/// Records a decoded path, if a collector is active.
pub(super) fn record_path(path: &WorkspacePath) {
    DECODED.with_borrow_mut(|decoded| {
        if let Some(decoded) = decoded {
            decoded.push(path.clone());
        }
    });
}

/// Runs `decode`; returns its result and every path that it decoded. Needed because the paths in
/// a value of an arbitrary type cannot be found from outside.
pub(crate) fn collect_decoded_paths<T>(decode: impl FnOnce() -> T) -> (T, Vec<WorkspacePath>) {
    struct Until(Option<Vec<WorkspacePath>>);

    impl Drop for Until {
        fn drop(&mut self) {
            DECODED.set(self.0.take());
        }
    }

    let mut until = Until(DECODED.replace(Some(Vec::new())));
    let value = decode();
    let paths = DECODED.take().unwrap_or_default();
    // An outer collector gets these paths, too.
    if let Some(outer) = &mut until.0 {
        outer.extend(paths.iter().cloned());
    }
    (value, paths)
}
