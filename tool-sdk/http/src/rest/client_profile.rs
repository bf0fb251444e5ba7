//! Kinds of clients that the host knows, each with its own rendering of results.

/// A kind of client whose results are rendered in its own way.
#[derive(Clone, Debug)]
pub struct ClientProfile {
    name: String,
}
