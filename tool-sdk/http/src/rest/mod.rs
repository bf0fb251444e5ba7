//! REST for the tools of a pipeline, with OpenAPI, live events, approvals and metrics.
//!
//! ```text
//! request ─▶ access_log ─▶ plain_errors ─▶ auth ─▶ handler (tools · calls · batch · approvals · ..)
//!                                                     ├▶ sessions · idempotency    what it belongs to
//!                                                     ├▶ running_calls             starts and cancels
//!                                                     ├▶ call_stream · call_socket its events
//!                                                     └▶ response · problem        what the client gets
//! pipeline ─▶ event_hub ─▶ event_log ─▶ events (SSE)
//!                      └─▶ metrics
//! ```
//!
//! **Invariant:** no handler decides whether a call may run: the pipeline does.

mod access_log;
mod approvals;
mod audit;
mod batch;
mod call_socket;
mod call_stream;
mod caller;
mod calls;
mod client_profile;
mod console_sign_in;
mod event_hub;
mod event_log;
mod events;
mod grants;
mod health;
mod idempotency;
mod metrics;
mod openapi;
mod options;
mod plain_errors;
mod problem;
mod query_args;
mod questions;
mod random_id;
mod recent_calls;
mod request;
mod response;
mod routes;
mod rules;
mod running_calls;
mod servers;
mod service;
mod sessions;
mod tools;
mod workers;

pub use self::client_profile::{ChatGptProfile, ClientProfile};
pub use self::openapi::{OpenApiContent, openapi_document};
pub use self::options::RestOptions;
pub use self::routes::{router, serve};
pub use self::workers::WorkerLoad;
