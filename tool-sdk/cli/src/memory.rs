//! The command `memory`: the notes of the user and of the workspace, as files.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, value_parser};
use serde_json::json;
use tool_sdk_core::internal::private_file::{create_private_folder, replace_file};
use tool_sdk_core::{
    MemoryNote, MemoryOwner, MemoryStore as _, NoteChanges, NoteQuery, NoteWrite, ToolError,
};
use tool_sdk_store::SqliteStore;

use super::exit::{CommandError, FAILED, Result};
use super::memory_file::{NoteFile, format_note, parse_note};
use super::settings::Settings;
use super::state_store::{memory_owner, with_store};
use super::{Io, args, style};

const WORDS: &str = "words";
const FOLDER: &str = "folder";

/// How many notes are read at a time.
const PAGE: usize = 500;

/// The largest file that is imported, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Builds the clap command `memory list | import | export`.
pub(super) fn build_command() -> Command {
    let words =
        Arg::new(WORDS).value_name("WORDS").num_args(0..).help("Only notes with these words");
    let folder = |help: &'static str| {
        Arg::new(FOLDER)
            .value_name("DIR")
            .required(true)
            .value_parser(value_parser!(PathBuf))
            .help(help)
    };
    let commands = [
        Command::new("list")
            .about("List the notes of the workspace and of the user")
            .arg(words)
            .arg(args::json_flag("Print a JSON array")),
        Command::new("import")
            .about("Add or change notes from Markdown files with frontmatter")
            .arg(folder(
                "The folder with files `*.md`; a file without an id is a note of its name",
            )),
        Command::new("export")
            .about("Write each note to a Markdown file with frontmatter")
            .arg(folder("The folder, which is created if it is missing")),
    ];
    args::with_globals(
        Command::new("memory")
            .about("List, import and export the notes that tools keep")
            .arg_required_else_help(true)
            .subcommand_required(true)
            .subcommands(commands.map(args::with_globals)),
    )
}

pub(super) fn run(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    match matches.subcommand() {
        Some(("import", behind)) => import_notes(settings, &folder_of(behind, io), io),
        Some(("export", behind)) => export_notes(settings, &folder_of(behind, io), io),
        Some((_, behind)) => list_notes(settings, behind, io),
        None => Err(CommandError::usage("`list`, `import DIR` or `export DIR` is missing")),
    }
}

fn folder_of(matches: &ArgMatches, io: &Io<'_>) -> PathBuf {
    matches.get_one::<PathBuf>(FOLDER).map(|folder| io.resolve_path(folder)).unwrap_or_default()
}

/// Returns all notes with these words, the best match first.
fn load_notes(settings: &Settings, words: String) -> Result<Vec<MemoryNote>> {
    let owner = memory_owner(settings);
    with_store(settings, |store| async move {
        if store.describe().await?.databases.is_empty() {
            return Ok(Vec::new());
        }
        let mut notes = Vec::new();
        loop {
            let query = NoteQuery { offset: notes.len(), limit: PAGE, ..NoteQuery::new(&*words) };
            let page = store.search_notes(&owner, &query).await?;
            notes.extend(page.matches.into_iter().map(|it| it.note));
            if !page.has_more {
                return Ok(notes);
            }
        }
    })
}

fn list_notes(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let words: Vec<&str> =
        matches.get_many::<String>(WORDS).into_iter().flatten().map(String::as_str).collect();
    let notes = load_notes(settings, words.join(" "))?;
    if matches.get_flag(args::JSON) {
        writeln!(io.stdout, "{:#}", json!(notes))?;
        return Ok(0);
    }
    if notes.is_empty() {
        io.print_stderr("no notes are kept");
    }
    for note in &notes {
        let line = format!("{}  {}, {}  {}", note.id, note.category, note.scope, note.summary());
        writeln!(io.stdout, "{}", style::sanitize_text(&line).replace('\n', "\n  "))?;
    }
    Ok(0)
}

fn export_notes(settings: &Settings, folder: &Path, io: &mut Io<'_>) -> Result {
    let notes = load_notes(settings, String::new())?;
    let write_all = || -> io::Result<()> {
        create_private_folder(folder)?;
        notes.iter().try_for_each(|note| write_note(folder, note))
    };
    write_all().map_err(|error| {
        CommandError::usage(format_args!("cannot export to `{}`: {error}", folder.display()))
    })?;
    let text = format!("wrote {} to {}", style::count_noun(notes.len(), "note"), folder.display());
    io.print_stderr(style::sanitize_text(&text));
    Ok(0)
}

