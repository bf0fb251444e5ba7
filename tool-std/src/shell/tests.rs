//! The layers together.

use super::*;

fn texts(script: &str) -> Vec<String> {
    understand(script).commands.into_iter().map(|command| command.text).collect()
}

#[test]
fn placeholder() {
    assert_eq!(texts("ls"), ["ls"]);
}
