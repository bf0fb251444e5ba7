//! Where the conversations of the chat and of editors are kept: in the store of the state folder, or in
//! memory until the program ends.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tool_sdk_agent::{Transcript, TranscriptEntry};
use tool_sdk_core::internal::DynConversationStore;
use tool_sdk_core::internal::private_file::PrivateFolder;
use tool_sdk_core::{
    ConversationQuery, ConversationRecord, ConversationSummary, MemoryConversationStore, Redactor,
    ToolError,
};

use crate::conversation_title::conversation_title;
use crate::exit::{CommandError, FAILED, Result};
use crate::settings::Settings;
use crate::state_store;

/// The conversations of the user. Clones share them.
#[derive(Clone)]
pub(crate) struct StoredConversations {
    store: Arc<dyn DynConversationStore>,
    /// Whether they outlive the program.
    outlive_program: bool,
    /// The folder of the prompts that were entered; `None` where the user has no state folder.
    prompts_folder: Option<PathBuf>,
}

/// A conversation that goes on.
pub(crate) struct ResumedConversation {
    pub(super) id: String,
    pub(super) transcript: Transcript,
}

impl StoredConversations {
    pub(crate) fn new(settings: &Settings) -> Self {
        let persistent = state_store::open_conversations(settings);
        Self {
            outlive_program: persistent.is_some(),
            store: persistent.unwrap_or_else(|| Arc::new(MemoryConversationStore::default())),
            prompts_folder: settings.state_dir.as_ref().map(|folder| folder.join("chats")),
        }
    }

    /// Returns the file of the prompts that were entered, in a folder that only the user can read.
    pub(super) fn history_file(&self) -> Option<PathBuf> {
        let folder = PrivateFolder::new(self.prompts_folder.clone()?);
        Some(folder.create_folder().ok()?.join("prompt_history"))
    }

    /// Saves a conversation that is about the folder `work_dir`, without what `redactor` finds.
    pub(super) async fn save(
        &self,
        id: &str,
        transcript: &Transcript,
        work_dir: &Path,
        redactor: &Redactor,
    ) -> std::result::Result<(), String> {
        let first_prompt = transcript.entries.iter().find_map(|entry| match entry {
            TranscriptEntry::User { text, .. } => Some(conversation_title(text)),
            _ => None,
        });
        let summary = ConversationSummary {
            id: id.to_owned(),
            folder: Some(work_dir.to_string_lossy().into_owned()),
            title: first_prompt,
            entries: transcript.entries.len() as u64,
            changed_at: SystemTime::now(),
        };
        let transcript = serde_json::to_value(transcript).map_err(|error| error.to_string())?;
        let mut record = ConversationRecord { summary, transcript };
        record.redact(redactor);
        self.store.save_conversation(record).await.map_err(|error| error.to_string())
    }

    /// Whether another process can continue the conversations.
    #[cfg(feature = "acp")]
    pub(crate) fn outlive_program(&self) -> bool {
        self.outlive_program
    }

    /// Returns conversations without their transcripts, the newest first.
    #[cfg(feature = "acp")]
    pub(crate) async fn list(
        &self,
        query: &ConversationQuery,
    ) -> std::io::Result<Vec<ConversationSummary>> {
        self.store.list_conversations(query).await
    }

    /// Loads the newest conversation about the folder `work_dir`, other than `running`.
    pub(super) async fn load_newest(
        &self,
        work_dir: &Path,
        running: Option<&str>,
    ) -> Result<ResumedConversation> {
        let folder = Some(work_dir.to_string_lossy().into_owned());
        let newest = ConversationQuery { folder, limit: 2, ..ConversationQuery::default() };
        let listed = self.store.list_conversations(&newest).await;
        let listed = listed.map_err(|error| unreadable(&error))?;
        let other = listed.into_iter().find(|it| Some(&*it.id) != running);
        let other = other.ok_or_else(|| self.missing("conversation of this folder to continue"))?;
        self.load(&other.id).await
    }

    /// Loads the conversation `id`.
    pub(crate) async fn load(&self, id: &str) -> Result<ResumedConversation> {
        let found = self.store.find_conversation(id).await.map_err(|error| unreadable(&error))?;
        let shown = id.escape_debug();
        let record =
            found.ok_or_else(|| self.missing(&format!("conversation `{shown}` to continue")))?;
        let transcript = serde_json::from_value(record.transcript).map_err(|error| {
            CommandError::config(format_args!("the conversation `{shown}`: {error}"))
        })?;
        Ok(ResumedConversation { id: id.to_owned(), transcript })
    }

    fn missing(&self, what: &str) -> CommandError {
        let error = CommandError::usage(format_args!("there is no {what}"));
        if self.outlive_program {
            return error;
        }
        error.hint(match self.prompts_folder {
            Some(_) => {
                "this program keeps conversations until it ends; the feature `store` of `tool-sdk` \
                 keeps them longer"
            }
            None => "without a state folder, conversations end with the program; `--state-dir` or HOME sets it",
        })
    }
}

fn unreadable(error: &std::io::Error) -> CommandError {
    let error = ToolError::failed(format_args!("cannot read the conversations: {error}"));
    CommandError::new(FAILED, error)
}
