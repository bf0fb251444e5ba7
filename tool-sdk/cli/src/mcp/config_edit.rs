//! Adds and removes servers in the configuration file.
//!
//! Comments, order, spelling and line ends of everything else are kept. A file that cannot be
//! parsed is not changed, and an edit that would change other entries is not written.
//!
//! **Invariant:** edits hold a lock, so that concurrent edits are not lost.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike};
use tool_sdk_core::{
    ToolError,
    internal::private_file::{self, FileLock, LOCK_TIMEOUT},
};

use super::text_edit;
use crate::exit::{CommandError, FAILED, Result, with_cause};

/// The path of the table that holds the servers.
const SERVERS: [&str; 2] = ["mcp", "servers"];

/// A parsed configuration file.
pub(super) struct ConfigDocument {
    path: PathBuf,
    text: String,
    original: toml::Table,
    edited: DocumentMut,
}

/// A configuration file that is locked for one edit.
pub(super) struct ConfigEdit {
    document: ConfigDocument,
    _lock: Option<FileLock>,
}

impl ConfigDocument {
    /// Reads and parses the file; a missing one is empty.
    fn read(path: &Path) -> Result<Self> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|error| file_error("read", path, error))?,
        };
        Self::parse(path, text)
    }

    fn parse(path: &Path, text: String) -> Result<Self> {
        let now: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
            syntax_error(path, &text, error.span(), error.message())
        })?;
        let before = toml::from_str(&text)
            .map_err(|error| syntax_error(path, &text, error.span(), error.message()))?;
        Ok(Self { path: path.to_owned(), text, original: before, edited: now })
    }

    /// Waits for the lock on the file, and reads it.
    pub(super) fn lock_for_edit(path: &Path) -> Result<ConfigEdit> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| file_error("write", path, error))?;
        }
        let lock = private_file::lock_parent_folder(&resolve_links(path), LOCK_TIMEOUT).map_err(
            |error| CommandError::new(FAILED, ToolError::unavailable(with_cause(&error))),
        )?;
        Ok(ConfigEdit { document: Self::read(path)?, _lock: lock })
    }
}

impl ConfigEdit {
    /// Adds a server and writes the file.
    pub(super) fn add_server(self, server: &str, table: &Table) -> Result<()> {
        self.document.insert_server(server, table)
    }

    /// Removes a server, in whichever TOML syntax it is written; returns whether it existed.
    pub(super) fn remove_server(self, server: &str) -> Result<bool> {
        self.document.delete_server(server)
    }
}

impl ConfigDocument {
    fn insert_server(mut self, server: &str, table: &Table) -> Result<()> {
        let mut expected = self.original.clone();
        let described: toml::Table = toml::from_str(&table.to_string())
            .map_err(|error| file_error("change", &self.path, error))?;
        if let Some(servers) = servers_table(&mut expected)
            && servers.insert(server.to_owned(), described.into()).is_some()
        {
            return Err(duplicate_server(server));
        }
        // Prefer to append the table, which leaves the rest of the text unchanged.
        let block = format!("[{}.{server}]\n{table}", SERVERS.join("."));
        let appended = text_edit::append_block(&self.text, &block);
        if parses_to(&appended, &expected) {
            return self.write_text(&appended);
        }
        let mut within: &mut dyn TableLike = self.edited.as_table_mut();
        for name in SERVERS {
            let implicit = || {
                let mut table = Table::new();
                table.set_implicit(true);
                Item::Table(table)
            };
            let item = within.entry(name).or_insert_with(implicit);
            within = item.as_table_like_mut().ok_or_else(|| {
                CommandError::config(format_args!(
                    "`{name}` in `{}` is not a table",
                    self.path.display()
                ))
            })?;
        }
        within.insert(server, Item::Table(table.clone()));
        self.write_checked(&expected)
    }

    fn delete_server(mut self, server: &str) -> Result<bool> {
        let mut expected = self.original.clone();
        if servers_table(&mut expected).and_then(|servers| servers.remove(server)).is_none() {
            return Ok(false);
        }
        let mut within: Option<&mut dyn TableLike> = Some(self.edited.as_table_mut());
        for name in SERVERS {
            within = within.and_then(|table| table.get_mut(name)?.as_table_like_mut());
        }
        if let Some(Item::Table(gone)) = within.and_then(|servers| servers.remove(server)) {
            keep_leading_comment(&mut self.edited, &gone);
        }
        self.write_checked(&expected)?;
        Ok(true)
    }

    /// Writes the edited document, if it parses to exactly the expected data.
    fn write_checked(&self, expected: &toml::Table) -> Result<()> {
        self.write_text(&self.checked_text(expected)?)
    }

