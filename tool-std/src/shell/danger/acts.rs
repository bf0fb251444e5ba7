//! Options with which programs run others, load code or write files, as data.
//!
//! Of these programs too little is known for a list of all that is harmless: they have too
//! many options. So the dangerous ones are listed.

/// Programs, and the beginnings of words that are dangerous among their arguments.
const ACTS: &[(&[&str], &[&str])] = &[
    (&["apt", "apt-get", "aptitude"], &["-c", "-o", "--config-file", "--option"]),
    (
        &["c++", "cc", "clang", "clang++", "g++", "gcc"],
        &["-B", "-Xclang", "-fplugin", "-specs", "-wrapper", "@"],
    ),
    (&["ctest"], &["-S", "--build-and-test", "--script"]),
    (&["date"], &["-s", "--s"]),
    (&["docker", "nerdctl", "podman"], &["--config"]),
    (&["file"], &["-C", "-m", "--compile", "--magic-file"]),
    (&["gpg"], &["--agent-program", "--exec-path", "--list-options", "--photo-viewer"]),
    (&["gradle", "gradlew"], &["-I", "-b", "-p", "--init-script", "--project-dir"]),
    (&["helm", "kubectl", "oc"], &["--kubeconfig", "--post-renderer"]),
    (&["just"], &["-c", "-d", "-f", "--chooser", "--command", "--justfile", "--shell"]),
    (
        &["mvn"],
        &["-Dexec", "-f", "-gs", "-s", "--file", "--global-settings", "--settings", "exec:"],
    ),
    (&["mypy"], &["--config-file", "--python-executable"]),
    (&["ninja"], &["-C", "-f"]),
    (&["nmap"], &["-iL", "-o", "--datadir", "--script"]),
    (&["openssl"], &["-config", "-engine", "-provider"]),
    (&["pandoc"], &["-F", "-L", "-d", "--defaults", "--filter", "--lua-filter", "--pdf-engine"]),
    (&["pylint"], &["--init-hook", "--load-plugins", "--rcfile"]),
    (&["rustc"], &["-Clinker", "-Z", "codegen-backend", "linker", "--codegen=linker"]),
    (&["ssh-add", "ssh-keygen"], &["-D", "-w"]),
    (&["tree"], &["-o"]),
];

/// Whether one of the arguments is dangerous to a program of this name.
pub(super) fn has_one<'w>(program: &str, mut arguments: impl Iterator<Item = &'w str>) -> bool {
    // `gcc-14` is `gcc` too.
    let family = program.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let is_named = |names: &[&str]| names.contains(&program) || names.contains(&family);
    let Some((_, acts)) = ACTS.iter().find(|(names, _)| is_named(names)) else { return false };
    arguments.any(|argument| acts.iter().any(|act| argument.starts_with(act)))
}

#[cfg(test)]
mod tests {
    use super::has_one;

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
            "pylint --init-hook=x y",
            "date -s x",
            "tree -o x",
        ] {
            let mut words = text.split(' ');
            assert!(has_one(words.next().unwrap(), words), "{text}");
        }
        for text in ["kubectl get pods -n a", "gcc -O2 -Wall x.c -o x", "rustc -C opt-level=3 x.rs"]
        {
            let mut words = text.split(' ');
            assert!(!has_one(words.next().unwrap(), words), "{text}");
        }
    }
}
