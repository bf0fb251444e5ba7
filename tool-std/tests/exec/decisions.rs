//! Decisions of rules and modes about commands, through a whole pipeline.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tool_sdk::Action::{self, Allow, Ask, Deny};
use tool_sdk::process::sandbox::{SandboxLevel, SandboxMode, SandboxPolicy};
use tool_sdk::process::{BackgroundCommand, BackgroundProcesses};
use tool_sdk::{ApprovalResponse, Call, ErrorKind, Mode, RiskClass, ScriptedApprover};

use crate::support::{Host, check, decide};

/// Becomes the sandbox's helper, where it is built.
const PROGRAM: &str = match option_env!("CARGO_BIN_EXE_tool-std") {
    Some(program) => program,
    None => "/no/program",
};

const GIT: &[&str] = &["allow exec_command(git *)"];
const NO_RM: &[&str] = &["allow exec_command", "deny exec_command(rm *)"];
const ALL: &[&str] = &["allow exec_command"];

// F86, F72, SH10: every command is judged, and deny sees through everything.
#[tokio::test]
async fn rules_apply_to_every_command() {
    for (rules, cmd, expected) in [
        (GIT, "git push", Allow),
        (GIT, "git   push\torigin", Allow),
        (GIT, "git add . && git commit -m 'x y'", Allow),
        (GIT, "git status && rm -rf x", Ask),
        (GIT, "git status; rm x", Ask),
        (GIT, "git status | sh", Ask),
        (GIT, "git status\nrm x", Ask),
        (GIT, "git status & rm x", Ask),
        (GIT, "git log > out", Ask),
        (GIT, "git log > /dev/null 2>&1", Allow),
        (GIT, "git status $(rm x)", Ask),
        (GIT, "git status `rm x`", Ask),
        (GIT, "git push && ls", Allow),
        (GIT, "GIT_SSH_COMMAND=x git push", Ask),
        (GIT, "git -c core.pager=x log", Ask),
        (GIT, "git log --output=x", Ask),
        (GIT, "./git push", Ask),
        (GIT, "/tmp/git push", Ask),
        (GIT, "timeout 5 git push", Allow),
        (GIT, "timeout 5 rm x", Ask),
        (GIT, "case x in y) git push;; esac", Ask),
        (GIT, "git pus{h,} origin", Ask),
        (GIT, "eval git push", Ask),
        (GIT, "gitk", Ask),
        (NO_RM, "ls", Allow),
        (NO_RM, "npm test", Allow),
        (NO_RM, "rm x", Deny),
        (NO_RM, "ls && rm x", Deny),
        (NO_RM, "sudo rm x", Deny),
        (NO_RM, "prlimit --nofile=50 rm x", Deny),
        (NO_RM, "linux64 rm x", Deny),
        (NO_RM, "setpriv --nnp rm x", Deny),
        (NO_RM, "choom -n 0 -- rm x", Deny),
        (NO_RM, "start-stop-daemon --start --exec /bin/rm -- x", Deny),
        (NO_RM, "/lib64/ld-linux-x86-64.so.2 /bin/rm x", Deny),
        (NO_RM, "sg root 'rm x'", Deny),
        (NO_RM, "env A=1 nice -n 5 rm x", Deny),
        (NO_RM, "timeout 5 rm x", Deny),
        (NO_RM, "/bin/rm x", Deny),
        (NO_RM, "/tmp/evil/rm x", Deny),
        (NO_RM, r"r\m x", Deny),
        (NO_RM, "'r'\"m\" x", Deny),
        (NO_RM, "bash -c 'ls; rm x'", Deny),
        (NO_RM, "find . -exec rm {} +", Deny),
        (NO_RM, "ls | xargs rm", Deny),
        (NO_RM, "echo $(rm x)", Deny),
        (NO_RM, "for i in 1 2; do rm $i; done", Deny),
        (NO_RM, "case x in y) ls;; esac", Ask),
        (ALL, "case x in y) ls;; esac", Allow),
        (NO_RM, "if true; then ls; else rm x; fi", Deny),
        (NO_RM, "rmdir x", Allow),
        (ALL, "echo hi > out", Ask),
        (&["allow exec_command", "allow edit(out)"], "echo hi > out", Allow),
        (&["allow exec_command", "deny edit(*.env)"], "echo hi > .env", Deny),
        (&["allow exec_command", "deny read(*.env)"], "cat < .env", Deny),
        (&["allow exec_command(./x *)"], "./x 1", Allow),
        (&["deny exec_command(ls *)"], "ls", Deny),
        (&["ask exec_command(ls *)"], "ls", Ask),
    ] {
        assert_eq!(decide(Mode::Auto, rules, cmd).await, expected, "{rules:?}: {cmd}");
    }
}

