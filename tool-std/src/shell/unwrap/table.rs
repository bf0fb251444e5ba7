//! Programs that run the command in their arguments, as data.
//!
//! Only options that are listed are read. Everything else means that it is not certain
//! where the inner command begins.

/// What it means that a program runs another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only the inner command matters.
    Transparent,
    /// The wrapper itself needs a rule too.
    Judged,
    /// Its arguments go to a shell as one text.
    Script,
}

/// A program that runs the command in its arguments.
#[derive(Debug)]
pub(super) struct Wrapper {
    /// The program, and its own words of which one must come before the command.
    pub(super) names: &'static [&'static str],
    pub(super) then: &'static [&'static str],
    pub(super) kind: Kind,
    /// Options on their own; a single letter may stand with others behind one dash.
    pub(super) flags: &'static [&'static str],
    /// Options that take a value: the rest of the word, or the next one.
    pub(super) valued: &'static [&'static str],
    /// Words that come before the command.
    pub(super) operands: usize,
    /// Whether these are numbers: where they may be left out, nothing else tells.
    pub(super) numbers: bool,
}

const fn wrapper(
    names: &'static [&'static str],
    kind: Kind,
    flags: &'static [&'static str],
    valued: &'static [&'static str],
    operands: usize,
) -> Wrapper {
    Wrapper { names, then: &[], kind, flags, valued, operands, numbers: false }
}

/// A program that runs the command after one of its own words.
const fn runner(names: &'static [&'static str], then: &'static [&'static str]) -> Wrapper {
    let base = wrapper(names, Judged, &[], &[], 0);
    Wrapper { then, ..base }
}

/// A program that takes numbers before the command.
const fn numbered(base: Wrapper) -> Wrapper {
    Wrapper { operands: 1, numbers: true, ..base }
}

use Kind::{Judged, Script, Transparent};

