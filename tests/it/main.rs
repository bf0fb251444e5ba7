//! Integration tests over the whole workspace.

mod support;

mod contract;
mod dodges;
mod files;
mod guards;
mod kept;
mod registry;
mod scenarios;
mod schema;
mod tidy;
