//! The command `list`: prints the tools, one a line.

use std::collections::BTreeSet;

use clap::ArgMatches;
use serde_json::{Value, json};
use tool_sdk_core::{Definition, Toolset, ToolsetView};

use super::{Io, args, exit, filters, style};

pub(super) fn run(
    tools: impl Into<Toolset>,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> exit::Result {
    let tools = tools.into();
    let nothing_linked = tools.is_empty();
    let category = matches.get_one::<String>(args::CATEGORY);
    let view = filters::filter_toolset(tools, matches, io).view();
    let listed: Vec<&Definition> = view
        .definitions()
        .filter(|tool| category.is_none_or(|wanted| tool.is_in_category(wanted)))
        .collect();
    if let Some(wanted) = category
        && listed.is_empty()
        && !nothing_linked
    {
        warn_unknown_category(wanted, &view, io);
    }
    if matches.get_flag(args::JSON) {
        let entries: Vec<Value> = listed.into_iter().map(tool_json).collect();
        writeln!(io.stdout, "{:#}", Value::from(entries))?;
    } else if nothing_linked {
        io.print_stderr("no tools are linked into this program");
        io.print_stderr("hint: name their crate beside `fn main`: `tool_sdk::link!(the_crate);`");
    } else if listed.is_empty() {
        io.print_stderr("no tool matches");
    } else {
        print_table(&listed, io)?;
    }
    Ok(0)
}

/// Warns of a category without tools, which is most likely mistyped.
fn warn_unknown_category(wanted: &str, view: &ToolsetView, io: &mut Io<'_>) {
    let all: BTreeSet<&str> = view.definitions().filter_map(|it| it.category.as_deref()).collect();
    let all: Vec<&str> = all.into_iter().collect();
    let wanted = style::sanitize_text(wanted);
    io.print_stderr(match &*all {
        [] => format!("warning: there is no category `{wanted}`; no tool has a category"),
        all => format!(
            "warning: there is no category `{wanted}`; the categories are {}",
            style::sanitize_text(&all.join(", "))
        ),
    });
}

fn tool_json(tool: &Definition) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "category": tool.category,
        "risk": tool.risk,
        "aliases": tool.aliases,
        "scopes": tool.scopes,
        "flags": tool.flags,
        "source": tool.source,
        "origin": tool.describe_location(),
    })
}

fn print_table(tools: &[&Definition], io: &mut Io<'_>) -> std::io::Result<()> {
    let style = style::TextStyle::for_stdout(io);
    let width = tools.iter().map(|tool| tool.name.as_str().len()).max().unwrap_or_default();
    for tool in tools {
        let name = format!("{:width$}", tool.name.as_str());
        let risk = format!("{:7}", tool.risk.class.as_str());
        let text = style::first_sentence(&tool.description);
        writeln!(io.stdout, "{}  {}  {text}", style.bold(&name), style.dim(&risk))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use tool_sdk_core::Registry;

    use crate::test_support;
    use crate::test_support::run;

    #[test]
    fn the_table_is_aligned_and_short() {
        assert_eq!(
            run(&["list"]).out,
            "echo   read     Says it again.\n\
             fail   execute  Fails as it is told to.\n\
             kinds  write    Takes every kind of value.\n"
        );
    }

    #[test]
    fn json_is_one_array() {
        let ran = run(&["list", "--json"]);
        let list: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(list[0]["name"], "echo");
        assert_eq!(list[0]["description"], "Says it again. And that is all.");
        assert_eq!(list[0]["risk"]["class"], "read");
        assert_eq!(list[0]["category"], "toys");
        assert_eq!(list[0]["aliases"], serde_json::json!(["say"]));
        assert_eq!(list[0]["source"]["type"], "native");
    }

    #[test]
    fn filters_by_scope_and_category() {
        assert!(run(&["list", "--scope", "librarian"]).out.contains("archive"));
        assert_eq!(run(&["list", "--category", "toys"]).out.lines().count(), 1);
        let warning = "warning: there is no category `Toys`; the categories are toys\n";
        let none = run(&["list", "--category", "Toys"]);
        assert_eq!((none.code, none.out.as_str()), (0, ""));
        assert_eq!(none.err, format!("{warning}no tool matches\n"));
        let none = run(&["list", "--category", "Toys", "--json"]);
        assert_eq!((none.out.as_str(), none.err.as_str()), ("[]\n", warning));
    }

    #[test]
    fn explains_how_to_link_tools() {
        let ran = test_support::run_registry(Registry::default(), &["list"]);
        assert_eq!((ran.code, ran.out.as_str()), (0, ""));
        assert!(ran.err.contains("tool_sdk::link!"), "{}", ran.err);
    }
}
