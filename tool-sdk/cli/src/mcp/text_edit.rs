//! Edits text in one place and keeps all other bytes.
//!
//! A TOML editor may normalise line ends, drop the byte order mark or add a final line end; these
//! functions undo that for all unchanged lines.

/// The byte order mark at the start of some files.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Appends a block to `before`, separated by a blank line, with its line ends.
pub(super) fn append_block(before: &str, block: &str) -> String {
    let end = line_end(before);
    let mut text = before.to_owned();
    if !text.trim_start_matches(BYTE_ORDER_MARK).is_empty() {
        if !text.ends_with('\n') {
            text.push_str(end);
        }
        text.push_str(end);
    }
    text.push_str(&block.replace('\n', end));
    text
}

/// Returns `after` with the common leading and trailing lines taken from `before` byte for byte.
pub(super) fn preserve_lines(before: &str, after: &str) -> String {
    let (mark, own) =
        before.strip_prefix(BYTE_ORDER_MARK).map_or(("", before), |rest| (BYTE_ORDER_MARK, rest));
    let end = line_end(own);
    let old: Vec<&str> = own.split_inclusive('\n').collect();
    let new: Vec<&str> = after.trim_start_matches(BYTE_ORDER_MARK).split_inclusive('\n').collect();
    let same = |(one, other): &(&&str, &&str)| without_line_end(one) == without_line_end(other);
    let first = old.iter().zip(&new).take_while(same).count();
    let (old_rest, new_rest) = (&old[first..], &new[first..]);
    let last = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(same).count();
    let mut text = mark.to_owned();
    text.extend(old[..first].iter().copied());
    for line in &new_rest[..new_rest.len() - last] {
        if text.len() > mark.len() && !text.ends_with('\n') {
            text.push_str(end);
        }
        text.push_str(without_line_end(line));
        text.push_str(end);
    }
    text.extend(old_rest[old_rest.len() - last..].iter().copied());
    text
}

/// Returns a line without its line end.
fn without_line_end(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// Returns the line end of a text, by its first line.
fn line_end(text: &str) -> &'static str {
    match text.split_once('\n') {
        Some((first, _)) if first.ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_unchanged_lines_byte_for_byte() {
        for (before, after, expected) in [
            ("a\r\nb\r\nc\r\n", "a\nc\n", "a\r\nc\r\n"),
            ("a\nb\r\nc", "a\nx\nc\n", "a\nx\nc"),
            ("\u{feff}a\nb", "a\n", "\u{feff}a\n"),
            ("\u{feff}a\r\nb", "b\n", "\u{feff}b"),
            ("a\na\n", "a\n", "a\n"),
            ("a", "a\nb\n", "a\nb\n"),
            ("a\n", "", ""),
            ("", "a\n", "a\n"),
        ] {
            assert_eq!(preserve_lines(before, after), expected, "{before:?}");
        }
    }

    #[test]
    fn appends_the_block_at_the_end() {
        for (before, expected) in [
            ("", "x\ny\n"),
            ("\u{feff}", "\u{feff}x\ny\n"),
            ("# only\n", "# only\n\nx\ny\n"),
            ("a\r\nb", "a\r\nb\r\n\r\nx\r\ny\r\n"),
        ] {
            assert_eq!(append_block(before, "x\ny\n"), expected);
        }
    }
}
