//! Tests batches through the public interface, with tools made of closures.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::call::RawArgs;
use crate::content::Output;
use crate::context::Context;
use crate::error::ErrorKind;
use crate::hook::{Hook, HookContext, HookDecision, HookPriority};
use crate::loop_guard::LoopGuard;
use crate::name::ToolName;
use crate::permission::{ApprovalResponse, Rule, ScriptedApprover};
use crate::registry::Registry;
use crate::risk::{Risk, RiskClass};
use crate::schema::Schema;
use crate::tool::{
    Definition, DynamicTool, ExecutionPermit, InvalidArgs, OutputFuture, Parallel, PreparedCall,
    Tool,
};

const PAUSE: Duration = Duration::from_millis(200);

fn tool(name: &'static str, class: RiskClass) -> DynamicTool {
    let schema = Schema::from_value(json!({
        "type": "object",
        "properties": { "text": { "type": "string" } },
        "additionalProperties": false,
    }));
    let definition = Definition::new(ToolName::from_static(name), "Does it.", schema.unwrap())
        .risk(Risk::new(class));
    DynamicTool::new(definition, |args: Value, _: Context| async move {
        tokio::time::sleep(PAUSE).await;
        match args["text"].as_str() {
            Some("fail") => Err(ToolError::failed("as asked")),
            text => Ok(text.unwrap_or("-").to_owned()),
        }
    })
}

fn pipeline() -> Pipeline {
    let tools = [tool("look", RiskClass::Read), tool("change", RiskClass::Write)];
    let mut builder = Registry::builder();
    for tool in tools {
        builder = builder.add(tool);
    }
    Pipeline::new(builder.build().unwrap())
}

