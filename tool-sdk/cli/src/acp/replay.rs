//! From a stored conversation to the updates that show it again.

use agent_client_protocol::v1::schema::{ContentBlock, ContentChunk, SessionUpdate};
use tool_sdk_agent::{Transcript, TranscriptEntry};

use super::prompt_blocks::visible_text;
use super::tool_calls::{ToolCallTable, image_block};

/// Returns the updates for all entries, in order. Each call ends with its answer.
pub(super) fn replay_transcript(
    transcript: &Transcript,
    table: &mut ToolCallTable,
) -> Vec<SessionUpdate> {
    let mut updates = Vec::new();
    for entry in &transcript.entries {
        match entry {
            TranscriptEntry::User { text, attachments } => {
                let text = visible_text(text);
                if !text.is_empty() {
                    updates.push(user_chunk(ContentBlock::from(text)));
                }
                updates.extend(attachments.iter().filter_map(image_block).map(user_chunk));
            }
            TranscriptEntry::Model { message } => {
                let text = message.text();
                if !text.is_empty() {
                    let chunk = ContentChunk::new(ContentBlock::from(text));
                    updates.push(SessionUpdate::AgentMessageChunk(chunk));
                }
                updates.extend(message.calls().iter().map(|call| table.report_stored(call)));
            }
            TranscriptEntry::Answers { answers } => updates.extend(table.read_answers(answers)),
            // A later version of the program wrote it.
            _ => {}
        }
    }
    updates
}

fn user_chunk(block: ContentBlock) -> SessionUpdate {
    SessionUpdate::UserMessageChunk(ContentChunk::new(block))
}
