//! The two sides of the diff of a preview, so that a prompt does not show a text a second time.
//!
//! **Invariant:** a diff that is not understood in full has no sides, and every argument is shown.

/// What a diff removes and what it adds, each as one text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DiffSides {
    removed: String,
    added: String,
}

impl DiffSides {
    /// Parses a unified diff of one or more files.
    pub(super) fn parse(diff: &str) -> Option<Self> {
        let mut sides = Self::default();
        let (mut old_left, mut new_left) = (0, 0);
        let mut last_side = None;
        for line in diff.strip_suffix('\n').unwrap_or(diff).split('\n') {
            if line.starts_with('\\') {
                // The line before has no line end.
                match last_side {
                    Some('-') => drop(sides.removed.pop()),
                    Some('+') => drop(sides.added.pop()),
                    _ => {}
                }
                continue;
            }
            if (old_left, new_left) == (0, 0) {
                match line.get(..4)? {
                    "--- " | "+++ " => {}
                    _ => (old_left, new_left) = parse_hunk_header(line)?,
                }
                continue;
            }
            let (sign, content) = (line.chars().next()?, line.get(1..)?);
            last_side = Some(sign);
            match sign {
                ' ' => (old_left, new_left) = (take_one(old_left)?, take_one(new_left)?),
                '-' => {
                    old_left = take_one(old_left)?;
                    sides.removed.extend([content, "\n"]);
                }
                '+' => {
                    new_left = take_one(new_left)?;
                    sides.added.extend([content, "\n"]);
                }
                _ => return None,
            }
        }
        ((old_left, new_left) == (0, 0)).then_some(sides)
    }

    /// Returns what stands for a text that is exactly one side of the diff. A text of one line is
    /// shown all the same.
    pub(super) fn reference(&self, text: &str) -> Option<String> {
        let lines = text.lines().count();
        if lines < 2 {
            return None;
        }
        let verb = match text {
            text if text == self.added => "adds",
            text if text == self.removed => "removes",
            _ => return None,
        };
        Some(format!("the {lines} lines that the preview {verb}"))
    }
}

fn take_one(left: usize) -> Option<usize> {
    left.checked_sub(1)
}

/// Returns the numbers of old and new lines of a hunk from its header, such as `@@ -1,3 +1,4 @@`.
pub fn parse_hunk_header(line: &str) -> Option<(usize, usize)> {
    let mut words = line.strip_prefix("@@ ")?.split(' ');
    let (old, new) = (words.next()?.strip_prefix('-')?, words.next()?.strip_prefix('+')?);
    let length = |range: &str| match range.split_once(',') {
        Some((_, length)) => length.parse().ok(),
        None => Some(1),
    };
    Some((length(old)?, length(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_one_side_is_referred_to() {
        let diff = "--- a\n+++ a\n@@ -1,4 +1,3 @@\n same\n-one\n-two\n+--- b\n+2\n\\ No newline at end of file\n";
        assert_eq!(DiffSides::parse(diff), None, "the lengths are wrong");
        let diff = diff.replace("-1,4", "-1,3");
        let sides = DiffSides::parse(&diff).unwrap();
        let said = |text| sides.reference(text);
        assert_eq!(said("one\ntwo\n").as_deref(), Some("the 2 lines that the preview removes"));
        assert_eq!(said("--- b\n2").as_deref(), Some("the 2 lines that the preview adds"));
        assert_eq!(said("--- b\n2\n"), None, "another end");
        assert_eq!(said("same\none\ntwo\n"), None);
        let one = DiffSides::parse("--- /dev/null\n+++ b\n@@ -0,0 +1 @@\n+x\n").unwrap();
        assert_eq!(one.reference("x\n"), None, "one line is as short as a reference");
    }

    #[test]
    fn what_is_cut_has_no_sides() {
        for diff in ["", "text", "--- a\n+++ a\n@@ -1,9 +1,9 @@\n one\n[9 more lines]\n"] {
            assert_eq!(DiffSides::parse(diff), None, "{diff}");
        }
    }
}
