//! Checks whether an awk program only prints what it reads.
//!
//! String and regex literals are not code. If it is uncertain whether a slash divides or begins a
//! regex, the program counts as harmful.
//!
//! **Invariant:** one look at each character.

/// Names that run programs, or read or write other files.
const DANGEROUS_NAMES: &[&str] = &["system", "getline", "close", "ARGV", "SYMTAB"];

/// Whether `program` only prints what it reads.
pub(super) fn is_harmless(program: &str) -> bool {
    strip_literals(program).is_some_and(|code| {
        !DANGEROUS_NAMES.iter().any(|name| code.contains(name))
            && !code.contains('@')
            && !has_redirection(&code)
    })
}

/// Removes string literals, regex literals and comments. `None` if their limits are uncertain.
fn strip_literals(program: &str) -> Option<String> {
    let mut code = String::with_capacity(program.len());
    let mut rest = program;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '"' => {
                rest = skip_quoted(rest, '"')?;
                code.push_str("\"\"");
            }
            '/' if begins_pattern(&code, rest)? => {
                rest = skip_quoted(rest, '/')?;
                code.push_str("\"\"");
            }
            '#' => rest = rest.find('\n').map_or("", |end| &rest[end..]),
            '\\' => rest = rest.strip_prefix('\n')?,
            c => code.push(c),
        }
    }
    Some(code)
}

/// Returns the text after the end of a string or regex literal.
fn skip_quoted(text: &str, end: char) -> Option<&str> {
    let mut rest = text;
    loop {
        let c = rest.chars().next()?;
        rest = &rest[c.len_utf8()..];
        match c {
            '\n' => return None,
            '\\' => rest = &rest[rest.chars().next().filter(|c| *c != '\n')?.len_utf8()..],
            c if c == end => return Some(rest),
            '[' if end == '/' => rest = skip_char_class(rest)?,
            _ => {}
        }
    }
}

/// Returns the text after a bracket expression in a regex. A slash inside is rejected, because
/// some versions of awk end the regex there.
fn skip_char_class(text: &str) -> Option<&str> {
    let mut rest = text.strip_prefix('^').unwrap_or(text);
    // A `]` in the first position is a literal in some versions.
    let mut is_first = true;
    loop {
        let c = rest.chars().next()?;
        rest = &rest[c.len_utf8()..];
        match c {
            ']' if is_first => return None,
            ']' => return Some(rest),
            '\n' | '/' => return None,
            '\\' => rest = &rest[rest.chars().next().filter(|c| *c != '\n')?.len_utf8()..],
            '[' if rest.starts_with(':') => {
                let length = rest[1..].find(|c: char| !c.is_ascii_lowercase())?;
                rest = rest[1 + length..].strip_prefix(":]")?;
            }
            '[' if rest.starts_with(['.', '=']) => return None,
            _ => {}
        }
        is_first = false;
    }
}

/// Whether a slash after `before` begins a regex. `None` if it is uncertain.
fn begins_pattern(before: &str, rest: &str) -> Option<bool> {
    let before = before.trim_end_matches([' ', '\t']);
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match before.chars().next_back() {
        None | Some('\n' | '(' | ',' | '!' | '~' | '{' | '}' | ';' | '&' | '|' | '=') => Some(true),
        Some(c) if is_of_name(c) => {
            let word = before.rsplit(|c| !is_of_name(c)).next().unwrap_or_default();
            let is_word =
                ["print", "printf", "return", "in", "case", "else", "do", "exit", "length"]
                    .contains(&word);
            (!is_word).then_some(false)
        }
        // A regex may follow a condition in parentheses.
        Some(')' | ']') if !rest.contains('/') => Some(false),
        _ => None,
    }
}

