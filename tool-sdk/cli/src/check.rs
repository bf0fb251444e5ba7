//! The command `check`: prints the permission decision for a call without running it.
//!
//! The user is never prompted: a call that would prompt is reported as `ask`. The exit code says
//! whether there is a decision, not which one.

use std::io;

use clap::ArgMatches;
use serde::Serialize;
use tool_sdk_core::CheckOutcome;

use super::args::{self, ToolVerb};
use super::call_request::CallRequest;
use super::event_printer::EventPrinter;
use super::exit::CommandError;
use super::{App, Io, exit, run_loop, style};

pub(super) fn run(
    app: &App,
    program: &str,
    top: &ArgMatches,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> exit::Result {
    let request = CallRequest::from_matches(program, ToolVerb::Check, top, matches)?;
    let ready = request.prepare(app, program, io)?;
    let environment = &ready.environment;
    let printer = EventPrinter::warnings_only(environment.pipeline.subscribe());
    let checked = run_loop::block_on(environment.pipeline.check(&environment.session, ready.call))?;
    // Prints warnings of the pipeline, for example about a corrupt approval store.
    printer.finish(io.stderr);
    let checked =
        checked.map_err(|error| CommandError::new(exit::exit_code(error.kind()), error))?;
    // JSON unless the output is a terminal.
    if request.has_switch(args::JSON) || !io.stdout_is_terminal {
        let document = CheckReport { permissions: resource_permissions(&checked), checked };
        let document = serde_json::to_string(&document).map_err(io::Error::from)?;
        writeln!(io.stdout, "{document}")?;
    } else {
        print_decision(&checked, io)?;
    }
    Ok(0)
}

/// The JSON document: the decision, and for each resource its permission where that differs from
/// the tool's.
#[derive(Serialize)]
struct CheckReport {
    #[serde(flatten)]
    checked: CheckOutcome,
    permissions: Vec<Option<String>>,
}

fn resource_permissions(checked: &CheckOutcome) -> Vec<Option<String>> {
    let subjects = checked.decision.subjects.iter();
    subjects.map(|subject| subject.permission().map(str::to_owned)).collect()
}

fn print_decision(checked: &CheckOutcome, io: &mut Io<'_>) -> io::Result<()> {
    let decision = &checked.decision;
    let mut lines = vec![format!("{}: {}", decision.action, decision.reason)];
    lines.extend(decision.rules.iter().map(|rule| match rule.origin.as_str() {
        "" => format!("rule: {rule}"),
        origin => format!("rule: {rule} ({origin})"),
    }));
    lines.extend(decision.subjects.iter().map(|subject| match subject.permission() {
        Some(permission) => format!("touches: {} ({permission})", subject.text()),
        None => format!("touches: {}", subject.text()),
    }));
    lines.extend(checked.suggestions.iter().map(|pattern| format!("could be allowed: {pattern}")));
    lines.push(format!("fingerprint: {}", checked.fingerprint));
    for line in lines {
        // A line break in a resource must not imitate a line of this output.
        writeln!(io.stdout, "{}", style::sanitize_text(&line).replace('\n', "\n  "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::test_support::{TestCli, run};

    #[track_caller]
    fn check_decision(args: &[&str], decision: &str, by: &str) -> Value {
        let ran = run(&[args, &["--json"]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?} {}", ran.out);
        let checked: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((&checked["decision"], &checked["by"]), (&json!(decision), &json!(by)));
        checked
    }

    #[test]
    fn prints_the_decision_and_runs_nothing() {
        check_decision(&["check", "echo", "--text", "x"], "allow", "default");
        check_decision(&["check", "kinds", "{}"], "ask", "default");
        check_decision(&["check", "kinds", "{}", "--mode", "plan"], "deny", "mode");
        check_decision(&["--allow", "kinds", "check", "kinds"], "allow", "rule");
        check_decision(&["check", "--deny", "kinds", "kinds"], "deny", "rule");
    }

    #[test]
    fn an_ask_stays_an_ask_with_yes_and_no_input() {
        for option in ["--yes", "--no-input"] {
            check_decision(&[option, "check", "kinds"], "ask", "default");
        }
        let mut setting = TestCli::default();
        setting.type_lines(&["y"]);
        let ran = setting.run(&["check", "kinds", "--json"]);
        assert!(ran.out.contains(r#""decision":"ask""#), "{}", ran.out);
        assert_eq!(setting.shown_text(), "");
    }

    // These keys are a stable interface.
    #[test]
    fn the_document_has_every_key() {
        let checked = check_decision(&["check", "kinds", "--ask", "kinds"], "ask", "rule");
        for key in
            ["decision", "reason", "rules", "subjects", "suggestions", "fingerprint", "permissions"]
        {
            assert!(checked.get(key).is_some(), "{key}: {checked}");
        }
        assert_eq!(checked["rules"][0]["origin"], "--ask");
        assert_eq!(checked["rules"][0]["scope"], "session");
    }

    // F74: a rule that can have no effect is most likely a mistake.
    #[test]
    fn warns_of_unmatched_rules() {
        let ran = run(&["check", "--deny", "kidns(*)", "--ask", "kinds", "kinds", "--json"]);
        let warning =
            "warning: the rule `deny kidns` (--deny) matches no tool; did you mean `kinds`?\n";
        assert_eq!((ran.code, ran.err.as_str()), (0, warning));
        let checked: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(checked["unmatched_rules"][0]["permission"], "kidns");
        assert_eq!(checked["unmatched_rules"][1], Value::Null);
        assert_eq!(run(&["call", "--deny", "kidns", "echo", "--text", "x"]).err, warning);

        let ran = run(&["check", "--deny", "*(text:secret*)", "kinds", "--json"]);
        let warning = "warning: the rule `deny *(text:secret*)` (--deny) does not match the \
                       argument `text`: write it as `text: ` with a blank\n";
        assert_eq!((ran.code, ran.err.as_str()), (0, warning));
        let checked: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(checked["unmatched_rules"][0]["pattern"], "text:secret*");
    }

    // F74, F104: unmatched rules of agents are reported like global ones, and each once.
    #[test]
    fn warns_of_unmatched_rules_of_agents() {
        let setting = TestCli::default();
        let config = setting.write_text(
            "c.toml",
            "[[rules]]\npermission = \"kinds\"\npattern = \"text: x\"\naction = \"deny\"\n\
             [agents.reader]\nrules = [{ permission = \"kidns\", action = \"deny\" }]\n",
        );
        let ran = setting.run(&["--config", &config, "check", "kinds", "{}"]);
        let told: Vec<_> = ran.err.lines().collect();
        let of_agent =
            "warning: the rule `deny kidns` (agents.reader) matches no tool; did you mean `kinds`?";
        assert_eq!(told.last(), Some(&of_agent), "{}", ran.err);
        assert_eq!(told.len(), 2, "{}", ran.err);
        let how = "the argument `text`: write it with `argument = \"text\"` beside the pattern";
        assert!(ran.err.contains(how), "{}", ran.err);
    }

    // AP3: `check` warns of a corrupt store like `call`.
    #[test]
    fn warns_of_a_corrupt_approval_store() {
        let state = tempfile::tempdir().unwrap();
        let dir = state.path().to_str().unwrap();
        tool_sdk_core::internal::private_file::create_private_folder(
            &state.path().join("approvals"),
        )
        .unwrap();
        std::fs::write(state.path().join("approvals/approvals.json"), "spoilt").unwrap();
        let setting = TestCli::default();
        let ran = setting.run(&["check", "--state-dir", dir, "kinds", "{}"]);
        assert_eq!(ran.code, 0);
        assert!(ran.err.starts_with("warning: ") && ran.err.contains("approvals"), "{}", ran.err);
    }

    #[test]
    fn people_read_lines() {
        let setting = TestCli { stdout_is_terminal: true, ..TestCli::default() };
        let ran = setting.run(&["check", "kinds", "--deny", "kinds"]);
        assert_eq!(ran.code, 0);
        assert!(ran.out.starts_with("deny: the rule `deny kinds` (session, --deny) decides\n"));
        assert!(ran.out.contains("rule: deny kinds (--deny)\n"), "{}", ran.out);
    }

    #[test]
    fn an_invalid_call_is_wrong_usage() {
        for args in [
            &["check"][..],
            &["check", "ecko", "{}"],
            &["check", "echo", "{"],
            &["check", "echo", "--times", "2"],
            &["check", "echo", "{}", "--events"],
        ] {
            let ran = run(args);
            assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}");
            if args.len() > 1 {
                let ran = run(&[args, &["--json"]].concat());
                let document: Value = serde_json::from_str(&ran.out).unwrap();
                assert_eq!((ran.code, &document["ok"]), (2, &json!(false)), "{args:?}");
            }
        }
    }
}
