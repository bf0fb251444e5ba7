//! Reads an rlimit of another process.

use std::ptr;

use rustix::process::{Resource, Rlimit};

use super::clone_exec::last_error;

/// Returns the rlimit of the process `pid`.
pub(crate) fn rlimit_of_pid(pid: i32, resource: Resource) -> rustix::io::Result<Rlimit> {
    let mut limit = [0_u64; 2];
    #[expect(unsafe_code, reason = "the safe call cannot read a limit without setting it")]
    // SAFETY: the kernel fills two 64-bit numbers, and with a null pointer sets none.
    let read = unsafe {
        let none = ptr::null::<u64>();
        libc::syscall(libc::SYS_prlimit64, pid, resource as libc::c_int, none, &raw mut limit)
    };
    if read != 0 {
        return Err(last_error());
    }
    let finite = |limit| (limit != u64::MAX).then_some(limit);
    Ok(Rlimit { current: finite(limit[0]), maximum: finite(limit[1]) })
}
