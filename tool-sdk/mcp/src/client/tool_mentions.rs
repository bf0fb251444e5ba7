//! Finds words in a text that may be names of tools.
//!
//! A word counts if ordinary text does not spell words so, such as `fetch_page`, and any word counts
//! that is marked as a name: by quotes, code, emphasis, a call, or the words around it.
//!
//! **Invariant:** the result does not depend on which tools exist, and the work is linear in the
//! length of the text.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// The separators between a server and its tool in a qualified name.
pub(super) const SERVER_SEPARATORS: [&str; 5] = ["/", ":", "::", ".", "__"];

/// The longest name of a tool with that of its server, in bytes.
const MAX_NAME_LEN: usize = 32 + 2 + 128;

/// How many parts of a dotted word are combined to names.
const MAX_DOTTED_PARTS: usize = 8;

/// Characters that join the parts of a name; some texts also put them around words.
pub(super) const NAME_SEPARATORS: [char; 3] = ['_', '-', '.'];

/// Marks before a name, unless they end a word or are part of one, as in `don't`.
const OPENING_MARKS: &str = "\"'<@#$/\u{2018}\u{2019}\u{201a}\u{201c}\u{201d}\u{201e}«»‹›「『《【";

/// Pairs of marks around a name, which may have spaces inside.
const BRACKET_PAIRS: [(char, char); 5] =
    [('[', ']'), ('{', '}'), ('«', '»'), ('‹', '›'), ('>', '<')];

/// Marks of emphasis, and of table cells.
const EMPHASIS_MARKS: [char; 3] = ['*', '~', '|'];

/// Verbs that are followed by a name.
const CALL_VERBS: [&str; 6] = ["call", "calls", "calling", "invoke", "invokes", "invoking"];

/// Words that come before `the tool` and a name.
const USE_VERBS: [&str; 6] = ["use", "using", "with", "via", "run", "running"];

/// Labels that come before a colon or an equals sign and a name.
const NAME_LABELS: [&str; 6] = ["tool", "tools", "name", "function", "tool_name", "toolname"];

/// Suffixes in parentheses, which do not make a call of an ordinary word, as in `file(s)`.
const WORD_SUFFIXES: [&str; 8] = ["s", "es", "d", "ed", "n", "r", "er", "ing"];

/// Adds the words of a text that may be names, in lower case. Ordinary words in `own`, the names of
/// the tool's own parameters, count only where the text uses them as tools.
pub(super) fn collect_mentions(text: &str, own: &BTreeSet<String>, names: &mut BTreeSet<String>) {
    let text = fold_to_ascii(text);
    let text = unescape_markdown(&text);
    let mut add = |name: &str| {
        if name.len() <= MAX_NAME_LEN {
            names.insert(name.to_lowercase());
        }
    };
    for word in split_words(&text) {
        let is_own = || own.contains(&word.text.trim_matches(NAME_SEPARATORS).to_lowercase());
        let is_set_off = word.is_used_as_tool_name() || (word.is_marked_up() && !is_own());
        let bare = word.text.trim_matches(NAME_SEPARATORS);
        for part in [word.text, bare].into_iter().flat_map(dotted_parts) {
            if is_set_off || is_identifier_like(part) {
                add(part);
            }
        }
        if let Some(joined) = word.join_with_server() {
            add(&joined);
        }
    }
}

/// Adds a text that may be a name as a whole, in lower case.
pub(super) fn collect_whole_value(text: &str, names: &mut BTreeSet<String>) {
    let text = text.trim();
    if text.len() <= MAX_NAME_LEN && !text.contains(char::is_whitespace) {
        names.insert(text.to_lowercase());
    }
}

/// Removes the backslashes that Markdown puts into names.
fn unescape_markdown(text: &str) -> Cow<'_, str> {
    NAME_SEPARATORS.into_iter().fold(Cow::Borrowed(text), |text, joint| {
        let escaped = format!("\\{joint}");
        if text.contains(&escaped) {
            text.replace(&escaped, joint.encode_utf8(&mut [0; 4])).into()
        } else {
            text
        }
    })
}

