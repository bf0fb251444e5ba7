//! Texts that a shell reads: `bash -c 'x'`, `su -c 'x'`, `trap 'x' EXIT`, and what comes later.
//!
//! **Invariant:** nothing here reads a script; it says which word is one, and who reads it.

use super::{Language, Layer, Why, Word, unknown_option};

/// `bash -c 'script'`, `bash file`, `bash < file`
pub(super) fn shell(words: &[Word], name: &str) -> Layer {
    let language = match name {
        "bash" => Language::Bash,
        "sh" => Language::Sh,
        _ => Language::Other,
    };
    let Some(option) = words[1..].iter().position(|word| is_script_option(&word.value)) else {
        let only_shows = words.len() == 2 && matches!(&*words[1].value, "--version" | "--help");
        return match only_shows {
            true => Layer::default(),
            false => Layer { reads_input: true, ..Layer::asking(Why::Sourced) },
        };
    };
    let option = option + 1;
    let Some(script) = words[option + 1..].iter().find(|word| !word.value.starts_with(['-', '+']))
    else {
        return Layer::asking(Why::Wrapper);
    };
    let is_simple = words.len() == 3
        && matches!(&*words[1].value, "-c" | "-lc")
        && script.is_literal()
        && language != Language::Other;
    let reads_files = words[1..=option].iter().any(|word| is_login(&word.value));
    let is_simple = is_simple && !reads_files;
    let asks = match is_simple {
        true => None,
        false if language == Language::Other => Some(Why::OtherShell),
        false if reads_files => Some(Why::Login),
        false => Some(Why::Wrapper),
    };
    Layer {
        scripts: vec![(script.value.clone(), language)],
        is_transparent: is_simple,
        stays: true,
        asks,
        ..Layer::default()
    }
}

/// `-c`, also among others as in `-lc`.
fn is_script_option(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| !rest.starts_with('-') && rest.contains('c'))
}

/// `-l`, also among others as in `-lc`: it reads what may give every word another meaning.
fn is_login(word: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    word == "--login" || letters.is_some_and(|letters| letters.contains('l'))
}

/// `cmd /c dir`, `pwsh -Command Get-Date`
pub(super) fn windows_shell(words: &[Word]) -> Layer {
    let is_option = |word: &Word| {
        let value = word.value.to_lowercase();
        let value = value.as_str();
        matches!(value, "/c" | "/k" | "-c") || value.len() > 3 && "-command".starts_with(value)
    };
    let script = words.iter().position(is_option).map(|at| joined(&words[at + 1..]));
    let scripts = script.into_iter().map(|script| (script, Language::Other)).collect();
    Layer { scripts, ..Layer::guess(words, 1, Why::OtherShell) }
}

/// `crontab file`, `echo command | at now`
pub(super) fn later(words: &[Word]) -> Layer {
    match words {
        [_, option] if option.value == "-l" => Layer::default(),
        _ => Layer { reads_input: true, ..Layer::asking(Why::Sourced) },
    }
}

/// Programs that give whatever they are told to shells of their own.
pub(super) fn terminal(words: &[Word]) -> Layer {
    const LOOKS: &[&str] = &["-ls", "-v", "-V", "ls", "list-sessions", "list-windows", "--version"];
    match words {
        [_, command] if LOOKS.contains(&&*command.value) => Layer::default(),
        _ => Layer { reads_input: true, ..unknown_option(words, 1) },
    }
}

/// `su -c 'script'`, `script -c 'script'`
pub(super) fn with_script_option(words: &[Word], from: usize) -> Layer {
    let asks = Layer::guess(words, from, Why::Wrapper);
    let Some(at) = words[from..].iter().position(|word| {
        word.value == "-c" || word.value.starts_with("--command") || is_script_option(&word.value)
    }) else {
        return asks;
    };
    let option = words[from + at].value.as_str();
    let script = match option.split_once('=') {
        Some((_, script)) => Some(script),
        None => words.get(from + at + 1).map(|word| &*word.value),
    };
    let scripts = script.map(|script| (script.to_owned(), Language::Sh)).into_iter().collect();
    Layer { scripts, ..asks }
}

/// `trap 'script' EXIT`
pub(super) fn trap(words: &[Word]) -> Layer {
    let operands: Vec<_> = words[1..].iter().filter(|word| word.value != "--").collect();
    match operands.as_slice() {
        [script, _, ..] if script.value != "-" && !script.value.is_empty() => {
            let scripts = vec![(script.value.clone(), Language::Bash)];
            Layer { scripts, stays: true, ..unread(&words[1..2]) }
        }
        _ => Layer::default(),
    }
}

/// A script is not known where one of its words is not.
pub(super) fn unread(words: &[Word]) -> Layer {
    match words.iter().all(Word::is_literal) {
        true => Layer::default(),
        false => Layer::asking(Why::Wrapper),
    }
}

pub(super) fn joined(words: &[Word]) -> String {
    words.iter().map(|word| &*word.value).collect::<Vec<_>>().join(" ")
}
