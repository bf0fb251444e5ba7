//! Which paths were decoded, for whoever decodes a value of a type that he does not know.

use std::cell::RefCell;

use super::WorkspacePath;

thread_local! {
    /// The paths that were decoded on this thread, as long as somebody wants to know.
    static DECODED: RefCell<Option<Vec<WorkspacePath>>> = const { RefCell::new(None) };
}

/// Remembers a path that was just decoded, if somebody wants to know.
pub(super) fn record_path(path: &WorkspacePath) {
    DECODED.with_borrow_mut(|decoded| {
        if let Some(decoded) = decoded {
            decoded.push(path.clone());
        }
    });
}

/// What `decode` gives, and every path that it decoded on the way: nobody can tell from
/// outside which paths a value of any type holds.
pub(in crate::tool) fn collect_decoded_paths<T>(
    decode: impl FnOnce() -> T,
) -> (T, Vec<WorkspacePath>) {
    struct Until(Option<Vec<WorkspacePath>>);

    impl Drop for Until {
        fn drop(&mut self) {
            DECODED.set(self.0.take());
        }
    }

    let mut until = Until(DECODED.replace(Some(Vec::new())));
    let value = decode();
    let paths = DECODED.take().unwrap_or_default();
    // Whoever wants to know of more than this wants to know of this too.
    if let Some(outer) = &mut until.0 {
        outer.extend(paths.iter().cloned());
    }
    (value, paths)
}
