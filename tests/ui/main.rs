//! What the macros refuse, in which words, and what they must accept.

#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("ui/fail/**/*.rs");
}
