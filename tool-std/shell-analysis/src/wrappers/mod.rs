//! Finds the commands and scripts nested in one command: `sudo x`, `bash -c 'x'`, `find -exec x
//! ;`.
//!
//! The nested commands are analysed like all others, in addition to the wrapper.
//!
//! **Invariant:** one layer at a time and no recursion; the analyzer queues the result.

mod git;
mod scripts;
mod table;

use std::iter;
use std::ops::Range;

use self::scripts::{
    join_values, require_literal, unwrap_multiplexer, unwrap_scheduled, unwrap_script_option,
    unwrap_shell, unwrap_trap, unwrap_windows_shell,
};
use self::table::{
    BASH_SHELLS, DECLARING_BUILTINS, OTHER_SHELLS, UNCERTAIN_RUNNERS, WINDOWS_SHELLS, WRAPPERS,
    WrapperKind, WrapperProgram,
};
use super::OpaqueReason;
use super::assignments::are_harmless_assignments;
use super::program_names::{canonical_name, has_decorated_name};
use super::word::{ShellWord, is_assignment};

/// Whether a program runs any command that it is given, with all of its subcommands.
pub(super) fn runs_any_command(name: &str) -> bool {
    let is_wrapper =
        WRAPPERS.iter().any(|it| it.subcommands.is_empty() && it.names.contains(&name));
    let is_uncertain =
        UNCERTAIN_RUNNERS.iter().any(|(names, then)| then.is_empty() && names.contains(&name));
    let shells = [BASH_SHELLS, OTHER_SHELLS, WINDOWS_SHELLS];
    is_wrapper || is_uncertain || shells.iter().any(|shells| shells.contains(&name))
}

/// The names of all programs in the tables.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let wrappers = WRAPPERS.iter().flat_map(|wrapper| wrapper.names);
    let uncertain = UNCERTAIN_RUNNERS.iter().flat_map(|(names, _)| *names);
    wrappers.chain(uncertain).chain(BASH_SHELLS).chain(OTHER_SHELLS).chain(WINDOWS_SHELLS).copied()
}

/// The commands and scripts nested in one command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WrapperLayer {
    /// The ranges of words that are nested commands.
    pub(super) command_ranges: Vec<Range<usize>>,
    /// Nested commands that are not a contiguous range of words.
    pub(super) other_commands: Vec<Vec<ShellWord>>,
    /// Whether the ranges are only guesses.
    pub(super) is_guess: bool,
    /// The placeholder that nested commands replace at run time.
    pub(super) placeholder: Option<ArgPlaceholder>,
    /// Whether more words may be appended at run time.
    pub(super) has_open_end: bool,
    /// Nested scripts, and the shell language of each.
    pub(super) scripts: Vec<(String, ScriptLanguage)>,
    /// Whether a shell reads commands from its standard input.
    pub(super) reads_input: bool,
    /// Why the command needs approval.
    pub(super) approval_reason: Option<OpaqueReason>,
    /// Whether only the nested commands matter for permissions.
    pub(super) is_transparent: bool,
    /// Whether the nested commands run in the same directory and see the same files.
    pub(super) keeps_folder: bool,
    /// Whether the nested command is missing or incomplete.
    pub(super) lacks_command: bool,
}

/// A placeholder in the words of a command, replaced at run time.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ArgPlaceholder {
    /// Placeholders of `xargs -I`, replaced by input lines.
    Line(Vec<String>),
    /// The path of a found file. `{}` has variants such as `{/}`.
    Path(&'static str),
}

impl ArgPlaceholder {
    /// Whether the word is exactly the placeholder.
    pub(super) fn is_whole_word(&self, word: &ShellWord) -> bool {
        match self {
            Self::Line(texts) => texts.contains(&word.value),
            Self::Path(path) => word.value == *path,
        }
    }

    /// Whether the word contains the placeholder.
    pub(super) fn is_in(&self, word: &ShellWord) -> bool {
        match self {
            Self::Line(texts) => texts.iter().any(|text| word.value.contains(text)),
            Self::Path("{}") => ["{}", "{.}", "{/"].iter().any(|part| word.value.contains(part)),
            Self::Path(path) => word.value.contains(path),
        }
    }

