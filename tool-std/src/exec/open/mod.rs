//! What stands open of a text that was typed into a bash, and goes on with what is typed next: a
//! quote, a bracket, a heredoc, a loop.
//!
//! bash reads line by line, and where it does not understand one it drops what it has and begins
//! anew with the next. Which line that is nobody here knows. So a text has ended only where it
//! has for each line with which it may have begun.
//!
//! **Invariant:** what is not certain to have ended stands open; Ctrl-C is what ends it then.

use crate::shell::understand;

/// With how many lines a text may begin.
const MOST: usize = 64;

/// Where the part of `text` begins that stands open; its lines end in `\n`.
pub(super) fn start(text: &str) -> usize {
    let (mut start, mut at) = (0, 0);
    let mut readings: Vec<Reading> = Vec::new();
    for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let mut line = line;
        while let Some(rest) = line.strip_prefix('\u{4}').filter(|_| readings.is_empty()) {
            // Where nothing stands open, it ends whatever reads.
            (line, at, start) = (rest, at + 1, at + 1);
        }
        at += line.len();
        if readings.len() < MOST {
            readings.push(Reading::default());
        } else {
            // There are too many, and one of them never ends.
            readings[0].lost = true;
        }
        for reading in &mut readings {
            reading.line(line);
        }
        if readings.iter().all(Reading::has_ended) {
            start = at;
            readings.clear();
        }
    }
    // What is understood as a whole is no mistake: it was not begun anew.
    if readings.first().is_some_and(Reading::has_ended)
        && understand(&text[start..at]).opaque.is_none()
    {
        start = at;
    }
    start + text[start..].chars().take_while(|c| *c == '\u{4}' && start == at).count()
}

/// Whether a program of an earlier line may read what comes behind that, or change the keys of
/// the terminal, so that a shell gets something else.
pub(super) fn is_mixed(text: &str) -> bool {
    let (mut start, mut at) = (0, 0);
    let mut reading = Reading::default();
    for line in text.split_inclusive('\n') {
        if start < at && (reading.lost || reading.has_ended()) {
            let before = &text[start..at];
            if reading.lost || may_read(before) {
                return true;
            }
            (start, reading) = (at, Reading::default());
        }
        at += line.len();
        reading.line(line);
    }
    false
}

/// Whether something of it may leave a shell in a quote or the like, whatever is left out before
/// it.
pub(super) fn may_open(text: &str) -> bool {
    text.contains(['\'', '"', '`', '\\', '{', '['])
        || ["<<", "((", "case"].iter().any(|part| text.contains(part))
}

/// Builtins and programs that read nothing but what they are told, and leave the keys alone.
const READS_NOTHING: &str = "\
    : [ basename cd chmod date df dirname du echo export false id jobs ls mkdir nproc popd printf pushd \
    pwd readlink realpath rmdir seq set sleep stat test touch true type umask uname unset which whoami";

fn may_read(text: &str) -> bool {
    let understood = understand(text);
    let reads_nothing = |name: &str| READS_NOTHING.split(' ').any(|it| it == name);
    // A line that only has a comment does nothing.
    let is_nothing =
        text.lines().all(|line| matches!(line.trim_start().chars().next(), None | Some('#')));
    !is_nothing
        && (understood.opaque.is_some()
            || understood
                .commands
                .iter()
                .any(|it| !it.argv.first().is_some_and(|it| reads_nothing(it))))
}

/// What goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    Single,
    Double,
    /// `$'`
    Ansi,
    Backtick,
    /// `${`
    Parameter,
    /// `((`, with how many brackets in it.
    Arithmetic(usize),
    Bracket,
    If,
    Loop,
    /// `{`
    Group,
    /// `[[`
    Test,
}

/// What the next word may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// The first one of a command, or what ends something.
    #[default]
    First,
    /// Perhaps the first one of a command.
    Maybe,
    Later,
}

#[derive(Debug, Default)]
struct Word {
    /// Without quotes.
    text: String,
    quoted: bool,
    /// Whether something in it is only known later.
    expands: bool,
}