// F72, SH5: a rule for commands covers what people mean by it.
#[tokio::test]
async fn rules_cover_commands_in_groups_conditions_and_loops() {
    let rules = &["allow exec_command(git *)", "allow exec_command(cargo test)"];
    for (cmd, expected) in [
        ("cd src && git status", Allow),
        ("NO_COLOR=1 cargo test", Allow),
        ("CI=1 RUST_LOG=debug,hyper=info cargo test", Allow),
        ("GIT_PAGER=cat git log", Allow),
        ("timeout 60 cargo test", Allow),
        ("bash -lc 'git status && git diff'", Allow),
        ("{ git status; git diff; }", Allow),
        ("if git status; then git diff; fi", Allow),
        ("for f in a b; do git log \"$f\"; done", Allow),
        ("for f in a b; do git log -- $f | head -3; done", Allow),
        ("while git fetch; do git status; done", Allow),
        ("echo $HOME", Allow),
        ("echo \"$HOME/x\"", Allow),
        ("echo {a,b}", Allow),
        // What may run another program, or is none of these commands, needs approval.
        ("cargo test --release", Ask),
        ("RUSTFLAGS=x cargo test", Ask),
        ("GIT_PAGER=less git log", Ask),
        ("PATH=. git status", Ask),
        ("NO_COLOR=$(x) cargo test", Ask),
        ("NO_COLOR=1 LD_PRELOAD=x cargo test", Ask),
        ("NO_COLOR=1 rm x", Ask),
        ("bash -lc 'git status'; git diff", Ask),
        ("{ git status; rm x; }", Ask),
        ("if git status; then rm x; fi", Ask),
        ("for f in a b; do rm \"$f\"; done", Ask),
        ("for f in status '-c core.pager=x'; do git $f log; done", Ask),
        ("for f in a; do f=--output=x; git log \"$f\"; done", Ask),
        ("for f in --output=x; do git log \"$f\"; done", Ask),
        ("for f in $(x); do git log \"$f\"; done", Ask),
        ("for f in git rm; do \"$f\" x; done", Ask),
        ("for f in a; do git log; done > out", Ask),
        ("echo $SECRET", Ask),
        ("git $HOME", Ask),
    ] {
        assert_eq!(decide(Mode::Auto, rules, cmd).await, expected, "{cmd}");
    }
    for cmd in ["NO_COLOR=1 rm x", "for f in a; do rm $f; done", "{ rm x; }", "bash -lc 'rm x'"] {
        assert_eq!(decide(Mode::Auto, &["deny exec_command(rm *)"], cmd).await, Deny, "{cmd}");
    }
}

// F89, F80: without rules, what only looks is reading; plan lets nothing else run.
#[tokio::test]
async fn safe_commands_are_reading() {
    for (cmd, auto, plan) in [
        ("ls -la", Allow, Allow),
        ("git status && git diff | head -n 5", Allow, Allow),
        ("grep -n x < notes", Allow, Allow),
        ("cat a 2>/dev/null", Allow, Allow),
        ("[ -f a ] && cat a | sort | uniq -c", Allow, Allow),
        ("git log --oneline -5 -- src && git rev-parse HEAD", Allow, Allow),
        ("ls \"$(cat a)\"", Ask, Ask),
        ("cat a > b", Ask, Deny),
        ("git commit -m x", Ask, Deny),
        ("python3 -c 'x'", Ask, Deny),
        ("find . -delete", Ask, Deny),
        ("ls; rm x", Ask, Deny),
        ("ls $(rm x)", Ask, Deny),
        ("for i in 1; do ls; done", Allow, Allow),
        ("for i in 1; do touch $i; done", Ask, Deny),
        ("case x in y) ls;; esac", Ask, Deny),
    ] {
        assert_eq!(decide(Mode::Auto, &[], cmd).await, auto, "{cmd}");
        assert_eq!(decide(Mode::Plan, &[], cmd).await, plan, "{cmd}");
        assert_eq!(decide(Mode::Strict, &[], cmd).await, Ask, "{cmd}");
        let distrusting = Host::new(Mode::Auto, &[]).distrusting();
        let checked = check(&distrusting, "exec_command", &json!({ "cmd": cmd })).await;
        assert_eq!(checked.decision.action, Ask, "{cmd}");
    }
}

