//! Who is asked, what an answer means, and how far it reaches.

use super::*;

// F76: once asks again; session holds for the session; both only for what was granted.
#[tokio::test]
async fn approvals_reach_as_far_as_they_say() {
    let log = Log::default();
    let (pipeline, approver) = answered_by(&log, [ApprovalResponse::Once, ApprovalResponse::Once]);
    for _ in 0..2 {
        overwrite_a(&pipeline, &log).await;
    }
    assert_eq!(approver.requests().len(), 2);

    let grant = ApprovalResponse::Session { patterns: vec!["a".to_owned()] };
    let (pipeline, approver) = answered_by(&log, [grant]);
    let session = session(&log);
    let call = |path: &str| Call::new("overwrite", json!({ "path": path }));
    for _ in 0..3 {
        assert!(pipeline.call(&session, call("a")).await.result.is_ok());
    }
    assert_eq!(approver.requests().len(), 1);
    assert!(pipeline.call(&session, call("b")).await.result.is_err());
    assert!(pipeline.call(&session.clone().with_user("eve"), call("a")).await.result.is_err());
    // F78: a rule that denies wins over what was approved.
    pipeline.set_rules(["deny overwrite(a)".parse::<Rule>().unwrap()].into_iter().collect());
    assert!(pipeline.call(&session, call("a")).await.result.is_err());
}

// F54, F81, PR6: the ask shows the frozen call; nobody runs before the answer.
#[tokio::test]
async fn an_ask_shows_what_runs_and_is_answered_by_its_id() {
    let log = Log::default();
    let (approver, mut inbox) = approval_channel();
    let pipeline = all_forms(&log).remove(0).approver(approver);
    let running = {
        let (pipeline, log) = (pipeline.clone(), log.clone());
        tokio::spawn(async move { overwrite_a(&pipeline, &log).await })
    };
    let pending = inbox.recv().await.unwrap();
    assert_eq!(pending.request().arguments, json!({ "path": "a" }));
    assert_eq!(pending.request().suggestions, ["a"]);
    assert!(log.take().is_empty());

    let (id, shown) = (pending.request().id.clone(), pending.request().fingerprint.clone());
    let reply = |id: &ApprovalId, shown: &str| {
        let (pipeline, id, shown) = (pipeline.clone(), id.clone(), shown.to_owned());
        async move { pipeline.respond(&id, &shown, ApprovalResponse::Once).await }
    };
    // PR6: an answer to something else than what waits is none.
    for other in ["", "0", &shown[1..]] {
        assert_eq!(
            reply(&id, other).await,
            Err(ApprovalResponseError::FingerprintMismatch(id.clone()))
        );
    }
    assert!(log.take().is_empty() && pipeline.pending_approvals().len() == 1);
    reply(&id, &shown).await.unwrap();
    assert_eq!(reply(&id, &shown).await, Err(ApprovalResponseError::AlreadyEnded(id.clone())));
    assert!(matches!(
        reply(&"0".into(), &shown).await,
        Err(ApprovalResponseError::UnknownRequest(_))
    ));
    assert_eq!(running.await.unwrap().text(), "overwrote a");
    assert!(pipeline.pending_approvals().is_empty());
}

// F82: merged asks, a plain no for everything the session asks, feedback for one.
#[tokio::test]
async fn identical_asks_are_one_and_a_plain_no_settles_the_rest() {
    let log = Log::default();
    let (approver, mut inbox) = approval_channel();
    let pipeline = all_forms(&log).remove(0).approver(approver);
    let session = session(&log);
    let spawn = |path: &'static str| {
        let (pipeline, session) = (pipeline.clone(), session.clone());
        tokio::spawn(async move {
            pipeline.call(&session, Call::new("overwrite", json!({ "path": path }))).await
        })
    };
    let (one, two, other) = (spawn("a"), spawn("a"), spawn("b"));
    let first = inbox.recv().await.unwrap();
    let second = inbox.recv().await.unwrap();
    while pipeline.pending_approvals().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert!(inbox.try_recv().is_none(), "three calls, two asks");
    let (for_a, for_b) = match first.request().subjects[0].text() {
        "a" => (first, second),
        _ => (second, first),
    };
    for_a.respond(ApprovalResponse::Once);
    assert!(one.await.unwrap().result.is_ok() && two.await.unwrap().result.is_ok());
    let again = spawn("c");
    let for_c = inbox.recv().await.unwrap();
    for_b.respond(ApprovalResponse::Reject);
    for outcome in [other.await.unwrap(), again.await.unwrap()] {
        assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Denied);
    }
    assert!(!for_c.respond(ApprovalResponse::Once), "it was settled before");
}

