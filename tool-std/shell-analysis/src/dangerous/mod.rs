//! Detects arguments that make a program run others or write files, and removals that cannot be
//! undone.
//!
//! **Invariant:** an argument that is not known to be harmless counts as dangerous. Programs
//! without a profile are left to the permission rules.

mod awk;
mod operands;
mod option_values;
mod options;
mod profiles;
mod sed;
mod variables;

use self::options::DangerousOptions;
use self::profiles::{OptionProfile, PROFILES};
use super::aliases;
use super::program_names::canonical_name;
use super::word::{ShellWord, list_contains};

/// Whether the arguments of a program are profiled.
pub(super) fn has_profile(program: &str) -> bool {
    PROFILES.iter().any(|profile| profile.names.contains(&&*canonical_name(program)))
}

/// The names of all profiled programs.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let profiles = PROFILES.iter().flat_map(|profile| profile.names).copied();
    profiles
        .chain(operands::names())
        .chain(["stty"])
        .chain(options::names())
        .chain(variables::NAMES.iter().copied())
}

/// Whether an argument of a profiled program may run another program or write a file.
///
/// `open_end` means that more words may be appended at run time.
pub(super) fn has_dangerous_argument(words: &[ShellWord], open_end: bool) -> bool {
    let Some((head, rest)) = words.split_first() else { return false };
    let name = canonical_name(&head.value);
    if let Some(names_one) = variables::find_variable_check(&name) {
        return names_one(rest);
    }
    let profile = PROFILES.iter().find(|profile| profile.names.contains(&&*name));
    let acts = match profile {
        Some(_) => Vec::new(),
        None => options::find_options(&name)
            .into_iter()
            .chain(python_module_options(&name, rest))
            .collect(),
    };
    let has_operands = operands::has_known_operands(&name);
    let is_known = profile.is_some() || has_operands || !acts.is_empty() || name == "stty";
    // Unknown words are checked before the profiles, so that no profile can miss them.
    let is_open = || {
        open_end || (1..words.len()).any(|at| words[at].may_be_option() && !is_message(words, at))
    };
    is_known
        && (is_open()
            || has_operands && operands::has_dangerous_operand(&name, rest)
            || acts.iter().any(|it| it.objects_to(rest))
            || name == "stty" && rest.iter().any(|word| !is_terminal_setting(&word.value))
            || profile.is_some_and(|profile| profile_objects(words, profile)))
}

/// Whether the profile of a program, or the code for it, rejects an argument.
fn profile_objects(words: &[ShellWord], profile: &OptionProfile) -> bool {
    let words = &*option_values::strip_harmless_values(words, profile.names[0]);
    let rest = &words[1..];
    option_arguments(words, profile).iter().any(|word| profile.objects_to(&word.value))
        || match profile.names[0] {
            "awk" => {
                awk_programs(words).any(|word| !word.is_literal() || !awk::is_harmless(&word.value))
            }
            "cargo" => {
                option_arguments(words, profile).iter().any(passes_compiler_options)
                    || has_dangerous_clippy_options(words)
            }
            "curl" => rest.iter().any(may_send_file),
            "git" => is_git_dangerous(words),
            // An unknown word may set a variable, but not if it starts with a dash.
            "make" => rest.iter().any(|word| {
                word.value.contains('=') || !word.is_literal() && !word.value.starts_with('-')
            }),
            "npm" => {
                let is_match =
                    |word: &ShellWord| NPM_DANGEROUS.iter().any(|name| may_equal(word, name));
                option_arguments(words, profile)
                    .iter()
                    .any(|word| is_match(word) || is_npm_long_option(&word.value))
            }
            // Pagers and editors run a command after `!`.
            "less" | "vim" => {
                rest.iter().any(|word| word.may_start_with("+") || word.may_start_with("!"))
            }
            "sed" => is_sed_dangerous(words),
            "tar" => {
                rest.first().is_some_and(|it| !it.is_literal() || profile.has_letter(&it.value))
                    || may_name_remote_host(rest)
            }
            _ => false,
        }
}