// F85, F87: what "always" may stand for.
#[tokio::test]
async fn always_is_offered_with_care() {
    let host = Host::new(Mode::Auto, &[]);
    for (cmd, expected) in [
        ("git push origin main", &["git push origin main", "git push *"][..]),
        ("ls && git push", &["git push", "git push *"]),
        ("rm -rf x", &[]),
        ("sudo rm -rf x", &[]),
        ("bash -c 'rm -rf x'", &[]),
        ("git push && rm x", &[]),
        ("python3 x.py", &[]),
        ("if true; then git push; fi", &[]),
        ("git push > log", &[]),
    ] {
        let checked = check(&host, "exec_command", &json!({ "cmd": cmd })).await;
        assert_eq!(checked.suggestions, expected, "{cmd}");
    }
}

#[tokio::test]
async fn a_list_of_arguments_is_judged_as_what_it_runs() {
    let host = Host::new(Mode::Auto, &["allow exec_command(git *)", "deny exec_command(rm *)"]);
    for (command, expected) in [
        (&["git", "push"][..], Allow),
        (&["ls", "-la"], Allow),
        (&["bash", "-c", "git push; rm x"], Deny),
        (&["bash", "-lc", "rm x"], Deny),
        (&["bash", "-lc", "ls && git push"], Allow),
        (&["bash", "-c", "bash -lc ls"], Ask),
        (&["git", "push", ";", "rm", "x"], Allow),
        (&["env", "rm", "x"], Deny),
        (&["npm", "test"], Ask),
    ] {
        let checked = check(&host, "shell", &json!({ "command": command })).await;
        assert_eq!(checked.decision.action, expected, "{command:?}");
    }
}

// SH8, CH2: another shell, its start-up files and variables always ask.
#[tokio::test]
async fn other_shells_login_and_variables_need_approval() {
    let host = Host::new(Mode::Auto, GIT);
    let (login, plain) = (json!({ "login": true }), json!({}));
    for (more, cmds) in [
        (json!({ "shell": "sh" }), &["git status", "ls"][..]),
        (login.clone(), &["git status", "ls"]),
        (json!({ "env": ["A=1"] }), &["git status", "ls"]),
        (plain.clone(), &["bash -lc 'git status'; ls", "sh -lc ls; ls", "bash --login -c ls; ls"]),
    ] {
        for cmd in cmds {
            let mut arguments = json!({ "cmd": cmd });
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let checked = check(&host, "exec_command", &arguments).await;
            assert_eq!(checked.decision.action, Ask, "{arguments}");
            assert!(checked.suggestions.is_empty());
            let is_login = more == login || more == plain;
            assert_eq!(checked.decision.reason.contains("start-up files"), is_login, "{arguments}");
        }
    }
}

// SH10, CH2: a variable beside the command is not a place to hide one.
#[tokio::test]
async fn commands_in_variables_are_found() {
    let host = Host::new(Mode::Auto, NO_RM);
    for (variable, expected) in [
        ("PAGER=rm x", Deny),
        ("MANPAGER=sh -c 'rm x'", Deny),
        ("PAGER=r$@m x", Ask),
        ("RUST_LOG=debug", Allow),
    ] {
        let arguments = json!({ "cmd": "man ls", "env": [variable] });
        let checked = check(&host, "exec_command", &arguments).await;
        assert_eq!(checked.decision.action, expected, "{variable}: {:?}", checked.decision.reason);
    }
}

/// Starts a program on a terminal, and waits until it is the one that reads there.
async fn reader(host: &Host, program: &str, args: &[&str]) -> u32 {
    let title = [&[program], args].concat().join(" ");
    let spawn = BackgroundCommand::new(program, args.iter().copied()).terminal(true).title(title);
    let process = host.session.extension::<BackgroundProcesses>().spawn(&spawn).unwrap();
    for _ in 0..1200 {
        let name =
            process.foreground_file().and_then(|file| file.file_name().map(|it| it.to_owned()));
        // It may not wait at its prompt yet.
        let is_ready = program != "bash" || process.is_noncanonical();
        if is_ready && name.is_some_and(|name| name.to_string_lossy().starts_with(program)) {
            return process.id();
        }
        process.read_output(Duration::from_millis(50), |_| {}).await;
    }
    panic!("{program} does not read");
}

async fn typed(host: &Host, session: u32, chars: &str) -> Action {
    let arguments = json!({ "session_id": session, "chars": chars });
    check(host, "write_stdin", &arguments).await.decision.action
}

