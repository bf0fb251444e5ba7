//! The conversations in the store, with those that an earlier version kept as files.
//!
//! Files in `chats` of the state folder are added to the store at the first look at the conversations. Each
//! then moves to `chats/imported`, where it stays until the user removes it.
//!
//! **Invariant:** a file moves only after its conversation is in the store; a file that is no
//! conversation stays where it is.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;
use tokio::sync::OnceCell;
use tool_sdk_core::internal::private_file::{PrivateFolder, open_private};
use tool_sdk_core::{
    ConversationQuery, ConversationRecord, ConversationStore, ConversationSummary, Redactor,
};
use tool_sdk_store::SqliteStore;

use super::conversation_title::conversation_title;

/// A store that first imports the files of an earlier version.
pub(super) struct ImportedConversations {
    pub(super) store: SqliteStore,
    /// The folder of the files.
    pub(super) files: PathBuf,
    pub(super) redactor: Redactor,
    pub(super) imported: OnceCell<()>,
}

impl ImportedConversations {
    async fn import_files(&self) -> io::Result<()> {
        self.imported.get_or_try_init(|| self.import_each_file()).await.map(drop)
    }

    async fn import_each_file(&self) -> io::Result<()> {
        let folder = PrivateFolder::new(self.files.clone()).find_folder();
        let Some(folder) = folder.map_err(io::Error::other)? else { return Ok(()) };
        let names = fs::read_dir(&folder)?.flatten().map(|entry| entry.file_name());
        let ids = names.filter_map(|name| Some(name.to_str()?.strip_suffix(".json")?.to_owned()));
        for id in ids.collect::<Vec<_>>() {
            let path = folder.join(format!("{id}.json"));
            let Some(mut record) = read_conversation_file(&path, id) else { continue };
            record.redact(&self.redactor);
            self.store.add_conversation(record).await?;
            let imported = PrivateFolder::new(folder.join("imported")).create_folder();
            let imported = imported.map_err(io::Error::other)?;
            match fs::rename(&path, imported.join(path.file_name().unwrap_or_default())) {
                // Another process imports as well.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                moved => moved?,
            }
        }
        Ok(())
    }
}

impl ConversationStore for ImportedConversations {
    async fn save_conversation(&self, record: ConversationRecord) -> io::Result<()> {
        self.store.save_conversation(record).await
    }

    async fn add_conversation(&self, record: ConversationRecord) -> io::Result<bool> {
        self.store.add_conversation(record).await
    }

    async fn find_conversation(&self, id: &str) -> io::Result<Option<ConversationRecord>> {
        self.import_files().await?;
        self.store.find_conversation(id).await
    }

    async fn list_conversations(
        &self,
        query: &ConversationQuery,
    ) -> io::Result<Vec<ConversationSummary>> {
        self.import_files().await?;
        self.store.list_conversations(query).await
    }

    async fn remove_conversations_before(&self, time: SystemTime) -> io::Result<u64> {
        self.import_files().await?;
        self.store.remove_conversations_before(time).await
    }
}

/// Reads a file of an earlier version: a transcript with the folder that it is about. `None` for a
/// file that is none.
fn read_conversation_file(path: &Path, id: String) -> Option<ConversationRecord> {
    let mut file = open_private(path).ok()??;
    let changed_at = file.metadata().and_then(|it| it.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let mut transcript: Value = serde_json::from_str(&text).ok()?;
    let entries = transcript["entries"].as_array()?;
    let first_prompt = entries.iter().find_map(|entry| entry["text"].as_str());
    let summary = ConversationSummary {
        id,
        title: first_prompt.map(conversation_title),
        entries: entries.len() as u64,
        changed_at,
        folder: None,
    };
    let folder = transcript.as_object_mut()?.remove("folder");
    let folder = folder.and_then(|folder| folder.as_str().map(str::to_owned));
    Some(ConversationRecord { summary: ConversationSummary { folder, ..summary }, transcript })
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::Value;

    use crate::test_support::TestCli;

    const SECRET: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";

    /// Writes a file as an earlier version did.
    #[expect(clippy::unwrap_used, reason = "a step that cannot be taken fails the test")]
    fn write_old_file(setting: &TestCli, name: &str, text: &str) {
        let folder = setting.folder.path().join("state/chats");
        fs::create_dir_all(&folder).unwrap();
        for private in [setting.folder.path().join("state"), folder.clone()] {
            fs::set_permissions(private, fs::Permissions::from_mode(0o700)).unwrap();
        }
        fs::write(folder.join(name), text).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }

    #[test]
    fn files_of_an_earlier_version_are_imported_once() {
        let setting = TestCli::default();
        let answer = r#"{"id":"c0","name":"list_beds","text":"beds, paths"}"#;
        let transcript = format!(
            r#"{{"entries":[{{"type":"user","text":"my token is {SECRET}\nWhat grows here?"}},
                {{"type":"answers","answers":[{answer}]}}],"folder":"/garden"}}"#
        );
        write_old_file(&setting, "17-0a.json", &transcript);
        write_old_file(&setting, "broken.json", "{\"entries\": ");
        write_old_file(&setting, "prompt_history", "What grows here?\n");

        let listed = setting.run_with_state(&["sessions", "list", "--json"]);
        let listed: Value = serde_json::from_str(&listed.out).unwrap();
        let [conversation] = &listed.as_array().unwrap()[..] else { panic!("{listed}") };
        assert_eq!(
            (&conversation["kind"], &conversation["id"]),
            (&"conversation".into(), &"17-0a".into())
        );
        assert_eq!(
            (&conversation["folder"], &conversation["entries"]),
            (&"/garden".into(), &2.into())
        );
        assert_eq!(conversation["title"], "my token is [redacted]");
        let lines = setting.run_with_state(&["sessions", "list"]).out;
        assert!(lines.starts_with("17-0a  a conversation of 2 entries  20"), "{lines}");

        let chats = setting.folder.path().join("state/chats");
        let kept = fs::read_to_string(chats.join("imported/17-0a.json")).unwrap();
        assert_eq!(kept, transcript, "nothing is lost");
        assert!(chats.join("broken.json").exists() && chats.join("prompt_history").exists());
        assert!(!chats.join("17-0a.json").exists());

        let shown = setting.run_with_state(&["sessions", "show", "17-0a"]).out;
        assert_eq!(
            shown,
            "user: my token is [redacted]\n  What grows here?\nresult: list_beds, 11 bytes\n"
        );
        let exported = setting.run_with_state(&["sessions", "export", "17-0a"]).out;
        let entry: Value = serde_json::from_str(exported.lines().nth(1).unwrap()).unwrap();
        assert_eq!(
            (&entry["conversation"], &entry["answers"][0]["text"]),
            (&"17-0a".into(), &"beds, paths".into())
        );

        let pruned = setting.run_with_state(&["state", "prune", "--older-than", "1ms"]);
        assert_eq!(pruned.err, "removed 0 calls and 1 conversation\n");
        let ran = setting.run_with_state(&["sessions", "list"]);
        assert!(ran.err.starts_with("no sessions are recorded"), "{}", ran.err);
    }
}
