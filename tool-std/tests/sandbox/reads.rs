//! Files that deny rules keep from being read cannot be read by any command in the sandbox.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::{Machine, confined, json, run};

/// Opens each path of its arguments, of which dots were made of `+`, so that the analysis of the
/// command finds no path in its words.
const OPENS: &str = "import os, sys
for name in sys.argv[1:]:
    path = name.replace('+', '.').replace('@', '/')
    try:
        print(name, 'is', open(path).read() if os.path.isfile(path) else os.listdir(path))
    except OSError as error:
        print(name, 'fails', error.errno)
";

/// A workspace with files to hide, and a folder outside of it.
struct SecretFiles {
    root: TempDir,
    outside: TempDir,
}

impl SecretFiles {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        for folder in ["secrets/inner", "src"] {
            fs::create_dir_all(root.path().join(folder)).expect("it is made");
        }
        for file in ["secrets/x", "secrets/inner/y", "src/dev.env", "prod.env", "src/main.rs"] {
            fs::write(root.path().join(file), format!("canary {file}")).expect("it is written");
        }
        fs::write(outside.path().join("key"), "canary key").expect("it is written");
        fs::write(root.path().join("opens.py"), OPENS).expect("it is written");
        Self { root, outside }
    }

    fn root(&self) -> &Path {
        self.root.path()
    }

    fn outside(&self) -> String {
        self.outside.path().canonicalize().expect("it is there").display().to_string()
    }

    /// Runs the script for `paths`; returns its output and the sandbox status.
    fn open(&self, options: &[&str], paths: &[&str]) -> (String, Value) {
        let spell = |path: &&str| path.replace('.', "+").replace('/', "@");
        let words: Vec<String> = paths.iter().map(spell).collect();
        let line = format!("python3 opens.py {}", words.join(" "));
        let (text, display) = confined(self.root(), options, &line);
        (text, display["sandbox"].clone())
    }
}

// F193, SB2, SB9
#[test]
fn denied_files_cannot_be_read_by_a_command() {
    if !Machine::new().is_whole() {
        return;
    }
    let files = SecretFiles::new();
    let outside = files.outside();
    let denials = ["--deny=read(secrets/**)", "--deny=read(*.env)"];
    let outside_denial = format!("--deny=read({outside}/**)");
    let options = ["--sandbox=required", denials[0], denials[1], &outside_denial];
    let key = format!("{outside}/key");
    let hidden =
        ["secrets/x", "secrets/inner/y", "secrets", "src/dev.env", "prod.env", &key, &outside];
    let (text, status) = files.open(&options, &hidden);
    assert_eq!(text.matches("fails 13").count(), hidden.len(), "{text}");
    assert!(!text.contains("canary"), "{text}");
    assert_eq!(status["reads"], "full", "{status}");

    let (text, _) = files.open(&options, &["src/main.rs", "src"]);
    assert!(text.contains("canary src/main.rs") && text.contains("'dev.env'"), "{text}");
    let line = "touch new src/new && mv src src2 && echo ok";
    let (text, _) = confined(files.root(), &options, line);
    assert!(text.contains("ok") && files.root().join("src2/new").exists(), "{text}");
    let content = fs::read_to_string(files.root().join("src2/dev.env")).expect("it is there");
    assert_eq!(content, "canary src/dev.env");

    // Without such a rule nothing is covered, and no status says so.
    let (text, status) = files.open(&["--sandbox=required"], &hidden);
    assert!(text.contains("canary key") && status.get("reads").is_none(), "{text}{status}");
}

// F193: a command cannot uncover a file.
#[test]
fn covered_files_stay_covered() {
    if !Machine::new().is_whole() {
        return;
    }
    let files = SecretFiles::new();
    symlink("prod.env", files.root().join("link")).expect("it is made");
    fs::write(
        files.root().join("tries.py"),
        "import os
name = 'prod' + '.env'
for attempt in [
    lambda: os.chmod(name, 0o777),
    lambda: os.rename(name, 'moved'),
    lambda: os.remove(name),
    lambda: os.link(name, 'hard'),
    lambda: open(name, 'w'),
    lambda: open('link').read(),
    lambda: os.rename('src', 'src2') or open('src2/dev' + '.env').read(),
]:
    try:
        print('done', attempt())
    except OSError as error:
        print('fails', error.errno)
",
    )
    .expect("it is written");
    let options = ["--sandbox=required", "--deny=read(*.env)"];
    let (text, _) = confined(files.root(), &options, "python3 tries.py");
    assert_eq!(text.matches("fails").count(), 7, "{text}");
    assert!(!text.contains("done") && !text.contains("canary"), "{text}");
}

