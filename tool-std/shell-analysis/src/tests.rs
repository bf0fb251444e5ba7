//! The layers together, and how much work they do.

use super::*;

#[track_caller]
fn check(script: &str, texts: &[&str]) {
    let analysis = analyze_script(script);
    let found: Vec<_> = analysis.commands.iter().map(|command| &*command.text).collect();
    assert_eq!((found.as_slice(), analysis.opaque), (texts, None), "{script}");
}

#[test]
fn every_layer_is_listed() {
    check("timeout 5 sudo ls", &["timeout 5 sudo ls", "sudo ls", "ls"]);
    check("bash -c 'a && b'", &["bash -c 'a && b'", "a", "b"]);
    check("echo $(a $(b))", &["echo $(a $(b))", "a $(b)", "b"]);
    check("find . -exec mv {} x \\;", &["find . -exec mv '{}' x ';'", "mv {} x"]);
    check("A=1 b c", &["A=1 b c", "b c"]);
}

#[test]
fn only_what_may_stand_alone_is_run_without_a_shell() {
    for (script, expected) in [
        ("git commit -m 'a b'", true),
        ("git status; ls", false),
        ("ls *.rs", false),
        ("ls > x", false),
        ("cd x", false),
        ("bash -c ls", true),
    ] {
        assert_eq!(analyze_script(script).direct_argv().is_some(), expected, "{script}");
    }
}

#[test]
fn a_wrapper_is_safe_by_itself() {
    let commands = analyze_script("timeout 5 git push").commands;
    assert!(commands[0].is_safe && !commands[1].is_safe);
    assert!(!analyze_script("sudo ls").commands[0].is_safe);
    assert!(!analyze_script("timeout $X ls").commands[0].is_safe);
    // The variables that it takes away keep git from the settings in a folder.
    assert!(analyze_script("env git status").is_safe());
    for script in ["env -i git status", "env -u GIT_CONFIG_COUNT git status"] {
        assert!(!analyze_script(script).is_safe(), "{script}");
    }
}

#[test]
fn asks_say_why() {
    for (script, why) in [
        ("A=1 ls", OpaqueReason::Assignment),
        ("./ls", OpaqueReason::ProgramPath),
        ("$X ls", OpaqueReason::UnknownProgram),
        ("l? x", OpaqueReason::UnknownProgram),
        ("ls $X", OpaqueReason::Parameter),
        ("rg --pre=x y", OpaqueReason::RiskyArgument),
        ("rg $(x) y", OpaqueReason::RiskyArgument),
        ("rg *", OpaqueReason::RiskyArgument),
        ("export A", OpaqueReason::Redefines),
        ("source x", OpaqueReason::SourcedCommands),
        ("env -S x", OpaqueReason::WrapperOptions),
        ("bash -lc ls", OpaqueReason::LoginShell),
        ("sh --login -c ls", OpaqueReason::LoginShell),
    ] {
        assert_eq!(analyze_script(script).commands[0].approval_reason, Some(why), "{script}");
    }
    for script in ["ls src/*", "echo $(date)", "/usr/bin/git push", "git commit -m \"$(date)\""] {
        assert_eq!(analyze_script(script).commands[0].approval_reason, None, "{script}");
    }
}

#[test]
fn folder_change_changes_fingerprint() {
    assert_eq!(
        analyze_script("ls && cd a && echo b > c").opaque,
        Some(OpaqueReason::FolderChanged)
    );
    assert_eq!(analyze_script("cd a && echo b > c").opaque, None);
    assert_eq!(analyze_script("cd a && echo b > /tmp/c").opaque, None);
    assert!(analyze_script("git status").is_safe());
    assert!(!analyze_script("cd a && git status").is_safe());
}

#[test]
fn programs_without_a_shell_are_understood_too() {
    let argv = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let script = analyze_argv(&argv(&["echo", "$HOME; rm -rf x"]));
    assert_eq!(script.commands[0].text, "echo '$HOME; rm -rf x'");
    assert!(script.direct_argv().is_some() && script.is_safe());
    assert!(analyze_argv(&argv(&["sh", "-c", "rm -rf x"])).is_dangerous());
    assert_eq!(analyze_argv(&[]).opaque, Some(OpaqueReason::Empty));
    assert_eq!(
        analyze_argv(&argv(&["ls", "\u{202e}"])).opaque,
        Some(OpaqueReason::InvisibleCharacters)
    );
}

// SH10
#[test]
fn remote_commands_are_found() {
    for script in [
        "ssh host rm -rf x",
        "ssh host 'cd a && rm -rf x'",
        "docker exec -it a rm -rf x",
        "git -c alias.x='!rm -rf x' x",
        "python3 -c 'run([\"rm\", \"-rf\", \"x\"])'",
        "GIT_PAGER='rm -rf x' git log",
    ] {
        let analysis = analyze_script(script);
        let mut hidden = analysis.commands.iter().filter(|command| command.is_embedded);
        assert!(hidden.any(|command| command.text == "rm -rf x"), "{script}: {analysis:?}");
        assert!(analysis.is_dangerous(), "{script}");
    }
}

