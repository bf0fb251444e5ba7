//! The command `schema`: prints tool schemas in the format of a provider or protocol, or writes
//! and compares schema files.

use std::io;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use serde_json::{Value, json};
use tool_sdk_core::{
    Definition, ToolError, Toolset,
    internal::{SchemaFileChange, SchemaFileState, compare_schema_files},
    provider::{self, Dialect, LintFinding},
};

use super::exit::{CommandError, FAILED};
use super::{App, Io, args, exit, filters, show, style};

/// The format of an older `tools.json`, in the function form.
pub(super) const LEGACY_FORMAT: &str = "tools-json-legacy";

pub(super) fn run(
    app: &App,
    program: &str,
    tools: impl Into<Toolset>,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> exit::Result {
    let names = show::requested_names(matches);
    let tools = select_tools(program, &filters::filter_toolset(tools.into(), matches, io), &names)?;
    let format = matches.get_one::<String>(args::FORMAT).map_or("", String::as_str);
    if format == args::OPENAPI {
        return print_openapi(app, program, &tools, matches, io);
    }
    let is_legacy = format == LEGACY_FORMAT;
    // The lint of the older form is that of complete definitions.
    let dialect = if is_legacy { Dialect::ToolsJson } else { parse_dialect(format)? };
    let compares = [args::WRITE, args::CHECK].iter().any(|it| matches.contains_id(it));
    if is_legacy && compares {
        return Err(CommandError::usage(format_args!(
            "`--write` and `--check` have one file for each tool, and {LEGACY_FORMAT} is one document"
        ))
        .hint("redirect the output into a file"));
    }
    let files = compare_files(matches, &tools, dialect, names.is_empty(), io)?;
    let findings = matches.get_flag(args::LINT).then(|| provider::lint_all(&tools, dialect));
    if files.is_none() && findings.is_none() {
        let document = match is_legacy {
            true => provider::encode_legacy_tools(&tools),
            false => provider::encode_tools(&tools, dialect),
        };
        writeln!(io.stdout, "{document:#}")?;
    } else if matches.get_flag(args::JSON) {
        writeln!(io.stdout, "{:#}", report_json(files.as_ref(), findings.as_deref()))?;
    } else {
        print_report(program, dialect, files.as_ref(), findings.as_deref(), io)?;
    }
    let fine = files.is_none_or(|files| files.is_up_to_date())
        && findings.is_none_or(|all| all.is_empty());
    Ok(if fine { 0 } else { FAILED })
}

/// Prints the OpenAPI document of a server with these tools.
#[cfg(feature = "http")]
fn print_openapi(
    app: &App,
    program: &str,
    tools: &[Definition],
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> exit::Result {
    use tool_sdk_http::rest::{OpenApiContent, openapi_document};

    if matches.get_flag(args::LINT)
        || matches.contains_id(args::WRITE)
        || matches.contains_id(args::CHECK)
    {
        return Err(CommandError::usage(
            "`--format openapi` prints one document; `--lint`, `--write` and `--check` are for \
             formats with one schema for each tool",
        ));
    }
    let api = (program, app.announced_version());
    writeln!(io.stdout, "{:#}", openapi_document(tools, api, OpenApiContent::Tools))?;
    Ok(0)
}

#[cfg(not(feature = "http"))]
fn print_openapi(
    _: &App,
    _: &str,
    _: &[Definition],
    _: &ArgMatches,
    _: &mut Io<'_>,
) -> exit::Result {
    Err(CommandError::usage("this program is built without a server for REST"))
}

fn parse_dialect(name: &str) -> exit::Result<Dialect> {
    name.parse().map_err(|_| CommandError::usage(format_args!("there is no format `{name}`")))
}

/// Returns the named tools, sorted and each once; all tools if none is named.
fn select_tools(program: &str, toolset: &Toolset, names: &[&str]) -> exit::Result<Vec<Definition>> {
    let view = toolset.view();
    if names.is_empty() {
        return Ok(view.definitions().cloned().collect());
    }
    let mut tools = show::find_tools(program, &view, names)?;
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tools)
}

/// The comparison of a folder of schema files with the current schemas.
struct SchemaFiles {
    folder: String,
    written: bool,
    changes: Vec<SchemaFileChange>,
}

impl SchemaFiles {
    /// Whether the files are up to date, after writing or by comparison.
    fn is_up_to_date(&self) -> bool {
        self.written || self.changes.iter().all(|change| change.is_settled(false))
    }
}

/// Compares the files for `--check`, and updates those that differ for `--write`.
fn compare_files(
    matches: &ArgMatches,
    tools: &[Definition],
    dialect: Dialect,
    all: bool,
    io: &Io<'_>,
) -> exit::Result<Option<SchemaFiles>> {
    let folder = |option: &str| matches.get_one::<PathBuf>(option);
    let (folder, written) = match (folder(args::WRITE), folder(args::CHECK)) {
        (Some(folder), _) => (folder, true),
        (None, Some(folder)) => (folder, false),
        (None, None) => return Ok(None),
    };
    let name = folder.display().to_string();
    let changes = compare_schema_files(&io.resolve_path(folder), tools, dialect, all, written)
        .map_err(|error| {
            CommandError::new(FAILED, ToolError::failed(format_args!("`{name}`: {error}")))
                .hint("`--write` and `--check` must name a folder, with one file for each tool")
        })?;
    Ok(Some(SchemaFiles { folder: name, written, changes }))
}

/// Returns the JSON report: a list of findings, or an object with changes and findings.
fn report_json(files: Option<&SchemaFiles>, findings: Option<&[LintFinding]>) -> Value {
    let Some(files) = files else { return json!(findings) };
    let differing: Vec<_> =
        files.changes.iter().filter(|change| change.state != SchemaFileState::Same).collect();
    let mut report = json!({ "written": files.written, "changes": differing });
    if let Some(findings) = findings {
        report["findings"] = json!(findings);
    }
    report
}

fn print_report(
    program: &str,
    dialect: Dialect,
    files: Option<&SchemaFiles>,
    findings: Option<&[LintFinding]>,
    io: &mut Io<'_>,
) -> io::Result<()> {
    if let Some(files) = files {
        print_changes(files, io)?;
        if !files.is_up_to_date() {
            let folder = style::shell_quote(&files.folder);
            io.print_stderr(format_args!(
                "hint: `{program} schema --format {} --write {folder}` brings them up to date; \
                 delete stale files yourself",
                dialect.as_str()
            ));
        }
    }
    for finding in findings.into_iter().flatten() {
        writeln!(io.stdout, "{}", style::sanitize_text(&finding.to_string()))?;
    }
    if findings.is_some_and(<[_]>::is_empty) {
        io.print_stderr(format_args!("the format {} supports every tool", dialect.as_str()));
    }
    Ok(())
}

fn print_changes(files: &SchemaFiles, io: &mut Io<'_>) -> io::Result<()> {
    let mut same = 0;
    for SchemaFileChange { file, state, differences } in &files.changes {
        let word = match (state, files.written) {
            (SchemaFileState::Same, _) => {
                same += 1;
                continue;
            }
            (SchemaFileState::Missing, false) => "missing",
            (SchemaFileState::Missing, true) => "created",
            (SchemaFileState::Changed, false) => "changed",
            (SchemaFileState::Changed, true) => "updated",
            (SchemaFileState::Stale, _) => "stale",
        };
        let path = Path::new(&files.folder).join(file);
        writeln!(io.stdout, "{word:8} {}", style::sanitize_text(&path.display().to_string()))?;
        for difference in differences.iter().filter(|_| !files.written) {
            writeln!(io.stdout, "         {}", style::sanitize_text(difference))?;
        }
    }
    io.print_stderr(format_args!("{same} of {} files were up to date", files.changes.len()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support;
    use crate::test_support::CliOutput;

    fn run(args: &[&str]) -> CliOutput {
        test_support::run(&[&["schema"], args].concat())
    }

    #[test]
    fn prints_all_tools_in_mcp_format_by_default() {
        let ran = run(&[]);
        let document: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        assert_eq!(document["tools"].as_array().unwrap().len(), 3);
        assert_eq!(document["tools"][0]["inputSchema"]["type"], "object");
    }

    #[test]
    fn tools_may_be_named_by_alias_and_in_any_order() {
        let document: Value =
            serde_json::from_str(&run(&["kinds", "say", "echo", "--format", "openai"]).out)
                .unwrap();
        let names: Vec<_> =
            document.as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
        assert_eq!(names, ["echo", "kinds"]);
        assert_eq!(run(&["nothing"]).code, 2);
        assert_eq!(run(&["--format", "nothing"]).code, 2);
    }

    #[test]
    fn every_format_can_be_printed() {
        for dialect in Dialect::ALL {
            let ran = run(&["--format", dialect.as_str()]);
            assert_eq!(ran.code, 0, "{}", ran.err);
            assert!(serde_json::from_str::<Value>(&ran.out).is_ok());
        }
    }

    #[test]
    fn files_are_written_and_checked() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/schemas");
        let path = folder.to_str().unwrap();
        let file = |name: &str| folder.join(name);

        assert_eq!(run(&["--check", path]).code, 1);
        assert!(!folder.exists());
        let written = run(&["--write", path]);
        assert_eq!(written.code, 0, "{}", written.err);
        assert_eq!(written.out.matches("created").count(), 3);
        assert_eq!(run(&["--check", path]).code, 0);
        assert_eq!(run(&["--write", path]).out, "");
        assert!(std::fs::read_to_string(file("echo.json")).unwrap().ends_with("}\n"));

        std::fs::write(file("echo.json"), "{}").unwrap();
        std::fs::remove_file(file("fail.json")).unwrap();
        std::fs::write(file("gone.json"), "{}").unwrap();
        let check = run(&["--check", path]);
        assert_eq!(check.code, 1);
        for (word, name) in [("changed", "echo"), ("missing", "fail"), ("stale", "gone")] {
            let line = format!("{word:8} {}", file(&format!("{name}.json")).display());
            assert!(check.out.contains(&line), "{}", check.out);
        }
        assert!(check.err.contains("toy schema --format mcp --write"), "{}", check.err);

        let json = run(&["--check", path, "--json"]);
        let report: Value = serde_json::from_str(&json.out).unwrap();
        assert_eq!(report["changes"][0]["state"], "changed");
        assert!(
            check.out.contains("/name: the file has nothing, the tool \"echo\""),
            "{}",
            check.out
        );
        assert_eq!(report["changes"][1], json!({"file": "fail.json", "state": "missing"}));
        // Only the named tool is compared.
        assert_eq!(run(&["kinds", "--check", path]).code, 0);
        assert!(run(&["--write", path]).out.contains("stale"));
        assert!(file("gone.json").exists());
    }

    #[test]
    fn line_ends_do_not_matter() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        run(&["echo", "--write", path]);
        let file = dir.path().join("echo.json");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace('\n', "\r\n")).unwrap();
        assert_eq!(run(&["echo", "--check", path]).code, 0);
    }

    #[test]
    fn findings_are_printed_and_fail() {
        let fine = run(&["echo", "--lint", "--json"]);
        assert_eq!((fine.code, fine.out.as_str()), (0, "[]\n"));
        let ran = run(&["kinds", "--lint", "--format", "openai-strict"]);
        assert_eq!(ran.code, 1, "{}", ran.err);
        assert!(ran.out.contains("tool `kinds`"), "{}", ran.out);
        let json = run(&["kinds", "--lint", "--format", "openai-strict", "--json"]);
        let findings: Value = serde_json::from_str(&json.out).unwrap();
        assert_eq!(findings[0]["tool"], "kinds");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_a_failure() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let ran = run(&["--write", file.to_str().unwrap()]);
        assert_eq!(ran.code, 1);
        assert!(
            ran.err.starts_with("error: ") && ran.err.contains("must name a folder"),
            "{}",
            ran.err
        );
    }
}
