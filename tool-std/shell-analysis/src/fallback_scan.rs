//! Fallback scanner: lists the commands that an opaque script may contain, for deny rules.
//!
//! Every candidate is listed twice: once with quotes respected and once with quotes ignored,
//! because either may be what bash sees. The result never leads to an allow decision, so false
//! positives only cause a question or a denial.
//!
//! **Invariant:** two passes, one look at each character. An incomplete result is marked as
//! truncated, never cut silently.

use super::ansi_quotes;
use super::word::{ShellWord, WordBuilder, is_assignment, is_reserved};

/// Commands and files that an opaque script may contain.
#[derive(Debug, Default)]
pub(super) struct FallbackScan {
    pub(super) commands: Vec<Vec<ShellWord>>,
    /// Files that redirections may write.
    pub(super) writes: Vec<String>,
    /// Files that redirections may read; a backtick stands for an unknown name.
    pub(super) reads: Vec<String>,
    /// Whether there were too many words to list them all.
    pub(super) is_truncated: bool,
}

/// Lists the possible commands of a script, up to `words` words.
pub(super) fn scan_commands(script: &str, words: usize) -> FallbackScan {
    let mut found = FallbackScan::default();
    let mut left = words;
    for quotes in [QuoteHandling::Respected, QuoteHandling::Dropped] {
        let mut finder = FallbackScanner {
            rest: script,
            output: found,
            words_left: left,
            ..FallbackScanner::default()
        };
        finder.scan_all(quotes);
        (found, left) = (finder.output, finder.words_left);
    }
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum QuoteHandling {
    Respected,
    Dropped,
}

#[derive(Default)]
struct FallbackScanner<'s> {
    rest: &'s str,
    output: FallbackScan,
    words: Vec<ShellWord>,
    word: Option<WordBuilder>,
    /// The redirection that waits for its target: `Some(true)` if it writes.
    pending_redirect: Option<bool>,
    /// Whether its target is a here-string and not a file.
    is_here_string: bool,
    /// Whether it opens the file for reading and writing (`<>`).
    is_read_write: bool,
    /// Whether its target may be a descriptor, as in `2>&1`.
    may_be_descriptor: bool,
    /// Whether the scanner is inside braces at the start of a command.
    in_braces: bool,
    /// Whether it is inside `$'..'` while quotes are ignored.
    in_ansi_quotes: bool,
    /// How many more words may be listed.
    words_left: usize,
}

