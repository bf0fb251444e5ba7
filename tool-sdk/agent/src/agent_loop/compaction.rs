//! Keeps a conversation within the context of its model: old results are removed first, then the
//! beginning is replaced by a summary that the model writes.
//!
//! The size is checked before every request, because a long series of calls fills the context
//! within one turn of the user.
//!
//! **Invariant:** a message is never separated from the answers to its calls.

use tool_sdk_core::provider::CallAnswer;

use crate::transcript::{Transcript, TranscriptEntry, TranscriptSummary};

/// When and how a conversation is compacted.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::CompactionPolicy;
///
/// let policy = CompactionPolicy::for_context(200_000);
/// assert_eq!(policy.threshold(), 180_000);
/// assert_eq!(CompactionPolicy::for_context(32_000).threshold(), 25_600);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "hosts construct policies")]
pub struct CompactionPolicy {
    /// The context of the model in tokens.
    pub context_tokens: u64,
    /// How many tokens are kept free for the next message.
    pub reserved_tokens: u64,
    /// How many tokens at the end of the conversation stay as they are.
    pub recent_tokens: u64,
    /// How many tokens of the user's newest messages stay as they are.
    pub user_tokens: u64,
    /// Names of tools whose results are never removed, beside results that are [exempt
    /// themselves](tool_sdk_core::Output::exempt_from_compaction).
    pub exempt_tools: Vec<String>,
}

impl CompactionPolicy {
    /// Creates the policy for a model with this context: 20,000 tokens are kept free, or a fifth of
    /// a small context; the newest 15,000 stay, or a quarter.
    #[must_use]
    pub fn for_context(context_tokens: u64) -> Self {
        Self {
            context_tokens,
            reserved_tokens: (context_tokens / 5).min(20_000),
            recent_tokens: (context_tokens / 4).min(15_000),
            user_tokens: (context_tokens / 8).min(20_000),
            exempt_tools: Vec::new(),
        }
    }

    /// Returns the size in tokens from which on a conversation is compacted.
    #[must_use]
    pub const fn threshold(&self) -> u64 {
        self.context_tokens.saturating_sub(self.reserved_tokens)
    }

    fn is_exempt(&self, answer: &CallAnswer) -> bool {
        answer.is_exempt_from_compaction || self.exempt_tools.contains(&answer.name)
    }
}

/// The request for a summary.
pub(super) const SUMMARY_PROMPT: &str = "\
Write a summary of the conversation so far. It replaces the conversation in your memory, so another \
engineer must be able to go on from it alone. Do not call tools. Use these headings, and leave out \
those without content:

## Objective
What the user wants in the end.
## Requirements
What the user asked for or ruled out, in the user's words where they matter.
## Decisions
What was decided, and why.
## State of the work
What is done, with names of files and the commands that were run and their results; what failed.
## Next step
The one concrete step that follows.
## Files
The files that matter, one a line, with what each is for.";

/// Removes the results of older calls from the entries that the model reads, except for those of
/// exempt tools and those among the newest tokens. Returns how many were removed.
pub(super) fn prune_results(transcript: &mut Transcript, policy: &CompactionPolicy) -> usize {
    /// Shorter results are not worth it.
    const MIN_BYTES: usize = 400;
    let end = recent_start(transcript, policy.recent_tokens);
    let before = transcript.pruned.len();
    for entry in transcript.entries.get(..end).into_iter().flatten() {
        let TranscriptEntry::Answers { answers } = entry else { continue };
        let is_worth_it =
            |answer: &&CallAnswer| answer.text.len() >= MIN_BYTES || !answer.attachments.is_empty();
        let prunable = answers.iter().filter(is_worth_it).filter(|it| !policy.is_exempt(it));
        transcript.pruned.extend(prunable.map(|answer| answer.id.clone()));
    }
    transcript.pruned.len() - before
}

/// Returns the index of the first entry of the newest `tokens`: a message of the user if there is
/// one among them, and never answers without their calls.
pub(super) fn recent_start(transcript: &Transcript, tokens: u64) -> usize {
    let covered = transcript.summary.as_ref().map_or(0, |summary| summary.covered);
    let (mut sum, mut start, mut user) = (0, transcript.entries.len(), None);
    for (at, entry) in transcript.entries.iter().enumerate().skip(covered).rev() {
        sum += transcript.estimate_entry(entry);
        if sum > tokens {
            break;
        }
        match entry {
            TranscriptEntry::User { .. } => {
                user = Some(at);
                start = at;
            }
            TranscriptEntry::Model { .. } => start = at,
            TranscriptEntry::Answers { .. } => {}
        }
    }
    user.unwrap_or(start)
}

/// Leaves the older half of the visible entries out of a conversation that does not fit. Returns
/// false when there is nothing to leave out.
pub(super) fn drop_older_half(transcript: &mut Transcript) -> bool {
    let covered = transcript.summary.as_ref().map_or(0, |summary| summary.covered);
    // The last entry is the request for the summary.
    let last = transcript.entries.len() - 1;
    let mut middle = covered + (last - covered).div_ceil(2);
    while matches!(transcript.entries.get(middle), Some(TranscriptEntry::Answers { .. })) {
        middle += 1;
    }
    if middle <= covered || middle >= last {
        return false;
    }
    let text = match &transcript.summary {
        Some(summary) => summary.text.clone(),
        None => "(the beginning is missing: it was too long)".to_owned(),
    };
    transcript.summary = Some(TranscriptSummary { text, covered: middle });
    true
}

