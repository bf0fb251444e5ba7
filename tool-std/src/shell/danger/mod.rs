//! Arguments that make a program do more than its name says, and removals that cannot be
//! undone.
//!
//! **Invariant:** what is not known to be harmless is not called harmless, but a program
//! without a profile is left to the rules.

mod acts;
mod awk;
mod operands;
mod profiles;
mod sed;
mod values;
mod variables;

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
    let profiles = PROFILES.iter().flat_map(|profile| profile.names).copied();
    profiles
        .chain(operands::names())
        .chain(["stty"])
        .chain(acts::names())
        .chain(variables::NAMES.iter().copied())
}

/// Whether an argument of a known program may run another one or write a file.
///
/// `open_end` says that more words may come, which nobody has seen.
pub(super) fn has_argument(words: &[Word], open_end: bool) -> bool {
    let Some((head, rest)) = words.split_first() else { return false };
    let name = known_name(&head.value);
    if let Some(names_one) = variables::of(&name) {
        return names_one(rest);
    }
    let profile = PROFILES.iter().find(|profile| profile.names.contains(&&*name));
    let acts = match profile {
        Some(_) => Vec::new(),
        None => acts::of(&name).into_iter().chain(modules(&name, rest)).collect(),
    };
    let has_operands = operands::are_known(&name);
    let is_known = profile.is_some() || has_operands || !acts.is_empty() || name == "stty";
    // No row is asked before this, so that none can forget what nobody has seen.
    let is_open = || {
        open_end || (1..words.len()).any(|at| words[at].may_be_option() && !is_message(words, at))
    };
    is_known
        && (is_open()
            || has_operands && operands::act(&name, rest)
            || acts.iter().any(|it| it.object_to(rest))
            || name == "stty" && rest.iter().any(|word| !is_terminal_setting(&word.value))
            || profile.is_some_and(|profile| is_object(words, profile)))
}

/// Whether what is known of a program by a profile, or by code, objects to an argument.
fn is_object(words: &[Word], profile: &Profile) -> bool {
    let words = &*values::without_harmless(words, profile.names[0]);
    let rest = &words[1..];
    arguments(words, profile).iter().any(|word| profile.objects_to(&word.value))
        || match profile.names[0] {
            "awk" => {
                awk_programs(words).any(|word| !word.is_literal() || !awk::is_harmless(&word.value))
            }
            "cargo" => arguments(words, profile).iter().any(cargo_acts) || clippy_acts(words),
            "curl" => rest.iter().any(names_file),
            "git" => git_acts(words),
            // Any word that is not known may set a variable, but no option that is there.
            "make" => rest.iter().any(|word| {
                word.value.contains('=') || !word.is_literal() && !word.value.starts_with('-')
            }),
            "npm" => {
                let is_one = |word: &Word| NPM_ACTS.iter().any(|name| may_be(word, name));
                arguments(words, profile).iter().any(|word| is_one(word) || is_long(&word.value))
            }
            // An editor of lines takes `!` for a command.
            "less" | "vim" => rest.iter().any(|word| word.may_begin("+") || word.may_begin("!")),
            "sed" => sed_acts(words),
            "tar" => {
                rest.first().is_some_and(|it| !it.is_literal() || profile.has_letter(&it.value))
                    || names_host(rest)
            }
            _ => false,
        }
}

/// Whether a word is `text`, or may turn out to be that.
fn may_be(word: &Word, text: &str) -> bool {
    if word.is_literal() { word.value == text } else { word.may_begin(text) }
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
    compiler.is_some_and(|rustc| rustc.object_to(behind))
}

