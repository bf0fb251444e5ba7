//! Scripts over a kept shell: the same as without one, only sooner.

use std::fs;
use std::time::Duration;

use serde_json::json;
use tool_sdk::Settings;
use tool_sdk::process::Processes;

use crate::support::{Host, field, output};

impl Host {
    /// Keeps a shell for scripts.
    fn keeping(mut self) -> Self {
        let mut settings = Settings::default();
        settings.kept_shell = true;
        self.session = self.session.lend(settings);
        self
    }

    /// The end of a script and what it wrote.
    async fn end_of(&self, script: &str) -> (String, String) {
        let report = self.call("shell_command", json!({ "command": script })).await;
        (field(&report, "Exit code: ").to_owned(), output(&report).to_owned())
    }

    /// Which shell runs a script.
    async fn shell(&self) -> String {
        let (_, shell) = self.end_of("true; sh -c 'echo $PPID'; true").await;
        shell
    }
}

// S9: the mode changes nothing that a script says, and keeps its shell.
#[tokio::test]
async fn scripts_end_and_write_as_without_it() {
    let (kept, plain) = (Host::open().keeping(), Host::open());
    for host in [&kept, &plain] {
        fs::write(host.folder.path().join("a b.txt"), "one\ntwo\n").unwrap();
        fs::create_dir(host.folder.path().join("ü")).unwrap();
    }
    for script in [
        "true; true",
        "echo a; false",
        "false || echo x",
        "true && false && echo never",
        "false | true",
        "true | false",
        "echo one two | tr a-z A-Z | cat",
        "cat 'a b.txt' | wc -l; ls *.txt",
        "ls *.none || echo none",
        "nothing-of-this-name; echo after",
        "echo before; nothing-of-this-name",
        "echo a\nnothing-of-this-name\n\n./nothing-either",
        "cat | wc -c",
        "sh -c 'exit 77'; sh -c 'exit 78'",
        "[ -f 'a b.txt' ] && test -d ü && echo both",
        "[ a -eq b ]; echo after",
        "echo grün 日本 '$HOME' \"a  b\"; ls",
        "sh -c 'echo out; echo err >&2'; echo last",
        "seq 1 200000 | tail -n 1; seq 1 300000",
        "sh -c 'kill -9 $$'; echo killed | tr a-z A-Z",
        "sh -c 'kill -PIPE $$'; echo after",
        "echo \"it's\" 'a\nb'; pwd -P | grep -c /",
        "true; env -i /usr/bin/env",
        "ls /proc/self/fd | wc -l; echo end",
        "true; sh -c 'ulimit -n; umask; trap'",
        "dd if=/dev/zero bs=1000 count=1 status=none | wc -c; true",
    ] {
        // What bash says of a child that was killed has its number.
        let comparable = |(exit, text): (String, String)| {
            let text: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
            let is_number = |word: &&String| word.parse::<u32>().is_err() || text.len() > 20;
            (exit, text.iter().filter(is_number).cloned().collect::<Vec<_>>())
        };
        let expected = plain.end_of(script).await;
        let got = kept.end_of(script).await;
        if script.contains("kill -9") {
            assert_eq!(comparable(got), comparable(expected), "{script}");
        } else {
            assert_eq!(got, expected, "{script}");
        }
    }
    assert_eq!(kept.shell().await, kept.shell().await);
    assert_ne!(plain.shell().await, plain.shell().await);
    assert!(Processes::of(&kept.session).list().is_empty());
}

#[tokio::test]
async fn tmp() {
    let kept = Host::open().keeping();
    let _ = (kept, Duration::ZERO);
}
