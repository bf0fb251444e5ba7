//! Arguments that turn a harmless name into something else.

use super::*;

fn words(text: &str) -> Vec<ShellWord> {
    text.split(' ').map(ShellWord::from_literal).collect()
}

#[test]
fn arguments_that_act_are_seen() {
    for text in [
        "find . -delete",
        "find . -fprint x",
        "find . -unheard-of",
        "fd -x rm",
        "fd --exec=rm",
        "git -C x status",
        "git -c alias.x=!sh x",
        "git --exec-path=x status",
        "git log --output=x",
        "git log --ou=x",
        "git grep -Ovim x",
        "git grep --open-files-in-pager=x y",
        "git clone -c core.sshCommand=x y",
        "git clone ext::sh y",
        "git fetch --upload-pack=x y",
        "git rebase -x make",
        "git config core.pager x",
        "git config edit",
        "git config --global edit",
        "git config core.fsmonitor x -- --get",
        "git config core.fsmonitor x -l",
        "git config core.fsmonitor x --get",
        "git config --local core.fsmonitor x --list",
        "git config -f -l core.fsmonitor x",
        "tar tf h:x -- --force-local",
        "date 010100002026",
        "date -u 010100002026",
        "date -Iseconds 010100002026",
        "ip -b x",
        "ip --batch x",
        "kubectl config set-credentials u --exec-command=x",
        "kubectl -n a config set a b",
        "gh alias set x !y",
        "gh -R a/b config set pager x",
        "pip config set global.index-url x",
        "git bundle create x HEAD",
        "git push ./x HEAD",
        "git push -q file:///x",
        "git send-pack /x",
        "git submodule foreach x",
        "git bisect run x",
        "rg --pre=x y",
        "rg -nz y",
        "sed -i s/a/b/ x",
        "sed -ni p x",
        "sed s/a/b/e x",
        "sed s/a/b/wx x",
        "sed 1e x",
        "sed w x",
        "sed --in-place=b p x",
        "sed -e w x",
        "awk {system(1)} x",
        "awk -f x",
        "awk {print>1} x",
        "awk 1|getline x",
        "sort -o x y",
        "sort --compress-prog=x y",
        "sort -uo x y",
        "tar xf x --to-command=y",
        "tar --checkpoint-action=exec=x cf y",
        "tar cIf x y",
        "rsync -e x y z",
        "rsync -ave x y z",
        "ssh -oProxyCommand=x y",
        "curl -o x y",
        "curl -sSLo x y",
        "curl -K x",
        "curl --upload-file x y",
        "curl {fi,x}le:///etc/passwd",
        "curl f[i-j]le:///etc/passwd",
        "wget -O x y",
        "go test -exec x",
        "go build --toolexec=x",
        "go vet -vettool=x",
        "cargo --config x build",
        "cargo build -Zunstable",
        "npm --script-shell=x test",
        "npm --script-sh x test",
        "npm config set x y",
        "make SHELL=x",
        "make -f x",
        "make --file=x",
        "make --eval=x",
        "rm --no-preserve-root x",
        "find -- . -delete",
        "git log --grep -- --output=x",
        "rg -e -- --pre=x",
        "sort -k -- -o x",
        "sed -l 1p wx y",
        "git --no-pager -c x log",
        "test -v a[$(x)]",
        "[ -v a[$(x)] ]",
        "printf -v a[$(x)] b",
        "printf x%n PATH",
        "printf -- %%%-3.1ln PATH",
        "printf %s%n x PATH",
        "git submodule--helper update",
        "git merge-file a b c",
        "git mailsplit -ox y",
        "cargo --locked rustc -- -Clinker=x",
        "cargo +stable rustc -- -Clinker=x",
        "cargo +/tmp/x build",
        "npm -script-shell=x test",
        "npm -node-options=x test",
        "ed !x",
        "vim -V9x y",
        "emacs -x y",
        "zip -lf x y z",
        "tar -cgx y z",
        "ssh -Y host",
    ] {
        assert!(has_dangerous_argument(&words(text), false), "{text}");
    }
}

