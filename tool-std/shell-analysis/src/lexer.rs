//! The strict lexer: words, quotes without expansions, and `;`, `&&`, `||`, `|`, line ends.
//!
//! A script with any other syntax is rejected. What is accepted means the same to bash, which a
//! property test checks against a real bash. The text must have passed `check_raw_text`.
//!
//! **Invariant:** one look at each character, no recursion, no guessing.

use std::iter::Peekable;
use std::str::Chars;

use super::word::{ShellWord, WordBuilder, is_plain_char, is_reserved};

/// The maximum number of commands in a script.
pub(super) const MAX_COMMANDS: usize = 256;

/// The maximum number of words in a script.
pub(super) const MAX_WORDS: usize = 4096;

/// Splits a plain script into commands and words. `None` if the script is not plain.
pub(super) fn tokenize(script: &str) -> Option<Vec<Vec<ShellWord>>> {
    let mut lexer = Lexer {
        rest: script.chars().peekable(),
        commands: Vec::new(),
        words: Vec::new(),
        word: None,
        word_count: 0,
        awaits_command: false,
    };
    while let Some(c) = lexer.rest.next() {
        lexer.lex_char(c)?;
    }
    lexer.end_line()?;
    (!lexer.awaits_command && !lexer.commands.is_empty()).then_some(lexer.commands)
}

struct Lexer<'s> {
    rest: Peekable<Chars<'s>>,
    commands: Vec<Vec<ShellWord>>,
    words: Vec<ShellWord>,
    word: Option<WordBuilder>,
    /// Words so far.
    word_count: usize,
    /// Whether an operator still needs the command after it.
    awaits_command: bool,
}

impl Lexer<'_> {
    fn lex_char(&mut self, c: char) -> Option<()> {
        match c {
            ' ' | '\t' => self.end_word(),
            '\n' => self.end_line(),
            ';' => self.end_command(false),
            '&' => {
                self.rest.next_if_eq(&'&')?;
                self.end_command(true)
            }
            '|' => {
                self.rest.next_if_eq(&'|');
                self.end_command(true)
            }
            '\'' => self.lex_single_quoted(),
            '"' => self.lex_double_quoted(),
            '\\' => {
                let escaped = self.rest.next().filter(|&c| c != '\n')?;
                let word = self.current_word();
                word.is_quoted = true;
                word.push(escaped);
                Some(())
            }
            '*' | '?' | '[' | ']' => {
                self.current_word().push_glob(c);
                Some(())
            }
            '#' => {
                self.word.as_mut()?.push(c);
                Some(())
            }
            '~' => {
                // After `=` and `:`, bash expands the tilde.
                let word = self.word.as_mut().filter(|word| !word.value().ends_with(['=', ':']))?;
                word.push(c);
                Some(())
            }
            c if is_plain_char(c) => {
                self.current_word().push(c);
                Some(())
            }
            _ => None,
        }
    }

    fn current_word(&mut self) -> &mut WordBuilder {
        self.word.get_or_insert_default()
    }

    fn lex_single_quoted(&mut self) -> Option<()> {
        let word = self.word.get_or_insert_default();
        word.is_quoted = true;
        loop {
            match self.rest.next()? {
                '\'' => return Some(()),
                c => word.push(c),
            }
        }
    }

    fn lex_double_quoted(&mut self) -> Option<()> {
        let word = self.word.get_or_insert_default();
        word.is_quoted = true;
        loop {
            match self.rest.next()? {
                '"' => return Some(()),
                '$' | '`' => return None,
                '\\' if matches!(self.rest.peek()?, '$' | '`' | '"' | '\\' | '\n') => return None,
                c => word.push(c),
            }
        }
    }

    fn end_word(&mut self) -> Option<()> {
        let Some(word) = self.word.take() else { return Some(()) };
        let word = word.finish();
        if self.words.is_empty() && !is_program(&word) {
            return None;
        }
        self.word_count += 1;
        self.words.push(word);
        (self.word_count <= MAX_WORDS).then_some(())
    }

    fn end_command(&mut self, joined: bool) -> Option<()> {
        self.end_word()?;
        if self.words.is_empty() || self.commands.len() == MAX_COMMANDS {
            return None;
        }
        self.commands.push(std::mem::take(&mut self.words));
        self.awaits_command = joined;
        Some(())
    }

    fn end_line(&mut self) -> Option<()> {
        self.end_word()?;
        if self.words.is_empty() { Some(()) } else { self.end_command(false) }
    }
}