    /// Marks the unknown part of the word.
    pub(super) fn mark_unknown(&self, mut word: ShellWord) -> ShellWord {
        if !self.is_in(&word) {
            return word;
        }
        // A found path begins with the searched directory; a variant such as `{/}` does not.
        let leads = match self {
            Self::Line(texts) => texts.iter().any(|text| word.value.starts_with(text)),
            Self::Path(_) => word.value.starts_with("{/"),
        };
        let known = if word.is_literal() { word.value.len() } else { word.known_prefix_len };
        let place = match self {
            Self::Line(texts) => texts.iter().filter_map(|text| word.value.find(text)).min(),
            Self::Path(path) => word.value.find(&path[..1]),
        };
        word.known_prefix_len = place.unwrap_or_default().min(known);
        word.is_unknown = true;
        word.may_become_option |= leads || word.value.starts_with('-');
        if self.is_whole_word(&word) {
            word.rule_text.clone_from(&word.value);
        }
        word
    }
}

/// The shell language of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptLanguage {
    /// bash.
    Bash,
    Sh,
    Other,
}

impl WrapperLayer {
    fn with_reason(why: OpaqueReason) -> Self {
        Self { approval_reason: Some(why), ..Self::default() }
    }

    /// The start of the nested command is uncertain, so every word from `from` on may begin it.
    fn guess_commands(words: &[ShellWord], from: usize, why: OpaqueReason) -> Self {
        let command_ranges = (from..words.len()).map(|at| at..words.len()).collect();
        Self { command_ranges, is_guess: true, ..Self::with_reason(why) }
    }

    /// Every word may begin a command.
    pub(super) fn guess_anywhere(words: &[ShellWord]) -> Self {
        Self::guess_commands(words, 1, OpaqueReason::TooDeep)
    }
}

/// Unwraps one layer of a command.
pub(super) fn unwrap_layer(words: &[ShellWord]) -> WrapperLayer {
    let Some(head) = words.first() else { return WrapperLayer::default() };
    if is_assignment(&head.value) {
        return unwrap_assignments(words);
    }
    let layer = with_git_commands(unwrap_known(words, &canonical_name(&head.value)), words);
    if has_decorated_name(&head.value) {
        // A decorated name need not be the program of the canonical name.
        return WrapperLayer { is_transparent: false, keeps_folder: false, ..layer };
    }
    layer
}

/// Adds the git commands nested in a git command.
fn with_git_commands(layer: WrapperLayer, words: &[ShellWord]) -> WrapperLayer {
    let git::NestedGitCommands {
        commands: others,
        is_same_command: is_same,
        lacks_command: is_bare,
    } = git::nested_git_commands(words);
    let stays = if others.is_empty() { layer.keeps_folder } else { is_same };
    WrapperLayer {
        other_commands: others,
        keeps_folder: stays,
        lacks_command: layer.lacks_command || is_bare,
        ..layer
    }
}

/// Unwraps a command of a program with this canonical name.
fn unwrap_known(words: &[ShellWord], name: &str) -> WrapperLayer {
    if BASH_SHELLS.contains(&name) || OTHER_SHELLS.contains(&name) {
        return unwrap_shell(words, name);
    }
    if DECLARING_BUILTINS.contains(&name) {
        return WrapperLayer::with_reason(OpaqueReason::Redefines);
    }
    match name {
        "." | "source" => WrapperLayer {
            reads_input: true,
            ..WrapperLayer::with_reason(OpaqueReason::SourcedCommands)
        },
        "find" | "gfind" | "bfs" => unwrap_exec_options(words, ends_with_path),
        "fd" | "fdfind" => unwrap_exec_options(words, |_, _| false),
        "trap" => unwrap_trap(words),
        "su" | "script" => unwrap_script_option(words, 1),
        // Without `-u` it has the options of `su`.
        "runuser" if !words.iter().any(|word| word.value == "-u") => unwrap_script_option(words, 1),
        "at" | "batch" | "crontab" => unwrap_scheduled(words),
        "screen" | "tmux" => unwrap_multiplexer(words),
        "command" if is_lookup(words) => WrapperLayer::default(),
        _ if is_uncertain_runner(name, words) => {
            WrapperLayer { reads_input: true, ..guess_unknown_option(words, 1) }
        }
        _ if WINDOWS_SHELLS.contains(&name) => unwrap_windows_shell(words),
        _ => match WRAPPERS
            .iter()
            .find_map(|wrapper| Some((wrapper, wrapper.options_start(name, words)?)))
        {
            Some((wrapper, start)) => unwrap_wrapper(words, name, wrapper, start),
            None => WrapperLayer::default(),
        },
    }
}

