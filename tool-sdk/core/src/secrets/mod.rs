//! Secrets that tools read and that are shown nowhere.
//!
//! A tool reads a secret with [`Context::secret`]; the model never does. Once a value was read or
//! entered, the pipeline masks it in results, errors, events and approval requests, and refuses
//! calls whose arguments contain it.
//!
//! **Invariant:** a value is learned by the redactor before any tool has it.

mod file;
mod source;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

pub use self::file::SecretFile;
use self::source::DynSecretSource;
pub use self::source::{EnvironmentSecrets, SecretSource};
use crate::context::{Context, Session};
use crate::error::ToolError;
use crate::redact::Redactor;

/// The value of a variable, which `Debug` does not show.
///
/// # Examples
///
/// ```
/// let value = tool_sdk::SecretValue::new("correct horse");
/// assert_eq!(value.expose(), "correct horse");
/// assert_eq!(format!("{value:?}"), "SecretValue(..)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(String);

impl SecretValue {
    /// The fewest bytes of a secret. A shorter value occurs by chance, so that it cannot be masked.
    pub const MIN_BYTES: usize = 8;

    /// Wraps a value.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Returns the value. Pass it on only to what needs it, such as the header of a request.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(..)")
    }
}

/// A variable that is set, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "sources construct variables")]
pub struct StoredSecret {
    /// The value.
    pub value: SecretValue,
    /// Whether the value is masked everywhere.
    pub is_secret: bool,
    /// Where the value is kept, such as `this session` or a path.
    pub origin: String,
}

/// The variables and secrets of a session: those of the session itself, then those of the project's
/// file, then those of further sources, such as a command or the environment.
///
/// Cheap to clone; clones share the redactor. The host attaches a store as a service of its sessions
/// and gives the [`redactor`](Self::redactor) to [`Pipeline::redact_events`](crate::Pipeline) and to
/// its audit log. A session without a store has one in memory.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Context, EnvironmentSecrets, SecretStore, Session, ToolError};
///
/// async fn fetch(cx: &Context) -> Result<String, ToolError> {
///     let key = cx.secret("WEATHER_API_KEY").await?;
///     Ok(format!("a key of {} bytes", key.expose().len()))
/// }
///
/// let store = SecretStore::default().with_source(EnvironmentSecrets);
/// let session = Session::new("s1").with_service(store);
/// ```
#[derive(Clone)]
pub struct SecretStore {
    file: Option<Arc<SecretFile>>,
    sources: Vec<Arc<dyn DynSecretSource>>,
    redactor: Redactor,
}

impl Default for SecretStore {
    fn default() -> Self {
        let (file, sources) = Default::default();
        Self { file, sources, redactor: Redactor::default().learning() }
    }
}

impl fmt::Debug for SecretStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretStore").field("sources", &self.describe_sources()).finish()
    }
}

/// The variables of one session.
#[derive(Clone, Default)]
struct SessionSecrets(Arc<Mutex<BTreeMap<String, StoredSecret>>>);

impl SessionSecrets {
    /// A poisoned lock still guards whole values: no operation panics half-way.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, StoredSecret>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SecretStore {
    /// Keeps the variables of the project in `file`.
    #[must_use]
    pub fn with_file(mut self, file: SecretFile) -> Self {
        self.file = Some(Arc::new(file));
        self
    }

    /// Adds a source that is asked after the sources before it.
    #[must_use]
    pub fn with_source(mut self, source: impl SecretSource) -> Self {
        self.sources.push(Arc::new(source));
        self
    }