/// Whether `word` at the start of a command is a program name.
fn is_program(word: &ShellWord) -> bool {
    let value = word.value.as_str();
    let is_name = !value.is_empty() && !value.contains('=') && !value.starts_with('%');
    is_name && !is_reserved(value) && (!word.is_glob || value == "[")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(script: &str) -> Option<Vec<Vec<String>>> {
        let values = |words: Vec<ShellWord>| words.into_iter().map(|word| word.value).collect();
        Some(tokenize(script)?.into_iter().map(values).collect())
    }

    #[track_caller]
    fn check(script: &str, expected: &[&[&str]]) {
        assert_eq!(argv(script).unwrap_or_else(|| panic!("{script:?} is not plain")), expected);
    }

    #[test]
    fn words_and_quotes() {
        check("ls -l", &[&["ls", "-l"]]);
        check("  ls\t-l \n", &[&["ls", "-l"]]);
        check(r#"echo "a b"'c d'e\ f"#, &[&["echo", "a bc de f"]]);
        check(r#"echo '' "" a\'b "x\n""#, &[&["echo", "", "", "a'b", r"x\n"]]);
        check("r\\m x", &[&["rm", "x"]]);
        check("cat a~ b#c *.rs [a-z]?", &[&["cat", "a~", "b#c", "*.rs", "[a-z]?"]]);
        check("echo \"a\nb\"", &[&["echo", "a\nb"]]);
        check("[ -f x ]", &[&["[", "-f", "x", "]"]]);
    }

    #[test]
    fn separators() {
        check("a;b|c&&d||e\nf", &[&["a"], &["b"], &["c"], &["d"], &["e"], &["f"]]);
        check("a &&\n\n b;", &[&["a"], &["b"]]);
        check("a |\nb\n\n", &[&["a"], &["b"]]);
    }

    #[test]
    fn other_syntax_is_not_plain() {
        for script in [
            "",
            "\n",
            ";",
            "a;;b",
            "&& a",
            "a &&",
            "a |",
            "a | | b",
            "a & b",
            "a &",
            "a |& b",
            "a > b",
            "a < b",
            "a $x",
            "a ${x}",
            "a $(b)",
            "a `b`",
            "\"$x\"",
            "\"`b`\"",
            "\"\\$\"",
            "(a)",
            "{ a; }",
            "a {b,c}",
            "a {}",
            "!",
            "! a",
            "a !",
            "# a",
            "a # b",
            "~/a",
            "a ~",
            "a b=~",
            "a b:~/c",
            "a\\\nb",
            "a \\\n b",
            "a \\",
            "'a",
            "\"a",
            "A=1",
            "A=1 b",
            "if a",
            "time a",
            "[[ a ]]",
            "%1",
            "*a",
            "r? x",
            "'' a",
            "a $'b'",
            "a $\"b\"",
            "function f",
        ] {
            assert_eq!(argv(script), None, "{script:?}");
        }
    }

    #[test]
    fn limits_hold() {
        assert!(tokenize(&"a;".repeat(MAX_COMMANDS)).is_some());
        assert!(tokenize(&"a;".repeat(MAX_COMMANDS + 1)).is_none());
        assert!(tokenize(&"a ".repeat(MAX_WORDS)).is_some());
        assert!(tokenize(&"a ".repeat(MAX_WORDS + 1)).is_none());
    }
}