// An approval for one ask settles those that it covers.
#[tokio::test]
async fn an_approval_settles_the_asks_that_it_covers() {
    let log = Log::default();
    let (approver, mut inbox) = approval_channel();
    let pipeline = all_forms(&log).remove(0).approver(approver);
    let session = session(&log);
    let spawn = |path: &'static str| {
        let (pipeline, session) = (pipeline.clone(), session.clone());
        tokio::spawn(async move {
            pipeline.call(&session, Call::new("overwrite", json!({ "path": path }))).await
        })
    };
    let calls = [spawn("src/a"), spawn("src/b")];
    let (first, _second) = (inbox.recv().await.unwrap(), inbox.recv().await.unwrap());
    first.respond(ApprovalResponse::Session { patterns: vec!["src/*".to_owned()] });
    for call in calls {
        assert!(call.await.unwrap().result.is_ok());
    }
    let waiting = spawn("docs/c");
    let _third = inbox.recv().await.unwrap();
    pipeline.set_mode(Mode::Bypass);
    assert!(waiting.await.unwrap().result.is_ok(), "another mode settles it too");
}

// fault 12: no answer is a no, and nothing is left behind.
#[tokio::test(start_paused = true)]
async fn an_ask_without_an_answer_ends_as_a_no() {
    let log = Log::default();
    let (approver, _inbox) = approval_channel();
    let pipeline =
        all_forms(&log).remove(0).approver(approver).approval_timeout(Duration::from_secs(60));
    let outcome = overwrite_a(&pipeline, &log).await;
    assert!(outcome.text().contains("the approval request was not answered in time"));
    assert!(pipeline.pending_approvals().is_empty());

    let stop = session(&log);
    let call = pipeline.call(&stop, Call::new("overwrite", r#"{"path": "a"}"#));
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(pipeline.pending_approvals().len(), 1);
        stop.cancel_token().cancel();
    };
    let (outcome, ()) = tokio::join!(call, cancel);
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Aborted);
    assert!(pipeline.pending_approvals().is_empty());
    assert!(log.take().is_empty());

    let waiting = tokio::spawn({
        let (pipeline, log) = (pipeline.clone(), log.clone());
        async move { overwrite_a(&pipeline, &log).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    pipeline.close().await;
    assert!(waiting.await.unwrap().result.is_err());
}

// PR7: what was rejected is not asked again in the same message.
#[tokio::test]
async fn a_rejected_call_is_not_asked_again_at_once() {
    let log = Log::default();
    let feedback = ApprovalResponse::RejectWith { feedback: "no".to_owned() };
    let (pipeline, approver) = answered_by(&log, [feedback.clone(), feedback]);
    let session = session(&log);
    let call = |message: &'static str| Call::new("overwrite", r#"{"path": "a"}"#).message(message);
    for message in ["m1", "m1", "m2"] {
        assert!(pipeline.call(&session, call(message)).await.result.is_err());
    }
    assert_eq!(approver.requests().len(), 2);
}

// F54: a running tool asks for more.
#[tokio::test]
async fn a_running_tool_may_ask() {
    /// Reach a host.
    #[tool(read, register = false)]
    async fn reach(
        /// The host.
        host: String,
        cx: &Context,
    ) -> String {
        cx.request_permission("network", host).await.to_string()
    }
    let registry = Registry::builder().add(tools![reach]).build().unwrap();
    let reach = async |pipeline: Pipeline| {
        let call = Call::new("reach", r#"{"host": "a.example"}"#);
        pipeline.call(&Session::new("s"), call).await.text().into_owned()
    };
    let pipeline = || Pipeline::new(registry.clone());
    assert_eq!(reach(pipeline()).await, "false", "nobody is there to ask");
    assert_eq!(
        reach(pipeline().approver(ScriptedApprover::new([ApprovalResponse::Once]))).await,
        "true"
    );
    let allow: Rule = "allow network(*.example)".parse().unwrap();
    assert_eq!(reach(pipeline().rules([allow])).await, "true");
    let deny: Rule = "deny network".parse().unwrap();
    let yes = ScriptedApprover::new([ApprovalResponse::Once]);
    assert_eq!(reach(pipeline().rules([deny]).approver(yes)).await, "false");
}

// F54: the time that a person takes to answer does not count towards the timeout; that of the tool
// does.
#[tokio::test(start_paused = true)]
async fn prompts_do_not_count_towards_the_timeout() {
    /// Reach a host, then work.
    #[tool(read, timeout = "300ms", register = false)]
    async fn reach(
        /// How long the work takes, in milliseconds.
        work: u64,
        cx: &Context,
    ) -> String {
        // Two questions at once are thought about at once.
        let (one, two) = tokio::join!(
            cx.request_permission("network", "one"),
            cx.request_permission("network", "two")
        );
        tokio::time::sleep(Duration::from_millis(work)).await;
        format!("{one} {two} {}", cx.is_cancelled())
    }
    let registry = Registry::builder().add(tools![reach]).build().unwrap();
    let (approver, mut inbox) = approval_channel();
    let pipeline = Pipeline::new(registry).approver(approver);
    tokio::spawn(async move {
        while let Some(ask) = inbox.recv().await {
            tokio::time::sleep(Duration::from_millis(600)).await;
            ask.respond(ApprovalResponse::Once);
        }
    });
    let session = Session::new("s");
    let reach = async |work: u64| {
        let call = Call::new("reach", json!({ "work": work })).id("the same");
        pipeline.call(&session, call).await.result
    };
    assert_eq!(reach(250).await.unwrap().as_text(), "true true false");
    assert_eq!(reach(350).await.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(reach(250).await.unwrap().as_text(), "true true false");
}

/// Change many things at once.
#[tool(write, register = false, approval(resources = all_of))]
fn change(
    /// Which ones.
    what: Vec<String>,
) -> String {
    what.join(" ")
}

fn all_of(args: &ChangeArgs, _: &Context) -> Vec<Resource> {
    let subject = |what: &String| match what.split_once('@') {
        Some((what, permission)) => Resource::new(what).with_permission(permission.to_owned()),
        None => Resource::new(what.clone()),
    };
    args.what.iter().map(subject).collect()
}

// P4: the rules that a hint names open the call, and where they can say so nothing more.
#[tokio::test]
async fn rules_that_would_help_are_no_wider_than_the_call() {
    let pipeline = || Pipeline::new(Registry::builder().add(tools![change]).build().unwrap());
    for (what, rules) in [
        (&["a", "b@run"][..], &["change(a)", "run(b)"][..]),
        (&["a", "a", "b c"], &["change(a)", "change(b c)"]),
        // No rule says just this, so that it is named as a whole.
        (&["a", "~/x"], &["change"]),
        (&["a", "what: x"], &["change"]),
        (&["a", "'x'"], &["change"]),
        (&["a", " b"], &["change"]),
        (&["a", "*"], &["change"]),
        (&["a", "b", "c", "d", "e", "f", "g"], &["change(a)", "change(b)", "change(c)"]),
    ] {
        let call = || Call::new("change", json!({ "what": what }));
        let error = pipeline().call(&Session::new("s"), call()).await.result.unwrap_err();
        let hint = error.suggestion().unwrap().to_owned();
        let named: Vec<_> = hint.split('`').filter(|it| it.starts_with("allow ")).collect();
        let expected: Vec<_> = rules.iter().map(|rule| format!("allow {rule}")).collect();
        assert!(named.starts_with(&expected.iter().map(|it| &**it).collect::<Vec<_>>()), "{hint}");
        assert_eq!(hint.contains("and 2 more"), what.len() == 7, "{hint}");
        assert!(named.len() <= 5, "{hint}");
        if what.len() < 7 {
            let rules = named.iter().map(|rule| rule.parse::<Rule>().unwrap());
            let outcome = pipeline().rules(rules).call(&Session::new("s"), call()).await;
            assert!(outcome.result.is_ok(), "{hint}");
        }
    }
}

// F74: a rule that passes over other tools says something of a call that it decides.
#[tokio::test]
async fn a_rule_that_decides_is_not_told_as_one_about_nothing() {
    let log = Log::default();
    let tool = |name, argument: &str| {
        let schema = Schema::from_value(json!({
            "type": "object",
            "properties": { argument: { "type": "string" } },
            "additionalProperties": false,
        }));
        let mut definition =
            Definition::new(ToolName::new(name).unwrap(), "Changes something.", schema.unwrap());
        definition.permission = Some("edit".into());
        let log = log.clone();
        DynamicTool::new(definition, move |args: Value, _: Context| {
            overwritten_by(log.clone(), args)
        })
    };
    let registry = Registry::builder().add(tool("put", "what")).add(tool("patch", "lines"));
    let rule = "deny edit(what: x*)";
    let pipeline = Pipeline::new(registry.build().unwrap()).rules([rule.parse::<Rule>().unwrap()]);
    for (what, action, unmatched) in [("x1", Action::Deny, 0), ("y", Action::Ask, 1)] {
        let call = Call::new("put", json!({ "what": what }));
        let checked = pipeline.check(&Session::new("s"), call).await.unwrap();
        let found = (checked.decision.action, checked.unmatched_rules.len());
        assert_eq!(found, (action, unmatched), "{what}");
    }
}

// P4: the hint names a rule only where that rule would help.
#[tokio::test]
async fn a_denial_without_approver_names_the_rule_that_would_help() {
    struct Asks;
    impl Hook for Asks {
        async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
            Ok(HookDecision::ask("it is Friday"))
        }
    }
    let rule = |text: &str| text.parse::<Rule>().unwrap();
    let log = Log::default();
    let plain = || all_forms(&log).remove(0);
    let helps = "the rule `allow overwrite(a)` would allow it";
    for (pipeline, cause, names_a_rule) in [
        (plain(), DecisionSource::Default, true),
        (plain().rules([rule("ask overwrite")]), DecisionSource::Rule, true),
        (plain().rules([rule("ask overwrite").locked()]), DecisionSource::Rule, false),
        (plain().hook("*", HookPriority::DEFAULT, Asks), DecisionSource::Hook, false),
    ] {
        let mut events = pipeline.subscribe();
        let error = overwrite_a(&pipeline, &log).await.result.unwrap_err();
        let hint = error.suggestion().unwrap();
        assert!(hint.starts_with("no approver is available"), "{hint}");
        assert_eq!(hint.contains(helps), names_a_rule, "{cause:?}: {hint}");
        let denied = std::iter::from_fn(|| events.try_recv()).find_map(|event| match event.kind {
            EventKind::Denied(decision) => Some(decision),
            _ => None,
        });
        let denied = denied.unwrap();
        assert_eq!((denied.by, denied.asked_by), (DecisionSource::NoApprover, Some(cause)));
    }
}

/// What the pipeline warned of since `events` began.
fn warnings(events: &mut Subscription) -> Vec<String> {
    let told = std::iter::from_fn(|| events.try_recv());
    told.filter_map(|event| match event.kind {
        EventKind::Warned { message } => Some(message),
        _ => None,
    })
    .collect()
}

// F82: an answer that was not offered is a no, and is told as what it is.
#[tokio::test]
async fn an_answer_that_was_not_offered_is_told_as_such() {
    let log = Log::default();
    let (approver, mut inbox) = approval_channel();
    let pipeline = all_forms(&log).remove(0).approver(approver);
    let mut events = pipeline.subscribe();
    let session = session(&log);
    // Too long to be shown whole.
    let call = Call::new("overwrite", json!({ "path": "a".repeat(100_000) }));
    let running = {
        let pipeline = pipeline.clone();
        tokio::spawn(async move { pipeline.call(&session, call).await })
    };
    let pending = inbox.recv().await.unwrap();
    assert!(pending.request().suggestions.is_empty() && !pending.request().offers_always());
    pending.respond(ApprovalResponse::Session { patterns: vec!["*".to_owned()] });
    let error = running.await.unwrap().result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().ends_with("none of those that were offered"), "{error}");
    let warnings = warnings(&mut events);
    assert!(warnings[0].contains("`session` is not offered"), "{warnings:?}");
}

// F76: whoever grants patterns of their own is told when these are not what was asked about.
#[tokio::test]
async fn an_approval_that_does_not_cover_the_call_is_told() {
    for (patterns, is_told) in
        [(&["a"][..], false), (&["b", "a"], false), (&["b"], true), (&["overwrite(a)"], true)]
    {
        let log = Log::default();
        let patterns = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        let (pipeline, _) = answered_by(&log, [ApprovalResponse::Session { patterns }]);
        let mut events = pipeline.subscribe();
        assert!(overwrite_a(&pipeline, &log).await.result.is_ok());
        let told = warnings(&mut events);
        assert_eq!(
            told.iter().any(|it| it.contains("do not cover this call")),
            is_told,
            "{told:?}"
        );
    }
}

// F82: an approval request that the approver drops is a denial, but not one by a person.
#[tokio::test]
async fn a_dropped_request_is_not_denied_by_a_person() {
    let log = Log::default();
    for is_read in [true, false] {
        let (approver, mut inbox) = approval_channel();
        let pipeline = all_forms(&log).remove(0).approver(approver);
        let screen = async {
            if is_read {
                drop(inbox.recv().await);
            }
            drop(inbox);
        };
        let (outcome, ()) = tokio::join!(overwrite_a(&pipeline, &log), screen);
        let error = outcome.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied);
        assert!(
            error.message().ends_with("the approval prompt was closed before it was answered"),
            "{error}"
        );
    }
}

// F77: an approval that cannot reach as far as was said is told.
#[tokio::test]
async fn an_approval_that_reaches_less_than_was_said_is_told() {
    let log = Log::default();
    let blank = |patterns: &[&str]| patterns.iter().map(|&it| it.to_owned()).collect();
    for (reply, asked, words) in [
        (ApprovalResponse::Session { patterns: blank(&[]) }, 2, "for this call only"),
        (ApprovalResponse::Always { patterns: blank(&["", " "]) }, 2, "for this call only"),
        (ApprovalResponse::Always { patterns: blank(&["a"]) }, 1, "for this session only"),
    ] {
        let (pipeline, approver) = answered_by(&log, [reply.clone(), ApprovalResponse::Once]);
        let mut events = pipeline.subscribe();
        let session = session(&log);
        for _ in 0..2 {
            let call = Call::new("overwrite", json!({ "path": "a" }));
            assert!(pipeline.call(&session, call).await.result.is_ok());
        }
        assert_eq!(approver.requests().len(), asked, "{reply:?}");
        let warnings = warnings(&mut events);
        assert!(warnings.len() == 1 && warnings[0].contains(words), "{reply:?}: {warnings:?}");
    }
}

// F55: a call with an empty id has one of its own, like one without.
#[tokio::test]
async fn an_empty_id_is_none() {
    let log = Log::default();
    let (pipeline, _) = answered_by(&log, []);
    let call = || Call::new("peek", json!({})).id("");
    let session = session(&log);
    let ids = [pipeline.call(&session, call()).await, pipeline.call(&session, call()).await];
    assert_ne!(ids[0].call, ids[1].call);
}

// F88: a host shows what was approved until the session ends, and takes it back.
#[tokio::test]
async fn what_was_approved_for_the_session_is_listed_and_taken_back() {
    let log = Log::default();
    let a = || ApprovalResponse::Session { patterns: vec!["a".into()] };
    let (pipeline, approver) = answered_by(&log, [a(), a(), ApprovalResponse::Reject]);
    let session = session(&log);
    let call = async || {
        let call = Call::new("overwrite", r#"{"path": "a"}"#);
        (pipeline.call(&session, call).await.result.is_ok(), approver.requests().len())
    };
    assert!(pipeline.session_grants(&session).is_empty());
    assert_eq!((call().await, call().await), ((true, 1), (true, 1)));

    let name = definition().name;
    let expected = Grant::new(Grantee::new(name.clone(), "overwrite"), "a");
    assert_eq!(pipeline.session_grants(&session), [expected]);
    assert!(pipeline.session_grants(&Session::new("another")).is_empty());

    // What another tool was granted is not meant.
    pipeline.revoke_grants(&session, Some(&ToolName::new("other").unwrap()));
    assert_eq!(call().await, (true, 1));
    pipeline.revoke_grants(&session, Some(&name));
    assert!(pipeline.session_grants(&session).is_empty());
    assert_eq!(call().await, (true, 2));
    pipeline.revoke_grants(&session, None);
    assert_eq!(call().await, (false, 3));
}
