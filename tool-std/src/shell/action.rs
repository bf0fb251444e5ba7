//! The words that name what a command does, without the options before them, and under other
//! names.
//!
//! `git -C dir push` is `git push` to whoever forbids that, and so is `git-push`. Which words are the values of
//! options is not known here, so every word that may name the action is taken for it once.

use super::Simple;
use super::suggest::arity;
use super::synonyms;
use super::word::{bare_name, quote};

/// The most readings of one command.
const MAX_READINGS: usize = 16;

/// What a command is under the other names of its program, and without its options before the
/// words that name its action, where it has some; nothing when there are too many of them to tell.
pub(crate) fn readings(command: &Simple) -> Option<Vec<String>> {
    let Some(program) = command.argv.first() else { return Some(Vec::new()) };
    let mut texts = without_options(command)?;
    texts.sort_unstable();
    texts.dedup();
    let others = synonyms::of_program(program);
    if !others.is_empty() {
        let name = bare_name(program);
        // The program is one word of the text, however it is quoted there.
        let written = quote(program);
        let own = command.text.strip_prefix(&written).or(command.text.strip_prefix(&**program));
        let rest = texts.iter().filter_map(|text| text.strip_prefix(&*name)).chain(own);
        let rest: Vec<String> = rest.map(str::to_owned).collect();
        let renamed = |other: &String| rest.iter().map(|it| format!("{other}{it}")).collect();
        texts.extend(others.iter().flat_map::<Vec<String>, _>(renamed));
    }
    Some(texts)
}

fn without_options(command: &Simple) -> Option<Vec<String>> {
    // Nothing stands before a name of one word.
    if command.argv.len() < 2 {
        return Some(Vec::new());
    }
    let words: Vec<&str> = command.argv.iter().map(String::as_str).collect();
    let Some((program, rest)) = words.split_first() else { return Some(Vec::new()) };
    let program = &*bare_name(program);
    // Those that are read so far: the words of the name, and what comes after them.
    let mut readings = vec![(vec![program], rest)];
    let mut done = Vec::new();
    while let Some((name, rest)) = readings.pop() {
        if name.len() >= arity(&name[..name.len().min(2)]) {
            let words_left = name.len() + rest.len();
            let text: Vec<&str> = name.into_iter().chain(rest.iter().copied()).collect();
            done.extend(under_other_names(&text));
            // Nothing was left out.
            if words_left < words.len() {
                done.push(text.join(" "));
            }
        } else {
            for at in candidates(rest) {
                let longer = name.iter().copied().chain([rest[at]]).collect();
                readings.push((longer, &rest[at + 1..]));
            }
        }
        if readings.len() + done.len() > MAX_READINGS {
            return None;
        }
    }
    Some(done)
}

/// The same with other names for what the program does.
fn under_other_names(words: &[&str]) -> Vec<String> {
    let named = |length: usize| {
        let (command, rest) = words[1..].split_at(length);
        let others = synonyms::of_command(words[0], &command.join(" "));
        others.into_iter().map(move |other| [&[words[0], &other], rest].concat().join(" "))
    };
    (1..words.len().min(3)).flat_map(named).collect()
}

/// Which of the words may be the next one that is no option and no value of one.
fn candidates<'w>(words: &'w [&str]) -> impl Iterator<Item = usize> + use<'w> {
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
    use crate::shell::understand;

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
            let mut found = readings(&understand(script).commands[0]).unwrap();
            found.sort();
            assert_eq!(found, expected, "{script}");
        }
        let many = format!("git{}", " -c a".repeat(20));
        assert_eq!(readings(&understand(&many).commands[0]), None);
    }
}
