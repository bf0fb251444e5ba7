//! Tests over the whole workspace: `it/` holds one binary of integration tests. The cases of the
//! macros in `ui/` are a package of their own.
