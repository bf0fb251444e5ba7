//! Detects incomplete shell input (open quotes, brackets, heredocs, loops) in text typed into a
//! bash session.
//!
//! bash reads line by line, and after a syntax error it discards the input and starts again with
//! the next line. It is not known here which line that is. So input counts as complete only if it
//! is complete when read from each possible first line.
//!
//! **Invariant:** input that is not certain to be complete counts as incomplete until Ctrl-C.

use tool_shell_analysis::analyze_script;

/// The maximum number of possible first lines.
const MAX_READERS: usize = 64;

/// Returns the offset of the incomplete part of `text`, whose lines end in `\n`.
pub(super) fn find_open_start(text: &str) -> usize {
    let (mut start, mut at) = (0, 0);
    let mut readings: Vec<InputReader> = Vec::new();
    for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let mut line = line;
        while let Some(rest) = line.strip_prefix('\u{4}').filter(|_| readings.is_empty()) {
            // If nothing is pending, Ctrl-D ends the reader.
            (line, at, start) = (rest, at + 1, at + 1);
        }
        at += line.len();
        if readings.len() < MAX_READERS {
            readings.push(InputReader::default());
        } else {
            // There are too many readers: one is marked as lost and never ends.
            readings[0].is_lost = true;
        }
        for reading in &mut readings {
            reading.read_line(line);
        }
        if readings.iter().all(InputReader::has_ended) {
            start = at;
            readings.clear();
        }
    }
    // If the whole text can be analysed, it has no syntax error, and bash did not start again.
    if readings.first().is_some_and(InputReader::has_ended)
        && analyze_script(&text[start..at]).opaque.is_none()
    {
        start = at;
    }
    start + text[start..].chars().take_while(|c| *c == '\u{4}' && start == at).count()
}

/// Whether a program of an earlier line may consume later lines, or change the keys of the
/// terminal, so that the shell gets other text.
pub(super) fn may_consume_later_lines(text: &str) -> bool {
    let (mut start, mut at) = (0, 0);
    let mut reading = InputReader::default();
    for line in text.split_inclusive('\n') {
        if start < at && (reading.is_lost || reading.has_ended()) {
            let before = &text[start..at];
            if reading.is_lost || may_read_input(before) {
                return true;
            }
            (start, reading) = (at, InputReader::default());
        }
        at += line.len();
        reading.read_line(line);
    }
    false
}

/// Whether the text may leave a shell in an open quote or construct, even if a part of it is
/// missing.
pub(super) fn may_leave_open(text: &str) -> bool {
    text.contains(['\'', '"', '`', '\\', '{', '['])
        || ["<<", "((", "case"].iter().any(|part| text.contains(part))
}

/// Builtins and programs that read only their arguments and do not change keys.
const READS_NOTHING: &str = "\
    : [ basename cd chmod date df dirname du echo export false id jobs ls mkdir nproc popd printf pushd \
    pwd readlink realpath rmdir seq set sleep stat test touch true type umask uname unset which whoami";

fn may_read_input(text: &str) -> bool {
    let analysis = analyze_script(text);
    let reads_nothing = |name: &str| READS_NOTHING.split(' ').any(|it| it == name);
    // A line with only a comment does nothing.
    let is_nothing =
        text.lines().all(|line| matches!(line.trim_start().chars().next(), None | Some('#')));
    !is_nothing
        && (analysis.opaque.is_some()
            || analysis
                .commands
                .iter()
                .any(|it| !it.argv.first().is_some_and(|it| reads_nothing(it))))
}

/// An open construct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenConstruct {
    Single,
    Double,
    /// `$'`
    Ansi,
    Backtick,
    /// `${`
    Parameter,
    /// `((`, with the number of open brackets in it.
    Arithmetic(usize),
    Bracket,
    If,
    Loop,
    /// `{`
    Group,
    /// `[[`
    Test,
}

/// The role of the next word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WordPosition {
    /// The first word of a command, or a word that ends a construct.
    #[default]
    First,
    /// Possibly the first word of a command.
    Maybe,
    Later,
}

#[derive(Debug, Default)]
struct PendingWord {
    /// The text without quotes.
    text: String,
    is_quoted: bool,
    /// Whether it contains an expansion.
    has_expansion: bool,
}

#[derive(Debug)]
struct OpenHeredoc {
    delimiter: String,
    is_quoted: bool,
    strips_tabs: bool,
}

