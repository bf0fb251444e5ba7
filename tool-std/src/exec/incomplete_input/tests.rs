//! Compares the detection of incomplete input with a real bash.

use std::process::{Command, Stdio};

use super::*;

#[track_caller]
fn check(text: &str, open: &str) {
    assert_eq!(&text[find_open_start(text)..], open, "{text:?}");
}

// SH9: complete input is not pending.
#[test]
fn drops_complete_input() {
    for text in [
        "",
        "ls\n",
        "ls -l 'a b' \"c $d\" \\' | wc -l; echo ok && true\n",
        "git commit -m \"it's done\"\n",
        "n=$((n + 1)); echo $n\n",
        "for i in a b; do echo $i; done\n",
        "for i in a b; do\n  echo \"$i\"\ndone\n",
        "for ((i = 0; i < 3; i++)); do echo; done\n",
        "if [ -e x ]; then\nls; elif true; then ls\nelse pwd\nfi\n",
        "while ! ls; do sleep 1; done\n",
        "f() { ls; }\nf\n",
        "f()\n{\nls\n}\n",
        "(cd x && ls)\n",
        "x=$(cat <<< hi); a=(b c)\n",
        "[[ -e a && b == c ]] && ls 2>&1 >&2 &> f\n",
        "cat <<EOF\nhello\nEOF\n",
        "cat <<-'EOF' > f\nit's\nEOF\n",
        "ls a \\\n b\n",
        "ls && \\\nls\n",
        "sleep 1 &\n",
        "echo hi! # yes\n",
        "diff <(ls a) <(ls b)\n",
        "echo `date`; echo ${x%.*} $'a\\'b'\n",
        "\u{4}",
        "\u{4}ls\n\u{4}",
        ") ; done\n",
    ] {
        check(text, "");
    }
}

// SH9, SH10: what goes on is judged with what comes.
#[test]
fn keeps_incomplete_input() {
    for open in [
        "ls",
        "ls \\\n",
        "echo '\n",
        "echo \"\n",
        "echo \"$(\n",
        "echo $'\\'\n",
        "echo `\n",
        "echo ${x\n",
        "cat <<'X'\n",
        "cat <<'X'\necho '\n",
        "cat << X; cat <<Y\nX\n",
        "cat <<X\nX\\\n",
        "(\n",
        "x=(\n",
        "$((\n",
        "ls |\n",
        "ls &&\n",
        "if true; then echo fi\n",
        "for i in done\n",
        "for i in a; do echo done\n",
        "while true; do ls; fi\n",
        "{ ls }\n",
        "f() {\n",
        "f()\n",
        "[[ a\n",
        "! if true\n",
        "time -p -- {\n",
        "case x in\n",
        "function f\n",
        "echo !x\n",
        "((ls # ) )\n",
        "{ (ls); ! }\n",
        "'\u{4}\n",
    ] {
        check(open, open);
    }
    check("ls\necho '\n", "echo '\n");
    check("ls\n\u{4}ec", "ec");
    // Where a mistake makes bash begin anew with the second line, a quote stands open.
    check(") '\necho '\n", ") '\necho '\n");
    let long = format!("{}ls\n", "x='\n'\n'\n".repeat(MAX_READERS));
    check(&long, &long);
}

// SH9: what reads a part of a text leaves another text to the shell.
#[test]
fn lines_behind_what_may_read_them_are_mixed() {
    for text in [
        "head -c 1\n\"echo '\"\n",
        "python3 -c 'x'\nls\n",
        "cd a && head -n 1\nls\n",
        "echo $(head -c 1)\nls\n",
        "x=$[1]; head\nls\n",
        "./x\nls",
        "case x in\nls\n",
    ] {
        assert!(may_consume_later_lines(text), "{text:?}");
    }
    for text in [
        "head -c 1\n",
        "cd a\nmkdir b; ls\nmake\n",
        "cat <<'X'\nit's\nX\n",
        "# it's\n\nmake\n",
        "make &&\nmake install\n",
        "make",
    ] {
        assert!(!may_consume_later_lines(text), "{text:?}");
    }
}

/// Whether bash waits for more behind a script; where it finds a mistake, it begins anew with
/// the next line.
fn stands_open(script: &str) -> bool {
    const OPEN: &[&str] = &["unexpected end of file", "unexpected EOF", "by end-of-file"];
    let mut script = script;
    while !script.is_empty() {
        let read = Command::new("bash")
            .args(["--noprofile", "--norc", "-n", "-c", script])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&read.stderr);
        if OPEN.iter().any(|what| stderr.contains(what)) {
            return true;
        }
        let Some((_, place)) = stderr.split_once("line ") else { return false };
        let number: usize = place.split(':').next().unwrap().parse().unwrap();
        let lines = script.split_inclusive('\n');
        script = &script[lines.take(number.max(1)).map(str::len).sum()..];
    }
    false
}

// SH9: what counts as ended has ended for bash, however it is put together.
#[test]
fn bash_agrees_that_it_has_ended() {
    const PARTS: &[&str] = &[
        "'",
        "\"",
        "`",
        "$(",
        "${x",
        "}",
        ")",
        "(",
        "((",
        "))",
        "{ ",
        " }",
        "; ",
        "\n",
        "\n",
        " if ",
        " then ",
        " fi",
        " for x in ",
        " do ",
        " done",
        " while ",
        "echo ",
        "ls",
        " <<X ",
        "X\n",
        " <<'X' ",
        "\\",
        "\\\n",
        "#",
        " # ",
        "&&",
        "|",
        "&",
        "<",
        ">",
        "=",
        "$'",
        "[[ ",
        " ]]",
        "$((",
        "f()",
        "x=(",
        " ! ",
        " time ",
        "<<<",
        " else ",
        "; done\n",
        "; fi\n",
        "; }\n",
        "a",
        "\nX\n",
    ];
    let all = if std::env::var_os("TOOL_SDK_PROOF").is_some() { 20_000 } else { 300 };
    let mut seed: u64 = 7;
    let mut next = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % most
    };
    let mut checked = 0;
    for _ in 0..100 * all {
        let mut text: String = (0..2 + next(9)).map(|_| PARTS[next(PARTS.len())]).collect();
        text.push('\n');
        let begins = ["'", "\"", "`", "(", "{", "<<", "if", "for", "while", "[["];
        if find_open_start(&text) == text.len() && begins.iter().any(|part| text.contains(part)) {
            assert!(!stands_open(&text), "{text:?}");
            checked += 1;
        }
        if checked == all {
            return;
        }
    }
    panic!("only {checked} have ended");
}
