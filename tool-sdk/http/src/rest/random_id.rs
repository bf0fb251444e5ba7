//! Ids that cannot be guessed.

use super::problem::ProblemDetails;

/// Returns an id of 128 random bits, such as `call-0f3a…`.
pub(super) fn random_id(prefix: &str) -> Result<String, ProblemDetails> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits)
        .map_err(|_| ProblemDetails::busy("the system has no random numbers"))?;
    Ok(format!("{prefix}-{:032x}", u128::from_be_bytes(bits)))
}
