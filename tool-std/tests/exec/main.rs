//! The tools that run commands, through a pipeline and with real programs.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a step that cannot be taken fails the test")]

mod begun;
mod decisions;
mod dropped;
mod facts;
#[cfg(feature = "application")]
mod home;
#[cfg(target_os = "linux")]
mod load;
mod looking;
#[cfg(feature = "fs")]
mod named;
mod once;
mod patches;
mod pushing;
mod reading;
mod sessions;
mod spelling;
mod support;
mod typing;
mod working_folder;
