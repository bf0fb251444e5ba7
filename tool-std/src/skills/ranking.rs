//! Ranks skills for a task: by their triggers and words, and by meaning where there is an embedder.
//!
//! **Invariant:** a ranking orders a list; it never loads a skill.

use std::collections::BTreeSet;

use tool_sdk::{MemoryHandle, Session};

use super::discovery::FoundSkill;

/// Words of fewer letters say nothing.
const MIN_WORD_CHARS: usize = 3;

/// How many letters at the start of two words are compared, so that `merging` is `merge`.
const STEM_CHARS: usize = 5;

/// How much each kind of match counts.
const TRIGGER_SCORE: usize = 20;
const NAME_SCORE: usize = 5;
const WORD_SCORE: usize = 1;

/// By what skills are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatchKind {
    /// By triggers and words.
    Keyword,
    /// By meaning; by words where there is no embedder.
    Semantic,
    /// By both.
    Hybrid,
}

/// Returns the skills, the best match first, and how many of them match at all.
pub(super) async fn rank_skills<'s>(
    query: &str,
    skills: Vec<&'s FoundSkill>,
    kind: MatchKind,
    session: &Session,
) -> (Vec<&'s FoundSkill>, usize) {
    let by_words = rank_by_words(query, &skills);
    let memory = session.service::<MemoryHandle>();
    let ranking = match (kind, memory) {
        (MatchKind::Keyword, _) | (_, None) => by_words,
        (kind, Some(memory)) => {
            let texts: Vec<String> = skills.iter().map(|skill| embedded_text(skill)).collect();
            let beside = if kind == MatchKind::Hybrid { by_words.clone() } else { Vec::new() };
            match memory.rank_texts(query, &texts, beside).await {
                ranking if ranking.is_empty() => by_words,
                ranking => ranking,
            }
        }
    };
    let matches = ranking.len();
    let others = (0..skills.len()).filter(|index| !ranking.contains(index));
    let order: Vec<usize> = ranking.iter().copied().chain(others).collect();
    (order.into_iter().map(|index| skills[index]).collect(), matches)
}

fn embedded_text(skill: &FoundSkill) -> String {
    let document = &skill.document;
    format!("{}\n{}\n{}", document.name, document.description, document.triggers.join("\n"))
}

/// Returns the indices of the skills that share words with the query, the best first.
fn rank_by_words(query: &str, skills: &[&FoundSkill]) -> Vec<usize> {
    let phrase = format!(" {} ", split_words(query).join(" "));
    let stems: BTreeSet<String> = word_stems(query).collect();
    let score = |skill: &FoundSkill| {
        let document = &skill.document;
        let has_phrase = |trigger: &&String| {
            let words = split_words(trigger);
            !words.is_empty() && phrase.contains(&format!(" {} ", words.join(" ")))
        };
        let triggers = document.triggers.iter().filter(has_phrase).count();
        let shared = |text: &str| {
            let of_text: BTreeSet<String> = word_stems(text).collect();
            of_text.intersection(&stems).count()
        };
        let words = document.triggers.iter().map(|trigger| shared(trigger)).sum::<usize>();
        triggers * TRIGGER_SCORE
            + shared(&document.name) * NAME_SCORE
            + (words + shared(&document.description)) * WORD_SCORE
    };
    let scores = skills.iter().map(|skill| score(skill)).enumerate();
    let mut scored: Vec<(usize, usize)> = scores.filter(|(_, score)| *score > 0).collect();
    scored.sort_by_key(|(index, score)| (usize::MAX - score, *index));
    scored.into_iter().map(|(index, _)| index).collect()
}

fn split_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Returns the beginnings of the words that say something.
fn word_stems(text: &str) -> impl Iterator<Item = String> {
    const EMPTY_WORDS: [&str; 24] = [
        "and", "any", "are", "for", "from", "have", "how", "its", "not", "that", "the", "then",
        "this", "use", "used", "user", "using", "what", "when", "which", "will", "with", "you",
        "your",
    ];
    let says_something = |word: &String| {
        word.chars().count() >= MIN_WORD_CHARS && !EMPTY_WORDS.contains(&word.as_str())
    };
    let words = split_words(text).into_iter().filter(says_something);
    let singular = |word: String| match word.strip_suffix('s') {
        Some(rest) if rest.len() >= MIN_WORD_CHARS => rest.to_owned(),
        _ => word,
    };
    words.map(move |word| singular(word).chars().take(STEM_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use tool_sdk::{Embedder, InProcessMemoryStore, ToolError};

    use super::*;
    use crate::skills::discovery::SkillScope;
    use crate::skills::document::SkillDocument;

    fn skills() -> Vec<FoundSkill> {
        let skill = |name: &str, description: &str, triggers: &[&str]| FoundSkill {
            document: SkillDocument {
                name: name.to_owned(),
                description: description.to_owned(),
                triggers: triggers.iter().map(|&it| it.to_owned()).collect(),
                ..SkillDocument::default()
            },
            scope: SkillScope::User,
            folder: None,
        };
        vec![
            skill("letters", "Write a letter in the style of the house.", &[]),
            skill("pdf", "Fill in, split and merge documents.", &["pdf form", "acroform"]),
            skill("release-notes", "List what changed since the last version.", &["changelog"]),
        ]
    }

    async fn rank(query: &str, kind: MatchKind, session: &Session) -> (Vec<String>, usize) {
        let skills = skills();
        let (ranked, matches) = rank_skills(query, skills.iter().collect(), kind, session).await;
        (ranked.iter().map(|skill| skill.document.name.clone()).collect(), matches)
    }

    // F113: a query with a trigger ranks the skill first; F189: without an embedder, words work.
    #[tokio::test]
    async fn a_trigger_ranks_its_skill_first() {
        let session = Session::new("s");
        for kind in [MatchKind::Keyword, MatchKind::Semantic, MatchKind::Hybrid] {
            for (query, first) in [
                ("please fill in this PDF-form, it is a letter", "pdf"),
                ("update the changelog", "release-notes"),
                ("notes of the release", "release-notes"),
                ("write letters", "letters"),
            ] {
                let (ranked, matches) = rank(query, kind, &session).await;
                assert_eq!((ranked[0].as_str(), ranked.len()), (first, 3), "{query}");
                assert!(matches >= 1);
            }
            let (ranked, matches) = rank("something else entirely", kind, &session).await;
            assert_eq!((ranked[0].as_str(), matches), ("letters", 0));
        }
    }

    /// Knows one thing: that a questionnaire is a form.
    struct FormEmbedder;

    impl Embedder for FormEmbedder {
        fn model(&self) -> &str {
            "forms"
        }

        async fn embed_texts(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, ToolError> {
            let is_form = |text: &String| text.contains("form") || text.contains("questionnaire");
            let vector = |text: &String| match is_form(text) {
                true => vec![1.0, 0.0],
                false => vec![0.0, 1.0],
            };
            Ok(texts.iter().map(vector).collect())
        }
    }

    // F189: with an embedder, a paraphrase without the keyword ranks the skill first.
    #[tokio::test]
    async fn a_paraphrase_is_found_by_meaning() {
        let memory = MemoryHandle::new(InProcessMemoryStore::default()).with_embedder(FormEmbedder);
        let session = Session::new("s").with_service(memory);
        let query = "answer this questionnaire";
        assert_eq!(rank(query, MatchKind::Keyword, &session).await.1, 0);
        for kind in [MatchKind::Semantic, MatchKind::Hybrid] {
            assert_eq!(rank(query, kind, &session).await.0[0], "pdf");
        }
    }
}
