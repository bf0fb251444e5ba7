//! Adds suggestions to usage errors of clap, for what users of similar programs type first.
//!
//! **Invariant:** an error keeps its kind and exit code; only its suggestions change.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use tool_sdk_core::Toolset;

/// Options of similar programs, each with what to write instead.
const KNOWN_OPTIONS: &[(&str, &str)] = &[
    ("--port", "'--http PORT' serves over HTTP, as in '--http 8080'"),
    ("--host", "'--http ADDR' serves over HTTP, as in '--http 127.0.0.1:8080'"),
    ("--stdio", "'serve mcp' serves over standard input and output by default"),
    ("--dir", "'--root DIR' names a folder that tools may access"),
    ("--cwd", "'--root DIR' names a folder that tools may access"),
    ("-v", "the option is spelled '--verbose'"),
    ("-V", NO_VERSION),
    ("--version", NO_VERSION),
];

/// The suggestion in a program whose author set no version.
const NO_VERSION: &str =
    "the author of this program sets its version with 'App::version(env!(\"CARGO_PKG_VERSION\"))'";

/// Adds a suggestion to the error if it is about one of the known options, or about the name of a
/// tool in place of a command.
pub(super) fn add_suggestion(
    mut error: clap::Error,
    program: &str,
    tools: impl FnOnce() -> Toolset,
) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let tip = match error.kind() {
        ErrorKind::UnknownArgument => text(ContextKind::InvalidArg).and_then(|given| {
            let given = given.split('=').next().unwrap_or_default();
            let known = KNOWN_OPTIONS.iter().find(|(option, _)| *option == given);
            known.map(|(_, instead)| (*instead).to_owned())
        }),
        ErrorKind::InvalidSubcommand => text(ContextKind::InvalidSubcommand).and_then(|given| {
            tools().get(&given).map(|_| format!("'{program} call {given}' calls the tool"))
        }),
        _ => None,
    };
    if let Some(tip) = tip {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

#[cfg(test)]
mod tests {
    use crate::test_support::run;

    #[test]
    fn what_is_typed_first_gets_a_hint() {
        for (args, words) in [
            #[cfg(feature = "mcp")]
            (&["serve", "mcp", "--port", "8080"][..], "'--http PORT'"),
            #[cfg(feature = "mcp")]
            (&["serve", "mcp", "--port=8080"], "'--http PORT'"),
            (&["echo"][..], "'toy call echo' calls the tool"),
            (&["say", "--text", "x"], "'toy call say' calls the tool"),
            (&["list", "-v"], "'--verbose'"),
            (&["-V"], "'App::version("),
            (&["--version"], "'App::version("),
            (&["lst"], "'list'"),
        ] {
            let ran = run(args);
            assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}");
            assert!(ran.err.contains(words), "{args:?}: {}", ran.err);
        }
    }

    #[test]
    fn a_rule_for_an_unknown_tool_gets_a_similar_name() {
        for (rule, words) in [
            ("ecko", "matches no tool; did you mean `echo`?"),
            ("kindz(path: a)", "did you mean `kinds`?"),
            ("nonsense", "matches no tool; `list` names the tools"),
        ] {
            let ran = run(&["call", "echo", "--text", "x", "--allow", rule]);
            assert_eq!(ran.code, 0, "{}", ran.err);
            assert!(ran.err.contains(words), "{rule}: {}", ran.err);
        }
    }
}
