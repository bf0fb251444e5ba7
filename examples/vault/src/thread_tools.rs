//! The tools of threads: notes in the folder `threads` that only grow, entry by entry.
//!
//! **Invariant:** an entry is never changed, and its number never reused.

use tool_sdk::{
    Context, FileTransaction, Output, ResolvedPath, Resource, State, ToolError, Workspace,
    WorkspacePath, tool,
};

use crate::notes::{MAX_NOTE, check_note_size, decode_note, read_notes, vault_resources};

const FOLDER: &str = "threads";

fn thread_path(thread: &str) -> WorkspacePath {
    WorkspacePath::from(format!("{FOLDER}/{thread}.md"))
}

/// Add an entry to a thread, which is made with its first entry. Entries are numbered.
#[tool(
    write,
    category = "vault",
    permission = "edit",
    approval(resources = pushed_resources),
    display(
        name = "Add to thread",
        primary = thread,
        show(thread, author),
        summary = "Adding to the thread {thread}"
    ),
    example = r#"{"thread": "release-plan", "text": "The tests pass."}"#
)]
pub async fn thread_push(
    /// The name of the thread: lower-case letters, digits and `-`.
    #[arg(length = 1..=64, pattern = "^[a-z0-9][a-z0-9-]*$")]
    thread: String,
    /// The text of the entry in Markdown.
    #[arg(length = 1..=20000)]
    text: String,
    /// The author of the entry.
    #[arg(default = "agent", length = 1..=64, pattern = "^[A-Za-z0-9 _.@-]+$")]
    author: String,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let place = thread_path(&thread).locate(&workspace)?;
    let locks = workspace.lock_files([&place]).await;
    cx.run_blocking(move |stop| {
        let _locks = locks;
        let before = place.snapshot(MAX_NOTE)?;
        let mut note = match before.content() {
            Some(content) => decode_note(&place, content)?,
            None => format!("# {thread}\n"),
        };
        let number = parse_entries(&note).len() + 1;
        // A heading in the text would read like another entry.
        let text = text.trim().replace("\n## ", "\n### ");
        let text = text.strip_prefix("## ").map_or(text.clone(), |rest| format!("### {rest}"));
        note.push_str(&format!("\n## {number} {author}\n\n{text}\n"));
        check_note_size(&note)?;
        stop.hold()?;
        FileTransaction::new().write(place, before, note).commit(|| stop.is_stopped())?;
        Ok(Output::text(format!("Added entry {number} to `{thread}`.")).metadata("entry", number))
    })
    .await
}

fn pushed_resources(args: &ThreadPushArgs, cx: &Context) -> Vec<Resource> {
    thread_path(&args.thread).write_resources(cx)
}

/// Read the entries of a thread, the last ones by default.
#[tool(
    read,
    category = "vault",
    permission = "read",
    approval(resources = |args, cx| thread_path(&args.thread).read_resources(cx)),
    display(name = "Read thread", primary = thread, show(thread), summary = "Reading the thread {thread}")
)]
pub async fn thread_read(
    /// The name of the thread.
    #[arg(length = 1..=64, pattern = "^[a-z0-9][a-z0-9-]*$")]
    thread: String,
    /// The number of the first entry to show; without it, the last `limit` entries are shown.
    #[arg(range = 1..)]
    first: Option<u32>,
    /// How many entries to show at most.
    #[arg(default = 20, range = 1..=200)]
    limit: u32,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let place = thread_path(&thread).locate(&workspace)?;
    cx.run_blocking(move |_| {
        let text = read_thread(&place, &thread)?;
        let entries = parse_entries(&text);
        let limit = limit as usize;
        let start = match first {
            Some(first) => (first as usize - 1).min(entries.len()),
            None => entries.len().saturating_sub(limit),
        };
        let shown: Vec<&str> = entries[start..].iter().take(limit).copied().collect();
        let mut text = format!("{thread}: {} entries\n", entries.len());
        shown.iter().for_each(|entry| text.push_str(&format!("\n{}\n", entry.trim())));
        Ok(Output::text(text.trim_end()).metadata("entries", entries.len()))
    })
    .await
}

/// List the threads, with their numbers of entries.
#[tool(
    read,
    category = "vault",
    permission = "read",
    approval(resources = |_, cx| vault_resources(cx)),
    display(name = "List threads", summary = "Listing threads"),
    example = r#"{}"#
)]
pub async fn thread_list(workspace: State<Workspace>, cx: &Context) -> Result<String, ToolError> {
    let visible = cx.visible_files("read");
    cx.run_blocking(move |stop| {
        let vault = read_notes(&workspace, &visible, stop)?;
        let threads = vault.notes.values().filter_map(|note| {
            let name = note.path.strip_prefix(FOLDER)?.strip_prefix('/')?.strip_suffix(".md")?;
            Some(format!("{name}: {} entries", parse_entries(&note.text).len()))
        });
        let threads: Vec<String> = threads.collect();
        Ok(if threads.is_empty() { "There are no threads.".to_owned() } else { threads.join("\n") })
    })
    .await
}

fn read_thread(place: &ResolvedPath, thread: &str) -> Result<String, ToolError> {
    match place.snapshot(MAX_NOTE)?.content() {
        Some(content) => decode_note(place, content),
        None => Err(ToolError::not_found(format_args!("there is no thread `{thread}`"))
            .hint("`thread_list` shows all threads")),
    }
}

/// Returns the entries, each from its heading on.
fn parse_entries(text: &str) -> Vec<&str> {
    let starts: Vec<usize> = text.match_indices("\n## ").map(|(at, _)| at + 1).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(&start, end)| &text[start..end]).collect()
}