/// Replaces variants of ASCII characters, as in `ｆｅｔｃｈ＿ｐａｇｅ`.
fn fold_to_ascii(text: &str) -> Cow<'_, str> {
    match text.chars().any(|c| fold_char(c) != c) {
        true => text.chars().map(fold_char).collect(),
        false => text.into(),
    }
}

/// Returns the ASCII form of a full-width, mathematical or circled character.
fn fold_char(c: char) -> char {
    const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    /// Mathematical letters that Unicode had before the mathematical blocks, with their ASCII form.
    const OLDER: &str = "ℬBℰEℱFℋHℐIℒLℳMℛRℯeℊgℴoℎhℭCℌHℑIℜRℨZℂCℍHℕNℙPℚQℝRℤZ";
    let code = u32::from(c);
    let letter = |at: u32| LETTERS.chars().nth(at as usize);
    let usual = match code {
        0..0x2100 => None,
        0x2100..0x2140 => OLDER.chars().skip_while(|old| *old != c).nth(1),
        0x24b6..0x24ea => letter(code - 0x24b6),
        0xff01..0xff5f => char::from_u32(code - 0xff01 + 0x21),
        0x1d400..0x1d6a4 => letter((code - 0x1d400) % 52),
        0x1d7ce..0x1d800 => char::from_digit((code - 0x1d7ce) % 10, 10),
        _ => None,
    };
    usual.unwrap_or(c)
}

/// A word of a text with its surroundings.
struct Word<'t> {
    text: &'t str,
    /// The previous word.
    previous: &'t str,
    /// The two words before that one, the last of them first.
    earlier: [&'t str; 2],
    /// The text between the previous word and this one.
    gap: &'t str,
    /// The text after the word.
    rest: &'t str,
    /// Whether the word is inside a code span.
    is_in_code: bool,
}

/// Splits a text into words. A dot may be part of a name, end a sentence, or separate an object and
/// its method, so it is part of a word.
fn split_words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let is_part = |c: char| c.is_alphanumeric() || NAME_SEPARATORS.contains(&c);
    let (mut before, mut earlier, mut last, mut is_code) = ("", [""; 2], 0, false);
    std::iter::from_fn(move || {
        let start = last + text[last..].find(is_part)?;
        let end = text[start..].find(|c| !is_part(c)).map_or(text.len(), |at| start + at);
        let (gap, rest) = (&text[last..start], &text[end..]);
        is_code ^= count_backtick_runs(gap) % 2 == 1;
        let word = Word {
            text: &text[start..end],
            previous: before,
            earlier,
            gap,
            rest,
            is_in_code: is_code,
        };
        earlier = [before, earlier[0]];
        (before, last) = (word.text, end);
        Some(word)
    })
}

fn count_backtick_runs(gap: &str) -> usize {
    let ticks = gap.bytes().map(|byte| byte == b'`');
    ticks.fold((0, false), |(runs, within), tick| (runs + usize::from(tick && !within), tick)).0
}

