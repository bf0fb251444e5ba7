//! Fault 10: servers that are programs, and what becomes of them.

use super::*;
use crate::error::ErrorKind;

/// A server with one tool; `on_call` is what its script does about a call. It begins in a
/// version of its own, and says `$met` when it is met as one of today.
fn launch(begin: &str, on_call: &str) -> Launch {
    let script = format!(
        r#"met='"error":{{"code":-32601,"message":"no"}}'
        {begin}
        while read -r line; do
            id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            say() {{ printf '{{"jsonrpc":"2.0","id":%s,%s}}\n' "$id" "$1"; }}
            case "$line" in
            *'"initialize"'*'"2026-'* | *'"2026-'*'"initialize"'*) say '"error":{{"code":-32602,"message":"unknown version"}}' ;;
            *'"initialize"'*) say '"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"x","version":"1"}}}}' ;;
            *server/discover*)
                [ "$met" != exit ] || exit 1
                say "$met" ;;
            *tools/list*) say '"result":{{"tools":[{{"name":"echo","inputSchema":{{"type":"object"}}}}]}}' ;;
            *tools/call*) {on_call} ;;
            esac
        done"#
    );
    Launch::new("sh", ["-c", &script])
}

fn setting(launch: Launch) -> Setting {
    let setting = Setting::trusting(echo);
    setting.upstreams.remove("s");
    setting.upstreams.add(Upstream::new("s", launch).unwrap()).unwrap();
    setting
}

const HELLO: &str = r#"say '"result":{"content":[{"type":"text","text":"hello"}]}'"#;

// However a program of before 2026 takes a question that it does not know, it is met in a
// version that it can know.
#[tokio::test]
async fn an_older_program_is_met_whatever_it_answers_first() {
    for met in [
        r#"met='"result":{}'"#,
        r#"met='"result":"what?"'"#,
        r#"met='"result":{"supportedVersions":["2042-01-01"]}'"#,
        r#"met='"error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25"]}}'"#,
        "met=exit",
    ] {
        let setting = setting(launch(met, HELLO));
        let connected = setting.upstreams.connect("s").await;
        let status = connected.unwrap_or_else(|error| panic!("{met}: {error}"));
        assert_eq!(status.tools, ["mcp__s__echo"], "{met}");
    }
}

// fault 10: crash at start. F126: what a server says of its troubles is read by people and models.
#[tokio::test]
async fn what_a_server_complains_of_holds_no_secret_and_hides_nothing() {
    let words = r"printf 'no \033[2Jluck with %s\n' $API_KEY >&2; exit 3";
    let broken = Launch::new("sh", ["-c", words]).env("API_KEY", "hunter2hunter2");
    let setting = setting(broken);
    let error = setting.upstreams.connect("s").await.unwrap_err();
    let status = setting.upstreams.status("s").unwrap();
    let told = [&*error.message, status.last_error.as_ref().unwrap(), status.stderr.trim_end()];
    for told in told {
        assert!(told.ends_with("no \\x1b[2Jluck with [redacted]"), "{told}");
    }
}

// fault 10: crash mid-call.
#[tokio::test]
async fn a_program_that_dies_fails_its_call_at_once() {
    let setting = setting(launch("", "echo dying >&2; kill -9 $$"));
    setting.connect().await;
    let error = setting.call("echo", "{}").await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(!setting.upstreams.status("s").unwrap().connected);
}

// fault 10: floods standard error.
#[tokio::test]
async fn a_flood_of_complaints_blocks_nobody_and_is_not_kept() {
    let flood = "head -c 8000000 /dev/zero | tr '\\0' 'x' >&2; echo last >&2";
    let setting = setting(launch(flood, HELLO));
    setting.connect().await;
    assert_eq!(setting.call("echo", "{}").await.text(), "hello");
    let stderr = setting.upstreams.status("s").unwrap().stderr;
    assert!(stderr.len() < 4 << 20, "{} bytes were kept", stderr.len());
}

// fault 10: a frame of 1 GiB is not read to its end.
#[tokio::test]
async fn a_frame_without_end_is_left_unread() {
    let setting = setting(launch("", "head -c 1073741824 /dev/zero"));
    setting.connect().await;
    let error = setting.call("echo", "{}").await.result.unwrap_err();
    assert!(error.message().contains("more than 4194304 bytes"), "{error}");
}
