//! Buffers for the name and arguments of a call. They are reused by the next call if the call
//! finished in place.
//!
//! **Invariant:** each call has a cancellation token of its own.

use tool_sdk_core::{Call, internal::LazyCancelToken};

use super::fast_request::ToolCall;
use crate::call::client_args;

/// How much room is kept for the arguments of later calls.
const MAX_KEPT_BYTES: usize = 64 * 1024;

/// The words of one call, and what cancels it.
pub(super) struct CallBuffers {
    name: String,
    arguments: String,
    pub(super) cancel: LazyCancelToken,
}

impl CallBuffers {
    /// The order for a call as it was read.
    pub(super) fn from_call(call: &ToolCall<'_>) -> Self {
        let (name, arguments) = (&*call.name, call.arguments.unwrap_or("{}"));
        Self {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            cancel: LazyCancelToken::default(),
        }
    }

    /// The same, made of the order for a call that has ended.
    pub(super) fn reuse(self, call: &ToolCall<'_>) -> Self {
        let Self { mut name, mut arguments, cancel } = self;
        name.clear();
        name.push_str(&call.name);
        arguments.clear();
        arguments.shrink_to(MAX_KEPT_BYTES);
        arguments.push_str(call.arguments.unwrap_or("{}"));
        Self { name, arguments, cancel: cancel.for_new_call() }
    }

    pub(super) fn to_call(&self) -> Call<'_> {
        let mut call = Call::new(&*self.name, client_args(&*self.arguments));
        call.cancel = Some(self.cancel.clone());
        call
    }
}
