//! Names that can be taken for others: scripts mixed in one word, hosts in punycode.

use std::sync::LazyLock;

use regex::Regex;

use super::visible::fixed;

/// The host of an address, or one word.
static NAME: LazyLock<Regex> =
    LazyLock::new(|| fixed(r"://(?:[^\s/?#]*@)?(?<host>[^\s/?#:]+)|(?<word>[\p{L}\p{M}\p{N}_]+)"));

/// A label of a host that stands for other letters.
static PUNYCODE: LazyLock<Regex> =
    LazyLock::new(|| fixed(r"(?i)(?:^|[^\p{L}\p{N}_-])xn--[a-z0-9]"));

/// Scripts with letters that look alike.
static SCRIPTS: LazyLock<[Regex; 5]> = LazyLock::new(|| {
    ["Latin", "Greek", "Cyrillic", "Armenian", "Cherokee"]
        .map(|script| fixed(&format!(r"\p{{{script}}}")))
});

/// What to say about the names in `text`.
pub(super) fn warnings(text: &str) -> Vec<String> {
    let mixed = NAME
        .captures_iter(text)
        .filter_map(|found| found.name("host").or_else(|| found.name("word")))
        .map(|name| name.as_str())
        .filter(|name| !name.is_ascii() && is_mixed(name))
        .map(|name| format!("letters of different scripts in one name: {}", spelt(name)));
    let punycode = PUNYCODE.is_match(text).then(|| {
        "a host in punycode (`xn--`): it stands for letters that are not shown".to_owned()
    });
    mixed.chain(punycode).collect()
}

fn is_mixed(name: &str) -> bool {
    SCRIPTS.iter().filter(|script| script.is_match(name)).count() > 1
}

/// The start of a name with every letter past ASCII by its number.
fn spelt(name: &str) -> String {
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
            assert_eq!(warnings(text), expected, "{text}");
        }
    }

    #[test]
    fn names_of_one_script_are_not() {
        for text in ["git push", "größe", "документ.txt", "読む read", "α β γ", "foo--xn--a", ""]
        {
            assert_eq!(warnings(text), <[String; 0]>::default(), "{text}");
        }
    }
}
