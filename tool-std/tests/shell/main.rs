//! Static analysis of command lines: test cases of other projects, a corpus of evasions,
//! properties, and comparison with a real bash.

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