/// Whether a word is `text` or may expand to it.
fn may_equal(word: &ShellWord, text: &str) -> bool {
    if word.is_literal() { word.value == text } else { word.may_start_with(text) }
}

/// Returns the options of the programs that Python may run as modules, each once. Every `m` in a
/// cluster of short options is tried, because some short options take values.
fn python_module_options(program: &str, words: &[ShellWord]) -> Vec<&'static DangerousOptions> {
    let mut known: Vec<&DangerousOptions> = Vec::new();
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
        let acts = options::find_options(&canonical_name(name));
        known.extend(acts.filter(|acts| !known.iter().any(|it| std::ptr::eq(*it, *acts))));
    }
    known
}

/// Whether `cargo clippy` passes dangerous options to the compiler after `--`.
fn has_dangerous_clippy_options(words: &[ShellWord]) -> bool {
    let (before, behind) = match words.iter().position(|word| word.value == "--") {
        Some(end) => words.split_at(end),
        None => return false,
    };
    let compiler =
        options::find_options("rustc").filter(|_| before.iter().any(|it| it.value == "clippy"));
    compiler.is_some_and(|rustc| rustc.objects_to(behind))
}

/// Whether tar may read a part of an archive name as a remote host, and start a remote shell.
fn may_name_remote_host(rest: &[ShellWord]) -> bool {
    let is_archive = |at: usize| {
        rest[at].value.starts_with("--f") || at > 0 && rest[at - 1].value.ends_with('f')
    };
    let may_be = |(at, word): (usize, &ShellWord)| {
        let value = word.value.as_str();
        value.contains(':') && (!value.starts_with("--") || value.starts_with("--f"))
            || !word.is_literal() && is_archive(at)
    };
    // After `--` every word is a file name.
    let is_local =
        || rest.iter().take_while(|it| it.value != "--").any(|it| it.value == "--force-local");
    rest.iter().enumerate().any(may_be) && !is_local()
}

/// Whether a dangerous argument may be a command text.
pub(super) fn may_run_argument(words: &[ShellWord]) -> bool {
    let name = words.first().map(|head| canonical_name(&head.value));
    !matches!(name.as_deref(), Some("sed" | "gsed")) || is_sed_dangerous(words)
}

/// Whether `program` may build a command name from `text` at run time, so that no word of the
/// text names it.
pub(super) fn builds_commands(program: &str, text: &str) -> bool {
    match program {
        "sed" | "gsed" => true,
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => awk_may_run(text),
        // They set the keys that edit the input line of a shell.
        "reset" | "stty" | "tset" => true,
        // An empty name stands for a variable assignment.
        "" | "cargo" | "git" | "hg" | "jj" if aliases::defines_alias(text) => true,
        // In the end a shell expands the text.
        _ => text.contains(['$', '`']) || text.contains('/') && text.contains(['*', '?', '[']),
    }
}

/// Whether an argument of `stty` does not change the keys that end or edit a line.
fn is_terminal_setting(argument: &str) -> bool {
    const HARMLESS: &str = "\
        --all --save -F -a -echo -echoe -g -ixon -onlcr -opost -tostop cols columns cooked echo echoe \
        ixon onlcr opost rows sane size speed tostop";
    list_contains(HARMLESS, argument) || argument.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the words that may be options: everything before `--`.
///
/// After another option, `--` may be its value, and options continue. `find` gives `--` no
/// meaning. Of these programs, only `cargo` always ends its options there.
fn option_arguments<'w>(words: &'w [ShellWord], profile: &OptionProfile) -> &'w [ShellWord] {
    let ends = |at: usize| {
        words[at].value == "--"
            && !profile.single_dash
            && (profile.names[0] == "cargo" || !words[at - 1].value.starts_with('-'))
    };
    // The arguments after the command of `npx` belong to that command, which is checked itself.
    let runs = |at: usize| {
        let is_free = at == 1 || matches!(&*words[at - 1].value, "-y" | "--yes" | "--no-install");
        is_free && words[at].is_literal() && !words[at].value.starts_with('-')
    };
    let is_npx = canonical_name(&words[0].value) == "npx";
    let is_end = |at: usize| ends(at) || is_npx && runs(at);
    let end = (1..words.len()).find(|&at| is_end(at)).unwrap_or(words.len());
    &words[1..end]
}

