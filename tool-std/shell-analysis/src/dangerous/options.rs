//! Options with which programs run others, load code or write files, as data.
//!
//! These programs have too many options for a list of the harmless ones, so the dangerous ones
//! are listed.

use crate::word::ShellWord;

/// The dangerous arguments of a group of programs.
#[derive(Debug)]
pub(super) struct DangerousOptions {
    names: &'static [&'static str],
    /// Short options, also in a cluster.
    letters: &'static str,
    /// Short options that take the rest of the word as their value.
    value_letters: &'static str,
    /// Prefixes of words: long options in their shortest abbreviation.
    prefixes: &'static [&'static str],
    /// Substrings of words.
    substrings: &'static [&'static str],
    /// Exceptions: words that are harmless.
    harmless: &'static [&'static str],
}

const fn dangerous_options(
    names: &'static [&'static str],
    letters: &'static str,
    begins: &'static [&'static str],
) -> DangerousOptions {
    DangerousOptions {
        names,
        letters,
        value_letters: "",
        prefixes: begins,
        substrings: &[],
        harmless: &[],
    }
}

const DANGEROUS_OPTIONS: &[DangerousOptions] = &[
    DangerousOptions { substrings: &[":"], ..dangerous_options(&["cpio"], "", &["--rsh"]) },
    dangerous_options(
        &["ack", "ag", "bat", "batcat", "delta"],
        "",
        &["--ackrc", "--out", "--pager"],
    ),
    dangerous_options(&["apt", "apt-get", "aptitude"], "co", &["--config-file", "--option"]),
    dangerous_options(
        &[
            "ar",
            "gcc-ar",
            "gcc-nm",
            "gcc-ranlib",
            "nm",
            "objcopy",
            "objdump",
            "ranlib",
            "size",
            "strings",
            "strip",
        ],
        "",
        &["--pl", "@"],
    ),
    dangerous_options(&["bazel", "bazelisk"], "", &["--bazelrc", "--run_under"]),
    dangerous_options(
        &[
            "c++", "c89", "c99", "cc", "clang", "clang++", "cpp", "f77", "f95", "g++", "gcc",
            "gdc", "gfortran", "gnat",
        ],
        "",
        &[
            "--config",
            "--for-linker",
            "--gcc-toolchain",
            "--ld-path",
            "--pre",
            "--spec",
            "-B",
            "-Wl,",
            "-Wp,",
            "-Xclang",
            "-Xlinker",
            "-fpass-plugin",
            "-fplugin",
            "-fuse-ld",
            "-specs",
            "-wrapper",
            "@",
        ],
    ),
    dangerous_options(&["cloc"], "", &["--conf", "--ext", "--vcs", "-conf", "-ext", "-vcs"]),
    dangerous_options(&["cmake"], "", &["--toolchain", "-C", "-E", "-P"]),
    dangerous_options(&["ctest"], "S", &["--build-and-test", "--script"]),
    dangerous_options(&["date"], "", &["--s", "-Rs", "-Rus", "-s", "-uRs", "-us"]),
    dangerous_options(&["diff3", "sdiff"], "o", &["--diff-p", "--o"]),
    dangerous_options(&["dmesg"], "CDEcn", &["--cl", "--console-", "--read-c"]),
    dangerous_options(&["docker", "nerdctl", "podman"], "", &["--config"]),
    dangerous_options(&["dpkg"], "", &["--post-i", "--pre-i"]),
    dangerous_options(&["file"], "Cm", &["--co", "--mag"]),
    dangerous_options(&["fzf", "sk"], "", &["--bind", "--listen", "--preview", "--with-shell"]),
    dangerous_options(
        &["gpg"],
        "",
        &[
            "--ag",
            "--dir",
            "--exe",
            "--gpgc",
            "--ho",
            "--keyb",
            "--list-o",
            "--opt",
            "--ph",
            "--verify-o",
        ],
    ),
    dangerous_options(
        &["gradle", "gradlew"],
        "",
        &[
            "--build-file",
            "--gradle-user-home",
            "--include-build",
            "--init-script",
            "--project-dir",
            "--settings-file",
            "-Dorg.gradle.j",
            "-I",
            "-b",
            "-c",
            "-g",
            "-p",
        ],
    ),
    dangerous_options(
        &["helm", "kubectl", "oc"],
        "",
        &["--kubeconfig", "--post-renderer", "--profile"],
    ),
    // It accepts unambiguous abbreviations of options.
    dangerous_options(&["hostname"], "Fb", &["--b", "--fi"]),
    dangerous_options(&["iconv"], "o", &["--o"]),
    dangerous_options(&["install", "ginstall"], "", &["--strip-"]),
    dangerous_options(
        &["journalctl"],
        "",
        &["--cursor-f", "--flush", "--relinq", "--rot", "--setup", "--sync", "--update", "--vac"],
    ),
    dangerous_options(&["hg"], "R", &["--con", "--cw", "--debugg", "--pager", "--rep"]),
    dangerous_options(&["jj"], "R", &["--config", "--repository"]),
    dangerous_options(
        &["just"],
        "cdf",
        &["--choose", "--command", "--justfile", "--shell", "--working-d"],
    ),
    DangerousOptions {
        harmless: &["-fae", "-ff", "-fn"],
        ..dangerous_options(
            &["mvn"],
            "",
            &[
                "--fi",
                "--gl",
                "--se",
                "--to",
                "-Dexec",
                "-Dmaven.ext",
                "-f",
                "-g",
                "-s",
                "-t",
                "exec:",
            ],
        )
    },
    dangerous_options(&["ld", "ld.bfd", "ld.gold", "ld.lld", "lld"], "", &["--pl", "-pl", "@"]),
    dangerous_options(&["mypy"], "", &["--con", "--install", "--python-e"]),
    dangerous_options(&["ninja"], "Cf", &[]),
    dangerous_options(&["nmap"], "", &["--da", "--sc", "-da", "-iL", "-o", "-sc"]),
    dangerous_options(
        &["openssl"],
        "",
        &["--config", "--engine", "--provider", "-config", "-engine", "-pre", "-post", "-provider"],
    ),
    DangerousOptions {
        // Pandoc runs Lua files that are named as the format, possibly followed by format
        // extensions.
        substrings: &[".lua"],
        ..dangerous_options(
            &["pandoc"],
            "FLd",
            &["--data", "--de", "--ext", "--fi", "--lua", "--pdf-engine"],
        )
    },
    dangerous_options(
        &["pip", "pipx"],
        "C",
        &["--build-o", "--conf", "--edi", "--glo", "--install-o", "--log", "--py", "--rep"],
    ),
    dangerous_options(&["ptx"], "G", &["--tr"]),
    dangerous_options(&["pylint"], "", &["--init", "--load", "--output=", "--rc"]),
    // It empties that directory first.
    dangerous_options(&["pytest"], "", &["--baset"]),
    dangerous_options(
        &["rpm", "rpmbuild", "rpmquery"],
        "DE",
        &["--define", "--eval", "--load", "--macros", "--pipe", "--rcfile"],
    ),
    dangerous_options(
        &["rustc"],
        "",
        &[
            "--codegen=link",
            "--codegen=llvm",
            "--extern",
            "-Clink",
            "-Cllvm",
            "-Z",
            "@",
            "codegen-backend",
            "link-a",
            "link_a",
            "linker",
            "llvm-a",
            "llvm_a",
        ],
    ),
    dangerous_options(
        &["prove"],
        "DMPae",
        &["--arc", "--exe", "--form", "--harn", "--mod", "--plug", "--rc"],
    ),
    DangerousOptions {
        value_letters: "FPRTUcdfhpv",
        ..dangerous_options(&["psql"], "Lo", &["--log-f", "--o"])
    },
    dangerous_options(&["mariadb", "mysql"], "", &["--init-c", "--pag", "--plugin", "--tee"]),
    // The pseudo file list may contain commands.
    dangerous_options(&["mksquashfs"], "p", &["-pf"]),
    dangerous_options(&["reset", "tset"], "eik", &[]),
    dangerous_options(&["shuf"], "o", &["--o"]),
    dangerous_options(&["ss"], "DK", &["--di", "--k"]),
    dangerous_options(&["ssh-add"], "DSs", &[]),
    dangerous_options(&["ssh-keygen"], "Dw", &[]),
    dangerous_options(&["svn"], "", &["--config", "--diff-c", "--diff3", "--editor"]),
    dangerous_options(&["tcpdump"], "Fwz", &[]),
    dangerous_options(&["tree"], "Ro", &[]),
];

