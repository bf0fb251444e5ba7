//! What is measured, and how it is told.

use std::fmt;

/// What one lane costs.
pub(crate) struct Figures {
    /// The median time of a call that goes alone, in microseconds.
    pub(crate) alone: f64,
    /// What one call of a hundred takes at the least.
    pub(crate) slow: f64,
    /// Calls in a second with many on their way.
    pub(crate) deep: f64,
    /// Processor time of the server for a call, alone and with many on their way.
    pub(crate) cpu: [f64; 2],
    /// From the start of the program to its list of tools, in milliseconds.
    pub(crate) start: f64,
}

/// What a program costs before it is called.
pub(crate) struct Costs {
    /// From the start of the program to its list of tools, in milliseconds.
    pub(crate) start: f64,
    /// The most memory that it had, in MiB.
    pub(crate) memory: f64,
}

impl Figures {
    pub(crate) fn best(self, other: Self) -> Self {
        Self {
            alone: self.alone.min(other.alone),
            slow: self.slow.min(other.slow),
            deep: self.deep.max(other.deep),
            cpu: [self.cpu[0].min(other.cpu[0]), self.cpu[1].min(other.cpu[1])],
            start: self.start.min(other.start),
        }
    }

    /// This as a multiple of `floor`.
    pub(crate) fn beside(&self, floor: &Self) -> String {
        format!(
            "alone {:.2}x, 64 deep {:.2}x, CPU {:.2}x and {:.2}x, start {:.2}x",
            self.alone / floor.alone,
            self.deep / floor.deep,
            self.cpu[0] / floor.cpu[0],
            self.cpu[1] / floor.cpu[1],
            self.start / floor.start
        )
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { alone, slow, deep, cpu, start } = self;
        write!(
            f,
            "{alone:>10.2} {slow:>8.2} {deep:>12.0} {:>10.2} {:>12.2} {start:>9.2}",
            cpu[0], cpu[1]
        )
    }
}

/// Sorts the values.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
