//! Names under which programs run others: a line for each case, as in `table`.

use crate::support::Verdict::{Allow, Ask, Deny};
use crate::table::check;

// SH6: what is not known of a word is not taken for harmless.
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
