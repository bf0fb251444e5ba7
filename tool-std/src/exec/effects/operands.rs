//! The files that a command reads and writes, from its words and the table of programs alone.
//!
//! Whether the files exist, and where, is not decided here.
//!
//! **Invariant:** a word that may name a file, or a file that lists names, is never omitted.

use tool_shell_analysis::{SimpleCommand, WordCertainty, internal::bare_name};

use self::OperandKind as Kind;
use super::git;
use super::paths::leaves_folder;
use super::programs::{ProgramEffects, ReadEffect, WriteEffect};

/// Short options of `grep` and `rg` without value, and those of them that take one in `rg`.
const SEARCH_FLAGS: &str = "EFGHILPRSTUVZabchilnopqrsvwxyz";
const RG_VALUED: &str = "ErT";

/// Written operands that are not regular files, or are checked as redirections.
const NOT_WRITTEN: &[&str] = &["", "/dev/null", "/dev/stderr", "/dev/stdout", "/dev/tty"];

/// A word after the program, and how certain its value is.
pub(super) type OperandWord<'a> = (&'a str, WordCertainty);

/// What a command uses, as its words name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operand<'a> {
    pub(super) kind: OperandKind<'a>,
    pub(super) text: &'a str,
}

/// Which files an operand stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperandKind<'a> {
    /// The file at a path.
    Path,
    /// The file at a path below the home directory.
    HomePath,
    /// The files that match a glob.
    Pattern,
    /// Unknown files.
    Unknown,

    /// The file at a path that is read if it exists.
    MaybePath,
    /// The file at a path in a repository, now or in an earlier revision.
    Tracked,
    /// The entries of a directory and the targets of its links.
    Entries,
    /// All files below a directory, whose lines may be printed.
    Subtree,
    /// Files that no word names, whose lines may be printed.
    UnnamedContent,
    /// The current directory.
    CurrentFolder,
    /// The directory that `cd` enters.
    Entered,

    /// The file at a path that is removed with everything below it; of a link, only the link.
    Removed,
    /// The file at a path that is changed, and possibly everything below it.
    Tree,
    /// The copy of this file at a path, or below it if it is a directory.
    CopyOf(&'a str),
}

impl<'a> OperandKind<'a> {
    pub(super) fn of(self, text: &'a str) -> Operand<'a> {
        Operand { kind: self, text }
    }
}

/// Returns the words of a command after the program.
pub(super) fn operand_words(
    command: &SimpleCommand,
) -> impl Iterator<Item = OperandWord<'_>> + Clone {
    let words = command.argv.iter().zip(&command.word_certainty).skip(1);
    words.map(|(word, certainty)| (&**word, *certainty))
}

/// Returns what a read-only command reads.
pub(super) fn read_operands(command: &SimpleCommand) -> Vec<Operand<'_>> {
    let Some((program, rest)) = command.argv.split_first() else { return Vec::new() };
    let name = &*bare_name(program);
    let program = ProgramEffects::find(name);
    match program.reads {
        ReadEffect::Nested => return Vec::new(),
        ReadEffect::Nothing | ReadEffect::NothingIfReadOnly => return pattern_folders(command),
        _ => {}
    }
    let mut operands = named_operands(program, command);
    match program.reads {
        // Links in compared directories are followed.
        ReadEffect::Compared => {
            add_below(&mut operands, Kind::Entries, Kind::Unknown);
        }
        ReadEffect::Git if git::shows_unnamed_lines(name, rest) => {
            operands.push(Kind::UnnamedContent.of(&command.text));
        }
        ReadEffect::Searched if searches_subtree(name, rest) => {
            add_below(&mut operands, Kind::Subtree, Kind::UnnamedContent);
            if !names_search_path(name, rest) {
                operands.push(Kind::Subtree.of("."));
            }
            operands.push(Kind::CurrentFolder.of("."));
        }
        ReadEffect::Listed => operands.push(Kind::CurrentFolder.of(".")),
        _ => {}
    }
    if command.has_open_end || reads_unnamed_files(program, rest) {
        operands.push(Kind::Unknown.of(&command.text));
    }
    operands
}