/// Whether tar may take a part of a name for a machine, and start a shell there.
fn names_host(rest: &[Word]) -> bool {
    let is_archive = |at: usize| {
        rest[at].value.starts_with("--f") || at > 0 && rest[at - 1].value.ends_with('f')
    };
    let may_be = |(at, word): (usize, &Word)| {
        let value = word.value.as_str();
        value.contains(':') && (!value.starts_with("--") || value.starts_with("--f"))
            || !word.is_literal() && is_archive(at)
    };
    // Behind `--` it is the name of a file.
    let is_local =
        || rest.iter().take_while(|it| it.value != "--").any(|it| it.value == "--force-local");
    rest.iter().enumerate().any(may_be) && !is_local()
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
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => awk_runs(text),
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
    // Behind the command that `npx` runs stand the words of that, which is judged itself.
    let runs = |at: usize| {
        let is_free = at == 1 || matches!(&*words[at - 1].value, "-y" | "--yes" | "--no-install");
        is_free && words[at].is_literal() && !words[at].value.starts_with('-')
    };
    let is_npx = known_name(&words[0].value) == "npx";
    let is_end = |at: usize| ends(at) || is_npx && runs(at);
    let end = (1..words.len()).find(|&at| is_end(at)).unwrap_or(words.len());
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
fn names_file(word: &Word) -> bool {
    let argument = word.value.as_str();
    let known = if word.splits { "" } else { &argument[..word.fixed] };
    // In addresses it takes brackets for several addresses at once, of any scheme.
    let (scheme, is_whole) = match argument.split_once(':') {
        Some((scheme, _)) if word.is_literal() || scheme.len() < word.fixed => (scheme, true),
        Some((scheme, _)) => (scheme, false),
        None => ("", word.is_literal()),
    };
    let address = argument.to_ascii_lowercase().replace(['{', '}', '[', ']'], "");
    let is_option = argument.starts_with('-');
    argument.starts_with('@')
        || is_option && argument.contains('@')
        || address.contains("file:")
        || scheme.contains(['{', '['])
        || !is_whole
            && (argument.contains(['{', '[']) || "file:".starts_with(&known.to_ascii_lowercase()))
}

/// Whether cargo gives the compiler what stands behind `--`, or is another one itself.
fn cargo_acts(word: &Word) -> bool {
    let is_other = word.value.contains('/') || !word.is_literal();
    ["rustc", "rustdoc"].iter().any(|name| may_be(word, name))
        || word.value.starts_with('+') && is_other
}

/// Whether an option with one dash has a name of several letters, as npm takes it.
fn is_long(argument: &str) -> bool {
    argument.starts_with('-') && !argument.starts_with("--") && argument.len() > MOST_LETTERS
}

/// How long a dash and letters that stand together are at most: `-ddd`.
const MOST_LETTERS: usize = 4;

/// The words that may be programs for awk: all but what parts fields, where that comes first,
/// and patterns of files behind a program.
fn awk_programs(words: &[Word]) -> impl Iterator<Item = &Word> {
    let parted = match words.get(1) {
        Some(option) if option.value == "-F" => 2,
        Some(option) if option.value.starts_with("-F") => 1,
        _ => 0,
    };
    let is_known = |word: &&Word| word.is_literal();
    let parted = words[1..].iter().take(parted).take_while(is_known).count();
    let words = &words[1 + parted..];
    // What stands behind an option may be the value of that.
    let is_one = |at: usize| {
        let before = if at > 0 { &*words[at - 1].value } else { "" };
        let is_value = before.starts_with('-') && !(before.starts_with("-v") && before.len() > 2);
        words[at].is_literal() && !words[at].value.starts_with('-') && !is_value
    };
    let first = (0..words.len()).find(|&at| is_one(at)).unwrap_or(words.len());
    let may_be = move |(at, word): &(usize, &Word)| *at <= first || word.unknown || !word.glob;
    words.iter().enumerate().filter(may_be).map(|(_, word)| word)
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
    let only_tells = command == "config" && config_tells(&words[1..]);
    // The hooks of a repository in a folder run.
    let is_folder = |word: &Word| [".", "/", "~", "file:"].iter().any(|it| word.may_begin(it));
    let pushes = matches!(command, "http-push" | "push" | "send-pack");
    if pushes && words[1..].iter().any(is_folder) {
        return true;
    }
    let bisects = command == "bisect"
        && words.iter().any(|word| is_listed("bad good log new old reset skip start", &word.value))
        && !words
            .iter()
            .any(|word| matches!(&*word.value, "run" | "visualize" | "view" | "replay"));
    // `submodule--helper` is what does the work of `submodule`.
    let base = command.split_once("--").map_or(command, |(base, _)| base);
    [command, base].iter().any(|name| is_listed(GIT_ACTS, name)) && !only_tells && !bisects
        || words.iter().any(|word| has_letter(word) || word.value.contains("ext::"))
        || (1..words.len()).any(|at| words[at].may_begin("ext::") && !is_message(words, at))
}

/// Whether `git config` only tells what is set. Git reads no options behind a name, and sets that
/// to the word after it.
fn config_tells(words: &[Word]) -> bool {
    const PLACES: &str = "--global --local --system --worktree --show-origin --show-scope -z";
    let words = words.iter().skip_while(|word| word.value != "config").skip(1);
    let mut words = words.skip_while(|word| is_listed(PLACES, &word.value));
    let Some(first) = words.next() else { return true };
    match &*first.value {
        "--get" | "--get-all" | "--get-regexp" | "--list" | "-l" | "get" | "list" => true,
        // A name alone is read; without a dot it is a command of its own, such as `edit`.
        name => {
            let is_name = name.contains('.') && !name.starts_with('-');
            is_name && first.is_literal() && words.next().is_none()
        }
    }
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
    blkdiscard cfdisk fdisk halt mkdosfs mke2fs mkfs mkntfs mkswap parted poweroff reboot sfdisk sgdisk shred shutdown \
    telinit wipefs";

/// Whether it removes by force, or destroys what cannot be brought back.
///
/// `open_end` says that more words may come.
pub(super) fn is_destructive(words: &[Word], open_end: bool) -> bool {
    let Some(head) = words.first() else { return false };
    let name = known_name(&head.value);
    match &*name {
        "rm" => open_end || is_forced_removal(words),
        "find" => {
            words.iter().any(|word| word.value == "-delete") && words[1..].iter().any(is_root)
        }
        "cp" | "install" | "mv" | "tee" => words.iter().any(|word| is_disk(&word.value)),
        "init" => words[1..].iter().any(|word| matches!(&*word.value, "0" | "6")),
        "systemctl" => {
            words[1..].iter().any(|word| is_listed("halt kexec poweroff reboot", &word.value))
        }
        "dd" => words.iter().any(|word| word.value.starts_with("of=/dev/")),
        name => is_destroyer(name),
    }
}

/// Whether a path is that of a whole disk, or a part of one.
fn is_disk(path: &str) -> bool {
    const DISKS: &[&str] =
        &["disk/", "dm-", "hd", "mapper/", "md", "mmcblk", "nvme", "sd", "vd", "xvd"];
    let disk = path.strip_prefix("/dev/");
    disk.is_some_and(|name| DISKS.iter().any(|disk| name.starts_with(disk)))
}

/// The same of a text of words.
pub(super) fn is_destructive_text(text: &str) -> bool {
    let is_one = |name: &str| {
        is_listed("cp dd find init install mv rm systemctl tee", name) || is_destroyer(name)
    };
    let is_possible = text.split(' ').next().is_some_and(|program| is_one(&known_name(program)));
    is_possible && is_destructive(&text.split(' ').map(Word::literal).collect::<Vec<_>>(), false)
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
        Some(letters) => letters.contains('f') || word.splits || word.unknown,
        // What ends with a known text is none of the options that force.
        None => {
            let may_end = word.unknown || !word.value.ends_with(char::is_alphanumeric);
            word.may_be_option() && may_end && !word.value.starts_with('~')
        }
    };
    let end = words.iter().position(|word| word.value == "--").unwrap_or(words.len());
    words[..end].iter().any(is_forced) || words[1..].iter().any(is_root)
}

/// Whether a path is the top of everything, or of all that is somebody's.
fn is_root(word: &Word) -> bool {
    let path = word.value.trim_end_matches(['*', '/', '.']);
    let is_home = path.starts_with('~') && !path.contains('/')
        || path
            .strip_prefix("${HOME")
            .is_some_and(|rest| rest.ends_with('}') && !rest.contains('/'));
    (matches!(path, "" | "$HOME") || is_home)
        && !word.value.is_empty()
        && word.value.starts_with(['/', '~', '$'])
}

#[cfg(test)]
mod tests;