impl Word<'_> {
    /// Whether the text uses it as the name of a tool, even if it is an ordinary word.
    fn is_used_as_tool_name(&self) -> bool {
        self.has_call_parenthesis() || self.is_introduced_as_name()
    }

    /// Whether it is marked up as a name.
    fn is_marked_up(&self) -> bool {
        self.has_opening_mark() || self.is_enclosed() || self.starts_code_span()
    }

    /// Whether an opening mark stands before it.
    fn has_opening_mark(&self) -> bool {
        let mut marks = self.gap.chars().rev();
        let Some(mark) = marks.next() else { return false };
        let before = marks.next().or_else(|| self.previous.chars().next_back());
        mark == '`' || (OPENING_MARKS.contains(mark) && !before.is_some_and(char::is_alphanumeric))
    }

    /// Whether marks stand around it.
    fn is_enclosed(&self) -> bool {
        let inner = self.text.trim_matches(['.', '-']);
        let is_emphasis = |c| self.gap.ends_with(c) && self.rest.starts_with(c);
        let is_within = |(open, close): (char, char)| {
            self.gap.trim_end().ends_with(open) && self.rest.trim_start().starts_with(close)
        };
        (inner.starts_with('_') && inner.ends_with('_'))
            || EMPHASIS_MARKS.into_iter().any(is_emphasis)
            || BRACKET_PAIRS.into_iter().any(is_within)
    }

    /// Whether an argument list follows.
    fn has_call_parenthesis(&self) -> bool {
        let Some(arguments) = self.rest.strip_prefix('(') else { return false };
        let is_ending =
            |end| arguments.strip_prefix(end).is_some_and(|behind: &str| behind.starts_with(')'));
        !WORD_SUFFIXES.into_iter().any(is_ending)
    }

    /// Whether it is the first word of a code span.
    fn starts_code_span(&self) -> bool {
        self.is_in_code && self.gap.trim_end().ends_with('`')
    }

    /// Whether the words around it introduce it as a name.
    fn is_introduced_as_name(&self) -> bool {
        let is_in =
            |word: &str, words: &[&str]| words.iter().any(|it| word.eq_ignore_ascii_case(it));
        let is_before = |words: &[&str]| is_in(self.previous, words);
        match self.gap.trim() {
            "" if self.gap.is_empty() => false,
            "" => {
                let is_tool = || {
                    let next = self.rest.trim_start();
                    let next = next.split(|c: char| !c.is_alphanumeric()).next();
                    next.is_some_and(|it| it == "tool" || it == "tools")
                };
                let [second, third] = self.earlier;
                let is_named =
                    is_before(&["named", "called"]) && is_in(second, &["tool", "function"]);
                let is_used = || {
                    is_before(&["tool"])
                        && is_in(second, &["the"])
                        && (is_in(third, &USE_VERBS) || is_in(third, &CALL_VERBS))
                };
                is_before(&CALL_VERBS)
                    || is_named
                    || is_used()
                    || (is_before(&["the"]) && is_tool())
            }
            ":" | "=" => is_before(&NAME_LABELS) || is_before(&CALL_VERBS),
            _ => false,
        }
    }

    /// Returns the word with the previous one, if they may be a server and its tool.
    fn join_with_server(&self) -> Option<String> {
        let is_joined = !self.previous.is_empty() && SERVER_SEPARATORS.contains(&self.gap);
        is_joined.then(|| {
            format!("{}{}{}", self.previous, self.gap, self.text.trim_matches(NAME_SEPARATORS))
        })
    }
}

/// Whether ordinary text does not spell a word so.
fn is_identifier_like(word: &str) -> bool {
    let is_camel = |two: &[u8]| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase();
    word.contains(NAME_SEPARATORS) || word.as_bytes().windows(2).any(is_camel)
}