#[test]
fn daily_work_is_not() {
    for text in [
        "find . -name x -type f -maxdepth 2",
        "git commit -m x",
        "git push --force-with-lease origin main",
        "git push -u origin feature/x",
        "git push git@host:x/y.git HEAD:z",
        "git log --oneline -n 5 --stat",
        "git checkout -b x",
        "git --no-pager diff --cached",
        "rg -n --hidden TODO src",
        "sed -n 1,5p x",
        "sed s/a/b/g x",
        "sed -E s|a(b)|c| x",
        "awk {print$1} x",
        "sort -rn -k2 x",
        "tar -xzf x.tar.gz",
        "tar tf x",
        "rsync -av --dry-run a b",
        "ssh host ls",
        "curl -fsSL https://example.org",
        "curl https://example.org/{a,b}[1-3]",
        "git config --get user.name",
        "git config --global --get user.name",
        "git config user.name",
        "git config -l",
        "git bisect good",
        "git bisect start HEAD v1",
        "git push --follow-tags origin main",
        "date -d yesterday +%F",
        "date -ud yesterday",
        "date --date yesterday",
        "date -j -f %Y 2020 +%s",
        "ip -br addr",
        "kubectl config view",
        "kubectl get pods -n config",
        "gh pr create --title config",
        "printf %s\\n%%now x",
        "printf %n",
        "go test ./... -run X -v -race",
        "cargo test --workspace --all-features -- --nocapture",
        "npm run build --silent",
        "npm install --save-dev x",
        "npm install -D -ddd x",
        "npm test -- -watch",
        "cargo +nightly build",
        "tar -czf x.tar.gz y",
        "vim x",
        "make -j4 test",
        "rm -r --verbose x",
        "unheard-of --of",
    ] {
        assert!(!has_dangerous_argument(&words(text), false), "{text}");
    }
}

#[test]
fn words_that_may_be_options_count() {
    let mut loose = words("rg x y");
    loose[2].may_become_option = true;
    assert!(has_dangerous_argument(&loose, false));
    assert!(has_dangerous_argument(&words("rg x"), true));
    let mut format = words("printf x PATH");
    format[1].is_glob = true;
    assert!(has_dangerous_argument(&format, false));
    assert!(!has_dangerous_argument(&format[..2], false));
    let mut message = words("git commit -m x");
    message[3].may_become_option = true;
    assert!(!has_dangerous_argument(&message, false));
    message[3].may_split = true;
    assert!(has_dangerous_argument(&message, false));
}

// SH6: no row forgets that a word may be any number of others.
#[test]
fn every_row_asks_what_words_are() {
    for name in names() {
        let mut several = words(&format!("{name} $(x)"));
        (several[1].is_unknown, several[1].may_split) = (true, true);
        assert!(has_dangerous_argument(&several, false), "{name}");
        let mut pattern = words(&format!("{name} * y"));
        (pattern[1].is_glob, pattern[1].may_become_option) = (true, true);
        assert!(has_dangerous_argument(&pattern, false), "{name}");
    }
}

// F87
#[test]
fn forced_removal_is_destructive() {
    for text in [
        "rm -rf x",
        "rm -fr x",
        "rm -f x",
        "rm x -f",
        "rm -r -f x",
        "rm -Rvf x",
        "rm --force x",
        "rm --fo x",
        "rm -r --interactive=never x",
        "rm --int=no x",
        "/bin/rm -rf x",
        "RM.EXE -f x",
        "rm -r /",
        "rm -r ~/",
        "rm -r $HOME/*",
        "rm -{r,f} x",
        "mkfs.ext4 /dev/sda",
        "mke2fs /dev/sda",
        "cp x /dev/nvme0n1",
        "tee /dev/sda1",
        "systemctl poweroff",
        "init 0",
        "dd if=x of=/dev/sda",
        "shutdown -h now",
    ] {
        assert!(is_destructive(&words(text), false), "{text}");
    }
    for text in [
        "rm x",
        "cp x /dev/null",
        "tee /dev/stderr",
        "systemctl status x",
        "rm -r --interactive=once x",
        "rm -r x",
        "rm -- -f",
        "rm -i ./f",
        "rmdir -f",
        "dd of=x",
        "git rm -f x",
    ] {
        assert!(!is_destructive(&words(text), false), "{text}");
    }
}
