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

/// The folder of the conversations; `None` where the user has no state folder.
#[derive(Clone, Debug)]
pub(super) struct TranscriptFolder(Option<PathBuf>);

impl TranscriptFolder {
    pub(super) fn new(settings: &Settings) -> Self {
        Self(settings.state_dir.as_ref().map(|folder| folder.join("chats")))
    }

    /// Returns the file of the prompts that were entered, in the folder that only the user can read.
    pub(super) fn history_file(&self) -> Option<PathBuf> {
        let folder = PrivateFolder::new(self.0.clone()?);
        Some(folder.create_folder().ok()?.join("prompt_history"))
    }

    /// Saves a conversation.
    pub(super) fn save(
        &self,
        id: &str,
        transcript: &Transcript,
    ) -> std::result::Result<(), String> {
        let Some(folder) = &self.0 else { return Ok(()) };
        let folder = PrivateFolder::new(folder.clone());
        let path = folder.create_folder().map_err(|error| error.to_string())?.join(file_name(id));
        let text = serde_json::to_vec(transcript).map_err(|error| error.to_string())?;
        private_file::replace_file(&path, |file| file.write_all(&text))
            .map_err(|error| format!("cannot write `{}`: {error}", path.display()))
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
    let entries = fs::read_dir(folder).ok()?.flatten();
    let dated = entries.filter_map(|entry| {
        let id = entry.file_name().to_str()?.strip_suffix(".json")?.to_owned();
        let changed =
            entry.metadata().and_then(|it| it.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        Some((changed, id))
    });
    dated.max().map(|(_, id)| id)
}
