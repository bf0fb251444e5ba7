//! The commands of a script that is not understood, for the rules that forbid.
//!
//! Whatever might be a command is listed: once with quotes respected, and once as if they
//! were not there, since either may be what bash sees. What is found here never leads to
//! an allow, so finding too much only asks or denies.
//!
//! **Invariant:** one look at each character, twice; what is too much is said to be cut, and
//! never left out in silence.

use super::ansi;
use super::word::{Builder, Word, is_assignment, is_reserved};

/// What might be in a script.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) commands: Vec<Vec<Word>>,
    /// Files that redirections may write.
    pub(super) writes: Vec<String>,
    /// Files that redirections may read, and what stands for a name that nobody knows.
    pub(super) reads: Vec<String>,
    /// Whether there are too many words to list them all.
    pub(super) cut: bool,
}

/// Finds what might be commands, of so many words.
pub(super) fn find(script: &str, words: usize) -> Found {
    let mut found = Found::default();
    let mut left = words;
    for quotes in [Quotes::Respected, Quotes::Dropped] {
        let mut finder = Finder { rest: script, found, left, ..Finder::default() };
        finder.run(quotes);
        (found, left) = (finder.found, finder.left);
    }
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Respected,
    Dropped,
}

#[derive(Default)]
struct Finder<'s> {
    rest: &'s str,
    found: Found,
    words: Vec<Word>,
    word: Option<Builder>,
    /// Whether the next word is the target of a redirection, and a written one.
    target: Option<bool>,
    /// Whether that is a text, and no file.
    here: bool,
    /// Whether it is read and written.
    both: bool,
    /// Whether it may be a descriptor, as in `2>&1`.
    copies: bool,
    /// Inside braces that began a command.
    braces: bool,
    /// Between `$'` and `'`, where quotes are dropped.
    ansi: bool,
    /// How many more words there may be.
    left: usize,
}

