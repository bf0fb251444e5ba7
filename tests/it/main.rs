//! Integration tests over the whole workspace.

mod support;

mod contract;
mod guards;
mod kept;
mod registry;
mod schema;
mod tidy;
