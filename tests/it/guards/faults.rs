//! Faults on the way to a tool: none of them ends in running it.

use super::*;

/// A fault in one place on the way to the tool.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Decode,
    Subjects,
    Required,
    BeforeFails,
    BeforePanics,
    BeforeRewritesBadly,
    ApproverPanics,
    ApproverLeaves,
    Preview,
    Suggestions,
    Audit,
    Dangerous,
    Summary,
    Digest,
    Define,
    Facts,
}

/// A tool and its surroundings with a fault in one place.
struct Faulty(Fault, Log);

struct FaultyCall(Fault, Log);

impl Tool for Faulty {
    fn definition(&self) -> &Definition {
        static DEFINITION: std::sync::OnceLock<Definition> = std::sync::OnceLock::new();
        DEFINITION.get_or_init(definition)
    }

    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn Prepared>, InvalidArgs> {
        assert!(self.0 != Fault::Decode, "decoding");
        // What a hook made of it is refused like what a model made of it.
        serde_json::from_str::<Value>(args.text()).expect("JSON");
        Ok(Box::new(FaultyCall(self.0, self.1.clone())))
    }
}

impl Prepared for FaultyCall {
    fn run(self: Box<Self>, _: Approved<'_>) -> Running {
        self.1.note("run");
        Box::pin(async { Ok(Output::text("ran")) })
    }

    fn subjects(&self, _: &Context) -> Option<Vec<Subject>> {
        assert!(self.0 != Fault::Subjects, "subjects");
        None
    }

    fn approval_required(&self, _: &Context) -> Option<bool> {
        assert!(self.0 != Fault::Required, "required");
        None
    }

    fn suggestions(&self) -> Vec<String> {
        assert!(self.0 != Fault::Suggestions, "suggestions");
        Vec::new()
    }

    fn preview(&self, _: &Context) -> Result<Option<Value>, ToolError> {
        assert!(self.0 != Fault::Preview, "preview");
        Ok(None)
    }

    fn is_dangerous(&self) -> bool {
        assert!(self.0 != Fault::Dangerous, "dangerous");
        false
    }

    fn facts(&self, _: &Context) -> Vec<(&'static str, String)> {
        assert!(self.0 != Fault::Facts, "facts");
        Vec::new()
    }

    fn summary(&self) -> Option<String> {
        assert!(self.0 != Fault::Summary, "summary");
        None
    }

    fn digest(&self) -> Option<u64> {
        assert!(self.0 != Fault::Digest, "digest");
        None
    }
}

impl Audit for Faulty {
    fn record(&self, _: &AuditRecord<'_>) -> std::io::Result<()> {
        assert!(self.0 != Fault::Audit, "audit");
        Ok(())
    }
}

impl Hook for Faulty {
    fn define(&self, _: &mut Definition, _: &Session) -> bool {
        assert!(self.0 != Fault::Define, "define");
        true
    }

    fn before<'a>(&'a self, _: &'a HookedCall<'_>) -> Step<'a, Result<Opinion, ToolError>> {
        match self.0 {
            Fault::BeforeFails => Step::now(Err(ToolError::internal("hook"))),
            Fault::BeforePanics => Step::later(async { panic!("hook") }),
            Fault::BeforeRewritesBadly => {
                Step::now(Ok(Opinion::allow("x").rewrite(&json!("no object"))))
            }
            _ => Step::now(Ok(Opinion::none())),
        }
    }
}

impl Approver for Faulty {
    fn ask(&self, _: Arc<Ask>) -> std::pin::Pin<Box<dyn Future<Output = Option<Reply>> + Send>> {
        assert!(self.0 != Fault::ApproverPanics, "approver");
        match self.0 {
            Fault::ApproverLeaves => Box::pin(async { panic!("left") }),
            _ => Box::pin(std::future::ready(Some(Reply::Reject))),
        }
    }
}

