//! The commands inside of a command: `sudo x`, `bash -c 'x'`, `find -exec x ;`.
//!
//! What is found is judged like any other command, and what finds it is judged too.
//!
//! **Invariant:** one layer at a time and no recursion; the caller goes on with what it
//! gets.

mod git;
mod scripts;
mod table;

use std::iter;
use std::ops::Range;

use self::scripts::{
    joined, later, shell, terminal, trap, unread, windows_shell, with_script_option,
};
use self::table::{
    BASH, DECLARE, Kind, OTHER_SHELLS, UNCERTAIN, WINDOWS_SHELLS, WRAPPERS, Wrapper,
};
use super::Why;
use super::program::{has_longer_name, known_name};
use super::word::{Word, is_assignment};

/// Whether a program runs whatever others it is told, in all that it does.
pub(super) fn runs_others(name: &str) -> bool {
    let is_wrapper = WRAPPERS.iter().any(|it| it.then.is_empty() && it.names.contains(&name));
    let is_uncertain =
        UNCERTAIN.iter().any(|(names, then)| then.is_empty() && names.contains(&name));
    let shells = [BASH, OTHER_SHELLS, WINDOWS_SHELLS];
    is_wrapper || is_uncertain || shells.iter().any(|shells| shells.contains(&name))
}

/// The programs that are known to run others.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let wrappers = WRAPPERS.iter().flat_map(|wrapper| wrapper.names);
    let uncertain = UNCERTAIN.iter().flat_map(|(names, _)| *names);
    wrappers.chain(uncertain).chain(BASH).chain(OTHER_SHELLS).chain(WINDOWS_SHELLS).copied()
}

/// What one command says about others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Layer {
    /// Where commands stand among the words.
    pub(super) inner: Vec<Range<usize>>,
    /// Commands with words that do not stand there together.
    pub(super) others: Vec<Vec<Word>>,
    /// Whether it is only possible that commands stand there.
    pub(super) is_guess: bool,
    /// What stands in inner commands for what is not known.
    pub(super) placeholder: Option<Placeholder>,
    /// Whether more words may come at the end.
    pub(super) open_end: bool,
    /// Texts that a shell reads, and whether it reads them as bash does.
    pub(super) scripts: Vec<(String, Language)>,
    /// Whether a shell reads its input.
    pub(super) reads_input: bool,
    /// Why somebody has to be asked.
    pub(super) asks: Option<Why>,
    /// Whether only the commands inside matter.
    pub(super) is_transparent: bool,
    /// Whether what is inside runs in the same folder, and finds the same files there.
    pub(super) stays: bool,
    /// Whether it waits for a command that is not there, or not all of it.
    pub(super) is_bare: bool,
}

/// What stands in the words of a command for something that is put there when it runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Placeholder {
    /// Texts that are chosen, and what comes from the input in their place.
    Line(Vec<String>),
    /// The path of a file that was found. Of `{}` there are parts, such as `{/}`.
    Path(&'static str),
}

impl Placeholder {
    /// Whether it is all of a word.
    pub(super) fn is(&self, word: &Word) -> bool {
        match self {
            Self::Line(texts) => texts.contains(&word.value),
            Self::Path(path) => word.value == *path,
        }
    }

    /// Whether it is in a word.
    pub(super) fn is_in(&self, word: &Word) -> bool {
        match self {
            Self::Line(texts) => texts.iter().any(|text| word.value.contains(text)),
            Self::Path("{}") => ["{}", "{.}", "{/"].iter().any(|part| word.value.contains(part)),
            Self::Path(path) => word.value.contains(path),
        }
    }

    /// The word, with what is not known of it.
    pub(super) fn open(&self, mut word: Word) -> Word {
        if !self.is_in(&word) {
            return word;
        }
        // A path begins with the folder in which it was searched for, but not a part of it.
        let leads = match self {
            Self::Line(texts) => texts.iter().any(|text| word.value.starts_with(text)),
            Self::Path(_) => word.value.starts_with("{/"),
        };
        let known = if word.is_literal() { word.value.len() } else { word.fixed };
        let place = match self {
            Self::Line(texts) => texts.iter().filter_map(|text| word.value.find(text)).min(),
            Self::Path(path) => word.value.find(&path[..1]),
        };
        word.fixed = place.unwrap_or_default().min(known);
        word.unknown = true;
        word.leads |= leads || word.value.starts_with('-');
        if self.is(&word) {
            word.shown.clone_from(&word.value);
        }
        word
    }
}

/// Who reads a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    /// bash, or a shell that differs from it only beyond plain scripts.
    Bash,
    Sh,
    Other,
}

impl Layer {
    fn asking(why: Why) -> Self {
        Self { asks: Some(why), ..Self::default() }
    }

    /// It is not certain where a command begins, so it may be anywhere.
    fn guess(words: &[Word], from: usize, why: Why) -> Self {
        let inner = (from..words.len()).map(|at| at..words.len()).collect();
        Self { inner, is_guess: true, ..Self::asking(why) }
    }

