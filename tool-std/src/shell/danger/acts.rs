//! Options with which programs run others, load code or write files, as data.
//!
//! Of these programs too little is known for a list of all that is harmless: they have too
//! many options. So the dangerous ones are listed.

use crate::shell::word::Word;

/// What is dangerous among the arguments of some programs.
#[derive(Debug)]
pub(super) struct Acts {
    names: &'static [&'static str],
    /// Options of one letter, also among others behind one dash.
    letters: &'static str,
    /// How words begin: long options as short as they may be cut.
    begins: &'static [&'static str],
    /// What stands anywhere in words.
    within: &'static [&'static str],
}

const fn acts(
    names: &'static [&'static str],
    letters: &'static str,
    begins: &'static [&'static str],
) -> Acts {
    Acts { names, letters, begins, within: &[] }
}

const ACTS: &[Acts] = &[
    Acts { within: &[":"], ..acts(&["cpio"], "", &["--rsh"]) },
    acts(&["ack", "ag", "bat", "batcat", "delta"], "", &["--ackrc", "--out", "--pager"]),
    acts(&["apt", "apt-get", "aptitude"], "co", &["--config-file", "--option"]),
    acts(
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
    acts(&["bazel", "bazelisk"], "", &["--bazelrc", "--run_under"]),
    acts(
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
    acts(&["cloc"], "", &["--conf", "--ext", "--vcs", "-conf", "-ext", "-vcs"]),
    acts(&["cmake"], "", &["--toolchain", "-C", "-E", "-P"]),
    acts(&["ctest"], "S", &["--build-and-test", "--script"]),
    acts(&["date"], "", &["--s", "-Rs", "-Rus", "-s", "-uRs", "-us"]),
    acts(&["diff3", "sdiff"], "o", &["--diff-p", "--o"]),
    acts(&["dmesg"], "CDEcn", &["--cl", "--console-", "--read-c"]),
    acts(&["docker", "nerdctl", "podman"], "", &["--config"]),
    acts(&["dpkg"], "", &["--post-i", "--pre-i"]),
    acts(&["file"], "Cm", &["--co", "--mag"]),
    acts(&["fzf", "sk"], "", &["--bind", "--listen", "--preview", "--with-shell"]),
    acts(
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
    acts(
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
    acts(&["helm", "kubectl", "oc"], "", &["--kubeconfig", "--post-renderer", "--profile"]),
    // It takes any beginning of an option that is no other's.
    acts(&["hostname"], "Fb", &["--b", "--f"]),
    acts(&["iconv"], "o", &["--o"]),
    acts(&["install", "ginstall"], "", &["--strip-"]),
    acts(
        &["journalctl"],
        "",
        &["--cursor-f", "--flush", "--relinq", "--rot", "--setup", "--sync", "--update", "--vac"],
    ),
    acts(&["hg"], "R", &["--con", "--cw", "--debugg", "--pager", "--rep"]),
    acts(&["jj"], "R", &["--config", "--repository"]),
    acts(&["just"], "cdf", &["--choose", "--command", "--justfile", "--shell", "--working-d"]),
    acts(
        &["mvn"],
        "",
        &["--fi", "--gl", "--se", "--to", "-Dexec", "-Dmaven.ext", "-f", "-g", "-s", "-t", "exec:"],
    ),
    acts(&["ld", "ld.bfd", "ld.gold", "ld.lld", "lld"], "", &["--pl", "-pl", "@"]),
    acts(&["mypy"], "", &["--con", "--install", "--python-e"]),
    acts(&["ninja"], "Cf", &[]),
    acts(&["nmap"], "", &["--da", "--sc", "-da", "-iL", "-o", "-sc"]),
    acts(
        &["openssl"],
        "",
        &["--config", "--engine", "--provider", "-config", "-engine", "-pre", "-post", "-provider"],
    ),
    Acts {
        // It runs those in which a format is told, perhaps with extensions of that.
        within: &[".lua"],
        ..acts(&["pandoc"], "FLd", &["--data", "--de", "--ext", "--fi", "--lua", "--pdf-engine"])
    },
    acts(
        &["pip", "pipx"],
        "C",
        &["--build-o", "--conf", "--edi", "--glo", "--install-o", "--log", "--py", "--rep"],
    ),
    acts(&["ptx"], "G", &["--tr"]),
    acts(&["pylint"], "", &["--init", "--load", "--output=", "--rc"]),
    // It empties that folder first.
    acts(&["pytest"], "", &["--baset"]),
    acts(
        &["rpm", "rpmbuild", "rpmquery"],
        "DE",
        &["--define", "--eval", "--load", "--macros", "--pipe", "--rcfile"],
    ),
    acts(
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
    acts(&["prove"], "DMPae", &["--arc", "--exe", "--form", "--harn", "--mod", "--plug", "--rc"]),
    acts(&["psql"], "Lo", &["--log-f", "--o"]),
    acts(&["mariadb", "mysql"], "", &["--init-c", "--pag", "--plugin", "--tee"]),
    // What stands in the list of files may be a command.
    acts(&["mksquashfs"], "p", &["-pf"]),
    acts(&["reset", "tset"], "eik", &[]),
    acts(&["shuf"], "o", &["--o"]),
    acts(&["ss"], "DK", &["--di", "--k"]),
    acts(&["ssh-add"], "DSs", &[]),
    acts(&["ssh-keygen"], "Dw", &[]),
    acts(&["svn"], "", &["--config", "--diff-c", "--diff3", "--editor"]),
    acts(&["tcpdump"], "Fwz", &[]),
    acts(&["tree"], "Ro", &[]),
];

/// What is known of a program of this name.
pub(super) fn of(program: &str) -> Option<&'static Acts> {
    ACTS.iter().find(|acts| acts.names.contains(&program))
}

#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ACTS.iter().flat_map(|acts| acts.names).copied()
}

impl Acts {
    /// Whether one of the arguments is dangerous to it.
    pub(super) fn object_to(&self, words: &[Word]) -> bool {
        words.iter().enumerate().any(|(at, word)| {
            let argument = word.value.as_str();
            let cluster = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            // What is worked on has any name.
            let is_value =
                argument.starts_with('-') || at > 0 && words[at - 1].value.starts_with('-');
            let is_open = !word.is_literal() && is_value;
            cluster.is_some_and(|cluster| cluster.contains(|c| self.letters.contains(c)))
                || self.begins.iter().any(|begin| word.may_begin(begin))
                || self.within.iter().any(|part| is_open || argument.contains(part))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Word, of};
    use crate::shell::program::known_name;

    fn has_one<'w>(program: &str, arguments: impl Iterator<Item = &'w str>) -> bool {
        let words: Vec<_> = arguments.map(Word::literal).collect();
        of(&known_name(program)).is_some_and(|acts| acts.object_to(&words))
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
