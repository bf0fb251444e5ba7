//! One word of a command: its value after quote removal, and how much of it is known.
//!
//! **Invariant:** nothing here reads a script; the lexer and the parsers build the words.

use std::borrow::Cow;
use std::ops::Range;

/// Variables whose values every program may print: no secret is among them, and the environment of
/// a command has no others that the host did not name.
const HARMLESS_VALUES: &str = "\
    BASH_VERSION COLUMNS EUID HOME HOSTNAME HOSTTYPE LANG LINES LOGNAME MACHTYPE OLDPWD OSTYPE PATH \
    PWD RANDOM SECONDS SHELL SHLVL TERM TMPDIR UID USER";

/// The value of a loop's variable as a part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LoopVariableUse {
    name: String,
    /// Where it is spelled in the value of the word.
    range: Range<usize>,
    in_quotes: bool,
}

/// A word as the program receives it, as far as it is known before it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ShellWord {
    /// The value; expansions that are only known at run time are kept as spelled.
    pub(super) value: String,
    /// The text that rules match: quoted where necessary, expansions as spelled.
    pub(super) rule_text: String,
    /// Contains the value of a variable.
    pub(super) has_parameter: bool,
    /// Contains the value of a variable that is not one of [`HARMLESS_VALUES`].
    has_other_value: bool,
    /// How many expansions a known path below the home directory has: none if it begins with `~`,
    /// one if it begins with `$HOME`, whose value is kept as `~`.
    home_expansions: Option<usize>,
    /// Is one of the words of a brace expansion.
    pub(super) is_from_braces: bool,
    /// The variables of loops.
    loop_uses: Vec<LoopVariableUse>,
    /// How many parts are expanded when the script runs.
    expansions: usize,
    /// Contains an expansion that is only known at run time.
    pub(super) is_unknown: bool,
    /// Contains a file name pattern.
    pub(super) is_glob: bool,
    /// May expand to several words of any form.
    pub(super) may_split: bool,
    /// Is the file name of a process substitution.
    pub(super) is_pipe: bool,
    /// Begins with an unknown part, or has one after a dash, so that it may be any option.
    pub(super) may_become_option: bool,
    /// The length of the known prefix, if not all of the word is known.
    pub(super) known_prefix_len: usize,
}

impl ShellWord {
    pub(super) fn from_literal(value: &str) -> Self {
        Self { value: value.to_owned(), rule_text: quote_word(value), ..Self::default() }
    }

    /// One of the words of a brace expansion.
    pub(super) fn from_braces(value: &str) -> Self {
        Self { is_from_braces: true, ..Self::from_literal(value) }
    }

    /// Whether the word may expand to an option although it does not look like one.
    pub(super) fn may_be_option(&self) -> bool {
        self.may_split || self.may_become_option
    }

    /// Whether the word may expand to something that starts with `text`.
    pub(super) fn may_start_with(&self, text: &str) -> bool {
        let is_open = !self.is_literal() && !self.is_pipe;
        self.value.starts_with(text)
            || is_open && (self.may_split || text.starts_with(&self.value[..self.known_prefix_len]))
    }

    /// Whether every variable in the word has a value that any program may print.
    pub(super) fn has_only_harmless_values(&self) -> bool {
        !self.has_other_value
    }

    /// Whether the word is a path below the home directory, and otherwise known.
    pub(super) fn is_home_path(&self) -> bool {
        self.home_expansions == Some(self.expansions)
    }

    /// Whether the word contains the variable of a loop.
    pub(super) fn uses_variable(&self, name: &str) -> bool {
        self.loop_uses.iter().any(|part| part.name == name)
    }

    /// Returns the word with a value in place of the variable of a loop. A word with other unknown
    /// parts stays as it is.
    pub(super) fn with_variable(&self, name: &str, value: &Self) -> Self {
        let is_whole = matches!(&*self.loop_uses, [part] if part.range == (0..self.value.len()));
        if is_whole && value.loop_uses.is_empty() && value.is_glob && !value.is_unknown {
            return if self.uses_variable(name) { value.clone() } else { self.clone() };
        }
        if self.expansions != self.loop_uses.len() || !value.is_literal() || value.is_home_path() {
            return self.clone();
        }
        let mut builder = WordBuilder::default();
        let mut end = 0;
        for part in &self.loop_uses {
            builder.push_str(&self.value[end..part.range.start]);
            end = part.range.end;
            match part.name == name {
                true => builder.push_str(&value.value),
                false => {
                    let text = &self.value[part.range.clone()];
                    builder.push_loop_variable(text, &part.name, part.in_quotes);
                }
            }
        }
        builder.push_str(&self.value[end..]);
        builder.finish()
    }

