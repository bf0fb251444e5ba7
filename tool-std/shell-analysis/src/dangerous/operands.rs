//! Operands and subcommands with which programs change settings, write files or configure what
//! others run.

use crate::word::ShellWord;

/// The number of operands that a program only reads, and its short options that take the next
/// word. The program writes the operand after those.
const READ_OPERANDS: &[(&str, usize, &str)] =
    &[("hostname", 0, ""), ("uniq", 1, "fsw"), ("xxd", 1, "Rcglnos")];

/// Subcommands that configure what a program runs later.
const CONFIG_COMMANDS: &[(&str, &[&str])] = &[
    ("gh", &["alias", "config"]),
    ("kubectl", &["config set-", "config set"]),
    ("oc", &["config set-", "config set"]),
    ("pip", &["config set", "config edit"]),
];

/// Whether the operands of a program are profiled.
pub(super) fn has_known_operands(program: &str) -> bool {
    matches!(program, "date" | "ip")
        || READ_OPERANDS.iter().any(|it| it.0 == program)
        || CONFIG_COMMANDS.iter().any(|it| it.0 == program)
}

#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let commands = CONFIG_COMMANDS.iter().map(|it| it.0);
    READ_OPERANDS.iter().map(|it| it.0).chain(commands).chain(["date", "ip"])
}

/// Whether an operand makes the program change something.
pub(super) fn has_dangerous_operand(program: &str, rest: &[ShellWord]) -> bool {
    let read = READ_OPERANDS.iter().find(|it| it.0 == program);
    let mut commands = CONFIG_COMMANDS.iter().filter(|it| it.0 == program).flat_map(|it| it.1);
    read.is_some_and(|(_, read, letters)| has_output_operand(rest, *read, letters))
        || commands.any(|command| has_command(rest, command))
        || program == "date" && sets_clock(rest)
        || program == "ip" && rest.iter().any(reads_commands)
}

/// Whether there are more operands than the program reads.
fn has_output_operand(rest: &[ShellWord], read: usize, letters: &str) -> bool {
    if rest.iter().any(|word| word.is_glob) {
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

/// Whether the words of `command` are consecutive operands, possibly after an option value. The
/// last word may be a prefix.
fn has_command(rest: &[ShellWord], command: &str) -> bool {
    let operands: Vec<&ShellWord> = rest.iter().filter(|it| !it.value.starts_with('-')).collect();
    let wanted: Vec<&str> = command.split(' ').collect();
    let (last, before) = wanted.split_last().unwrap_or((&"", &[]));
    let is_at = |words: &[&ShellWord]| {
        let (end, first) = (words[before.len()], &words[..before.len()]);
        let is_last =
            if last.ends_with('-') { end.may_start_with(last) } else { end.value == **last };
        first.iter().zip(before).all(|(word, wanted)| word.value == *wanted)
            && (is_last || !end.is_literal() && end.may_start_with(last))
    };
    operands.windows(wanted.len()).take(2).any(is_at)
}

/// Whether an operand of `date` sets the clock.
fn sets_clock(rest: &[ShellWord]) -> bool {
    const VALUED: &[&str] = &["-d", "-f", "-r", "-v", "--date", "--file", "--reference"];
    let takes_next = |word: &ShellWord| {
        let is_long = |it: &&str| it.starts_with("--") && it.starts_with(&*word.value);
        let is_cut = word.value.len() > 2 && VALUED.iter().any(is_long);
        let cluster = word.value.strip_prefix('-').filter(|it| !it.starts_with('-'));
        // The first option letter that takes a value takes the rest of the word.
        let at = cluster.and_then(|it| it.find(['I', 'd', 'f', 'r', 'v']));
        let is_last =
            at.zip(cluster).is_some_and(|(at, it)| at + 1 == it.len() && !it.ends_with('I'));
        is_cut || is_last
    };
    // On BSD systems, `-j` only prints.
    let only_shows = rest.iter().any(|word| word.value == "-j");
    let is_time = |(at, word): (usize, &ShellWord)| {
        let is_value = at > 0 && takes_next(&rest[at - 1]);
        !is_value && !word.value.starts_with(['-', '+'])
    };
    !only_shows && rest.iter().enumerate().any(is_time)
}

/// Whether an option of `ip` reads commands from a file.
fn reads_commands(word: &ShellWord) -> bool {
    let option = word.value.trim_start_matches('-');
    option.len() < word.value.len() && (option == "b" || option.starts_with("ba"))
}
