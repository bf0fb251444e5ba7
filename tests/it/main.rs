//! Integration tests over the whole workspace.

mod support;

mod contract;
mod definitions;
mod dodges;
mod files;
mod guards;
mod kept;
mod linear;
mod registry;
mod scenarios;
mod schema;
mod sequences;
mod tidy;
mod vocabulary;