/// Returns the files that the words name.
fn named_operands<'a>(program: &ProgramEffects, command: &'a SimpleCommand) -> Vec<Operand<'a>> {
    let mut operands = Vec::new();
    let mut options_end = false;
    let path = if command.argv[0] == "cd" { Kind::Entered } else { Kind::Path };
    // The first operand of a search is a pattern, unless an option gives it.
    let mut is_pattern = program.reads == ReadEffect::Searched
        && !command.argv.iter().skip(1).any(|it| gives_pattern(it));
    for (word, certainty) in operand_words(command) {
        let is_option = word.starts_with('-') && !options_end;
        if is_option {
            options_end |= word == "--";
            add_option_values(program, word, &mut operands);
        }
        if program.reads == ReadEffect::Git && (!is_option || word.starts_with("-L")) {
            operands.extend(git::tracked_path(word).map(|path| Kind::Tracked.of(path)));
        }
        let may_be_more = matches!(certainty, WordCertainty::Pattern | WordCertainty::AnyWords);
        let is_file = !is_option && (!std::mem::take(&mut is_pattern) || may_be_more);
        operands.extend(match certainty {
            // A closing bracket alone is literal.
            WordCertainty::Pattern if !word.contains(['*', '?', '[']) => Some(path.of(word)),
            WordCertainty::Pattern => Some(Kind::Pattern.of(word)),
            WordCertainty::AnyWords => Some(Kind::Unknown.of(word)),
            WordCertainty::SingleWord if is_file || is_option => Some(Kind::Unknown.of(word)),
            WordCertainty::HomePath if is_file && path == Kind::Path => {
                Some(Kind::HomePath.of(word))
            }
            WordCertainty::Literal | WordCertainty::HomePath
                if is_file && is_file_operand(program, word) =>
            {
                Some(match program.reads {
                    // Most words of git are not paths, and git does not follow links.
                    ReadEffect::Git if !leaves_folder(word) => Kind::MaybePath.of(word),
                    _ => path.of(word),
                })
            }
            WordCertainty::Literal
            | WordCertainty::HomePath
            | WordCertainty::SingleWord
            | WordCertainty::Pipe => None,
        });
    }
    operands
}

/// Returns the directories whose names a glob passes to a command that reads no files.
fn pattern_folders(command: &SimpleCommand) -> Vec<Operand<'_>> {
    let words = command.argv.iter().zip(&command.word_certainty);
    let listed = words.filter_map(|(word, certainty)| {
        let open = word.find(['*', '?', '['])?;
        let end = word[..open].rfind('/')?;
        match certainty {
            WordCertainty::Pattern => Some(Kind::Path.of(&word[..end.max(1)])),
            WordCertainty::AnyWords => Some(Kind::Unknown.of(word)),
            _ => None,
        }
    });
    listed.collect()
}

/// Whether an operand may name a file with contents.
fn is_file_operand(program: &ProgramEffects, word: &str) -> bool {
    !(word == "/dev/null" || word == "/" && program.ignores_slash)
}

/// Whether an option makes the program read files that no word names. Long options may be
/// abbreviated.
fn reads_unnamed_files(program: &ProgramEffects, rest: &[String]) -> bool {
    let (letters, longs) = program.unnamed_reads;
    rest.iter().filter(|word| word.starts_with('-') && word.len() > 1).any(|word| {
        let option = word.split('=').next().unwrap_or_default();
        let is_cluster = !word.starts_with("--") && word.contains(|c| letters.contains(c));
        is_cluster || option != "--" && longs.iter().any(|it| it.starts_with(option))
    })
}

/// Adds what lies below the files that were named so far.
fn add_below<'a>(operands: &mut Vec<Operand<'a>>, path: Kind<'a>, pattern: Kind<'a>) {
    for at in 0..operands.len() {
        let Operand { kind, text } = operands[at];
        match kind {
            Kind::Path | Kind::HomePath | Kind::MaybePath => operands.push(path.of(text)),
            Kind::Pattern => operands.push(pattern.of(text)),
            _ => {}
        }
    }
}

