//! The words that name what a command does, without the options before them.
//!
//! `git -C dir push` is `git push` to whoever forbids that. Which words are the values of
//! options is not known here, so every word that may name the action is taken for it once.

use super::Simple;
use super::alias;
use super::suggest::arity;
use super::word::bare_name;

/// The most readings of one command.
const MAX_READINGS: usize = 16;

/// What a command may be without its options before the words that name its action, where it
/// has some, or nothing when there are too many of them to tell.
pub(crate) fn without_options(command: &Simple) -> Option<Vec<String>> {
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
            let long = name.get(1).and_then(|command| alias::long(name[0], command));
            if let Some(long) = long {
                let words = [name[0], long].into_iter().chain(name[2..].iter().copied());
                done.push(words.chain(rest.iter().copied()).collect());
            }
            // Nothing was left out.
            if name.len() + rest.len() < words.len() {
                done.push(name.into_iter().chain(rest.iter().copied()).collect::<Vec<_>>());
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
    Some(done.into_iter().map(|words| words.join(" ")).collect())
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
            ("ls -l push", &[]),
            ("git --version", &[]),
        ] {
            let mut found = without_options(&understand(script).commands[0]).unwrap();
            found.sort();
            assert_eq!(found, expected, "{script}");
        }
        let many = format!("git{}", " -c a".repeat(20));
        assert_eq!(without_options(&understand(&many).commands[0]), None);
    }
}
