//! Command lines: cases from other projects, a corpus of tricks, laws, and bash as judge.

#![cfg(all(feature = "exec", unix))]

mod bash;
mod corpus;
mod fixtures;
mod laws;
mod mutants;
mod names;
mod places;
mod redirections;
mod spellings;
mod support;
mod table;
