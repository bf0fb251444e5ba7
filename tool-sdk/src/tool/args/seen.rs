//! Which parameters a walk over the arguments has met; nothing here knows their names.

/// Which parameters were seen: one bit for each, of which a tool has at most 128.
#[derive(Default)]
pub(super) struct Seen {
    bits: [u64; 2],
    count: usize,
}

impl Seen {
    /// The first `count` of them.
    pub(super) fn first(count: usize) -> Self {
        let mut seen = Self::default();
        for index in 0..count {
            seen.insert(index);
        }
        seen
    }

    /// Says whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, index: usize) -> bool {
        let (word, bit) = Self::place(index);
        let is_new = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        self.count += usize::from(is_new);
        is_new
    }

    pub(super) fn contains(&self, index: usize) -> bool {
        let (word, bit) = Self::place(index);
        self.bits[word] & bit != 0
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    #[inline]
    fn place(index: usize) -> (usize, u64) {
        (index / 64 % 2, 1 << (index % 64))
    }
}