// F193, PA6: a later rule that allows some of it, a rule that names a link, and a link that a rule
// names.
#[test]
fn files_are_denied_as_for_other_tools() {
    if !Machine::new().is_whole() {
        return;
    }
    let files = SecretFiles::new();
    let outside = files.outside();
    symlink(&outside, files.root().join("lent")).expect("it is made");
    symlink(format!("{outside}/key"), files.root().join("key.pem")).expect("it is made");
    symlink("secrets", files.root().join("alias")).expect("it is made");
    let key = format!("{outside}/key");
    let inner = "secrets/inner/y";
    for (rules, path, is_readable) in [
        (&["--deny=read(secrets/**)", "--allow=read(secrets/inner/*)"][..], inner, true),
        (&["--deny=read(secrets/**)", "--allow=read(secrets/inner/*)"], "secrets/x", false),
        (&["--allow=read(secrets/inner/*)", "--deny=read(secrets/**)"], inner, false),
        (&["--deny=read(alias/*)"], inner, false),
        (&["--deny=read(lent/*)"], &key, false),
        (&["--deny=read(*.pem)"], &key, false),
        (&["--deny=read(path: secrets/*)"], "secrets/x", false),
        (&["--deny=read"], "src/main.rs", false),
        (&["--ask=read(secrets/**)"], "secrets/x", true),
    ] {
        let (text, status) = files.open(&[&["--sandbox=required"], rules].concat(), &[path]);
        assert_eq!(text.contains("canary"), is_readable, "{rules:?}: {text}");
        assert_ne!(status["reads"], "partial", "{rules:?}: {status}");
    }
}

// F193, SB2: what cannot be found refuses to run with `required`, and is reported with
// `best_effort`.
#[test]
fn files_that_cannot_be_found_are_a_gap() {
    if !Machine::new().is_whole() {
        return;
    }
    let files = SecretFiles::new();
    let outside = files.outside();
    let parent = Path::new(&outside).parent().expect("a folder").display().to_string();
    let root = files.root().canonicalize().expect("it is there");
    let around = root.parent().expect("a folder").display().to_string();
    symlink("/", files.root().join("all")).expect("it is made");
    for (rule, reason) in [
        (format!("read({parent}/*/key)"), "is not searched for outside of the workspace"),
        (format!("read({around}/**)"), "is around the workspace"),
        ("read(all/**)".to_owned(), "leads to a folder around the workspace"),
    ] {
        let rules = ["--deny=read(secrets/**)", "--deny", &rule];
        let call = ["--yes", "call", "exec_command", "--cmd", "touch ran"];
        let refused = run(files.root(), &[&["--sandbox=required"], &rules[..], &call].concat());
        let error = String::from_utf8_lossy(&refused.stderr);
        assert!(error.contains("reads partial") && error.contains(reason), "{rule}: {error}");
        assert!(!files.root().join("ran").exists());

        let options = [&["--sandbox=best_effort"], &rules[..]].concat();
        let (_, display) = confined(files.root(), &options, "echo ran");
        let status = &display["sandbox"];
        assert_eq!((&display["exit_code"], &status["reads"]), (&0.into(), &"partial".into()));
        assert!(status["reasons"].to_string().contains(reason), "{rule}: {status}");
    }
    // What is found is covered all the same.
    let options = ["--sandbox=best_effort", "--deny=read(secrets/**)", "--deny=read(/*/none)"];
    let (text, status) = files.open(&options, &["secrets/x"]);
    assert_eq!(status["reads"], "partial", "{status}");
    assert!(text.contains("fails 13") && !text.contains("canary"), "{text}");
}

// F193: a command that needs no approval because it is confined reads nothing that rules deny.
#[test]
fn a_gap_needs_an_approval() {
    if !Machine::new().is_whole() {
        return;
    }
    let files = SecretFiles::new();
    let decide = |rule: &str| {
        let options = ["--sandbox=best_effort", "--sandbox-auto-allow", "--no-input", "--deny"];
        let call = [rule, "check", "exec_command", "--json", "--cmd", "make test"];
        json(&run(files.root(), &[&options[..], &call].concat()))["decision"].clone()
    };
    assert_eq!(decide("read(secrets/**)"), "allow");
    assert_eq!(decide("read(/var/*/secrets/**)"), "ask");
}

// F193: a command does not start in a folder that it could not enter.
#[test]
fn no_command_starts_in_a_covered_folder() {
    if !Machine::new().is_whole() {
        return;
    }
    let files = SecretFiles::new();
    let options = ["--sandbox=required", "--deny=read(secrets/**)", "--yes"];
    let call = ["call", "exec_command", "--workdir=secrets", "--cmd", "touch ran"];
    let output = run(files.root(), &[&options[..], &call].concat());
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("the working folder is in"), "{text}");
    assert!(!files.root().join("secrets/ran").exists());
}