    /// Every word may begin a command.
    pub(super) fn anywhere(words: &[Word]) -> Self {
        Self::guess(words, 1, Why::TooDeep)
    }
}

/// Looks for commands and scripts in the words of one command.
pub(super) fn unwrap(words: &[Word]) -> Layer {
    let Some(head) = words.first() else { return Layer::default() };
    if is_assignment(&head.value) {
        return assignments(words);
    }
    let layer = with_others(known(words, &known_name(&head.value)), words);
    if has_longer_name(&head.value) {
        // It need not be what is known under the shorter name.
        return Layer { is_transparent: false, stays: false, ..layer };
    }
    layer
}

/// Adds what git runs under another name.
fn with_others(layer: Layer, words: &[Word]) -> Layer {
    let git::Inside { commands: others, is_same, is_bare } = git::inside(words);
    let stays = if others.is_empty() { layer.stays } else { is_same };
    Layer { others, stays, is_bare: layer.is_bare || is_bare, ..layer }
}

/// The same for what is known of a program of this name.
fn known(words: &[Word], name: &str) -> Layer {
    if BASH.contains(&name) || OTHER_SHELLS.contains(&name) {
        return shell(words, name);
    }
    if DECLARE.contains(&name) {
        return Layer::asking(Why::Declares);
    }
    match name {
        "." | "source" => Layer { reads_input: true, ..Layer::asking(Why::Sourced) },
        "find" | "gfind" | "bfs" => search(words, ends_with_path),
        "fd" | "fdfind" => search(words, |_, _| false),
        "trap" => trap(words),
        "su" | "script" => with_script_option(words, 1),
        // Without this it is `su`.
        "runuser" if !words.iter().any(|word| word.value == "-u") => with_script_option(words, 1),
        "at" | "batch" | "crontab" => later(words),
        "screen" | "tmux" => terminal(words),
        "command" if is_lookup(words) => Layer::default(),
        _ if is_uncertain(name, words) => Layer { reads_input: true, ..unknown_option(words, 1) },
        _ if WINDOWS_SHELLS.contains(&name) => windows_shell(words),
        _ => match WRAPPERS.iter().find_map(|wrapper| Some((wrapper, wrapper.start(name, words)?)))
        {
            Some((wrapper, start)) => wrapped(words, name, wrapper, start),
            None => Layer::default(),
        },
    }
}

impl Wrapper {
    /// Where its options begin, when it is this program that runs a command.
    fn start(&self, name: &str, words: &[Word]) -> Option<usize> {
        if !self.names.contains(&name) {
            return None;
        }
        if self.then.is_empty() {
            return Some(1);
        }
        let then = |word: &Word| self.then.contains(&&*word.value);
        let at = words[1..].iter().position(then)? + 1;
        // Before it stand options, or a part of a project; all else is another command.
        let is_before = |word: &Word| word.value.starts_with('-') || word.value == "workspace";
        (at == 1 || is_before(&words[1]) && words[at].value != "x").then_some(at + 1)
    }