impl OptionProfile {
    fn objects_to(&self, argument: &str) -> bool {
        let Some(option) = argument.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            return false;
        };
        let long = option.strip_prefix('-');
        if long.is_none() && !self.single_dash {
            return self.has_letter(option);
        }
        let name = long.unwrap_or(option).split('=').next().unwrap_or_default();
        // `--` ends the options or is a value, and a number is not an option.
        if argument == "--" || self.single_dash && option.starts_with(|c: char| c.is_ascii_digit())
        {
            return false;
        }
        !list_contains(self.harmless, name)
    }

    fn has_letter(&self, cluster: &str) -> bool {
        cluster.chars().any(|c| self.letters.contains(c))
    }
}

/// Whether the word is a commit message, which may be any text.
fn is_message(words: &[ShellWord], at: usize) -> bool {
    let is_text = words.get(1).is_some_and(|word| matches!(&*word.value, "commit" | "tag"));
    is_text
        && canonical_name(&words[0].value) == "git"
        && matches!(&*words[at - 1].value, "-m" | "-am" | "--message")
        && !words[at].may_split
}

/// Whether curl may upload a local file or read one as the response.
fn may_send_file(word: &ShellWord) -> bool {
    let argument = word.value.as_str();
    let known = if word.may_split { "" } else { &argument[..word.known_prefix_len] };
    // Curl expands brackets in URLs, including the scheme.
    let (scheme, is_whole) = match argument.split_once(':') {
        Some((scheme, _)) if word.is_literal() || scheme.len() < word.known_prefix_len => {
            (scheme, true)
        }
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

/// Whether cargo passes options to the compiler, or runs another toolchain.
fn passes_compiler_options(word: &ShellWord) -> bool {
    let is_other = word.value.contains('/') || !word.is_literal();
    ["rustc", "rustdoc"].iter().any(|name| may_equal(word, name))
        || word.value.starts_with('+') && is_other
}

/// Whether an option with one dash has a long name, which npm accepts.
fn is_npm_long_option(argument: &str) -> bool {
    argument.starts_with('-') && !argument.starts_with("--") && argument.len() > MAX_CLUSTER_LEN
}

/// The maximum length of a cluster of short options, such as `-ddd`.
const MAX_CLUSTER_LEN: usize = 4;

/// Returns the words that may be awk programs: all except a leading field separator and globs
/// after the program.
fn awk_programs(words: &[ShellWord]) -> impl Iterator<Item = &ShellWord> {
    let parted = match words.get(1) {
        Some(option) if option.value == "-F" => 2,
        Some(option) if option.value.starts_with("-F") => 1,
        _ => 0,
    };
    let is_known = |word: &&ShellWord| word.is_literal();
    let parted = words[1..].iter().take(parted).take_while(is_known).count();
    let words = &words[1 + parted..];
    // The word after an option may be its value.
    let is_match = |at: usize| {
        let before = if at > 0 { &*words[at - 1].value } else { "" };
        let is_value = before.starts_with('-') && !(before.starts_with("-v") && before.len() > 2);
        words[at].is_literal() && !words[at].value.starts_with('-') && !is_value
    };
    let first = (0..words.len()).find(|&at| is_match(at)).unwrap_or(words.len());
    let may_be =
        move |(at, word): &(usize, &ShellWord)| *at <= first || word.is_unknown || !word.is_glob;
    words.iter().enumerate().filter(may_be).map(|(_, word)| word)
}

/// Whether an awk program may run other programs.
fn awk_may_run(program: &str) -> bool {
    let program = program.replace("||", "");
    ["|", "@", "system", "getline"].iter().any(|word| program.contains(word))
}

/// Subcommands of npm that change what it runs, or run their arguments.
const NPM_DANGEROUS: &[&str] =
    &["c", "config", "edit", "explore", "pkg", "plugin", "set", "set-script"];

/// Subcommands of git that run programs named by the repository or the arguments, or write files
/// named by them.
const GIT_DANGEROUS: &str = "\
    bisect bundle config credential credential-cache credential-store daemon difftool fast-import \
    filter-branch filter-repo for-each-repo hook instaweb interpret-trailers mailinfo maintenance \
    merge-file merge-index mergetool p4 pack-objects receive-pack remote-ext remote-fd send-email shell \
    submodule update-index upload-archive upload-pack var web--browse";

/// Short options that are dangerous for one subcommand of git.
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

fn is_git_dangerous(words: &[ShellWord]) -> bool {
    let Some(command) = words[1..].iter().find(|word| word.value != "--no-pager") else {
        return false;
    };
    let command = command.value.as_str();
    // Global options change the repository, and so the programs that run for it.
    if command.starts_with('-') && !matches!(command, "--version" | "--help") {
        return true;
    }
    let letters = GIT_LETTERS.iter().find(|(name, _)| *name == command).map(|(_, letters)| letters);
    let has_letter = |word: &ShellWord| {
        let cluster = word.value.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        cluster.is_some_and(|rest| rest.chars().any(|c| letters.is_some_and(|l| l.contains(c))))
    };
    let only_tells = command == "config" && git_config_only_reads(&words[1..]);
    // A push into a local directory runs the hooks of its repository.
    let is_folder =
        |word: &ShellWord| [".", "/", "~", "file:"].iter().any(|it| word.may_start_with(it));
    let pushes = matches!(command, "http-push" | "push" | "send-pack");
    if pushes && words[1..].iter().any(is_folder) {
        return true;
    }
    let bisects = command == "bisect"
        && words
            .iter()
            .any(|word| list_contains("bad good log new old reset skip start", &word.value))
        && !words
            .iter()
            .any(|word| matches!(&*word.value, "run" | "visualize" | "view" | "replay"));
    // `submodule--helper` is the implementation of `submodule`.
    let base = command.split_once("--").map_or(command, |(base, _)| base);
    [command, base].iter().any(|name| list_contains(GIT_DANGEROUS, name)) && !only_tells && !bisects
        || words.iter().any(|word| has_letter(word) || word.value.contains("ext::"))
        || (1..words.len()).any(|at| words[at].may_start_with("ext::") && !is_message(words, at))
}

/// Whether `git config` only reads settings. After a name git reads no options, and sets the name
/// to the next word.
fn git_config_only_reads(words: &[ShellWord]) -> bool {
    const PLACES: &str = "--global --local --system --worktree --show-origin --show-scope -z";
    let words = words.iter().skip_while(|word| word.value != "config").skip(1);
    let mut words = words.skip_while(|word| list_contains(PLACES, &word.value));
    let Some(first) = words.next() else { return true };
    match &*first.value {
        "--get" | "--get-all" | "--get-regexp" | "--list" | "-l" | "get" | "list" => true,
        // A single name is read; a word without a dot is a subcommand, such as `edit`.
        name => {
            let is_name = name.contains('.') && !name.starts_with('-');
            is_name && first.is_literal() && words.next().is_none()
        }
    }
}

/// Whether one of the sed programs does more than print and replace.
fn is_sed_dangerous(words: &[ShellWord]) -> bool {
    let is_harmless = |word: Option<&ShellWord>| {
        word.is_some_and(|it| it.is_literal() && sed::is_harmless(&it.value))
    };
    let mut words = words[1..].iter();
    let (mut operand, mut is_given) = (None, false);
    while let Some(word) = words.next() {
        match sed_program_source(&word.value) {
            SedProgramSource::SameWord => return true,
            SedProgramSource::NextWord if !is_harmless(words.next()) => return true,
            SedProgramSource::NextWord => is_given = true,
            SedProgramSource::NotGiven if !word.value.starts_with('-') => {
                operand = operand.or(Some(word))
            }
            SedProgramSource::NotGiven => {}
        }
    }
    !is_given && !is_harmless(operand)
}

/// Where an option passes a program to sed.
enum SedProgramSource {
    NotGiven,
    /// In the next word.
    NextWord,
    /// In the same word, possibly after other option letters.
    SameWord,
}

fn sed_program_source(word: &str) -> SedProgramSource {
    let Some(letters) = word.strip_prefix('-') else { return SedProgramSource::NotGiven };
    match letters.strip_suffix('e') {
        _ if word == "--expression" => SedProgramSource::NextWord,
        Some(flags) if flags.chars().all(|c| "nErsuz".contains(c)) => SedProgramSource::NextWord,
        _ if letters.starts_with("-e") => SedProgramSource::SameWord,
        _ if letters.contains('e') && !letters.starts_with('-') => SedProgramSource::SameWord,
        _ => SedProgramSource::NotGiven,
    }
}

/// Programs that destroy file systems or stop the machine.
const DESTROYERS: &str = "\
    blkdiscard cfdisk fdisk halt mkdosfs mke2fs mkfs mkntfs mkswap parted poweroff reboot sfdisk sgdisk shred shutdown \
    telinit wipefs";

/// Whether a command removes files by force or destroys data irreversibly.
///
/// `open_end` means that more words may be appended at run time.
pub(super) fn is_destructive(words: &[ShellWord], open_end: bool) -> bool {
    let Some(head) = words.first() else { return false };
    let name = canonical_name(&head.value);
    match &*name {
        "rm" => open_end || is_forced_removal(words),
        "find" => {
            words.iter().any(|word| word.value == "-delete") && words[1..].iter().any(is_root)
        }
        "cp" | "install" | "mv" | "tee" => words.iter().any(|word| is_disk(&word.value)),
        "init" => words[1..].iter().any(|word| matches!(&*word.value, "0" | "6")),
        "systemctl" => {
            words[1..].iter().any(|word| list_contains("halt kexec poweroff reboot", &word.value))
        }
        "dd" => words.iter().any(|word| word.value.starts_with("of=/dev/")),
        name => is_destroyer(name),
    }
}

/// Whether a path is a disk or partition device.
fn is_disk(path: &str) -> bool {
    const DISKS: &[&str] =
        &["disk/", "dm-", "hd", "mapper/", "md", "mmcblk", "nvme", "sd", "vd", "xvd"];
    let disk = path.strip_prefix("/dev/");
    disk.is_some_and(|name| DISKS.iter().any(|disk| name.starts_with(disk)))
}

/// Like [`is_destructive`], for a command text with single spaces.
pub(super) fn is_destructive_text(text: &str) -> bool {
    let is_match = |name: &str| {
        list_contains("cp dd find init install mv rm systemctl tee", name) || is_destroyer(name)
    };
    let is_possible =
        text.split(' ').next().is_some_and(|program| is_match(&canonical_name(program)));
    is_possible
        && is_destructive(&text.split(' ').map(ShellWord::from_literal).collect::<Vec<_>>(), false)
}

fn is_destroyer(name: &str) -> bool {
    list_contains(DESTROYERS, name) || name.starts_with("mkfs.")
}

fn is_forced_removal(words: &[ShellWord]) -> bool {
    let is_forced = |word: &ShellWord| match word.value.strip_prefix('-') {
        // `--force` and `--interactive` may be abbreviated.
        Some(rest) if rest.starts_with('-') => match rest.split_once('=') {
            Some((name, value)) => "-interactive".starts_with(name) && value.starts_with('n'),
            None => rest.len() > 1 && "-force".starts_with(rest),
        },
        Some(letters) => letters.contains('f') || word.may_split || word.is_unknown,
        // A word with a known alphanumeric ending is not an option that forces.
        None => {
            let may_end = word.is_unknown || !word.value.ends_with(char::is_alphanumeric);
            word.may_be_option() && may_end && !word.value.starts_with('~')
        }
    };
    let end = words.iter().position(|word| word.value == "--").unwrap_or(words.len());
    words[..end].iter().any(is_forced) || words[1..].iter().any(is_root)
}

/// Whether a path is the root directory or a home directory.
fn is_root(word: &ShellWord) -> bool {
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
