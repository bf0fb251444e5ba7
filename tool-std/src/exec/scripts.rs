//! Which words of a command may name a script that it runs.
//!
//! **Invariant:** nothing here looks at a file.

use std::borrow::Cow;

use crate::shell::{Known, Simple, Understood, bare_name};

/// Programs that run what a file says that they are given.
const READERS: &[&str] = &[
    ".", "ash", "bash", "bun", "csh", "dash", "deno", "expect", "fish", "java", "ksh", "lua",
    "node", "nodejs", "perl", "php", "pwsh", "pypy", "python", "ruby", "Rscript", "sh", "source",
    "tclsh", "tcsh", "ts-node", "tsx", "zsh",
];

/// Programs that run nothing of what they are given, or what the project says, which is not looked
/// at.
const HANDLERS: &[&str] = &[
    "cargo", "chmod", "chown", "cp", "curl", "echo", "gh", "git", "gzip", "kill", "ln", "mkdir",
    "mv", "printf", "rm", "rmdir", "rsync", "scp", "tail", "tar", "touch", "unzip", "wget", "zip",
];

/// Programs that do so behind `-f`.
const READERS_OF_FILES: &[&str] = &["awk", "gawk", "mawk", "nawk", "sed"];

/// How many words of them may name a script: each is looked for.
const MOST_WORDS: usize = 1024;

/// The commands whose scripts are looked at.
pub(super) fn commands(of: &Understood) -> impl Iterator<Item = &Simple> {
    of.commands.iter().filter(|command| !command.hidden)
}

/// The folder that a command enters, where it does.
pub(super) fn entered(argv: &[String]) -> Option<&str> {
    let (head, words) = argv.split_first()?;
    let is_one = matches!(head.as_str(), "cd" | "pushd");
    is_one.then(|| words.iter().rfind(|word| !word.starts_with('-')).map_or("", String::as_str))
}

/// The words of a command that may name a script.
pub(super) fn named(argv: &[String]) -> impl Iterator<Item = Cow<'_, str>> {
    let (head, operands) = argv.split_at(argv.len().min(1));
    let own = head.iter().filter(|head| head.contains('/'));
    let reads = head.iter().any(|head| is_of(head, READERS));
    let read = operands.iter().filter(move |word| reads && !word.starts_with('-'));
    let is_file = head.iter().any(|head| is_of(head, READERS_OF_FILES));
    let files = words_behind("-f", operands).filter(move |_| is_file);
    let modules = words_behind("-m", operands).filter(move |_| reads).flat_map(|module| {
        let path = module.replace('.', "/");
        [format!("{path}.py"), format!("{path}/__main__.py")]
    });
    let plain = own.chain(read).map(|word| Cow::Borrowed(word.as_str()));
    plain.chain(files.map(Cow::Borrowed)).chain(modules.map(Cow::Owned))
}

/// What stands behind an option of one letter, in the same word or in the next.
fn words_behind<'a>(option: &'a str, words: &'a [String]) -> impl Iterator<Item = &'a str> {
    words.iter().enumerate().filter_map(move |(at, word)| {
        let rest = word.strip_prefix(option).or_else(|| word.strip_prefix("--file="))?;
        if rest.is_empty() { words.get(at + 1).map(String::as_str) } else { Some(rest) }
    })
}

/// Whether a program of the line runs what others give it to read.
pub(super) fn are_given(of: &Understood) -> bool {
    commands(of).any(|command| reads_input(&command.argv))
}

/// Whether a program of the line may run a file that is mentioned in it.
pub(super) fn may_run_files(of: &Understood) -> bool {
    let handles = |head: &String| HANDLERS.contains(&head.as_str());
    let is_known = |it: &Simple| it.safe || it.argv.first().is_some_and(handles);
    !commands(of).all(is_known) || of.commands.is_empty()
}

/// Whether one of its programs may put an ending behind the name of a file.
pub(super) fn complete_names(of: &Understood) -> bool {
    commands(of).any(|it| it.argv.first().is_some_and(|head| is_of(head, READERS)))
}

/// Whether a program of the line runs files that another one finds: `find -exec sh {} +`.
pub(super) fn are_found(of: &Understood) -> bool {
    commands(of).any(|command| {
        let Some(head) = command.argv.first() else { return false };
        // What bash puts there is written so.
        let is_found = |(word, known): (&String, &Known)| {
            matches!(known, Known::One | Known::Nothing) && !word.contains(['$', '`'])
        };
        let mut words = command.argv.iter().zip(&command.known);
        let is_own = words.next().is_some_and(is_found);
        is_own || is_of(head, READERS) && (command.open_end || words.any(is_found))
    })
}

/// The words of a command that may name what it gives to others as a script.
pub(super) fn given(argv: &[String]) -> impl Iterator<Item = Cow<'_, str>> {
    let words = argv.iter().skip(1).filter(|word| !word.starts_with('-'));
    words.map(|word| Cow::Borrowed(word.as_str()))
}

/// Whether it runs what it is given to read.
fn reads_input(argv: &[String]) -> bool {
    let Some((head, words)) = argv.split_first() else { return false };
    let is_one = is_of(head, READERS) && !matches!(head.as_str(), "." | "source");
    is_one && words.iter().all(|word| word.starts_with('-'))
}

/// Whether there are too many to look for each.
pub(super) fn are_too_many(of: &Understood) -> bool {
    commands(of).flat_map(|command| named(&command.argv)).nth(MOST_WORDS).is_some()
}

fn is_of(program: &str, names: &[&str]) -> bool {
    let name = bare_name(program);
    // Its version stands behind it, and for which machine it is.
    let is_version = |c: char| c.is_ascii_digit() || c == '.';
    let family = name.split(is_version).next().unwrap_or_default().trim_end_matches('-');
    names.contains(&&*name) || (!family.is_empty() && names.contains(&family))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::understand;

    #[test]
    fn every_word_that_may_name_a_script_is_looked_for() {
        for (script, expected) in [
            ("./a b", &["./a"][..]),
            ("perl5.36-x86_64-linux-gnu a", &["a"]),
            ("nodejs a", &["a"]),
            ("python3.12 -W a b c", &["a", "b", "c"]),
            ("/bin/sh a", &["/bin/sh", "a"]),
            ("cat a", &[]),
            ("awk -f a b", &["a"]),
            ("sed -fa --file=b c", &["a", "b"]),
            ("python3 -m a.b c", &["a.b", "c", "a/b.py", "a/b/__main__.py"]),
        ] {
            let understood = understand(script);
            assert_eq!(named(&understood.commands[0].argv).collect::<Vec<_>>(), expected);
        }
        let with = |count: usize| understand(&format!("perl -e x{}", " a".repeat(count)));
        assert!(!are_too_many(&with(MOST_WORDS - 1)));
        assert!(are_too_many(&with(MOST_WORDS)));
        assert!(!are_too_many(&understand(&format!("cat{}", " a".repeat(MOST_WORDS + 1)))));
        let late = format!("{}perl{}", "true; ".repeat(40), " a".repeat(MOST_WORDS + 1));
        assert!(are_too_many(&understand(&late)));
    }

    #[test]
    fn what_is_found_may_be_any_script() {
        for (script, expected) in [
            ("find sub -exec sh {} +", true),
            ("find sub -type f | xargs sh", true),
            ("ls | xargs -I@ ./@", true),
            ("ls | xargs -n1 timeout 5 sh", true),
            ("find sub | xargs cat", false),
            ("sh $x", false),
            ("sh \"$(echo x)\"", false),
            ("sh *", false),
        ] {
            assert_eq!(are_found(&understand(script)), expected, "{script}");
        }
    }
}