    /// Returns the edited text, if it parses to exactly the expected data.
    fn checked_text(&self, expected: &toml::Table) -> Result<String> {
        let text = text_edit::preserve_lines(&self.text, &self.edited.to_string());
        if !parses_to(&text, expected) {
            return Err(CommandError::config(format_args!(
                "cannot edit `{}` without changing other entries; edit it by hand",
                self.path.display()
            )));
        }
        Ok(text)
    }

    fn write_text(&self, text: &str) -> Result<()> {
        replace_file(&self.path, text).map_err(|error| file_error("write", &self.path, error))
    }
}

/// Sets the values of the table `table.name` to those of `entry`; its other values are kept.
/// Returns `None` if they already have these values.
///
/// Fails if the text is not TOML, or if a table is a value of another type.
pub(crate) fn set_entry(
    text: &str,
    path: &Path,
    table: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<Option<String>> {
    let mut document = ConfigDocument::parse(path, text.to_owned())?;
    let values = to_toml_table(entry);
    let described: toml::Table =
        toml::from_str(&values.to_string()).map_err(|error| file_error("change", path, error))?;
    let mut expected = document.original.clone();
    let mut within = &mut expected;
    for key in [table, name] {
        let member = within.entry(key).or_insert_with(|| toml::Table::new().into());
        within = member.as_table_mut().ok_or_else(|| not_a_table(key, path))?;
    }
    let is_new = within.is_empty();
    within.extend(described);
    if expected == document.original {
        return Ok(None);
    }
    let appended = text_edit::append_block(text, &format!("[{table}.{name}]\n{values}"));
    if is_new && parses_to(&appended, &expected) {
        return Ok(Some(appended));
    }
    let mut within: &mut dyn TableLike = document.edited.as_table_mut();
    for key in [table, name] {
        let item = within.entry(key).or_insert_with(|| Item::Table(Table::new()));
        within = item.as_table_like_mut().ok_or_else(|| not_a_table(key, path))?;
    }
    for (key, value) in values {
        within.insert(&key, value);
    }
    document.checked_text(&expected).map(Some)
}

/// Converts the texts and lists of texts of an entry to TOML.
pub(crate) fn to_toml_table(entry: &Map<String, Value>) -> Table {
    let mut table = Table::new();
    for (key, value) in entry {
        table[key] = match value {
            Value::Array(items) => {
                toml_edit::value(items.iter().filter_map(Value::as_str).collect::<Array>())
            }
            value => toml_edit::value(value.as_str().unwrap_or_default()),
        };
    }
    table
}

fn not_a_table(key: &str, path: &Path) -> CommandError {
    CommandError::config(format_args!("`{key}` in `{}` is not a table", path.display()))
        .hint("nothing was changed")
}

/// Returns the error for a server that exists already.
pub(super) fn duplicate_server(server: &str) -> CommandError {
    CommandError::usage(format_args!("there is a server `{server}` already"))
        .hint(format_args!("`mcp remove {server}` removes it"))
}

/// Whether the text parses to exactly the expected data.
fn parses_to(text: &str, expected: &toml::Table) -> bool {
    let said: Option<toml::Table> = toml::from_str(text).ok();
    said.map(without_empty_tables) == Some(without_empty_tables(expected.clone()))
}

/// Returns the table of the servers, created if it is missing.
fn servers_table(config: &mut toml::Table) -> Option<&mut toml::Table> {
    SERVERS.iter().try_fold(config, |table, name| {
        table.entry(*name).or_insert_with(|| toml::Table::new().into()).as_table_mut()
    })
}

/// Removes an empty `mcp.servers` and `mcp` for comparison, since empty and missing are equal.
fn without_empty_tables(mut config: toml::Table) -> toml::Table {
    let is_empty = |value: &toml::Value| value.as_table().is_some_and(toml::Table::is_empty);
    if let Some(mcp) = config.get_mut(SERVERS[0]).and_then(toml::Value::as_table_mut) {
        mcp.retain(|name, value| name != SERVERS[1] || !is_empty(value));
    }
    config.retain(|name, value| name != SERVERS[0] || !is_empty(value));
    config
}

/// Keeps the comments above a removed table that a blank line separates from it: they move to the
/// next table. A comment directly above the table is removed with it.
fn keep_leading_comment(document: &mut DocumentMut, gone: &Table) {
    let prefix = gone.decor().prefix().and_then(|raw| raw.as_str()).unwrap_or_default();
    let kept = before_last_blank_line(prefix);
    if !kept.contains('#') {
        return;
    }
    let after = gone.position();
    match next_table(document.as_table_mut(), after) {
        Some(table) => {
            let own = table.decor().prefix().and_then(|raw| raw.as_str()).unwrap_or_default();
            let both = format!("{kept}{own}");
            table.decor_mut().set_prefix(both);
        }
        None => {
            let both = format!("{kept}{}", document.trailing().as_str().unwrap_or_default());
            document.set_trailing(both);
        }
    }
}

/// Returns the text before its last blank line; empty if there is none.
fn before_last_blank_line(text: &str) -> &str {
    let mut end = 0;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.ends_with('\n') && line.trim().is_empty() {
            end = start;
        }
        start += line.len();
    }
    &text[..end]
}

