//! Arguments that make a program do more than its name says, and removals that cannot be
//! undone.
//!
//! **Invariant:** what is not known to be harmless is not called harmless, but a program
//! without a profile is left to the rules.

mod acts;
mod profiles;
mod sed;

use self::acts::Acts;
use self::profiles::{PROFILES, Profile};
use super::alias;
use super::program::known_name;
use super::word::{Word, is_listed};

/// Whether something is known of the arguments of a program of this name.
#[cfg(all(feature = "exec", unix))]
pub(super) fn has_profile(program: &str) -> bool {
    PROFILES.iter().any(|profile| profile.names.contains(&&*known_name(program)))
}

/// The programs of which something is known.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().flat_map(|profile| profile.names).copied().chain(acts::names())
}

/// Whether an argument of a known program may run another one or write a file.
///
/// `open_end` says that more words may come, which nobody has seen.
pub(super) fn has_argument(words: &[Word], open_end: bool) -> bool {
    let Some(head) = words.first() else { return false };
    let name = known_name(&head.value);
    if name == "wait" {
        return words[1..].iter().any(|word| word.value.starts_with('-'));
    }
    if name == "stty" {
        return open_end || words[1..].iter().any(|word| !is_terminal_setting(&word.value));
    }
    if matches!(&*name, "[" | "printf" | "test") {
        let names_one = words[1..].iter().any(|word| names_variable(&word.value));
        return names_one || name == "printf" && counts(&words[1..]);
    }
    let is_open = || {
        open_end || (1..words.len()).any(|at| words[at].may_be_option() && !is_message(words, at))
    };
    if has_operand(&name, &words[1..], open_end) {
        return true;
    }
    let Some(profile) = PROFILES.iter().find(|profile| profile.names.contains(&&*name)) else {
        let mut known = acts::of(&name).into_iter().chain(modules(&name, &words[1..]));
        let acts = |it: &Acts| words[1..].iter().any(|word| it.object_to(&word.value));
        return known.any(|it| is_open() || acts(it));
    };
    is_open()
        || arguments(words, profile).iter().any(|word| profile.objects_to(&word.value))
        || match profile.names[0] {
            "awk" => awk_programs(words).any(|word| word.unknown || awk_acts(&word.value)),
            "cargo" => {
                arguments(words, profile).iter().any(|word| cargo_acts(&word.value))
                    || clippy_acts(words)
            }
            "curl" => words[1..].iter().any(|word| names_file(&word.value)),
            "git" => git_acts(words),
            "make" => words[1..].iter().any(|word| word.value.contains('=')),
            "npm" => {
                words[1..].iter().any(|word| NPM_ACTS.contains(&&*word.value))
                    || arguments(words, profile).iter().any(|word| is_long(&word.value))
            }
            // An editor of lines takes `!` for a command.
            "less" | "vim" => words[1..].iter().any(|word| word.value.starts_with(['+', '!'])),
            "sed" => sed_acts(words),
            "tar" => {
                words.get(1).is_some_and(|word| profile.has_letter(&word.value))
                    || names_host(words)
            }
            _ => false,
        }
}

/// Programs that write an operand, or set something to it: how many they have that they only
/// read, and the letters of their options that take the next word.
const OPERANDS: &[(&str, usize, &str)] =
    &[("hostname", 0, ""), ("uniq", 1, "fsw"), ("xxd", 1, "Rcglnos")];

/// Whether it may have such an operand.
fn has_operand(name: &str, rest: &[Word], open_end: bool) -> bool {
    let Some((_, read, letters)) = OPERANDS.iter().find(|it| it.0 == name) else { return false };
    if open_end || rest.iter().any(|word| word.may_be_option() || word.glob) {
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
    operands > *read
}

/// What is known of the programs that Python may run as modules, each once. Which option names
/// one is not certain: letters stand together, and some take values.
fn modules(program: &str, words: &[Word]) -> Vec<&'static Acts> {
    let mut known: Vec<&Acts> = Vec::new();
    if !matches!(program, "py" | "pypy" | "python") {
        return known;
    }
    for (at, word) in words.iter().enumerate() {
        let option = word.value.strip_prefix('-').filter(|option| !option.starts_with('-'));
        let Some((_, attached)) = option.and_then(|option| option.split_once('m')) else {
            continue;
        };
        let next = words.get(at + 1).map(|word| word.value.as_str());
        let name = if attached.is_empty() { next } else { Some(attached) }.unwrap_or_default();
        let name = name.strip_suffix(".__main__").unwrap_or(name);
        let acts = acts::of(&known_name(name));
        known.extend(acts.filter(|acts| !known.iter().any(|it| std::ptr::eq(*it, *acts))));
    }
    known
}