/// Writes a note to its file, in place of an earlier export of the same note only.
fn write_note(folder: &Path, note: &MemoryNote) -> io::Result<()> {
    let path = folder.join(format!("{}.md", note.id));
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(text) => {
            let earlier = parse_note(&text).ok();
            if earlier.and_then(|file| file.draft.id).as_deref() != Some(&*note.id) {
                let why = format!("`{}` is another file and is not replaced", path.display());
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
            }
        }
    }
    replace_file(&path, |file| file.write_all(format_note(note).as_bytes()))
}

/// What an import did.
#[derive(Default)]
struct ImportCounts {
    created: usize,
    changed: usize,
    unchanged: usize,
    /// Why notes were left as they are.
    conflicts: Vec<String>,
}

fn import_notes(settings: &Settings, folder: &Path, io: &mut Io<'_>) -> Result {
    // Every file is parsed before the first note is changed.
    let files = read_notes(folder)?;
    let owner = memory_owner(settings);
    let counts = with_store(settings, |store| async move {
        let mut counts = ImportCounts::default();
        for file in files {
            import_note(&store, &owner, file, &mut counts).await?;
        }
        Ok(counts)
    })?;
    let ImportCounts { created, changed, unchanged, conflicts } = counts;
    io.print_stderr(format_args!(
        "{} {} new, {changed} changed, {unchanged} as before",
        style::count_noun(created, "note"),
        if created == 1 { "is" } else { "are" },
    ));
    if conflicts.is_empty() {
        return Ok(0);
    }
    let message = format!("not imported: {}", conflicts.join("; "));
    Err(CommandError::new(FAILED, ToolError::conflict(style::sanitize_text(&message))).hint(
        "export again to another folder and bring the changes together, or remove the line \
         `version` of a file that shall replace its note",
    ))
}

/// Parses the files `*.md` of the folder, in the order of their names. Fails with the mistakes of
/// all files.
fn read_notes(folder: &Path) -> Result<Vec<NoteFile>> {
    let unreadable = |error: io::Error| {
        CommandError::usage(format_args!("cannot read `{}`: {error}", folder.display()))
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
    paths.sort();
    let (mut files, mut mistakes) = (Vec::new(), Vec::new());
    for path in paths {
        match read_note(&path) {
            Ok(file) => files.push(file),
            Err(why) => mistakes.push(format!("{}: {why}", path.display())),
        }
    }
    if mistakes.is_empty() { Ok(files) } else { Err(CommandError::usage(mistakes.join("\n"))) }
}

fn read_note(path: &Path) -> std::result::Result<NoteFile, String> {
    let metadata = fs::symlink_metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err("it is larger than 1 MiB".to_owned());
    }
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let NoteFile { mut draft, version } = parse_note(&text)?;
    if draft.content.is_empty() {
        return Err("it has no text below the frontmatter".to_owned());
    }
    // As tools write and look for them.
    draft.tags = draft.tags.iter().map(|tag| tag.trim().to_lowercase()).collect();
    if draft.id.is_none() {
        // The same file then changes the same note when it is imported again.
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        draft.id = Some(id_from_name(&stem));
        if draft.title.is_empty() {
            draft.title = stem.into_owned();
        }
    }
    Ok(NoteFile { draft, version })
}

/// Turns the name of a file into an id.
fn id_from_name(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let id: String = name.chars().map(allowed).take(64).collect();
    if id.is_empty() { "-".to_owned() } else { id }
}