/// Adds option values that may name files.
fn add_option_values<'a>(
    program: &ProgramEffects,
    option: &'a str,
    operands: &mut Vec<Operand<'a>>,
) {
    let is_path = |value: &&str| !value.is_empty() && is_file_operand(program, value);
    let assigned = option.split_once('=').map(|(_, value)| value);
    let path = option.find(['/', '~']).map(|at| &option[at..]);
    let values = [assigned, path].into_iter().flatten().filter(is_path);
    operands.extend(values.map(|path| Kind::MaybePath.of(path)));
    if matches!(program.reads, ReadEffect::Git | ReadEffect::Searched) {
        // A pattern file may be printed line by line.
        let joined = option.match_indices('f').map(|(at, _)| &option[at + 1..]);
        let joined = joined.filter(|_| !option.starts_with("--"));
        let assigned = assigned.filter(|_| option.starts_with("--f"));
        let files = joined.chain(assigned).filter(is_path);
        operands.extend(files.map(|path| Kind::Path.of(path)));
    }
}

/// Whether an option of a search gives the pattern, so that no operand does.
fn gives_pattern(option: &str) -> bool {
    let Some(option) = option.strip_prefix('-') else { return false };
    let Some(long) = option.strip_prefix('-') else { return option.contains(['e', 'f']) };
    // Long options may be abbreviated, and `rg --files` has no pattern.
    let name = long.split('=').next().unwrap_or_default();
    !name.is_empty() && ["regexp", "files"].iter().any(|it| it.starts_with(name))
}

/// Whether a search is recursive.
fn searches_subtree(name: &str, rest: &[String]) -> bool {
    let is_recursive = |word: &String| word.starts_with('-') && word.contains(['r', 'R', 'd']);
    name == "rg" || rest.iter().any(is_recursive)
}

/// Whether a search certainly has a path operand besides the pattern, and no operand can be the
/// value of an option.
fn names_search_path(name: &str, rest: &[String]) -> bool {
    let end = rest.iter().position(|word| word == "--").unwrap_or(rest.len());
    let (options, operands): (Vec<_>, Vec<_>) =
        rest[..end].iter().partition(|word| word.starts_with('-'));
    let is_valued =
        |letter| !SEARCH_FLAGS.contains(letter) || name == "rg" && RG_VALUED.contains(letter);
    let is_flag = |word: &&String| {
        word.starts_with("--") && word.contains('=') || !word[1..].contains(is_valued)
    };
    let after_end = rest.len().saturating_sub(end + 1);
    options.iter().all(is_flag) && operands.len() + after_end > 1
}

/// Returns the files that a command writes.
pub(super) fn write_operands(command: &SimpleCommand) -> Vec<Operand<'_>> {
    let Some(program) = command.argv.first() else { return Vec::new() };
    let program = ProgramEffects::find(&bare_name(program));
    if program.writes == WriteEffect::Nothing {
        return Vec::new();
    }
    let SplitWords { operands, outputs, letters, longs } =
        SplitWords::split(program, operand_words(command));
    let mut written = match (program.writes, &*operands) {
        (WriteEffect::Output, _) => written_files(&outputs, Kind::Path),
        (WriteEffect::Operands, files) => written_files(files, Kind::Path),
        (WriteEffect::Removed, files) => written_files(files, Kind::Removed),
        (WriteEffect::AllButFirst, files) => {
            written_files(files.get(1..).unwrap_or_default(), Kind::Tree)
        }
        (WriteEffect::Assigned, _) => {
            let values = operand_words(command)
                .filter_map(|(word, certainty)| Some((word.strip_prefix("of=")?, certainty)));
            written_files(&values.collect::<Vec<_>>(), Kind::Path)
        }
        (WriteEffect::InPlace, files) => {
            let has = |letter, long: &str| {
                letters.contains(letter) || longs.iter().any(|it| it.starts_with(long))
            };
            // The first operand is the program, unless an option gives it.
            let skipped = if has('e', "e") || has('f', "f") { 0 } else { 1 };
            let files = if has('i', "in") { files.get(skipped..) } else { None };
            written_files(files.unwrap_or_default(), Kind::Path)
        }
        (WriteEffect::ToLast | WriteEffect::Moved, sources) if !outputs.is_empty() => {
            copies(program, sources, &outputs)
        }
        // `ln` with one operand creates the link in the current directory.
        (WriteEffect::ToLast, sources @ [_]) => {
            copies(program, sources, &[(".", WordCertainty::Literal)])
        }
        (WriteEffect::ToLast | WriteEffect::Moved, [sources @ .., target]) => {
            copies(program, sources, &[*target])
        }
        (WriteEffect::Nothing | WriteEffect::ToLast | WriteEffect::Moved, _) => Vec::new(),
    };
    if command.has_open_end {
        written.push(Kind::Unknown.of(&command.text));
    }
    written
}

