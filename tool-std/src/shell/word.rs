//! One word of a command: its value after quote removal, and what is not known of it.
//!
//! **Invariant:** nothing here reads a script; the scanners put words together.

use std::borrow::Cow;

/// A word as the program gets it, where that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// The value; what is only known at run time stands in it as it is written.
    pub(super) value: String,
    /// The value as rules match it: quoted where that is needed, expansions as written.
    pub(super) shown: String,
    /// Holds the value of a variable.
    pub(super) parameter: bool,
    /// Holds something that is only known at run time.
    pub(super) unknown: bool,
    /// Names files by a pattern.
    pub(super) glob: bool,
    /// May become several words, each of any form.
    pub(super) splits: bool,
    /// Is the name of a pipe.
    pub(super) pipe: bool,
    /// Begins with what is not known, or goes on with it after a dash, so that it may be any
    /// option.
    pub(super) leads: bool,
    /// How much at its start is known, where not all of it is.
    pub(super) fixed: usize,
}

impl Word {
    pub(super) fn literal(value: &str) -> Self {
        Self { value: value.to_owned(), shown: quote(value), ..Self::default() }
    }

    /// Whether it may turn out to be an option, though it does not look like one.
    pub(super) fn may_be_option(&self) -> bool {
        self.splits || self.leads
    }

    /// Whether it may turn out to begin with `text`.
    pub(super) fn may_begin(&self, text: &str) -> bool {
        let is_open = !self.is_literal() && !self.pipe;
        self.value.starts_with(text)
            || is_open && (self.splits || text.starts_with(&self.value[..self.fixed]))
    }

    /// What is known of its value before it runs.
    pub(super) fn known(&self) -> Known {
        match self {
            _ if self.is_literal() => Known::Literal,
            _ if self.pipe => Known::Pipe,
            _ if !self.unknown => Known::Pattern,
            _ if self.splits || self.glob => Known::Nothing,
            _ => Known::One,
        }
    }

    /// Whether its value is exactly what is written.
    pub(super) fn is_literal(&self) -> bool {
        !self.unknown && !self.glob
    }
}

/// What is known of a word before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It is what is written.
    Literal,
    /// The names of files that fit a pattern.
    Pattern,
    /// The name of a pipe.
    Pipe,
    /// One word.
    One,
    /// It may be any number of words.
    Nothing,
}

/// A word under construction.
#[derive(Debug, Default)]
pub(super) struct Builder {
    word: Word,
    /// Where the literal text of the value begins that is not yet in `shown`.
    run: usize,
    /// Whether a part of it is quoted or escaped.
    pub(super) quoted: bool,
    /// Whether it has unquoted braces.
    pub(super) braces: bool,
}

impl Builder {
    pub(super) fn value(&self) -> &str {
        &self.word.value
    }

    pub(super) fn push(&mut self, c: char) {
        self.word.value.push(c);
    }

    pub(super) fn push_str(&mut self, text: &str) {
        self.word.value.push_str(text);
    }

    /// Adds text that stands for something else, but for one known word.
    pub(super) fn raw(&mut self, text: &str) {
        self.show();
        self.word.value.push_str(text);
        self.word.shown.push_str(text);
        self.run = self.word.value.len();
    }

    /// Adds a character of a file name pattern.
    pub(super) fn glob(&mut self, c: char) {
        self.open();
        self.word.leads |= self.may_begin_option();
        self.word.glob = true;
        self.raw(c.encode_utf8(&mut [0; 4]));
    }

    /// Adds text that stands for what is only known at run time.
    pub(super) fn unknown(&mut self, text: &str, in_quotes: bool) {
        self.open();
        self.word.leads |= self.may_begin_option();
        self.word.splits |= !in_quotes;
        self.word.unknown = true;
        self.raw(text);
    }

    /// Adds text that stands for a number: one word, and no option.
    pub(super) fn number(&mut self, text: &str) {
        self.open();
        self.word.unknown = true;
        self.raw(text);
    }

    /// Says that what comes next is not known.
    fn open(&mut self) {
        if self.word.is_literal() {
            self.word.fixed = self.word.value.len();
        }
    }

    /// Whether what comes next decides which option the word is, or whether it is one.
    fn may_begin_option(&self) -> bool {
        self.word.value.is_empty() || self.word.value.starts_with('-')
    }

    /// Adds text that stands for the name of a pipe.
    pub(super) fn pipe(&mut self, text: &str) {
        self.word.unknown = true;
        self.word.pipe = true;
        self.raw(text);
    }

    /// Adds the value of a variable.
    pub(super) fn parameter(&mut self, text: &str, in_quotes: bool) {
        self.word.parameter = true;
        self.unknown(text, in_quotes);
    }

    pub(super) fn finish(mut self) -> Word {
        if self.word.value.is_empty() {
            self.word.shown = quote("");
        }
        self.show();
        self.word
    }

    /// Adds the literal text so far to what is shown.
    fn show(&mut self) {
        let literal = &self.word.value[self.run..];
        if literal.is_empty() {
            return;
        }
        let literal = quote(literal);
        match self.word.shown.is_empty() {
            true => self.word.shown = literal,
            false => self.word.shown.push_str(&literal),
        }
    }
}

/// Characters that mean themselves without quotes, wherever they stand.
pub(super) fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '_' | '@' | '%' | '+' | '=' | ':' | ',' | '.' | '/' | '^' | '-')
        || !c.is_ascii()
}

/// `value` as one word of a script, with quotes only where they are needed.
pub(super) fn quote(value: &str) -> String {
    if !value.is_empty() && value.chars().all(is_plain) {
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

/// Words that are not programs when a command begins with them.
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

/// Whether a command that begins with `word` begins by setting a variable.
pub(super) fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether `name` is one of the names in `list`, between which blanks stand.
pub(super) fn is_listed(list: &str, name: &str) -> bool {
    list.split(' ').any(|listed| listed == name)
}

/// No system finds a program by a longer path, in bytes.
const LONGEST_PATH: usize = 4096;

/// The name of a program without its folder, as systems without letter case find it.
pub(crate) fn bare_name(program: &str) -> Cow<'_, str> {
    if program.len() > LONGEST_PATH {
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

/// Whether a program is written with its bare name, behind a folder or not.
pub(super) fn has_bare_name(program: &str) -> bool {
    program.rsplit('/').next() == Some(&*bare_name(program))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(quote(value), shown);
        }
    }

    #[test]
    fn what_is_not_known_may_be_anything_behind_its_start() {
        let mut pattern = Builder::default();
        pattern.push_str("ab");
        pattern.glob('*');
        pattern.push_str("c");
        let pattern = pattern.finish();
        for (text, expected) in [("a", true), ("ab*", true), ("abd", true), ("ac", false)] {
            assert_eq!(pattern.may_begin(text), expected, "{text}");
        }
        assert!(!Word::literal("ab*c").may_begin("abd"));
        let mut words = Builder::default();
        words.push_str("ab");
        words.unknown("$(x)", false);
        assert!(words.finish().may_begin("c"));
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
    fn a_bare_name_has_no_folder_and_no_ending() {
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