    /// Returns how certain the value is before the script runs.
    pub(super) fn certainty(&self) -> WordCertainty {
        match self {
            _ if self.is_home_path() => WordCertainty::HomePath,
            _ if self.is_literal() => WordCertainty::Literal,
            _ if self.is_pipe => WordCertainty::Pipe,
            _ if !self.is_unknown => WordCertainty::Pattern,
            _ if self.may_split || self.is_glob => WordCertainty::AnyWords,
            _ => WordCertainty::SingleWord,
        }
    }

    /// Whether the value is exactly as spelled.
    pub(super) fn is_literal(&self) -> bool {
        !self.is_unknown && !self.is_glob
    }
}

/// How certain the value of a word is before the script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a reader must handle every degree of certainty")]
pub enum WordCertainty {
    /// The value is exactly as spelled.
    Literal,
    /// The value is exactly as spelled, below the home directory: `~/x` or `$HOME/x`.
    HomePath,
    /// The names of the files that match a pattern.
    Pattern,
    /// The file name of a process substitution.
    Pipe,
    /// A single unknown word.
    SingleWord,
    /// Any number of unknown words.
    AnyWords,
}

/// Builds a word character by character.
#[derive(Debug, Default)]
pub(super) struct WordBuilder {
    word: ShellWord,
    /// The offset of the literal text that is not yet in the rule text.
    literal_start: usize,
    /// Whether a part of the word is quoted or escaped.
    pub(super) is_quoted: bool,
    /// Whether the word has unquoted braces.
    pub(super) has_braces: bool,
}

impl WordBuilder {
    pub(super) fn value(&self) -> &str {
        &self.word.value
    }

    pub(super) fn push(&mut self, c: char) {
        self.word.value.push(c);
    }

    pub(super) fn push_str(&mut self, text: &str) {
        self.word.value.push_str(text);
    }

    /// Adds a `~` that expands to the home directory.
    pub(super) fn push_home(&mut self) {
        if self.word.value.is_empty() {
            self.word.home_expansions = Some(0);
        }
        self.push_raw("~");
    }

    /// Adds text that expands to one known word.
    fn push_raw(&mut self, text: &str) {
        self.flush_literal();
        self.word.value.push_str(text);
        self.word.rule_text.push_str(text);
        self.literal_start = self.word.value.len();
    }

    /// Adds a character of a file name pattern.
    pub(super) fn push_glob(&mut self, c: char) {
        self.mark_unknown();
        self.word.may_become_option |= self.may_begin_option();
        self.word.is_glob = true;
        self.push_raw(c.encode_utf8(&mut [0; 4]));
    }

    /// Adds an expansion whose value is only known at run time.
    pub(super) fn push_unknown(&mut self, text: &str, in_quotes: bool) {
        self.mark_unknown();
        self.word.may_become_option |= self.may_begin_option();
        self.word.may_split |= !in_quotes;
        self.word.is_unknown = true;
        self.push_raw(text);
    }

    /// Adds an expansion to a number: one word, and never an option.
    pub(super) fn push_number(&mut self, text: &str) {
        self.mark_unknown();
        self.word.is_unknown = true;
        self.push_raw(text);
    }

    /// Records the end of the known prefix.
    fn mark_unknown(&mut self) {
        self.word.expansions += 1;
        if self.word.is_literal() {
            self.word.known_prefix_len = self.word.value.len();
        }
    }

    /// Whether the next character decides if the word is an option, or which one.
    fn may_begin_option(&self) -> bool {
        self.word.value.is_empty() || self.word.value.starts_with('-')
    }

    /// Adds a process substitution.
    pub(super) fn push_pipe(&mut self, text: &str) {
        self.word.expansions += 1;
        self.word.is_unknown = true;
        self.word.is_pipe = true;
        self.push_raw(text);
    }

    /// Adds the value of a variable, as spelled.
    pub(super) fn push_parameter(&mut self, text: &str, name: &str, in_quotes: bool) {
        self.word.has_parameter = true;
        self.word.has_other_value |= name.is_empty() || !list_contains(HARMLESS_VALUES, name);
        let is_home = name == "HOME" && self.word.value.is_empty();
        self.push_unknown(text, in_quotes);
        if is_home {
            self.word.home_expansions = Some(1);
            "~".clone_into(&mut self.word.value);
            self.literal_start = 1;
        }
    }

    /// Adds the value of a loop's variable, as spelled.
    pub(super) fn push_loop_variable(&mut self, text: &str, name: &str, in_quotes: bool) {
        let start = self.word.value.len();
        self.push_parameter(text, name, in_quotes);
        let range = start..self.word.value.len();
        self.word.loop_uses.push(LoopVariableUse { name: name.to_owned(), range, in_quotes });
    }

    pub(super) fn finish(mut self) -> ShellWord {
        if self.word.value.is_empty() {
            self.word.rule_text = quote_word("");
        }
        self.flush_literal();
        self.word
    }

    /// Adds the pending literal text to the rule text.
    fn flush_literal(&mut self) {
        let literal = &self.word.value[self.literal_start..];
        if literal.is_empty() {
            return;
        }
        let literal = quote_word(literal);
        match self.word.rule_text.is_empty() {
            true => self.word.rule_text = literal,
            false => self.word.rule_text.push_str(&literal),
        }
    }
}

