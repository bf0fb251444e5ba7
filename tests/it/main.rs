//! Integration tests over the whole workspace.

mod support;

mod contract;
mod files;
mod guards;
mod registry;
mod schema;
mod tidy;
