//! Reads the output budget from environment variables.

use std::ffi::{OsStr, OsString};

use super::Budget;

const LINES_VAR: &str = "TOOL_SDK_MAX_OUTPUT_LINES";
const BYTES_VAR: &str = "TOOL_SDK_MAX_OUTPUT_BYTES";
const TOKENS_VAR: &str = "TOOL_SDK_MAX_OUTPUT_TOKENS";

/// An environment variable for the budget that is not a positive whole number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{variable}` must be a whole number from 1 up, not `{value}`")]
pub struct InvalidBudget {
    variable: &'static str,
    value: String,
}

impl InvalidBudget {
    /// Returns the name of the variable.
    #[must_use]
    pub fn variable(&self) -> &'static str {
        self.variable
    }
}

impl Budget {
    /// Returns the default budget with the limits from the environment.
    ///
    /// `TOOL_SDK_MAX_OUTPUT_LINES`, `TOOL_SDK_MAX_OUTPUT_BYTES` and
    /// `TOOL_SDK_MAX_OUTPUT_TOKENS` are whole numbers; of the last two the smaller limit
    /// applies. An empty variable counts as unset. The host may override the result.
    ///
    /// # Errors
    ///
    /// Fails when a variable is not a whole number from 1 up.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Budget;
    ///
    /// let budget = Budget::from_env(&|name| std::env::var_os(name))?.with_lines(500);
    /// # Ok::<(), tool_sdk::InvalidBudget>(())
    /// ```
    pub fn from_env(var: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, InvalidBudget> {
        let mut budget = Self::default();
        if let Some(lines) = read_limit(var, LINES_VAR)? {
            budget = budget.with_lines(lines);
        }
        let bytes = read_limit(var, BYTES_VAR)?;
        let tokens = read_limit(var, TOKENS_VAR)?.map(|tokens| Self::tokens(tokens).max_bytes());
        if let Some(bytes) = bytes.into_iter().chain(tokens).min() {
            budget = budget.with_bytes(bytes);
        }
        Ok(budget)
    }
}

fn read_limit(
    var: &dyn Fn(&str) -> Option<OsString>,
    variable: &'static str,
) -> Result<Option<usize>, InvalidBudget> {
    let Some(value) = var(variable).filter(|value| !value.is_empty()) else { return Ok(None) };
    match value.to_str().and_then(|value| value.parse().ok()) {
        Some(limit) if limit > 0 => Ok(Some(limit)),
        _ => Err(InvalidBudget { variable, value: preview_value(&value) }),
    }
}

/// Shortens and escapes a value for an error message.
fn preview_value(value: &OsStr) -> String {
    let start: String = value.to_string_lossy().chars().take(80).collect();
    start.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(env: &[(&str, &str)]) -> Result<Budget, InvalidBudget> {
        Budget::from_env(&|name| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into())
        })
    }

    // F45, F178: each limit has a variable, and the host may override it.
    #[test]
    fn each_limit_has_a_variable() {
        let cases: &[(&[(&str, &str)], Budget)] = &[
            (&[], Budget::default()),
            (&[(LINES_VAR, ""), (BYTES_VAR, "")], Budget::default()),
            (&[(LINES_VAR, "7")], Budget::default().with_lines(7)),
            (&[(BYTES_VAR, "100")], Budget::default().with_bytes(100)),
            (&[(TOKENS_VAR, "100")], Budget::default().with_bytes(400)),
            (&[(BYTES_VAR, "100"), (TOKENS_VAR, "100")], Budget::default().with_bytes(100)),
            (&[(BYTES_VAR, "500"), (TOKENS_VAR, "100"), (LINES_VAR, "1")], Budget::new(1, 400)),
        ];
        for (env, expected) in cases {
            assert_eq!(budget(env).as_ref(), Ok(expected), "{env:?}");
        }
        let own = budget(&[(LINES_VAR, "7"), (BYTES_VAR, "100")]).unwrap().with_bytes(5);
        assert_eq!(own, Budget::new(7, 5));
    }

    #[test]
    fn invalid_numbers_are_reported() {
        for value in ["0", "-1", "1.5", "64 KiB", "many", "1\n", "99999999999999999999999"] {
            let error = budget(&[(TOKENS_VAR, value)]).unwrap_err();
            assert_eq!(error.variable(), TOKENS_VAR);
            let expected = format!(
                "`TOOL_SDK_MAX_OUTPUT_TOKENS` must be a whole number from 1 up, not `{}`",
                value.escape_debug()
            );
            assert_eq!(error.to_string(), expected);
        }
    }
}
