//! Frontmatter: YAML between two lines `---` at the head of a Markdown file, as files of agents,
//! skills and notes have.
//!
//! Files that people have often break YAML's rules with a plain colon, as in `description: Use when:
//! always`. Such values are quoted, and the file is read again.

use std::fmt::Write as _;
use std::ops::Range;

use serde::de::{DeserializeOwned, IgnoredAny};

/// The limit of the frontmatter in bytes.
const MAX_BYTES: usize = 64 << 10;

const FENCE: &str = "---";

/// A Markdown file with frontmatter.
///
/// # Examples
///
/// ```
/// use serde::Deserialize;
/// use tool_sdk::Frontmatter;
///
/// #[derive(Deserialize)]
/// struct Page {
///     title: String,
/// }
///
/// let text = "---\ntitle: Trains: a history\n---\n\n# Steam\n";
/// let page = Frontmatter::<Page>::parse(text)?.expect("there is frontmatter");
/// assert_eq!(page.fields.title, "Trains: a history");
/// assert_eq!(page.body, "# Steam\n");
/// assert!(page.is_repaired, "a plain value of YAML may not contain `: `");
/// # Ok::<(), tool_sdk::InvalidFrontmatter>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frontmatter<T> {
    /// The fields of the frontmatter.
    pub fields: T,
    /// The text behind it, with `\n` as line ends and without empty lines at its start.
    pub body: String,
    /// Whether values had to be quoted before the frontmatter was YAML.
    pub is_repaired: bool,
}

/// The frontmatter of a file is no YAML, or lacks fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct InvalidFrontmatter {
    line: Option<usize>,
    reason: String,
}

impl InvalidFrontmatter {
    /// Returns the line of the file, counted from 1.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    fn from_yaml(error: &serde_saphyr::Error) -> Self {
        let error = error.without_snippet();
        let line = error.location().and_then(|it| usize::try_from(it.line()).ok());
        let reason = error.to_string();
        // The message repeats the place inside of the frontmatter.
        let reason = match reason.rsplit_once(" at line ") {
            Some((reason, _)) => reason.to_owned(),
            None => reason,
        };
        // The fence is the first line of the file.
        Self { line: line.filter(|line| *line > 0).map(|line| line + 1), reason }
    }
}

impl<T: DeserializeOwned> Frontmatter<T> {
    /// Parses a file; returns `None` for a file without frontmatter. A byte order mark and `\r\n`
    /// are accepted.
    ///
    /// # Errors
    ///
    /// Fails if the second `---` is missing, if what is between them is over 64 KiB or is no YAML
    /// even after values with colons are quoted, or if it is no `T`.
    pub fn parse(text: &str) -> Result<Option<Self>, InvalidFrontmatter> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        let Some((head, body)) = split_fences(&text)? else { return Ok(None) };
        let (fields, is_repaired) = parse_head(&text[head])?;
        let body = text[body].trim_start_matches('\n').to_owned();
        Ok(Some(Self { fields, body, is_repaired }))
    }
}

/// Where the frontmatter and the body are.
type FileParts = (Range<usize>, Range<usize>);

/// Finds the two fences.
fn split_fences(text: &str) -> Result<Option<FileParts>, InvalidFrontmatter> {
    let wrong = |reason: String| InvalidFrontmatter { line: None, reason };
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == FENCE) else {
        return Ok(None);
    };
    let (start, mut end) = (first.len(), first.len());
    for line in lines {
        if line.trim_end() == FENCE {
            if end - start > MAX_BYTES {
                return Err(wrong(format!("the frontmatter is over {MAX_BYTES} bytes")));
            }
            return Ok(Some((start..end, end + line.len()..text.len())));
        }
        end += line.len();
    }
    Err(wrong(format!("the line `{FENCE}` that ends the frontmatter is missing")))
}

/// Parses YAML, after a repair if need be; the flag says so.
fn parse_head<T: DeserializeOwned>(head: &str) -> Result<(T, bool), InvalidFrontmatter> {
    // No field at all is `null` in YAML, and an empty mapping for a struct.
    let head = if head.trim().is_empty() { "{}\n" } else { head };
    if is_yaml(head) {
        return Ok((parse_yaml(head)?, false));
    }
    Ok((parse_yaml(&quote_values(head))?, true))
}

fn parse_yaml<T: DeserializeOwned>(text: &str) -> Result<T, InvalidFrontmatter> {
    // `y` and `no` are words, as in YAML 1.2.
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| InvalidFrontmatter::from_yaml(&error))
}

fn is_yaml(text: &str) -> bool {
    parse_yaml::<IgnoredAny>(text).is_ok()
}