/// Whether the code redirects output or input to a file or a program.
fn has_redirection(code: &str) -> bool {
    let (mut depth, mut prints, mut word) = (0_usize, false, String::new());
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        prints |= matches!(&*word, "print" | "printf");
        word.clear();
        match c {
            '|' if chars.next_if_eq(&'|').is_none() => return true,
            '>' if prints && depth == 0 => return true,
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            // After a comma the statement continues on the next line.
            ';' | '{' | '}' => (depth, prints) = (0, false),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::is_harmless;

    // SH6: what counts as harmless writes nothing, however it is put together.
    #[test]
    fn awk_agrees_that_it_is_harmless() {
        const PARTS: &[&str] = &[
            "/",
            "/",
            "\"",
            "\"",
            "[",
            "]",
            "^",
            "\\",
            "(",
            ")",
            "{",
            "}",
            ";",
            "\n",
            "#",
            " ",
            "a",
            "1",
            "$1",
            "+",
            "-",
            "~",
            "!",
            "=",
            ",",
            "? 1 : 2",
            "print ",
            "> \"ran\"",
            "> \"ran\"",
            " system(\"touch ran\") ",
            " system(\"touch ran\") ",
            "|",
            "[:alpha:]",
            "/a/",
            "\"b\"",
            "length ",
            "1 ",
            " || ",
            " > ",
            "{print $1}",
            "/[/]",
            "BEGIN",
        ];
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("in"), "a b 1\n").unwrap();
        let mut seed: u64 = 11;
        let mut next = |most: usize| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % most
        };
        let all = if std::env::var_os("TOOL_SDK_PROOF").is_some() { 20_000 } else { 200 };
        let mut checked = 0;
        for _ in 0..1_000 * all {
            let program: String = (0..3 + next(8)).map(|_| PARTS[next(PARTS.len())]).collect();
            if !(program.contains("ran") && is_harmless(&program)) {
                continue;
            }
            let awk = Command::new("awk")
                .args([program.as_str(), "in"])
                .current_dir(folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            // Where there is none, nothing is to be compared.
            if awk.is_err() {
                return;
            }
            let files = std::fs::read_dir(folder.path()).unwrap().count();
            assert_eq!(files, 1, "{program:?}");
            checked += 1;
            if checked == all {
                return;
            }
        }
        panic!("only {checked} were harmless");
    }

    #[test]
    fn letters_of_all_alphabets_are_read() {
        for (program, expected) in [("×a/2", true), ("a;×print/b/", false), ("\"×\"a/2", true)] {
            assert_eq!(is_harmless(program), expected, "{program}");
        }
    }

    // SH6
    #[test]
    fn comparing_and_printing_awk_is_harmless() {
        for program in [
            "NR>1",
            "length > 80",
            "$3 > 5 {print $1}",
            "{if ($1>5) print}",
            "/foo|bar/ {print}",
            "!/a@b/ && $1 ~ /x|y/",
            "{print $1 \"|\" $2}",
            "{print \"a@b\", \"x > y\"}",
            "NR>=10 && NR<=20",
            "a || b",
            "/^[[:space:]]*[^\"a-z]$/ {next} {print}",
            "{s+=$1} END {print s/NR}",
            "{print ($1+$2)/2}",
            "{print (a > b)}",
            "# it's system\n1",
            "{print $1}",
        ] {
            assert!(is_harmless(program), "{program}");
        }
    }

    #[test]
    fn awk_that_runs_or_writes_is_harmful() {
        for program in [
            "{print > \"x\"}",
            "{print $1 >> \"x\"}",
            "{print(a) > b}",
            "{print | \"x\"}",
            "\"x\" | getline",
            "\"x\" |& getline",
            "BEGIN{system(\"x\")}",
            "{f=\"system\"; @f(1)}",
            "BEGIN{ARGV[1]=\"x\"}",
            "{a++ / system(\"x\") / 2}",
            "{a / system(\"x\") / 2}",
            "{print /\"/; system(\"x\") #\"",
            "if (a) /\"/; system(\"x\") #\"/",
            "/[/]\"/; system(\"x\") #\"/",
            "/[]\"]/; system(\"x\") #\"/",
            "/a\n\"/",
            "{print \"a",
            "{print \"\\",
            "{print >>= \"y\"}",
            "{print a[b > c] > d}",
            "{print a,\n b > \"x\"}",
            "/[[:alpha:]/\"]/; system(\"x\") #\"",
            "/[[:alpha:]\"/]/; system(\"x\") #\"",
            "{length /\"/; system(\"x\") #\"",
        ] {
            assert!(!is_harmless(program), "{program}");
        }
    }
}
