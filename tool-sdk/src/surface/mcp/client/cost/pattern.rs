//! Estimates what matching a regular expression costs, from the pattern alone.
//!
//! Most patterns are matched by an automaton in one pass, with at most as many active states as the
//! pattern has. A pattern with look-around or backreferences is matched by backtracking, unless it
//! only looks ahead at its start.

/// How many states step over one byte at the cost of one evaluation.
const AT_ONCE: f64 = 32.0;

/// The cost of backtracking in a short text; the validator stops it there.
const LOOKS_AGAIN: f64 = 3_000.0;

/// Each further block of this many bytes costs as much again, because parts are scanned anew.
const LOOKED_THROUGH: f64 = 64.0;

/// Up to this many bytes, backtracking has fewer branches than its limit: a factor per byte.
const SHORT: f64 = 16.0;
const WAYS: f64 = 4.0;

/// A pattern, as far as its cost goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pattern {
    /// The number of automaton states.
    places: f64,
    looks_again: bool,
}

/// Returns the number of states that compiling allocates; a Unicode script class has many.
pub(super) fn made(text: &str) -> f64 {
    places(text, SCRIPT)
}

impl Pattern {
    pub(super) fn of(text: &str) -> Self {
        Self { places: places(text, ANY), looks_again: !is_followed_once(text) }
    }

    /// Returns the cost of matching `count` texts with `length` bytes in total.
    pub(super) fn cost(self, count: usize, length: usize) -> f64 {
        let (count, length) = (count as f64, length as f64);
        let once = 4.0 * count + self.places * length / AT_ONCE;
        if !self.looks_again || count == 0.0 {
            return once;
        }
        let usual = length / count;
        once + if usual <= SHORT {
            count * (self.places * WAYS.powf(usual) / AT_ONCE).min(LOOKS_AGAIN)
        } else {
            LOOKS_AGAIN * (count + length / LOOKED_THROUGH)
        }
    }
}

/// Whether the syntax is one that schemas use. Inline flags of other dialects may change the
/// meaning of the rest, and are not supported.
pub(in super::super) fn is_known(text: &str) -> bool {
    let is_flagged = |start: &str| {
        let flags = start.trim_start_matches('-');
        let rest = flags.trim_start_matches(|it: char| it.is_ascii_alphabetic());
        rest.len() < flags.len() && rest.starts_with([')', ':', '-'])
    };
    !text.split("(?").skip(1).any(is_flagged)
}

/// Whether one pass is enough: no backreferences, and only simple look-ahead at the start.
fn is_followed_once(text: &str) -> bool {
    if is_simple(text) {
        return true;
    }
    let Some(mut rest) = text.strip_prefix('^') else { return false };
    while let Some(inside) = AHEAD.iter().find_map(|start| rest.strip_prefix(start)) {
        let Some(end) = closing(inside) else { return false };
        if !is_simple(&inside[..end]) {
            return false;
        }
        rest = &inside[end + 1..];
    }
    // A repeated look-ahead, or one in a branch, would be evaluated again.
    is_simple(rest) && !rest.starts_with(['*', '+', '?', '{']) && !has_branches(rest)
}

/// How a look-ahead begins.
const AHEAD: &[&str] = &["(?=", "(?!"];

/// Whether it has neither look-around nor backreferences.
fn is_simple(text: &str) -> bool {
    const AROUND: &[&str] = &["(?=", "(?!", "(?<=", "(?<!", "(?>", "(?("];
    let back = |two: &[u8]| matches!(two, [b'\\', b'1'..=b'9' | b'k' | b'g' | b'G' | b'K']);
    !AROUND.iter().any(|it| text.contains(it)) && !text.as_bytes().windows(2).any(back)
}

/// Returns the offset of the parenthesis that closes the group in which `text` starts.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    each(text, |at, kind| {
        match kind {
            Kind::Open => depth += 1,
            Kind::Close if depth == 0 => return Some(at),
            Kind::Close => depth -= 1,
            _ => {}
        }
        None
    })
}

/// Whether it has alternatives outside of all groups.
fn has_branches(text: &str) -> bool {
    let mut depth = 0_usize;
    let found = each(text, |_, kind| {
        match kind {
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.saturating_sub(1),
            Kind::Branch if depth == 0 => return Some(()),
            _ => {}
        }
        None
    });
    found.is_some()
}

