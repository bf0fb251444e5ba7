//! `check`: what would be decided about a call, without making it.
//!
//! Nobody is asked, whatever the options say: a call that would ask is told as one. The
//! exit code says whether there is an answer, and not which.

use std::io;

use clap::ArgMatches;
use serde::Serialize;

use super::exit::Failure;
use super::grammar::{self, Verb};
use super::mcp::{Foreign, Need};
use super::request::Request;
use super::stage::Stage;
use super::watch::Watch;
use super::{App, Io, drive, exit, show, style};
use crate::call::Call;
use crate::pipeline::Checked;

pub(super) fn run(
    app: &App,
    program: &str,
    top: &ArgMatches,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> exit::Result {
    let request = Request::of(program, Verb::Check, top, matches)?;
    let own = app.with(request.name);
    let (foreign, need) = (Foreign::beyond(&own, &request, io)?, Need::Tool(request.name));
    let known = foreign.beside(own, need, io);
    let parsed = request.parse(program, &known, io)?;
    let mut stage = Stage::set(app, &parsed.levels(), io)?;
    foreign.join(&mut stage, need, io);
    show::find_among(program, &stage.view(), &known, request.name)?;
    let call = Call::new(request.name, parsed.arguments.as_str());
    let watch = Watch::quiet(stage.pipeline.subscribe());
    let checked = drive::block_on(stage.pipeline.check(&stage.session, call))?;
    // What was not believed on the way, such as a store that somebody spoilt.
    watch.finish(io.stderr);
    let checked = checked.map_err(|error| Failure::new(exit::code(error.kind()), error))?;
    // For programs, unless somebody looks at it.
    if parsed.has(grammar::JSON) || !io.terminal {
        let document = Document { permissions: permissions(&checked), checked };
        let document = serde_json::to_string(&document).map_err(io::Error::from)?;
        writeln!(io.stdout, "{document}")?;
    } else {
        print(&checked, io)?;
    }
    Ok(0)
}

/// What programs read: beside each subject the permission that it asks for, where it has another
/// one than its tool.
#[derive(Serialize)]
struct Document {
    #[serde(flatten)]
    checked: Checked,
    permissions: Vec<Option<String>>,
}

fn permissions(checked: &Checked) -> Vec<Option<String>> {
    let subjects = checked.decision.subjects.iter();
    subjects.map(|subject| subject.permission().map(str::to_owned)).collect()
}

fn print(checked: &Checked, io: &mut Io<'_>) -> io::Result<()> {
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
        // A line end in a subject must not look like a line of ours.
        writeln!(io.stdout, "{}", style::plain(&line).replace('\n', "\n  "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::toy::{Setting, run};

    #[track_caller]
    fn check_decision(args: &[&str], decision: &str, by: &str) -> Value {
        let ran = run(&[args, &["--json"]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?} {}", ran.out);
        let checked: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((&checked["decision"], &checked["by"]), (&json!(decision), &json!(by)));
        checked
    }

    #[test]
    fn the_decision_is_told_and_nothing_runs() {
        check_decision(&["check", "echo", "--text", "x"], "allow", "default");
        check_decision(&["check", "kinds", "{}"], "ask", "default");
        check_decision(&["check", "kinds", "{}", "--mode", "plan"], "deny", "mode");
        check_decision(&["--allow", "kinds", "check", "kinds"], "allow", "rule");
        check_decision(&["check", "--deny", "kinds", "kinds"], "deny", "rule");
    }

    #[test]
    fn an_ask_is_an_ask_whoever_would_answer() {
        for option in ["--yes", "--no-input"] {
            check_decision(&[option, "check", "kinds"], "ask", "default");
        }
        let mut setting = Setting::default();
        setting.types(&["y"]);
        let ran = setting.run(&["check", "kinds", "--json"]);
        assert!(ran.out.contains(r#""decision":"ask""#), "{}", ran.out);
        assert_eq!(setting.shown(), "");
    }

    // The command line is a contract: these keys are there.
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
    fn rules_about_nothing_are_told() {
        let ran = run(&["check", "--deny", "kidns(*)", "--ask", "kinds", "kinds", "--json"]);
        let warning = "warning: the rule `deny kidns` (--deny) speaks of no tool that there is\n";
        assert_eq!((ran.code, ran.err.as_str()), (0, warning));
        let checked: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(checked["unmatched_rules"][0]["permission"], "kidns");
        assert_eq!(checked["unmatched_rules"][1], Value::Null);
        assert_eq!(run(&["call", "--deny", "kidns", "echo", "--text", "x"]).err, warning);

        let ran = run(&["check", "--deny", "*(text:secret*)", "kinds", "--json"]);
        let warning = "warning: the rule `deny *(text:secret*)` (--deny) says nothing of the \
                       argument `text`: write it as `text: ` with a blank\n";
        assert_eq!((ran.code, ran.err.as_str()), (0, warning));
        let checked: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(checked["unmatched_rules"][0]["pattern"], "text:secret*");
    }

    // F74, F104: the rules of an agent are told of like those of everybody, and each once.
    #[test]
    fn rules_about_nothing_are_told_wherever_they_are_written() {
        let setting = Setting::default();
        let config = setting.file(
            "c.toml",
            "[[rules]]\npermission = \"kinds\"\npattern = \"text: x\"\naction = \"deny\"\n\
             [agents.reader]\nrules = [{ permission = \"kidns\", action = \"deny\" }]\n",
        );
        let ran = setting.run(&["--config", &config, "check", "kinds", "{}"]);
        let told: Vec<_> = ran.err.lines().collect();
        let of_agent =
            "warning: the rule `deny kidns` (agents.reader) speaks of no tool that there is";
        assert_eq!(told.last(), Some(&of_agent), "{}", ran.err);
        assert_eq!(told.len(), 2, "{}", ran.err);
        let how = "of the argument `text`: write it with `argument = \"text\"` beside the pattern";
        assert!(ran.err.contains(how), "{}", ran.err);
    }

    // AP3: who looks loses the same approvals as who calls, and is told so, too.
    #[test]
    fn a_spoilt_store_is_told() {
        let state = tempfile::tempdir().unwrap();
        let dir = state.path().to_str().unwrap();
        crate::store::place::create_private(&state.path().join("approvals")).unwrap();
        std::fs::write(state.path().join("approvals/approvals.json"), "spoilt").unwrap();
        let setting = Setting::default();
        let ran = setting.run(&["check", "--state-dir", dir, "kinds", "{}"]);
        assert_eq!(ran.code, 0);
        assert!(ran.err.starts_with("warning: ") && ran.err.contains("approvals"), "{}", ran.err);
    }

    #[test]
    fn people_read_lines() {
        let setting = Setting { terminal: true, ..Setting::default() };
        let ran = setting.run(&["check", "kinds", "--deny", "kinds"]);
        assert_eq!(ran.code, 0);
        assert!(ran.out.starts_with("deny: the rule `deny kinds` (session, --deny) decides\n"));
        assert!(ran.out.contains("rule: deny kinds (--deny)\n"), "{}", ran.out);
    }

    #[test]
    fn what_cannot_be_judged_is_wrong_usage() {
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
