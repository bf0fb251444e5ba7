//! Spellings, inputs and aliases that hide what runs: a line for each case, as in
//! [`table`](super::table).

use crate::support::{Rules, Verdict};
use crate::table::check;

use Verdict::{Allow, Ask, Deny};

// SH1: unusual spellings are analysed as bash reads them.
#[test]
fn no_spelling_passes() {
    check(&[
        ("$'\\x72m' x", "?*", Ask, Deny),
        ("$\"rm\" x", "?*", Ask, Deny),
        ("r{m,} x", "?*", Ask, Ask),
        ("{rm,x}", "?*", Ask, Deny),
        ("/bin/r[m] x", "?*", Ask, Ask),
        ("~/rm x", "*", Allow, Deny),
        ("coproc rm x", "?*", Ask, Deny),
        ("coproc A { rm x; }", "?*", Ask, Deny),
        ("! rm x", "?*", Allow, Deny),
        ("time ! rm x", "?*", Ask, Deny),
        ("time -- ! rm x", "?*", Ask, Deny),
        ("time -p -- coproc rm x", "?*", Ask, Deny),
        ("time -- time -- { rm x; }", "?*", Ask, Deny),
        ("[[ -v a[$(rm x)] ]]", "?*", Ask, Deny),
        ("[[ 1 -eq a[$(rm x)] ]]", "?*", Ask, Deny),
        ("(( a[$(rm x)] ))", "?*", Ask, Deny),
        ("test -v 'a[$(rm x)]'", "?*", Ask, Deny),
        ("read 'a[$(rm x)]'", "?*", Ask, Ask),
        ("unset 'a[$(rm x)]'", "?*", Ask, Ask),
        ("wait -np 'a[$(rm x)]'", "?*", Ask, Deny),
        ("source <(echo rm x)", "?*", Ask, Deny),
        (". /dev/stdin <<< 'rm x'", "?*", Ask, Deny),
        ("exec 3< <(rm x)", "?*", Ask, Deny),
        ("hash -p /tmp/x ls", "?*", Ask, Ask),
        ("enable -f x.so y", "?*", Ask, Ask),
        ("alias ls='rm x'", "?*", Ask, Ask),
        ("PROMPT_COMMAND='rm x'", "?*", Ask, Deny),
        ("BASH_ENV=x bash -c ls", "?*", Ask, Ask),
        ("LD_PRELOAD=x ls", "?*", Ask, Ask),
        ("IFS=x; rm y", "?*", Ask, Deny),
        ("ls\u{3000}rm x", "?*", Ask, Ask),
        ("ls\r\nrm x", "?*", Ask, Deny),
        ("ls\0\nrm x", "?*", Ask, Deny),
        ("echo 'unclosed\nrm x", "?*", Ask, Deny),
        ("cat <<E\n$(rm x)\nE", "?*", Ask, Deny),
        ("cat <<'E'\nrm x\nE", "*", Allow, Allow),
        ("echo \"${x:=$(rm x)}\"", "?*", Ask, Deny),
        ("echo ${x/a/$(rm x)}", "?*", Ask, Deny),
        ("echo $[$(rm x)]", "?*", Ask, Deny),
        ("compgen -C 'rm x'", "?*", Ask, Ask),
        ("complete -C 'rm x' ls", "?*", Ask, Ask),
        ("bind -x '\"a\": rm x'", "?*", Ask, Deny),
        ("mapfile -C 'rm x' -c 1 a", "?*", Ask, Ask),
        ("fc -s ls=rm", "?*", Ask, Ask),
        // To bash this is not a name of a variable.
        ("getopts a 'b[$(rm x)]'", "*", Allow, Allow),
        ("echo 'rm x' | sh", "?*", Ask, Deny),
        ("printf 'rm x' | python3", "*", Allow, Deny),
        ("echo 'rm x' | cat", "*", Allow, Allow),
        ("declare -n a=b", "?*", Ask, Ask),
        ("set -- rm x; \"$@\"", "?*", Ask, Ask),
        ("cd /bin; ./rm x", "*", Ask, Deny),
        ("RM x", "*", Allow, Deny),
        ("rm.exe x", "*", Allow, Deny),
        ("powershell rm x", "?*", Ask, Deny),
        ("history -s 'rm x'", "?*", Ask, Ask),
        ("ksh93 -c 'rm x'", "?*", Ask, Deny),
        ("uniq - rm", "ls *", Ask, Ask),
        ("true; python$? x", "true * + python*", Ask, Ask),
        ("echo x > log.$$", "echo *", Ask, Ask),
        ("echo \"exit: $?\"", "echo *", Allow, Allow),
    ]);
}