/// Counts the states of a pattern; repetition multiplies, and a Unicode class counts as `script`.
fn places(text: &str, script: f64) -> f64 {
    // For each open group: the states so far, and those of the last piece, which may be repeated.
    let mut open = vec![(0.0, 0.0)];
    let never: Option<()> = each(text, |_, kind| {
        match kind {
            Kind::Open => open.push((1.0, 0.0)),
            Kind::Close if open.len() > 1 => {
                let (sum, last) = open.pop().unwrap_or_default();
                put(&mut open, sum + last);
            }
            Kind::Close | Kind::Branch => put(&mut open, 1.0),
            Kind::One(places) => put(&mut open, places),
            Kind::Script => put(&mut open, script),
            Kind::Times(times) => {
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

fn put(open: &mut [(f64, f64)], places: f64) {
    if let Some((sum, last)) = open.last_mut() {
        *sum += *last;
        *last = places;
    }
}

/// A piece of a pattern.
enum Kind {
    Open,
    Close,
    Branch,
    /// Something with this many states.
    One(f64),
    /// A Unicode class, such as `\p{L}`.
    Script,
    /// Repetition of the previous piece.
    Times(f64),
}

/// The states of a class with a few characters, of one with nearly all, and of one with thousands.
const FEW: f64 = 2.0;
const ANY: f64 = 12.0;
const SCRIPT: f64 = 200.0;

/// Calls `visit` with the offset of each piece, until it returns `Some`.
fn each<T>(text: &str, mut visit: impl FnMut(usize, Kind) -> Option<T>) -> Option<T> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let (kind, length) = match byte {
            b'\\' => match bytes.get(at + 1) {
                Some(b'p' | b'P') => (Kind::Script, 2 + named(&bytes[at + 2..])),
                Some(b'w' | b'd' | b's') => (Kind::One(FEW), 2),
                Some(b'W' | b'D' | b'S') => (Kind::One(ANY), 2),
                _ => (Kind::One(1.0), 2),
            },
            b'[' => {
                let length = class(&bytes[at..]);
                (letters(&bytes[at..at + length]), length)
            }
            b'.' => (Kind::One(ANY), 1),
            b'(' => (Kind::Open, 1),
            b')' => (Kind::Close, 1),
            b'|' => (Kind::Branch, 1),
            b'{' => match times(&bytes[at..]) {
                Some((times, length)) => (Kind::Times(times), length),
                None => (Kind::One(1.0), 1),
            },
            _ => (Kind::One(1.0), 1),
        };
        if let Some(found) = visit(at, kind) {
            return Some(found);
        }
        at += length;
    }
    None
}

/// Returns the length of the name of a class, with its braces.
fn named(bytes: &[u8]) -> usize {
    match bytes.first() {
        Some(b'{') => bytes.iter().position(|&it| it == b'}').map_or(0, |end| end + 1),
        Some(_) => 1,
        None => 0,
    }
}

/// Returns the length of a class in square brackets.
fn class(bytes: &[u8]) -> usize {
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
fn letters(class: &[u8]) -> Kind {
    let escapes = |one: &[u8]| class.windows(2).any(|two| two[0] == b'\\' && one.contains(&two[1]));
    match () {
        () if escapes(b"pP") => Kind::Script,
        () if class.starts_with(b"[^") || escapes(b"WDS") || !class.is_ascii() => Kind::One(ANY),
        () => Kind::One(FEW),
    }
}

/// Parses `{m,n}`; returns the highest count, and the length.
fn times(bytes: &[u8]) -> Option<(f64, usize)> {
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
            assert_eq!(places(text, ANY).round(), f64::round(expected), "{text}");
        }
    }

    #[test]
    fn inline_flags_are_not_supported() {
        for text in [r"(?x)\p{L} {60}", r"(?u)\w{60}", "a(?-u:b)", "(?i:a)", "(?s-i)a"] {
            assert!(!is_known(text), "{text}");
        }
        for text in ["^(?!a)(?=b)(?:c)(?<name>d)(?<=e)$", "a(?", "(?P<n>a)"] {
            assert!(is_known(text), "{text}");
        }
    }

    #[test]
    fn unicode_classes_have_many_states() {
        assert_eq!(made(r"[\p{L}_]{60}"), 60.0 * SCRIPT);
        assert_eq!(made(r"\pL{60}"), 60.0 * SCRIPT);
        assert!(made("^[a-zA-Z0-9_-]{1,64}$") < 150.0);
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
            assert!(is_followed_once(text), "{text}");
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
            assert!(!is_followed_once(text), "{text}");
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
            assert_eq!(is_followed_once(pattern), is_once, "{pattern}");
            assert_eq!(is_found(pattern), is_once, "{pattern}");
        }
    }

    #[test]
    fn cost_grows_with_the_text() {
        let plain = Pattern::of("^[a-z]+$");
        assert!(plain.cost(1, 20) < 30.0 && plain.cost(1, 4 << 20) > 500_000.0);
        let again = Pattern::of("^(?=a)(?=(a+)+b)(a+)+$(?<=c)");
        assert!(again.cost(1, 2) < 40.0 && again.cost(1, 8) > 2_000.0);
        assert!(again.cost(1, 17) > 3_000.0);
        assert!(again.cost(1, 1 << 20) > 10_000_000.0);
    }
}