/// Quotes each value that is no YAML where it stands alone on its line.
fn quote_values(head: &str) -> String {
    let mut quoted = String::with_capacity(head.len() + 16);
    let mut block_indent = None;
    let indent_of = |line: &str| line.len() - line.trim_start().len();
    let mut lines = head.lines().peekable();
    while let Some(line) = lines.next() {
        let indent = indent_of(line);
        // The lines of a block scalar are text.
        if block_indent.is_some_and(|block| indent > block || line.trim().is_empty()) {
            let _ = writeln!(quoted, "{line}");
            continue;
        }
        block_indent = None;
        match split_field(line) {
            Some((_, value)) if value.starts_with(['|', '>']) => {
                block_indent = Some(indent);
                let _ = writeln!(quoted, "{line}");
            }
            Some((key, value)) if !is_yaml(line.trim_start()) => {
                // A plain value goes on in the lines that are indented more.
                let (mut value, mut joined) = (value.to_owned(), String::new());
                while let Some(more) = lines.next_if(|more| indent_of(more) > indent) {
                    let _ = write!(value, " {}", more.trim());
                    // Keeps the numbers of the lines behind.
                    joined.push('\n');
                }
                let _ = writeln!(quoted, "{key}: {}{joined}", serde_json::Value::from(value));
            }
            _ => {
                let _ = writeln!(quoted, "{line}");
            }
        }
    }
    quoted
}

/// Splits `key: value`; the key keeps its indentation.
fn split_field(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(": ")?;
    let name = key.trim_start();
    let is_key = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    let value = value.trim();
    (is_key && !value.is_empty()).then_some((key, value))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn parse(text: &str) -> Frontmatter<Value> {
        Frontmatter::parse(text).unwrap().unwrap()
    }

    #[test]
    fn fields_and_body_are_split() {
        let parsed = parse("---\nname: a\ntags:\n  - x\n  - y\n---\n\nText\n---\nmore\n");
        assert_eq!(parsed.fields, json!({ "name": "a", "tags": ["x", "y"] }));
        assert_eq!((parsed.body.as_str(), parsed.is_repaired), ("Text\n---\nmore\n", false));
        assert_eq!(Frontmatter::<Value>::parse("# Title\n---\n").unwrap(), None);
        assert_eq!(Frontmatter::<Value>::parse("").unwrap(), None);
        let parsed = parse("\u{feff}---\r\nname: a\r\n--- \r\nText\r\n");
        assert_eq!((parsed.fields, parsed.body.as_str()), (json!({ "name": "a" }), "Text\n"));
        assert_eq!(parse("---\n---").fields, json!({}));
    }

    // F112: the frontmatter that people have is read.
    #[test]
    fn plain_values_with_colons_are_quoted() {
        let text = "---\nname: deploy\ndescription: Build for AWS: ECS, what's there\n\
                    note: |-\n  Kept: as it is\n\n  too: yes\nhint: <time: e.g. 7d>\n\
                    long: Use it when: the change\n  is done: really\n\
                    tags: [next,@supabase/ssr]\nmetadata:\n  short: What's included: all\n---\n";
        let parsed = parse(text);
        assert!(parsed.is_repaired);
        assert_eq!(
            parsed.fields,
            json!({
                "name": "deploy",
                "description": "Build for AWS: ECS, what's there",
                "note": "Kept: as it is\n\ntoo: yes",
                "hint": "<time: e.g. 7d>",
                "long": "Use it when: the change is done: really",
                "tags": "[next,@supabase/ssr]",
                "metadata": { "short": "What's included: all" },
            })
        );
    }

    #[test]
    fn errors_name_the_line() {
        #[derive(Debug, Deserialize)]
        struct Fields {
            #[expect(dead_code, reason = "only its type matters")]
            count: u32,
        }
        let fails = |text: &str| Frontmatter::<Fields>::parse(text).unwrap_err().to_string();
        assert!(fails("---\nname: x\n").contains("is missing"));
        let wrong = fails("---\nname: x\ncount: many\n---\n");
        assert!(wrong.starts_with("line 3: ") && !wrong.contains('\n'), "{wrong}");
        assert!(fails("---\nname: x\n---\n").contains("count"));
        assert!(fails("---\n- a\n: [\n---\n").starts_with("line "));
        let large = format!("---\nname: {}\n---\n", "x".repeat(MAX_BYTES));
        assert!(fails(&large).contains("over 65536 bytes"));
    }

    #[test]
    fn aliases_cannot_grow_without_bound() {
        let mut text = "---\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let _ = writeln!(
                text,
                "a{level}: &a{level} [{}]",
                vec![format!("*a{}", level - 1); 10].join(", ")
            );
        }
        text.push_str("---\n");
        let parsed = parse(&text);
        assert!(parsed.is_repaired && parsed.fields.to_string().len() < 2 * text.len());
    }
}