// SH6, SH10: code is looked into also where it comes in as input, and with an operand.
#[test]
fn code_that_is_given_as_input_is_looked_into() {
    check(&[
        ("sqlite3 x <<'EOF'\n.shell rm x\nEOF", "sqlite3 *", Allow, Deny),
        ("python3 /dev/stdin <<'EOF'\nos.system('rm x')\nEOF", "python3 *", Allow, Deny),
        ("ed -s f <<< '!rm x'", "ed *", Ask, Deny),
        ("python3 <(echo 'os.system(\"rm x\")')", "*", Allow, Deny),
        ("perl -w <(printf 'system(\"rm x\")') y", "*", Allow, Deny),
        ("perl -w <(cat <<'E'\nsystem(\"rm x\")\nE\n)", "*", Allow, Deny),
        ("diff <(echo 'rm x') y", "*", Allow, Allow),
        ("make -f - <<< 'a:;rm x'", "make *", Ask, Deny),
        ("sftp host <<< '!rm x'", "sftp *", Allow, Deny),
        ("python3 -m timeit -s 'os.system(\"rm x\")'", "python3 *", Allow, Deny),
        ("gawk -oout '{print}'", "gawk *", Ask, Ask),
        ("awk -W exec=evil.awk x", "awk *", Ask, Ask),
    ]);
}

// SH7, SH10: what a command does that only its input names is seen by no rule against it.
#[test]
fn an_action_that_comes_as_input_is_asked_about() {
    let rules = Rules::new(&["*"], &["git push *", "docker compose rm *"]);
    for (script, expected) in [
        ("xargs git", Ask),
        ("xargs -I{} git {} x", Ask),
        ("xargs docker compose", Ask),
        ("find push -exec git {} x ';'", Ask),
        ("find push -exec git {} ';'", Ask),
        ("xargs git add", Allow),
        ("xargs -I{} git add {}", Allow),
        ("xargs touch", Allow),
        ("find . -name '*.rs' -exec sed -n 1,5p {} +", Allow),
        ("fd -e rs -x wc -l", Allow),
        ("find src -exec grep -l x {} ';'", Allow),
    ] {
        assert_eq!(rules.script(script), expected, "{script}");
    }
}

// SH7, SH10: settings may say that a command is another one.
#[test]
fn an_alias_is_asked_about_where_a_command_is_forbidden() {
    let (open, rules) =
        (Rules::new(&["*"], &[]), Rules::new(&["*"], &["git push *", "cargo publish *"]));
    for (script, expected) in [
        ("git p", Ask),
        ("git -C dir p", Ask),
        ("git -c alias.p=push p", Ask),
        ("git absorb x", Ask),
        ("cargo p", Ask),
        ("git -c ALIAS.p=push log", Ask),
        ("git -c include.path=x log", Ask),
        ("GIT_CONFIG_GLOBAL=x git p", Ask),
        ("cargo --config 'alias.p=\"publish\"' p", Ask),
        ("CARGO_ALIAS_P=publish cargo p", Ask),
        ("git -C dir status", Allow),
        ("git -c user.name=x commit -m y", Allow),
        ("cargo nextest run", Allow),
        ("GIT_PAGER=cat git fetch", Allow),
    ] {
        assert_eq!(rules.script(script), expected, "{script}");
        assert_eq!(open.script(script), Allow, "{script}");
    }
}
