//! What the macros refuse, in which words, and what they must accept.

mod late;
mod pass;

/// One check of all cases at once: a case that must compile would make it one build each,
/// so those are modules of this binary.
#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("fail/**/*.rs");
}

#[test]
fn mistakes_that_show_late_are_explained() {
    late::check();
}
