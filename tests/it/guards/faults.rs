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
    Suggests,
    Audit,
    Dangerous,
    Summary,
    Covers,
    Define,
    Facts,
    Key,
    Notes,
}

/// A tool and its surroundings with a fault in one place, or with none.
#[derive(Clone)]
struct Faulty {
    fault: Option<Fault>,
    says: ApprovalResponse,
    log: Log,
}

impl Faulty {
    fn new(fault: Option<Fault>, log: &Log) -> Self {
        Self { fault, says: ApprovalResponse::Once, log: log.clone() }
    }

    /// Whether the fault is here; then it is written down that the call came so far.
    fn breaks(&self, here: Fault) -> bool {
        let breaks = self.fault == Some(here);
        if breaks {
            self.log.note("fault");
        }
        breaks
    }

    fn at(&self, here: Fault) {
        assert!(!self.breaks(here), "{here:?}");
    }
}

impl Tool for Faulty {
    fn definition(&self) -> &Definition {
        static DEFINITION: std::sync::OnceLock<Definition> = std::sync::OnceLock::new();
        DEFINITION.get_or_init(definition)
    }

    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn PreparedCall>, InvalidArgs> {
        self.at(Fault::Decode);
        // What a hook made of it is refused like what a model made of it.
        serde_json::from_str::<serde_json::Map<String, Value>>(args.text()).expect("an object");
        Ok(Box::new(self.clone()))
    }
}

impl PreparedCall for Faulty {
    fn run(self: Box<Self>, _: ExecutionPermit) -> OutputFuture {
        self.log.note("run");
        Box::pin(async { Ok(Output::text("ran")) })
    }

    fn resources(&self, _: &Context) -> Option<Vec<Resource>> {
        self.at(Fault::Subjects);
        Some(vec!["a".into()])
    }

    fn approval_required(&self, _: &Context) -> Option<bool> {
        self.at(Fault::Required);
        None
    }

    fn suggestions(&self) -> Vec<String> {
        self.at(Fault::Suggestions);
        Vec::new()
    }

    fn restricts_suggestions(&self) -> bool {
        self.at(Fault::Suggests);
        false
    }

    fn covered_by(&self, _: &str) -> Option<bool> {
        self.at(Fault::Covers);
        Some(false)
    }

    fn preview(&self, _: &Context) -> Result<Option<Value>, ToolError> {
        self.at(Fault::Preview);
        Ok(None)
    }

    fn is_dangerous(&self) -> bool {
        self.at(Fault::Dangerous);
        false
    }

    fn fingerprint_facts(&self, _: &Context) -> Vec<(&'static str, String)> {
        self.at(Fault::Facts);
        Vec::new()
    }

    fn summary(&self) -> Option<String> {
        self.at(Fault::Summary);
        None
    }

    fn concurrency_key(&self) -> Option<String> {
        self.at(Fault::Key);
        None
    }

    fn notes(&self) -> &[ArgumentNote] {
        self.at(Fault::Notes);
        &[]
    }
}

impl AuditSink for Faulty {
    fn record(&self, _: &AuditRecord<'_>) -> std::io::Result<()> {
        self.at(Fault::Audit);
        Ok(())
    }
}

impl Hook for Faulty {
    fn edit_definition(&self, _: &mut Definition, _: &Session) -> bool {
        self.at(Fault::Define);
        true
    }

    async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        if self.breaks(Fault::BeforeFails) {
            return Err(ToolError::internal("hook"));
        }
        if self.breaks(Fault::BeforePanics) {
            return async { panic!("hook") }.await;
        }
        Ok(match self.breaks(Fault::BeforeRewritesBadly) {
            true => HookDecision::allow("x").rewrite(&json!("no object")),
            false => HookDecision::none(),
        })
    }
}

impl Approver for Faulty {
    fn request_approval(
        &self,
        _: Arc<ApprovalRequest>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        self.at(Fault::ApproverPanics);
        match self.breaks(Fault::ApproverLeaves) {
            true => Box::pin(async { panic!("left") }),
            false => Box::pin(std::future::ready(Some(self.says.clone()))),
        }
    }
}

