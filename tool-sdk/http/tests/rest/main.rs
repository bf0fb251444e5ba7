//! Tests of the REST API over a real socket.

#![expect(clippy::unwrap_used, reason = "what these tests are made of unwraps as they do")]

mod approvals;
mod attacks;
mod batches;
mod calls;
mod client_profiles;
mod console;
mod events;
mod history;
mod idempotency;
mod openapi;
mod operation;
mod scenarios;
mod server;
mod sockets;
mod tools;
