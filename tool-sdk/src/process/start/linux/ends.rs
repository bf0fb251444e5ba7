//! Whether the system tells this program how its children end.
//!
//! A program that ignores the signal for it, or was started by one that did, is told nothing:
//! the system forgets a child when it ends.

use std::mem::MaybeUninit;

/// Whether it does.
pub(in crate::process) fn hears_of_children() -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    #[expect(unsafe_code, reason = "no crate reads what happens at a signal")]
    // SAFETY: it is only filled, and zeros are the default action if it is not.
    let action = unsafe {
        libc::sigaction(libc::SIGCHLD, std::ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction != libc::SIG_IGN && action.sa_flags & libc::SA_NOCLDWAIT == 0
}

/// Has the system tell from now on, unless it does already.
pub(in crate::process) fn hear_of_children() {
    if !hears_of_children() {
        #[expect(unsafe_code, reason = "the standard library has no word for it")]
        // SAFETY: it is the system's own action; no code of this process runs.
        unsafe {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}
