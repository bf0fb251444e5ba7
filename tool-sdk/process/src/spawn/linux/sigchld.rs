//! Checks and restores the action of `SIGCHLD`.
//!
//! With `SIGCHLD` ignored, which a program may inherit from its parent, the kernel discards the
//! exit status of children.

use std::mem::MaybeUninit;

/// Returns whether the kernel keeps the exit status of children for this process.
pub(crate) fn receives_sigchld() -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    #[expect(unsafe_code, reason = "no safe API reads a signal action")]
    // SAFETY: `sigaction` only fills the buffer, and if it fails, zeros are the default action.
    let action = unsafe {
        libc::sigaction(libc::SIGCHLD, std::ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction != libc::SIG_IGN && action.sa_flags & libc::SA_NOCLDWAIT == 0
}

/// Restores the default action of `SIGCHLD`, if it was changed.
pub(crate) fn restore_sigchld() {
    if !receives_sigchld() {
        #[expect(unsafe_code, reason = "no safe API sets a signal action")]
        // SAFETY: sets the default action; no handler of this process is installed.
        unsafe {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}
