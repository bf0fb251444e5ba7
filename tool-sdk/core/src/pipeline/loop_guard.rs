//! Reports a call to the loop guard: when it starts, and how it ended.

use tokio::time::Instant;

use super::authorize::unknown_call_override;
use super::execute::catch_panic;
use super::inner::SessionState;
use super::invocation::{DecodedCall, Invocation};
use crate::content::Output;
use crate::error::ToolError;
use crate::loop_guard::{HistoryTicket, LoopFinding};
use crate::permission::{Action, DecisionSource, PolicyOverride};
use crate::tool::Parallel;

/// The finding of the loop guard, and the call's place in the session's history.
pub(super) struct LoopTicket<'a> {
    state: &'a SessionState,
    ticket: HistoryTicket,
    finding: LoopFinding,
}

impl Invocation<'_> {
    /// Checks the call with the loop guard, once for each call; a finding becomes an override of
    /// the rules.
    pub(super) fn check_loop_guard(&mut self, call: &mut DecodedCall) {
        let Ok(finding) = catch_panic(|| self.loop_finding()) else {
            return call.add_override(unknown_call_override());
        };
        let Some(reason) = finding.message(self.definition().name.as_str()) else { return };
        let action = match finding {
            LoopFinding::Stopped { .. } | LoopFinding::TooFrequent { .. } => Action::Deny,
            _ => Action::Ask,
        };
        call.add_override(PolicyOverride { action, source: DecisionSource::Loop, reason });
    }

    /// Checks a call of a batch again that waited for earlier calls, which have results by now;
    /// returns whether it found a loop. Concurrent calls do not repeat each other.
    pub(super) fn recheck_loop_guard(&mut self) -> bool {
        let is_shared = self.definition().parallel() == Parallel::Shared;
        let (Some(guard), Some(ticket), false) =
            (&self.inner.loop_guard, &mut self.loop_ticket, is_shared)
        else {
            return false;
        };
        let name = self.tool.definition().name.as_str();
        let finding =
            guard.recheck_call(&ticket.state.history, name, &ticket.ticket, Instant::now());
        if finding == LoopFinding::NoLoop {
            return false;
        }
        ticket.finding = finding;
        self.emit(|| finding.into());
        true
    }

    /// Counts a call whose arguments are invalid, and adds to its error that it repeats.
    pub(super) fn record_failed_parse(&mut self, error: ToolError) -> ToolError {
        let finding = match catch_panic(|| self.loop_finding()) {
            Ok(finding) => finding,
            Err(panic) => return panic,
        };
        match finding.message(self.definition().name.as_str()) {
            Some(repeats) => match error.suggestion().map(str::to_owned) {
                Some(hint) => error.hint(format_args!("{hint}; {repeats}")),
                None => error.hint(repeats),
            },
            None => error,
        }
    }

    fn loop_finding(&mut self) -> LoopFinding {
        // A nested call repeats because its outer call does, which is counted.
        let (Some(guard), None) = (&self.inner.loop_guard, &self.origin.parent) else {
            return LoopFinding::NoLoop;
        };
        if let Some(ticket) = &self.loop_ticket {
            return ticket.finding;
        }
        let state = self.inner.session_state(self.session);
        let name = self.definition().name.as_str();
        let (history, arguments, now) = (&state.history, self.arguments(), Instant::now());
        let (ticket, finding) = match self.session.has_stateless_calls() {
            true => guard.record_stateless_call(history, name, arguments, now),
            false => guard.record_call(history, name, arguments, now),
        };
        self.loop_ticket = Some(LoopTicket { state, ticket, finding });
        if finding != LoopFinding::NoLoop {
            self.emit(|| finding.into());
        }
        finding
    }

    /// Resets the finding of the loop guard, because a hook rewrote the call. The original call
    /// stays in the history as one that still runs, so it repeats nothing.
    pub(super) fn reset_loop_guard(&mut self) {
        self.loop_ticket = None;
    }

    /// Restarts the count of repeats, because the user saw them and approved the call.
    pub(super) fn allow_repeats(&self) {
        if let Some(ticket) = &self.loop_ticket {
            ticket.state.history.mark_allowed(&ticket.ticket);
        }
    }

    /// Records the result of the call in the session's history.
    pub(super) fn conclude_loop_guard(&mut self, result: &Result<Output, ToolError>) {
        let Some(LoopTicket { state, ticket, .. }) = self.loop_ticket.take() else { return };
        let (history, now) = (&state.history, Instant::now());
        if !self.has_run {
            return history.record_not_run(&ticket, now);
        }
        match result {
            // A heading differs between calls, so the metadata is compared instead.
            Ok(output) => match output.split_heading() {
                ("", text) => history.record_result(&ticket, Ok(text), "", now),
                (_, text) => history.record_result(&ticket, Ok(text), &metadata_text(output), now),
            },
            Err(error) => history.record_result(&ticket, Err(error.message()), "", now),
        }
    }
}

/// The metadata of a result as one text.
fn metadata_text(output: &Output) -> String {
    let metadata = output.metadata_map().map(serde_json::to_string);
    metadata.and_then(Result::ok).unwrap_or_default()
}
