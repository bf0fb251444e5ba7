//! Where each name stands: a table that is made once and then only read.
//!
//! A general map costs more than to hash a name, and to compare two by a call more than either;
//! names are short.

use crate::tool::digest;

/// Names and where they stand. Each has the first free place from the one that its hash says;
/// there are more places than names.
#[derive(Debug, Default)]
pub(super) struct Names(Box<[Option<Named>]>);

#[derive(Clone, Debug)]
struct Named {
    hash: u64,
    name: Box<str>,
    at: usize,
}

impl Names {
    /// The names, in the order of what they name; of two that are the same the last counts.
    pub(super) fn new<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> Self {
        let mut table = Self(vec![None; (2 * names.len()).next_power_of_two()].into());
        for (at, name) in names.enumerate() {
            let hash = hash(name);
            let mut places = table.places(hash);
            let is_its = |place: &Option<Named>| {
                place.as_ref().is_none_or(|it| it.hash == hash && *it.name == *name)
            };
            if let Some(place) = places.find(|&place| is_its(&table.0[place])) {
                table.0[place] = Some(Named { hash, name: name.into(), at });
            }
        }
        table
    }

    #[inline]
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let hash = hash(name);
        for place in self.places(hash) {
            let named = self.0.get(place)?.as_ref()?;
            if named.hash == hash && are_same(named.name.as_bytes(), name.as_bytes()) {
                return Some(named.at);
            }
        }
        None
    }

    /// The places of a name with this hash, the first one first.
    #[inline(always)]
    fn places(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let last = self.0.len().wrapping_sub(1);
        (0..self.0.len()).map(move |step| (hash as usize).wrapping_add(step) & last)
    }
}

#[inline(always)]
fn hash(name: &str) -> u64 {
    // A start that is not zero, so that the length of a name counts, too.
    digest::hash(3, name.as_bytes())
}

/// Whether two texts are the same, seen at their ends where they are short.
#[inline(always)]
fn are_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len()
        && match a.len() {
            0 | 1 => a.first() == b.first(),
            2 | 3 => ends::<2>(a) == ends(b),
            4..=7 => ends::<4>(a) == ends(b),
            8..=16 => ends::<8>(a) == ends(b),
            _ => a == b,
        }
}

#[inline(always)]
fn ends<const N: usize>(text: &[u8]) -> (Option<&[u8; N]>, Option<&[u8; N]>) {
    (text.first_chunk(), text.last_chunk())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_where_it_stands() {
        for count in [0, 1, 2, 3, 100, 1000] {
            let names: Vec<_> = (0..count).map(|at| format!("tool_{at}")).collect();
            let table = Names::new(names.iter().map(String::as_str));
            for (at, name) in names.iter().enumerate() {
                assert_eq!(table.find(name), Some(at), "{name}");
                assert_eq!(table.find(&format!("{name}_")), None, "{name}");
            }
            assert_eq!(table.find(""), None);
        }
        assert_eq!(Names::default().find("add"), None);
        assert_eq!(Names::new(["a", "b", "a"].into_iter()).find("a"), Some(2));
    }

    #[test]
    fn no_byte_of_a_text_is_left_out() {
        for length in 0..40 {
            let text = vec![b'a'; length];
            assert!(are_same(&text, &text.clone()));
            assert!(!are_same(&text, &vec![b'a'; length + 1]));
            for at in 0..length {
                let mut other = text.clone();
                other[at] = b'b';
                assert!(!are_same(&text, &other), "{length}: {at}");
            }
        }
    }
}
