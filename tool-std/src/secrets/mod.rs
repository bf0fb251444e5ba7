//! Tools about the variables and secrets that other tools need: `check_env_vars`, `get_env_var` and
//! `request_env_var`.
//!
//! The model learns whether a variable is set, and never the value of a secret. Tools read values
//! with [`Context::secret`](tool_sdk::Context::secret).

mod check_tool;
mod get_tool;
mod request_tool;

use tool_sdk::StoredSecret;

pub use self::check_tool::{SecretVariableCheck, check_env_vars};
pub use self::get_tool::{VariableInfo, get_env_var};
pub use self::request_tool::{EnteredVariables, RequestedVariable, request_env_var};
pub use crate::form_outcome::FormOutcome;

/// The pattern of the name of a variable.
const NAME_PATTERN: &str = "^[A-Za-z_][A-Za-z0-9_-]*$";

/// Secrets of fewer characters are shown without their end.
const MIN_SHOWN_CHARS: usize = 16;

/// Describes a variable for the model: its value, or of a secret the length and the last
/// characters.
fn describe_value(stored: &StoredSecret) -> String {
    let value = stored.value.expose();
    if !stored.is_secret {
        return format!("`{value}`");
    }
    let chars = value.chars().count();
    if chars < MIN_SHOWN_CHARS {
        return format!("set ({chars} characters, secret)");
    }
    let end: String = value.chars().skip(chars - 4).collect();
    format!("set ({chars} characters, secret, ****{end})")
}