#[derive(Debug)]
struct Heredoc {
    end: String,
    is_quoted: bool,
    strips: bool,
}

/// A text as bash reads it, from one line on.
#[derive(Debug, Default)]
struct Reading {
    frames: Vec<Frame>,
    /// The words around a bracket that is a part of one.
    around: Vec<(Option<Word>, Place)>,
    word: Option<Word>,
    place: Place,
    /// Whether an operator waits for the command after it.
    joined: bool,
    /// Whether the next line belongs to the last one.
    continued: bool,
    /// Whether the next word ends a heredoc, and that strips tabs.
    awaited: Option<bool>,
    heredocs: Vec<Heredoc>,
    in_heredoc: bool,
    /// Whether it is not known any more how bash reads it.
    lost: bool,
}

impl Word {
    /// Whether a list may come for a variable.
    fn is_list(&self) -> bool {
        let name = self.text.strip_suffix('=').filter(|_| !self.quoted);
        let name = name.map(|name| name.strip_suffix('+').unwrap_or(name));
        name.is_some_and(|name| {
            !name.starts_with(|c: char| c.is_ascii_digit())
                && !name.is_empty()
                && name.chars().all(is_of_name)
        })
    }
}

impl Reading {
    fn has_ended(&self) -> bool {
        let waits = self.joined || self.continued || self.awaited.is_some();
        !self.lost && !waits && self.frames.is_empty() && self.heredocs.is_empty()
    }

    fn line(&mut self, line: &str) {
        self.continued = false;
        if line.starts_with('^') || recalls(line) || line.contains(is_key) {
            self.lost = true;
        }
        if self.lost {
            return;
        }
        if self.in_heredoc {
            return self.heredoc_line(line);
        }
        let mut rest = line;
        while let Some(c) = rest.chars().next().filter(|_| !self.lost) {
            let taken = self.step(c, rest);
            rest = &rest[taken..];
        }
    }

    fn heredoc_line(&mut self, line: &str) {
        let Some(heredoc) = self.heredocs.first() else { return };
        let text = line.trim_end_matches('\n');
        let text = if heredoc.strips { text.trim_start_matches('\t') } else { text };
        // The next line would be a part of it.
        self.lost = !heredoc.is_quoted && text.ends_with('\\');
        if text == heredoc.end {
            self.heredocs.remove(0);
            self.in_heredoc = !self.heredocs.is_empty();
        }
    }

    /// Reads on at `c`, with which `rest` begins; how much of that is read.
    fn step(&mut self, c: char, rest: &str) -> usize {
        let one = c.len_utf8();
        match self.frames.last() {
            Some(Frame::Single) => self.quoted(c, c == '\'', one),
            Some(Frame::Ansi | Frame::Backtick | Frame::Double) if c == '\\' => {
                self.push(c);
                one + rest[one..].chars().next().map_or(0, char::len_utf8)
            }
            Some(Frame::Ansi) => self.quoted(c, c == '\'', one),
            Some(Frame::Backtick) => self.quoted(c, c == '`', one),
            Some(Frame::Double) => match c {
                '$' => self.dollar(rest, true),
                '`' => self.open(Frame::Backtick, 1),
                c => self.quoted(c, c == '"', one),
            },
            Some(Frame::Parameter) => {
                self.lost |=
                    "'\"`\\\n{".contains(c) || rest.starts_with("$(") || rest.starts_with("${");
                self.quoted(c, c == '}', one)
            }
            Some(Frame::Arithmetic(depth)) => {
                let depth = *depth;
                self.arithmetic(c, rest, depth)
            }
            _ => self.bare(c, rest),
        }
    }

    fn push(&mut self, c: char) {
        self.joined = false;
        self.word.get_or_insert_default().text.push(c);
    }

    /// A character in quotes, which may end them.
    fn quoted(&mut self, c: char, is_end: bool, length: usize) -> usize {
        // Which line is which is not certain then.
        self.lost |= c == '\n' && !self.heredocs.is_empty();
        match is_end {
            true => drop(self.frames.pop()),
            false => self.push(c),
        }
        length
    }

