//! The target of a redirection: known in advance, or in need of approval because an earlier
//! command may change it.

use tool_std::shell::analyze_script;

// F79: what a redirection leads to is not known once something may have changed it.
#[test]
fn redirections_are_known_or_asked_about() {
    let certain = |script: &str| {
        let analysis = analyze_script(script);
        analysis.opaque.is_none() && !analysis.has_unstable_paths()
    };
    for script in [
        "make && echo ok > log",
        "cargo test > log 2>&1; echo $? >> log",
        "mkdir -p a && echo > a/b",
        "cp a b && echo >> b",
        "echo a > x && mv x y",
        "cat > x.py <<'E'\nprint(1)\nE\npython3 x.py",
        "echo a > x; git checkout y",
        "bash -c 'echo > x'",
        "bash -c 'echo a > x; git checkout y'",
        "timeout 5 bash -c 'cd a > log; ln -s x y > /tmp/log'",
        "timeout 5 bash -c 'make && echo > x'",
        "eval 'echo > x'",
        "ln -s a b > log",
        "RUST_LOG=debug cargo run 2> err.log",
        "git add -A && git commit -m x && echo done > log",
        "nohup ./server > server.log 2>&1",
        "cd /tmp && echo > /tmp/x",
        "make > log && cd a",
        "cd a && echo > b",
        "cd a && sort < b",
        "cd a; cd 'b c' && make > log 2>&1",
        "cd a && timeout 5 bash -c 'echo > b'",
        "cd a; bash -c 'echo > l'",
        "bash -c 'cd a && echo > b'",
        "bash -c 'cd a && ls; cd b' > c",
    ] {
        assert!(certain(script), "{script}");
    }
    for script in [
        "ln -s x l && echo > l",
        "ln -s x l && echo > /work/l",
        "ln -s x l && sort < l",
        "ln -s x l | echo > l",
        "echo > l | ln -s x l",
        "echo $(ln -s x l) > l",
        "(ln -s x l) | (echo) > l",
        "(echo > l; ls) | ln -s x l",
        "mv a b; echo > b",
        "cp -P a b; echo > b",
        "cp -r a b; echo > b/c",
        "tar xf a; echo > b",
        "unzip a; echo > b",
        "git checkout x; echo > b",
        "git stash pop; echo > b",
        "mount a b; echo > b/c",
        "rsync -a x y; echo > y/z",
        "sudo ln -s x l && echo > l",
        "env ln -s x l && echo > l",
        "bash -c 'ln -s x l' && echo > l",
        "find . -exec ln -s x l ';' ; echo > l",
        "xargs ln -s x && echo > l",
        "xargs cp && echo > l",
        "bash -c 'ln -s x l; echo > l'",
        "timeout 5 bash -c 'mv a b; echo > /work/b'",
        "ln -s x l; bash -c 'echo > l'",
        "bash -c 'echo > l'; ln -s x l",
        "./anything && echo > l",
        "unheard-of && echo > l",
        "$X && echo > l",
        "eval \"$X\"; echo > l",
        "source x; echo > l",
        "python3 x.py; bash y.sh; echo > l",
        "ls; cd a && echo > b",
        "cd a && ls | cd b && echo > c",
        "cd a && (cd b; echo > c)",
        "cd a && cd \"$X\" && echo > b",
        "cd ..; cd - && echo > b",
        "cd a || echo > b",
        "cd a | echo > b",
        "cd a && ln -s x l && echo > l",
        "cd a && sudo bash -c 'echo > b'",
        "pushd a && echo > b",
        "popd && echo > b",
        "command cd a && echo > b",
        "builtin cd a; echo > b",
        "eval 'cd a'; echo > b",
        "find . -execdir bash -c 'echo > x' ';'",
        "find . -okdir sh -c 'echo > x' ';'",
        "sudo -D a bash -c 'echo > x'",
        "sudo -i bash -c 'echo > x'",
        "sudo bash -c 'echo > x'",
        "su - me -c 'echo > x'",
        "env -C a bash -c 'echo > x'",
        "git -C a bisect run bash -c 'echo > x'",
        "xargs bash -c 'echo > x'",
        "nsenter -t 1 bash -c 'echo > /x'",
        "chroot a bash -c 'echo > /x'",
        "unshare -r bash -c 'echo > /x'",
        "systemd-run --user bash -c 'echo > x'",
        "for i in a; do ln -s x l; echo > /work/l; done",
    ] {
        assert!(!certain(script), "{script}");
    }
    // Without a known order, a rename counts at any position.
    assert!(analyze_script("for i in a; do ln -s x l; echo > /work/l; done").has_unstable_paths());
    assert!(!analyze_script("if true; then echo > /work/l; fi").has_unstable_paths());
    // A compound command runs after the file is opened, but in a loop also before.
    for script in ["(ln -s x l) > l", "{ ln -s x l; } > l", "for i in a; do ln -s x l; done > l"] {
        assert!(certain(script), "{script}");
    }
    assert!(!certain("for i in a b; do (ln -s x l) > l; done"));
}
