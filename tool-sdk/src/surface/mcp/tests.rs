//! The server as its peers see it, over a pipe in memory.
