//! On the command line.

use serde_json::Value;
use tool_sdk::cli;

use super::{Scenario, Told, check, registry, scenarios};

fn call(scenario: &Scenario) -> Told {
    let (mut stdin, mut out, mut err) = (std::io::empty(), Vec::new(), Vec::new());
    let mut io = cli::Io::new(&mut stdin, &mut out, &mut err);
    let answer = if scenario.is_approved { "--yes" } else { "--no-input" };
    let args = ["tools", answer, "--deny", "forbidden", "call", "--json"];
    let args = args.into_iter().chain([scenario.tool, scenario.arguments]).map(Into::into);
    let code = cli::run(registry(), args, &mut io);
    let document: Value = serde_json::from_slice(&out).expect("one document");
    let goes_well = document["ok"].as_bool().expect("a verdict");
    assert_eq!(code == 0, goes_well, "{document}");
    let text = match (goes_well, &document["error"]) {
        (true, _) => document["output"].as_str().unwrap_or_default().to_owned(),
        (false, error) => {
            let part = |name: &str| error[name].as_str().unwrap_or_default();
            format!("{}\nhint: {}", part("message"), part("hint"))
        }
    };
    let mut told = Told::new(goes_well, text, document.get("structured").cloned());
    let attachments = document["attachments"].as_array().into_iter().flatten();
    told.attachments = attachments.map(|it| it["mime"].as_str().expect("a type").into()).collect();
    told
}

#[test]
fn on_the_command_line() {
    for scenario in scenarios() {
        check("command line", &scenario, &call(&scenario));
    }
}
