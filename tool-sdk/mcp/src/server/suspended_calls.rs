//! Calls that wait for an answer between two requests.
//!
//! A modern client is not asked directly. It gets the result "input required" with a handle of 128
//! random bits as `requestState`, and repeats its request with the answer and the handle. The call
//! waits meanwhile, frozen in the state that was shown.
//!
//! **Invariant:** a handle works once, and only for the request that it was issued for. A principal
//! that suspends too many calls loses its own oldest call, never one of another principal.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rmcp::model::ErrorData;
use tool_sdk_core::Principal;

use super::call::{AwaitedInput, SuspendableCall, normalize_arguments};

/// A call and the input that it waits for.
pub(super) struct SuspendedCall {
    pub(super) running: SuspendableCall,
    pub(super) awaited: AwaitedInput,
}

/// A call request without the parts that change when the client repeats it.
#[derive(Clone, PartialEq)]
pub(super) struct CallRequest {
    pub(super) name: String,
    arguments: String,
    /// The name of the principal that the call is made for.
    principal: Option<String>,
}

impl CallRequest {
    pub(super) fn new(name: String, arguments: &str, principal: Option<&Principal>) -> Self {
        Self {
            name,
            arguments: normalize_arguments(arguments),
            principal: principal.map(|principal| principal.name().to_owned()),
        }
    }
}

/// The suspended calls, oldest first.
pub(super) struct SuspendedCalls<W = SuspendedCall>(Mutex<VecDeque<SuspendedEntry<W>>>);

struct SuspendedEntry<W> {
    handle: String,
    request: CallRequest,
    call: W,
}

impl<W> Default for SuspendedCalls<W> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<W> SuspendedCalls<W> {
    /// How many calls of one principal may be suspended. Beyond it, the oldest one is dropped and
    /// its approval denied.
    const MAX_PER_PRINCIPAL: usize = 64;

    /// Suspends a call and returns its handle.
    pub(super) fn suspend(&self, request: CallRequest, waiting: W) -> Result<String, ErrorData> {
        let handle = random_handle()?;
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_the_same = |kept: &SuspendedEntry<W>| kept.request.principal == request.principal;
        if calls.iter().filter(|kept| of_the_same(kept)).count() >= Self::MAX_PER_PRINCIPAL
            && let Some(oldest) = calls.iter().position(of_the_same)
        {
            calls.remove(oldest);
        }
        calls.push_back(SuspendedEntry { handle: handle.clone(), request, call: waiting });
        Ok(handle)
    }

    /// Returns the call that was suspended for `request`.
    pub(super) fn resume(&self, handle: &str, request: &CallRequest) -> Result<W, ErrorData> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = calls
            .iter()
            .position(|kept| kept.handle == handle && kept.request == *request)
            .ok_or_else(|| {
                ErrorData::invalid_params("`requestState` matches no suspended call of this request; call the tool again without it", None)
            })?;
        match calls.remove(at) {
            Some(kept) => Ok(kept.call),
            None => {
                Err(ErrorData::internal_error("the suspended call is no longer available", None))
            }
        }
    }
}

/// Returns 128 random bits, which no other client can guess.
pub(super) fn random_handle() -> Result<String, ErrorData> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|_| {
        let words = "cannot create a handle for the call: no random numbers available";
        ErrorData::internal_error(words, None)
    })?;
    Ok(format!("{:032x}", u128::from_be_bytes(bits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(principal: &str, name: &str) -> CallRequest {
        let principal = Some(principal.to_owned());
        CallRequest { name: name.to_owned(), arguments: "{}".to_owned(), principal }
    }

    #[test]
    fn a_principal_over_its_limit_loses_its_own_oldest_call() {
        let parked = SuspendedCalls::default();
        let ada = parked.suspend(request("ada", "t"), 0).unwrap();
        let flood: Vec<_> = (1..=SuspendedCalls::<usize>::MAX_PER_PRINCIPAL + 1)
            .map(|n| parked.suspend(request("eve", "t"), n))
            .collect();
        let first = flood[0].as_ref().unwrap();
        assert!(parked.resume(first, &request("eve", "t")).is_err(), "the oldest call was dropped");
        assert_eq!(parked.resume(flood[1].as_ref().unwrap(), &request("eve", "t")), Ok(2));
        assert_eq!(parked.resume(&ada, &request("ada", "t")), Ok(0));
    }

    #[test]
    fn a_handle_works_once_and_for_its_request() {
        let parked = SuspendedCalls::default();
        let handle = parked.suspend(request("ada", "t"), 1).unwrap();
        for other in [request("ada", "u"), request("eve", "t")] {
            assert!(parked.resume(&handle, &other).is_err());
        }
        assert_eq!(parked.resume(&handle, &request("ada", "t")), Ok(1));
        assert!(parked.resume(&handle, &request("ada", "t")).is_err());
    }
}