/// The state of bash reading the input from a certain line on.
#[derive(Debug, Default)]
struct InputReader {
    constructs: Vec<OpenConstruct>,
    /// The words around open substitutions.
    outer_words: Vec<(Option<PendingWord>, WordPosition)>,
    word: Option<PendingWord>,
    position: WordPosition,
    /// Whether an operator still needs the command after it.
    awaits_command: bool,
    /// Whether the next line continues the last one.
    is_continued: bool,
    /// Set if the next word is the delimiter of a heredoc: whether it strips tabs.
    pending_heredoc: Option<bool>,
    heredocs: Vec<OpenHeredoc>,
    in_heredoc: bool,
    /// Whether it is unknown how bash reads the rest.
    is_lost: bool,
}

impl PendingWord {
    /// Whether the word may be followed by an array value.
    fn is_list(&self) -> bool {
        let name = self.text.strip_suffix('=').filter(|_| !self.is_quoted);
        let name = name.map(|name| name.strip_suffix('+').unwrap_or(name));
        name.is_some_and(|name| {
            !name.starts_with(|c: char| c.is_ascii_digit())
                && !name.is_empty()
                && name.chars().all(is_name_char)
        })
    }
}

impl InputReader {
    fn has_ended(&self) -> bool {
        let waits = self.awaits_command || self.is_continued || self.pending_heredoc.is_some();
        !self.is_lost && !waits && self.constructs.is_empty() && self.heredocs.is_empty()
    }

    fn read_line(&mut self, line: &str) {
        self.is_continued = false;
        if line.starts_with('^') || recalls_history(line) || line.contains(is_key) {
            self.is_lost = true;
        }
        if self.is_lost {
            return;
        }
        if self.in_heredoc {
            return self.read_heredoc_line(line);
        }
        let mut rest = line;
        while let Some(c) = rest.chars().next().filter(|_| !self.is_lost) {
            let taken = self.read_char(c, rest);
            rest = &rest[taken..];
        }
    }

    fn read_heredoc_line(&mut self, line: &str) {
        let Some(heredoc) = self.heredocs.first() else { return };
        let text = line.trim_end_matches('\n');
        let text = if heredoc.strips_tabs { text.trim_start_matches('\t') } else { text };
        // A backslash at the line end joins the next line.
        self.is_lost = !heredoc.is_quoted && text.ends_with('\\');
        if text == heredoc.delimiter {
            self.heredocs.remove(0);
            self.in_heredoc = !self.heredocs.is_empty();
        }
    }

    /// Reads the character `c` at the start of `rest`. Returns how many bytes were read.
    fn read_char(&mut self, c: char, rest: &str) -> usize {
        let one = c.len_utf8();
        match self.constructs.last() {
            Some(OpenConstruct::Single) => self.read_quoted(c, c == '\'', one),
            Some(OpenConstruct::Ansi | OpenConstruct::Backtick | OpenConstruct::Double)
                if c == '\\' =>
            {
                self.push_char(c);
                one + rest[one..].chars().next().map_or(0, char::len_utf8)
            }
            Some(OpenConstruct::Ansi) => self.read_quoted(c, c == '\'', one),
            Some(OpenConstruct::Backtick) => self.read_quoted(c, c == '`', one),
            Some(OpenConstruct::Double) => match c {
                '$' => self.read_dollar(rest, true),
                '`' => self.open_construct(OpenConstruct::Backtick, 1),
                c => self.read_quoted(c, c == '"', one),
            },
            Some(OpenConstruct::Parameter) => {
                self.is_lost |=
                    "'\"`\\\n{".contains(c) || rest.starts_with("$(") || rest.starts_with("${");
                self.read_quoted(c, c == '}', one)
            }
            Some(OpenConstruct::Arithmetic(depth)) => {
                let depth = *depth;
                self.read_arithmetic(c, rest, depth)
            }
            _ => self.read_unquoted(c, rest),
        }
    }

    fn push_char(&mut self, c: char) {
        self.awaits_command = false;
        self.word.get_or_insert_default().text.push(c);
    }

    /// Reads a character in quotes, which may end them.
    fn read_quoted(&mut self, c: char, is_end: bool, length: usize) -> usize {
        // It is uncertain where the heredoc body begins then.
        self.is_lost |= c == '\n' && !self.heredocs.is_empty();
        match is_end {
            true => drop(self.constructs.pop()),
            false => self.push_char(c),
        }
        length
    }