    fn arithmetic(&mut self, c: char, rest: &str, depth: usize) -> usize {
        let known = c.is_ascii_alphanumeric() || " _+-*/%<>=&|?:,;$[]().~^!\n".contains(c);
        self.lost |= !known || rest.starts_with("${") || rest.starts_with("$(");
        self.frames.pop();
        match c {
            '(' => self.frames.push(Frame::Arithmetic(depth + 1)),
            ')' if depth > 0 => self.frames.push(Frame::Arithmetic(depth - 1)),
            ')' if rest.starts_with("))") => {
                if self.word.is_none() {
                    self.place = Place::Maybe;
                }
                return 2;
            }
            // It may be two brackets after all.
            ')' => self.lost = true,
            _ => self.frames.push(Frame::Arithmetic(depth)),
        }
        1
    }

    /// Begins something that is a part of a word.
    fn open(&mut self, frame: Frame, length: usize) -> usize {
        self.joined = false;
        let word = self.word.get_or_insert_default();
        word.quoted = true;
        word.expands |= !matches!(frame, Frame::Single | Frame::Double);
        self.frames.push(frame);
        length
    }

    fn dollar(&mut self, rest: &str, in_quotes: bool) -> usize {
        let starts = |what: &str| rest.starts_with(what);
        if starts("$((") {
            return self.open(Frame::Arithmetic(0), 3);
        }
        if starts("$(") {
            return self.open_bracket(2);
        }
        if starts("${") {
            return self.open(Frame::Parameter, 2);
        }
        if starts("$'") && !in_quotes {
            return self.open(Frame::Ansi, 2);
        }
        if starts("$\"") && !in_quotes {
            return self.open(Frame::Double, 2);
        }
        self.lost |= starts("$[");
        self.push('$');
        self.word.get_or_insert_default().expands = true;
        1
    }

    /// Begins commands inside of a word.
    fn open_bracket(&mut self, length: usize) -> usize {
        self.open(Frame::Bracket, length);
        self.around.push((self.word.take(), self.place));
        self.place = Place::First;
        length
    }

    fn bare(&mut self, c: char, rest: &str) -> usize {
        let starts = |what: &str| rest.starts_with(what);
        match c {
            '\\' if starts("\\\n") => {
                self.continued = true;
                2
            }
            '\\' => {
                let escaped = rest[1..].chars().next().unwrap_or_default();
                self.push(escaped);
                self.word.get_or_insert_default().quoted = true;
                1 + escaped.len_utf8()
            }
            '\'' => self.open(Frame::Single, 1),
            '"' => self.open(Frame::Double, 1),
            '`' => self.open(Frame::Backtick, 1),
            '$' => self.dollar(rest, false),
            '#' if self.word.is_none() => rest.find('\n').unwrap_or(rest.len()),
            ' ' => {
                self.end_word();
                1
            }
            '\n' => {
                self.end_word();
                // A name must follow on the same line.
                self.lost |= self.awaited.is_some();
                self.in_heredoc = !self.heredocs.is_empty();
                self.place = Place::First;
                1
            }
            '(' => self.bracket(rest),
            '[' if self.is_subscript() => self.subscript(rest),
            ')' => {
                self.end_word();
                match self.frames.pop() {
                    Some(Frame::Bracket) => {
                        let (word, place) = self.around.pop().unwrap_or_default();
                        let is_part = word.is_some();
                        (self.word, self.place) = (word, place);
                        if !is_part {
                            self.place = Place::Maybe;
                        }
                    }
                    // Nothing was open, and bash takes it for a mistake.
                    None => {}
                    Some(_) => self.lost = true,
                }
                1
            }
            '<' | '>' => self.redirect(rest),
            '&' if starts("&>") => self.redirect(&rest[1..]) + 1,
            ';' | '&' | '|' => {
                self.end_word();
                self.place = Place::First;
                let is_double = starts("&&") || starts("||") || starts("|&");
                self.joined = c == '|' || is_double;
                1 + usize::from(is_double)
            }
            c => {
                self.push(c);
                c.len_utf8()
            }
        }
    }