/// Returns the written files among words, of this kind if their paths are known.
fn written_files<'a>(words: &[OperandWord<'a>], kind: Kind<'a>) -> Vec<Operand<'a>> {
    let kind_of = |word: &str, certainty| match certainty {
        WordCertainty::Literal if NOT_WRITTEN.contains(&word) => None,
        WordCertainty::Literal | WordCertainty::HomePath => Some(kind),
        WordCertainty::Pipe => None,
        WordCertainty::Pattern => Some(Kind::Pattern),
        WordCertainty::SingleWord | WordCertainty::AnyWords => Some(Kind::Unknown),
    };
    words.iter().filter_map(|(word, certainty)| Some(kind_of(word, *certainty)?.of(word))).collect()
}

/// Whether the value of a word is a single path.
pub(super) fn is_known(certainty: WordCertainty) -> bool {
    matches!(certainty, WordCertainty::Literal | WordCertainty::HomePath)
}

/// Returns the files that copying or moving each source to each target writes.
fn copies<'a>(
    program: &ProgramEffects,
    sources: &[OperandWord<'a>],
    targets: &[OperandWord<'a>],
) -> Vec<Operand<'a>> {
    let mut written = Vec::new();
    let (known, unknown): (Vec<_>, Vec<_>) =
        sources.iter().partition(|(_, certainty)| is_known(*certainty));
    for &(to, certainty) in targets {
        if !is_known(certainty) {
            written.push(Kind::Unknown.of(to));
            continue;
        }
        written.extend(known.iter().map(|(from, _)| Kind::CopyOf(from).of(to)));
        if let Some((from, _)) = unknown.first() {
            written.extend([Kind::Unknown.of(from), Kind::Tree.of(to)]);
        }
    }
    if program.writes == WriteEffect::Moved {
        written.extend(written_files(sources, Kind::Removed));
    }
    written
}

/// The words of a command that writes files.
#[derive(Default)]
struct SplitWords<'a> {
    operands: Vec<OperandWord<'a>>,
    /// The values of the output option.
    outputs: Vec<OperandWord<'a>>,
    /// The letters and names of all options.
    letters: String,
    longs: Vec<&'a str>,
}

