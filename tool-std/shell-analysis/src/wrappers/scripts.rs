//! Unwraps scripts given to shells: `bash -c 'x'`, `su -c 'x'`, `trap 'x' EXIT`, and scheduled
//! commands.
//!
//! **Invariant:** nothing here parses a script; it only finds the word that is one, and its shell
//! language.

use super::{OpaqueReason, ScriptLanguage, ShellWord, WrapperLayer, guess_unknown_option};

/// `bash -c 'script'`, `bash file`, `bash < file`
pub(super) fn unwrap_shell(words: &[ShellWord], name: &str) -> WrapperLayer {
    let language = match name {
        "bash" => ScriptLanguage::Bash,
        "sh" => ScriptLanguage::Sh,
        _ => ScriptLanguage::Other,
    };
    let Some(option) = words[1..].iter().position(|word| is_script_option(&word.value)) else {
        let only_shows = words.len() == 2 && matches!(&*words[1].value, "--version" | "--help");
        return match only_shows {
            true => WrapperLayer::default(),
            false => WrapperLayer {
                reads_input: true,
                ..WrapperLayer::with_reason(OpaqueReason::SourcedCommands)
            },
        };
    };
    let option = option + 1;
    let Some(script) = words[option + 1..].iter().find(|word| !word.value.starts_with(['-', '+']))
    else {
        return WrapperLayer::with_reason(OpaqueReason::WrapperOptions);
    };
    let is_simple = words.len() == 3
        && matches!(&*words[1].value, "-c" | "-lc")
        && script.is_literal()
        && language != ScriptLanguage::Other;
    let reads_files = words[1..=option].iter().any(|word| is_login_option(&word.value));
    let is_simple = is_simple && !reads_files;
    let asks = match is_simple {
        true => None,
        false if language == ScriptLanguage::Other => Some(OpaqueReason::OtherShell),
        false if reads_files => Some(OpaqueReason::LoginShell),
        false => Some(OpaqueReason::WrapperOptions),
    };
    WrapperLayer {
        scripts: vec![(script.value.clone(), language)],
        is_transparent: is_simple,
        keeps_folder: true,
        approval_reason: asks,
        ..WrapperLayer::default()
    }
}

/// Whether a word is `-c`, also in a cluster as in `-lc`.
fn is_script_option(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| !rest.starts_with('-') && rest.contains('c'))
}

/// Whether a word is `-l`, also in a cluster as in `-lc`: start-up files may redefine every word.
fn is_login_option(word: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    word == "--login" || letters.is_some_and(|letters| letters.contains('l'))
}

/// `cmd /c dir`, `pwsh -Command Get-Date`
pub(super) fn unwrap_windows_shell(words: &[ShellWord]) -> WrapperLayer {
    let is_option = |word: &ShellWord| {
        let value = word.value.to_lowercase();
        let value = value.as_str();
        matches!(value, "/c" | "/k" | "-c") || value.len() > 3 && "-command".starts_with(value)
    };
    let script = words.iter().position(is_option).map(|at| join_values(&words[at + 1..]));
    let scripts = script.into_iter().map(|script| (script, ScriptLanguage::Other)).collect();
    WrapperLayer { scripts, ..WrapperLayer::guess_commands(words, 1, OpaqueReason::OtherShell) }
}

/// `crontab file`, `echo command | at now`
pub(super) fn unwrap_scheduled(words: &[ShellWord]) -> WrapperLayer {
    match words {
        [_, option] if option.value == "-l" => WrapperLayer::default(),
        _ => WrapperLayer {
            reads_input: true,
            ..WrapperLayer::with_reason(OpaqueReason::SourcedCommands)
        },
    }
}

/// Terminal multiplexers, which pass their arguments to shells.
pub(super) fn unwrap_multiplexer(words: &[ShellWord]) -> WrapperLayer {
    const LOOKS: &[&str] = &["-ls", "-v", "-V", "ls", "list-sessions", "list-windows", "--version"];
    match words {
        [_, command] if LOOKS.contains(&&*command.value) => WrapperLayer::default(),
        _ => WrapperLayer { reads_input: true, ..guess_unknown_option(words, 1) },
    }
}

/// `su -c 'script'`, `script -c 'script'`
pub(super) fn unwrap_script_option(words: &[ShellWord], from: usize) -> WrapperLayer {
    let asks = WrapperLayer::guess_commands(words, from, OpaqueReason::WrapperOptions);
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
    let scripts =
        script.map(|script| (script.to_owned(), ScriptLanguage::Sh)).into_iter().collect();
    WrapperLayer { scripts, ..asks }
}

/// `trap 'script' EXIT`
pub(super) fn unwrap_trap(words: &[ShellWord]) -> WrapperLayer {
    let operands: Vec<_> = words[1..].iter().filter(|word| word.value != "--").collect();
    match operands.as_slice() {
        [script, _, ..] if script.value != "-" && !script.value.is_empty() => {
            let scripts = vec![(script.value.clone(), ScriptLanguage::Bash)];
            WrapperLayer { scripts, keeps_folder: true, ..require_literal(&words[1..2]) }
        }
        _ => WrapperLayer::default(),
    }
}

/// Requires that all words of a script are literal.
pub(super) fn require_literal(words: &[ShellWord]) -> WrapperLayer {
    match words.iter().all(ShellWord::is_literal) {
        true => WrapperLayer::default(),
        false => WrapperLayer::with_reason(OpaqueReason::WrapperOptions),
    }
}

pub(super) fn join_values(words: &[ShellWord]) -> String {
    words.iter().map(|word| &*word.value).collect::<Vec<_>>().join(" ")
}
