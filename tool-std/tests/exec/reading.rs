//! What a command may read that is not known only to look.

use tool_sdk::{Action, Mode};

use crate::support::decide;

const DENIED: &str = "deny read(secrets/*)";

// SH7, SH10: a rule that forbids to read a file sees each command that names it.
#[tokio::test]
async fn what_is_forbidden_to_read_is_so_for_every_command() {
    for cmd in [
        "while read l; do :; done < secrets/x",
        "{ cat; } < secrets/x",
        "if true; then cat; fi < secrets/x",
        "f() { cat; } < secrets/x; f",
        "[[ a ]] < secrets/x",
        "cat <<< \"$(< secrets/x)\"",
        "x=$(<secrets/x)",
        "less secrets/x",
        "source secrets/x",
        "dd if=./secrets/x",
        "awk 1 secrets/x",
        "make -f a/../secrets/x",
        "python3 -c 'print(open(\"secrets/x\").read())'",
    ] {
        for (mode, rules) in
            [(Mode::Bypass, &[DENIED][..]), (Mode::Auto, &["allow exec_command", DENIED])]
        {
            assert_eq!(decide(mode, rules, cmd).await, Action::Deny, "{cmd}");
        }
    }
}

// SH10: the name of a file is none of a program.
#[tokio::test]
async fn a_file_is_forbidden_by_its_name_and_not_by_that_of_a_program() {
    let rules = ["deny exec_command(rm *)", "deny read(id_rsa)"];
    assert_eq!(decide(Mode::Bypass, &rules, "cargo test rm").await, Action::Allow);
    assert_eq!(decide(Mode::Bypass, &rules, "less id_rsa").await, Action::Deny);
}

// SH10: where nobody knows which file it is, somebody is asked.
#[tokio::test]
async fn names_that_are_only_known_later_are_asked_about_where_some_are_forbidden() {
    for cmd in [
        "cat $PWD/secrets/x",
        "f=secrets/x; cat $f",
        "cat {secrets,src}/x",
        "cat `echo secrets/x`",
        "cat ~+/secrets/x",
        "cat < $F",
        "find secrets -exec cat {} +",
        "for f in secrets/*; do cat $f; done",
    ] {
        assert_ne!(decide(Mode::Bypass, &[DENIED], cmd).await, Action::Allow, "{cmd}");
        assert_eq!(decide(Mode::Bypass, &[], cmd).await, Action::Allow, "{cmd}");
    }
}

// SH1: nobody is asked about what names no such file.
#[tokio::test]
async fn daily_work_goes_on_where_some_files_are_forbidden() {
    for cmd in [
        "cargo test --all -- name",
        "git commit -m 'mend the [x] of *.rs'",
        "npm run build && make -j4 all",
        "awk '{ print $1 }' src/a.txt",
        "jq '.a[] | .b' a.json",
        "for i in 1 2; do make test; done",
        "cat <<'EOF'\nit is $HOME\nEOF",
        "while read l; do echo x; done < names.txt",
        "if [ 1 -lt 2 ]; then make; fi",
        "x=1 make 2>&1 | tail -n 3",
        "echo $HOME",
        "echo {1..3}",
        "make -j$(nproc)",
        "git commit -m \"$(cat <<'EOF'\nmend it\nEOF\n)\"",
    ] {
        let expected = decide(Mode::Bypass, &[], cmd).await;
        assert_eq!(expected, Action::Allow, "{cmd}");
        assert_eq!(decide(Mode::Bypass, &[DENIED], cmd).await, expected, "{cmd}");
        let rules = ["allow exec_command", DENIED];
        assert_eq!(decide(Mode::Auto, &rules, cmd).await, Action::Allow, "{cmd}");
    }
}