/// Returns the parts of a word between its dots, alone and with those after them.
fn dotted_parts(word: &str) -> impl Iterator<Item = &str> {
    let starts = std::iter::once(0).chain(word.match_indices('.').map(|(dot, _)| dot + 1));
    starts.flat_map(move |start| {
        let rest = &word[start..];
        let dots = rest.match_indices('.').map(|(dot, _)| dot);
        dots.chain([rest.len()]).take(MAX_DOTTED_PARTS).map(move |end| &rest[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> BTreeSet<String> {
        names_beside(&[], text)
    }

    fn names_beside(own: &[&str], text: &str) -> BTreeSet<String> {
        let own = own.iter().map(|name| (*name).to_owned()).collect();
        let mut names = BTreeSet::new();
        collect_mentions(text, &own, &mut names);
        names
    }

    #[test]
    fn finds_identifiers_and_marked_words() {
        let words = "Before it, call find_book and mcp__git__log. Or books.find-all, fetchPage, \
            _send_mail_, SEND_FAX, `search`, look(1).\n-press_flower";
        let names = names(words);
        for name in [
            "find_book",
            "mcp__git__log",
            "find-all",
            "books.find-all",
            "fetchpage",
            "send_mail",
            "send_fax",
            "search",
            "look",
            "press_flower",
        ] {
            assert!(names.contains(name), "{name}: {names:?}");
        }
        for word in ["call", "find", "book", "git", "find_books", "or", "before", "page"] {
            assert!(!names.contains(word), "{word}: {names:?}");
        }
    }

    // MC4: however a name is set off.
    #[test]
    fn finds_marked_up_words() {
        for text in [
            "**search** first",
            "*search*",
            "_search_.",
            "~~search~~",
            "“search”",
            "‘search’ it",
            "„search“",
            "«search»",
            "« search »",
            "<search>",
            "<tool name=search>",
            "[search](#it)",
            "{search}",
            "@search",
            "see #search",
            "tool=search",
            "Tool: search",
            "` search `",
            "See `a` and ` search `",
            "```\nsearch q\n```",
            "use the search tool",
            "Call search",
            "don't invoke\nsearch",
            "It's 'search' that",
            "{\"tool\":\"search\"}",
            "search(q)",
            "Call Search",
            "<code>search</code>",
            "<b> search </b>",
            "|search|",
            "then /search",
            "$search",
            "the tool named search",
            "a function called search",
            "using the tool search",
            "Invoke: search",
            "ｓｅａｒｃｈ()",
            "`𝘴𝘦𝘢𝘳𝘤ℎ`",
        ] {
            assert!(names(text).contains("search"), "{text}: {:?}", names(text));
        }
        for name in ["t/search", "t:search", "t::search", "t.search", "t__search"] {
            let found = names(&format!("Before it {name}."));
            assert!(found.contains(name) && !found.contains("search"), "{found:?}");
        }
        for text in ["use fetch\\_page", "ｆｅｔｃｈ＿ｐａｇｅ", "𝘧𝘦𝘵𝘤𝘩_𝘱𝘢𝘨𝘦", "ⓕetch_page"]
        {
            assert!(names(text).contains("fetch_page"), "{text}");
        }
    }

    #[test]
    fn ignores_ordinary_words() {
        for (text, word) in [
            ("It can search, too. (search) A search tool; search tools.", "search"),
            ("search(s), search(es) and search(ing)", "search"),
            ("don't, don’t", "t"),
            ("`path` search `it`", "search"),
            ("*search first*, [search more](it), 2 * search * 3", "search"),
            ("read/search access: search", "search"),
            ("mail@search.example", "search"),
            ("recall search", "search"),
            ("the tool search reads; a file called search; the named search", "search"),
            ("and/search; 1 > search; | search |", "search"),
        ] {
            assert!(!names(text).contains(word), "{text}: {:?}", names(text));
        }
    }

    // MC4: a description may mention the tool's own parameters.
    #[test]
    fn ignores_the_tools_own_parameters() {
        let own = ["head", "name"];
        for text in ["Use the 'head' parameter", "`head`", "[\"head\", \"name\"]", "**Name**"] {
            assert!(names_beside(&own, text).is_empty(), "{text}");
        }
        for text in ["call head", "the head tool", "head(1)", "tool: head"] {
            assert!(names_beside(&own, text).contains("head"), "{text}");
        }
        assert!(names_beside(&["fetch_page"], "`fetch_page`").contains("fetch_page"));
    }

    #[test]
    fn work_is_bounded_for_long_texts() {
        assert!(names(&"a.".repeat(200_000)).len() < 200, "no work for each pair of dots");
        assert!(names(&"x".repeat(1_000).repeat(1_000)).is_empty());
        let long = format!("`{}.{}`", "x".repeat(1 << 20), "y".repeat(1 << 20));
        assert!(names(&long).is_empty(), "no tool has such a name");
        assert!(names(&"the ` ".repeat(100_000)).len() < 10);
    }
}