/// Whether cargo gives the compiler options behind `--` that are dangerous.
fn clippy_acts(words: &[Word]) -> bool {
    let (before, behind) = match words.iter().position(|word| word.value == "--") {
        Some(end) => words.split_at(end),
        None => return false,
    };
    let compiler = acts::of("rustc").filter(|_| before.iter().any(|it| it.value == "clippy"));
    compiler.is_some_and(|rustc| behind.iter().any(|word| rustc.object_to(&word.value)))
}

/// Whether tar may take a part of a name for a machine, and start a shell there.
fn names_host(words: &[Word]) -> bool {
    let may_be = |word: &Word| {
        let value = word.value.as_str();
        value.contains(':') && (!value.starts_with("--") || value.starts_with("--f"))
    };
    words[1..].iter().any(may_be) && !words.iter().any(|word| word.value == "--force-local")
}

/// Whether a text among the arguments may be a command, where an argument is dangerous.
pub(super) fn may_run(words: &[Word]) -> bool {
    let name = words.first().map(|head| known_name(&head.value));
    !matches!(name.as_deref(), Some("sed" | "gsed")) || sed_acts(words)
}

/// Whether commands in a text that `program` is given may be put together when it runs, so that
/// no word of the text is their name.
pub(super) fn builds_commands(program: &str, text: &str) -> bool {
    match program {
        "sed" | "gsed" => true,
        "awk" | "gawk" | "mawk" | "nawk" => awk_runs(text),
        // They say which keys change a line that a shell reads.
        "reset" | "stty" | "tset" => true,
        // No program: a variable.
        "" | "cargo" | "git" | "hg" | "jj" if alias::is_made(text) => true,
        // A shell reads it in the end.
        _ => text.contains(['$', '`']) || text.contains('/') && text.contains(['*', '?', '[']),
    }
}

/// Whether an argument of `stty` leaves alone which keys end, edit or change a line.
fn is_terminal_setting(argument: &str) -> bool {
    const HARMLESS: &str = "\
        --all --save -F -a -echo -echoe -g -ixon -onlcr -opost -tostop cols columns cooked echo echoe \
        ixon onlcr opost rows sane size speed tostop";
    is_listed(HARMLESS, argument) || argument.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether bash takes what follows as a variable, and runs what stands in its subscript.
fn names_variable(argument: &str) -> bool {
    argument.starts_with("-v") || argument.starts_with("-R")
}

/// Whether `printf` stores in a variable how much it has written, such as in `PATH`: with `%n`
/// bash does.
fn counts(arguments: &[Word]) -> bool {
    let arguments = match arguments {
        [end, rest @ ..] if end.value == "--" => rest,
        all => all,
    };
    let [format, _, ..] = arguments else { return false };
    let is_between = |c: char| c.is_ascii_digit() || "#'+- .*hjlLtz".contains(c);
    let format_of = |rest: &str| rest.trim_start_matches(is_between).starts_with('n');
    !format.is_literal() || format.value.replace("%%", "").split('%').skip(1).any(format_of)
}

/// What may be options: everything before `--`.
///
/// After another option, `--` may be the value of that one, and options go on. To `find` it
/// means nothing; of all these programs, `cargo` is sure to end its options there.
fn arguments<'w>(words: &'w [Word], profile: &Profile) -> &'w [Word] {
    let ends = |at: usize| {
        words[at].value == "--"
            && !profile.single_dash
            && (profile.names[0] == "cargo" || !words[at - 1].value.starts_with('-'))
    };
    let end = (1..words.len()).find(|&at| ends(at)).unwrap_or(words.len());
    &words[1..end]
}

impl Profile {
    fn objects_to(&self, argument: &str) -> bool {
        let Some(option) = argument.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            return false;
        };
        let long = option.strip_prefix('-');
        if long.is_none() && !self.single_dash {
            return self.has_letter(option);
        }
        let name = long.unwrap_or(option).split('=').next().unwrap_or_default();
        // The end of all options, or the value of one; and no option is a number.
        if argument == "--" || self.single_dash && option.starts_with(|c: char| c.is_ascii_digit())
        {
            return false;
        }
        !is_listed(self.harmless, name)
    }

    fn has_letter(&self, cluster: &str) -> bool {
        cluster.chars().any(|c| self.letters.contains(c))
    }
}

