//! Pushes into local repositories, whose hooks may come from anywhere.

use serde_json::json;
use tool_sdk::Action::{Allow, Ask};
use tool_sdk::Mode;

use crate::support::{Host, check};

fn write(host: &Host, file: &str, text: &str) {
    let file = host.folder.path().join(file);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

// SH6: a rule for pushing speaks of other machines, and not of hooks that lie in a folder.
#[tokio::test]
async fn a_push_into_a_folder_is_asked_about() {
    let host = Host::new(Mode::Auto, &["allow exec_command(git *)"]);
    for folder in ["bare", "src/inner"] {
        write(&host, &format!("{folder}/HEAD"), "ref: refs/heads/main");
    }
    write(&host, ".git/config", "[remote \"origin\"]\n\turl = git@host:a/b.git\n");
    write(&host, "y/.git/config", "[remote \"origin\"]\n\turl = ../bare\n");
    for (cmd, expected) in [
        ("git push bare HEAD:refs/heads/m", Ask),
        ("git push ./bare HEAD:refs/heads/m", Ask),
        ("git push \"$PWD/bare\"", Ask),
        ("git push bar* HEAD:refs/heads/m", Ask),
        ("git push b?re HEAD:refs/heads/m", Ask),
        ("cd src && git push inner HEAD:m", Ask),
        // Git looks from the top of the work tree.
        ("cd src && git push bare HEAD:m", Ask),
        ("cd -- src && git push bare HEAD:m", Ask),
        ("cd -P src && git push bare HEAD:m", Ask),
        ("pushd src && git push bare HEAD:m", Ask),
        ("git remote add h ./bare && git push h HEAD:m", Ask),
        ("git remote set-url origin bare; git push", Ask),
        ("git clone -q ./bare z && cd z && git push origin HEAD:m", Ask),
        ("cd y && git push origin HEAD:m", Ask),
        ("cd y && git push", Ask),
        ("git push origin HEAD:bare", Allow),
        ("git push -u origin feature/bare", Allow),
        ("git push", Allow),
        ("cd src && git push --tags origin main", Allow),
        ("git clone git@host:c && git push origin main", Allow),
        ("git add -A && git commit -m push && git push origin main", Allow),
        ("cd src && git add . && cd .. && git push origin main", Allow),
        ("git stash push bare", Allow),
    ] {
        let checked = check(&host, "exec_command", &json!({ "cmd": cmd })).await;
        assert_eq!(checked.decision.action, expected, "{cmd}: {:?}", checked.decision.reason);
    }
}
