//! Estimates what matching a regular expression costs, from the pattern alone.
//!
//! Most patterns are matched by an automaton in one pass, with at most as many active states as the
//! pattern has. A pattern with look-around or backreferences is matched by backtracking, unless it
//! only looks ahead at its start.

/// How many states step over one byte at the cost of one evaluation.
const STATES_PER_UNIT: f64 = 32.0;

/// The cost of backtracking in a short text; the validator stops it there.
const BACKTRACKING_COST: f64 = 3_000.0;

/// Each further block of this many bytes costs as much again, because parts are scanned anew.
const BYTES_PER_BACKTRACK: f64 = 64.0;

/// Up to this many bytes, backtracking has fewer branches than its limit: a factor per byte.
const SHORT_TEXT: f64 = 16.0;
const BRANCHES_PER_BYTE: f64 = 4.0;

/// A pattern, as far as its cost goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PatternCost {
    /// The number of automaton states.
    states: f64,
    backtracks: bool,
}

/// Returns the number of states that compiling allocates; a Unicode script class has many.
pub(super) fn compiled_states(text: &str) -> f64 {
    count_states(text, SCRIPT_CLASS)
}

impl PatternCost {
    pub(super) fn analyze(text: &str) -> Self {
        Self { states: count_states(text, LARGE_CLASS), backtracks: !is_linear(text) }
    }

    /// Returns the cost of matching `count` texts with `length` bytes in total.
    pub(super) fn match_cost(self, count: usize, length: usize) -> f64 {
        let (count, length) = (count as f64, length as f64);
        let once = 4.0 * count + self.states * length / STATES_PER_UNIT;
        if !self.backtracks || count == 0.0 {
            return once;
        }
        let usual = length / count;
        once + if usual <= SHORT_TEXT {
            count
                * (self.states * BRANCHES_PER_BYTE.powf(usual) / STATES_PER_UNIT)
                    .min(BACKTRACKING_COST)
        } else {
            BACKTRACKING_COST * (count + length / BYTES_PER_BACKTRACK)
        }
    }
}

/// Whether the syntax is one that schemas use. Inline flags of other dialects may change the
/// meaning of the rest, and are not supported.
pub(crate) fn is_supported_syntax(text: &str) -> bool {
    let is_flagged = |start: &str| {
        let flags = start.trim_start_matches('-');
        let rest = flags.trim_start_matches(|it: char| it.is_ascii_alphabetic());
        rest.len() < flags.len() && rest.starts_with([')', ':', '-'])
    };
    !text.split("(?").skip(1).any(is_flagged)
}

/// Whether one pass is enough: no backreferences, and only simple look-ahead at the start.
fn is_linear(text: &str) -> bool {
    if has_no_backtracking(text) {
        return true;
    }
    let Some(mut rest) = text.strip_prefix('^') else { return false };
    while let Some(inside) = LOOKAHEADS.iter().find_map(|start| rest.strip_prefix(start)) {
        let Some(end) = find_closing(inside) else { return false };
        if !has_no_backtracking(&inside[..end]) {
            return false;
        }
        rest = &inside[end + 1..];
    }
    // A repeated look-ahead, or one in a branch, would be evaluated again.
    has_no_backtracking(rest) && !rest.starts_with(['*', '+', '?', '{']) && !has_branches(rest)
}

/// How a look-ahead begins.
const LOOKAHEADS: &[&str] = &["(?=", "(?!"];

/// Whether it has neither look-around nor backreferences.
fn has_no_backtracking(text: &str) -> bool {
    const AROUND: &[&str] = &["(?=", "(?!", "(?<=", "(?<!", "(?>", "(?("];
    let back = |two: &[u8]| matches!(two, [b'\\', b'1'..=b'9' | b'k' | b'g' | b'G' | b'K']);
    !AROUND.iter().any(|it| text.contains(it)) && !text.as_bytes().windows(2).any(back)
}

/// Returns the offset of the parenthesis that closes the group in which `text` starts.
fn find_closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    visit_pieces(text, |at, kind| {
        match kind {
            PatternPiece::Open => depth += 1,
            PatternPiece::Close if depth == 0 => return Some(at),
            PatternPiece::Close => depth -= 1,
            _ => {}
        }
        None
    })
}

/// Whether it has alternatives outside of all groups.
fn has_branches(text: &str) -> bool {
    let mut depth = 0_usize;
    let found = visit_pieces(text, |_, kind| {
        match kind {
            PatternPiece::Open => depth += 1,
            PatternPiece::Close => depth = depth.saturating_sub(1),
            PatternPiece::Branch if depth == 0 => return Some(()),
            _ => {}
        }
        None
    });
    found.is_some()
}

