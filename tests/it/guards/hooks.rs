//! What hooks may do to a call and to its result.

use super::*;

// F64, P2: what a hook makes of a call is judged and shown like any other.
#[tokio::test]
async fn a_rewritten_call_is_judged_and_shown_as_it_will_run() {
    let log = Log::default();
    for pipeline in all_forms(&log) {
        let hook = Watching { log: log.clone(), rewrite: Some("b") };
        let pipeline = pipeline
            .rules(["allow overwrite(a)".parse::<Rule>().unwrap()])
            .hook("over*", HookPriority::SECURITY, hook)
            .approver(Showing(log.clone()));
        let mut events = pipeline.subscribe();
        let outcome = overwrite_a(&pipeline, &log).await;
        let events: Vec<Value> = std::iter::from_fn(|| events.try_recv())
            .map(|event| serde_json::to_value(&event).unwrap())
            .collect();
        let of = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap();
        assert_eq!(of("pending")["arguments"]["path"], "a", "what the model sent");
        assert_eq!(of("started")["arguments"]["path"], "b", "what runs");
        assert_eq!(outcome.text(), "overwrote b");
        let steps = log.take();
        assert!(steps[1].starts_with("ask "), "what was allowed is not what runs: {steps:?}");
        assert!(steps.contains(&"run b".to_owned()) && !steps.contains(&"run a".to_owned()));
    }
}

#[tokio::test]
async fn what_was_denied_stays_denied_however_a_hook_changes_it() {
    let log = Log::default();
    let native = all_forms(&log).remove(0);
    let pipeline = native
        .rules(["allow overwrite".parse::<Rule>().unwrap(), "deny overwrite(a)".parse().unwrap()])
        .hook("*", HookPriority::DEFAULT, Watching { log: log.clone(), rewrite: Some("b") });
    let outcome = overwrite_a(&pipeline, &log).await;
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(log.take(), ["before a"]);
}

/// A hook with one opinion.
struct Says(fn() -> HookDecision);

impl Hook for Says {
    async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        Ok((self.0)())
    }

    fn on_error(&self) -> OnError {
        OnError::Ignore
    }
}

// F65: deny does not run and says why; ask asks although a rule allows.
#[tokio::test]
async fn hooks_deny_ask_and_halt() {
    let log = Log::default();
    let allowed = || all_forms(&log).remove(0).rules(["allow *".parse::<Rule>().unwrap()]);
    let with = |says| allowed().hook("*", HookPriority::DEFAULT, Says(says));

    let outcome = overwrite_a(&with(|| HookDecision::deny("not on Fridays")), &log).await;
    assert!(outcome.text().contains("not on Fridays"));
    let outcome = overwrite_a(&with(|| HookDecision::halt("stop here")), &log).await;
    assert_eq!(outcome.halt_reason(), Some("stop here"));
    let outcome = overwrite_a(&with(|| HookDecision::ask("look at it")), &log).await;
    assert!(outcome.text().contains("look at it"), "nobody is there to ask: {}", outcome.text());
    // Nobody trusts this hook to allow.
    let careful = all_forms(&log).remove(0).hook(
        "*",
        HookPriority::DEFAULT,
        Says(|| HookDecision::allow("x")),
    );
    let outcome = overwrite_a(&careful, &log).await;
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Denied);
    assert!(log.take().is_empty());
}

// F71: whoever makes a call that cannot be says so, with what is wrong.
#[tokio::test]
async fn a_hook_that_makes_arguments_invalid_is_named_with_what_is_wrong() {
    let log = Log::default();
    for arguments in [json!({ "path": 5 }), json!({ "pth": "x" }), json!({ "path": null })] {
        let hook = Rewrites(arguments.clone());
        let pipeline = all_forms(&log).remove(0).hook("*", HookPriority::DEFAULT, hook);
        let outcome = overwrite_a(&pipeline, &log).await;
        let error = outcome.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied);
        let begin = "the hook `Rewrites` changed the arguments to invalid ones: ";
        let why = error.message().strip_prefix(begin).unwrap_or_default();
        assert!(why.contains("pth") || why.contains("path"), "{arguments}: {error}");
    }
    assert!(log.take().is_empty());
}

/// Replaces the arguments of every call.
struct Rewrites(Value);

impl Hook for Rewrites {
    async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        Ok(HookDecision::none().rewrite(&self.0))
    }
}

// F63: priority, then registration; only where the pattern matches.
#[tokio::test]
async fn hooks_run_by_priority_and_pattern() {
    struct Named(&'static str, Log);
    impl Hook for Named {
        async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
            self.1.note(self.0);
            Ok(HookDecision::none())
        }
    }
    let log = Log::default();
    let pipeline = all_forms(&log)
        .remove(0)
        .mode(Mode::Bypass)
        .hook("*", HookPriority::LOGGING, Named("log", log.clone()))
        .hook("over*", HookPriority::SECURITY, Named("scan", log.clone()))
        .hook("read_*", HookPriority::SECURITY, Named("other", log.clone()))
        .hook("*", HookPriority(150), Named("first", log.clone()))
        .hook("*", HookPriority(150), Named("second", log.clone()));
    overwrite_a(&pipeline, &log).await;
    assert_eq!(log.take(), ["scan", "first", "second", "log", "run a"]);

    // F70: whatever they are registered as.
    let named = [
        ("cleanup", HookPriority::CLEANUP),
        ("default", HookPriority::default()),
        ("validation", HookPriority::VALIDATION),
        ("logging", HookPriority::LOGGING),
        ("security", HookPriority::SECURITY),
    ];
    let pipeline = all_forms(&log).remove(0).mode(Mode::Bypass);
    let pipeline = named.into_iter().fold(pipeline, |pipeline, (name, priority)| {
        pipeline.hook("*", priority, Named(name, log.clone()))
    });
    overwrite_a(&pipeline, &log).await;
    assert_eq!(log.take(), ["security", "validation", "default", "logging", "cleanup", "run a"]);
}

// F66: what an after-hook leaves is what the model reads, on failure too.
#[tokio::test]
async fn after_hooks_change_results() {
    struct Redact;
    impl Hook for Redact {
        async fn after(
            &self,
            _: &HookContext<'_>,
            result: &mut Result<Output, ToolError>,
        ) -> Result<(), ToolError> {
            *result = Ok(Output::text("redacted"));
            Ok(())
        }
    }
    let log = Log::default();
    for pipeline in all_forms(&log) {
        let pipeline = pipeline.mode(Mode::Bypass).hook("*", HookPriority::DEFAULT, Redact);
        assert_eq!(overwrite_a(&pipeline, &log).await.text(), "redacted");
    }
}
