//! One layer at a time.

use super::*;

fn words(text: &str) -> Vec<ShellWord> {
    text.split(' ').map(ShellWord::from_literal).collect()
}

#[track_caller]
fn check(text: &str, inner: &[&str], asks: Option<OpaqueReason>) {
    let words = words(text);
    let layer = unwrap_layer(&words);
    let found: Vec<String> =
        layer.command_ranges.iter().map(|range| join_values(&words[range.clone()])).collect();
    assert_eq!(
        (found, layer.approval_reason),
        (inner.iter().map(|&text| text.to_owned()).collect(), asks),
        "{text}"
    );
}

#[test]
fn options_are_read_past() {
    check("timeout -k 5 --signal=KILL 10 make x", &["make x"], None);
    check("nice -n5 make", &["make"], None);
    check("env -i -u HOME A=1 make", &["A=1 make"], None);
    check("A=1 B=2 make", &["make"], Some(OpaqueReason::Assignment));
    check("sudo -nE -u root -- ls -l", &["ls -l"], None);
    check("xargs -0 -I{} -P4 mv {} x", &["mv {} x"], None);
    check("uv run pytest", &["pytest"], None);
    check("find . -exec a {} ; -ok b + ;", &["a {}", "b +"], Some(OpaqueReason::RiskyArgument));
    check(
        "find . -exec a + {} + -ok b {} + c ;",
        &["a + {}", "b {} + c"],
        Some(OpaqueReason::RiskyArgument),
    );
    check("find -name -exec -exec a ;", &["-exec a", "a"], Some(OpaqueReason::RiskyArgument));
    check("fd -x a {} + b", &["a {} + b"], Some(OpaqueReason::RiskyArgument));
    check("find . -exec a \\; -x ;", &["a \\; -x"], Some(OpaqueReason::RiskyArgument));
    check("find . -exec a \\;", &["a"], Some(OpaqueReason::RiskyArgument));
    check("command -v git", &[], None);
    check("timeout 5", &[], None);
    check("git checkout main", &[], None);
}

#[test]
fn an_unknown_option_makes_every_word_a_command() {
    check("timeout --new 5 ls", &["--new 5 ls", "5 ls", "ls"], Some(OpaqueReason::WrapperOptions));
    check(
        "setarch x86_64 -R ls",
        &["x86_64 -R ls", "-R ls", "ls"],
        Some(OpaqueReason::WrapperOptions),
    );
    // Their values may be left out.
    check(
        "xargs --max-lines rm x",
        &["--max-lines rm x", "rm x", "x"],
        Some(OpaqueReason::WrapperOptions),
    );
    check(
        "xargs --replace rm x",
        &["--replace rm x", "rm x", "x"],
        Some(OpaqueReason::WrapperOptions),
    );
    check("chrt -o rm x", &["rm x", "x"], Some(OpaqueReason::WrapperOptions));
    check("setarch -R rm x", &["-R rm x", "rm x", "x"], Some(OpaqueReason::WrapperOptions));
    check("sudo -h rm x", &["-h rm x", "rm x", "x"], Some(OpaqueReason::WrapperOptions));
    check("pnpm -r exec rm x", &["rm x", "x"], Some(OpaqueReason::WrapperOptions));
    check("npm install x", &[], None);
    let layer =
        unwrap_layer(&[ShellWord::from_literal("env"), ShellWord::from_literal("-Srm -rf x")]);
    assert_eq!(layer.scripts, [("rm -rf x".to_owned(), ScriptLanguage::Other)]);
}

#[test]
fn scripts_are_found() {
    for (argv, script, transparent) in [
        (&["bash", "-c", "a; b"][..], "a; b", true),
        (&["/bin/sh", "-c", "a"], "a", true),
        (&["/bin/sh", "-lc", "a"], "a", false),
        (&["bash", "-xc", "a"], "a", false),
        (&["bash", "-c", "a", "b"], "a", false),
        (&["bash", "--norc", "-c", "a"], "a", false),
        (&["zsh", "-c", "a"], "a", false),
        (&["eval", "a", "b"], "a b", false),
        (&["watch", "-n", "1", "a", "b"], "a b", false),
        (&["su", "-", "me", "-c", "a"], "a", false),
        (&["script", "-qc", "a", "x"], "a", false),
        (&["flock", "lock", "-c", "a"], "a", false),
        (&["trap", "a; b", "EXIT"], "a; b", false),
        (&["cmd.exe", "/c", "dir"], "dir", false),
        (&["pwsh", "-NoProfile", "-Command", "Get-Date"], "Get-Date", false),
    ] {
        let words: Vec<_> = argv.iter().map(|word| ShellWord::from_literal(word)).collect();
        let layer = unwrap_layer(&words);
        assert_eq!(layer.scripts.first().map(|(text, _)| &**text), Some(script), "{argv:?}");
        assert_eq!(layer.is_transparent, transparent, "{argv:?}");
    }
}

// SH10: more words may come at the end of what is inside, too.
#[test]
fn appended_words_reach_nested_command() {
    for (script, expected) in [
        ("xargs git log", &["git log"][..]),
        ("xargs timeout 5 nice git log", &["timeout 5 nice git log", "nice git log", "git log"]),
        ("xargs git-log", &["git-log", "git log"]),
        ("timeout 5 git log", &[]),
        ("xargs sh -c 'git log'", &["sh -c 'git log'"]),
    ] {
        let commands = crate::analyze_script(script).commands;
        let open: Vec<_> =
            commands.iter().filter(|it| it.has_open_end).map(|it| &*it.text).collect();
        assert_eq!(open, expected, "{script}");
    }
    for script in ["xargs watch git log", "xargs git for-each-repo --config=a"] {
        let asks = crate::analyze_script(script).commands[1].approval_reason;
        assert_eq!(asks, Some(OpaqueReason::WrapperOptions), "{script}");
    }
}

#[test]
fn redefining_builtins_need_approval() {
    for text in ["export A=1", "alias ls=rm", "set -x", "source x", ". x", "bash x.sh", "sh"] {
        assert!(unwrap_layer(&words(text)).approval_reason.is_some(), "{text}");
    }
}