const TYPING: &[&str] = &["allow exec_command(git *)", "deny exec_command(rm *)"];

// SH9: text typed into bash is checked like a script; reading and interrupting need no approval.
#[tokio::test]
async fn typed_text_is_checked() {
    let host = Host::new(Mode::Auto, TYPING);
    let bash = reader(&host, "bash", &["--norc", "--noprofile"]).await;
    for (chars, expected) in [
        ("", Allow),
        ("\u{3}", Allow),
        ("git push\n", Allow),
        ("git push", Ask),
        ("ls\n", Ask),
        ("y\n", Ask),
        ("git push; rm x\n", Deny),
        ("git push\rrm x\r", Deny),
        ("rm", Deny),
        ("git log > x\n", Ask),
        ("import os\n", Ask),
    ] {
        assert_eq!(typed(&host, bash, chars).await, expected, "{chars:?}");
    }
    let plan = Host::new(Mode::Plan, ALL);
    let bash = reader(&plan, "bash", &["--norc", "--noprofile"]).await;
    for (chars, expected) in [("", Allow), ("\u{3}", Allow), ("ls\n", Deny)] {
        assert_eq!(typed(&plan, bash, chars).await, expected, "{chars:?}");
    }
}

// SH9: of what another program makes of it, rules for commands say nothing.
#[tokio::test]
async fn typed_text_is_checked_by_its_reader() {
    let host = Host::new(Mode::Auto, TYPING);
    let mut sessions = vec![reader(&host, "cat", &[]).await, reader(&host, "dash", &[]).await];
    // The shell reads, until it runs what reads instead.
    let bash = reader(&host, "bash", &["--norc", "--noprofile"]).await;
    assert_eq!(typed(&host, bash, "git push\n").await, Allow);
    let process = host.session.extension::<BackgroundProcesses>().get(bash).unwrap();
    process.type_text("cat\n").await.unwrap();
    for _ in 0..1200 {
        if process.foreground_file().is_some_and(|file| file.ends_with("cat")) {
            break;
        }
        process.read_output(Duration::from_millis(50), |_| {}).await;
    }
    sessions.push(bash);
    for session in sessions {
        for (chars, expected) in
            [("", Allow), ("\u{3}", Allow), ("git push\n", Ask), ("y\n", Ask), ("rm x\n", Deny)]
        {
            assert_eq!(typed(&host, session, chars).await, expected, "{session}: {chars:?}");
        }
    }
}

// No user is asked about a session that does not exist, and the model reads that it does not.
#[tokio::test]
async fn an_unknown_session_is_refused_before_an_approval() {
    let host = Host::new(Mode::Auto, &[]);
    let asked = Arc::new(ScriptedApprover::always_respond(ApprovalResponse::Once));
    let host = Host { session: host.session.clone().with_shared_approver(asked.clone()), ..host };
    let error = host.error("write_stdin", json!({ "session_id": 1, "chars": "ls\n" })).await;
    assert_eq!((error.kind(), error.message()), (ErrorKind::NotFound, "Unknown process id 1"));
    assert!(asked.requests().is_empty());
}

// SH9: the input of an interpreter is not explained as commands, and one approval is enough for the
// rest of the session. A denied command, and any rule that denies one, still count.
#[tokio::test]
async fn an_interpreter_is_approved_for_the_session() {
    if !std::path::Path::new("/usr/bin/python3").exists() {
        eprintln!("not tried: this system has no python3");
        return;
    }
    let host = Host::new(Mode::Auto, &[]);
    let python = reader(&host, "python3", &["-i", "-q"]).await;
    let yes = Arc::new(ScriptedApprover::new([]));
    let host = Host { session: host.session.clone().with_shared_approver(yes.clone()), ..host };
    let typed_text = |chars: &str| json!({ "session_id": python, "chars": chars });
    host.error("write_stdin", typed_text("print(6*7)\n")).await;
    let request = yes.requests().pop().unwrap();
    let expected =
        "reads it, which is no shell, so what it does is unknown; this needs an approval";
    assert!(request.reason.ends_with(expected), "{}", request.reason);
    let [subject] = &request.subjects[..] else { panic!("{:?}", request.subjects) };
    let text = format!("input to session {python} (python3 -i -q)");
    assert_eq!((subject.text(), &request.suggestions), (&*text, &vec![text.clone()]));

    let patterns = request.suggestions.clone();
    let session = Arc::new(ScriptedApprover::new([ApprovalResponse::Session { patterns }]));
    let host = Host { session: host.session.clone().with_shared_approver(session), ..host };
    host.call("write_stdin", typed_text("print(6*7)\n")).await;
    for (chars, expected) in [("x = 'a'\n", Allow), ("print(x)\n", Allow), ("git push\n", Allow)] {
        assert_eq!(typed(&host, python, chars).await, expected, "{chars:?}");
    }
    let cat = reader(&host, "cat", &[]).await;
    assert_eq!(typed(&host, cat, "x\n").await, Ask, "another session");
    host.call("kill_session", json!({ "session_id": python })).await;

    for (rule, expected) in [("deny exec_command(rm *)", Ask), ("deny exec_command(git *)", Deny)] {
        let host = Host::new(Mode::Bypass, &[rule]);
        let python = reader(&host, "python3", &["-i", "-q"]).await;
        assert_eq!(typed(&host, python, "git push\n").await, expected, "{rule}");
    }
}

