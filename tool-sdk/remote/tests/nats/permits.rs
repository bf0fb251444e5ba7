//! Permits that a worker must refuse: nothing runs without a valid one.

use std::path::PathBuf;

use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tool_sdk_core::{Call, ErrorKind};

use crate::fixtures::{
    HANGS, KEY, LocalWorker, NatsServer, TestHost, rounds, runs_in, worker_config, worker_pipeline,
};

/// The answer where no worker listens.
const NO_WORKER: &str = "no worker";

/// A request to run a call, as a host sent it, with the worker's answer.
struct CapturedRun {
    subject: String,
    request: Value,
}

/// A host that made one call, whose `run` request was overheard.
struct OverheardCall {
    server: NatsServer,
    worker: LocalWorker,
    client: async_nats::Client,
    file: PathBuf,
    run: CapturedRun,
    _folder: tempfile::TempDir,
}

impl OverheardCall {
    async fn start() -> Option<Self> {
        Self::start_with("append").await
    }

    /// Starts with a call of this tool, which appends a line to the file.
    async fn start_with(tool: &str) -> Option<Self> {
        let server = NatsServer::start().await?;
        let worker = LocalWorker::start(&server).await;
        let host = TestHost::start(&server).await;
        host.wait_for_workers(1).await;
        let client = server.client().await;
        let mut heard = client.subscribe("tools.demo.v1.worker.*.run").await.unwrap();
        client.flush().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lines");
        let arguments = json!({ "path": file }).to_string();
        let call = Call::new(format!("remote__demo__{tool}"), arguments);
        host.pipeline.call(&host.session, call).await.result.unwrap();
        let message = heard.next().await.unwrap();
        let mut request: Value = serde_json::from_slice(&message.payload).unwrap();
        let headers = message.headers.expect("the permit is in a header");
        request["permit"] = headers.get("Tool-Permit").expect("a permit").as_str().into();
        let run = CapturedRun { subject: message.subject.to_string(), request };
        assert_eq!(runs_in(&file), 1);
        Some(Self { server, worker, client, file, run, _folder: folder })
    }

    /// Sends a request to run a call; returns the answers.
    async fn send(&self, subject: &str, request: &Value) -> async_nats::Subscriber {
        let inbox = self.client.new_inbox();
        let answers = self.client.subscribe(inbox.clone()).await.unwrap();
        let (headers, body) = to_message(request);
        let subject = subject.to_owned();
        let sent = self.client.publish_with_reply_and_headers(subject, inbox, headers, body);
        sent.await.unwrap();
        answers
    }

    /// Sends a request to run a call; returns why it was refused.
    async fn refusal_of(&self, subject: &str, request: &Value) -> String {
        let mut answers = self.send(subject, request).await;
        let answer = tokio::time::timeout(HANGS, answers.next());
        let answer = answer.await.unwrap().unwrap();
        if answer.status == Some(async_nats::StatusCode::NO_RESPONDERS) {
            return NO_WORKER.to_owned();
        }
        let answer: Value = serde_json::from_slice(&answer.payload).unwrap();
        answer["body"]["refused"].as_str().unwrap_or("not refused").to_owned()
    }

    /// Sends a request to run a call; returns how the call ended.
    async fn result_of(&self, subject: &str, request: &Value) -> Value {
        let mut answers = self.send(subject, request).await;
        let finished = async {
            loop {
                let answer: Value =
                    serde_json::from_slice(&answers.next().await.unwrap().payload).unwrap();
                assert!(answer["body"].get("refused").is_none(), "{answer}");
                if let Some(result) = answer["body"].get("finished") {
                    return result.clone();
                }
            }
        };
        tokio::time::timeout(HANGS, finished).await.unwrap()
    }

    /// Returns the request with another permit, signed with the key of the tests.
    fn with_permit(&self, change: impl FnOnce(&mut Value)) -> Value {
        let text = self.run.request["permit"].as_str().unwrap();
        let mut permit = read_permit(text);
        permit["nonce"] = json!("a nonce that was not used");
        change(&mut permit);
        let mut request = self.run.request.clone();
        request["permit"] = json!(sign(&permit, KEY));
        request
    }

    fn runs(&self) -> usize {
        runs_in(&self.file)
    }
}

