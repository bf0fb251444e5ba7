//! Programs that run the command in their arguments, as data.
//!
//! Only listed options are parsed. With any other option, the start of the nested command is
//! uncertain.

/// How the permissions of a wrapper and its nested command relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrapperKind {
    /// Only the nested command matters.
    Transparent,
    /// The wrapper itself needs a rule too.
    NeedsRule,
    /// Its arguments are joined and passed to a shell.
    Script,
}

/// A program that runs the command in its arguments.
#[derive(Debug)]
pub(super) struct WrapperProgram {
    /// The program names, and the subcommands of which one must come before the nested command.
    pub(super) names: &'static [&'static str],
    pub(super) subcommands: &'static [&'static str],
    pub(super) kind: WrapperKind,
    /// Options without value; short options may be clustered.
    pub(super) flags: &'static [&'static str],
    /// Options with a value: the rest of the word, or the next one.
    pub(super) valued: &'static [&'static str],
    /// The number of operands before the nested command.
    pub(super) operands: usize,
    /// Whether these operands are numbers, which tells whether an optional one is present.
    pub(super) numbers: bool,
}

const fn wrapper(
    names: &'static [&'static str],
    kind: WrapperKind,
    flags: &'static [&'static str],
    valued: &'static [&'static str],
    operands: usize,
) -> WrapperProgram {
    WrapperProgram { names, subcommands: &[], kind, flags, valued, operands, numbers: false }
}

/// A program that runs the command after one of its subcommands.
const fn runner(names: &'static [&'static str], then: &'static [&'static str]) -> WrapperProgram {
    let base = wrapper(names, NeedsRule, &[], &[], 0);
    WrapperProgram { subcommands: then, ..base }
}

/// A program that takes numbers before the command.
const fn numbered(base: WrapperProgram) -> WrapperProgram {
    WrapperProgram { operands: 1, numbers: true, ..base }
}

use WrapperKind::{NeedsRule, Script, Transparent};

