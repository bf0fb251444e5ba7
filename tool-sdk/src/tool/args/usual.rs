//! The way of most calls: the arguments in the order of their declaration, written as most
//! writers write them, each decoded where it stands.
//!
//! No fault is worded here, and nothing is taken that the whole [walk](super::walk) would
//! not take. What is unusual in any way is left as it stands: that walk goes on from there.

use std::any::Any;

use super::check::Quick;
use crate::tool::digest::Digest;

/// How far the usual way led.
#[derive(Default)]
pub(super) struct Left {
    /// How many arguments were taken.
    pub(super) taken: usize,
    /// Where the last of them ends.
    pub(super) at: usize,
}

/// Fills `slots`, which stand in the order of `params`, from all of `text`; sums the
/// arguments up where somebody wants that.
#[inline]
pub(super) fn take(
    text: &str,
    params: &[Quick],
    slots: &mut [&mut dyn Any],
    digest: &mut Option<Digest>,
) -> Result<(), Left> {
    let Some(mut next) = text.strip_prefix('{') else { return Err(Left::default()) };
    let (mut taken, mut rest) = (0, text);
    let mut pairs = params.iter().zip(slots);
    while let Some((param, slot)) = pairs.next() {
        let Some(behind) = argument(param, *slot, next, digest) else { break };
        rest = behind;
        taken += 1;
        match rest.strip_prefix(',') {
            Some(behind) => next = behind,
            None if rest == "}" && pairs.all(|(param, slot)| param.may_be_absent(*slot)) => {
                return Ok(());
            }
            None => break,
        }
    }
    Err(Left { taken, at: text.len() - rest.len() })
}

/// Takes the argument at the start of `text`; gives what comes behind it.
#[inline(always)]
fn argument<'t>(
    param: &Quick,
    slot: &mut dyn Any,
    text: &'t str,
    digest: &mut Option<Digest>,
) -> Option<&'t str> {
    let value = past_blank(param.key.strip(past_blank(text))?);
    if !param.is_usual(*value.as_bytes().first()?) {
        return None;
    }
    let length = param.decode(value, slot).ok()?;
    let (value, behind) = value.split_at_checked(length)?;
    if !param.after.is_kept_by(value.as_bytes()) {
        return None;
    }
    if let Some(digest) = digest {
        digest.add(param.place, value.as_bytes());
    }
    Some(past_blank(behind))
}

/// Most writers put one blank or none.
#[inline(always)]
fn past_blank(text: &str) -> &str {
    text.strip_prefix(' ').unwrap_or(text)
}