impl Finder<'_> {
    fn run(&mut self, quotes: Quotes) {
        while let Some(c) = self.rest.chars().next().filter(|_| !self.found.cut) {
            if self.ansi && c == '\\' {
                self.rest = &self.rest[1..];
                self.escaped();
            } else if !(matches!(c, '\\' | '$') && self.skip(quotes)) {
                self.rest = &self.rest[c.len_utf8()..];
                self.step(c, quotes);
            }
        }
        self.end_command();
    }

    /// Leaves out what stands for nothing, or for a blank.
    fn skip(&mut self, quotes: Quotes) -> bool {
        if let Some(rest) = self.rest.strip_prefix("$'") {
            self.rest = rest;
            match quotes {
                Quotes::Respected => self.ansi_quoted(),
                Quotes::Dropped => self.ansi = true,
            }
            return true;
        }
        // It is a number, and what comes next does not begin with `$`.
        if let Some(rest) = self.rest.strip_prefix("$$") {
            self.rest = rest;
            self.push('$');
            self.push('$');
            return true;
        }
        let dropped: &[(&str, bool)] = match quotes {
            Quotes::Respected => &[("\\\n", false), ("$\"", false)],
            Quotes::Dropped => &[("\\\n", false), ("${IFS}", true), ("$IFS", true), ("$\"", false)],
        };
        let Some((text, is_blank)) = dropped.iter().find(|(text, _)| self.rest.starts_with(text))
        else {
            return false;
        };
        // A quote after `$` still opens.
        let length = if text.ends_with('"') { 1 } else { text.len() };
        self.rest = &self.rest[length..];
        if *is_blank {
            self.end_word();
        }
        true
    }

    fn step(&mut self, c: char, quotes: Quotes) {
        match c {
            ' ' | '\t' | '\r' => self.end_word(),
            '`' => {
                self.unknown_read();
                self.end_command();
            }
            '(' => {
                self.pattern_list();
                self.end_command();
            }
            '\n' | ';' | '|' | ')' => self.end_command(),
            '&' if self.target.is_some() && self.word.is_none() => self.copies = true,
            '&' => self.end_command(),
            '<' | '>' => self.redirect(c == '>'),
            '\'' | '"' if quotes == Quotes::Dropped => self.ansi &= c != '\'',
            '\'' | '"' => self.quoted(c),
            '\\' => {
                if let Some(c) = self.rest.chars().next() {
                    self.rest = &self.rest[c.len_utf8()..];
                    self.push(c);
                }
            }
            '{' if self.word.is_none() && self.words.is_empty() => {
                self.braces = true;
                self.end_command();
            }
            ',' | '}' if self.braces => {
                self.braces &= c != '}';
                self.end_word();
            }
            c => self.push(c),
        }
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn quoted(&mut self, quote: char) {
        let word = self.word.get_or_insert_default();
        let mut escaped = false;
        for (at, c) in self.rest.char_indices() {
            if c == quote && !escaped {
                self.rest = &self.rest[at + 1..];
                return;
            }
            escaped = c == '\\' && !escaped && quote == '"';
            if !escaped {
                word.push(c);
            }
        }
        self.rest = "";
    }

    /// Reads what stands between `$'` and `'`.
    fn ansi_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.rest.chars().next() {
            self.rest = &self.rest[c.len_utf8()..];
            match c {
                '\'' => return,
                '\\' => self.escaped(),
                c => self.push(c),
            }
        }
    }

    /// Takes what an escape stands for.
    fn escaped(&mut self) {
        let (known, length) = ansi::escape(self.rest);
        self.rest = &self.rest[length..];
        match known {
            Some(c) => self.push(c),
            None => self.word.get_or_insert_default().unknown("", false),
        }
    }

    /// Before a bracket, these may begin a pattern for files.
    fn pattern_list(&mut self) {
        let is_operand = !self.words.is_empty() || self.target.is_some();
        let Some(word) = self.word.as_mut().filter(|_| is_operand) else { return };
        if word.value().ends_with(['!', '@', '+', '?', '*']) {
            word.unknown("(", false);
        }
    }

    fn redirect(&mut self, is_write: bool) {
        let is_number = |word: &Builder| word.value().bytes().all(|byte| byte.is_ascii_digit());
        if self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        let is_next = self.word.is_none() && self.target == Some(false);
        self.end_word();
        self.here = is_next && !is_write;
        // `<>` opens a file for both.
        self.both = is_next && is_write;
        self.copies = false;
        self.target = Some(is_write);
    }

    fn unknown_read(&mut self) {
        if self.found.reads.last().is_none_or(|last| last != "`") {
            self.found.reads.push("`".to_owned());
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        self.found.cut |= self.left == 0;
        self.left = self.left.saturating_sub(1);
        let mut word = word.finish();
        if let Some(is_write) = self.target.take() {
            let is_descriptor = word.value.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-'));
            let is_file = word.value != "/dev/null" && !(self.copies && is_descriptor);
            if word.unknown {
                word.value = "`".to_owned();
            }
            if self.both && is_file {
                self.found.reads.push(word.value.clone());
            }
            if is_write && is_file {
                self.found.writes.push(word.value);
            } else if is_file && !self.here {
                self.found.reads.push(word.value);
            }
            return;
        }
        if word.value == "{" {
            return self.end_command();
        }
        let starts = self.words.is_empty();
        // What may stand between `time` and its command is no command.
        let is_time = matches!(&*word.value, "-p" | "--");
        if starts && (is_time || is_reserved(&word.value) || is_assignment(&word.value)) {
            return;
        }
        if word.value.contains('$') {
            // What it becomes is not known; as it is written, it is what rules can match.
            word.parameter = true;
            word.unknown = true;
            word.splits = true;
            word.shown.clone_from(&word.value);
        }
        self.words.push(word);
    }

    fn end_command(&mut self) {
        self.end_word();
        match self.target.take() {
            // What comes in its place is not known.
            Some(true) => {
                self.found.writes.push("`".to_owned());
                if self.both {
                    self.unknown_read();
                }
            }
            Some(false) if !self.here => self.unknown_read(),
            _ => {}
        }
        if !self.words.is_empty() {
            self.found.commands.push(std::mem::take(&mut self.words));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: &str, hidden: &str) {
        let texts: Vec<String> = find(script, 100)
            .commands
            .iter()
            .map(|words| words.iter().map(|word| &*word.shown).collect::<Vec<_>>().join(" "))
            .collect();
        assert!(texts.iter().any(|text| text == hidden), "{script:?}: {texts:?}");
    }

    #[test]
    fn a_command_is_found_wherever_it_hides() {
        for script in [
            "for f in *; do rm -rf x; done",
            "if true; then rm -rf x; fi",
            "while rm -rf x; do :; done",
            "f() { rm -rf x; }; f",
            "function f { rm -rf x; }",
            "(rm -rf x) & ls",
            "echo `rm -rf x`",
            "echo \"`rm -rf x`\"",
            "echo \"$(rm -rf x)\" &",
            "echo \"${a:-$(rm -rf x)}\"",
            "diff <(rm -rf x) y",
            "case a in a) rm -rf x;; esac",
            "cat <<EOF\nit's\n$(rm -rf x)\nEOF",
            "{ rm -rf x; }",
            "{rm,-rf,x}",
            "rm${IFS}-rf${IFS}x",
            "rm$IFS-rf${IFS}x",
            "$'rm' -rf x",
            r"$'\x72m' -rf x",
            r"r$'\155' -$'\u0072f' x",
            "echo \"$($'r\\x6d' -rf x)\"",
            r"echo $'\'' | rm -rf x",
            r"echo $$'\' | rm -rf x",
            "r\\m -r\"f\" x &",
            "A=1 B=2 rm -rf x &",
            "> y rm -rf x",
            "2>&1 rm -rf x",
            "! rm -rf x",
            "time rm -rf x &",
            "r\\\nm -rf x",
            "echo 'a\nrm -rf x",
            "&& rm -rf x",
        ] {
            check(script, "rm -rf x");
        }
    }

    #[test]
    fn quotes_are_respected_once() {
        check("bash -c 'a; b' &", "bash -c 'a; b'");
        check("echo \"a \\\" b\" &", "echo 'a \" b'");
    }

    #[test]
    fn writes_are_found() {
        for (script, expected) in [
            ("for a in b; do echo > c 2>/dev/null; done", &["c"][..]),
            ("{ echo > `a`; }", &["`"]),
            ("{ echo >| `a`; }", &["`"]),
            ("{ echo &> `a`; }", &["`"]),
            ("{ echo; } > 1", &["1"]),
            ("{ echo; } > 1 2>&1 3>&-", &["1"]),
            ("{ cat <<`; }", &[]),
            ("{ echo `a`; }", &[]),
        ] {
            let mut writes = find(script, 100).writes;
            writes.dedup();
            assert_eq!(writes, expected, "{script}");
        }
    }
}