/// Whether the word is the message of a commit, which may be anything.
fn is_message(words: &[Word], at: usize) -> bool {
    let is_text = words.get(1).is_some_and(|word| matches!(&*word.value, "commit" | "tag"));
    is_text
        && known_name(&words[0].value) == "git"
        && matches!(&*words[at - 1].value, "-m" | "-am" | "--message")
        && !words[at].splits
}

/// Whether curl would send a file of this machine, or take one for the answer.
fn names_file(argument: &str) -> bool {
    // In addresses it takes brackets for several addresses at once, of any scheme.
    let scheme = argument.split_once(':').map_or("", |(scheme, _)| scheme);
    let address = argument.to_ascii_lowercase().replace(['{', '}', '[', ']'], "");
    let is_option = argument.starts_with('-');
    argument.starts_with('@')
        || is_option && argument.contains('@')
        || address.contains("file:")
        || scheme.contains(['{', '['])
}

/// Whether cargo gives the compiler what stands behind `--`, or is another one itself.
fn cargo_acts(argument: &str) -> bool {
    matches!(argument, "rustc" | "rustdoc") || argument.starts_with('+') && argument.contains('/')
}

/// Whether an option with one dash has a name of several letters, as npm takes it.
fn is_long(argument: &str) -> bool {
    argument.starts_with('-') && !argument.starts_with("--") && argument.len() > MOST_LETTERS
}

/// How long a dash and letters that stand together are at most: `-ddd`.
const MOST_LETTERS: usize = 4;

/// The words that may be programs for awk: all but what parts fields, where that comes first.
fn awk_programs(words: &[Word]) -> impl Iterator<Item = &Word> {
    let parted = match words.get(1) {
        Some(option) if option.value == "-F" => 2,
        Some(option) if option.value.starts_with("-F") => 1,
        _ => 0,
    };
    let is_known = |word: &&Word| word.is_literal();
    let parted = words[1..].iter().take(parted).take_while(is_known).count();
    words[1 + parted..].iter()
}

/// Whether a program for awk does more than print what it reads.
fn awk_acts(program: &str) -> bool {
    // This compares.
    let program = &program.replace(">=", "");
    [">", "close", "ARGV"].iter().any(|word| program.contains(word)) || awk_runs(program)
}

/// Whether a program for awk may run others.
fn awk_runs(program: &str) -> bool {
    let program = program.replace("||", "");
    ["|", "@", "system", "getline"].iter().any(|word| program.contains(word))
}

/// Commands of npm that change what it runs, or run what the arguments say.
const NPM_ACTS: &[&str] = &["c", "config", "edit", "explore", "pkg", "plugin", "set", "set-script"];

/// Commands of git that run what the repository or the arguments say, or write any file that
/// these name.
const GIT_ACTS: &str = "\
    bisect bundle config credential credential-cache credential-store daemon difftool fast-import \
    filter-branch filter-repo for-each-repo hook instaweb interpret-trailers mailinfo maintenance \
    merge-file merge-index mergetool p4 pack-objects receive-pack remote-ext remote-fd send-email shell \
    submodule update-index upload-archive upload-pack var web--browse";

/// Options of one letter that are dangerous after one command of git.
const GIT_LETTERS: &[(&str, &str)] = &[
    ("archive", "o"),
    ("bugreport", "o"),
    ("clone", "cu"),
    ("diagnose", "o"),
    ("fetch", "u"),
    ("format-patch", "o"),
    ("grep", "O"),
    ("help", "imw"),
    ("index-pack", "o"),
    ("init", "c"),
    ("ls-remote", "u"),
    ("mailsplit", "o"),
    ("rebase", "xs"),
    ("merge", "s"),
    ("pull", "s"),
];