async fn import_note(
    store: &SqliteStore,
    owner: &MemoryOwner,
    file: NoteFile,
    counts: &mut ImportCounts,
) -> io::Result<()> {
    let NoteFile { draft, version } = file;
    let id = draft.id.clone().unwrap_or_default();
    let Some(note) = store.find_note(owner, &id).await? else {
        store.create_note(owner, draft).await?;
        counts.created += 1;
        return Ok(());
    };
    if note.scope != draft.scope {
        let why = format!("the note `{id}` has the scope {}, not {}", note.scope, draft.scope);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let is_same = note.title == draft.title
        && note.content == draft.content
        && note.category == draft.category
        && note.tags == draft.tags;
    if is_same {
        counts.unchanged += 1;
        return Ok(());
    }
    // The file was exported before the note was changed: importing it would undo that change.
    if let Some(exported) = version
        && exported < note.version
    {
        counts.conflicts.push(format!(
            "`{id}` has version {}, its file version {exported}: both were changed since the export",
            note.version
        ));
        return Ok(());
    }
    let changes = NoteChanges {
        title: Some(draft.title),
        content: Some(draft.content),
        category: Some(draft.category),
        tags: Some(draft.tags),
    };
    match store.update_note(owner, &id, note.version, changes).await? {
        NoteWrite::Done(_) => counts.changed += 1,
        _ => {
            let why = format!("the note `{id}` was changed at the same time; import again");
            return Err(io::Error::other(why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::test_support::TestCli;

    // F152: notes are files that a person can read, change and bring back.
    #[test]
    fn notes_are_imported_and_exported() {
        let setting = TestCli::default();
        setting.write_text("notes/Release day.md", "Releases are made on Tuesdays.\n");
        setting.write_text(
            "notes/db.md",
            "---\nid: db\ncategory: decision\nscope: user\ntags: [Ops]\n---\n\nPostgres\n",
        );
        setting.write_text("notes/other.txt", "not a note");
        let ran = setting.run_with_state(&["memory", "import", "notes"]);
        assert_eq!((ran.code, &*ran.err), (0, "2 notes are new, 0 changed, 0 as before\n"));
        let ran = setting.run_with_state(&["memory", "import", "notes"]);
        assert_eq!(ran.err, "0 notes are new, 0 changed, 2 as before\n");

        let ran = setting.run_with_state(&["memory", "list", "tuesdays"]);
        assert_eq!(ran.out, "Release-day  fact, project  Release day\n");
        let ran = setting.run_with_state(&["memory", "list", "--json"]);
        let listed: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(listed.as_array().unwrap().len(), 2);

        let ran = setting.run_with_state(&["memory", "export", "out"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let path = setting.folder.path().join("out/db.md");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("category: decision\nscope: user\ntags: [\"ops\"]"), "{text}");
        fs::write(&path, text.replace("Postgres", "SQLite")).unwrap();
        let ran = setting.run_with_state(&["memory", "import", "out"]);
        assert_eq!(ran.err, "0 notes are new, 1 changed, 1 as before\n");
        assert_eq!(
            setting.run_with_state(&["memory", "export", "out"]).code,
            0,
            "its own files are replaced"
        );
        assert!(fs::read_to_string(&path).unwrap().contains("version: 2"));
    }

    // F152: an old export does not undo what was changed since, without a word.
    #[test]
    fn an_old_export_is_a_conflict() {
        let setting = TestCli::default();
        setting.write_text("notes/db.md", "---\nid: db\n---\n\nPostgres\n");
        setting.run_with_state(&["memory", "import", "notes"]);
        setting.run_with_state(&["memory", "export", "old"]);
        setting.write_text("notes/db.md", "---\nid: db\n---\n\nSQLite\n");
        setting.write_text("old/new.md", "A new note.\n");
        let ran = setting.run_with_state(&["memory", "import", "notes"]);
        assert_eq!(ran.err, "0 notes are new, 1 changed, 0 as before\n");

        let ran = setting.run_with_state(&["memory", "import", "old"]);
        assert!(ran.code == 1 && ran.err.starts_with("1 note is new, 0 changed"), "{}", ran.err);
        assert!(ran.err.contains("`db` has version 2, its file version 1"), "{}", ran.err);
        let ran = setting.run_with_state(&["memory", "list", "sqlite"]);
        assert!(ran.out.starts_with("db "), "{}", ran.out);
        let path = setting.folder.path().join("old/db.md");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("version: 1\n", "")).unwrap();
        let ran = setting.run_with_state(&["memory", "import", "old"]);
        assert_eq!(ran.err, "0 notes are new, 1 changed, 1 as before\n");
    }

    #[test]
    fn an_import_with_mistakes_changes_nothing() {
        let setting = TestCli::default();
        setting.write_text("notes/a.md", "fine");
        setting.write_text("notes/b.md", "---\nscope: world\n---\nx");
        setting.write_text("notes/c.md", "");
        let ran = setting.run_with_state(&["memory", "import", "notes"]);
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains("b.md: line 2: unknown variant `world`"), "{}", ran.err);
        assert!(ran.err.contains("c.md: it has no text below the frontmatter"), "{}", ran.err);
        let ran = setting.run_with_state(&["memory", "list"]);
        assert_eq!((&*ran.out, &*ran.err), ("", "no notes are kept\n"));
        assert!(!setting.folder.path().join("state").exists(), "looking creates no state");
    }

    #[test]
    fn an_export_replaces_no_other_file() {
        let setting = TestCli::default();
        setting.write_text("notes/a.md", "fine");
        setting.run_with_state(&["memory", "import", "notes"]);
        setting.write_text("out/a.md", "mine");
        let ran = setting.run_with_state(&["memory", "export", "out"]);
        assert!(
            ran.code == 2 && ran.err.contains("is another file and is not replaced"),
            "{}",
            ran.err
        );
        assert_eq!(fs::read_to_string(setting.folder.path().join("out/a.md")).unwrap(), "mine");
    }
}