/// All wrappers. If a program is listed twice, the first entry that matches applies.
pub(super) const WRAPPERS: &[WrapperProgram] = &[
    wrapper(&["env"], Transparent, &["-i", "--ignore-environment"], &["-u", "--unset"], 0),
    wrapper(&["nohup"], Transparent, &[], &[], 0),
    numbered(wrapper(
        &["timeout", "gtimeout"],
        Transparent,
        &["-v", "--foreground", "--preserve-status", "--verbose"],
        &["-k", "-s", "--kill-after", "--signal"],
        1,
    )),
    wrapper(&["nice"], Transparent, &[], &["-n", "--adjustment"], 0),
    wrapper(
        &["stdbuf", "gstdbuf"],
        Transparent,
        &[],
        &["-i", "-o", "-e", "--input", "--output", "--error"],
        0,
    ),
    wrapper(&["time"], Transparent, &["-p"], &[], 0),
    wrapper(
        &["sudo", "sudo-rs"],
        NeedsRule,
        // `-s` and `-i` pass the words to a shell, and `-h` takes an optional value.
        &["-n", "-E", "-H", "-A", "-S", "-b", "-k", "--non-interactive"],
        &["-u", "-g", "-C", "-T", "-p", "-r", "-t", "-U", "--user", "--group"],
        0,
    ),
    wrapper(&["doas"], NeedsRule, &["-n"], &["-u", "-C", "-a"], 0),
    wrapper(&["pkexec"], NeedsRule, &["--disable-internal-agent"], &["--user"], 0),
    wrapper(&["runuser"], NeedsRule, &[], &["-u", "-g", "-G"], 0),
    wrapper(&["gosu", "su-exec"], NeedsRule, &[], &[], 1),
    wrapper(
        &["xargs", "gxargs"],
        NeedsRule,
        &["-0", "-r", "-t", "-p", "-x", "-o", "--null", "--no-run-if-empty", "--verbose"],
        &[
            "-I",
            "-n",
            "-P",
            "-L",
            "-d",
            "-a",
            "-E",
            "-s",
            "-R",
            "--max-args",
            "--max-procs",
            "--delimiter",
            "--arg-file",
        ],
        0,
    ),
    wrapper(&["exec"], NeedsRule, &["-c", "-l"], &["-a"], 0),
    wrapper(&["command"], NeedsRule, &["-p"], &[], 0),
    wrapper(&["builtin"], NeedsRule, &[], &[], 0),
    wrapper(&["busybox", "coreutils", "toybox"], NeedsRule, &[], &[], 0),
    wrapper(
        &["flock"],
        NeedsRule,
        &["-n", "-x", "-s", "-e", "-u", "-o", "-F", "--nonblock"],
        &["-w", "-E", "--timeout"],
        1,
    ),
    wrapper(
        &["watch"],
        Script,
        &["-d", "-t", "-b", "-e", "-g", "-c", "-x", "-p"],
        &["-n", "--interval"],
        0,
    ),
    wrapper(&["eval"], Script, &[], &[], 0),
    wrapper(&["ionice"], NeedsRule, &["-t"], &["-c", "-n", "--class", "--classdata"], 0),
    numbered(wrapper(&["chrt"], NeedsRule, &["-b", "-f", "-i", "-o", "-r"], &[], 1)),
    numbered(wrapper(&["taskset"], NeedsRule, &["-c"], &[], 1)),
    wrapper(&["setsid"], NeedsRule, &["-c", "-f", "-w"], &[], 0),
    // The operand before the command may be omitted.
    wrapper(&["setarch"], NeedsRule, &[], &[], 1),
    wrapper(&["linux32", "linux64", "i386", "x86_64"], NeedsRule, &["-R"], &[], 0),
    wrapper(
        &["prlimit", "bwrap", "firejail", "ssh-agent", "systemd-inhibit", "eatmydata"],
        NeedsRule,
        &[],
        &[],
        0,
    ),
    wrapper(
        &["numactl"],
        NeedsRule,
        &["-l", "--localalloc"],
        &["-C", "-N", "-i", "-m", "--cpunodebind", "--interleave", "--membind", "--physcpubind"],
        0,
    ),
    wrapper(&["sshpass"], NeedsRule, &["-e", "-v"], &["-d", "-f", "-p"], 0),
    wrapper(&["entr"], NeedsRule, &["-a", "-c", "-d", "-n", "-p", "-r", "-x", "-z"], &[], 0),
    wrapper(
        &["cross-env", "dotenv", "softlimit", "chpst", "cgexec", "trickle"],
        NeedsRule,
        &[],
        &[],
        0,
    ),
    wrapper(&["envdir", "faketime", "s6-setuidgid", "setuidgid"], NeedsRule, &[], &[], 1),
    wrapper(&["setpriv"], NeedsRule, &["--nnp", "--no-new-privs"], &[], 0),
    wrapper(&["choom"], NeedsRule, &[], &["-n", "--adjust"], 0),
    wrapper(&["start-stop-daemon"], NeedsRule, &[], &[], 0),
    wrapper(
        &[
            "ld.so",
            "ld-linux.so.2",
            "ld-linux-x86-64.so.2",
            "ld-linux-aarch64.so.1",
            "ld-musl-x86_64.so.1",
        ],
        NeedsRule,
        &[],
        &[],
        0,
    ),
    wrapper(&["sg"], Script, &[], &[], 1),
    wrapper(&["chroot"], NeedsRule, &[], &["--userspec", "--groups"], 1),
    wrapper(&["unshare"], NeedsRule, &["-r", "-m", "-n", "-p", "-f", "-u", "-i", "-U"], &[], 0),
    wrapper(&["nsenter"], NeedsRule, &["-a", "-m", "-n", "-p", "-u", "-i"], &["-t", "--target"], 0),
    wrapper(
        &["strace", "ltrace"],
        NeedsRule,
        &["-f", "-ff", "-c", "-q", "-v", "-t", "-tt", "-y"],
        // The value of `-o` may begin with a pipe and run a command.
        &["-e", "-s"],
        0,
    ),
    wrapper(
        &["valgrind"],
        NeedsRule,
        &["-q", "-v", "-s"],
        &["--error-exitcode", "--leak-check", "--num-callers", "--tool", "--track-origins"],
        0,
    ),
    wrapper(&["systemd-run"], NeedsRule, &["--user", "--scope", "-t", "-q"], &["--unit"], 0),
    wrapper(&["fakeroot"], NeedsRule, &[], &[], 0),
    wrapper(
        &["unbuffer", "torsocks", "proxychains", "proxychains4", "catchsegv"],
        NeedsRule,
        &["-q"],
        &["-f"],
        0,
    ),
    wrapper(&["dumb-init", "tini", "rlwrap", "dbus-run-session"], NeedsRule, &["-v", "-s"], &[], 0),
    wrapper(&["xvfb-run"], NeedsRule, &["-a", "--auto-servernum"], &["-s", "-n"], 0),
    wrapper(&["caffeinate"], NeedsRule, &["-d", "-i", "-m", "-s", "-u"], &["-t", "-w"], 0),
    wrapper(&["npx", "bunx", "uvx"], NeedsRule, &["-y", "--yes", "--no-install"], &["-p"], 0),
    runner(&["uv", "poetry", "pipenv", "pdm", "hatch", "rye"], &["run"]),
    runner(&["npm", "pnpm", "yarn", "bundle", "rbenv", "pyenv", "bun"], &["exec", "x", "dlx"]),
    wrapper(&["chronic", "ifne", "torify", "tsocks"], NeedsRule, &[], &[], 0),
    wrapper(&["lckdo", "runcon", "setlock"], NeedsRule, &[], &[], 1),
    wrapper(&["bear", "cpulimit", "heaptrack", "nocache", "timelimit"], NeedsRule, &[], &[], 0),
    wrapper(&["daemonize", "dtach", "abduco", "nq", "tsp"], NeedsRule, &[], &[], 0),
    wrapper(&["fakechroot", "proot", "schroot", "systemd-nspawn"], NeedsRule, &[], &[], 0),
    wrapper(&["aa-exec", "arch", "run0", "sandbox-exec", "xcrun"], NeedsRule, &[], &[], 0),
    wrapper(
        &["daemon", "dbus-launch", "startx", "wine", "winpty", "xinit"],
        NeedsRule,
        &[],
        &[],
        0,
    ),
    wrapper(&["dtruss", "ktrace", "truss"], NeedsRule, &[], &[], 0),
    wrapper(
        &["qemu-aarch64", "qemu-arm", "qemu-i386", "qemu-riscv64", "qemu-x86_64"],
        NeedsRule,
        &[],
        &[],
        0,
    ),
    wrapper(&["mpiexec", "mpirun", "srun"], NeedsRule, &[], &["-n", "-np"], 0),
    wrapper(&["ccache", "distcc", "sccache", "scan-build"], NeedsRule, &[], &[], 0),
    wrapper(&["uname26"], NeedsRule, &["-R"], &[], 0),
    wrapper(&["logsave"], NeedsRule, &["-a", "-s", "-v"], &[], 1),
    wrapper(&["debconf", "debconf-apt-progress", "gpg-agent"], NeedsRule, &["--daemon"], &[], 0),
    wrapper(&["coresched", "enosys", "pipesz", "setpgid", "uclampset"], NeedsRule, &[], &[], 0),
    wrapper(&["annotate-output", "kcov", "memusage", "openvt", "sotruss"], NeedsRule, &[], &[], 0),
    wrapper(&["c8", "nyc", "zrun", "flamegraph", "multitime", "gtime"], NeedsRule, &[], &[], 0),
    wrapper(&["bubblejail", "minijail", "nsjail", "pseudo", "catatonit"], NeedsRule, &[], &[], 0),
    wrapper(&["gamemoderun", "optirun", "primusrun", "steam-run"], NeedsRule, &[], &[], 0),
    wrapper(&["box86", "box64", "winedbg", "envchain", "systemd-cat"], NeedsRule, &[], &[], 0),
    wrapper(
        &["corepack", "luit", "msgexec", "msgfilter", "not", "pg_virtualenv"],
        NeedsRule,
        &[],
        &[],
        0,
    ),
    runner(&["cabal", "lerna", "opam", "stack"], &["exec"]),
    runner(&["fnm", "goenv", "jenv", "nodenv", "nvm"], &["exec", "run"]),
    runner(&["dotenvx", "foreman", "honcho", "volta"], &["run"]),
    runner(&["launchctl"], &["submit"]),
    runner(&["rr", "uftrace"], &["record", "live"]),
    runner(&["rvm"], &["do"]),
    runner(&["samply", "asciinema"], &["record", "rec"]),
    runner(&["apptainer", "singularity", "toolbox"], &["exec", "run"]),
    runner(&["perf"], &["stat", "record", "trace", "mem", "lock", "sched", "c2c", "kvm"]),
    runner(&["jobs"], &["-x"]),
];

