//! Alternative spellings of a command for deny rules: without the options before the subcommand,
//! and under the other names of the program.
//!
//! `git -C dir push` and `git-push` must match a rule that denies `git push`. Which words are
//! option values is not known here, so every word that may be the subcommand is tried once.

use super::SimpleCommand;
use super::suggest::action_arity;
use super::synonyms;
use super::word::{bare_name, quote_word};

/// The maximum number of spellings of one command.
const MAX_SPELLINGS: usize = 16;

/// Returns the spellings of a command under the other names of its program and without leading
/// options. `None` if there are more than `MAX_SPELLINGS`.
pub fn alternative_spellings(command: &SimpleCommand) -> Option<Vec<String>> {
    let Some(program) = command.argv.first() else { return Some(Vec::new()) };
    let mut texts = without_leading_options(command)?;
    texts.sort_unstable();
    texts.dedup();
    let others = synonyms::program_synonyms(program);
    if !others.is_empty() {
        let name = bare_name(program);
        // The program is a single word of the text, however it is quoted.
        let written = quote_word(program);
        let own = command.text.strip_prefix(&written).or(command.text.strip_prefix(&**program));
        let rest = texts.iter().filter_map(|text| text.strip_prefix(&*name)).chain(own);
        let rest: Vec<String> = rest.map(str::to_owned).collect();
        let renamed = |other: &String| rest.iter().map(|it| format!("{other}{it}")).collect();
        texts.extend(others.iter().flat_map::<Vec<String>, _>(renamed));
    }
    Some(texts)
}

fn without_leading_options(command: &SimpleCommand) -> Option<Vec<String>> {
    // A command of one word has no options.
    if command.argv.len() < 2 {
        return Some(Vec::new());
    }
    let words: Vec<&str> = command.argv.iter().map(String::as_str).collect();
    let Some((program, rest)) = words.split_first() else { return Some(Vec::new()) };
    let program = &*bare_name(program);
    // Partial spellings: the words of the action so far, and the remaining words.
    let mut readings = vec![(vec![program], rest)];
    let mut done = Vec::new();
    while let Some((name, rest)) = readings.pop() {
        if name.len() >= action_arity(&name[..name.len().min(2)]) {
            let words_left = name.len() + rest.len();
            let text: Vec<&str> = name.into_iter().chain(rest.iter().copied()).collect();
            done.extend(with_synonyms(&text));
            // Only if an option was left out.
            if words_left < words.len() {
                done.push(text.join(" "));
            }
        } else {
            for at in action_word_candidates(rest) {
                let longer = name.iter().copied().chain([rest[at]]).collect();
                readings.push((longer, &rest[at + 1..]));
            }
        }
        if readings.len() + done.len() > MAX_SPELLINGS {
            return None;
        }
    }
    Some(done)
}

/// Returns the spellings with synonyms of the subcommand.
fn with_synonyms(words: &[&str]) -> Vec<String> {
    let named = |length: usize| {
        let (command, rest) = words[1..].split_at(length);
        let others = synonyms::command_synonyms(words[0], &command.join(" "));
        others.into_iter().map(move |other| [&[words[0], &other], rest].concat().join(" "))
    };
    (1..words.len().min(3)).flat_map(named).collect()
}

/// Returns the indices of the words that may be the next operand.
fn action_word_candidates<'w>(words: &'w [&str]) -> impl Iterator<Item = usize> + use<'w> {
    // `cargo +nightly` chooses a toolchain.
    let is_option = |word: &str| word.starts_with(['-', '+']);
    let mut before = false;
    let is_possible = move |word: &&&str| {
        let is_open = before || is_option(word);
        (_, before) = (is_open, is_option(word));
        is_open
    };
    let open = words.iter().take_while(is_possible).count();
    (0..words.len().min(open + 1)).filter(move |&at| !is_option(words[at]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze_script;

    #[test]
    fn every_reading_is_given() {
        for (script, expected) in [
            ("git push", &[][..]),
            ("git --no-pager push", &["git push"]),
            ("git -C a push b", &["git a push b", "git push b"]),
            ("/usr/bin/git -q push", &["git push"]),
            ("cargo r --bin a", &["cargo run --bin a"]),
            ("cargo +nightly t", &["cargo t", "cargo test"]),
            ("docker compose -f a rm b", &["docker compose a rm b", "docker compose rm b"]),
            ("docker --debug container rm a", &["docker container rm a", "docker rm a"]),
            ("npm -s publ", &["npm publ", "npm publish"]),
            ("git remote rm a", &["git remote remove a"]),
            ("python3.11 -c 'a b'", &["python -c 'a b'", "python3 -c 'a b'"]),
            ("pip3 -q install a", &["pip -q install a"]),
            ("git-push 'a b'", &["git push 'a b'"]),
            ("/usr/bin/mawk 1 a", &["awk 1 a"]),
            ("ls -l push", &[]),
            ("git --version", &[]),
        ] {
            let mut found = alternative_spellings(&analyze_script(script).commands[0]).unwrap();
            found.sort();
            assert_eq!(found, expected, "{script}");
        }
        let many = format!("git{}", " -c a".repeat(20));
        assert_eq!(alternative_spellings(&analyze_script(&many).commands[0]), None);
    }
}