fn call(name: &'static str, text: &str) -> Call<'static> {
    Call::new(name, json!({ "text": text }))
}

async fn run(pipeline: &Pipeline, calls: Vec<Call<'static>>) -> (Vec<Outcome>, Duration) {
    let started = Instant::now();
    let outcomes = Batch::new(pipeline).run(&Session::new("s"), calls).await;
    (outcomes, started.elapsed())
}

fn texts(outcomes: &[Outcome]) -> Vec<String> {
    outcomes.iter().map(|outcome| outcome.text().into_owned()).collect()
}

fn allowed() -> Pipeline {
    pipeline().rules(["allow change".parse::<Rule>().unwrap()])
}

// F44, F47: shared calls run side by side, exclusive ones alone, results in call order.
#[tokio::test(start_paused = true)]
async fn shared_calls_run_side_by_side_and_exclusive_ones_alone() {
    for (calls, rounds) in [
        (vec![call("look", "a"), call("look", "b")], 1),
        (vec![call("change", "a"), call("change", "b")], 2),
        (vec![call("look", "a"), call("look", "b"), call("change", "c"), call("look", "d")], 3),
    ] {
        let expected: Vec<String> = calls
            .iter()
            .map(|call| {
                let value: Value = serde_json::from_str(call.arguments.text()).unwrap();
                value["text"].as_str().unwrap().to_owned()
            })
            .collect();
        let (outcomes, time) = run(&allowed(), calls).await;
        assert_eq!(texts(&outcomes), expected);
        assert_eq!(time, PAUSE * rounds, "{expected:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_cap_run_at_once() {
    let calls: Vec<_> = (0..6).map(|_| call("look", "x")).collect();
    let pipeline = pipeline();
    let started = Instant::now();
    let outcomes = Batch::new(&pipeline).max_concurrent(2).run(&Session::new("s"), calls).await;
    assert_eq!((outcomes.len(), started.elapsed()), (6, PAUSE * 3));
}

#[tokio::test(start_paused = true)]
async fn a_failure_stops_no_other_call() {
    let calls = vec![call("look", "a"), call("look", "fail"), call("nope", "b"), call("look", "c")];
    let (outcomes, _) = run(&pipeline(), calls).await;
    let ok: Vec<bool> = outcomes.iter().map(|outcome| outcome.result.is_ok()).collect();
    assert_eq!(ok, [true, false, false, true]);
}

// F48: only calls that need an approval are shown, and all of them before any call runs.
#[tokio::test(start_paused = true)]
async fn everything_is_asked_before_anything_runs() {
    let running = Arc::new(AtomicUsize::new(0));
    let at_ask = Arc::new(AtomicUsize::new(usize::MAX));
    let (approver, mut inbox) = crate::permission::approval_channel();
    let pipeline = pipeline().approver(approver);
    let mut events = pipeline.subscribe();
    let answering = {
        let (running, at_ask) = (Arc::clone(&running), Arc::clone(&at_ask));
        async move {
            let pending = inbox.recv().await.unwrap();
            // Long enough for the reading call to run, if it were allowed to.
            tokio::time::sleep(PAUSE * 2).await;
            while let Some(event) = events.try_recv() {
                let started = matches!(event.kind, crate::event::EventKind::Started { .. });
                running.fetch_add(usize::from(started), Ordering::Relaxed);
            }
            at_ask.store(running.load(Ordering::Relaxed), Ordering::Relaxed);
            assert_eq!(pending.request().tool, "change");
            pending.respond(ApprovalResponse::Once);
            assert!(inbox.try_recv().is_none(), "one ask, no more");
        }
    };
    let calls = vec![call("look", "a"), call("change", "b")];
    let ((outcomes, _), ()) = tokio::join!(run(&pipeline, calls), answering);
    assert_eq!(texts(&outcomes), ["a", "b"]);
    assert_eq!(at_ask.load(Ordering::Relaxed), 0);
}

// F82: a rejection without feedback stops the calls that have not started; each has its own result.
#[tokio::test(start_paused = true)]
async fn a_plain_no_stops_what_has_not_run() {
    let pipeline = pipeline().approver(ScriptedApprover::new([ApprovalResponse::Reject]));
    let calls = vec![call("look", "a"), call("change", "b"), call("look", "c")];
    let (outcomes, _) = run(&pipeline, calls).await;
    let kinds: Vec<_> = outcomes.iter().map(|it| it.result.as_ref().unwrap_err().kind()).collect();
    assert_eq!(kinds, [ErrorKind::Aborted, ErrorKind::Denied, ErrorKind::Aborted]);
    assert!(texts(&outcomes)[0].contains("rejected another call"));
}

#[tokio::test(start_paused = true)]
async fn a_no_with_feedback_is_about_one_call() {
    let feedback = ApprovalResponse::RejectWith { feedback: "use a copy".to_owned() };
    let pipeline = pipeline().approver(ScriptedApprover::new([feedback]));
    let (outcomes, _) = run(&pipeline, vec![call("look", "a"), call("change", "b")]).await;
    assert_eq!(texts(&outcomes)[0], "a");
    assert!(texts(&outcomes)[1].contains("use a copy"));
}

#[tokio::test(start_paused = true)]
async fn an_abort_gives_each_call_its_own_result() {
    let pipeline = allowed();
    let stop = CancellationToken::new();
    let session = Session::new("s").with_cancel(stop.clone());
    let calls = vec![call("change", "a"), call("change", "b"), call("look", "c")];
    let batch = Batch::new(&pipeline);
    let cancel = async {
        tokio::time::sleep(PAUSE / 2).await;
        stop.cancel();
    };
    let (outcomes, ()) = tokio::join!(batch.run(&session, calls), cancel);
    let aborted = |it: &Outcome| it.result.as_ref().unwrap_err().kind() == ErrorKind::Aborted;
    assert!(outcomes.len() == 3 && outcomes.iter().all(aborted));
}

/// Ends the turn when it sees the text `stop`, before the call or after it.
struct Stops {
    before: bool,
}

impl Stops {
    fn sees(call: &HookContext<'_>) -> bool {
        call.arguments_value()["text"] == "stop"
    }
}

impl Hook for Stops {
    async fn before(&self, call: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        let stops = self.before && Self::sees(call);
        Ok(if stops { HookDecision::halt("enough") } else { HookDecision::none() })
    }

    async fn after(
        &self,
        call: &HookContext<'_>,
        _: &mut Result<Output, ToolError>,
    ) -> Result<(), ToolError> {
        let stops = !self.before && Self::sees(call);
        async move {
            tokio::time::sleep(PAUSE).await;
            if stops {
                call.halt_turn("enough");
            }
            Ok(())
        }
        .await
    }
}

// F65: after a hook ended the turn no further call starts, and each call has its own result.
#[tokio::test(start_paused = true)]
async fn a_halt_stops_what_has_not_begun() {
    use ErrorKind::{Aborted, Denied};
    for (before, expected) in
        [(true, [Some(Aborted), Some(Denied), Some(Aborted)]), (false, [None, None, Some(Aborted)])]
    {
        let pipeline = allowed().hook("*", HookPriority::DEFAULT, Stops { before });
        let calls = vec![call("change", "a"), call("change", "stop"), call("change", "c")];
        let (outcomes, _) = run(&pipeline, calls).await;
        let kinds: Vec<_> =
            outcomes.iter().map(|it| it.result.as_ref().err().map(ToolError::kind)).collect();
        assert_eq!(kinds, expected);
        assert!(texts(&outcomes)[2].contains("a hook ended the turn"));
        let halted: Vec<_> = outcomes.iter().map(|it| it.halt_reason()).collect();
        assert_eq!(halted, [None, Some("enough"), None]);
    }
}

// When a hook ends the turn, the open approval requests of the batch are closed.
#[tokio::test(start_paused = true)]
async fn a_halt_takes_back_what_is_asked() {
    let (approver, inbox) = crate::permission::approval_channel();
    let pipeline = pipeline().hook("look", HookPriority::DEFAULT, Slow).approver(approver);
    let (outcomes, _) = run(&pipeline, vec![call("change", "a"), call("look", "b")]).await;
    assert!(texts(&outcomes)[0].contains("a hook ended the turn"), "{}", texts(&outcomes)[0]);
    assert!(pipeline.pending_approvals().is_empty());
    drop(inbox);
}

/// Ends the turn after a delay.
struct Slow;

impl Hook for Slow {
    async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        async {
            tokio::time::sleep(PAUSE).await;
            Ok(HookDecision::halt("enough"))
        }
        .await
    }
}

// F44: calls of one key run one after the other, in their order; calls of other keys run beside
// them.
#[tokio::test(start_paused = true)]
async fn calls_of_one_key_wait_only_for_each_other() {
    struct Keyed(Definition);
    struct KeyedCall(String);
    impl Tool for Keyed {
        fn definition(&self) -> &Definition {
            &self.0
        }

        fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn PreparedCall>, InvalidArgs> {
            let args: Value = serde_json::from_str(args.text()).unwrap();
            Ok(Box::new(KeyedCall(args["text"].as_str().unwrap().to_owned())))
        }
    }
    impl PreparedCall for KeyedCall {
        fn run(self: Box<Self>, _: ExecutionPermit) -> OutputFuture {
            Box::pin(async move {
                let began = Instant::now();
                tokio::time::sleep(PAUSE).await;
                Ok(Output::text(format!("{:?}", began)))
            })
        }

        fn concurrency_key(&self) -> Option<String> {
            Some(self.0.clone())
        }
    }
    let mut definition = Tool::definition(&tool("keyed", RiskClass::Read)).clone();
    definition.parallel = Some(Parallel::By("text".into()));
    let pipeline = Pipeline::new(Registry::builder().add(Keyed(definition)).build().unwrap());
    for (keys, rounds, order) in [
        (&["a", "b", "c"][..], 1, &[0, 0, 0][..]),
        (&["a", "a", "a"], 3, &[0, 1, 2]),
        (&["a", "b", "a", "b", "a"], 3, &[0, 0, 1, 1, 2]),
    ] {
        let before = Instant::now();
        let calls = keys.iter().map(|key| call("keyed", key)).collect();
        let (outcomes, time) = run(&pipeline, calls).await;
        assert_eq!(time, PAUSE * rounds, "{keys:?}");
        let began = order.iter().map(|round| format!("{:?}", before + PAUSE * *round));
        assert_eq!(texts(&outcomes), began.collect::<Vec<_>>(), "{keys:?}");
    }
}

/// Returns the number of successful outcomes and the kinds of the errors.
fn count_results(outcomes: &[Outcome]) -> (usize, Vec<ErrorKind>) {
    let kinds: Vec<_> = outcomes.iter().filter_map(|it| it.result.as_ref().err()).collect();
    (outcomes.len() - kinds.len(), kinds.into_iter().map(ToolError::kind).collect())
}

fn guarded() -> Pipeline {
    allowed().loop_guard(LoopGuard::default())
}

// F34: the loop guard also sees the calls of a batch.
#[tokio::test(start_paused = true)]
async fn identical_calls_of_a_batch_are_a_loop() {
    use ErrorKind::{Aborted, Denied};
    // Concurrent calls repeat no result, but the tenth reaches the hard stop.
    let (outcomes, _) = run(&guarded(), vec![call("look", "x"); 12]).await;
    assert_eq!(count_results(&outcomes), (9, vec![Denied; 3]));
    assert!(texts(&outcomes)[9].contains("it is refused until"), "{}", texts(&outcomes)[9]);

    // Sequential calls are checked like calls outside a batch.
    let (outcomes, _) = run(&guarded(), vec![call("change", "x"); 60]).await;
    assert_eq!(count_results(&outcomes), (2, vec![Denied; 58]));
    assert!(texts(&outcomes)[2].contains("was called 3 times in a row"), "{}", texts(&outcomes)[2]);
    let rounds = ["a", "b"].repeat(6).into_iter().map(|text| call("change", text)).collect();
    let (outcomes, _) = run(&guarded(), rounds).await;
    assert_eq!(count_results(&outcomes), (5, vec![Denied; 7]));

    let yes = Arc::new(ScriptedApprover::always_respond(ApprovalResponse::Once));
    let pipeline = guarded().shared_approver(yes.clone());
    let (outcomes, _) = run(&pipeline, vec![call("change", "x"); 60]).await;
    assert_eq!(count_results(&outcomes), (9, vec![Denied; 51]));
    assert_eq!(yes.requests().len(), 3);

    let pipeline = guarded().approver(ScriptedApprover::new([ApprovalResponse::Reject]));
    let calls = [vec![call("change", "x"); 4], vec![call("change", "y")]].concat();
    let (outcomes, _) = run(&pipeline, calls).await;
    assert_eq!(count_results(&outcomes), (2, vec![Denied, Aborted, Aborted]));
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_batch_that_give_something_else_are_no_loop() {
    let pipeline = allowed().loop_guard(LoopGuard::default().exempt("change"));
    let (outcomes, _) = run(&pipeline, vec![call("change", "x"); 12]).await;
    assert_eq!(count_results(&outcomes), (12, vec![]));
    let calls = (0..60).map(|at| call("change", &at.to_string())).collect();
    assert_eq!(count_results(&run(&guarded(), calls).await.0), (60, vec![]));
}

/// Takes longer for the first calls.
struct Ponders;

impl Hook for Ponders {
    async fn before(&self, call: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        let is_first = call.arguments_value()["text"] == "z1";
        async move {
            tokio::time::sleep(PAUSE * u32::from(is_first)).await;
            Ok(HookDecision::none())
        }
        .await
    }
}

// F48: prompts come in the order of the calls, even when an earlier call takes longer to decide.
#[tokio::test(start_paused = true)]
async fn prompts_come_in_the_order_of_the_calls() {
    let scripted = Arc::new(ScriptedApprover::always_respond(ApprovalResponse::Once));
    let pipeline = pipeline().hook("*", HookPriority::DEFAULT, Ponders);
    let pipeline = pipeline.shared_approver(scripted.clone());
    let calls = ["z1", "z2", "z3"].map(|text| call("change", text));
    let (outcomes, _) = run(&pipeline, calls.to_vec()).await;
    assert_eq!(count_results(&outcomes), (3, vec![]));
    let asked: Vec<_> =
        scripted.requests().iter().map(|ask| ask.arguments["text"].clone()).collect();
    assert_eq!(asked, ["z1", "z2", "z3"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn questions_come_in_the_order_of_the_calls_on_any_thread() {
    for round in 0..300 {
        let (approver, mut inbox) = crate::permission::approval_channel();
        let pipeline = pipeline().approver(approver);
        let session = Session::new("s");
        let calls = ["z1", "z2", "z1", "z3"].map(|text| call("change", text));
        let batch = Batch::new(&pipeline);
        let answering = async {
            let mut asked = Vec::new();
            while asked.len() < 3 {
                let pending = inbox.recv().await.unwrap();
                asked.push(pending.request().arguments["text"].as_str().unwrap().to_owned());
                pending.respond(ApprovalResponse::RejectWith { feedback: "not now".into() });
            }
            asked
        };
        let (_, asked) = tokio::join!(batch.run(&session, calls), answering);
        assert_eq!(asked, ["z1", "z2", "z3"], "round {round}");
    }
}

// F48: a call that a hook rewrote gets a new prompt, which is shown in its turn.
#[tokio::test(start_paused = true)]
async fn a_question_that_takes_the_place_of_another_is_shown() {
    let scheduler = Arc::new(BatchScheduler::new(3, 4));
    let prompt = |at| Arc::new(BatchPromptOrder { scheduler: Arc::clone(&scheduler), at });
    let slots: Vec<_> =
        (0..3).map(|at| CallSlot { scheduler: Arc::clone(&scheduler), at }).collect();
    slots.iter().for_each(CallSlot::mark_waiting_for_approval);
    prompt(1).mark_prompt_shown();
    prompt(2).mark_prompt_shown();
    let again = slots[1].prompt_order();
    let mut waiting =
        (again.clone().wait_for_turn(), again.clone().wait_for_turn(), prompt(2).wait_for_turn());
    let soon = Duration::from_secs(1);
    assert!(tokio::time::timeout(soon, &mut waiting.0).await.is_err(), "the first was not shown");
    assert!(tokio::time::timeout(soon, &mut waiting.1).await.is_err());
    assert!(tokio::time::timeout(soon, &mut waiting.2).await.is_err());
    prompt(0).mark_prompt_shown();
    tokio::time::timeout(soon, &mut waiting.0).await.expect("it is its turn");
    tokio::time::timeout(soon, &mut waiting.1).await.expect("the waiting task is notified");
    again.mark_prompt_shown();
    tokio::time::timeout(soon, &mut waiting.2).await.expect("nothing is before it");
}
