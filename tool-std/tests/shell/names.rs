//! Names under which programs run others: one line for each case, as in `table`.

use crate::support::Verdict::{Allow, Ask, Deny};
use crate::table::check;

// SH6: an unknown part of a word is not treated as harmless.
#[test]
fn words_of_which_only_the_start_is_known_hide_nothing() {
    check(&[
        ("rustc -C lin\"$(y)\" a.rs", "rustc * + y", Ask, Ask),
        ("rustc -C opt-level=\"$(y)\" a.rs", "rustc * + y", Allow, Allow),
        ("git push b\"$(y)\" HEAD:x", "git * + y", Ask, Ask),
        ("make all SHEL\"$(y)\"", "make * + y", Ask, Ask),
        ("make all SHEL*", "make *", Ask, Ask),
        ("curl -s f\"$(y)\"", "curl * + y", Ask, Ask),
        ("tar tf a*b", "tar *", Ask, Ask),
        ("date 0\"$(y)\"", "date * + y", Ask, Ask),
        ("rm -$X y", "*", Ask, Deny),
    ]);
}

// SH6: daily work needs no approval.
#[test]
fn daily_work_needs_no_approval() {
    check(&[
        ("awk 'NR>1' y", "awk *", Allow, Allow),
        ("awk -F, '$3 > 5 && /a|b/ {print $1 \"|\" $2}' y/*.csv", "awk *", Allow, Allow),
        ("awk '{print > \"y\"}' z", "awk *", Ask, Ask),
        ("npx tsc --noEmit", "npx * + tsc *", Allow, Allow),
        ("npx --yes eslint src --ext .ts", "npx * + eslint *", Allow, Allow),
        ("npx --script-shell=x tsc", "npx * + tsc *", Ask, Ask),
        ("npx -c 'rm x'", "npx *", Ask, Deny),
        ("npx tsc && npm config set a b", "?*", Ask, Ask),
        ("npm test config", "npm *", Ask, Ask),
        ("make -j$(nproc) all", "make *", Allow, Allow),
        ("make -j\"$(y)\" all", "make * + y", Ask, Ask),
        ("make A$(nproc)", "make *", Ask, Ask),
        ("cargo metadata --format-version 1", "cargo *", Allow, Allow),
        ("wget -qO- https://a", "wget *", Allow, Allow),
        ("wget -O /dev/null https://a", "wget *", Allow, Allow),
        ("wget -qO y https://a", "wget *", Ask, Ask),
        ("wget -aO- https://a", "wget *", Ask, Ask),
        ("wget -iO- https://a", "wget *", Ask, Ask),
        ("curl -so /dev/null -w '%{http_code}' https://a", "curl *", Allow, Allow),
        ("curl -d '{\"a\":1}' https://a", "curl *", Allow, Allow),
        ("curl -d @y https://a", "curl *", Ask, Ask),
        ("curl -w '%output{y}' https://a", "curl *", Ask, Ask),
        ("curl -H -d -K y", "curl *", Ask, Ask),
        ("curl -H -d file:///y", "curl *", Ask, Ask),
        ("curl -sS -H 'A: b' -d '{\"a\":1}' https://a", "curl *", Allow, Allow),
        ("curl -so y https://a", "curl *", Ask, Ask),
        ("curl -Ko - https://a", "curl *", Ask, Ask),
        ("curl -d \"$(y)\" https://a", "curl * + y", Ask, Ask),
        ("mvn -fae test", "mvn *", Allow, Allow),
        ("mvn -f y test", "mvn *", Ask, Ask),
        ("psql -Upostgres -hlocalhost -c 'select 1'", "psql *", Allow, Allow),
        ("psql -qo y", "psql *", Ask, Ask),
        ("hostname --fqdn", "hostname *", Allow, Allow),
        ("git config user.name", "git *", Allow, Allow),
        ("git bisect good", "git *", Allow, Allow),
    ]);
}

// SH5, SH10
#[test]
fn other_names_hide_nothing() {
    check(&[
        ("rust-gdb -batch -ex '!rm x'", "rust-gdb *", Ask, Deny),
        ("rust-lldb -o 'shell rm x'", "rust-lldb *", Ask, Deny),
        ("gdb-multiarch -ex 'shell rm x'", "gdb-multiarch *", Ask, Deny),
        ("not-14 rm x", "not-14 *", Ask, Deny),
        ("valgrind.bin rm x", "valgrind.bin *", Ask, Deny),
        ("valgrind.bin -q rm x", "valgrind.bin *", Ask, Deny),
        ("msgexec -i x.po rm x", "msgexec *", Ask, Deny),
        ("msgfilter -i x.po rm x", "msgfilter *", Ask, Deny),
        ("pg_virtualenv rm x", "pg_virtualenv *", Ask, Deny),
        ("coreutils rm x", "coreutils *", Ask, Deny),
        ("coreutils --coreutils-prog=rm x", "coreutils *", Ask, Deny),
        ("genv rm x", "genv *", Ask, Deny),
        ("gnuenv rm x", "gnuenv *", Ask, Deny),
        ("gnice -n 5 rm x", "gnice *", Ask, Deny),
        ("gnohup rm x", "gnohup *", Ask, Deny),
        ("gchroot / rm x", "gchroot *", Ask, Deny),
        ("grm x", "grm *", Allow, Deny),
        ("/opt/bin/gnurm x", "/opt/bin/gnurm *", Allow, Deny),
        ("sudo-rs -u root rm x", "sudo-rs *", Ask, Deny),
        ("sudo.ws rm x", "sudo.ws *", Ask, Deny),
        ("luit rm x", "luit *", Ask, Deny),
        ("corepack pnpm exec rm x", "corepack *", Ask, Deny),
        ("gprofng collect app rm x", "gprofng *", Ask, Deny),
        ("gprofng display text a.er", "gprofng *", Allow, Allow),
        ("python3.13t -c 'os.system(\"rm x\")'", "python3.13t *", Allow, Deny),
        ("python3.6m -c 'os.system(\"rm x\")'", "python3.6m *", Allow, Deny),
        ("original-awk 'BEGIN{system(\"rm x\")}'", "original-awk *", Ask, Deny),
        ("idle -c 'os.system(\"rm x\")'", "idle *", Allow, Deny),
        ("pdb3 -c '!os.system(\"rm x\")' a.py", "pdb3 *", Allow, Deny),
        ("bind '\"q\":\"rm x\\n\"'", "bind *", Ask, Deny),
        ("bind -x '\"q\":rm x'", "bind *", Ask, Deny),
        ("jrunscript -e 'exec(\"rm x\")'", "jrunscript *", Allow, Deny),
    ]);
}