/// Programs that run commands, and the words of which one must be present. The start or the
/// quoting of the command is uncertain.
pub(super) const UNCERTAIN_RUNNERS: &[(&[&str], &[&str])] = &[
    (&["concurrently", "hyperfine", "mispipe", "parallel", "pee", "sem", "watchexec"], &[]),
    (&["chokidar", "onchange", "reflex", "sbatch", "zellij"], &[]),
    (&["rustup"], &["run"]),
    (&["aws-vault", "chamber", "direnv", "doppler", "op"], &["exec", "run"]),
    (&["asdf", "conda", "devbox", "mamba", "micromamba", "mise", "pixi"], &["exec", "run", "x"]),
    (&["nix", "nix-shell"], &["-c", "--command", "--run"]),
    (&["nodemon"], &["-x", "--exec"]),
    (&["git"], &["foreach"]),
    (&["ip"], &["exec"]),
    (&["cargo"], &["watch"]),
    (&["cmake"], &["chdir", "env", "time"]),
    (&["capsh"], &[]),
    (&["xterm", "gnome-terminal", "konsole", "alacritty", "kitty"], &[]),
    (&["lxterm", "mate-terminal", "rxvt", "uxterm", "x-terminal-emulator"], &[]),
    (&["dockerize", "hivemind", "overmind", "wait-for-it"], &[]),
    (&["scriptlive"], &[]),
    (&["gprofng"], &["app"]),
    (&["guix"], &["environment", "shell"]),
];

/// Shells whose scripts are parsed as bash.
pub(super) const BASH_SHELLS: &[&str] = &["bash", "sh"];

/// Other shells with the same command-line options as bash.
pub(super) const OTHER_SHELLS: &[&str] = &[
    "ash",
    "csh",
    "dash",
    "elvish",
    "fish",
    "hush",
    "ksh",
    "ksh93",
    "lksh",
    "mksh",
    "nu",
    "oksh",
    "osh",
    "pdksh",
    "posh",
    "rbash",
    "sash",
    "static-sh",
    "tcsh",
    "xonsh",
    "yash",
    "zsh",
];

/// Shells of Windows.
pub(super) const WINDOWS_SHELLS: &[&str] = &["cmd", "powershell", "pwsh"];

/// Builtins that change the meaning of later commands, or run code from their arguments.
pub(super) const DECLARING_BUILTINS: &[&str] = &[
    "alias",
    "bind",
    "compgen",
    "complete",
    "compopt",
    "declare",
    "enable",
    "export",
    "fc",
    "hash",
    "history",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "typeset",
    "unalias",
    "unset",
];