    fn read_arithmetic(&mut self, c: char, rest: &str, depth: usize) -> usize {
        let known = c.is_ascii_alphanumeric() || " _+-*/%<>=&|?:,;$[]().~^!\n".contains(c);
        self.is_lost |= !known || rest.starts_with("${") || rest.starts_with("$(");
        self.constructs.pop();
        match c {
            '(' => self.constructs.push(OpenConstruct::Arithmetic(depth + 1)),
            ')' if depth > 0 => self.constructs.push(OpenConstruct::Arithmetic(depth - 1)),
            ')' if rest.starts_with("))") => {
                if self.word.is_none() {
                    self.position = WordPosition::Maybe;
                }
                return 2;
            }
            // It may be two nested brackets instead.
            ')' => self.is_lost = true,
            _ => self.constructs.push(OpenConstruct::Arithmetic(depth)),
        }
        1
    }

    /// Opens a construct that is a part of a word.
    fn open_construct(&mut self, frame: OpenConstruct, length: usize) -> usize {
        self.awaits_command = false;
        let word = self.word.get_or_insert_default();
        word.is_quoted = true;
        word.has_expansion |= !matches!(frame, OpenConstruct::Single | OpenConstruct::Double);
        self.constructs.push(frame);
        length
    }

    fn read_dollar(&mut self, rest: &str, in_quotes: bool) -> usize {
        let starts = |what: &str| rest.starts_with(what);
        if starts("$((") {
            return self.open_construct(OpenConstruct::Arithmetic(0), 3);
        }
        if starts("$(") {
            return self.open_substitution(2);
        }
        if starts("${") {
            return self.open_construct(OpenConstruct::Parameter, 2);
        }
        if starts("$'") && !in_quotes {
            return self.open_construct(OpenConstruct::Ansi, 2);
        }
        if starts("$\"") && !in_quotes {
            return self.open_construct(OpenConstruct::Double, 2);
        }
        self.is_lost |= starts("$[");
        self.push_char('$');
        self.word.get_or_insert_default().has_expansion = true;
        1
    }

    /// Opens a substitution inside a word.
    fn open_substitution(&mut self, length: usize) -> usize {
        self.open_construct(OpenConstruct::Bracket, length);
        self.outer_words.push((self.word.take(), self.position));
        self.position = WordPosition::First;
        length
    }

    fn read_unquoted(&mut self, c: char, rest: &str) -> usize {
        let starts = |what: &str| rest.starts_with(what);
        match c {
            '\\' if starts("\\\n") => {
                self.is_continued = true;
                2
            }
            '\\' => {
                let escaped = rest[1..].chars().next().unwrap_or_default();
                self.push_char(escaped);
                self.word.get_or_insert_default().is_quoted = true;
                1 + escaped.len_utf8()
            }
            '\'' => self.open_construct(OpenConstruct::Single, 1),
            '"' => self.open_construct(OpenConstruct::Double, 1),
            '`' => self.open_construct(OpenConstruct::Backtick, 1),
            '$' => self.read_dollar(rest, false),
            '#' if self.word.is_none() => rest.find('\n').unwrap_or(rest.len()),
            ' ' => {
                self.end_word();
                1
            }
            '\n' => {
                self.end_word();
                // The delimiter must follow on the same line.
                self.is_lost |= self.pending_heredoc.is_some();
                self.in_heredoc = !self.heredocs.is_empty();
                self.position = WordPosition::First;
                1
            }
            '(' => self.read_bracket(rest),
            '[' if self.is_subscript() => self.read_subscript(rest),
            ')' => {
                self.end_word();
                match self.constructs.pop() {
                    Some(OpenConstruct::Bracket) => {
                        let (word, place) = self.outer_words.pop().unwrap_or_default();
                        let is_part = word.is_some();
                        (self.word, self.position) = (word, place);
                        if !is_part {
                            self.position = WordPosition::Maybe;
                        }
                    }
                    // Nothing is open: bash reports a syntax error.
                    None => {}
                    Some(_) => self.is_lost = true,
                }
                1
            }
            '<' | '>' => self.read_redirect(rest),
            '&' if starts("&>") => self.read_redirect(&rest[1..]) + 1,
            ';' | '&' | '|' => {
                self.end_word();
                self.position = WordPosition::First;
                let is_double = starts("&&") || starts("||") || starts("|&");
                self.awaits_command = c == '|' || is_double;
                1 + usize::from(is_double)
            }
            c => {
                self.push_char(c);
                c.len_utf8()
            }
        }
    }