/// All of them. Where a program stands twice, the first one that fits counts.
pub(super) const WRAPPERS: &[Wrapper] = &[
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
        Judged,
        // With `-s` and `-i` a shell reads the words, and `-h` takes a word or not.
        &["-n", "-E", "-H", "-A", "-S", "-b", "-k", "--non-interactive"],
        &["-u", "-g", "-C", "-T", "-p", "-r", "-t", "-U", "--user", "--group"],
        0,
    ),
    wrapper(&["doas"], Judged, &["-n"], &["-u", "-C", "-a"], 0),
    wrapper(&["pkexec"], Judged, &["--disable-internal-agent"], &["--user"], 0),
    wrapper(&["runuser"], Judged, &[], &["-u", "-g", "-G"], 0),
    wrapper(&["gosu", "su-exec"], Judged, &[], &[], 1),
    wrapper(
        &["xargs", "gxargs"],
        Judged,
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
    wrapper(&["exec"], Judged, &["-c", "-l"], &["-a"], 0),
    wrapper(&["command"], Judged, &["-p"], &[], 0),
    wrapper(&["builtin"], Judged, &[], &[], 0),
    wrapper(&["busybox", "coreutils", "toybox"], Judged, &[], &[], 0),
    wrapper(
        &["flock"],
        Judged,
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
    wrapper(&["ionice"], Judged, &["-t"], &["-c", "-n", "--class", "--classdata"], 0),
    numbered(wrapper(&["chrt"], Judged, &["-b", "-f", "-i", "-o", "-r"], &[], 1)),
    numbered(wrapper(&["taskset"], Judged, &["-c"], &[], 1)),
    wrapper(&["setsid"], Judged, &["-c", "-f", "-w"], &[], 0),
    // What it needs before the command may be left out.
    wrapper(&["setarch"], Judged, &[], &[], 1),
    wrapper(&["linux32", "linux64", "i386", "x86_64"], Judged, &["-R"], &[], 0),
    wrapper(
        &["prlimit", "bwrap", "firejail", "ssh-agent", "systemd-inhibit", "eatmydata"],
        Judged,
        &[],
        &[],
        0,
    ),
    wrapper(
        &["numactl"],
        Judged,
        &["-l", "--localalloc"],
        &["-C", "-N", "-i", "-m", "--cpunodebind", "--interleave", "--membind", "--physcpubind"],
        0,
    ),
    wrapper(&["sshpass"], Judged, &["-e", "-v"], &["-d", "-f", "-p"], 0),
    wrapper(&["entr"], Judged, &["-a", "-c", "-d", "-n", "-p", "-r", "-x", "-z"], &[], 0),
    wrapper(
        &["cross-env", "dotenv", "softlimit", "chpst", "cgexec", "trickle"],
        Judged,
        &[],
        &[],
        0,
    ),
    wrapper(&["envdir", "faketime", "s6-setuidgid", "setuidgid"], Judged, &[], &[], 1),
    wrapper(&["setpriv"], Judged, &["--nnp", "--no-new-privs"], &[], 0),
    wrapper(&["choom"], Judged, &[], &["-n", "--adjust"], 0),
    wrapper(&["start-stop-daemon"], Judged, &[], &[], 0),
    wrapper(
        &[
            "ld.so",
            "ld-linux.so.2",
            "ld-linux-x86-64.so.2",
            "ld-linux-aarch64.so.1",
            "ld-musl-x86_64.so.1",
        ],
        Judged,
        &[],
        &[],
        0,
    ),
    wrapper(&["sg"], Script, &[], &[], 1),
    wrapper(&["chroot"], Judged, &[], &["--userspec", "--groups"], 1),
    wrapper(&["unshare"], Judged, &["-r", "-m", "-n", "-p", "-f", "-u", "-i", "-U"], &[], 0),
    wrapper(&["nsenter"], Judged, &["-a", "-m", "-n", "-p", "-u", "-i"], &["-t", "--target"], 0),
    wrapper(
        &["strace", "ltrace"],
        Judged,
        &["-f", "-ff", "-c", "-q", "-v", "-t", "-tt", "-y"],
        // `-o` may begin with a bar, and run what comes after it.
        &["-e", "-s"],
        0,
    ),
    wrapper(
        &["valgrind"],
        Judged,
        &["-q", "-v", "-s"],
        &["--error-exitcode", "--leak-check", "--num-callers", "--tool", "--track-origins"],
        0,
    ),
    wrapper(&["systemd-run"], Judged, &["--user", "--scope", "-t", "-q"], &["--unit"], 0),
    wrapper(&["fakeroot"], Judged, &[], &[], 0),
    wrapper(
        &["unbuffer", "torsocks", "proxychains", "proxychains4", "catchsegv"],
        Judged,
        &["-q"],
        &["-f"],
        0,
    ),
    wrapper(&["dumb-init", "tini", "rlwrap", "dbus-run-session"], Judged, &["-v", "-s"], &[], 0),
    wrapper(&["xvfb-run"], Judged, &["-a", "--auto-servernum"], &["-s", "-n"], 0),
    wrapper(&["caffeinate"], Judged, &["-d", "-i", "-m", "-s", "-u"], &["-t", "-w"], 0),
    wrapper(&["npx", "bunx", "uvx"], Judged, &["-y", "--yes", "--no-install"], &["-p"], 0),
    runner(&["uv", "poetry", "pipenv", "pdm", "hatch", "rye"], &["run"]),
    runner(&["npm", "pnpm", "yarn", "bundle", "rbenv", "pyenv", "bun"], &["exec", "x", "dlx"]),
    wrapper(&["chronic", "ifne", "torify", "tsocks"], Judged, &[], &[], 0),
    wrapper(&["lckdo", "runcon", "setlock"], Judged, &[], &[], 1),
    wrapper(&["bear", "cpulimit", "heaptrack", "nocache", "timelimit"], Judged, &[], &[], 0),
    wrapper(&["daemonize", "dtach", "abduco", "nq", "tsp"], Judged, &[], &[], 0),
    wrapper(&["fakechroot", "proot", "schroot", "systemd-nspawn"], Judged, &[], &[], 0),
    wrapper(&["aa-exec", "arch", "run0", "sandbox-exec", "xcrun"], Judged, &[], &[], 0),
    wrapper(&["daemon", "dbus-launch", "startx", "wine", "winpty", "xinit"], Judged, &[], &[], 0),
    wrapper(&["dtruss", "ktrace", "truss"], Judged, &[], &[], 0),
    wrapper(
        &["qemu-aarch64", "qemu-arm", "qemu-i386", "qemu-riscv64", "qemu-x86_64"],
        Judged,
        &[],
        &[],
        0,
    ),
    wrapper(&["mpiexec", "mpirun", "srun"], Judged, &[], &["-n", "-np"], 0),
    wrapper(&["ccache", "distcc", "sccache", "scan-build"], Judged, &[], &[], 0),
    wrapper(&["uname26"], Judged, &["-R"], &[], 0),
    wrapper(&["logsave"], Judged, &["-a", "-s", "-v"], &[], 1),
    wrapper(&["debconf", "debconf-apt-progress", "gpg-agent"], Judged, &["--daemon"], &[], 0),
    wrapper(&["coresched", "enosys", "pipesz", "setpgid", "uclampset"], Judged, &[], &[], 0),
    wrapper(&["annotate-output", "kcov", "memusage", "openvt", "sotruss"], Judged, &[], &[], 0),
    wrapper(&["c8", "nyc", "zrun", "flamegraph", "multitime", "gtime"], Judged, &[], &[], 0),
    wrapper(&["bubblejail", "minijail", "nsjail", "pseudo", "catatonit"], Judged, &[], &[], 0),
    wrapper(&["gamemoderun", "optirun", "primusrun", "steam-run"], Judged, &[], &[], 0),
    wrapper(&["box86", "box64", "winedbg", "envchain", "systemd-cat"], Judged, &[], &[], 0),
    wrapper(
        &["corepack", "luit", "msgexec", "msgfilter", "not", "pg_virtualenv"],
        Judged,
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

/// Programs that run commands in a way of their own, and the words of which one must be
/// there for that. It is not certain where the command begins, or how it is quoted.
pub(super) const UNCERTAIN: &[(&[&str], &[&str])] = &[
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

/// Shells that read bash's language as it is understood here.
pub(super) const BASH: &[&str] = &["bash", "sh"];

/// Shells with a language of their own, but commands of the same form.
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

/// Builtins that change what later commands mean, or run code that hides in their words.
pub(super) const DECLARE: &[&str] = &[
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
