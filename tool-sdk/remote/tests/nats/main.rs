//! Workers and hosts over a real NATS server.
//!
//! The variable `NATS_SERVER` names the program of the server; without it these tests are skipped,
//! and a line says so. `.ci/remote/run` installs it.
//!
//! **Invariant:** every server and worker listens on the loopback interface, and ends with its test.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

extern crate tool_sdk_core as tool_sdk;

mod calls;
mod definitions;
mod faults;
mod fixtures;
mod hosts;
mod permits;
mod questions;
mod tools;
