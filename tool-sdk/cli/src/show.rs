//! The command `show`: prints everything about tools, as pages or as JSON definitions.
//!
//! Also has the lookup of tools by name with suggestions, which other commands use.

use std::fmt::Write as _;

use clap::ArgMatches;
use serde_json::Value;
use tool_sdk_core::{
    Definition, Parallel, TaskSupport, ToolError, Toolset, ToolsetView, Truncate,
    internal::printable_name,
};

use super::exit::{CommandError, USAGE};
use super::style::{TextStyle, sanitize_text};
use super::{Io, args, exit, filters, flag};

/// The nesting depth to which the fields of a parameter are listed.
const MAX_DEPTH: usize = 4;

pub(super) fn run(
    program: &str,
    tools: impl Into<Toolset>,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> exit::Result {
    let view = filters::filter_toolset(tools.into(), matches, io).view();
    let definitions = find_tools(program, &view, &requested_names(matches))?;
    if matches.get_flag(args::JSON) {
        let json = match &*definitions {
            [one] => serde_json::to_string_pretty(one),
            several => serde_json::to_string_pretty(several),
        };
        writeln!(io.stdout, "{}", json.map_err(std::io::Error::from)?)?;
    } else {
        let style = TextStyle::for_stdout(io);
        let pages: Vec<String> =
            definitions.iter().map(|tool| render_page(program, tool, style)).collect();
        io.stdout.write_all(pages.join("\n").as_bytes())?;
    }
    Ok(0)
}

/// Returns the tool names of the command line, each once.
pub(super) fn requested_names(matches: &ArgMatches) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in matches.get_many::<String>(args::NAME).into_iter().flatten() {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// Finds the tool `name` in a view.
pub(super) fn find_tool(program: &str, view: &ToolsetView, name: &str) -> exit::Result<Definition> {
    view.definition(name).cloned().ok_or_else(|| unknown_tools(program, view, &[name]))
}

/// Like [`find_tool`]; if only `all` has the tool, the error says how to enable it.
pub(super) fn find_tool_or_explain(
    program: &str,
    view: &ToolsetView,
    all: &Toolset,
    name: &str,
) -> exit::Result<Definition> {
    if let Some(definition) = view.definition(name) {
        return Ok(definition.clone());
    }
    let tools = all.all_tools();
    let kept = tools.iter().map(|tool| tool.definition()).find(|it| it.name.as_str() == name);
    match kept.and_then(availability_hint) {
        Some(whom) => {
            let words = format_args!("there is no tool `{}` for this call", printable_name(name));
            Err(CommandError::new(USAGE, ToolError::not_found(words).hint(whom)))
        }
        None => Err(unknown_tools(program, view, &[name])),
    }
}

/// Returns how to enable a tool that is not available by default.
fn availability_hint(tool: &Definition) -> Option<String> {
    if !tool.scopes.is_empty() {
        let scopes = tool.scopes.join("`, `");
        return Some(format!(
            "it requires the scope `{scopes}`, which the command line does not have"
        ));
    }
    let name = &tool.name;
    tool.flags
        .experimental
        .then(|| format!("it is experimental; set `TOOL_SDK_EXPERIMENTAL={name}` to enable it"))
}

/// Finds the tools of these names, each once and in this order; fails with all unknown names.
pub(super) fn find_tools(
    program: &str,
    view: &ToolsetView,
    names: &[&str],
) -> exit::Result<Vec<Definition>> {
    let (mut found, mut missing): (Vec<Definition>, Vec<&str>) = (Vec::new(), Vec::new());
    for name in names {
        match view.definition(name) {
            // The same tool by another alias.
            Some(tool) if found.iter().any(|known| known.name == tool.name) => {}
            Some(tool) => found.push(tool.clone()),
            None => missing.push(name),
        }
    }
    if missing.is_empty() { Ok(found) } else { Err(unknown_tools(program, view, &missing)) }
}

/// Returns the usage error for unknown tool names, with suggestions.
fn unknown_tools(program: &str, view: &ToolsetView, names: &[&str]) -> CommandError {
    let list = format!("`{program} list` names the tools");
    if let [name] = names {
        return CommandError::new(USAGE, view.unknown_tool_error(name, || list));
    }
    let lines = names.iter().map(|name| match view.suggest_names(name) {
        Some(hint) => format!("\n- `{}`; {hint}", printable_name(name)),
        None => format!("\n- `{}`", printable_name(name)),
    });
    let lines = lines.collect::<String>();
    let error = ToolError::not_found(format_args!("there are no tools of these names:{lines}"));
    CommandError::new(USAGE, error.hint(list))
}

/// Renders the page of a tool.
fn render_page(program: &str, tool: &Definition, style: TextStyle) -> String {
    let mut page = String::new();
    let title = tool.title.as_deref().map(|title| format!(" ({})", sanitize_text(title)));
    let heading = format!("{}{}", tool.name, title.unwrap_or_default());
    let _ =
        writeln!(page, "{}\n{}", style.bold(&heading), sanitize_text(tool.description.trim_end()));
    render_section(&mut page, style, "Parameters", &parameter_lines(tool));
    render_section(&mut page, style, "Facts", &fact_lines(tool));
    render_section(&mut page, style, "Examples", &flag::example_commands(program, tool));
    page
}

fn render_section(page: &mut String, style: TextStyle, heading: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(page, "\n{}", style.bold(heading));
    for line in lines.iter().flat_map(|entry| entry.lines()) {
        let _ = writeln!(page, "  {}", sanitize_text(line));
    }
}

fn parameter_lines(tool: &Definition) -> Vec<String> {
    let schema = tool.parameters.to_value();
    let mut lines = field_lines(&schema, 0);
    for keyword in ["oneOf", "anyOf"] {
        let forms = schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
        for (at, form) in forms.enumerate() {
            let target = form.get("$ref").and_then(Value::as_str);
            let target = target.and_then(|target| schema.pointer(target.strip_prefix('#')?));
            lines.push(if at == 0 { "either" } else { "or" }.to_owned());
            lines.extend(field_lines(target.unwrap_or(form), 1));
        }
    }
    if lines.is_empty() { vec!["none".to_owned()] } else { lines }
}

/// Returns the fields of an object, or of the items of a list, with nested fields indented.
fn field_lines(schema: &Value, depth: usize) -> Vec<String> {
    let object = schema.get("items").unwrap_or(schema);
    let Some(properties) = object.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let required = |name: &str| {
        object
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|all| all.iter().any(|r| r == name))
    };
    let indent = "    ".repeat(depth);
    let mut lines = Vec::new();
    for (name, property) in properties {
        lines.push(format!(
            "{indent}{name}: {}",
            flag::describe_constraints(property, required(name)).join("; ")
        ));
        let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
        lines.extend(text.lines().map(|line| format!("{indent}    {line}")));
        if depth < MAX_DEPTH {
            lines.extend(field_lines(property, depth + 1));
        }
    }
    lines
}

fn fact_lines(tool: &Definition) -> Vec<String> {
    let names = |names: &[String]| Some(names.join(", ")).filter(|text| !text.is_empty());
    let aliases: Vec<String> = tool.aliases.iter().map(ToString::to_string).collect();
    let scopes: Vec<String> = tool.scopes.iter().map(ToString::to_string).collect();
    let facts = [
        ("risk", Some(risk_text(tool))),
        ("category", tool.category.as_deref().map(str::to_owned)),
        ("aliases", names(&aliases)),
        ("rules", Some(format!("permission `{}`", tool.permission()))),
        ("time", tool.timeout.map(|limit| format!("at most {limit:?}"))),
        ("output", output_text(tool)),
        ("parallel", Some(concurrency_text(&tool.parallel()))),
        ("task", task_text(tool.task_support).map(str::to_owned)),
        ("scopes", names(&scopes)),
        ("flags", names(&flag_words(tool))),
        ("from", Some(tool.describe_location())),
    ];
    facts
        .into_iter()
        .filter_map(|(what, fact)| Some(format!("{:10}{}", format!("{what}:"), fact?)))
        .collect()
}

fn risk_text(tool: &Definition) -> String {
    let risk = tool.risk;
    let mut words = vec![risk.class.as_str()];
    words.extend(risk.destructive.then_some("destructive"));
    words.extend(risk.idempotent.then_some("idempotent"));
    words.extend(risk.open_world.then_some("reaches the outside world"));
    words.join(", ")
}

fn output_text(tool: &Definition) -> Option<String> {
    let limit = tool.max_output.map(|bytes| format!("at most {bytes} bytes"));
    let kept = tool.truncate.map(|part| match part {
        Truncate::Head => "truncated to its first lines",
        Truncate::Tail => "truncated to its last lines",
        Truncate::Middle => "truncated in the middle",
        Truncate::None => "never truncated",
    });
    let structured = tool.output.as_ref().map(|_| "structured");
    let words: Vec<String> = limit
        .into_iter()
        .chain(kept.map(str::to_owned))
        .chain(structured.map(str::to_owned))
        .collect();
    Some(words.join("; ")).filter(|text| !text.is_empty())
}

fn concurrency_text(parallel: &Parallel) -> String {
    match parallel {
        Parallel::Shared => "with other shared tools".to_owned(),
        Parallel::Exclusive => "never".to_owned(),
        Parallel::By(argument) => format!("for different values of `{argument}`"),
    }
}

fn task_text(support: TaskSupport) -> Option<&'static str> {
    match support {
        TaskSupport::Forbidden => None,
        TaskSupport::Optional => Some("MCP clients may run it as a task"),
        TaskSupport::Required => Some("MCP clients must run it as a task"),
    }
}