/// Returns what is sent for a request: its permit as a header, and the rest.
fn to_message(request: &Value) -> (async_nats::HeaderMap, Bytes) {
    let mut request = request.clone();
    let permit = request.as_object_mut().unwrap().remove("permit");
    let mut headers = async_nats::HeaderMap::new();
    if let Some(permit) = permit {
        headers.insert("Tool-Permit", permit.as_str().unwrap_or_default());
    }
    (headers, request.to_string().into())
}

fn read_permit(text: &str) -> Value {
    use base64::Engine as _;
    let (json, _) = text.split_once('.').unwrap();
    let json = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(json).unwrap();
    serde_json::from_slice(&json).unwrap()
}

fn sign(permit: &Value, key: &str) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let json = permit.to_string();
    let message = [b"tool-sdk permit 1\0", json.as_bytes()].concat();
    let signature = hmac_sha256::HMAC::mac(message, key);
    format!("{}.{}", URL_SAFE_NO_PAD.encode(json), URL_SAFE_NO_PAD.encode(signature))
}

// RW1, RW2, RW3, RW4, RW6
#[tokio::test(flavor = "multi_thread")]
async fn a_permit_counts_for_one_run_of_one_call() {
    let Some(heard) = OverheardCall::start().await else { return };
    let run = heard.run.subject.clone();
    for _ in 0..rounds() {
        assert_eq!(heard.refusal_of(&run, &heard.run.request).await, "replayed");
    }
    let cases: [(&str, Value); 9] = [
        ("expired", heard.with_permit(|it| it["expires_ms"] = json!(1))),
        ("definition", heard.with_permit(|it| it["definition"] = json!("0".repeat(64)))),
        ("definition", heard.with_permit(|it| it["tool"] = json!("look"))),
        ("permit", heard.with_permit(|it| it["namespace"] = json!("other"))),
        ("permit", heard.with_permit(|it| it["worker"] = json!("0123456789abcdef"))),
        ("permit", heard.with_permit(|it| it["purpose"] = json!("prepare"))),
        ("permit", heard.with_permit(|it| it["further"] = json!("member"))),
        ("permit", json!({ "permit": 1 })),
        ("message", {
            let mut request = heard.with_permit(|_| {});
            request["arguments"] = json!(1);
            request
        }),
    ];
    for (expected, request) in cases {
        assert_eq!(heard.refusal_of(&run, &request).await, expected, "{request}");
    }
    let mut forged = heard.run.request.clone();
    let permit = read_permit(forged["permit"].as_str().unwrap());
    forged["permit"] = json!(sign(&permit, "another secret of 32 bytes or more"));
    assert_eq!(heard.refusal_of(&run, &forged).await, "permit");
    assert_eq!(heard.runs(), 1);
}