impl WrapperProgram {
    /// Returns the index of its first option, if these words run a command through it.
    fn options_start(&self, name: &str, words: &[ShellWord]) -> Option<usize> {
        if !self.names.contains(&name) {
            return None;
        }
        if self.subcommands.is_empty() {
            return Some(1);
        }
        let then = |word: &ShellWord| self.subcommands.contains(&&*word.value);
        let at = words[1..].iter().position(then)? + 1;
        // Only options or a workspace name may come before the subcommand.
        let is_before = |word: &ShellWord| word.value.starts_with('-') || word.value == "workspace";
        (at == 1 || is_before(&words[1]) && words[at].value != "x").then_some(at + 1)
    }

    /// Returns how many words the option at the start of `words` takes. `None` if the option is
    /// unknown.
    fn option_length(&self, words: &[ShellWord]) -> Option<usize> {
        let option = words[0].value.as_str();
        if self.flags.contains(&option) {
            return Some(1);
        }
        if self.valued.contains(&option) {
            return Some(2);
        }
        if let Some((name, _)) = option.split_once('=')
            && name.starts_with("--")
        {
            return self.valued.contains(&name).then_some(1);
        }
        if option.starts_with("--") {
            return None;
        }
        let is_short = |option: &&&str| option.len() == 2;
        if self.valued.iter().filter(is_short).any(|valued| option.starts_with(valued)) {
            return Some(1);
        }
        let is_flag = |c: char| self.flags.iter().any(|flag| flag.len() == 2 && flag.ends_with(c));
        option[1..].chars().all(is_flag).then_some(1)
    }
}

/// `A=1 B=2 command`
fn unwrap_assignments(words: &[ShellWord]) -> WrapperLayer {
    let end = words.iter().position(|word| !is_assignment(&word.value)).unwrap_or(words.len());
    let inner = (end < words.len()).then_some(end..words.len());
    if are_harmless_assignments(&words[..end]) {
        return WrapperLayer {
            command_ranges: inner.into_iter().collect(),
            is_transparent: true,
            keeps_folder: true,
            ..WrapperLayer::default()
        };
    }
    // Bash keeps its command tables in arrays.
    let is_array =
        |word: &ShellWord| word.value.split('=').next().is_some_and(|it| it.contains('['));
    let why = if words[..end].iter().any(is_array) {
        OpaqueReason::Redefines
    } else {
        OpaqueReason::Assignment
    };
    WrapperLayer { command_ranges: inner.into_iter().collect(), ..WrapperLayer::with_reason(why) }
}

/// `command -v x` runs nothing.
fn is_lookup(words: &[ShellWord]) -> bool {
    words.get(1).is_some_and(|word| matches!(&*word.value, "-v" | "-V"))
}

fn unwrap_wrapper(
    words: &[ShellWord],
    name: &str,
    wrapper: &WrapperProgram,
    start: usize,
) -> WrapperLayer {
    let mut at = start;
    // Other words come before the subcommand.
    if start > 2 {
        return guess_unknown_option(words, at);
    }
    while let Some(word) = words.get(at) {
        if !word.is_literal() {
            return WrapperLayer::guess_commands(words, at, OpaqueReason::WrapperOptions);
        }
        if word.value == "--" {
            at += 1;
            break;
        }
        if !word.value.starts_with('-') || word.value == "-" {
            break;
        }
        match wrapper.option_length(&words[at..]) {
            Some(length) => at += length,
            None => return guess_unknown_option(words, at),
        }
    }
    let mut operands = words[at.min(words.len())..].iter().take(wrapper.operands);
    if !operands.all(|word| word.is_literal() && (!wrapper.numbers || is_number(&word.value))) {
        return WrapperLayer::guess_commands(words, at, OpaqueReason::WrapperOptions);
    }
    let first = at;
    at += wrapper.operands;
    if at >= words.len() {
        return WrapperLayer { lacks_command: true, ..WrapperLayer::default() };
    }
    if name == "flock" && words[at].value == "-c" {
        return unwrap_script_option(words, at);
    }
    if words[at].value.starts_with('-') {
        return WrapperLayer::guess_commands(words, first, OpaqueReason::WrapperOptions);
    }
    if wrapper.kind == WrapperKind::Script {
        return WrapperLayer {
            // Appended words are a part of the script.
            lacks_command: true,
            scripts: vec![(join_values(&words[at..]), ScriptLanguage::Bash)],
            keeps_folder: name == "eval",
            ..require_literal(&words[at..])
        };
    }
    let is_xargs = matches!(name, "xargs" | "gxargs");
    // The classification of the nested command assumes the usual environment variables.
    let keeps_variables = name != "env" || at == start;
    let is_transparent = wrapper.kind == WrapperKind::Transparent && keeps_variables;
    WrapperLayer {
        command_ranges: iter::once(at..words.len()).collect(),
        has_open_end: is_xargs,
        placeholder: match name {
            // `/_` stands for the changed file.
            "entr" => Some(ArgPlaceholder::Path("/_")),
            _ if is_xargs => xargs_placeholder(&words[1..at]),
            _ => None,
        },
        is_transparent,
        keeps_folder: is_transparent || matches!(name, "builtin" | "command" | "env" | "exec"),
        ..WrapperLayer::default()
    }
}