/// Returns the dangerous options of a program.
pub(super) fn find_options(program: &str) -> Option<&'static DangerousOptions> {
    DANGEROUS_OPTIONS.iter().find(|acts| acts.names.contains(&program))
}

#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    DANGEROUS_OPTIONS.iter().flat_map(|acts| acts.names).copied()
}

impl DangerousOptions {
    /// Whether one of the arguments is dangerous.
    pub(super) fn objects_to(&self, words: &[ShellWord]) -> bool {
        words.iter().enumerate().any(|(at, word)| {
            let argument = word.value.as_str();
            let cluster = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            // Operands may have any name.
            let is_value =
                argument.starts_with('-') || at > 0 && words[at - 1].value.starts_with('-');
            let is_open = !word.is_literal() && is_value;
            let letters = cluster.map(|it| it.split(|c| self.value_letters.contains(c)).next());
            let letters = letters.flatten().unwrap_or_default();
            if word.is_literal() && self.harmless.contains(&argument) {
                return false;
            }
            letters.contains(|c| self.letters.contains(c))
                || self.prefixes.iter().any(|begin| word.may_start_with(begin))
                || self.substrings.iter().any(|part| is_open || argument.contains(part))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{ShellWord, find_options};
    use crate::program_names::canonical_name;

    fn has_one<'w>(program: &str, arguments: impl Iterator<Item = &'w str>) -> bool {
        let words: Vec<_> = arguments.map(ShellWord::from_literal).collect();
        find_options(&canonical_name(program)).is_some_and(|acts| acts.objects_to(&words))
    }

    // SH6
    #[test]
    fn options_that_run_others_are_seen() {
        for text in [
            "kubectl get pods --kubeconfig=x",
            "helm install a b --post-renderer x",
            "gcc -wrapper rm,x y.c",
            "gcc-14 @x",
            "rustc -C linker=x y.rs",
            "apt-get install -oDPkg::Pre-Invoke=x y",
            "pandoc --pdf-engine=x y",
            "pandoc -t x.lua y",
            "pandoc -t x.lua+smart y",
            "pylint --init-hook=x y",
            "date -s x",
            "tree -o x",
            "tree -aRo x",
            "date -us x",
            "apt-get install -yo DPkg::Pre-Invoke::=x y",
            "gcc --specs=x y.c",
            "gcc -E -Wp,-fplugin=x y.c",
            "ld -plugin x y.o",
            "gcc --prefix=x y.c",
            "gcc -Wl,-z,now,-plugin,x y.c",
            "clang -fpass-plugin=x y.c",
            "rustc --extern x=y z.rs",
            "rustc -Clink-arg=x y.rs",
            "rustc -C link_args=x y.rs",
            "rustc @x",
            "file --comp -m x",
            "file -bC x",
            "gpg --agent-prog x --list-keys",
            "gpg --dirmngr-program x --recv-keys y",
            "gpg --ho x --list-keys",
            "gpg --opt x --list-keys",
            "hg log --conf hooks.pre-log=x",
            "hg -vR x log",
            "ninja -vf x",
            "just -nf x",
            "nm --plug x y",
            "objdump @x",
            "openssl rsa --engine x",
            "openssl engine dynamic -pre SO_PATH:x -pre LOAD",
            "rpm -q --pipe x",
            "rpm -E x",
            "bat --pager=x y",
            "cloc --vcs=x y",
            "cmake -P x",
            "gradle -Dorg.gradle.java.home=x build",
            "mvn -Dmaven.ext.class.path=x test",
            "pytest --basetemp=x",
            "svn diff --diff-cmd x",
            "fzf --preview=x",
            "tcpdump -i any -z x",
        ] {
            let mut words = text.split(' ');
            assert!(has_one(words.next().unwrap(), words), "{text}");
        }
        for text in [
            "kubectl get pods -n a",
            "gcc -O2 -Wall x.c -o x -lm",
            "rustc -C opt-level=3 -Clto link.rs",
            "mvn test --fail-fast",
            "date -Iseconds",
            "file -bi x",
            "apt-get install -y x",
            "cmake -S . -B build -DCMAKE_BUILD_TYPE=Debug",
            "cmake --build build -j 4",
            "ctest --output-on-failure -j4",
            "gpg --verify x.asc",
            "gradle build --parallel --offline -x test",
            "hg log -l 5",
            "mvn -q -B test -DskipTests -pl a",
            "ninja -j4 -v",
            "nm -C x",
            "openssl x509 -in a -noout -text",
            "pandoc -o a.html a.md",
            "pytest -x -q tests",
            "rpm -qa",
            "ssh-keygen -lf x",
            "tree -L 2 -a",
        ] {
            let mut words = text.split(' ');
            assert!(!has_one(words.next().unwrap(), words), "{text}");
        }
    }
}
