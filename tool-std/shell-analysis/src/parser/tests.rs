//! What the second layer takes, and what it leaves alone.

use super::*;

#[track_caller]
fn texts(script: &str) -> Vec<String> {
    let scan = parse_script(script).unwrap_or_else(|why| panic!("{script:?}: {why:?}"));
    let text = |command: ParsedCommand| {
        let words: Vec<_> = command.words.into_iter().map(|word| word.rule_text).collect();
        words.join(" ")
    };
    scan.commands.into_iter().map(text).collect()
}

#[test]
fn redirections_are_taken_out_of_commands() {
    for (script, commands, writes, reads) in [
        ("make 2>&1 | tail -5", &["make", "tail -5"][..], &[][..], &[][..]),
        ("ls >/dev/null 2>/dev/null", &["ls"], &[], &[]),
        ("ls &>/dev/null", &["ls"], &[], &[]),
        ("echo a > out.txt", &["echo a"], &["out.txt"], &[]),
        ("echo a>>'my log' 2> b", &["echo a"], &["my log", "b"], &[]),
        ("> x echo a", &["echo a"], &["x"], &[]),
        ("echo 2 >x", &["echo 2"], &["x"], &[]),
        ("sort < in >| out", &["sort"], &["out"], &["in"]),
        ("(cd a && make) > log", &["cd a", "make"], &["log"], &[]),
        ("cat <<< 'a b'", &["cat"], &[], &[]),
    ] {
        let scan = parse_script(script).unwrap_or_else(|why| panic!("{script:?}: {why:?}"));
        let paths = |is_written| {
            let files = scan.files.iter().filter(move |file| file.is_written == is_written);
            files.map(|file| &*file.path).collect::<Vec<_>>()
        };
        assert_eq!((&*paths(true), &*paths(false)), (writes, reads), "{script}");
        assert_eq!(texts(script), commands, "{script}");
    }
}

#[test]
fn an_exit_code_that_is_turned_round_is_that_of_the_command() {
    for (script, commands) in [
        ("! grep -q x y", &["grep -q x y"][..]),
        ("! a && ! b | c", &["a", "b", "c"]),
        ("! ! a", &["a"]),
        ("(! a); ! (b)", &["a", "b"]),
    ] {
        assert_eq!(texts(script), commands, "{script}");
    }
    for script in ["!", "! && a", "> x ! a", "'!' a", "time ! a", "!a", "x=1 ! a"] {
        assert!(parse_script(script).is_err(), "{script}");
    }
}

#[test]
fn a_file_is_opened_after_what_stands_before_it() {
    for (script, before) in [
        ("a; b > x; c", &["a"][..]),
        ("a && b > x || c", &["a"]),
        ("a | b > x | c; d", &["a", "c"]),
        ("a\nb > x\nc", &["a"]),
        ("> x a; b", &[]),
        ("a $(b) > x; c", &["b"]),
        ("(a; b > x; c) | d; e", &["a", "c", "d"]),
        ("(a; b) > x; c", &[]),
        ("a; { b; c; } > x; d", &["a"]),
        ("if a; then b; fi < x", &[]),
        ("while a; do b; done < x; c", &[]),
        ("while a; do b < x; done; c", &["a", "b"]),
        ("for f in a; do b; c; done > x", &[]),
        ("a > x |\nb; c", &["b"]),
        ("a $(b > x; c)", &["a", "c"]),
    ] {
        let scan = parse_script(script).unwrap_or_else(|why| panic!("{script:?}: {why:?}"));
        let [file] = scan.files.as_slice() else { panic!("{script:?}") };
        let found = scan.commands.iter().filter(|command| file.may_open_after(command.offset));
        let found: Vec<_> = found.map(|command| &*command.words[0].value).collect();
        assert_eq!(found, before, "{script}");
    }
}

