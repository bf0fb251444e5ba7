//! The strict layer: words, quotes without expansions, and `;`, `&&`, `||`, `|`, line ends.
//!
//! Everything that is not listed here is not plain. What is plain means the same to bash:
//! a property test runs it there. The text must have passed `rawcheck`.
//!
//! **Invariant:** one look at each character, no recursion, and no guess.

use std::iter::Peekable;
use std::str::Chars;

use super::word::{Builder, Word, is_plain, is_reserved};

/// The most commands that are understood.
pub(super) const MAX_COMMANDS: usize = 256;

/// The most words that are understood, of all commands together.
pub(super) const MAX_WORDS: usize = 4096;

/// The commands of a plain script, or nothing.
pub(super) fn lex(script: &str) -> Option<Vec<Vec<Word>>> {
    let mut lexer = Lexer {
        rest: script.chars().peekable(),
        commands: Vec::new(),
        words: Vec::new(),
        word: None,
        count: 0,
        joined: false,
    };
    while let Some(c) = lexer.rest.next() {
        lexer.step(c)?;
    }
    lexer.end_line()?;
    (!lexer.joined && !lexer.commands.is_empty()).then_some(lexer.commands)
}

struct Lexer<'s> {
    rest: Peekable<Chars<'s>>,
    commands: Vec<Vec<Word>>,
    words: Vec<Word>,
    word: Option<Builder>,
    /// Words so far.
    count: usize,
    /// Whether an operator waits for the command after it.
    joined: bool,
}

impl Lexer<'_> {
    fn step(&mut self, c: char) -> Option<()> {
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
            '\'' => self.single_quoted(),
            '"' => self.double_quoted(),
            '\\' => {
                let escaped = self.rest.next().filter(|&c| c != '\n')?;
                let word = self.word();
                word.quoted = true;
                word.push(escaped);
                Some(())
            }
            '*' | '?' | '[' | ']' => {
                self.word().glob(c);
                Some(())
            }
            '#' => {
                self.word.as_mut()?.push(c);
                Some(())
            }
            '~' => {
                // After these, bash puts the home folder in its place.
                let word = self.word.as_mut().filter(|word| !word.value().ends_with(['=', ':']))?;
                word.push(c);
                Some(())
            }
            c if is_plain(c) => {
                self.word().push(c);
                Some(())
            }
            _ => None,
        }
    }

    fn word(&mut self) -> &mut Builder {
        self.word.get_or_insert_default()
    }

    fn single_quoted(&mut self) -> Option<()> {
        let word = self.word.get_or_insert_default();
        word.quoted = true;
        loop {
            match self.rest.next()? {
                '\'' => return Some(()),
                c => word.push(c),
            }
        }
    }

    fn double_quoted(&mut self) -> Option<()> {
        let word = self.word.get_or_insert_default();
        word.quoted = true;
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
        self.count += 1;
        self.words.push(word);
        (self.count <= MAX_WORDS).then_some(())
    }

    fn end_command(&mut self, joined: bool) -> Option<()> {
        self.end_word()?;
        if self.words.is_empty() || self.commands.len() == MAX_COMMANDS {
            return None;
        }
        self.commands.push(std::mem::take(&mut self.words));
        self.joined = joined;
        Some(())
    }

    fn end_line(&mut self) -> Option<()> {
        self.end_word()?;
        if self.words.is_empty() { Some(()) } else { self.end_command(false) }
    }
}

/// Whether a command that begins with `word` runs the program of that name.
fn is_program(word: &Word) -> bool {
    let value = word.value.as_str();
    let is_name = !value.is_empty() && !value.contains('=') && !value.starts_with('%');
    is_name && !is_reserved(value) && (!word.glob || value == "[")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(script: &str) -> Option<Vec<Vec<String>>> {
        let values = |words: Vec<Word>| words.into_iter().map(|word| word.value).collect();
        Some(lex(script)?.into_iter().map(values).collect())
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
    fn everything_else_is_not_plain() {
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
        assert!(lex(&"a;".repeat(MAX_COMMANDS)).is_some());
        assert!(lex(&"a;".repeat(MAX_COMMANDS + 1)).is_none());
        assert!(lex(&"a ".repeat(MAX_WORDS)).is_some());
        assert!(lex(&"a ".repeat(MAX_WORDS + 1)).is_none());
    }
}