// RW5: the pipeline of the worker denies a call that is not that of the fingerprint.
#[tokio::test(flavor = "multi_thread")]
async fn a_permit_counts_for_the_arguments_that_were_approved() {
    // The worker's rules would ask about `append`, and allow `look`.
    for tool in ["append", "look"] {
        let Some(heard) = OverheardCall::start_with(tool).await else { return };
        let other = heard.file.with_file_name("other");
        let mut request = heard.with_permit(|_| {});
        request["arguments"] = json!(json!({ "path": other }).to_string());
        let result = heard.result_of(&heard.run.subject, &request).await;
        let error = &result["failed"]["error"];
        assert_eq!(error["kind"], "denied", "{tool}: {result}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("it is not the call that was approved"), "{tool}: {message}");
        assert!(!other.exists());
        assert_eq!(heard.runs(), 1);
    }
}

// RW3
#[tokio::test(flavor = "multi_thread")]
async fn a_permit_does_not_count_for_another_worker() {
    let Some(heard) = OverheardCall::start().await else { return };
    let other = LocalWorker::start_with(&heard.server, worker_config(), worker_pipeline([])).await;
    let subject = heard.run.subject.replace(&heard.worker.id, &other.id);
    assert_ne!(subject, heard.run.subject);
    while heard.refusal_of(&subject, &heard.run.request).await == NO_WORKER {}
    for request in [heard.run.request.clone(), heard.with_permit(|_| {})] {
        assert_eq!(heard.refusal_of(&subject, &request).await, "permit");
    }
    assert_eq!(heard.runs(), 1);
}

// RW6: a replay would send the preview, which may show a file, to another inbox.
#[tokio::test(flavor = "multi_thread")]
async fn a_permit_to_prepare_counts_once() {
    let Some(server) = NatsServer::start().await else { return };
    let _worker = LocalWorker::start(&server).await;
    let host = TestHost::start(&server).await;
    host.wait_for_workers(1).await;
    let client = server.client().await;
    let mut heard = client.subscribe("tools.demo.v1.tool.add.*").await.unwrap();
    client.flush().await.unwrap();
    let call = Call::new("remote__demo__add", r#"{"a": 1, "b": 2}"#);
    assert_eq!(host.pipeline.call(&host.session, call).await.text(), "3");
    let message = heard.next().await.unwrap();
    for _ in 0..rounds() {
        let (subject, headers) = (message.subject.clone(), message.headers.clone().unwrap());
        let replayed = client.request_with_headers(subject, headers, message.payload.clone());
        let answer: Value = serde_json::from_slice(&replayed.await.unwrap().payload).unwrap();
        assert_eq!(answer, json!({ "refused": "replayed" }));
    }
}

// RW2
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_described_or_drained_without_a_permit() {
    let Some(heard) = OverheardCall::start().await else { return };
    let prepare = heard.run.subject.replace(".run", ".prepare");
    let (headers, body) = to_message(&heard.run.request);
    let answer = heard.client.request_with_headers(prepare, headers, body).await.unwrap();
    let answer: Value = serde_json::from_slice(&answer.payload).unwrap();
    assert_eq!(answer, json!({ "refused": "permit" }), "a permit to run is none to prepare");
    let drain = heard.run.subject.replace(".run", ".drain");
    let permit = heard.run.request["permit"].as_str().unwrap().to_owned();
    for text in [permit, String::new(), "noise".to_owned()] {
        let answer = heard.client.request(drain.clone(), text.into()).await.unwrap();
        let answer: Value = serde_json::from_slice(&answer.payload).unwrap();
        assert_eq!(answer, json!({ "Err": "permit" }));
    }
}

// RW9
#[tokio::test(flavor = "multi_thread")]
async fn a_permit_to_run_goes_to_no_subject_that_an_answer_makes_up() {
    let Some(server) = NatsServer::start().await else { return };
    let mut worker = server.spawn_worker().await;
    let host = TestHost::start(&server).await;
    host.wait_for_workers(1).await;
    worker.pause().await;
    let client = server.client().await;
    let mut prepares = client.subscribe("tools.demo.v1.tool.add.*").await.unwrap();
    let mut sent = client.subscribe("tools.demo.v1.worker.>").await.unwrap();
    client.flush().await.unwrap();
    let answer = json!({ "prepared": {
        "worker": "0123.prepare.x",
        "facts": {
            "fingerprint": "0".repeat(64), "summary": null, "resources": [], "paths": [],
            "approval_required": null, "suggestions": [], "restricts_suggestions": false,
            "judges_patterns": false, "is_dangerous": false, "preview": { "Ok": null },
            "concurrency_key": null,
        },
    } });
    let call = Call::new("remote__demo__add", r#"{"a": 1, "b": 2}"#);
    let (outcome, ()) = tokio::join!(host.pipeline.call(&host.session, call), async {
        let reply = prepares.next().await.unwrap().reply.unwrap();
        client.publish(reply, answer.to_string().into()).await.unwrap();
    });
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Unavailable);
    client.flush().await.unwrap();
    // What was sent before this has arrived with it.
    client.publish("tools.demo.v1.worker.end", Bytes::new()).await.unwrap();
    let mut subjects = Vec::new();
    while let Some(message) = sent.next().await {
        if message.subject.ends_with(".end") {
            break;
        }
        subjects.push(message.subject.to_string());
    }
    assert!(subjects.iter().all(|it| !it.contains("0123")), "{subjects:?}");
    worker.kill().await;
}

// RW1
#[tokio::test(flavor = "multi_thread")]
async fn fuzzed_permits_run_nothing() {
    let Some(heard) = OverheardCall::start().await else { return };
    let text = heard.run.request["permit"].as_str().unwrap().to_owned();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(state >> 33).unwrap() % below
    };
    for _ in 0..500 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=next(3) {
            let at = next(bytes.len());
            match next(3) {
                0 => bytes[at] = b"ABCabc012_-.~{\""[next(15)],
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b'A'),
            }
        }
        let changed = String::from_utf8(bytes).unwrap();
        if changed == text {
            continue;
        }
        let mut request = heard.run.request.clone();
        request["permit"] = json!(changed);
        let refusal = heard.refusal_of(&heard.run.subject, &request).await;
        assert_eq!(refusal, "permit", "{changed}");
    }
    assert_eq!(heard.runs(), 1);
}
