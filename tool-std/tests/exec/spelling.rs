//! Whatever a command is written like, what is forbidden is found or asked about.

use tool_sdk::Action::{Allow, Ask, Deny};
use tool_sdk::Mode;

use crate::support::decide;

// SH10: a denied command is found in any quoting, and an unknown name needs approval.
#[tokio::test]
async fn no_spelling_evades_what_is_forbidden() {
    let rules = |deny: &'static str| ["allow exec_command", deny];
    for (deny, cmd, expected) in [
        ("deny exec_command(git reset --hard HEAD~*)", "git reset --hard HEAD~1", Deny),
        ("deny exec_command(curl http://evil.com*)", r#"curl "http://evil.com/?x""#, Deny),
        ("deny exec_command(cat secrets/*)", "cat 'secrets/a b'", Deny),
        ("deny exec_command(cat secrets/*)", "/bin/cat 'secrets/a b'", Deny),
        // What `find` runs goes on behind a plus that stands alone.
        ("deny exec_command(rm *)", "find . -exec perl -I + -e 'system q(rm x)' ';'", Deny),
        ("deny exec_command(rm *)", "find . -exec ssh -i + h rm x ';'", Deny),
        ("deny exec_command(rm *)", "find . -name -exec -exec rm x ';'", Deny),
        ("deny exec_command(rm *)", "fd -x perl {} + -e 'system q(rm x)'", Deny),
        ("deny exec_command(rm *)", "find . -exec cat {} + -name rm", Allow),
        ("deny exec_command(rm *)", "$(echo rm) -rf x", Ask),
        ("deny exec_command(rm *)", "r$(echo m) x", Ask),
        ("deny exec_command(rm *)", "/bin/r? x", Ask),
    ] {
        assert_eq!(decide(Mode::Auto, &rules(deny), cmd).await, expected, "{cmd}");
        assert_eq!(decide(Mode::Bypass, &rules(deny)[1..], cmd).await, expected, "{cmd}");
    }
    assert_eq!(decide(Mode::Bypass, &[], "$(echo rm) -rf x").await, Allow);
    let push = ["allow exec_command(git *)", "deny exec_command(git push *)"];
    for cmd in [r#"git pus"$(echo h)" origin"#, "git pus[h] origin"] {
        assert_eq!(decide(Mode::Auto, &push, cmd).await, Ask, "{cmd}");
    }
}

// PA7: a redirection to an unknown target needs approval.
#[tokio::test]
async fn a_target_in_backticks_asks() {
    let rules = ["allow exec_command", "allow edit", "deny edit(sub/p)"];
    for cmd in [
        "echo x > `echo sub/p`",
        "echo x >> `echo .git/config`",
        "echo x >| `echo sub/p`",
        "echo x &> `echo sub/p`",
        "{ echo x; } 2> `echo sub/p`",
        "cat > `echo sub/p` <<E\nx\nE",
    ] {
        assert_eq!(decide(Mode::Auto, &rules, cmd).await, Ask, "{cmd}");
    }
    let rules = ["allow exec_command", "deny edit(1)"];
    assert_eq!(decide(Mode::Auto, &rules, "{ echo x; } > 1").await, Deny);
    assert_eq!(decide(Mode::Auto, &rules, "{ echo x; } 2>&1").await, Allow);
}

// SH10: where something is forbidden, what may be it under another spelling asks, and without
// that what everybody may run stays allowed.
#[tokio::test]
async fn commands_that_may_be_denied_need_approval() {
    for (deny, scripts) in [
        (
            "deny exec_command(rm *)",
            &[
                r"$'\x72m' x",
                r"command $'\x72m' x",
                r"bash -c $'\x72m x'",
                r"eval $'\x72\x6d x'",
                "r{m,} x",
                "{r,}m x",
                "`echo rm` x",
                "read 'a[$(rm x)]' <<< 1",
                "hash -p /bin/rm ls; ls x",
                "BASH_CMDS[ls]=/bin/r$(echo m); ls x",
                r"if true; then $'\x72m' x; fi",
                "set -- rm x; \"$@\"",
                "sed '1e r$@m x' y",
                "sed '1erm x' y",
                "sed 's/a/r\\x6d x/e' y",
                "git -c alias.x='!r$@m x' x",
                "tar cf a b --checkpoint-action=exec='r$@m x'",
                "make CC='r$@m x'",
                "rg --pre '/bin/r?' x",
                "awk 'BEGIN{system(\"r\" \"m x\")}'",
                "PAGER='r$@m x' man ls",
                "PAGER='r$*m x/awk' man ls",
                "PAGER=\"$X\" man ls",
                "find . $(echo -exec r''m x ';')",
                "sort $X y",
            ][..],
        ),
        (
            "deny exec_command(git push *)",
            &[
                "p=push; git $p origin",
                "git $(echo push) origin",
                "git \"$(echo push)\" origin",
                "git pus{h,} x",
                r"git $'\x70ush' x",
            ],
        ),
    ] {
        for cmd in scripts {
            // These quotes and braces say what they stand for.
            let expected = if cmd.contains("$'") || cmd.contains("{h,}") { Deny } else { Ask };
            let rules = ["allow exec_command", deny];
            assert_eq!(decide(Mode::Auto, &rules, cmd).await, expected, "{cmd}");
            assert_eq!(decide(Mode::Bypass, &[deny], cmd).await, expected, "{cmd}");
            assert_eq!(decide(Mode::Auto, &["allow exec_command"], cmd).await, Allow, "{cmd}");
            assert_eq!(decide(Mode::Bypass, &[], cmd).await, Allow, "{cmd}");
        }
    }
    let rules = ["allow exec_command", "deny exec_command(rm *)"];
    assert_eq!(decide(Mode::Auto, &rules, r"echo x | xargs $'\x72m'").await, Deny);
}

// SH10: an unknown word needs approval only if it may be a command.
#[tokio::test]
async fn commands_that_cannot_be_denied_need_no_approval() {
    let rules = ["allow exec_command", "deny exec_command(rm *)"];
    for cmd in [
        "echo $HOME",
        "echo \"$HOME/x\" | wc -l",
        "RUST_LOG=debug cargo test",
        "sed -i 's/a/b/' x",
        "sed -n '/a/,/b/p' x | head",
        "awk '$1 > 5' x",
        "make -C build",
        "curl -o x https://example.org",
        "git config user.name x",
    ] {
        assert_eq!(decide(Mode::Auto, &rules, cmd).await, Allow, "{cmd}");
    }
}

// SH10: what stands before the words that name the action hides it from no rule that forbids.
#[tokio::test]
async fn options_before_an_action_do_not_hide_it() {
    for (deny, cmd, expected) in [
        ("git push *", "git --no-pager push origin", Deny),
        ("git push *", "git -C . push origin", Deny),
        ("git push *", "/usr/bin/git -c a.b=c --no-pager push origin", Deny),
        ("cargo publish *", "cargo -q publish", Deny),
        ("cargo publish *", "cargo +nightly publish", Deny),
        ("npm publish *", "npm -s publish", Deny),
        ("docker rm *", "docker -D rm x", Deny),
        ("docker compose rm *", "docker -H host compose -f a.yml rm x", Deny),
        ("kubectl delete *", "kubectl -n x delete pod y", Deny),
        ("git push *", "sudo git --no-pager push", Deny),
        // Under other names.
        ("git push *", "git-push o HEAD:a", Deny),
        ("git push *", "/usr/lib/git-core/git-push o HEAD:a", Deny),
        ("git push *", "python3 -c 'run([\"git-push\", \"o\"])'", Deny),
        ("git push *", "git for-each-repo --config=a push o HEAD:b", Deny),
        ("git push *", "git for-each-repo --config a push o HEAD:b", Deny),
        ("git push *", "git subtree push --prefix=x o b", Deny),
        ("git push *", "git-submodule foreach git push", Deny),
        ("git push *", "git bisect run git push o for-each-repo", Deny),
        ("git push *", "git submodule foreach git push o subtree push", Deny),
        ("git log *", "git for-each-repo --config=a log --output=x", Deny),
        ("git add *", "git stage x", Deny),
        ("npm publish *", "npm publ", Deny),
        ("npm install *", "npm i x", Deny),
        ("npm run *", "npm run-script x", Deny),
        ("docker rm *", "docker container rm x", Deny),
        ("docker container rm *", "docker rm x", Deny),
        ("docker rmi *", "docker image rm x", Deny),
        ("docker compose rm *", "docker-compose rm x", Deny),
        ("ip link *", "ip l set x", Deny),
        ("python3 *", "python3.11 x", Deny),
        ("pip install *", "pip3 install x", Deny),
        ("awk *", "mawk 1 x", Deny),
        ("npm publish *", "npm pack", Allow),
        ("python3 *", "python x", Allow),
        ("docker rm *", "docker container ls", Allow),
        ("git push *", "git for-each-repo --config=a status", Allow),
        ("cargo publish *", "cargo -q build", Allow),
        ("docker rm *", "docker -D ps", Allow),
    ] {
        let program = deny.split(' ').next().unwrap();
        let allow = format!("allow exec_command({program} *)");
        let deny = format!("deny exec_command({deny})");
        assert_eq!(
            decide(Mode::Auto, &["allow exec_command", &deny], cmd).await,
            expected,
            "{cmd}"
        );
        let own = decide(Mode::Auto, &[&allow, &deny], cmd).await;
        assert!(own >= expected, "{cmd}: {own:?}");
    }
    // Too many to tell which of them is the action.
    let cmd = format!("git{} push", " -c a".repeat(100));
    let rules = ["allow exec_command", "deny exec_command(git push *)"];
    assert!(decide(Mode::Auto, &rules, &cmd).await > Allow);
}

// SH6: a script for sed may stand behind other letters.
#[tokio::test]
async fn a_script_for_sed_is_found_behind_letters() {
    for cmd in [
        "sed -ne1e s/a/b/ x",
        "sed -newout s/a/b/ x",
        "sed -Ees/a/b/e s/a/b/ x",
        "sed -zes/a/b/wx s/a/b/ x",
        "sed -rne1e s/a/b/ x",
        "sed -une1e s/a/b/ x",
    ] {
        assert_eq!(decide(Mode::Auto, &["allow exec_command(sed *)"], cmd).await, Ask, "{cmd}");
    }
    let rules = ["allow exec_command(sed *)"];
    assert_eq!(decide(Mode::Auto, &rules, "sed -nE s/a/b/p x").await, Allow);
}

// SH6: nothing but a rule with just these words, or one for everything, is about an argument that
// makes a program dangerous; and what is only known when it runs has no such words.
#[tokio::test]
async fn a_rule_may_name_a_dangerous_command_word_by_word() {
    let rules = [
        "allow exec_command(sed -i s/a/b/ x)",
        "allow exec_command(find . -delete)",
        "allow exec_command(rustc $(cat f))",
        "allow exec_command(sed *)",
        "allow exec_command(cat *)",
    ];
    for (cmd, expected) in [
        ("sed -i s/a/b/ x", Allow),
        ("sed  '-i' s/a/b/ x", Allow),
        ("sed -i s/a/b/ x && cat x", Allow),
        ("sed -i s/a/b/ y", Ask),
        ("sed -i s/a/b/ x y", Ask),
        ("sed -i s/a/b/ x > y", Ask),
        ("find . -delete", Allow),
        ("find . -delete -name x", Ask),
        ("rustc $(cat f)", Ask),
    ] {
        assert_eq!(decide(Mode::Auto, &rules, cmd).await, expected, "{cmd}");
    }
    let denied = ["allow exec_command(sed -i s/a/b/ x)", "deny exec_command(sed -i *)"];
    assert_eq!(decide(Mode::Auto, &denied, "sed -i s/a/b/ x").await, Deny);
}