// P5, F71: a panic or an error at any gate never ends in the tool running.
#[tokio::test]
async fn no_fault_on_the_way_ends_in_running_the_tool() {
    for fault in [
        Fault::Decode,
        Fault::Subjects,
        Fault::Required,
        Fault::BeforeFails,
        Fault::BeforePanics,
        Fault::ApproverPanics,
        Fault::ApproverLeaves,
        Fault::Preview,
        Fault::Suggestions,
        Fault::Audit,
        Fault::Dangerous,
        Fault::Summary,
        Fault::Digest,
        Fault::Define,
    ] {
        let log = Log::default();
        let faulty = || Faulty(fault, log.clone());
        let registry = Registry::builder().add(faulty()).build().unwrap();
        let pipeline = Pipeline::new(registry)
            .hook("*", Priority::DEFAULT, faulty())
            .approver(faulty())
            .audit(faulty())
            .loop_guard(LoopGuard::default());
        let mut events = pipeline.subscribe();
        let outcome = overwrite_a(&pipeline, &log).await;
        assert!(outcome.result.is_err(), "{fault:?}");
        assert_eq!(log.take(), Vec::<String>::new(), "{fault:?}");
        let ends = kinds(&mut events);
        let ends = ends.iter().filter(|kind| *kind == "failed").count();
        assert_eq!(ends, 1, "{fault:?}");
    }
}

// P5: what cannot be found out cannot be what somebody said yes to.
#[tokio::test]
async fn a_yes_to_what_is_unknown_is_none() {
    for (fault, expected) in [(Fault::Facts, Some(ErrorKind::Denied)), (Fault::Digest, None)] {
        let log = Log::default();
        let registry = Registry::builder().add(Faulty(fault, log.clone())).build().unwrap();
        let pipeline = Pipeline::new(registry).approver(Showing(log.clone()));
        let outcome = overwrite_a(&pipeline, &log).await;
        assert_eq!(outcome.result.err().map(|error| error.kind()), expected);
        assert_eq!(log.take().contains(&"run".to_owned()), expected.is_none());
    }
}

/// Writes down so many records, and panics at the next.
struct Forgetful(AtomicUsize);

impl Audit for Forgetful {
    fn record(&self, _: &AuditRecord<'_>) -> std::io::Result<()> {
        let left = self.0.fetch_sub(1, Ordering::Relaxed);
        assert!(left > 0, "a defect of the log");
        Ok(())
    }
}

// P5, P6: a log with a defect ends no batch, and what has run has run.
#[tokio::test]
async fn a_log_that_panics_is_one_that_could_not_write() {
    for (records, expected) in [(0, Err(ErrorKind::Unavailable)), (1, Ok("overwrote a"))] {
        let log = Log::default();
        let pipeline = all_forms(&log)
            .remove(0)
            .mode(Mode::Bypass)
            .audit(Forgetful(AtomicUsize::new(records)));
        let mut events = pipeline.subscribe();
        let call = Call::new("overwrite", r#"{"path": "a"}"#);
        let results = Batch::new(&pipeline).run(&session(&log), [call]).await;
        let found = results[0].result.as_ref().map(Output::as_text).map_err(ToolError::kind);
        assert_eq!(found, expected);
        let end = if expected.is_ok() { "completed" } else { "failed" };
        assert_eq!(kinds(&mut events).last().unwrap(), end);
    }
}

#[tokio::test]
async fn a_hook_that_leaves_invalid_arguments_stops_the_call() {
    let log = Log::default();
    let native = all_forms(&log).remove(0).mode(Mode::Bypass);
    let pipeline =
        native.hook("*", Priority::DEFAULT, Faulty(Fault::BeforeRewritesBadly, log.clone()));
    let outcome = overwrite_a(&pipeline, &log).await;
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Denied);
    assert!(log.take().is_empty());
}

/// A hook that never answers.
struct Hangs(OnError);

impl Hook for Hangs {
    fn before<'a>(&'a self, _: &'a HookedCall<'_>) -> Step<'a, Result<Opinion, ToolError>> {
        Step::later(std::future::pending())
    }

    fn after<'a>(
        &'a self,
        _: &'a HookedCall<'_>,
        _: &'a mut Result<Output, ToolError>,
    ) -> Step<'a, Result<(), ToolError>> {
        Step::later(std::future::pending())
    }

    fn on_error(&self) -> OnError {
        self.0
    }

    fn time_limit(&self) -> Option<Duration> {
        match self.0 {
            // Ten seconds.
            OnError::Deny => Faulty(Fault::Decode, Log::default()).time_limit(),
            OnError::Ignore => Some(Duration::from_secs(1)),
        }
    }
}