/// Whether a character needs no quotes at any position of a word.
pub(super) fn is_plain_char(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '_' | '@' | '%' | '+' | '=' | ':' | ',' | '.' | '/' | '^' | '-')
        || !c.is_ascii()
}

/// Quotes `value` as one word of a script, only where necessary.
pub(super) fn quote_word(value: &str) -> String {
    if !value.is_empty() && value.chars().all(is_plain_char) {
        return value.to_owned();
    }
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('\'');
    for (at, part) in value.split('\'').enumerate() {
        if at > 0 {
            quoted.push_str(r"'\''");
        }
        quoted.push_str(part);
    }
    quoted.push('\'');
    quoted
}

/// Whether a word is a reserved word of bash at the start of a command.
pub(super) fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "!" | "[["
            | "]]"
            | "{"
            | "}"
            | "case"
            | "coproc"
            | "do"
            | "done"
            | "elif"
            | "else"
            | "esac"
            | "fi"
            | "for"
            | "function"
            | "if"
            | "in"
            | "select"
            | "then"
            | "time"
            | "until"
            | "while"
    )
}

/// Whether `word` at the start of a command is a variable assignment.
pub(super) fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether `name` is one of the space-separated names in `list`.
pub(super) fn list_contains(list: &str, name: &str) -> bool {
    // A byte loop, because the lists are short and `str::split` costs more than the comparison.
    let (mut rest, name) = (list.as_bytes(), name.as_bytes());
    loop {
        let after = rest.strip_prefix(name);
        if matches!(after, Some([] | [b' ', ..])) && !name.contains(&b' ') {
            return true;
        }
        match rest.iter().position(|byte| *byte == b' ') {
            Some(at) => rest = &rest[at + 1..],
            None => return false,
        }
    }
}

/// The maximum path length that systems accept, in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// Returns the program name without directory and `.exe`, in lower case.
pub fn bare_name(program: &str) -> Cow<'_, str> {
    if program.len() > MAX_PATH_BYTES {
        return Cow::Borrowed(program);
    }
    let folder = program.bytes().rposition(|byte| matches!(byte, b'/' | b'\\'));
    let name = &program[folder.map_or(0, |at| at + 1)..];
    let is_lower = name.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_lower {
        return Cow::Borrowed(name.strip_suffix(".exe").unwrap_or(name));
    }
    let name = name.to_lowercase();
    Cow::Owned(name.strip_suffix(".exe").unwrap_or(&name).to_owned())
}

/// Whether the last path component is already the bare name.
pub(super) fn has_bare_name(program: &str) -> bool {
    program.rsplit('/').next() == Some(&*bare_name(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_whole_names_only() {
        for name in ["a", "bc", "de"] {
            assert!(list_contains("a bc de", name), "{name}");
        }
        for name in ["", "b", "c", "d", "e", "a bc", " ", "bc "] {
            assert!(!list_contains("a bc de", name), "{name}");
        }
    }

    #[test]
    fn only_what_needs_quotes_gets_them() {
        for (value, shown) in [
            ("ls", "ls"),
            ("--colour=never", "--colour=never"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("*.rs", "'*.rs'"),
            ("~/x", "'~/x'"),
            ("{}", "'{}'"),
            ("$HOME", "'$HOME'"),
        ] {
            assert_eq!(quote_word(value), shown);
        }
    }

    #[test]
    fn unknown_word_may_continue_after_known_prefix() {
        let mut pattern = WordBuilder::default();
        pattern.push_str("ab");
        pattern.push_glob('*');
        pattern.push_str("c");
        let pattern = pattern.finish();
        for (text, expected) in [("a", true), ("ab*", true), ("abd", true), ("ac", false)] {
            assert_eq!(pattern.may_start_with(text), expected, "{text}");
        }
        assert!(!ShellWord::from_literal("ab*c").may_start_with("abd"));
        let mut words = WordBuilder::default();
        words.push_str("ab");
        words.push_unknown("$(x)", false);
        assert!(words.finish().may_start_with("c"));
    }

    #[test]
    fn assignments_are_seen_in_every_form() {
        for word in ["A=1", "_a9=", "A+=1", "a[1]=x", "a[x=y]=z"] {
            assert!(is_assignment(word), "{word}");
        }
        for word in ["A", "1=2", "--a=b", "a-b=c", "./a=b", "=x"] {
            assert!(!is_assignment(word), "{word}");
        }
    }

    #[test]
    fn bare_name_strips_folder_and_extension() {
        for (program, name) in [
            ("NPM", "npm"),
            ("node.exe", "node"),
            ("/usr/bin/npm", "npm"),
            (r"C:\Program Files\nodejs\node.exe", "node"),
        ] {
            assert_eq!(bare_name(program), name);
        }
    }
}
