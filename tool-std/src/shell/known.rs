//! What is known of one command, once it is known what stands inside of it.
//!
//! **Invariant:** nothing here looks at other commands.

use super::program::known_name;
use super::unwrap::Layer;
use super::word::{Word, bare_name, has_bare_name, is_assignment};
use super::{Simple, Why, alias, danger, hidden, names, safe, suggest};

/// Folders whose programs are what their names say.
const TRUSTED: &[&str] =
    &["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin"];

/// Says of one command what is known.
///
/// `text` are the words as one text, and `open_end` says that more of them may come.
pub(super) fn simple(words: &[Word], text: String, open_end: bool, layer: &Layer) -> Simple {
    let head = &words[0];
    let is_unknown = head.unknown || head.value.is_empty() || head.glob && head.value != "[";
    let asks = if is_unknown && !is_assignment(&head.value) {
        Some(Why::Program)
    } else if layer.asks.is_some() {
        layer.asks
    } else if open_end && layer.is_bare {
        Some(Why::Wrapper)
    } else if !is_action_named(words, open_end) {
        Some(Why::Action)
    } else if danger::has_argument(words, open_end) {
        Some(Why::Argument)
    } else if words.iter().any(|word| word.parameter) {
        Some(Why::Parameter)
    } else {
        (!is_trusted(&head.value)).then_some(Why::ProgramPath)
    };
    let is_nameless = match asks {
        Some(Why::Parameter) => !safe::ALWAYS.contains(&&*bare_name(&head.value)),
        Some(why @ (Why::Argument | Why::Assignment)) => hidden::evades(words, why),
        why => why.is_some_and(Why::hides_names),
    };
    let dangerous = danger::is_destructive(words, open_end);
    let is_harmless =
        || has_bare_name(&head.value) && (layer.is_transparent || safe::is_safe(words, open_end));
    let looks = asks.is_none() && !dangerous && is_harmless();
    Simple {
        argv: words.iter().map(|word| word.value.clone()).collect(),
        text,
        inner: false,
        safe: looks,
        looks,
        asks,
        dangerous,
        hidden: false,
        known: words.iter().map(Word::known).collect(),
        is_nameless,
        may_be_alias: alias::may_be(words),
        open_end,
        elsewhere: false,
    }
}

/// Whether the words are known that say which of its commands a program runs.
fn is_action_named(words: &[Word], open_end: bool) -> bool {
    let operands = || words[1..].iter().filter(|word| !word.value.starts_with('-'));
    let program = known_name(&words[0].value);
    let first = operands().next().filter(|word| word.is_literal());
    let name: Vec<&str> =
        std::iter::once(&*program).chain(first.map(|word| &*word.value)).collect();
    let named = suggest::arity(&name).saturating_sub(1);
    // Those that are not there yet may come at the end.
    let is_there = !open_end || operands().take(named).count() == named;
    is_there && operands().take(named).all(Word::is_literal)
}

/// Whether files may lie elsewhere after a command, itself and not what it contains.
pub(super) fn may_rename(words: &[Word], open_end: bool, simple: &Simple, layer: &Layer) -> bool {
    let head = &words[0];
    let only_contains = !layer.is_guess
        && (!layer.inner.is_empty() || !layer.scripts.is_empty())
        && simple.asks.is_none_or(|why| matches!(why, Why::Assignment | Why::Argument));
    if simple.safe || only_contains || is_assignment(&head.value) {
        return false;
    }
    let is_named = head.is_literal() && is_trusted(&head.value) && has_bare_name(&head.value);
    let is_harmless =
        names::leaves(words, open_end) || safe::ALWAYS.contains(&&*bare_name(&head.value));
    !(is_named && is_harmless)
}

/// Whether a program's name says which program it is.
fn is_trusted(program: &str) -> bool {
    match program.rsplit_once('/') {
        Some((folder, _)) => TRUSTED.contains(&folder),
        None => !program.starts_with('~') && !program.contains('\\'),
    }
}
