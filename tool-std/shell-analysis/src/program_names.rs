//! Maps decorated program names to canonical ones: `x86_64-linux-gnu-gcc-12` is `gcc`,
//! `vim.basic` is `vim`.
//!
//! Distributions add versions, target triples and variants to names. Restrictions for a program
//! also apply under its decorated names; being known as safe does not.
//!
//! **Invariant:** one rule for all programs, and no table of full names.

use std::borrow::Cow;

use super::word::{bare_name, list_contains};

/// Names that end in a number or an architecture and are already canonical.
const EXACT_NAMES: &str = "\
    aarch64 base64 box64 box86 c8 c89 c99 diff3 f77 f95 i386 k3s ksh93 ld-linux-aarch64.so.1 ld-linux-x86-64.so.2 ld-linux.so.2 \
    ld-musl-x86_64.so.1 linux32 linux64 m4 p4 proxychains4 qemu-aarch64 qemu-i386 qemu-riscv64 \
    qemu-x86_64 run0 uname26 x86_64";

/// Prefixes of target triples.
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

/// Suffixes of target triples before a program name.
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

/// Variants after a dot, as opposed to file extensions.
const VARIANTS: &str = "\
    athena basic bin bsd debian distrib gnome gnu gtk gtk2 gtk3 huge motif nox openbsd orig real small \
    static tiny traditional ws";

/// Programs that some systems install with the prefix `g` or `gnu`, and that are not read-only.
const GNU: &str = "\
    chroot chgrp chmod chown cp csplit date dd env kill link ln mkdir mkfifo mknod mv nice nohup ptx rm \
    rmdir shred shuf stty sync tee touch truncate uniq unlink";

/// Returns the canonical name of a program.
pub(super) fn canonical_name(program: &str) -> Cow<'_, str> {
    match bare_name(program) {
        Cow::Borrowed(name) => Cow::Borrowed(strip_decorations(name)),
        Cow::Owned(name) => Cow::Owned(strip_decorations(&name).to_owned()),
    }
}

/// Whether the program name differs from its canonical name.
pub(super) fn has_decorated_name(program: &str) -> bool {
    let name = bare_name(program);
    strip_decorations(&name) != name
}

fn strip_decorations(name: &str) -> &str {
    // Fast path for plain lower-case names.
    if name.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return strip_gnu_prefix(name);
    }
    if list_contains(EXACT_NAMES, name) {
        return name;
    }
    let name = strip_target_triple(name);
    let name = name.strip_suffix("-static").unwrap_or(name);
    let name = strip_gnu_prefix(name);
    let name = match name.split_once('.') {
        Some((first, variant)) if list_contains(VARIANTS, variant) => first,
        _ => name,
    };
    if list_contains(EXACT_NAMES, name) {
        return name;
    }
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    // Builds of Python have letters after the version.
    let version = plain.trim_end_matches(['d', 'm', 't', 'u']);
    let version = version.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    match plain {
        // A name needs letters.
        "" => name,
        _ if matches!(version, "python" | "pypy") => version,
        plain => plain,
    }
}

/// Removes the prefix that distinguishes GNU programs from those of the system.
pub(super) fn strip_gnu_prefix(name: &str) -> &str {
    let known = ["gnu", "g"].iter().filter_map(|prefix| name.strip_prefix(prefix));
    known.into_iter().find(|name| list_contains(GNU, name)).unwrap_or(name)
}

/// Removes a target triple before or after the name.
fn strip_target_triple(name: &str) -> &str {
    if !name.contains('-') {
        return name;
    }
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
    use crate::{dangerous, embedded_commands, wrappers};

    // Lookups use canonical names.
    #[test]
    fn tables_have_the_names_under_which_programs_are_known() {
        let names = wrappers::names().chain(dangerous::names()).chain(embedded_commands::names());
        let lost: Vec<_> = names.filter(|name| canonical_name(name) != *name).collect();
        assert!(lost.is_empty(), "{lost:?}");
    }

    // SH5, SH6
    #[test]
    fn maps_decorated_names_to_canonical() {
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
            assert_eq!(canonical_name(program), name, "{program}");
        }
    }
}
