//! Command hooks.