/// Returns what stays of the first `end` entries beside the summary: the user's newest messages and
/// the results of exempt tools, each named.
pub(super) fn kept_verbatim(
    transcript: &Transcript,
    end: usize,
    policy: &CompactionPolicy,
) -> String {
    let covered = transcript.entries.get(..end).unwrap_or_default();
    let mut left = usize::try_from(policy.user_tokens.saturating_mul(4)).unwrap_or(usize::MAX);
    let mut users = Vec::new();
    for entry in covered.iter().rev() {
        let TranscriptEntry::User { text, .. } = entry else { continue };
        if text.len() > left {
            break;
        }
        left -= text.len();
        users.push(text.as_str());
    }
    let mut kept = String::new();
    if !users.is_empty() {
        kept.push_str("\n\n## Messages of the user, as they were written");
        for text in users.into_iter().rev() {
            kept.push_str("\n\n> ");
            kept.push_str(&text.replace('\n', "\n> "));
        }
    }
    for entry in covered {
        let TranscriptEntry::Answers { answers } = entry else { continue };
        for answer in answers.iter().filter(|it| policy.is_exempt(it) && !it.is_error) {
            kept.push_str(&format!("\n\n## Result of `{}`, kept\n\n{}", answer.name, answer.text));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool_sdk_core::provider::{ModelApi, ModelMessage};

    use super::*;

    fn policy() -> CompactionPolicy {
        let mut policy = CompactionPolicy::for_context(8_000);
        (policy.recent_tokens, policy.user_tokens) = (500, 100);
        policy.exempt_tools.push("manual".to_owned());
        policy
    }

    /// Ten pairs of a call of `tool` and a result of 1,000 bytes, behind a message of the user.
    fn long_transcript(tool: &str) -> Transcript {
        let mut transcript = Transcript::from_user("Read all of it.");
        for at in 0..10 {
            let call = json!({ "id": format!("c{at}"), "type": "function",
                               "function": { "name": tool, "arguments": "{}" } });
            let response = json!({ "choices": [{ "message": {
                "role": "assistant", "tool_calls": [call],
            }}], "usage": { "completion_tokens": 10 } });
            let message = ModelMessage::from_response(&response, ModelApi::OpenAiChat).unwrap();
            transcript.entries.push(TranscriptEntry::Model { message });
            let answers = vec![CallAnswer::text(format!("c{at}"), tool, "x".repeat(1_000))];
            transcript.entries.push(TranscriptEntry::Answers { answers });
        }
        transcript
    }

    #[test]
    fn the_newest_results_stay() {
        let mut transcript = long_transcript("read_page");
        assert_eq!(prune_results(&mut transcript, &policy()), 9);
        let sent = json!(transcript.encode(ModelApi::OpenAiChat)).to_string();
        assert_eq!(sent.matches("was removed to save space").count(), 9);
        assert_eq!(sent.matches(&"x".repeat(1_000)).count(), 1);
        // What was removed is not removed again.
        assert_eq!(prune_results(&mut transcript, &policy()), 0);
    }

    #[test]
    fn results_of_exempt_tools_stay() {
        let mut transcript = long_transcript("manual");
        assert_eq!(prune_results(&mut transcript, &policy()), 0);
        let kept = kept_verbatim(&transcript, transcript.entries.len(), &policy());
        assert!(kept.starts_with("\n\n## Messages of the user"), "{kept}");
        assert!(kept.contains("> Read all of it."), "{kept}");
        assert_eq!(kept.matches("## Result of `manual`, kept").count(), 10);
    }

    #[test]
    fn exempt_results_of_any_tool_stay() {
        let mut transcript = long_transcript("read_page");
        for entry in &mut transcript.entries {
            let TranscriptEntry::Answers { answers } = entry else { continue };
            answers[0].is_exempt_from_compaction = answers[0].id == "c3";
        }
        assert_eq!(prune_results(&mut transcript, &policy()), 8);
        let stored = serde_json::to_string(&transcript).unwrap();
        let stored: Transcript = serde_json::from_str(&stored).unwrap();
        assert!(!stored.pruned.contains("c3") && stored.pruned.contains("c4"));
        let kept = kept_verbatim(&stored, stored.entries.len(), &policy());
        assert_eq!(kept.matches("## Result of `read_page`, kept").count(), 1);
    }

    #[test]
    fn a_split_leaves_calls_with_their_answers() {
        let transcript = long_transcript("read_page");
        for tokens in 0..3_000 {
            let start = recent_start(&transcript, tokens);
            let entry = transcript.entries.get(start);
            assert!(!matches!(entry, Some(TranscriptEntry::Answers { .. })), "{tokens}");
        }
        assert_eq!(recent_start(&transcript, 100_000), 0);
    }
}