fn git_acts(words: &[Word]) -> bool {
    let Some(command) = words[1..].iter().find(|word| word.value != "--no-pager") else {
        return false;
    };
    let command = command.value.as_str();
    // Options before the command change what it works on, and what runs for it.
    if command.starts_with('-') && !matches!(command, "--version" | "--help") {
        return true;
    }
    let letters = GIT_LETTERS.iter().find(|(name, _)| *name == command).map(|(_, letters)| letters);
    let has_letter = |word: &Word| {
        let cluster = word.value.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        cluster.is_some_and(|rest| rest.chars().any(|c| letters.is_some_and(|l| l.contains(c))))
    };
    let is_told = |word: &Word| matches!(&*word.value, "--get" | "--list" | "-l");
    // Behind `--` these are values.
    let mut options = words.iter().take_while(|word| word.value != "--");
    let only_tells = command == "config" && options.any(is_told);
    // The hooks of a repository in a folder run.
    let is_folder =
        |word: &Word| word.value.starts_with(['.', '/', '~']) || word.value.starts_with("file:");
    let pushes = matches!(command, "http-push" | "push" | "send-pack");
    if pushes && words[1..].iter().any(is_folder) {
        return true;
    }
    // `submodule--helper` is what does the work of `submodule`.
    let base = command.split_once("--").map_or(command, |(base, _)| base);
    [command, base].iter().any(|name| is_listed(GIT_ACTS, name)) && !only_tells
        || words.iter().any(|word| has_letter(word) || word.value.contains("ext::"))
}

/// Whether one of the programs for sed does more than print and replace.
fn sed_acts(words: &[Word]) -> bool {
    let is_harmless =
        |word: Option<&Word>| word.is_some_and(|it| it.is_literal() && sed::is_harmless(&it.value));
    let mut words = words[1..].iter();
    let (mut operand, mut is_given) = (None, false);
    while let Some(word) = words.next() {
        match given_sed(&word.value) {
            Given::Here => return true,
            Given::Next if !is_harmless(words.next()) => return true,
            Given::Next => is_given = true,
            Given::No if !word.value.starts_with('-') => operand = operand.or(Some(word)),
            Given::No => {}
        }
    }
    !is_given && !is_harmless(operand)
}

/// Where an option gives sed a program.
enum Given {
    No,
    /// In the next word.
    Next,
    /// In the same word, perhaps behind other letters.
    Here,
}

fn given_sed(word: &str) -> Given {
    let Some(letters) = word.strip_prefix('-') else { return Given::No };
    match letters.strip_suffix('e') {
        _ if word == "--expression" => Given::Next,
        Some(flags) if flags.chars().all(|c| "nErsuz".contains(c)) => Given::Next,
        _ if letters.starts_with("-e") => Given::Here,
        _ if letters.contains('e') && !letters.starts_with('-') => Given::Here,
        _ => Given::No,
    }
}

/// Programs that end the work of the whole machine.
const DESTROYERS: &str = "\
    blkdiscard cfdisk fdisk halt mkfs mkswap parted poweroff reboot sfdisk sgdisk shred shutdown \
    telinit wipefs";

/// Whether it removes by force, or destroys what cannot be brought back.
pub(super) fn is_destructive(words: &[Word]) -> bool {
    let Some(head) = words.first() else { return false };
    let name = known_name(&head.value);
    match &*name {
        "rm" => is_forced_removal(words),
        "dd" => words.iter().any(|word| word.value.starts_with("of=/dev/")),
        name => is_destroyer(name),
    }
}

/// The same of a text of words.
pub(super) fn is_destructive_text(text: &str) -> bool {
    let is_one = |name: &str| name == "rm" || name == "dd" || is_destroyer(name);
    let is_possible = text.split(' ').next().is_some_and(|program| is_one(&known_name(program)));
    is_possible && is_destructive(&text.split(' ').map(Word::literal).collect::<Vec<_>>())
}

fn is_destroyer(name: &str) -> bool {
    is_listed(DESTROYERS, name) || name.starts_with("mkfs.")
}

fn is_forced_removal(words: &[Word]) -> bool {
    let is_forced = |word: &Word| match word.value.strip_prefix('-') {
        // `--force` may be cut short, and so may `--interactive`.
        Some(rest) if rest.starts_with('-') => match rest.split_once('=') {
            Some((name, value)) => "-interactive".starts_with(name) && value.starts_with('n'),
            None => rest.len() > 1 && "-force".starts_with(rest),
        },
        Some(letters) => letters.contains('f'),
        None => false,
    };
    let is_root = |word: &Word| {
        let path = word.value.trim_end_matches(['*', '/', '.']);
        matches!(path, "" | "~" | "$HOME" | "${HOME}")
            && !word.value.is_empty()
            && word.value.starts_with(['/', '~', '$'])
    };
    let end = words.iter().position(|word| word.value == "--").unwrap_or(words.len());
    words[..end].iter().any(is_forced) || words[1..].iter().any(is_root)
}

#[cfg(test)]
mod tests;