    /// Masks what `redactor` finds as well. Its clones learn every secret of the store.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor.learning();
        self
    }

    /// Returns the redactor, which learns every secret that is read or entered.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Replaces the secrets that were read or entered in every string of a JSON value, for surfaces
    /// that keep what clients sent.
    pub fn mask(&self, value: &mut Value) {
        self.redactor.mask_learned_in_value(value);
    }

    /// Returns where values are looked up, in order, for people.
    #[must_use]
    pub fn describe_sources(&self) -> Vec<String> {
        let session = std::iter::once("this session".to_owned());
        let file = self.file.iter().map(|file| file.describe());
        session.chain(file).chain(self.sources.iter().map(|source| source.describe())).collect()
    }

    /// Returns whether values can be kept for the project.
    #[must_use]
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Returns the variable `name`, if it is set.
    ///
    /// # Errors
    ///
    /// Fails with kind `invalid_args` for an invalid name, with kind `config` when a source cannot be
    /// read, and when a secret is too short to be masked.
    pub async fn find(
        &self,
        session: &Session,
        name: &str,
    ) -> Result<Option<StoredSecret>, ToolError> {
        check_name(name)?;
        let of_session = session.own_extension::<SessionSecrets>().lock().get(name).cloned();
        let found = match (of_session, &self.file) {
            (Some(found), _) => Some(found),
            (None, Some(file)) => file.find(name).await?,
            (None, None) => None,
        };
        let found = match found {
            Some(found) => Some(found),
            None => self.find_in_sources(name).await?,
        };
        if let Some(found) = &found {
            self.learn(name, found)?;
        }
        Ok(found)
    }

    async fn find_in_sources(&self, name: &str) -> Result<Option<StoredSecret>, ToolError> {
        for source in &self.sources {
            if let Some(value) = source.find_secret(name).await? {
                let origin = source.describe();
                return Ok(Some(StoredSecret { value, is_secret: true, origin }));
            }
        }
        Ok(None)
    }

    /// Sets a variable until the session ends.
    ///
    /// # Errors
    ///
    /// Fails for an invalid name, and when a secret is too short to be masked.
    pub fn set_for_session(
        &self,
        session: &Session,
        name: &str,
        value: SecretValue,
        is_secret: bool,
    ) -> Result<(), ToolError> {
        check_name(name)?;
        let stored = StoredSecret { value, is_secret, origin: "this session".to_owned() };
        self.learn(name, &stored)?;
        session.own_extension::<SessionSecrets>().lock().insert(name.to_owned(), stored);
        Ok(())
    }

    /// Sets a variable of the project in the file.
    ///
    /// # Errors
    ///
    /// Fails like [`set_for_session`](Self::set_for_session), and with kind `config` when there is no
    /// file or it cannot be written.
    pub async fn set_for_project(
        &self,
        name: &str,
        value: SecretValue,
        is_secret: bool,
    ) -> Result<(), ToolError> {
        check_name(name)?;
        let Some(file) = &self.file else {
            return Err(ToolError::config("there is no file for the variables of this project"));
        };
        let stored = StoredSecret { value, is_secret, origin: file.describe() };
        self.learn(name, &stored)?;
        file.set(name, Some(stored)).await.map(|_| ())
    }

    /// Lets the redactor know a value before it is used.
    fn learn(&self, name: &str, stored: &StoredSecret) -> Result<(), ToolError> {
        if !stored.is_secret {
            return Ok(());
        }
        if stored.value.expose().trim().len() < SecretValue::MIN_BYTES {
            return Err(ToolError::config(format_args!(
                "the secret `{name}` ({}) has fewer than {} bytes and could not be masked",
                stored.origin,
                SecretValue::MIN_BYTES
            )));
        }
        self.redactor.learn(stored.value.expose());
        Ok(())
    }
}

/// Checks the name of a variable: a letter or `_`, then at most 99 letters, digits, `_` and `-`.
fn check_name(name: &str) -> Result<(), ToolError> {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_rest = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.starts_with(is_start) && name.chars().all(is_rest) && name.len() <= 100 {
        return Ok(());
    }
    Err(ToolError::invalid_args(format_args!(
        "`{}` is not the name of a variable: a letter, then letters, digits, `_` and `-`",
        name.escape_debug()
    )))
}

/// Secrets of a session.
impl Session {
    /// Returns the store of the session.
    #[must_use]
    pub fn secrets(&self) -> SecretStore {
        self.extension()
    }

    /// Returns the redactor for the results of the session, once there is a secret to mask.
    pub(crate) fn secret_redactor(&self) -> Option<Redactor> {
        let store: SecretStore = self.extension();
        store.redactor.has_learned().then_some(store.redactor)
    }
}

/// Secrets of a call.
impl Context {
    /// Returns the value of the secret or variable `name`. From then on it is masked in results,
    /// errors, events and approval requests.
    ///
    /// # Errors
    ///
    /// Fails with kind `config` when it is not set, and like [`SecretStore::find`].
    pub async fn secret(&self, name: &str) -> Result<SecretValue, ToolError> {
        let store = self.session().secrets();
        match store.find(self.session(), name).await? {
            Some(found) => Ok(found.value),
            None => Err(ToolError::config(format_args!(
                "`{}` needs the variable `{name}`, which is not set",
                self.tool()
            ))
            .hint(format_args!(
                "the user can set it; it was looked up in {}",
                store.describe_sources().join(", ")
            ))),
        }
    }
}

#[cfg(test)]
mod tests;