impl<'a> SplitWords<'a> {
    fn split(program: &ProgramEffects, mut words: impl Iterator<Item = OperandWord<'a>>) -> Self {
        let mut split = Self::default();
        let mut options_end = false;
        while let Some((word, certainty)) = words.next() {
            if options_end || !word.starts_with('-') || word == "-" {
                split.operands.push((word, certainty));
            } else if word == "--" {
                options_end = true;
            } else if let Some(long) = word.strip_prefix("--") {
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some((value, certainty))),
                    None => (long, None),
                };
                split.longs.push(name);
                if program.output.is_some_and(|(_, output)| output[2..].starts_with(name)) {
                    split.outputs.extend(value.or_else(|| words.next()));
                }
            } else {
                split.add_short_options(program, (word, certainty), &mut words);
            }
        }
        split
    }

    /// Adds a word with short options, of which the last one may take a value.
    fn add_short_options(
        &mut self,
        program: &ProgramEffects,
        (word, certainty): OperandWord<'a>,
        words: &mut impl Iterator<Item = OperandWord<'a>>,
    ) {
        let takes_value = |c| program.valued.contains(c) || program.suffixed == Some(c);
        let Some(at) = word.find(takes_value) else {
            self.letters.push_str(word);
            // It may expand to an operand.
            let is_open = !is_known(certainty);
            return self.operands.extend(is_open.then_some((word, certainty)));
        };
        self.letters.push_str(&word[..=at]);
        let letter = word[at..].chars().next();
        if letter == program.suffixed {
            return;
        }
        let joined = Some((&word[at + 1..], certainty)).filter(|(value, _)| !value.is_empty());
        let value = joined.or_else(|| words.next());
        // Other versions of a program may take no value here.
        self.letters
            .extend(value.filter(|(value, _)| value.starts_with('-')).map(|(value, _)| value));
        let is_output = program.output.is_some_and(|(output, _)| letter == Some(output));
        self.outputs.extend(value.filter(|_| is_output));
    }
}

#[cfg(test)]
mod tests {
    use tool_shell_analysis::analyze_script;

    use super::OperandKind::{
        CopyOf, CurrentFolder, Entries, MaybePath, Path, Pattern, Removed, Tracked, Tree, Unknown,
    };
    use super::*;

    #[test]
    fn every_word_that_may_name_a_file_is_given() {
        for (script, expected) in [
            ("cat a -n b", &[Path.of("a"), Path.of("b")][..]),
            ("cat -- -a", &[Path.of("-a")]),
            ("cat a* \"$(b)\" $(b)", &[Pattern.of("a*"), Unknown.of("$(b)"), Unknown.of("$(b)")]),
            ("cat <(b)", &[]),
            ("timeout 5 /bin/ls a", &[]),
            ("[ -f a ]", &[Path.of("a"), Path.of("]")]),
            ("echo a", &[]),
            ("cut -d / -f 1 a", &[Path.of("1"), Path.of("a")]),
            ("grep a b", &[Path.of("b")]),
            ("grep -- -a b", &[Path.of("b")]),
            ("grep -ie a b", &[Path.of("a"), Path.of("b")]),
            ("grep -hfa b", &[Path.of("a"), Path.of("b")]),
            ("grep --reg=a b", &[MaybePath.of("a"), Path.of("b"), CurrentFolder.of(".")]),
            (
                "grep -r a --include=*.rs",
                &[Pattern.of("--include=*.rs"), MaybePath.of("*.rs"), CurrentFolder.of(".")],
            ),
            ("rg --files a", &[Path.of("a"), CurrentFolder.of(".")]),
            ("git show HEAD:a", &[MaybePath.of("show"), MaybePath.of("HEAD:a"), Tracked.of("a")]),
            ("git grep -nfa b", &[MaybePath.of("grep"), Path.of("a"), MaybePath.of("b")]),
            ("git log -L1,2:a", &[MaybePath.of("log"), Tracked.of("a")]),
            (
                "git diff ':(top)a'",
                &[MaybePath.of("diff"), MaybePath.of(":(top)a"), Tracked.of("a")],
            ),
            ("git diff ':!a'", &[MaybePath.of("diff"), MaybePath.of(":!a")]),
            ("git diff --no-index / a", &[MaybePath.of("diff"), Path.of("/"), MaybePath.of("a")]),
            ("diff a*", &[Pattern.of("a*"), Unknown.of("a*")]),
            (
                "diff --to-file=b a",
                &[MaybePath.of("b"), Path.of("a"), Entries.of("b"), Entries.of("a")],
            ),
            ("grep a b /dev/null", &[Path.of("b")]),
            ("grep -R a b", &[Path.of("b"), CurrentFolder.of("."), Unknown.of("grep -R a b")]),
            (
                "grep --deref a b",
                &[Path.of("b"), CurrentFolder.of("."), Unknown.of("grep --deref a b")],
            ),
            ("rg -nL a", &[CurrentFolder.of("."), Unknown.of("rg -nL a")]),
            (
                "diff -ur a b",
                &[
                    Path.of("a"),
                    Path.of("b"),
                    Entries.of("a"),
                    Entries.of("b"),
                    Unknown.of("diff -ur a b"),
                ],
            ),
            (
                "grep -R -e --no-d a",
                &[Path.of("a"), CurrentFolder.of("."), Unknown.of("grep -R -e --no-d a")],
            ),
            ("find -L a", &[Path.of("a"), CurrentFolder.of("."), Unknown.of("find -L a")]),
            ("find -Lx a", &[Path.of("a"), CurrentFolder.of(".")]),
            ("wc --files0-from=a", &[MaybePath.of("a"), Unknown.of("wc --files0-from=a")]),
            ("ls", &[CurrentFolder.of(".")]),
        ] {
            let analysis = analyze_script(script);
            let mut found = read_operands(&analysis.commands[0]);
            // What lies below is not a word.
            found.retain(|it| !matches!(it.kind, Kind::Subtree | Kind::UnnamedContent));
            assert_eq!(found.len(), expected.len(), "{script}: {found:?}");
            assert!(expected.iter().all(|it| found.contains(it)), "{script}: {found:?}");
        }
    }

