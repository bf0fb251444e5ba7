//! The command `approvals`: lists stored approvals and revokes them.

use clap::ArgMatches;
use serde_json::{Value, json};
use tool_sdk_core::{GrantStore, Grantee, PrivateFileError, StoredGrant, ToolError};

use super::exit::{CommandError, Result};
use super::settings::Settings;
use super::{Io, args, exit, mcp, style};

pub(super) fn run(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let Some((command, behind)) = matches.subcommand() else {
        return Err(CommandError::usage("`list` or `revoke ID` is missing"));
    };
    let store = settings.open_approvals().ok_or_else(|| {
        CommandError::config("there is no state folder to store approvals in")
            .hint("`--state-dir` or HOME sets it")
    })?;
    match command {
        "revoke" => revoke_approval(&store, behind, io),
        _ => {
            let is_void = mcp::void_grant_check(settings);
            list_approvals(&store, is_void, behind.get_flag(args::JSON), io)
        }
    }
}

fn list_approvals(
    store: &GrantStore,
    is_void: impl Fn(&Grantee) -> bool,
    json: bool,
    io: &mut Io<'_>,
) -> Result {
    let stored = store.list().map_err(store_error)?;
    if json {
        let entry = |approval| approval_json(approval, &is_void);
        let entries: Vec<Value> = stored.iter().map(entry).collect();
        writeln!(io.stdout, "{:#}", Value::from(entries))?;
    } else if stored.is_empty() {
        io.print_stderr("no approvals are stored");
    } else {
        for approval in &stored {
            let to = &approval.grant.to;
            let void = if is_void(to) { "  (void: the tool's definition has changed)" } else { "" };
            let line = format!(
                "{}  {}({})  {}  in {}{void}",
                approval.id,
                to.permission,
                approval.grant.pattern,
                to.tool,
                approval.workspace.display()
            );
            // A stored pattern must not imitate a line of this output.
            writeln!(io.stdout, "{}", style::sanitize_text(&line).replace('\n', "\n  "))?;
        }
    }
    Ok(0)
}

fn approval_json(approval: &StoredGrant, is_void: impl Fn(&Grantee) -> bool) -> Value {
    json!({
        "id": approval.id,
        "tool": approval.grant.to.tool,
        "permission": approval.grant.to.permission,
        "pattern": approval.grant.pattern,
        "workspace": approval.workspace,
        "created": approval.created,
        "source": approval.source,
        "void": is_void(&approval.grant.to),
    })
}

fn revoke_approval(store: &GrantStore, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let id = matches.get_one::<String>(args::ID).map_or("", String::as_str);
    if store.revoke(id).map_err(store_error)? {
        io.print_stderr(format_args!("revoked {id}"));
        return Ok(0);
    }
    let message = format!("there is no approval `{}`", id.escape_debug());
    Err(CommandError::new(exit::USAGE, ToolError::not_found(message))
        .hint("`approvals list` shows the ids"))
}

fn store_error(error: PrivateFileError) -> CommandError {
    CommandError::config(exit::with_cause(&error))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::test_support::TestCli;
    #[cfg(feature = "mcp")]
    use tool_sdk_core::ToolName;
    #[cfg(feature = "mcp")]
    use tool_sdk_core::{Grant, GrantSource, GrantStore, Grantee};

    // F76: a stored approval is listed, and holds until it is revoked.
    #[test]
    fn an_approval_is_listed_and_revoked() {
        let state = tempfile::tempdir().unwrap();
        let dir = ["--state-dir", state.path().to_str().unwrap()];
        let mut setting = TestCli::default();
        let with = |args: &[&'static str]| [args, &dir[..]].concat();
        assert_eq!(setting.run(&with(&["approvals", "list", "--json"])).out, "[]\n");

        setting.type_lines(&["a"]);
        assert_eq!(setting.run(&with(&["call", "kinds"])).code, 0);
        setting.type_lines(&[]);
        let listed = setting.run(&with(&["approvals", "list", "--json"]));
        let listed: Value = serde_json::from_str(&listed.out).unwrap();
        assert_eq!((&listed[0]["tool"], &listed[0]["pattern"]), (&"kinds".into(), &"*".into()));
        let lines = setting.run(&with(&["approvals", "list"])).out;
        assert!(lines.contains("kinds(*)"), "{lines}");

        let id = listed[0]["id"].as_str().unwrap().to_owned();
        let args = [&["approvals", "revoke", id.as_str()][..], &dir[..]].concat();
        assert_eq!(setting.run(&args).code, 0);
        assert_eq!(setting.run(&with(&["call", "kinds"])).code, 3);
        assert_eq!(setting.run(&args).code, 2, "it is gone");
    }

    // MC2: approvals of an earlier definition of a tool are listed as void.
    #[cfg(feature = "mcp")]
    #[test]
    fn an_approval_of_a_changed_tool_is_marked_void() {
        let (state, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let pins = state.path().join("mcp");
        tool_sdk_core::internal::private_file::create_private_folder(&pins).unwrap();
        let seen = r#"{"version":1,"servers":{},"last":{"s":{"t":"new"}}}"#;
        std::fs::write(pins.join("pins.json"), seen).unwrap();
        let store = GrantStore::open(state.path().join("approvals"), workspace.path());
        for definition in ["old hash", "new hash"] {
            let mut to = Grantee::new(ToolName::from_static("mcp__s__t"), "mcp");
            to.definition = Some(definition.to_owned());
            store.add_grants(vec![Grant::new(to, "s/t")], GrantSource::default()).unwrap();
        }
        let setting = TestCli::default();
        let list = ["approvals", "list", "--state-dir", state.path().to_str().unwrap()];
        let lines = setting.run(&list).out;
        assert_eq!((lines.lines().count(), lines.matches("(void: ").count()), (2, 1), "{lines}");
        let listed = setting.run(&[&list[..], &["--json"]].concat()).out;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let is_void = |at: usize| listed[at]["void"].as_bool().unwrap();
        assert_ne!(is_void(0), is_void(1), "{listed}");
    }

    #[test]
    fn a_missing_state_folder_is_reported() {
        let setting = TestCli::default();
        let ran = setting.run(&["approvals", "list"]);
        assert!(ran.code == 2 && ran.err.contains("hint: `--state-dir`"), "{}", ran.err);
        let file = setting.write_text("file", "");
        let ran = setting.run(&["approvals", "list", "--state-dir", &file]);
        assert!(ran.code == 2 && ran.err.contains("ot a directory"), "{}", ran.err);
    }

    #[test]
    fn a_command_is_needed() {
        for args in [&["approvals"][..], &["approvals", "revoke"], &["approvals", "forget"]] {
            assert_eq!(TestCli::default().run(args).code, 2, "{args:?}");
        }
    }
}