// SH9: a line that is typed in parts is judged as a whole.
#[tokio::test]
async fn a_denied_line_cannot_be_typed_in_parts() {
    let host = Host::new(Mode::Auto, &["allow exec_command", "deny exec_command(rm *)"]);
    let yes = ScriptedApprover::always_respond(ApprovalResponse::Once);
    let host = Host { session: host.session.clone().with_approver(yes), ..host };
    let cmd = json!({ "cmd": "cat", "tty": true, "yield_time_ms": 250 });
    let session = crate::support::session_of(&host.call("exec_command", cmd).await);
    host.call("write_stdin", json!({ "session_id": session, "chars": "r" })).await;
    let error = host.error("write_stdin", json!({ "session_id": session, "chars": "m x\n" })).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    host.call("kill_session", json!({ "session_id": session })).await;
}

// F79: the file of a redirection is a subject of its own, where it lies.
#[tokio::test]
async fn a_redirection_is_an_edit() {
    let host = Host::new(Mode::Auto, &[]);
    std::fs::create_dir(host.folder.path().join("sub")).unwrap();
    let root = host.folder.path().canonicalize().unwrap();
    for (workdir, written) in [(".", "out"), ("sub", "sub/out")] {
        let arguments = json!({ "cmd": "echo hi > out", "workdir": workdir });
        let checked = check(&host, "exec_command", &arguments).await;
        let subjects = &checked.decision.subjects;
        let edit = subjects.iter().find(|subject| subject.permission() == Some("edit")).unwrap();
        assert_eq!((edit.text(), edit.risk_class()), (written, Some(RiskClass::Write)));
        assert_eq!(edit.absolute(), Some(&*root.join(written)));
    }
}

const WRITING: &[&str] = &["allow exec_command", "allow edit", "allow read"];

// SH10: what code of another language may run is found by rules that name it, and no rule
// that allows has to.
#[tokio::test]
async fn commands_in_code_are_found_by_rules_against_them() {
    let rules = ["deny exec_command", "allow exec_command(python3 *)", "deny exec_command(rm *)"];
    let host = Host::new(Mode::Auto, &rules);
    for (cmd, expected) in [
        ("python3 -c 'print(1)'", Allow),
        ("python3 -c 'import os; os.system(\"rm x\")'", Deny),
        ("perl -e 1", Deny),
    ] {
        let checked = check(&host, "exec_command", &json!({ "cmd": cmd })).await;
        assert_eq!(checked.decision.action, expected, "{cmd}: {:?}", checked.decision);
    }
}

// A command line that is too long to be analysed never runs, even if approved.
#[tokio::test]
async fn oversized_command_does_not_run() {
    let host = Host::new(Mode::Bypass, &["allow *"]);
    let cmd = "true;".repeat(100_000);
    for (name, arguments) in [
        ("exec_command", json!({ "cmd": cmd })),
        ("shell_command", json!({ "command": cmd })),
        ("shell", json!({ "command": ["echo", cmd] })),
        // A yes would not be bound to what stands in each of them.
        ("exec_command", json!({ "cmd": format!("perl{}", " a".repeat(2000)) })),
        ("shell", json!({ "command": vec!["perl"; 2000] })),
    ] {
        let text = host.error(name, arguments).await.to_string();
        assert!(text.contains("too long"), "{text}");
    }
}

