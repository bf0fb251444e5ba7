//! Operands and commands of programs that set something, write a file or say what others run.

use crate::shell::word::Word;

/// How many operands a program has that it only reads, and the letters of its options that take
/// the next word: it writes the next one.
const READ: &[(&str, usize, &str)] =
    &[("hostname", 0, ""), ("uniq", 1, "fsw"), ("xxd", 1, "Rcglnos")];

/// Commands of programs that say what these run later.
const COMMANDS: &[(&str, &[&str])] = &[
    ("gh", &["alias", "config"]),
    ("kubectl", &["config set-", "config set"]),
    ("oc", &["config set-", "config set"]),
    ("pip", &["config set", "config edit"]),
];

/// Whether something is known of the operands of a program.
pub(super) fn are_known(program: &str) -> bool {
    matches!(program, "date" | "ip")
        || READ.iter().any(|it| it.0 == program)
        || COMMANDS.iter().any(|it| it.0 == program)
}

#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let commands = COMMANDS.iter().map(|it| it.0);
    READ.iter().map(|it| it.0).chain(commands).chain(["date", "ip"])
}

/// Whether one of them does more than to tell.
pub(super) fn act(program: &str, rest: &[Word]) -> bool {
    let read = READ.iter().find(|it| it.0 == program);
    let mut commands = COMMANDS.iter().filter(|it| it.0 == program).flat_map(|it| it.1);
    read.is_some_and(|(_, read, letters)| writes(rest, *read, letters))
        || commands.any(|command| has_command(rest, command))
        || program == "date" && sets_clock(rest)
        || program == "ip" && rest.iter().any(reads_commands)
}

/// Whether there is one more than those that are read.
fn writes(rest: &[Word], read: usize, letters: &str) -> bool {
    if rest.iter().any(|word| word.glob) {
        return true;
    }
    let mut operands = 0;
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match word.value.strip_prefix('-') {
            Some(option) if option.len() == 1 && letters.contains(option) => drop(words.next()),
            Some(option) if !option.is_empty() => {}
            _ => operands += 1,
        }
    }
    operands > read
}

/// Whether the words of a command come one after the other, perhaps behind the value of an
/// option; the last one may go on.
fn has_command(rest: &[Word], command: &str) -> bool {
    let operands: Vec<&Word> = rest.iter().filter(|it| !it.value.starts_with('-')).collect();
    let wanted: Vec<&str> = command.split(' ').collect();
    let (last, before) = wanted.split_last().unwrap_or((&"", &[]));
    let is_at = |words: &[&Word]| {
        let (end, first) = (words[before.len()], &words[..before.len()]);
        let is_last = if last.ends_with('-') { end.may_begin(last) } else { end.value == **last };
        first.iter().zip(before).all(|(word, wanted)| word.value == *wanted)
            && (is_last || !end.is_literal() && end.may_begin(last))
    };
    operands.windows(wanted.len()).take(2).any(is_at)
}

/// Whether `date` is told the time by an operand.
fn sets_clock(rest: &[Word]) -> bool {
    const VALUED: &[&str] = &["-d", "-f", "-r", "-v", "--date", "--file", "--reference"];
    let takes_next = |word: &Word| {
        let is_long = |it: &&str| it.starts_with("--") && it.starts_with(&*word.value);
        let is_cut = word.value.len() > 2 && VALUED.iter().any(|it| is_long(it));
        let cluster = word.value.strip_prefix('-').filter(|it| !it.starts_with('-'));
        // The first letter that takes a value takes what stands behind it.
        let at = cluster.and_then(|it| it.find(['I', 'd', 'f', 'r', 'v']));
        let is_last =
            at.zip(cluster).is_some_and(|(at, it)| at + 1 == it.len() && !it.ends_with('I'));
        is_cut || is_last
    };
    // On systems that have it, this sets nothing.
    let only_shows = rest.iter().any(|word| word.value == "-j");
    let is_time = |(at, word): (usize, &Word)| {
        let is_value = at > 0 && takes_next(&rest[at - 1]);
        !is_value && !word.value.starts_with(['-', '+'])
    };
    !only_shows && rest.iter().enumerate().any(is_time)
}

/// Whether an option of `ip` reads commands from a file.
fn reads_commands(word: &Word) -> bool {
    let option = word.value.trim_start_matches('-');
    option.len() < word.value.len() && (option == "b" || option.starts_with("ba"))
}