/// What else would let the call run, or not.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// Nobody needs to be asked.
    Bypass,
    /// The same in a batch.
    Batch,
    /// Somebody says yes.
    Yes,
    /// Somebody says no.
    No,
}

/// A store in which `pattern` was approved.
fn approving(folder: &tempfile::TempDir, pattern: &str) -> GrantStore {
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    let store = GrantStore::open(folder.path().join("approvals"), &workspace);
    let to = Grantee::new(definition().name, "overwrite");
    store.add_grants(vec![Grant::new(to, pattern)], GrantSource::default()).unwrap();
    store
}

/// What a call does on its way: whether it came to the fault, and whether its tool ran. Where it
/// is watched, there is a log, and somebody who listens and hears of one end.
async fn went(fault: Option<Fault>, way: Way, is_watched: bool) -> (bool, bool) {
    let log = Log::default();
    let says = if way == Way::No { ApprovalResponse::Reject } else { ApprovalResponse::Once };
    let faulty = || Faulty { says: says.clone(), ..Faulty::new(fault, &log) };
    let registry = Registry::builder().add(faulty()).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    // There is an approval, of something else.
    let store = approving(&folder, "b");

    let pipeline = Pipeline::new(registry)
        .mode(if matches!(way, Way::Bypass | Way::Batch) { Mode::Bypass } else { Mode::Auto })
        .hook("*", HookPriority::DEFAULT, faulty())
        .approver(faulty())
        .grant_store(store)
        .loop_guard(LoopGuard::default());
    let pipeline = if is_watched { pipeline.audit(faulty()) } else { pipeline };
    let events = is_watched.then(|| pipeline.subscribe());
    let outcome = match way {
        Way::Batch => {
            let call = Call::new("overwrite", r#"{"path": "a"}"#);
            Batch::new(&pipeline).run(&session(&log), [call]).await.remove(0)
        }
        _ => overwrite_a(&pipeline, &log).await,
    };
    let steps = log.take();
    let has_run = steps.contains(&"run".to_owned());
    assert_eq!(outcome.result.is_ok(), has_run, "{fault:?} {way:?}: {outcome:?}");
    if let Some(mut events) = events {
        let ends = ["completed", "failed", "aborted", "timed_out"];
        let ended = kinds(&mut events).into_iter().filter(|kind| ends.contains(&kind.as_str()));
        let end = if has_run { "completed" } else { "failed" };
        assert_eq!(ended.collect::<Vec<_>>(), [end], "{fault:?} {way:?}");
    }
    (steps.contains(&"fault".to_owned()), has_run)
}

const ALL: &[Way] = &[Way::Bypass, Way::Batch, Way::Yes, Way::No];
const ASKED: &[Way] = &[Way::Yes, Way::No];

// P5, F71: a panic or an error at any gate never ends in the tool running, whatever else lets it
// run; and without one it runs.
#[tokio::test]
async fn no_fault_on_the_way_ends_in_running_the_tool() {
    for is_watched in [true, false] {
        for way in ALL {
            let expected = (false, *way != Way::No);
            assert_eq!(went(None, *way, is_watched).await, expected, "{way:?}");
        }
        let with = |watched, otherwise| if is_watched { watched } else { otherwise };
        // Each fault, and where a call comes to it; elsewhere it is none.
        for (fault, reached) in [
            (Fault::Decode, ALL),
            (Fault::Subjects, ALL),
            (Fault::Required, ALL),
            (Fault::BeforeFails, ALL),
            (Fault::BeforePanics, ALL),
            (Fault::BeforeRewritesBadly, ALL),
            (Fault::ApproverPanics, ASKED),
            (Fault::ApproverLeaves, ASKED),
            (Fault::Preview, ASKED),
            (Fault::Suggestions, ASKED),
            (Fault::Suggests, ASKED),
            (Fault::Audit, with(ALL, &[])),
            (Fault::Dangerous, ALL),
            (Fault::Summary, with(ALL, ASKED)),
            (Fault::Covers, ASKED),
            (Fault::Define, ALL),
            (Fault::Facts, with(ALL, ASKED)),
            (Fault::Key, &[Way::Batch]),
            (Fault::Notes, with(ALL, &[Way::Bypass, Way::Batch, Way::Yes])),
        ] {
            for way in ALL {
                let (is_reached, has_run) = went(Some(fault), *way, is_watched).await;
                let what = format!("{fault:?} {way:?} {is_watched}");
                assert_eq!(is_reached, reached.contains(way), "{what}");
                // To who only listens a summary is a line on a screen, and nothing hangs on it.
                let is_told = fault == Fault::Summary && !ASKED.contains(way);
                assert_eq!(has_run, (!is_reached || is_told) && *way != Way::No, "{what}");
            }
        }
    }
}

// P5, F77: an approval that cannot be read is none.
#[tokio::test]
async fn a_store_that_is_broken_lets_nothing_run() {
    type Spoil = fn(&std::path::Path);
    let spoils: [(Spoil, bool); 5] = [
        (|_| {}, true),
        (|file| std::fs::write(file, "{").unwrap(), false),
        (|file| std::fs::write(file, "").unwrap(), false),
        (|file| std::fs::remove_file(file).unwrap(), false),
        (
            |file| {
                std::fs::remove_file(file).unwrap();
                std::fs::create_dir(file).unwrap();
            },
            false,
        ),
    ];
    for (nth, (spoil, runs)) in spoils.into_iter().enumerate() {
        let log = Log::default();
        let folder = tempfile::tempdir().unwrap();
        let store = approving(&folder, "a");
        spoil(&folder.path().join("approvals/approvals.json"));
        let pipeline = all_forms(&log).remove(0).grant_store(store);
        let outcome = overwrite_a(&pipeline, &log).await;
        assert_eq!(outcome.result.is_ok(), runs, "{nth}: {outcome:?}");
        assert_eq!(!log.take().is_empty(), runs, "{nth}");
    }
}

/// Writes down so many records, and panics at the next.
struct Forgetful(AtomicUsize);

impl AuditSink for Forgetful {
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
    let pipeline = native.hook(
        "*",
        HookPriority::DEFAULT,
        Faulty::new(Some(Fault::BeforeRewritesBadly), &log),
    );
    let outcome = overwrite_a(&pipeline, &log).await;
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(log.take(), ["fault"]);
}

/// A hook that never answers.
struct Hangs(OnError);

impl Hook for Hangs {
    async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        std::future::pending().await
    }

    async fn after(
        &self,
        _: &HookContext<'_>,
        _: &mut Result<Output, ToolError>,
    ) -> Result<(), ToolError> {
        std::future::pending().await
    }

    fn on_error(&self) -> OnError {
        self.0
    }

    fn time_limit(&self) -> Option<Duration> {
        match self.0 {
            // Ten seconds.
            OnError::Deny => Faulty::new(None, &Log::default()).time_limit(),
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
        let pipeline = pipeline.hook("*", HookPriority::DEFAULT, Hangs(on_error));
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
        async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
            panic!("a defect")
        }

        fn on_error(&self) -> OnError {
            OnError::Ignore
        }
    }
    let log = Log::default();
    let pipeline = all_forms(&log).remove(0).mode(Mode::Bypass);
    let pipeline = pipeline.hook("*", HookPriority::DEFAULT, Panics);
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
    async fn after(
        &self,
        _: &HookContext<'_>,
        result: &mut Result<Output, ToolError>,
    ) -> Result<(), ToolError> {
        let half = "half of a secret";
        *result = match result {
            Ok(_) => Ok(Output::text(half)),
            Err(_) => Err(ToolError::failed(half)),
        };
        match self.1 {
            "fails" => Err(ToolError::internal("a defect")),
            "panics" => panic!("a defect"),
            "panics later" => async { panic!("a defect") }.await,
            _ => std::future::pending().await,
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
            let pipeline = pipeline.hook("*", HookPriority::DEFAULT, Strips(on_error, how));
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
