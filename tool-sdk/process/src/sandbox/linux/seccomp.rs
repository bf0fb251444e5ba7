//! Seccomp filters: block system calls that lead out of the sandbox, and those that builds and
//! tests do not need.
//!
//! **Invariant:** a filter never allows a call that an earlier filter blocks.

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use crate::sandbox::HelperRequest;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// System calls that are always blocked.
const REFUSED_CALLS: &[libc::c_long] = &[
    // io_uring executes operations without system calls, so no filter sees them.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_setns,
    // The kernel.
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    // Keys.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Mounts.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // `open_tree_attr`, which has no name in libc yet.
    467,
];

/// `ioctl` requests that inject input into a terminal.
const TTY_INPUT_REQUESTS: &[u64] = &[libc::TIOCSTI, libc::TIOCLINUX];

/// The flag for a new user namespace.
const NEW_USER_NAMESPACE: u64 = libc::CLONE_NEWUSER.unsigned_abs() as u64;

/// Installs the filters for this process and its descendants.
pub(super) fn install_filters(order: &HelperRequest) -> std::result::Result<(), String> {
    try_install_filters(order).map_err(|error| error.to_string())
}

fn try_install_filters(order: &HelperRequest) -> Result<()> {
    let arch = TargetArch::try_from(ARCH)?;
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    // A system call of another architecture kills the process.
    let filter = SeccompFilter::new(build_rules(order)?, SeccompAction::Allow, refuse, arch)?;
    apply_filter(&BpfProgram::try_from(filter)?)?;
    apply_filter(&BpfProgram::try_from(clone3_filter(arch)?)?)?;
    if matches!(arch, TargetArch::x86_64) {
        apply_filter(&x32_filter())?;
    }
    Ok(())
}

fn build_rules(order: &HelperRequest) -> Result<Rules> {
    let mut rules: Rules = REFUSED_CALLS.iter().map(|call| (*call, Vec::new())).collect();
    let is = |index, operator, value| {
        let condition = SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)?;
        SeccompRule::new(vec![condition])
    };
    let typing: std::result::Result<_, _> =
        TTY_INPUT_REQUESTS.iter().map(|request| is(1, SeccompCmpOp::Eq, *request)).collect();
    rules.insert(libc::SYS_ioctl, typing?);
    // Setting the limits of other processes could kill or block them.
    rules.insert(libc::SYS_prlimit64, vec![is(0, SeccompCmpOp::Ne, 0)?]);
    // A new user namespace would grant all capabilities over further namespaces.
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        rules.insert(
            call,
            vec![is(0, SeccompCmpOp::MaskedEq(NEW_USER_NAMESPACE), NEW_USER_NAMESPACE)?],
        );
    }
    if !order.unix_sockets {
        rules.insert(libc::SYS_socketpair, datagram_pair_rules()?);
    }
    let unix = u64::from(libc::AF_UNIX.unsigned_abs());
    match (order.network, order.unix_sockets) {
        (true, true) => {}
        (true, false) => {
            rules.insert(libc::SYS_socket, vec![is(0, SeccompCmpOp::Eq, unix)?]);
        }
        (false, true) => {
            rules.insert(libc::SYS_socket, vec![is(0, SeccompCmpOp::Ne, unix)?]);
        }
        (false, false) => {
            rules.insert(libc::SYS_socket, Vec::new());
        }
    }
    Ok(rules)
}

/// Blocks `clone3` with `ENOSYS`: its flags are in memory, which a filter cannot read. Programs
/// then fall back to `clone`.
fn clone3_filter(arch: TargetArch) -> Result<SeccompFilter> {
    let rules = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let missing = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, missing, arch)?)
}

/// Blocks datagram socket pairs: each end could send to any named socket.
fn datagram_pair_rules() -> Result<Vec<SeccompRule>> {
    // The other bits of the argument are flags.
    const TYPE: u64 = 0xf;
    let mut rules = Vec::new();
    // The kernel turns a raw Unix socket into a datagram socket.
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
        let operator = SeccompCmpOp::MaskedEq(TYPE);
        let kind = u64::from(kind.unsigned_abs());
        let condition = SeccompCondition::new(1, SeccompCmpArgLen::Dword, operator, kind)?;
        rules.push(SeccompRule::new(vec![condition])?);
    }
    Ok(rules)
}

/// Blocks system calls of the x32 ABI: they have the same architecture, and their numbers differ
/// by one bit.
fn x32_filter() -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    let step = |code: u32, jt, jf, k| seccompiler::sock_filter {
        // All codes are below 256.
        code: code as u16,
        jt,
        jf,
        k,
    };
    vec![
        // The call number is the first field of `seccomp_data`.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}