// F79, F92, PA7: redirections are held to what holds for every tool that reads and writes.
#[tokio::test]
async fn redirections_lead_where_files_lie() {
    let outside = tempfile::tempdir().unwrap();
    let host = Host::new(Mode::Auto, WRITING);
    std::fs::create_dir(host.folder.path().join("in")).unwrap();
    std::os::unix::fs::symlink(outside.path(), host.folder.path().join("link")).unwrap();
    let root = host.folder.path().canonicalize().unwrap();
    let limited = host.pipeline.clone().writable_roots([root.join("in")]);
    let absolute = |name: &str| format!("echo > {}/{name}", root.display());
    for (cmd, expected, within) in [
        ("echo > in/out", Allow, Allow),
        (&absolute("in/out"), Allow, Allow),
        ("echo > out", Allow, Deny),
        ("echo > in/../out", Allow, Deny),
        ("echo > ../out", Ask, Deny),
        ("echo > /etc/out", Ask, Deny),
        ("echo > link/out", Ask, Deny),
        ("echo > ~/out", Ask, Deny),
        ("echo > .git/config", Ask, Deny),
        ("echo >> in/.git/hooks/pre-commit", Ask, Ask),
        ("cat < out", Allow, Allow),
        ("cat < /etc/hostname", Ask, Ask),
        ("cat 2> in/errors < out | wc &> in/all", Allow, Allow),
        ("cd in && echo > out", Allow, Allow),
        ("cd in && echo > out 2> ../out", Allow, Deny),
        ("bash -c 'cd in && echo > out'", Allow, Allow),
        ("bash -c 'cd in && ls' > out", Allow, Deny),
        ("bash -c ' cd in && ls 2>&1' > out", Ask, Deny),
        ("bash -c 'cd in && ls' > in/out", Allow, Allow),
        ("cd link && echo > out", Ask, Deny),
        // Where these lead is only known when they run.
        ("cd none && echo > out", Ask, Deny),
        ("ls; cd in && echo > out", Ask, Deny),
        ("ln -s /etc/passwd in/l && echo > in/l", Ask, Deny),
        (&format!("ln -s /etc/passwd in/l && {}", absolute("in/l")), Ask, Deny),
        ("sudo -D / bash -c 'echo > in/out'", Ask, Deny),
        // F92: the files that these write are unknown.
        ("make && echo ok > in/out", Allow, Ask),
        ("python3 -c \"open('py.txt', 'w')\"", Allow, Ask),
        ("for i in 1; do echo > $i; done", Ask, Deny),
        ("echo > \"$HOME/out\"", Ask, Deny),
    ] {
        let arguments = json!({ "cmd": cmd }).to_string();
        let call = Call::new("exec_command", arguments.clone());
        let checked = host.pipeline.check(&host.session, call).await.unwrap();
        assert_eq!(checked.decision.action, expected, "{cmd}: {:?}", checked.decision);
        let call = Call::new("exec_command", arguments);
        let checked = limited.check(&host.session, call).await.unwrap();
        assert_eq!(checked.decision.action, within, "within: {cmd}: {:?}", checked.decision);
    }
    let denying = Host::new(Mode::Auto, &["allow *", "deny edit(*secret)"]);
    for cmd in ["echo > in/secret", "for i in 1; do echo > secret; done", "cd in; echo > secret"] {
        let checked = check(&denying, "exec_command", &json!({ "cmd": cmd })).await;
        assert_eq!(checked.decision.action, Deny, "{cmd}");
    }
}

// SH1, SH6: an unknown word may be any option.
#[tokio::test]
async fn a_word_that_may_be_an_option_is_not_safe() {
    for cmd in [
        r#"git diff --no-ext-diff HEAD "-$(echo -output=x)""#,
        r#"rg x "-$(echo -pre=rm)""#,
        "rg x -*/*",
        "git diff -*",
        "uniq d/[ab]",
    ] {
        assert_eq!(decide(Mode::Auto, &[], cmd).await, Ask, "{cmd}");
    }
}

// SH8: the shell that reads the script is a command, too.
#[tokio::test]
async fn other_shell_is_a_command_of_its_own() {
    let host = Host::new(Mode::Bypass, &["deny exec_command(python3 *)"]);
    for shell in ["python3", "/usr/bin/python3"] {
        let arguments = json!({ "cmd": "print(1)", "shell": shell });
        let checked = check(&host, "exec_command", &arguments).await;
        assert_eq!(checked.decision.action, Deny, "{shell}");
    }
}