#[test]
fn what_people_type() {
    for (script, commands) in [
        ("# say it\nls # here\n", &["ls"][..]),
        ("ls \\\n  -l \\\n  x", &["ls -l x"]),
        ("cat <<'EOF'\n$(rm x) `y`\nEOF\nls", &["cat", "ls"]),
        ("cat <<-EOF | wc\n\ta\n\tEOF", &["cat", "wc"]),
        ("cat <<A <<'B'\na\nA\n$b\nB", &["cat"]),
        ("echo \"say \\\"hi\\\" \\$x\"", &["echo 'say \"hi\" $x'"]),
        ("echo $(date +%F)", &["echo $(date +%F)", "date +%F"]),
        ("echo \"$(a \"$(b)\")\"", &["echo $(a \"$(b)\")", "a $(b)", "b"]),
        ("ls ~/src ~", &["ls ~/src ~"]),
        ("find . ! -name x -exec rm {} \\;", &["find . '!' -name x -exec rm '{}' ';'"]),
        ("git show HEAD@{1}", &["git show 'HEAD@{1}'"]),
        ("A=1 B=2 make", &["A=1 B=2 make"]),
        ("echo \"exit: $?\"", &["echo 'exit: '$?"]),
        ("grep 'a$' x; grep b$ x", &["grep 'a$' x", "grep 'b$' x"]),
        ("time -p make", &["time -p make"]),
        ("(a; b) | c", &["a", "b", "c"]),
        ("diff <(a) <(b | c)", &["diff <(a) <(b | c)", "a", "b", "c"]),
    ] {
        assert_eq!(texts(script), commands, "{script}");
    }
}

#[test]
fn a_commit_message_may_be_a_heredoc() {
    let script = "git commit -m \"$(cat <<'EOF'\nIt's (done)\n\n$(rm -rf /)\nEOF\n)\" && git push";
    let scan = parse_script(script).unwrap();
    let heads: Vec<_> = scan.commands.iter().map(|command| &*command.words[0].value).collect();
    assert_eq!(heads, ["git", "cat", "git"]);
    assert!(scan.commands[1].is_nested && !scan.commands[2].is_nested);
}

#[test]
fn compound_commands_list_the_commands_of_all_branches() {
    for (script, commands) in [
        ("{ a; b; }", &["a", "b"][..]),
        ("{ a\n}", &["a"]),
        ("{ { a; }; } | b", &["a", "b"]),
        ("if a; then b; fi", &["a", "b"]),
        ("if a\nthen b\nelif c; then d; else e; fi && f", &["a", "b", "c", "d", "e", "f"]),
        ("while a; do b; done", &["a", "b"]),
        ("until a; do b | c; done", &["a", "b", "c"]),
        ("! if a; then b; fi", &["a", "b"]),
        ("echo then fi done }", &["echo then fi done '}'"]),
    ] {
        assert_eq!(texts(script), commands, "{script}");
    }
}

#[test]
fn body_of_a_loop_is_listed_for_each_word() {
    for (script, commands) in [
        ("for f in a b; do c \"$f\"; done", &["c a", "c b"][..]),
        ("for f in a b\ndo c -x=${f}.rs; d; done", &["c -x=a.rs", "c -x=b.rs", "d"]),
        ("for f in 'a b'; do c \"$f\"; done", &["c 'a b'"]),
        ("for f in 'a b'; do c $f; done", &["c $f"]),
        ("for f in a; do c \"$f$x\"; done", &["c $f$x"]),
        ("for f in a; do \"$f\"; done", &["$f"]),
        ("for f in *.rs; do c \"$f\"; done", &["c *.rs"]),
        ("for f in *.rs; do c \"$f.bak\"; done", &["c $f.bak"]),
        ("for f in $(d); do c \"$f\"; done", &["d", "c $f"]),
        ("for f in -r x; do c \"$f\"; done", &["c -r", "c x"]),
        ("for i in {1..2}; do c $i; done", &["c 1", "c 2"]),
        ("for a in 1 2; do for b in x y; do c $a$b; done; done", &["c 1x", "c 2x", "c 1y", "c 2y"]),
        ("for f in a; do c; done; d \"$f\"", &["c", "d $f"]),
        ("for f in a; do c '$f' \\$f; done", &["c '$f' '$f'"]),
        ("for f in a b; do c \"$(d \"$f\")\"; done", &["c $(d \"$f\")", "d a", "d b"]),
    ] {
        assert_eq!(texts(script), commands, "{script}");
    }
    let many = "for a in {1..60}; do for b in {1..60}; do c $a$b; done; done";
    assert_eq!(parse_script(many).map(|_| ()), Err(OpaqueReason::TooMany));
}

