//! The program as a server of the Model Context Protocol, spoken to by hand: over its
//! standard input and output, and over HTTP.

#![cfg(feature = "application")]

mod asking;
mod http;
mod kept;
mod peer;
mod pipes;
#[cfg(unix)]
mod socket;
#[cfg(unix)]
mod upstream;
