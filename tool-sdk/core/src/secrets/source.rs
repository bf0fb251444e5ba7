//! Where secrets come from: the trait that hosts implement, and the environment of the process.

use futures_util::future::BoxFuture;

use super::SecretValue;
use crate::error::ToolError;

/// Finds secrets by their names, such as in the secret manager of the user.
///
/// # Examples
///
/// ```
/// use tool_sdk::{SecretSource, SecretValue, ToolError};
///
/// /// One secret that is always there.
/// struct FixedSecret;
///
/// impl SecretSource for FixedSecret {
///     fn describe(&self) -> String {
///         "the program".to_owned()
///     }
///
///     async fn find_secret(&self, name: &str) -> Result<Option<SecretValue>, ToolError> {
///         Ok((name == "EXAMPLE_KEY").then(|| SecretValue::new("correct horse")))
///     }
/// }
/// ```
pub trait SecretSource: Send + Sync + 'static {
    /// Returns where the values are, for people, such as ``the command `pass` ``.
    fn describe(&self) -> String;

    /// Returns the value of `name`, if the source has one.
    ///
    /// # Errors
    ///
    /// Fails when the source cannot be read; the secret counts as unavailable then, and no later
    /// source is asked.
    fn find_secret(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<Option<SecretValue>, ToolError>> + Send;
}

/// A [`SecretSource`] behind a pointer; implemented for every source.
pub(super) trait DynSecretSource: Send + Sync + 'static {
    fn describe(&self) -> String;
    fn find_secret<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<SecretValue>, ToolError>>;
}

impl<S: SecretSource> DynSecretSource for S {
    fn describe(&self) -> String {
        SecretSource::describe(self)
    }

    fn find_secret<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<SecretValue>, ToolError>> {
        Box::pin(SecretSource::find_secret(self, name))
    }
}

/// The environment variables of the process, each of which counts as a secret.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "it has no fields")]
pub struct EnvironmentSecrets;

impl SecretSource for EnvironmentSecrets {
    fn describe(&self) -> String {
        "the environment of the program".to_owned()
    }

    async fn find_secret(&self, name: &str) -> Result<Option<SecretValue>, ToolError> {
        Ok(std::env::var(name).ok().filter(|value| !value.is_empty()).map(SecretValue::new))
    }
}
