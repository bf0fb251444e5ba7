//! The files of conversations, one for each, in the state folder.
//!
//! **Invariant:** only the user can read them, because they hold what tools have read.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tool_sdk_agent::Transcript;
use tool_sdk_core::internal::private_file::{self, PrivateFolder, open_private};

use crate::exit::{CommandError, Result};
use crate::settings::Settings;

/// The key of the folder that a conversation is about, beside those of the transcript.
const FOLDER: &str = "folder";

/// The folder of the conversations; `None` where the user has no state folder.
#[derive(Clone, Debug)]
pub(crate) struct TranscriptFolder(Option<PathBuf>);

impl TranscriptFolder {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self(settings.state_dir.as_ref().map(|folder| folder.join("chats")))
    }

    /// Returns the file of the prompts that were entered, in the folder that only the user can read.
    pub(super) fn history_file(&self) -> Option<PathBuf> {
        let folder = PrivateFolder::new(self.0.clone()?);
        Some(folder.create_folder().ok()?.join("prompt_history"))
    }

    /// Saves a conversation that is about the folder `work_dir`.
    pub(super) fn save(
        &self,
        id: &str,
        transcript: &Transcript,
        work_dir: &Path,
    ) -> std::result::Result<(), String> {
        let Some(folder) = &self.0 else { return Ok(()) };
        let folder = PrivateFolder::new(folder.clone());
        let path = folder.create_folder().map_err(|error| error.to_string())?.join(file_name(id));
        let mut stored = serde_json::to_value(transcript).map_err(|error| error.to_string())?;
        stored[FOLDER] = work_dir.to_string_lossy().into();
        let text = serde_json::to_vec(&stored).map_err(|error| error.to_string())?;
        private_file::replace_file(&path, |file| file.write_all(&text))
            .map_err(|error| format!("cannot write `{}`: {error}", path.display()))
    }

    /// Whether conversations are kept.
    #[cfg(feature = "acp")]
    pub(crate) fn is_available(&self) -> bool {
        self.0.is_some()
    }

    /// Returns up to `limit` conversations about the folder `work_dir`, or about any folder, the
    /// newest first, after the `skipped` newest ones. Files that cannot be read, and those of which
    /// the folder is not known, are left out.
    #[cfg(feature = "acp")]
    pub(crate) fn list(
        &self,
        work_dir: Option<&Path>,
        skipped: usize,
        limit: usize,
    ) -> Vec<ConversationSummary> {
        let mut dated = self.0.as_deref().map(dated_ids).unwrap_or_default();
        dated.sort_unstable_by(|one, two| two.cmp(one));
        let read = dated.into_iter().filter_map(|(changed, id)| self.summarize(id, changed));
        let is_wanted = |it: &ConversationSummary| work_dir.is_none_or(|dir| it.work_dir == dir);
        read.filter(is_wanted).skip(skipped).take(limit).collect()
    }

    #[cfg(feature = "acp")]
    fn summarize(&self, id: String, changed: SystemTime) -> Option<ConversationSummary> {
        let mut file = open_private(&self.0.as_deref()?.join(file_name(&id))).ok()??;
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        let stored: StoredConversation = serde_json::from_str(&text).ok()?;
        let title = stored.entries.iter().find_map(|entry| {
            let text = entry.text.as_deref()?;
            Some(conversation_title(text))
        });
        Some(ConversationSummary { id, work_dir: stored.folder, title, changed })
    }

    /// Loads the conversation `id`, or the newest one, and returns it with its id.
    pub(super) fn load(&self, id: &str) -> Result<(String, Transcript)> {
        let missing = |what: &str| CommandError::usage(format_args!("there is no {what}"));
        let folder = self.0.as_deref().ok_or_else(|| missing("folder for conversations"))?;
        let id = match id {
            "" => newest_id(folder).ok_or_else(|| missing("conversation to continue"))?,
            id => id.to_owned(),
        };
        let failed = |error: &dyn std::fmt::Display| {
            CommandError::config(format_args!("the conversation `{id}`: {error}"))
        };
        let is_name = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let path = folder.join(file_name(&id));
        let file =
            if is_name { open_private(&path).map_err(|error| failed(&error))? } else { None };
        let Some(mut file) = file else {
            let shown = id.escape_debug();
            return Err(missing(&format!("conversation `{shown}` to continue")));
        };
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|error| failed(&error))?;
        let transcript = serde_json::from_str(&text).map_err(|error| failed(&error))?;
        Ok((id, transcript))
    }
}

fn file_name(id: &str) -> String {
    format!("{id}.json")
}

fn newest_id(folder: &Path) -> Option<String> {
    dated_ids(folder).into_iter().max().map(|(_, id)| id)
}

/// Returns the ids of the conversations, each with the time of its last change.
fn dated_ids(folder: &Path) -> Vec<(SystemTime, String)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let dated = entries.filter_map(|entry| {
        let id = entry.file_name().to_str()?.strip_suffix(".json")?.to_owned();
        let changed =
            entry.metadata().and_then(|it| it.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        Some((changed, id))
    });
    dated.collect()
}

/// What a list shows of a conversation.
#[cfg(feature = "acp")]
#[derive(Debug)]
pub(crate) struct ConversationSummary {
    pub(crate) id: String,
    /// The folder that the conversation is about.
    pub(crate) work_dir: PathBuf,
    /// The beginning of the first prompt.
    pub(crate) title: Option<String>,
    pub(crate) changed: SystemTime,
}

/// The parts of a file that a list shows.
#[cfg(feature = "acp")]
#[derive(serde::Deserialize)]
struct StoredConversation {
    folder: PathBuf,
    entries: Vec<StoredText>,
}

/// The text of a stored prompt; other entries have none.
#[cfg(feature = "acp")]
#[derive(serde::Deserialize)]
struct StoredText {
    #[serde(default)]
    text: Option<String>,
}

/// Returns the first line of a prompt, shortened to a title.
#[cfg(feature = "acp")]
pub(crate) fn conversation_title(prompt: &str) -> String {
    const MAX_CHARS: usize = 80;
    let line = prompt.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
