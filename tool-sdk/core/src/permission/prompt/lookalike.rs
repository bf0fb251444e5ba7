//! Warns about names that can be mistaken for others: words of mixed scripts, and hosts in
//! punycode.

use std::sync::LazyLock;

use regex::Regex;

use super::visible::compile_regex;

/// The host of a URL, or one word.
static NAME_PATTERN: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(r"://(?:[^\s/?#]*@)?(?<host>[^\s/?#:]+)|(?<word>[\p{L}\p{M}\p{N}_]+)")
});

/// A label of a host in punycode.
static PUNYCODE: LazyLock<Regex> =
    LazyLock::new(|| compile_regex(r"(?i)(?:^|[^\p{L}\p{N}_-])xn--[a-z0-9]"));

/// Scripts with letters that look alike.
static SCRIPTS: LazyLock<[Regex; 5]> = LazyLock::new(|| {
    ["Latin", "Greek", "Cyrillic", "Armenian", "Cherokee"]
        .map(|script| compile_regex(&format!(r"\p{{{script}}}")))
});

/// Returns the warnings about the names in `text`.
pub(super) fn lookalike_warnings(text: &str) -> Vec<String> {
    let mixed = NAME_PATTERN
        .captures_iter(text)
        .filter_map(|found| found.name("host").or_else(|| found.name("word")))
        .filter_map(|name| mixed_script_warning(name.as_str()));
    let punycode = PUNYCODE.is_match(text).then(|| {
        "a host in punycode (`xn--`): it stands for letters that are not shown".to_owned()
    });
    mixed.chain(punycode).collect()
}

/// Returns the warning about a name that mixes scripts.
pub fn mixed_script_warning(name: &str) -> Option<String> {
    let is_mixed = |name| SCRIPTS.iter().filter(|script| script.is_match(name)).count() > 1;
    (!name.is_ascii() && is_mixed(name))
        .then(|| format!("letters of different scripts in one name: {}", spell_non_ascii(name)))
}

/// Returns the start of a name with every non-ASCII letter written as its code point.
fn spell_non_ascii(name: &str) -> String {
    const MAX: usize = 60;
    let mut spelt: String = name.chars().take(MAX).flat_map(char::escape_default).collect();
    if name.chars().nth(MAX).is_some() {
        spelt.push_str("...");
    }
    spelt
}

#[cfg(test)]
mod tests {
    use super::*;

    // PR5
    #[test]
    fn names_that_pass_for_others_are_told() {
        for (text, expected) in [
            ("g\u{456}t push", &["letters of different scripts in one name: g\\u{456}t"][..]),
            (
                "https://\u{430}\u{440}\u{440}le.com/x",
                &["letters of different scripts in one name: \\u{430}\\u{440}\\u{440}le.com"],
            ),
            (
                "http://u@\u{3b1}.example",
                &["letters of different scripts in one name: \\u{3b1}.example"],
            ),
            (
                "https://xn--pple-43d.com",
                &["a host in punycode (`xn--`): it stands for letters that are not shown"],
            ),
            (
                "curl www.XN--80ak6aa92e.com",
                &["a host in punycode (`xn--`): it stands for letters that are not shown"],
            ),
        ] {
            assert_eq!(lookalike_warnings(text), expected, "{text}");
        }
    }

    #[test]
    fn names_of_one_script_are_not() {
        for text in ["git push", "größe", "документ.txt", "読む read", "α β γ", "foo--xn--a", ""]
        {
            assert_eq!(lookalike_warnings(text), <[String; 0]>::default(), "{text}");
        }
    }
}