// PA2: a link that leads nowhere yet is not the file that is made through it.
#[cfg(unix)]
#[tokio::test]
async fn a_redirection_through_an_open_link_asks() {
    let host = Host::new(Mode::Auto, &["allow edit", "allow exec_command"]);
    std::os::unix::fs::symlink(".envrc", host.folder.path().join("open")).unwrap();
    for cmd in ["echo x > open", "echo x > /proc/self/cwd/y"] {
        let checked = check(&host, "exec_command", &json!({ "cmd": cmd })).await;
        assert_eq!(checked.decision.action, Ask, "{cmd}");
    }
    let checked = check(&host, "exec_command", &json!({ "cmd": "echo x > plain" })).await;
    assert_eq!(checked.decision.action, Allow);
}

// F92: a sandbox that holds commands to the folders that may be written is as good as a path.
#[tokio::test]
async fn confined_commands_run_within_writable_roots_as_they_did() {
    let host = Host::new(Mode::Auto, ALL);
    let root = host.folder.path().canonicalize().unwrap();
    let limited = host.pipeline.clone().writable_roots([root.clone()]);
    let narrower = host.pipeline.clone().writable_roots([root.join("in")]);
    for level in [SandboxLevel::WorkspaceWrite, SandboxLevel::ReadOnly, SandboxLevel::Full] {
        let policy = SandboxPolicy::new(SandboxMode::BestEffort, level).with_helper(PROGRAM);
        let session = host.session.clone().with_service(policy.clone());
        let is_held = policy.enforced_roots().is_some();
        let allows = |is_held: bool| if is_held { Allow } else { Ask };
        let is_read_only = level == SandboxLevel::ReadOnly;
        for (pipeline, expected) in [
            (&host.pipeline, Allow),
            (&limited, allows(is_held)),
            (&narrower, allows(is_held && is_read_only)),
        ] {
            let call = Call::new("exec_command", json!({ "cmd": "cargo test" }).to_string());
            let checked = pipeline.check(&session, call).await.unwrap();
            assert_eq!(checked.decision.action, expected, "{level}: {:?}", checked.decision);
        }
    }
}

// What is decided about a call is what becomes of it: nothing is asked about, and nothing is
// allowed, that would not run.
#[tokio::test]
async fn commands_that_cannot_run_are_denied_without_approval() {
    let long = format!("echo {}", "a".repeat(200_000));
    let elsewhere = tempfile::tempdir().unwrap();
    for mode in [Mode::Auto, Mode::Bypass] {
        let host = Host::new(mode, ALL);
        std::fs::write(host.folder.path().join("file"), "").unwrap();
        for (arguments, kind) in [
            (json!({ "cmd": long }), ErrorKind::Denied),
            (json!({ "cmd": "true", "workdir": elsewhere.path() }), ErrorKind::Denied),
            (json!({ "cmd": "true", "workdir": "none" }), ErrorKind::NotFound),
            (json!({ "cmd": "true", "workdir": "file" }), ErrorKind::InvalidArgs),
            (json!({ "cmd": "true", "env": ["nonsense"] }), ErrorKind::InvalidArgs),
            (json!({ "cmd": "true", "env": ["A_TOKEN=x"] }), ErrorKind::InvalidArgs),
            (json!({ "cmd": "true", "shell": "no-such-shell" }), ErrorKind::Failed),
            (json!({ "cmd": "true", "shell": "./no-such-shell" }), ErrorKind::Failed),
        ] {
            let checked = check(&host, "exec_command", &arguments).await;
            let error = host.error("exec_command", arguments).await;
            assert_eq!((checked.decision.action, error.kind()), (Deny, kind), "{error}");
            assert_eq!(checked.decision.reason, error.message());
        }
    }
}

// b.4: what other commands are allowed by is no reason to offer nothing for the one that is
// not.
#[tokio::test]
async fn always_is_offered_for_the_command_that_no_rule_covers() {
    let host = Host::new(Mode::Auto, &["allow exec_command(cargo test *)"]);
    for (cmd, expected) in [
        ("git push && cargo test", &["git push", "git push *"][..]),
        ("cargo test && git push && git push", &["git push", "git push *"]),
        ("git push && git pull && cargo test", &[]),
        ("git push && cargo test > log", &[]),
        ("git push && cargo test $X", &[]),
    ] {
        let checked = check(&host, "exec_command", &json!({ "cmd": cmd })).await;
        assert_eq!(checked.suggestions, expected, "{cmd}");
    }
}

