//! `serve acp` and the client of the protocol's own crate, over standard input and output.
//!
//! Every message that the program sends is checked against the protocol's schema.

mod editor;
mod frames;
mod permissions;
mod prompts;
mod sessions;