    /// Whether what stands in the bracket may be the place in a list, which goes over words and
    /// lines.
    fn is_subscript(&self) -> bool {
        let Some(word) = &self.word else {
            let around = self.around.last().and_then(|(word, _)| word.as_ref());
            return around.is_some_and(|word| word.text.ends_with('='));
        };
        word.text.chars().all(is_of_name)
    }

    fn subscript(&mut self, rest: &str) -> usize {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-+*/%@^.:,".contains(c);
        let end = rest[1..].find(|c| !is_plain(c)).filter(|end| rest[1 + end..].starts_with(']'));
        self.lost |= end.is_none();
        self.push('[');
        end.map_or(1, |end| end + 2)
    }

    fn bracket(&mut self, rest: &str) -> usize {
        let before = self.word.as_ref().map(Word::is_list);
        if before.is_none() && rest.starts_with("((") {
            self.joined = false;
            self.frames.push(Frame::Arithmetic(0));
            return 2;
        }
        if before == Some(true) {
            return self.open_bracket(1);
        }
        // Behind `name()` comes what it does.
        let is_function = before.is_some() || self.place == Place::Later;
        self.end_word();
        if rest.starts_with("()") && is_function {
            self.joined = true;
            self.place = Place::Maybe;
            return 2;
        }
        self.joined = false;
        self.around.push((None, self.place));
        self.frames.push(Frame::Bracket);
        self.place = Place::First;
        1
    }

    fn redirect(&mut self, rest: &str) -> usize {
        let starts = |what: &str| rest.starts_with(what);
        if starts("<(") || starts(">(") {
            return self.open_bracket(2);
        }
        self.end_word();
        self.joined = false;
        self.place = Place::Later;
        if starts("<<<") {
            return 3;
        }
        if starts("<<") {
            let strips = starts("<<-");
            self.lost |= self.awaited.replace(strips).is_some();
            return 2 + usize::from(strips);
        }
        let is_double = [">>", ">&", ">|", "<>", "<&"].into_iter().any(starts);
        1 + usize::from(is_double)
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if let Some(strips) = self.awaited.take() {
            self.lost |= word.expands || word.text.contains('\n');
            self.heredocs.push(Heredoc { end: word.text, is_quoted: word.quoted, strips });
            return;
        }
        let place = std::mem::replace(&mut self.place, Place::Later);
        if word.quoted {
            return;
        }
        let top = self.frames.last().copied();
        let mut end = |frame| {
            if place == Place::First && top == Some(frame) {
                self.frames.pop();
                self.place = Place::Maybe;
            }
        };
        match &*word.text {
            "fi" => end(Frame::If),
            "done" => end(Frame::Loop),
            "}" => end(Frame::Group),
            "]]" if top == Some(Frame::Test) => {
                self.frames.pop();
                self.place = Place::Maybe;
            }
            text if place != Place::Later => self.first(text),
            _ => {}
        }
    }

    /// A word with which a command may begin.
    fn first(&mut self, word: &str) {
        let (frame, place) = match word {
            "if" => (Some(Frame::If), Place::First),
            "while" | "until" => (Some(Frame::Loop), Place::First),
            "for" => (Some(Frame::Loop), Place::Later),
            "{" => (Some(Frame::Group), Place::First),
            "[[" => (Some(Frame::Test), Place::Later),
            "then" | "else" | "elif" | "do" => (None, Place::First),
            "!" | "time" | "-p" | "--" => (None, Place::Maybe),
            // How these go on is not looked at.
            "case" | "coproc" | "function" | "select" => {
                self.lost = true;
                (None, Place::Later)
            }
            _ => (None, Place::Later),
        };
        self.frames.extend(frame);
        self.place = place;
    }
}

/// Whether a line that is typed may hold something of an earlier one.
fn recalls(line: &str) -> bool {
    let harmless = |next: Option<char>| next.is_none_or(|c| " \n=(\"".contains(c));
    line.match_indices('!').any(|(at, _)| !harmless(line[at + 1..].chars().next()))
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether it is a key, and no text.
fn is_key(c: char) -> bool {
    c.is_control() && c != '\n'
}

#[cfg(test)]
mod tests;