/// Counts the states of a pattern; repetition multiplies, and a Unicode class counts as `script`.
fn count_states(text: &str, script: f64) -> f64 {
    // For each open group: the states so far, and those of the last piece, which may be repeated.
    let mut open = vec![(0.0, 0.0)];
    let never: Option<()> = visit_pieces(text, |_, kind| {
        match kind {
            PatternPiece::Open => open.push((1.0, 0.0)),
            PatternPiece::Close if open.len() > 1 => {
                let (sum, last) = open.pop().unwrap_or_default();
                push_states(&mut open, sum + last);
            }
            PatternPiece::Close | PatternPiece::Branch => push_states(&mut open, 1.0),
            PatternPiece::Chars(places) => push_states(&mut open, places),
            PatternPiece::Script => push_states(&mut open, script),
            PatternPiece::Repeat(times) => {
                if let Some((_, last)) = open.last_mut() {
                    *last *= times;
                }
            }
        }
        None
    });
    debug_assert!(never.is_none(), "all of it is looked at");
    open.into_iter().map(|(sum, last)| sum + last).sum()
}

fn push_states(open: &mut [(f64, f64)], places: f64) {
    if let Some((sum, last)) = open.last_mut() {
        *sum += *last;
        *last = places;
    }
}

/// A piece of a pattern.
enum PatternPiece {
    Open,
    Close,
    Branch,
    /// Something with this many states.
    Chars(f64),
    /// A Unicode class, such as `\p{L}`.
    Script,
    /// Repetition of the previous piece.
    Repeat(f64),
}

/// The states of a class with a few characters, of one with nearly all, and of one with thousands.
const SMALL_CLASS: f64 = 2.0;
const LARGE_CLASS: f64 = 12.0;
const SCRIPT_CLASS: f64 = 200.0;

/// Calls `visit` with the offset of each piece, until it returns `Some`.
fn visit_pieces<T>(
    text: &str,
    mut visit: impl FnMut(usize, PatternPiece) -> Option<T>,
) -> Option<T> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let (kind, length) = match byte {
            b'\\' => match bytes.get(at + 1) {
                Some(b'p' | b'P') => (PatternPiece::Script, 2 + class_name_len(&bytes[at + 2..])),
                Some(b'w' | b'd' | b's') => (PatternPiece::Chars(SMALL_CLASS), 2),
                Some(b'W' | b'D' | b'S') => (PatternPiece::Chars(LARGE_CLASS), 2),
                _ => (PatternPiece::Chars(1.0), 2),
            },
            b'[' => {
                let length = bracket_class_len(&bytes[at..]);
                (classify_bracket(&bytes[at..at + length]), length)
            }
            b'.' => (PatternPiece::Chars(LARGE_CLASS), 1),
            b'(' => (PatternPiece::Open, 1),
            b')' => (PatternPiece::Close, 1),
            b'|' => (PatternPiece::Branch, 1),
            b'{' => match parse_repeat(&bytes[at..]) {
                Some((times, length)) => (PatternPiece::Repeat(times), length),
                None => (PatternPiece::Chars(1.0), 1),
            },
            _ => (PatternPiece::Chars(1.0), 1),
        };
        if let Some(found) = visit(at, kind) {
            return Some(found);
        }
        at += length;
    }
    None
}

/// Returns the length of the name of a class, with its braces.
fn class_name_len(bytes: &[u8]) -> usize {
    match bytes.first() {
        Some(b'{') => bytes.iter().position(|&it| it == b'}').map_or(0, |end| end + 1),
        Some(_) => 1,
        None => 0,
    }
}

