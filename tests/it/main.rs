//! Integration tests over the whole workspace.

mod support;

mod checks;
mod contract;
mod definitions;
mod diagnostics;
mod display;
mod dodges;
mod errors;
mod files;
mod guards;
mod kept;
mod linear;
mod registry;
mod scenarios;
mod schema;
mod secrets;
mod sequences;
mod tidy;
mod vocabulary;