impl FallbackScanner<'_> {
    fn scan_all(&mut self, quotes: QuoteHandling) {
        while let Some(c) = self.rest.chars().next().filter(|_| !self.output.is_truncated) {
            if self.in_ansi_quotes && c == '\\' {
                self.rest = &self.rest[1..];
                self.scan_escape();
            } else if !(matches!(c, '\\' | '$') && self.skip_ignored(quotes)) {
                self.rest = &self.rest[c.len_utf8()..];
                self.scan_char(c, quotes);
            }
        }
        self.end_command();
    }

    /// Skips text that expands to nothing or to whitespace.
    fn skip_ignored(&mut self, quotes: QuoteHandling) -> bool {
        if let Some(rest) = self.rest.strip_prefix("$'") {
            self.rest = rest;
            match quotes {
                QuoteHandling::Respected => self.scan_ansi_quoted(),
                QuoteHandling::Dropped => self.in_ansi_quotes = true,
            }
            return true;
        }
        // `$$` is the process id; the next character does not start an expansion.
        if let Some(rest) = self.rest.strip_prefix("$$") {
            self.rest = rest;
            self.push_char('$');
            self.push_char('$');
            return true;
        }
        let dropped: &[(&str, bool)] = match quotes {
            QuoteHandling::Respected => &[("\\\n", false), ("$\"", false)],
            QuoteHandling::Dropped => {
                &[("\\\n", false), ("${IFS}", true), ("$IFS", true), ("$\"", false)]
            }
        };
        let Some((text, is_blank)) = dropped.iter().find(|(text, _)| self.rest.starts_with(text))
        else {
            return false;
        };
        // The quote after `$` still opens.
        let length = if text.ends_with('"') { 1 } else { text.len() };
        self.rest = &self.rest[length..];
        if *is_blank {
            self.end_word();
        }
        true
    }

    fn scan_char(&mut self, c: char, quotes: QuoteHandling) {
        match c {
            ' ' | '\t' | '\r' => self.end_word(),
            '`' => {
                self.add_unknown_read();
                self.end_command();
            }
            '(' => {
                self.mark_pattern_list();
                self.end_command();
            }
            '\n' | ';' | '|' | ')' => self.end_command(),
            '&' if self.pending_redirect.is_some() && self.word.is_none() => {
                self.may_be_descriptor = true
            }
            '&' => self.end_command(),
            '<' | '>' => self.begin_redirect(c == '>'),
            '\'' | '"' if quotes == QuoteHandling::Dropped => self.in_ansi_quotes &= c != '\'',
            '\'' | '"' => self.scan_quoted(c),
            '\\' => {
                if let Some(c) = self.rest.chars().next() {
                    self.rest = &self.rest[c.len_utf8()..];
                    self.push_char(c);
                }
            }
            '{' if self.word.is_none() && self.words.is_empty() => {
                self.in_braces = true;
                self.end_command();
            }
            ',' | '}' if self.in_braces => {
                self.in_braces &= c != '}';
                self.end_word();
            }
            c => self.push_char(c),
        }
    }

    fn push_char(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn scan_quoted(&mut self, quote: char) {
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

    /// Scans the contents of `$'..'`.
    fn scan_ansi_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.rest.chars().next() {
            self.rest = &self.rest[c.len_utf8()..];
            match c {
                '\'' => return,
                '\\' => self.scan_escape(),
                c => self.push_char(c),
            }
        }
    }

    /// Decodes an escape sequence.
    fn scan_escape(&mut self) {
        let (known, length) = ansi_quotes::decode_escape(self.rest);
        self.rest = &self.rest[length..];
        match known {
            Some(c) => self.push_char(c),
            None => self.word.get_or_insert_default().push_unknown("", false),
        }
    }

    /// Marks the word as unknown if the bracket begins an extended glob, such as `@(..)`.
    fn mark_pattern_list(&mut self) {
        let is_operand = !self.words.is_empty() || self.pending_redirect.is_some();
        let Some(word) = self.word.as_mut().filter(|_| is_operand) else { return };
        if word.value().ends_with(['!', '@', '+', '?', '*']) {
            word.push_unknown("(", false);
        }
    }

    fn begin_redirect(&mut self, is_write: bool) {
        let is_number = |word: &WordBuilder| word.value().bytes().all(|byte| byte.is_ascii_digit());
        if self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        let is_next = self.word.is_none() && self.pending_redirect == Some(false);
        self.end_word();
        self.is_here_string = is_next && !is_write;
        // `<>` opens a file for both.
        self.is_read_write = is_next && is_write;
        self.may_be_descriptor = false;
        self.pending_redirect = Some(is_write);
    }

    fn add_unknown_read(&mut self) {
        if self.output.reads.last().is_none_or(|last| last != "`") {
            self.output.reads.push("`".to_owned());
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        self.output.is_truncated |= self.words_left == 0;
        self.words_left = self.words_left.saturating_sub(1);
        let mut word = word.finish();
        if let Some(is_write) = self.pending_redirect.take() {
            let is_descriptor = word.value.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-'));
            let is_file = word.value != "/dev/null" && !(self.may_be_descriptor && is_descriptor);
            if word.is_unknown {
                word.value = "`".to_owned();
            }
            if self.is_read_write && is_file {
                self.output.reads.push(word.value.clone());
            }
            if is_write && is_file {
                self.output.writes.push(word.value);
            } else if is_file && !self.is_here_string {
                self.output.reads.push(word.value);
            }
            return;
        }
        if word.value == "{" {
            return self.end_command();
        }
        let starts = self.words.is_empty();
        // `-p` and `--` may follow `time` and are not commands.
        let is_time = matches!(&*word.value, "-p" | "--");
        if starts && (is_time || is_reserved(&word.value) || is_assignment(&word.value)) {
            return;
        }
        if word.value.contains('$') {
            // The value is unknown; rules match the word as spelled.
            word.has_parameter = true;
            word.is_unknown = true;
            word.may_split = true;
            word.rule_text.clone_from(&word.value);
        }
        self.words.push(word);
    }

    fn end_command(&mut self) {
        self.end_word();
        match self.pending_redirect.take() {
            // The target is unknown.
            Some(true) => {
                self.output.writes.push("`".to_owned());
                if self.is_read_write {
                    self.add_unknown_read();
                }
            }
            Some(false) if !self.is_here_string => self.add_unknown_read(),
            _ => {}
        }
        if !self.words.is_empty() {
            self.output.commands.push(std::mem::take(&mut self.words));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: &str, hidden: &str) {
        let texts: Vec<String> = scan_commands(script, 100)
            .commands
            .iter()
            .map(|words| words.iter().map(|word| &*word.rule_text).collect::<Vec<_>>().join(" "))
            .collect();
        assert!(texts.iter().any(|text| text == hidden), "{script:?}: {texts:?}");
    }

    #[test]
    fn fallback_scan_finds_nested_commands() {
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
            let mut writes = scan_commands(script, 100).writes;
            writes.dedup();
            assert_eq!(writes, expected, "{script}");
        }
    }
}
