//! Fault 10: servers that are programs, over stdio.

use std::time::Instant;

use tool_sdk_core::ErrorKind;

use super::*;

/// A limit of what must happen that only a hanging test reaches.
const HANGS: Duration = Duration::from_secs(60);

/// A server with one tool; `on_call` is what its script does on a call. It answers `initialize` with
/// `begin`, and sets `$met` when it got the 2026 handshake.
fn launch(begin: &str, on_call: &str) -> ServerCommand {
    launch_then(begin, on_call, "")
}

/// The same server, which does `end` when its standard input is closed.
fn launch_then(begin: &str, on_call: &str, end: &str) -> ServerCommand {
    let script = format!(
        r#"met='"error":{{"code":-32601,"message":"no"}}'
        {begin}
        while read -r line; do
            id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            say() {{ printf '{{"jsonrpc":"2.0","id":%s,%s}}\n' "$id" "$1"; }}
            case "$MODERN$line" in
            1*'"initialize"'*) say '"error":{{"code":-32601,"message":"no"}}' ;;
            *'"initialize"'*'"2026-'* | *'"2026-'*'"initialize"'*) say '"error":{{"code":-32602,"message":"unknown version"}}' ;;
            *'"initialize"'*) say '"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"x","version":"1"}}}}' ;;
            *server/discover*)
                [ "$met" != exit ] || exit 1
                say "$met" ;;
            *tools/list*) say '"result":{{"tools":[{{"name":"echo","inputSchema":{{"type":"object"}}}}]}}' ;;
            *tools/call*) {on_call} ;;
            esac
        done
        {end}"#
    );
    ServerCommand::new("sh", ["-c", &script])
}

fn setting(launch: ServerCommand) -> TestHost {
    let setting = TestHost::trusting(echo);
    setting.servers.remove("s");
    setting.servers.add(ServerConfig::new("s", launch).unwrap()).unwrap();
    setting
}

const HELLO: &str = r#"say '"result":{"content":[{"type":"text","text":"hello"}]}'"#;

// A 2025 program gets a version that it knows, in whichever way it rejects an unknown method.
#[tokio::test]
async fn connects_to_2025_programs_after_any_first_response() {
    for met in [
        r#"met='"result":{}'"#,
        r#"met='"result":"what?"'"#,
        r#"met='"result":{"supportedVersions":["2042-01-01"]}'"#,
        r#"met='"error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25"]}}'"#,
        "met=exit",
    ] {
        let setting = setting(launch(met, HELLO));
        let connected = setting.servers.connect("s").await;
        let status = connected.unwrap_or_else(|error| panic!("{met}: {error}"));
        assert_eq!(status.tools, ["mcp__s__echo"], "{met}");
    }
}

// fault 10: crash at startup. F126: standard error is shown to people and models.
#[tokio::test]
async fn stderr_is_redacted_and_escaped() {
    let words = r"printf 'no \033[2Jluck with %s\n' $API_KEY >&2; exit 3";
    let broken = ServerCommand::new("sh", ["-c", words]).env("API_KEY", "hunter2hunter2");
    let setting = setting(broken);
    let error = setting.servers.connect("s").await.unwrap_err();
    let status = setting.servers.status("s").unwrap();
    let told = [&*error.message, status.last_error.as_ref().unwrap(), status.stderr.trim_end()];
    for told in told {
        assert!(told.ends_with("no \\x1b[2Jluck with [redacted]"), "{told}");
    }
}

// fault 10: crash during a call.
#[tokio::test]
async fn exit_fails_the_running_call_at_once() {
    let setting = setting(launch("", "echo dying >&2; kill -9 $$"));
    setting.connect().await;
    let error = setting.call("echo", "{}").await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(!setting.servers.status("s").unwrap().connected);
}

// fault 10: floods standard error.
#[tokio::test]
async fn flood_on_stderr_is_drained_and_bounded() {
    let flood = "head -c 8000000 /dev/zero | tr '\\0' 'x' >&2; echo last >&2";
    let setting = setting(launch(flood, HELLO));
    setting.connect().await;
    assert_eq!(setting.call("echo", "{}").await.text(), "hello");
    let stderr = setting.servers.status("s").unwrap().stderr;
    assert!(stderr.len() < 4 << 20, "{} bytes were kept", stderr.len());
}

// fault 10: a frame of 1 GiB is not read to its end.
#[tokio::test]
async fn oversized_line_is_not_read_to_its_end() {
    let setting = setting(launch("", "head -c 1073741824 /dev/zero"));
    setting.connect().await;
    let error = setting.call("echo", "{}").await.result.unwrap_err();
    assert!(error.message().contains("more than 4194304 bytes"), "{error}");
}

/// A server that does `at_end` when its standard input is closed.
fn launch_with_end(at_end: &str) -> ServerCommand {
    let (begin, end) = ("trap 'echo term >> \"$LOG\"' TERM", format!("\n{at_end}"));
    launch_then(begin, HELLO, &end)
}

// The protocol's shutdown over stdio: a server gets time to exit by itself before it is signalled.
#[tokio::test]
async fn server_exits_by_itself_when_its_input_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let text = || std::fs::read_to_string(&log).unwrap_or_default();
    let with_log = |launch: ServerCommand| launch.env("LOG", log.to_str().unwrap());
    let tidy = launch_with_end("sleep 0.5; echo saved >> \"$LOG\"").exit_timeout(HANGS);
    let tidy = setting(with_log(tidy));
    tidy.connect().await;
    tidy.servers.shut_down().await;
    assert_eq!(text(), "saved\n");

    // One that does not exit gets the signal, and is killed if that does not help. How much it does in
    // between is up to the scheduler.
    let start = Instant::now();
    while text() != "saved\nterm\n" {
        assert!(start.elapsed() < HANGS, "it gets no signal: {}", text());
        let stubborn =
            launch_with_end("while :; do sleep 0.1; done").exit_timeout(Duration::from_millis(100));
        let stubborn = setting(with_log(stubborn));
        stubborn.connect().await;
        stubborn.servers.shut_down().await;
    }
}

// Servers end at the same time, so that many take no longer than one.
#[tokio::test]
async fn servers_exit_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let others = folder.path().to_str().unwrap();
    // Each waits until both have begun to exit.
    let end = r#": > "$LOG/$NAME"; until [ -e "$LOG/a" ] && [ -e "$LOG/b" ]; do sleep 0.05; done; : > "$LOG/$NAME.done""#;
    let launch =
        |name| launch_with_end(end).exit_timeout(HANGS).env("LOG", others).env("NAME", name);
    let host = setting(launch("a"));
    let other = launch("b");
    host.servers.add(ServerConfig::new("t", other).unwrap()).unwrap();
    assert!(host.servers.connect_all().await.is_empty());
    host.servers.shut_down().await;
    assert!(folder.path().join("a.done").exists() && folder.path().join("b.done").exists());
}

// A slow server with the 2026 protocol alone is started once, and asked again.
#[tokio::test]
async fn slow_modern_server_is_started_once() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let begin = r#"echo start >> "$LOG"; sleep 2.5
        met='"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"},"ttlMs":0,"cacheScope":"private"}'"#;
    let modern = launch(begin, HELLO).env("LOG", starts.to_str().unwrap()).env("MODERN", "1");
    let setting = setting(modern);
    setting.connect().await;
    assert_eq!(setting.call("echo", "{}").await.text(), "hello");
    assert_eq!(std::fs::read_to_string(&starts).unwrap(), "start\n");
}