// HK1, F71: a hook that hangs has failed; one that decides denies, one that looks on does not.
#[tokio::test(start_paused = true)]
async fn a_hook_that_hangs_has_failed() {
    for (on_error, seconds) in [(OnError::Deny, 10), (OnError::Ignore, 2)] {
        let log = Log::default();
        let pipeline = all_forms(&log).remove(0).mode(Mode::Bypass);
        let pipeline = pipeline.hook("*", Priority::DEFAULT, Hangs(on_error));
        let mut events = pipeline.subscribe();
        let started = tokio::time::Instant::now();
        let outcome = overwrite_a(&pipeline, &log).await;
        assert_eq!(started.elapsed().as_secs(), seconds);
        match on_error {
            OnError::Deny => {
                let text = "the hook `Hangs` did not answer in time, so the call is refused";
                assert_eq!(outcome.text(), text);
                assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Denied);
                assert!(log.take().is_empty());
            }
            OnError::Ignore => assert_eq!(outcome.text(), "overwrote a"),
        }
        let failed = std::iter::from_fn(|| events.try_recv())
            .map(|event| serde_json::to_value(&event).unwrap())
            .find(|event| event["type"] == "hook_finished")
            .unwrap();
        let limit = if on_error == OnError::Deny { "10s" } else { "1s" };
        assert_eq!(failed["outcome"], format!("failed: no answer within {limit}"));
    }
}

// F71: one that only looks on is reported, and the call goes on.
#[tokio::test]
async fn a_hook_that_panics_is_reported() {
    struct Panics;
    impl Hook for Panics {
        fn before<'a>(&'a self, _: &'a HookedCall<'_>) -> Step<'a, Result<Opinion, ToolError>> {
            panic!("a defect")
        }

        fn on_error(&self) -> OnError {
            OnError::Ignore
        }
    }
    let log = Log::default();
    let pipeline = all_forms(&log).remove(0).mode(Mode::Bypass);
    let pipeline = pipeline.hook("*", Priority::DEFAULT, Panics);
    let mut events = pipeline.subscribe();
    assert_eq!(overwrite_a(&pipeline, &log).await.text(), "overwrote a");
    let outcomes: Vec<String> = std::iter::from_fn(|| events.try_recv())
        .filter_map(|event| match event.kind {
            EventKind::HookFinished(run) => Some(format!("{}: {}", run.hook, run.outcome)),
            _ => None,
        })
        .collect();
    assert!(outcomes[0].starts_with("Panics: failed: "), "{outcomes:?}");
}

/// Takes secrets out of results, and breaks half-way.
struct Strips(OnError, &'static str);

impl Hook for Strips {
    fn after<'a>(
        &'a self,
        _: &'a HookedCall<'_>,
        result: &'a mut Result<Output, ToolError>,
    ) -> Step<'a, Result<(), ToolError>> {
        let half = "half of a secret";
        *result = match result {
            Ok(_) => Ok(Output::text(half)),
            Err(_) => Err(ToolError::failed(half)),
        };
        match self.1 {
            "fails" => Step::now(Err(ToolError::internal("a defect"))),
            "panics" => panic!("a defect"),
            "panics later" => Step::later(async { panic!("a defect") }),
            _ => Step::later(std::future::pending()),
        }
    }

    fn on_error(&self) -> OnError {
        self.0
    }
}

// HK1, F66: what a hook could not look at is not shown, and what it left half done neither.
#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_after_the_call_leaves_nothing_half_done() {
    for how in ["fails", "panics", "panics later", "hangs"] {
        for on_error in [OnError::Deny, OnError::Ignore] {
            let log = Log::default();
            let pipeline = all_forms(&log).remove(0).mode(Mode::Bypass);
            let pipeline = pipeline.hook("*", Priority::DEFAULT, Strips(on_error, how));
            let outcome = overwrite_a(&pipeline, &log).await;
            let text = outcome.text().into_owned();
            assert!(!text.contains("half"), "{how}: {text}");
            if on_error == OnError::Ignore {
                assert_eq!(text, "overwrote a", "{how}");
                continue;
            }
            let how = if how == "hangs" { "did not answer in time" } else { "failed" };
            let expected = format!(
                "the hook `Strips` {how}, so the result is not shown\n\
                hint: the tool has run; its effect is not undone"
            );
            assert_eq!(text, expected);
            assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Failed);
        }
    }
}