// b.4, SH7: which command it is that is asked about or denied, and why it is not understood.
#[tokio::test]
async fn decision_names_the_deciding_command() {
    let host = Host::new(Mode::Auto, &["allow exec_command(git *)", "deny exec_command(rm *)"]);
    for (cmd, expected) in [
        ("git push && npm test", "`npm test`: no rule matches it"),
        ("git push && rm x", "`rm x`: the rule `deny exec_command(rm *)`"),
        ("git push; ls {a,{b,c}}", "braces may expand"),
        ("ls `id`", "backticks are not understood"),
        ("git -c a.b=c log", "an argument may run other programs"),
        ("ls; cat $(git log)", "`$(git log)`: the file is only known at run time"),
    ] {
        let reason = check(&host, "exec_command", &json!({ "cmd": cmd })).await.decision.reason;
        assert!(reason.contains(expected), "{cmd}: {reason}");
        let ends = reason.split("; ").collect::<std::collections::BTreeSet<_>>();
        assert_eq!(ends.len(), reason.split("; ").count(), "twice: {reason}");
    }
}

// b.3: what cannot be undone asks in every mode, unless a rule says exactly that.
#[tokio::test]
async fn a_forced_removal_asks() {
    for (rules, cmd, expected) in [
        (&["allow exec_command(rm *)"][..], "rm -rf ~", Ask),
        (&["allow exec_command"], "ls; rm -rf x", Ask),
        (&["allow exec_command(rm *)"], "rm x", Allow),
        (&["allow exec_command(rm -rf x)"], "rm -rf x", Allow),
    ] {
        assert_eq!(decide(Mode::Auto, rules, cmd).await, expected, "{cmd}");
        assert_eq!(decide(Mode::Bypass, rules, cmd).await, expected, "{cmd}");
    }
    assert_eq!(decide(Mode::Bypass, &[], "bash -c 'rm -rf /'").await, Ask);
}

// What is said to help, helps.
#[tokio::test]
async fn the_rule_that_would_allow_a_forced_removal_is_named() {
    let host = Host::new(Mode::Auto, &[]);
    for (cmd, expected) in [
        ("rm -rf x", "the rule `allow exec_command(rm -rf x)` would"),
        ("make && rm -rf x", "`allow exec_command(make)` and `allow exec_command(rm -rf x)` would"),
        ("./a && ./b 'x y'", "`allow exec_command(./a)` and `allow exec_command(./b 'x y')` would"),
        ("case x in y) rm -rf x;; esac", "no rule lifts this"),
    ] {
        let error = host.error("exec_command", json!({ "cmd": cmd })).await;
        assert!(error.to_string().contains(expected), "{error}");
    }
    for allowed in ["exec_command", "exec_command(make)"] {
        let rules = &[&*format!("allow {allowed}"), "allow exec_command(rm -rf x)"];
        assert_eq!(decide(Mode::Auto, rules, "make && rm -rf x").await, Allow);
    }
    let rules = &["allow exec_command", "allow exec_command(rm -rf x)"];
    assert_eq!(decide(Mode::Auto, rules, "case x in y) rm -rf x;; esac").await, Ask);
}

// SH9: the reader is known only if it is alone on the terminal.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn reader_is_known_only_if_alone_on_terminal() {
    let host = Host::new(Mode::Auto, &["allow exec_command(git *)"]);
    let spawn = BackgroundCommand::new("bash", ["-c", "cat; true"]).terminal(true);
    let process = host.session.extension::<BackgroundProcesses>().spawn(&spawn).unwrap();
    // It answers, so it runs.
    process.type_text("x\n").await.unwrap();
    let mut seen = String::new();
    for _ in 0..1200 {
        seen += &process.read_output(Duration::from_millis(50), |_| {}).await.output.to_text();
        if seen.matches('x').count() == 2 {
            break;
        }
    }
    assert_eq!(process.foreground_file(), None);
    assert_eq!(typed(&host, process.id(), "git push\n").await, Ask);
}

// SH5: behind a terminal it keeps what the command writes in a file of that folder.
#[tokio::test]
async fn nohup_is_no_mere_wrapper_on_a_terminal() {
    for (rules, tty, expected) in [
        (&["allow exec_command(make *)"][..], false, Allow),
        (&["allow exec_command(make *)"], true, Ask),
        (&["allow exec_command(make *)", "allow exec_command(nohup *)"], true, Allow),
    ] {
        let host = Host::new(Mode::Auto, rules);
        let arguments = json!({ "cmd": "nohup make all", "tty": tty });
        let checked = check(&host, "exec_command", &arguments).await;
        assert_eq!(checked.decision.action, expected, "{rules:?} {tty}");
    }
}