    /// Whether the bracket may be an array subscript, which may span words and lines.
    fn is_subscript(&self) -> bool {
        let Some(word) = &self.word else {
            let around = self.outer_words.last().and_then(|(word, _)| word.as_ref());
            return around.is_some_and(|word| word.text.ends_with('='));
        };
        word.text.chars().all(is_name_char)
    }

    fn read_subscript(&mut self, rest: &str) -> usize {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-+*/%@^.:,".contains(c);
        let end = rest[1..].find(|c| !is_plain(c)).filter(|end| rest[1 + end..].starts_with(']'));
        self.is_lost |= end.is_none();
        self.push_char('[');
        end.map_or(1, |end| end + 2)
    }

    fn read_bracket(&mut self, rest: &str) -> usize {
        let before = self.word.as_ref().map(PendingWord::is_list);
        if before.is_none() && rest.starts_with("((") {
            self.awaits_command = false;
            self.constructs.push(OpenConstruct::Arithmetic(0));
            return 2;
        }
        if before == Some(true) {
            return self.open_substitution(1);
        }
        // The body of a function follows `name()`.
        let is_function = before.is_some() || self.position == WordPosition::Later;
        self.end_word();
        if rest.starts_with("()") && is_function {
            self.awaits_command = true;
            self.position = WordPosition::Maybe;
            return 2;
        }
        self.awaits_command = false;
        self.outer_words.push((None, self.position));
        self.constructs.push(OpenConstruct::Bracket);
        self.position = WordPosition::First;
        1
    }

    fn read_redirect(&mut self, rest: &str) -> usize {
        let starts = |what: &str| rest.starts_with(what);
        if starts("<(") || starts(">(") {
            return self.open_substitution(2);
        }
        self.end_word();
        self.awaits_command = false;
        self.position = WordPosition::Later;
        if starts("<<<") {
            return 3;
        }
        if starts("<<") {
            let strips = starts("<<-");
            self.is_lost |= self.pending_heredoc.replace(strips).is_some();
            return 2 + usize::from(strips);
        }
        let is_double = [">>", ">&", ">|", "<>", "<&"].into_iter().any(starts);
        1 + usize::from(is_double)
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if let Some(strips) = self.pending_heredoc.take() {
            self.is_lost |= word.has_expansion || word.text.contains('\n');
            self.heredocs.push(OpenHeredoc {
                delimiter: word.text,
                is_quoted: word.is_quoted,
                strips_tabs: strips,
            });
            return;
        }
        let place = std::mem::replace(&mut self.position, WordPosition::Later);
        if word.is_quoted {
            return;
        }
        let top = self.constructs.last().copied();
        let mut end = |frame| {
            if place == WordPosition::First && top == Some(frame) {
                self.constructs.pop();
                self.position = WordPosition::Maybe;
            }
        };
        match &*word.text {
            "fi" => end(OpenConstruct::If),
            "done" => end(OpenConstruct::Loop),
            "}" => end(OpenConstruct::Group),
            "]]" if top == Some(OpenConstruct::Test) => {
                self.constructs.pop();
                self.position = WordPosition::Maybe;
            }
            text if place != WordPosition::Later => self.read_first_word(text),
            _ => {}
        }
    }

    /// Handles a word in the first position of a command.
    fn read_first_word(&mut self, word: &str) {
        let (frame, place) = match word {
            "if" => (Some(OpenConstruct::If), WordPosition::First),
            "while" | "until" => (Some(OpenConstruct::Loop), WordPosition::First),
            "for" => (Some(OpenConstruct::Loop), WordPosition::Later),
            "{" => (Some(OpenConstruct::Group), WordPosition::First),
            "[[" => (Some(OpenConstruct::Test), WordPosition::Later),
            "then" | "else" | "elif" | "do" => (None, WordPosition::First),
            "!" | "time" | "-p" | "--" => (None, WordPosition::Maybe),
            // The syntax of these is not parsed.
            "case" | "coproc" | "function" | "select" => {
                self.is_lost = true;
                (None, WordPosition::Later)
            }
            _ => (None, WordPosition::Later),
        };
        self.constructs.extend(frame);
        self.position = place;
    }
}

/// Whether a typed line may contain a history expansion.
fn recalls_history(line: &str) -> bool {
    let harmless = |next: Option<char>| next.is_none_or(|c| " \n=(\"".contains(c));
    line.match_indices('!').any(|(at, _)| !harmless(line[at + 1..].chars().next()))
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a character is a control key.
fn is_key(c: char) -> bool {
    c.is_control() && c != '\n'
}

#[cfg(test)]
mod tests;