/// Returns the length of a class in square brackets.
fn bracket_class_len(bytes: &[u8]) -> usize {
    let mut at = if bytes.get(1) == Some(&b'^') { 2 } else { 1 };
    // A `]` right after the start is a literal.
    at += usize::from(bytes.get(at) == Some(&b']'));
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b']' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Classifies a class in square brackets.
fn classify_bracket(class: &[u8]) -> PatternPiece {
    let escapes = |one: &[u8]| class.windows(2).any(|two| two[0] == b'\\' && one.contains(&two[1]));
    match () {
        () if escapes(b"pP") => PatternPiece::Script,
        () if class.starts_with(b"[^") || escapes(b"WDS") || !class.is_ascii() => {
            PatternPiece::Chars(LARGE_CLASS)
        }
        () => PatternPiece::Chars(SMALL_CLASS),
    }
}

/// Parses `{m,n}`; returns the highest count, and the length.
fn parse_repeat(bytes: &[u8]) -> Option<(f64, usize)> {
    let end = bytes.iter().position(|&it| it == b'}')?;
    let said = str::from_utf8(&bytes[1..end]).ok()?;
    let (least, most) = said.split_once(',').unwrap_or((said, said));
    let least: f64 = least.trim().parse().ok()?;
    let most = most.trim().parse().unwrap_or(least + 1.0);
    Some((least.max(most).max(1.0), end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetition_multiplies_states() {
        for (text, expected) in [
            ("abc", 3.0),
            (r"^\d{4}-\d{2}$", 2.0 + 8.0 + 1.0 + 4.0),
            ("(ab|c){10}", 10.0 * 5.0),
            ("((a{10}){10}){10}", 1110.0),
            ("[]a]{3}", 6.0),
            (r"[^\]]x{2,}", 12.0 + 3.0),
            (r"\p{L}{5}", 60.0),
            ("a{", 2.0),
            (r"\{2}", 3.0),
        ] {
            assert_eq!(count_states(text, LARGE_CLASS).round(), f64::round(expected), "{text}");
        }
    }

    #[test]
    fn inline_flags_are_not_supported() {
        for text in [r"(?x)\p{L} {60}", r"(?u)\w{60}", "a(?-u:b)", "(?i:a)", "(?s-i)a"] {
            assert!(!is_supported_syntax(text), "{text}");
        }
        for text in ["^(?!a)(?=b)(?:c)(?<name>d)(?<=e)$", "a(?", "(?P<n>a)"] {
            assert!(is_supported_syntax(text), "{text}");
        }
    }

    #[test]
    fn unicode_classes_have_many_states() {
        assert_eq!(compiled_states(r"[\p{L}_]{60}"), 60.0 * SCRIPT_CLASS);
        assert_eq!(compiled_states(r"\pL{60}"), 60.0 * SCRIPT_CLASS);
        assert!(compiled_states("^[a-zA-Z0-9_-]{1,64}$") < 150.0);
    }

    #[test]
    fn distinguishes_linear_from_backtracking_patterns() {
        for text in [
            "a+b*",
            r"^(?!\s*$).+",
            r"^(?=.*[A-Z])(?=.*\d)[^(]{8,}$",
            r"^(?=[)])a(b|c)",
            "(a|b)*c$",
            "^$|^(?:[0-9a-zA-Z+/]{4})*(?:[0-9a-zA-Z+/]{3}=)?$",
        ] {
            assert!(is_linear(text), "{text}");
        }
        for text in [
            r"(?!\s*$).+",
            "^(a+)+(?=b)",
            r"^(a)\1$",
            "^(?=(?=a)b)c",
            "^(?=a)+b",
            "^(?=a)b|(c+)+d",
            "^(?=a",
        ] {
            assert!(!is_linear(text), "{text}");
        }
    }

    // The first branch fails in exponentially many ways, and the second one matches.
    #[test]
    fn validator_matches_linear_patterns_within_its_limit() {
        let is_found = |pattern: &str| {
            let patterns = jsonschema::PatternOptions::fancy_regex().backtrack_limit(20_000);
            let options = jsonschema::options().with_pattern_options(patterns);
            let validator = options.build(&serde_json::json!({ "pattern": pattern })).unwrap();
            validator.is_valid(&serde_json::json!("ab".repeat(40) + "d"))
        };
        for (pattern, is_once) in [
            ("((a|b|ab)*c|(a|b|ab)*d)$", true),
            ("^(a|b|ab)*c$|^(a|b|ab)*d$", true),
            ("^(?=a)(?:(a|b|ab)*c|(a|b|ab)*d)$", true),
            ("^(?!(?:(a|b|ab)*c|(a|b|ab)*e)$)(?=.*b).*$", true),
            ("^(?=a)(?:(a|b|ab)*(?=c)c|(a|b|ab)*d)$", false),
        ] {
            assert_eq!(is_linear(pattern), is_once, "{pattern}");
            assert_eq!(is_found(pattern), is_once, "{pattern}");
        }
    }

    #[test]
    fn cost_grows_with_the_text() {
        let plain = PatternCost::analyze("^[a-z]+$");
        assert!(plain.match_cost(1, 20) < 30.0 && plain.match_cost(1, 4 << 20) > 500_000.0);
        let again = PatternCost::analyze("^(?=a)(?=(a+)+b)(a+)+$(?<=c)");
        assert!(again.match_cost(1, 2) < 40.0 && again.match_cost(1, 8) > 2_000.0);
        assert!(again.match_cost(1, 17) > 3_000.0);
        assert!(again.match_cost(1, 1 << 20) > 10_000_000.0);
    }
}
