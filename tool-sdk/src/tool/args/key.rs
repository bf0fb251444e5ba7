//! A key as most writers write it: in quotes, with the colon right behind.

/// How many bytes are compared at one look; no key is shorter.
const LOOK: usize = 4;

/// A key as most writers write it, known by its ends where it is short.
#[derive(Debug)]
pub(super) struct Key {
    text: Box<str>,
    first: [u8; LOOK],
    last: [u8; LOOK],
}

impl Key {
    pub(super) fn of(name: &str) -> Self {
        let text = format!("\"{name}\":");
        // A key without a name is found by who reads with care.
        let first = text.as_bytes().first_chunk().copied().unwrap_or_default();
        let last = text.as_bytes().last_chunk().copied().unwrap_or_default();
        Self { text: text.into(), first, last }
    }

    /// What comes behind it at the start of `text`.
    #[inline(always)]
    pub(super) fn strip<'t>(&self, text: &'t str) -> Option<&'t str> {
        if self.text.len() > 2 * LOOK {
            return text.strip_prefix(&*self.text);
        }
        let (key, behind) = text.split_at_checked(self.text.len())?;
        let key = key.as_bytes();
        let is_it = *key.first_chunk()? == self.first && *key.last_chunk()? == self.last;
        is_it.then_some(behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_begins_with_its_key_alone() {
        for name in ["a", "é", "query", "longer", "a_much_longer_name"] {
            let key = Key::of(name);
            let text = format!("\"{name}\":");
            for tail in ["", "1", " \"a text\"}"] {
                let whole = format!("{text}{tail}");
                assert_eq!(key.strip(&whole), Some(tail), "{whole}");
                for (at, was) in text.char_indices() {
                    assert_eq!(key.strip(&whole[..at]), None, "{whole}: {at}");
                    let other = format!("{}!{}", &whole[..at], &whole[at + was.len_utf8()..]);
                    assert_eq!(key.strip(&other), None, "{other}");
                }
            }
        }
    }
}