// F87
#[test]
fn dangerous_commands_are_found_when_nested() {
    for script in [
        "sudo rm -rf x",
        "bash -c \"bash -c 'rm -fr x'\"",
        "for f in *; do rm -rf \"$f\"; done",
        "echo \"$(rm -f x)\"",
        "trap 'rm -rf x' EXIT",
        "find . -exec rm -f {} +",
        "bash <<'E'\nrm -rf x\nE",
    ] {
        assert!(analyze_script(script).is_dangerous(), "{script}");
    }
    assert!(!analyze_script("git commit -m 'rm -rf x'").is_dangerous());
}

/// `piece` again and again, each time with another number for `@`.
fn repeated(piece: &str, size: usize) -> String {
    let mut script = String::with_capacity(size + piece.len());
    for number in 0.. {
        if script.len() >= size {
            break;
        }
        script.push_str(&piece.replace('@', &number.to_string()));
    }
    script
}

/// The work per byte of hostile text is bounded, for any text of any length.
#[test]
fn work_is_linear() {
    for piece in [
        "(",
        ")",
        "{ ",
        "}",
        "'",
        "\"",
        "\\",
        "$(",
        "`",
        "<(",
        "<<E\n",
        "<<'E'\n",
        "a;",
        "a ",
        "$((",
        "${",
        "if a; then ",
        "sudo ",
        "sudo -? @ ",
        "eval ",
        "eval @ ",
        "env -S@",
        "=",
        "env A=@ ",
        "find -exec @ ",
        "bash -c ",
        "bash -c '",
        "timeout 1 ",
        "xargs -I{} ",
        "A=@ ",
        "\\\n",
        "#\n",
        "{a,",
        "> @ ",
        "a>b ",
        "$x",
        "*",
        "~",
        "&& ",
        "é",
        "time ",
        "trap '",
        "watch -n1 ",
        "bash -c 'eval @ ",
        "sudo -@ 'a b' ",
        "python -c a@ ",
        "ssh h@ ",
        "env a@=b@ ",
        "timeout -x@ ",
        "ln a@ b;echo > c@;",
        "(echo > c@)",
        "git -c a@ ",
    ] {
        for size in [16 * 1024, 64 * 1024, 1024 * 1024] {
            let script = repeated(piece, size);
            let work = analyze::work(&script);
            let bound = analyze::MAX_WORK + 8 * size.min(analyze::MAX_BYTES);
            assert!(work <= bound.min(160 * size), "{piece:?}: {work} for {size}");
        }
    }
}

// What was not looked at must not run, and what daily work needs is looked at.
#[test]
fn truncates_oversized_scripts() {
    for script in ["ls;".repeat(50_000), "sudo ".repeat(20_000), "a".repeat(200_000)] {
        let analysis = analyze_script(&script);
        assert!(analysis.is_truncated() && analysis.opaque.is_some() && !analysis.is_safe());
    }
    assert!(analyze_argv(&["echo".to_owned(), "a".repeat(200_000)]).is_truncated());
    for script in ["ls -l src;".repeat(500), format!("python3 -c '{}'", "x = f(y)\n".repeat(1_500))]
    {
        assert!(!analyze_script(&script).is_truncated());
    }
}

// F87: what may turn out to force a removal counts as doing so.
#[test]
fn a_removal_that_may_be_forced_is_dangerous() {
    for script in [
        "rm $f x",
        "rm \"$f\" x",
        "rm *",
        "echo -rf / | xargs rm",
        "rm -r ~root",
        "rm -r ${HOME:?}/",
        "find / -delete",
        "find ~ -name x -delete",
    ] {
        assert!(analyze_script(script).is_dangerous(), "{script}");
    }
    for script in ["rm src/*", "rm *.o", "rm -r ~root/x", "find . -delete"] {
        assert!(!analyze_script(script).is_dangerous(), "{script}");
    }
}

// SH8: a command is run without bash only where that makes no difference.
#[test]
fn bash_specific_builtins_are_not_run_directly() {
    for script in ["echo a", "echo -n a", "printf '%s\\n' a", "test -n a", "true", "pwd"] {
        assert!(analyze_script(script).direct_argv().is_some(), "{script}");
    }
    for script in [
        "echo --version",
        "echo -nx",
        "printf '%q' a",
        "printf '%(%Y)T' -1",
        "true --help",
        "kill -l",
        "test -v a",
    ] {
        assert!(analyze_script(script).direct_argv().is_none(), "{script}");
    }
}
