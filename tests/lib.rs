//! Tests over the whole workspace: `it/` holds one binary of integration tests, `ui/` the
//! compile-fail and compile-pass cases of the macros.