/// Whether a word is a duration, a priority or a CPU set.
fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && word.chars().all(|c| c.is_ascii_hexdigit() || ".,-xsmhd".contains(c))
}

/// Guesses commands after an unknown option. Its value may be a command line itself, as with `env
/// -S`.
fn guess_unknown_option(words: &[ShellWord], at: usize) -> WrapperLayer {
    let scripts = words[at..]
        .iter()
        .map(|word| word.value.trim_start_matches('-'))
        .filter(|value| value.contains([' ', '\t', '=']))
        .map(|value| value.split_once('=').map_or(value, |(_, value)| value))
        .map(|value| (value.strip_prefix('S').unwrap_or(value).to_owned(), ScriptLanguage::Other))
        .collect();
    WrapperLayer {
        scripts,
        ..WrapperLayer::guess_commands(words, at, OpaqueReason::WrapperOptions)
    }
}

/// Returns the placeholders of `xargs -I`. The last option wins, but a word that looks like one
/// may be the value of another, so all are returned.
fn xargs_placeholder(options: &[ShellWord]) -> Option<ArgPlaceholder> {
    let value = |(at, word): (usize, &ShellWord)| match word.value.strip_prefix("-I")? {
        "" => options.get(at + 1).map(|word| word.value.clone()),
        attached => Some(attached.to_owned()),
    };
    let values: Vec<String> = options.iter().enumerate().filter_map(value).collect();
    (!values.is_empty()).then_some(ArgPlaceholder::Line(values))
}

fn is_uncertain_runner(name: &str, words: &[ShellWord]) -> bool {
    UNCERTAIN_RUNNERS.iter().any(|(names, then)| {
        let is_subcommand = |word: &ShellWord| then.contains(&&*word.value);
        names.contains(&name) && (then.is_empty() || words[1..].iter().any(is_subcommand))
    }) || is_bisect_run(name, words)
}

/// `git bisect run command`, also behind options.
fn is_bisect_run(name: &str, words: &[ShellWord]) -> bool {
    let is_run = |pair: &[ShellWord]| pair[0].value == "bisect" && pair[1].value == "run";
    name == "git" && words.windows(2).any(is_run)
}

/// `find -exec command ;`, `fd -x command`
///
/// `is_end` tells whether a word ends the command; `;` always does.
fn unwrap_exec_options(
    words: &[ShellWord],
    is_end: impl Fn(&[ShellWord], &ShellWord) -> bool,
) -> WrapperLayer {
    let mut layer =
        WrapperLayer { placeholder: Some(ArgPlaceholder::Path("{}")), ..WrapperLayer::default() };
    // Options inside a nested command count, too: they may be values of other options.
    for start in (1..words.len()).filter(|&at| is_exec_option(&words[at].value)).map(|at| at + 1) {
        let ends = |at: &usize| {
            let word = &words[*at];
            word.value == ";" || is_end(&words[start - 1..*at], word)
        };
        // `\;` in quotes ends the command if nothing else does.
        let is_quoted = |at: &usize| words[*at].value == "\\;";
        let end = (start..words.len()).find(ends).or((start..words.len()).find(is_quoted));
        let end = end.unwrap_or(words.len());
        if start < end {
            layer.command_ranges.push(start..end);
            // Without a placeholder, `fd` appends the path.
            let has_place = |word: &ShellWord| word.value.contains('{');
            layer.has_open_end |= !words[start..end].iter().any(has_place);
        }
        layer.approval_reason = Some(OpaqueReason::RiskyArgument);
    }
    layer
}

/// For `find -exec`, a `+` directly after `{}` ends the command.
fn ends_with_path(before: &[ShellWord], word: &ShellWord) -> bool {
    let takes_many = matches!(&*before[0].value, "-exec" | "-execdir");
    word.value == "+" && takes_many && before.last().is_some_and(|path| path.value == "{}")
}

fn is_exec_option(word: &str) -> bool {
    matches!(
        word,
        "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch"
    )
}

#[cfg(test)]
mod tests;
