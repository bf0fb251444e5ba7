//! Which program a longer name means: `x86_64-linux-gnu-gcc-12` is `gcc`, `vim.basic` is `vim`.
//!
//! Systems add versions, machines and variants to names. What is known of a program is known
//! of it under these names too, where that asks for more; nobody takes one for harmless by it.
//!
//! **Invariant:** one rule for all programs, and no table of full names.

use std::borrow::Cow;

use super::word::{bare_name, is_listed};

/// Names that end in a number or in the name of a machine, and mean themselves.
const WHOLE: &str = "\
    aarch64 base64 box64 box86 c8 c89 c99 diff3 f77 f95 i386 k3s ksh93 ld-linux-aarch64.so.1 ld-linux-x86-64.so.2 ld-linux.so.2 \
    ld-musl-x86_64.so.1 linux32 linux64 m4 p4 proxychains4 qemu-aarch64 qemu-i386 qemu-riscv64 \
    qemu-x86_64 run0 uname26 x86_64";

/// How names of machines begin.
const MACHINES: &[&str] = &[
    "aarch64",
    "alpha",
    "arm",
    "hppa",
    "i386",
    "i486",
    "i586",
    "i686",
    "ia64",
    "loongarch",
    "m68k",
    "mips",
    "powerpc",
    "ppc",
    "riscv",
    "s390",
    "sh4",
    "sparc",
    "x86_64",
];

/// How names of machines end before the name of a program.
const SYSTEMS: &[&str] = &[
    "-gnu-",
    "-gnuabi64-",
    "-gnueabi-",
    "-gnueabihf-",
    "-gnux32-",
    "-musl-",
    "-musleabihf-",
    "-mingw32-",
    "-eabi-",
    "-elf-",
];

/// What stands behind a dot when it is a variant, and no ending of a file.
const VARIANTS: &str = "\
    athena basic bin bsd debian distrib gnome gnu gtk gtk2 gtk3 huge motif nox openbsd orig real small \
    static tiny traditional ws";

/// Programs that some systems call the same behind `g` or `gnu`, and that do not look only.
const GNU: &str = "\
    chroot chgrp chmod chown cp csplit date dd env kill link ln mkdir mkfifo mknod mv nice nohup ptx rm \
    rmdir shred shuf stty sync tee touch truncate uniq unlink";

/// The name under which a program is known.
pub(super) fn known_name(program: &str) -> Cow<'_, str> {
    match bare_name(program) {
        Cow::Borrowed(name) => Cow::Borrowed(plain(name)),
        Cow::Owned(name) => Cow::Owned(plain(&name).to_owned()),
    }
}

/// Whether a program is known under another name than its own.
pub(super) fn has_longer_name(program: &str) -> bool {
    let name = bare_name(program);
    plain(&name) != name
}

fn plain(name: &str) -> &str {
    if is_listed(WHOLE, name) {
        return name;
    }
    let name = without_machine(name);
    let name = name.strip_suffix("-static").unwrap_or(name);
    let name = without_prefix(name);
    let name = match name.split_once('.') {
        Some((first, variant)) if is_listed(VARIANTS, variant) => first,
        _ => name,
    };
    if is_listed(WHOLE, name) {
        return name;
    }
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    // Kinds of Python have letters behind the version.
    let version = plain.trim_end_matches(['d', 'm', 't', 'u']);
    let version = version.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    match plain {
        // What has no letters is no name.
        "" => name,
        _ if matches!(version, "python" | "pypy") => version,
        plain => plain,
    }
}

/// A name without what tells programs of GNU from those of the system.
pub(super) fn without_prefix(name: &str) -> &str {
    let known = ["gnu", "g"].iter().filter_map(|prefix| name.strip_prefix(prefix));
    known.into_iter().find(|name| is_listed(GNU, name)).unwrap_or(name)
}

/// Leaves out the machine that a program is for, before its name or behind it.
fn without_machine(name: &str) -> &str {
    if MACHINES.iter().any(|machine| name.starts_with(machine)) {
        let ends = SYSTEMS.iter().filter_map(|system| Some(name.find(system)? + system.len()));
        return ends.max().map_or(name, |end| &name[end..]);
    }
    let is_machine = |rest: &str| {
        MACHINES.iter().any(|machine| rest.starts_with(machine)) && rest.contains("-linux")
    };
    let mut dashes = name.match_indices('-').map(|(at, _)| at);
    dashes.find(|at| is_machine(&name[at + 1..])).map_or(name, |at| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::{danger, hidden, unwrap};

    // Otherwise nobody would find them there.
    #[test]
    fn tables_have_the_names_under_which_programs_are_known() {
        let names = unwrap::names().chain(danger::names()).chain(hidden::names());
        let lost: Vec<_> = names.filter(|name| known_name(name) != *name).collect();
        assert!(lost.is_empty(), "{lost:?}");
    }

    // SH5, SH6
    #[test]
    fn a_full_name_is_the_known_one() {
        for (program, name) in [
            ("x86_64-linux-gnu-gcc-12", "gcc"),
            ("/usr/bin/arm-none-eabi-g++", "g++"),
            ("i686-w64-mingw32-windres", "windres"),
            ("perl5.36-x86_64-linux-gnu", "perl"),
            ("python3.12", "python"),
            ("qemu-x86_64-static", "qemu-x86_64"),
            ("busybox-static", "busybox"),
            ("vim.basic", "vim"),
            ("valgrind.bin", "valgrind"),
            ("sudo.ws", "sudo"),
            ("python3.13t", "python"),
            ("python3.6m", "python"),
            ("grm", "rm"),
            ("gnuenv", "env"),
            ("gtimeout", "gtimeout"),
            ("nc.openbsd", "nc"),
            ("ZSH5", "zsh"),
            ("x86_64", "x86_64"),
            ("ksh93", "ksh93"),
            ("ld-linux-x86-64.so.2", "ld-linux-x86-64.so.2"),
            ("test.sh", "test.sh"),
            ("mkfs.ext4", "mkfs.ext"),
            ("7", "7"),
            ("--", "--"),
            ("", ""),
        ] {
            assert_eq!(known_name(program), name, "{program}");
        }
    }
}