    #[test]
    fn written_words_follow_the_table() {
        for (script, expected) in [
            ("cat a", &[][..]),
            ("tee -a a /dev/null b", &[Path.of("a"), Path.of("b")]),
            ("cp -r a b c", &[CopyOf("a").of("c"), CopyOf("b").of("c")]),
            ("cp -t c a", &[CopyOf("a").of("c")]),
            ("cp -St a c", &[CopyOf("a").of("c")]),
            ("cp $X c", &[Unknown.of("$X"), Tree.of("c")]),
            ("ln a", &[CopyOf("a").of(".")]),
            ("mv --target=c a", &[CopyOf("a").of("c"), Removed.of("a")]),
            ("chmod +x a", &[Tree.of("a")]),
            ("dd if=a of=b", &[Path.of("b")]),
            ("curl -so a --out=b u", &[Path.of("a"), Path.of("b")]),
            ("rm -f -- -a b*", &[Removed.of("-a"), Pattern.of("b*")]),
            ("sed s/a/b/ f", &[]),
            ("sed -i.bak s/a/b/ f", &[Path.of("f")]),
            ("sed -ne s/a/b/ -i f", &[Path.of("f")]),
            ("sed --in-place -l 5 p f", &[Path.of("f")]),
            ("find a | xargs touch b", &[Path.of("b"), Unknown.of("touch b")]),
        ] {
            let analysis = analyze_script(script);
            let command = analysis.commands.iter().rfind(|it| !it.is_embedded).unwrap();
            assert_eq!(write_operands(command), expected, "{script}");
        }
    }

    #[test]
    fn a_search_is_told_where_to_look_when_nothing_else_can_be_meant() {
        for (name, text, expected) in [
            ("rg", "x", false),
            ("rg", "x a", true),
            ("rg", "-ni x a", true),
            ("rg", "-t rust x", false),
            ("rg", "--type rust x", false),
            ("rg", "--type=rust x a", true),
            ("rg", "-T rust x", false),
            ("rg", "-E utf8 x", false),
            ("rg", "-- x a", true),
            ("rg", "-- x", false),
            ("rg", "-e x a", false),
            ("grep", "-rn x a", true),
            ("grep", "-rE x a", true),
            ("grep", "-A 3 -r x", false),
            ("grep", "-r x", false),
        ] {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            assert_eq!(names_search_path(name, &words), expected, "{name} {text}");
        }
    }
}