fn flag_words(tool: &Definition) -> Vec<String> {
    let flags = tool.flags;
    [
        (flags.requires_auth, "requires authentication"),
        (flags.hidden, "hidden"),
        (flags.experimental, "experimental"),
        (flags.streaming, "streams its output"),
    ]
    .into_iter()
    .filter(|(holds, _)| *holds)
    .map(|(_, words)| words.to_owned())
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::test_support::run;

    #[test]
    fn a_page_has_every_section() {
        assert_eq!(
            run(&["show", "echo"]).out,
            "echo\n\
             Says it again. And that is all.\n\
             \n\
             Parameters\n\
             \x20 text: string; at most 20 characters; required\n\
             \x20     What to say.\n\
             \x20 times: integer between 1 and 3; default: 1\n\
             \x20     How often.\n\
             \n\
             Facts\n\
             \x20 risk:     read\n\
             \x20 category: toys\n\
             \x20 aliases:  say\n\
             \x20 rules:    permission `echo`\n\
             \x20 parallel: with other shared tools\n\
             \x20 from:     added by the host\n\
             \n\
             Examples\n\
             \x20 toy call echo --text 'hello there' --times 2\n"
        );
    }

    #[test]
    fn json_is_the_definition() {
        let ran = run(&["show", "say", "--json"]);
        let definition: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(definition["name"], "echo");
        assert_eq!(definition["parameters"]["required"], json!(["text"]));
    }

    #[test]
    fn fields_of_fields_are_listed() {
        let schema = json!({"properties": {"edits": {"type": "array", "items": {
            "type": "object",
            "properties": {"old": {"type": "string", "description": "Before."}},
            "required": ["old"],
        }}}});
        let lines = field_lines(&schema, 0);
        assert_eq!(lines[1..], ["    old: string; required", "        Before."]);
    }

    #[test]
    fn every_form_of_the_arguments_is_listed() {
        let mut definition = crate::test_support::make_definition("t", json!({}));
        definition.parameters = tool_sdk_core::Schema::from_value(json!({
            "type": "object",
            "oneOf": [
                {"properties": {"kind": {"const": "A"}, "x": {"type": "integer"}},
                 "required": ["kind", "x"]},
                {"$ref": "#/$defs/B"},
            ],
            "$defs": {"B": {"properties": {"kind": {"const": "B"}}}},
        }))
        .unwrap();
        assert_eq!(
            parameter_lines(&definition),
            [
                "either",
                "    kind: \"A\"; required",
                "    x: integer; required",
                "or",
                "    kind: \"B\"",
            ]
        );
    }

    #[test]
    fn an_unknown_tool_is_wrong_usage_with_a_hint() {
        let ran = run(&["show", "ecko"]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""));
        assert_eq!(ran.err, "error: there is no tool `ecko`\nhint: did you mean `echo`?\n");
        assert!(run(&["show", "quite-different"]).err.contains("`toy list`"));
    }

    #[test]
    fn several_tools_are_shown_one_behind_the_other() {
        let page = |name| run(&["show", name]).out;
        let both = run(&["show", "kinds", "echo", "kinds"]);
        assert_eq!(both.out, format!("{}\n{}", page("kinds"), page("echo")));
        // An alias names the same tool.
        assert_eq!(run(&["show", "echo", "say"]).out, page("echo"));
        assert!(run(&["show", "say", "echo", "--json"]).out.starts_with('{'));
        let json: Value =
            serde_json::from_str(&run(&["show", "kinds", "echo", "--json"]).out).unwrap();
        assert_eq!((&json[0]["name"], &json[1]["name"]), (&json!("kinds"), &json!("echo")));
    }

    #[test]
    fn reports_every_unknown_name() {
        for command in ["show", "schema"] {
            let ran = run(&[command, "ecko", "echo", "quite-different", "ecko"]);
            assert_eq!((ran.code, ran.out.as_str()), (2, ""));
            assert_eq!(
                ran.err,
                "error: there are no tools of these names:\n\
                 - `ecko`; did you mean `echo`?\n\
                 - `quite-different`\n\
                 hint: `toy list` names the tools\n"
            );
        }
    }
}
