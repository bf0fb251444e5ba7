//! Expands braces, as bash does before all other expansions: `{a,b}` and `{1..3}`.
//!
//! **Invariant:** what is not certain to expand to these words fails, so that the script is
//! opaque: nested braces, quotes, steps, letters and leading zeros.

/// The most words of one expansion.
const MAX_EXPANDED: usize = 64;

/// Returns the words of an unquoted word with braces and nothing else that bash expands.
pub(super) fn expand_braces(word: &str) -> Option<Vec<String>> {
    let mut expanded = vec![String::new()];
    let mut rest = word;
    while let Some(start) = rest.find(['{', '}']) {
        let (before, braces) = rest.split_at(start);
        let inner = braces.strip_prefix('{')?;
        let end = inner.find(['{', '}'])?;
        let (inner, after) = inner.split_at(end);
        rest = after.strip_prefix('}')?;
        let parts = expand_list(inner)?;
        if expanded.len() * parts.len() > MAX_EXPANDED {
            return None;
        }
        let with_parts = |head: &String| {
            let head = format!("{head}{before}");
            parts.iter().map(move |part| format!("{head}{part}")).collect::<Vec<_>>()
        };
        expanded = expanded.iter().flat_map(with_parts).collect();
    }
    expanded.iter_mut().for_each(|word| word.push_str(rest));
    let is_certain = |word: &String| !word.is_empty() && !word.contains('~');
    expanded.iter().all(is_certain).then_some(expanded)
}

/// Returns the parts of the text between braces.
fn expand_list(inner: &str) -> Option<Vec<String>> {
    if inner.contains(',') {
        return Some(inner.split(',').map(str::to_owned).collect());
    }
    let (first, last) = inner.split_once("..")?;
    let (first, last) = (plain_number(first)?, plain_number(last)?);
    let count = usize::try_from(first.abs_diff(last)).ok()?;
    let is_up = first <= last;
    let number = |step: i32| if is_up { first + step } else { first - step };
    (count < MAX_EXPANDED).then(|| {
        (0..=i32::try_from(count).unwrap_or(0)).map(|step| number(step).to_string()).collect()
    })
}

/// Returns a number without sign and leading zeros.
fn plain_number(text: &str) -> Option<i32> {
    let number: i32 = text.parse().ok()?;
    (number < 1_000_000 && number.to_string() == text && number >= 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::expand_braces;

    #[test]
    fn braces_expand_as_in_bash() {
        for (word, expected) in [
            ("{a,b}", "a b"),
            ("x{a,b}y", "xay xby"),
            ("x{,.bak}", "x x.bak"),
            ("{a,b}{1,2}", "a1 a2 b1 b2"),
            ("{1..4}", "1 2 3 4"),
            ("f{3..1}.rs", "f3.rs f2.rs f1.rs"),
            ("--x={a,b}", "--x=a --x=b"),
            ("{-a,-b},c", "-a,c -b,c"),
        ] {
            let expected: Vec<_> = expected.split(' ').map(str::to_owned).collect();
            assert_eq!(expand_braces(word), Some(expected), "{word}");
        }
    }

    #[test]
    fn uncertain_braces_fail() {
        for word in [
            "{a}",
            "{a,{b,c}}",
            "{a,b",
            "a,b}",
            "{}{a,b}",
            "{,a}",
            "{~,a}",
            "{01..3}",
            "{a..c}",
            "{1..9..2}",
            "{1..1000}",
            "{-1..3}",
            "{+1..3}",
            "{1...3}",
            "}{a,b}",
            "{1,2}{1..60}",
        ] {
            assert_eq!(expand_braces(word), None, "{word}");
        }
    }
}