    /// How many words the option at the start of `words` takes, when it is known.
    fn option(&self, words: &[Word]) -> Option<usize> {
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
fn assignments(words: &[Word]) -> Layer {
    let end = words.iter().position(|word| !is_assignment(&word.value)).unwrap_or(words.len());
    let inner = (end < words.len()).then_some(end..words.len());
    // What bash knows of its commands it keeps in arrays.
    let is_array = |word: &Word| word.value.split('=').next().is_some_and(|it| it.contains('['));
    let why = if words[..end].iter().any(is_array) { Why::Declares } else { Why::Assignment };
    Layer { inner: inner.into_iter().collect(), ..Layer::asking(why) }
}

/// `command -v x` runs nothing.
fn is_lookup(words: &[Word]) -> bool {
    words.get(1).is_some_and(|word| matches!(&*word.value, "-v" | "-V"))
}

fn wrapped(words: &[Word], name: &str, wrapper: &Wrapper, start: usize) -> Layer {
    let mut at = start;
    // Other words stand before the one that tells what comes.
    if start > 2 {
        return unknown_option(words, at);
    }
    while let Some(word) = words.get(at) {
        if !word.is_literal() {
            return Layer::guess(words, at, Why::Wrapper);
        }
        if word.value == "--" {
            at += 1;
            break;
        }
        if !word.value.starts_with('-') || word.value == "-" {
            break;
        }
        match wrapper.option(&words[at..]) {
            Some(length) => at += length,
            None => return unknown_option(words, at),
        }
    }
    let mut operands = words[at.min(words.len())..].iter().take(wrapper.operands);
    if !operands.all(|word| word.is_literal() && (!wrapper.numbers || is_number(&word.value))) {
        return Layer::guess(words, at, Why::Wrapper);
    }
    let first = at;
    at += wrapper.operands;
    if at >= words.len() {
        return Layer { is_bare: true, ..Layer::default() };
    }
    if name == "flock" && words[at].value == "-c" {
        return with_script_option(words, at);
    }
    if words[at].value.starts_with('-') {
        return Layer::guess(words, first, Why::Wrapper);
    }
    if wrapper.kind == Kind::Script {
        return Layer {
            // What comes at the end is a part of the script.
            is_bare: true,
            scripts: vec![(joined(&words[at..]), Language::Bash)],
            stays: name == "eval",
            ..unread(&words[at..])
        };
    }
    let is_xargs = matches!(name, "xargs" | "gxargs");
    // What is said of the command inside holds with the variables that programs are given here.
    let keeps_variables = name != "env" || at == start;
    let is_transparent = wrapper.kind == Kind::Transparent && keeps_variables;
    Layer {
        inner: iter::once(at..words.len()).collect(),
        open_end: is_xargs,
        placeholder: match name {
            // The file that has changed.
            "entr" => Some(Placeholder::Path("/_")),
            _ if is_xargs => placeholder(&words[1..at]),
            _ => None,
        },
        is_transparent,
        stays: is_transparent || matches!(name, "builtin" | "command" | "env" | "exec"),
        ..Layer::default()
    }
}

/// Whether it is a time, a priority or a set of processors.
fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && word.chars().all(|c| c.is_ascii_hexdigit() || ".,-xsmhd".contains(c))
}

/// An option that is not known may hold a command line itself, as that of `env -S` does.
fn unknown_option(words: &[Word], at: usize) -> Layer {
    let scripts = words[at..]
        .iter()
        .map(|word| word.value.trim_start_matches('-'))
        .filter(|value| value.contains([' ', '\t', '=']))
        .map(|value| value.split_once('=').map_or(value, |(_, value)| value))
        .map(|value| (value.strip_prefix('S').unwrap_or(value).to_owned(), Language::Other))
        .collect();
    Layer { scripts, ..Layer::guess(words, at, Why::Wrapper) }
}

/// What `xargs -I {}` replaces. With several options that is the last one, but what looks like
/// one may be the value of another.
fn placeholder(options: &[Word]) -> Option<Placeholder> {
    let value = |(at, word): (usize, &Word)| match word.value.strip_prefix("-I")? {
        "" => options.get(at + 1).map(|word| word.value.clone()),
        attached => Some(attached.to_owned()),
    };
    let values: Vec<String> = options.iter().enumerate().filter_map(value).collect();
    (!values.is_empty()).then_some(Placeholder::Line(values))
}

fn is_uncertain(name: &str, words: &[Word]) -> bool {
    UNCERTAIN.iter().any(|(names, then)| {
        let is_told = |word: &Word| then.contains(&&*word.value);
        names.contains(&name) && (then.is_empty() || words[1..].iter().any(is_told))
    }) || is_bisect(name, words)
}

/// `git bisect run command`, also behind options.
fn is_bisect(name: &str, words: &[Word]) -> bool {
    let is_run = |pair: &[Word]| pair[0].value == "bisect" && pair[1].value == "run";
    name == "git" && words.windows(2).any(is_run)
}

/// `find -exec command ;`, `fd -x command`
///
/// `is_end` says of a word behind an option whether the command ends there; at `;` it always does.
fn search(words: &[Word], is_end: impl Fn(&[Word], &Word) -> bool) -> Layer {
    let mut layer = Layer { placeholder: Some(Placeholder::Path("{}")), ..Layer::default() };
    // Also within a command: what looks like the option there may be the value of another.
    for start in (1..words.len()).filter(|&at| is_exec(&words[at].value)).map(|at| at + 1) {
        let ends = |at: &usize| {
            let word = &words[*at];
            word.value == ";" || is_end(&words[start - 1..*at], word)
        };
        // Written like this it is meant so, where nothing else ends it.
        let is_quoted = |at: &usize| words[*at].value == "\\;";
        let end = (start..words.len()).find(ends).or((start..words.len()).find(is_quoted));
        let end = end.unwrap_or(words.len());
        if start < end {
            layer.inner.push(start..end);
            // Where no word stands for the path, `fd` puts it behind them.
            let has_place = |word: &Word| word.value.contains('{');
            layer.open_end |= !words[start..end].iter().any(has_place);
        }
        layer.asks = Some(Why::Argument);
    }
    layer
}

/// To `find`, a `+` ends what is run with many paths at once, right behind these.
fn ends_with_path(before: &[Word], word: &Word) -> bool {
    let takes_many = matches!(&*before[0].value, "-exec" | "-execdir");
    word.value == "+" && takes_many && before.last().is_some_and(|path| path.value == "{}")
}

fn is_exec(word: &str) -> bool {
    matches!(
        word,
        "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch"
    )
}

#[cfg(test)]
mod tests;
