//! Calls that wait for an answer between two requests.
//!
//! A modern peer is not asked but told that input is required, with a handle of 128 random
//! bits. It repeats the request with the answer and the handle; the call has waited for it,
//! frozen as it was shown.
//!
//! **Invariant:** a handle is good once, and only for the very request that it was given for.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rmcp::model::{CallToolRequestParams, ErrorData};

use super::Principal;
use super::call::{Running, Wants};

/// A call and what it waits for.
pub(super) struct Waiting {
    pub(super) running: Running,
    pub(super) wants: Wants,
    /// What was called, with what.
    pub(super) request: Request,
}

/// What a peer wants, without what changes when it asks again.
#[derive(Clone, PartialEq)]
pub(super) struct Request {
    pub(super) name: String,
    pub(super) arguments: String,
    /// On whose behalf.
    principal: Option<String>,
}

impl Request {
    pub(super) fn of(params: &CallToolRequestParams, principal: Option<&Principal>) -> Self {
        let arguments = params.arguments.as_ref();
        let arguments = arguments.and_then(|arguments| serde_json::to_string(arguments).ok());
        Self {
            name: params.name.clone().into_owned(),
            arguments: arguments.unwrap_or_else(|| "{}".to_owned()),
            principal: principal.map(|principal| principal.name().to_owned()),
        }
    }
}

/// Calls that wait for an answer, the oldest first.
#[derive(Default)]
pub(super) struct Parked(Mutex<VecDeque<(String, Waiting)>>);

impl Parked {
    /// How many calls may wait. The oldest one gives way, and its answer is no.
    const ROOM: usize = 64;

    /// Keeps a call; gives its handle.
    pub(super) fn keep(&self, waiting: Waiting) -> Result<String, ErrorData> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).map_err(|_| {
            ErrorData::internal_error("the system has no random numbers to ask safely", None)
        })?;
        let handle = format!("{:032x}", u128::from_be_bytes(bits));
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() == Self::ROOM {
            calls.pop_front();
        }
        calls.push_back((handle.clone(), waiting));
        Ok(handle)
    }

    /// Gives back the call that was kept for `request`.
    pub(super) fn take(&self, handle: &str, request: &Request) -> Result<Waiting, ErrorData> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = calls
            .iter()
            .position(|(known, waiting)| known == handle && waiting.request == *request)
            .ok_or_else(|| {
                ErrorData::invalid_params("`requestState` belongs to no call that waits", None)
            })?;
        match calls.remove(at) {
            Some((_, waiting)) => Ok(waiting),
            None => Err(ErrorData::internal_error("the call is gone", None)),
        }
    }
}