/// Returns the first table after a position.
fn next_table(table: &mut Table, after: Option<isize>) -> Option<&mut Table> {
    let below = table.iter_mut().filter_map(|(_, item)| item.as_table_mut());
    let found = below.filter_map(|table| {
        let is_later = !table.is_implicit() && !table.is_dotted() && table.position() > after;
        if is_later { Some(table) } else { next_table(table, after) }
    });
    found.min_by_key(|table| table.position())
}

/// Returns a syntax error with line and column.
fn syntax_error(
    path: &Path,
    text: &str,
    place: Option<Range<usize>>,
    message: &str,
) -> CommandError {
    let before = text.get(..place.map_or(0, |place| place.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let message = message.trim().replace('\n', ", ");
    CommandError::config(format_args!("{}:{line}:{column}: {message}", path.display()))
        .hint("nothing was changed")
}

pub(crate) fn file_error(doing: &str, path: &Path, error: impl std::fmt::Display) -> CommandError {
    CommandError::config(format_args!("cannot {doing} `{}`: {error}", path.display()))
}

/// Replaces the file atomically and keeps its permissions.
pub(crate) fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let path = resolve_links(path);
    let old = fs::metadata(&path);
    private_file::replace_file(&path, |file| {
        private_file::append_to(file, text.as_bytes())?;
        match old {
            Ok(old) => file.set_permissions(old.permissions()),
            Err(_) => Ok(()),
        }
    })
}

/// Returns the target of a link, so that the link itself is kept.
pub(crate) fn resolve_links(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a file with this text; returns its folder and path.
    fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, text).unwrap();
        (folder, path)
    }

    fn command(name: &str) -> Table {
        let mut table = Table::new();
        table["command"] = toml_edit::value(name);
        table
    }

    #[track_caller]
    fn check_remove(before: &str, after: &str) {
        let (_folder, path) = written(before);
        assert!(
            ConfigDocument::lock_for_edit(&path).unwrap().remove_server("a").unwrap(),
            "{before}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), after);
        assert!(!ConfigDocument::lock_for_edit(&path).unwrap().remove_server("a").unwrap());
    }

    #[test]
    fn removes_only_the_server_in_any_syntax() {
        let rest = "# Mine.\nmode = 'auto' # really\n\n[mcp.servers.ab]\ncommand = \"y\"\n";
        for server in [
            "[mcp.servers.a]\ncommand = \"x\"\n[mcp.servers.a.env]\nK = \"v\"\n",
            "[mcp.servers.\"a\"]\ncommand = \"x\"\n",
            "[ mcp . servers . 'a' ]\ncommand = \"x\"\nenv.K = \"v\"\n",
            "\n# About a.\n[mcp.servers.a] # the first\ncommand = '''\n[mcp.servers.ab]\n'''\n",
        ] {
            check_remove(&format!("{rest}{server}"), rest);
        }
        check_remove("mcp.servers.a.command = \"x\"\nmode = \"auto\"\n", "mode = \"auto\"\n");
        check_remove(
            "[mcp.servers]\na = { command = \"x\" } # one\nb = { command = \"y\" } # two\n",
            "[mcp.servers]\nb = { command = \"y\" } # two\n",
        );
        check_remove(
            "mcp = { servers = { a = { command = \"x\" } } }\n",
            "mcp = { servers = {} }\n",
        );
        check_remove("[mcp]\nservers.a = { command = \"x\" }\n", "[mcp]\n");
    }

    #[test]
    fn keeps_comments_about_the_whole_file() {
        check_remove(
            "# All of it.\n\n# About a.\n[mcp.servers.a]\ncommand = \"x\"\n\n[other]\n",
            "# All of it.\n\n[other]\n",
        );
        check_remove(
            "# All of it.\n\n[mcp.servers.a]\ncommand = \"x\"\n# end\n",
            "# All of it.\n# end\n",
        );
        check_remove(
            "mode = 'auto'\r\n\r\n# mine\r\n# too\r\n\r\n[mcp.servers.a]\r\ncommand = 'x'\r\n",
            "mode = 'auto'\r\n\r\n# mine\r\n# too\r\n",
        );
        check_remove(
            "mode = 'auto'\n# mine\n \t\n[mcp.servers.a]\ncommand = 'x'\n",
            "mode = 'auto'\n# mine\n",
        );
    }

    #[test]
    fn removing_an_added_server_restores_the_bytes() {
        for before in ["mode = 'auto'\r\n# mine\r\n", "mode = 'auto'\n# mine\n", "# mine\n"] {
            let (_folder, path) = written(before);
            ConfigDocument::lock_for_edit(&path).unwrap().add_server("a", &command("x")).unwrap();
            assert!(ConfigDocument::lock_for_edit(&path).unwrap().remove_server("a").unwrap());
            assert_eq!(fs::read_to_string(&path).unwrap(), before);
        }
    }

    #[test]
    fn adding_a_server_keeps_the_rest() {
        let block = "[mcp.servers.n]\ncommand = \"z\"\n";
        for (before, after) in [
            ("", block.to_owned()),
            ("# Mine.\nmode='auto'", format!("# Mine.\nmode='auto'\n\n{block}")),
            (
                "[mcp.servers.\"a\"]\ncommand='x' # one\n",
                format!("[mcp.servers.\"a\"]\ncommand='x' # one\n\n{block}"),
            ),
            (
                "mcp = { servers = { a = { command = \"x\" } } }\n",
                "mcp = { servers = { a = { command = \"x\" } , n = { command = \"z\" } } }\n"
                    .to_owned(),
            ),
            (
                "[mcp]\nservers.a.command = \"x\"\n",
                format!("[mcp]\nservers.a.command = \"x\"\n\n{block}"),
            ),
        ] {
            let (_folder, path) = written(before);
            ConfigDocument::lock_for_edit(&path).unwrap().add_server("n", &command("z")).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), after);
        }
    }

    #[test]
    fn keeps_line_ends_and_comments() {
        let mine = "\u{feff}# Mine.\r\nmode = 'auto'\r\n";
        let old = "[mcp.servers.a]\r\ncommand = 'x'\r\n";
        let rest = "# to b\r\n[b]\r\nc = 1";
        check_remove(&format!("{mine}{old}{rest}"), &format!("{mine}{rest}"));
        let (_folder, path) = written("# only");
        ConfigDocument::lock_for_edit(&path).unwrap().add_server("n", &command("z")).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "# only\n\n[mcp.servers.n]\ncommand = \"z\"\n");
    }

    // Concurrent edits are not lost, and a server is not added twice.
    #[test]
    fn concurrent_edits_are_serialized() {
        let (_folder, path) = written("");
        std::thread::scope(|scope| {
            for server in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    let change = ConfigDocument::lock_for_edit(path).unwrap();
                    change.add_server(&format!("s{server}"), &command("z")).unwrap();
                });
            }
        });
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches("[mcp.servers.s").count(), 8, "{text}");
        let again = ConfigDocument::lock_for_edit(&path).unwrap().add_server("s0", &command("y"));
        let (_, error) = again.unwrap_err().into_tool_error().ok().unwrap();
        assert!(error.message().contains("already"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn an_invalid_file_is_not_changed() {
        for (text, place) in [("mode = \"auto\"\n  oops\n", ":2:7: "), ("a = 1\na = 2\n", ":2:1: ")]
        {
            let (_folder, path) = written(text);
            let failure = ConfigDocument::read(&path).err().unwrap();
            let (_, error) = failure.into_tool_error().ok().unwrap();
            assert!(error.message().contains(place), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let (_folder, path) = written("mcp = 3\n");
        assert!(
            ConfigDocument::lock_for_edit(&path).unwrap().add_server("n", &command("z")).is_err()
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "mcp = 3\n");
    }

    #[cfg(unix)]
    #[test]
    fn keeps_permissions_and_links() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let new = folder.path().join("deep/config.toml");
        ConfigDocument::lock_for_edit(&new).unwrap().add_server("n", &command("z")).unwrap();
        assert_eq!(mode(&new), 0o600);
        assert_eq!(fs::read_dir(new.parent().unwrap()).unwrap().count(), 1);

        let (_folder, path) = written("");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let link = folder.path().join("link.toml");
        symlink(&path, &link).unwrap();
        ConfigDocument::lock_for_edit(&link).unwrap().add_server("n", &command("z")).unwrap();
        assert_eq!(mode(&path), 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::read_to_string(&path).unwrap().contains("[mcp.servers.n]"));
    }
}