#[test]
fn braces_are_several_words() {
    assert_eq!(texts("echo {a,b} x{1..3}"), ["echo a b x1 x2 x3"]);
    assert_eq!(texts("git show HEAD@{1} stash@{0}"), ["git show 'HEAD@{1}' 'stash@{0}'"]);
}

#[test]
fn file_of_a_loop_may_be_opened_after_its_command() {
    let scan = parse_script("while a; do mv b c < d; done; e").unwrap();
    assert!(scan.files[0].own_commands.is_empty());
    assert!(scan.commands.iter().take(2).all(|command| command.is_repeated));
    assert!(
        scan.commands.iter().take(2).all(|command| scan.files[0].may_open_after(command.offset))
    );
    assert!(!scan.files[0].may_open_after(scan.commands[2].offset));
}

#[test]
fn uncertain_syntax_is_opaque() {
    for (script, why) in [
        ("a & b", OpaqueReason::Background),
        ("a |& b", OpaqueReason::Operator),
        ("a;; b", OpaqueReason::Operator),
        ("a && ; b", OpaqueReason::Operator),
        ("a &&", OpaqueReason::Operator),
        ("a; )", OpaqueReason::Operator),
        ("echo $( )", OpaqueReason::Operator),
        ("(a) b", OpaqueReason::Operator),
        ("f() { a; }", OpaqueReason::Compound),
        ("a=(b c)", OpaqueReason::Compound),
        ("case a in b) c;; esac", OpaqueReason::Compound),
        ("select x in a; do b; done", OpaqueReason::Compound),
        ("[[ -f a ]]", OpaqueReason::Compound),
        ("function f { a; }", OpaqueReason::Compound),
        ("if a; then b", OpaqueReason::Unclosed),
        ("if a; fi", OpaqueReason::Compound),
        ("if a; then fi", OpaqueReason::Operator),
        ("if a; then b; else c; elif d; then e; fi", OpaqueReason::Compound),
        ("if a; then b; else c; else d; fi", OpaqueReason::Compound),
        ("if; then a; fi", OpaqueReason::Operator),
        ("if a && then b; fi", OpaqueReason::Operator),
        ("(if a; then b; )", OpaqueReason::Operator),
        ("{ a }", OpaqueReason::Unclosed),
        ("{ }", OpaqueReason::Operator),
        ("{ a; } b", OpaqueReason::Operator),
        ("> x { a; }", OpaqueReason::Compound),
        ("a; done", OpaqueReason::Compound),
        ("while a; done", OpaqueReason::Compound),
        ("while a; do b; fi", OpaqueReason::Compound),
        ("for x in a; b; done", OpaqueReason::Compound),
        ("for x in a; (b); done", OpaqueReason::Compound),
        ("for x; do a; done", OpaqueReason::Compound),
        ("for x in; do a; done", OpaqueReason::Compound),
        ("for x in a > y; do b; done", OpaqueReason::Compound),
        ("for x in a && do b; done", OpaqueReason::Compound),
        ("for PATH in a; do b; done", OpaqueReason::Compound),
        ("for x in a; do for x in b; do c; done; done", OpaqueReason::Compound),
        ("for x in a; do x=b; c \"$x\"; done", OpaqueReason::Compound),
        ("for x in a; do read x; c \"$x\"; done", OpaqueReason::Compound),
        ("for x in a; do printf -vx b; done", OpaqueReason::Compound),
        ("for x in a; do eval x=b; done", OpaqueReason::Compound),
        ("for ((;;)); do a; done", OpaqueReason::Compound),
        ("time ! a", OpaqueReason::Compound),
        ("time if a; then b; fi", OpaqueReason::Compound),
        ("echo `a`", OpaqueReason::Backtick),
        ("echo \"`a`\"", OpaqueReason::Backtick),
        ("echo $((1+1))", OpaqueReason::Arithmetic),
        ("((a))", OpaqueReason::Arithmetic),
        ("echo $[1+1]", OpaqueReason::Arithmetic),
        ("echo ${x@P}", OpaqueReason::Expansion),
        ("echo ${x:-$(a)}", OpaqueReason::Expansion),
        ("echo $'a'", OpaqueReason::SpecialQuote),
        ("echo $\"a\"", OpaqueReason::SpecialQuote),
        ("diff a<(b)", OpaqueReason::ProcessSubstitution),
        ("cat < <(a)", OpaqueReason::Operator),
        ("cat <(a", OpaqueReason::Unclosed),
        ("tee >(a)", OpaqueReason::ProcessSubstitution),
        ("echo {a,{b,c}}", OpaqueReason::Braces),
        ("echo {a,$x}", OpaqueReason::Braces),
        ("echo {a,*}", OpaqueReason::Braces),
        ("echo {a,'b'}", OpaqueReason::Braces),
        ("{a,b} c", OpaqueReason::Braces),
        ("a > {b,c}", OpaqueReason::Braces),
        ("git pus\\\nh", OpaqueReason::Continuation),
        ("echo $\\\n(a)", OpaqueReason::Continuation),
        ("exec 3<&0", OpaqueReason::Descriptor),
        ("a 3>x", OpaqueReason::Descriptor),
        ("a 2>&-", OpaqueReason::Descriptor),
        ("a >&x", OpaqueReason::Descriptor),
        ("a {fd}>x", OpaqueReason::Descriptor),
        ("a <>x", OpaqueReason::Descriptor),
        ("a > $x", OpaqueReason::UnknownTarget),
        ("a > *", OpaqueReason::UnknownTarget),
        ("a > /dev/tcp/h/1", OpaqueReason::Network),
        ("> x", OpaqueReason::NoCommand),
        ("a >", OpaqueReason::Operator),
        ("a > > b", OpaqueReason::Operator),
        ("a >!b", OpaqueReason::Operator),
        ("cat <<EOF\n$(a)\nEOF", OpaqueReason::Heredoc),
        ("cat <<EOF\na", OpaqueReason::Heredoc),
        ("cat <<EOF", OpaqueReason::Heredoc),
        ("cat <<EOF\na\nEOFx\nEOF", OpaqueReason::Heredoc),
        ("cat <<E\"O\"F\na\nEOF", OpaqueReason::Heredoc),
        ("cat <<A \"x\ny\"\nA", OpaqueReason::Heredoc),
        ("cat <<A $(b\n)\nA", OpaqueReason::Heredoc),
        ("echo 'a", OpaqueReason::Unclosed),
        ("echo \"a", OpaqueReason::Unclosed),
        ("echo $(a", OpaqueReason::Unclosed),
        ("(a", OpaqueReason::Unclosed),
        ("# only a comment", OpaqueReason::Empty),
    ] {
        assert_eq!(parse_script(script).map(|_| ()), Err(why), "{script:?}");
    }
    let deep = format!("echo {}a{}", "$(".repeat(20), ")".repeat(20));
    assert_eq!(parse_script(&deep).map(|_| ()), Err(OpaqueReason::TooDeep));
}
