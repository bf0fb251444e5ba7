//! Dependency injection: services that the host provides to tools, found by their type.

use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::{Context, Session};
use crate::error::ToolError;

/// A service that the host provides; a parameter of this type is not visible to the model.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Session, State};
///
/// struct Database(&'static str);
///
/// async fn count(State(db): State<Database>) -> String {
///     format!("rows of {}", db.0)
/// }
///
/// let session = Session::new("s1").with_service(Database("orders"));
/// ```
pub struct State<T>(pub Arc<T>);

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug> fmt::Debug for State<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A service that a tool needs.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
#[non_exhaustive]
pub struct RequiredService {
    /// Returns the name of its type.
    pub type_name: fn() -> &'static str,
    /// Returns whether a session has it.
    pub is_provided: fn(&Session) -> bool,
}

/// A parameter that is taken from the context and not from the model.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not come from the context",
    label = "the host cannot lend this",
    note = "`State<T>` and `Context` do"
)]
pub trait FromContext: Sized {
    /// The service that the host must provide, for a check before the first call.
    #[doc(hidden)]
    const SERVICE: Option<RequiredService> = None;

    /// Takes the value for this call.
    ///
    /// # Errors
    ///
    /// Fails when the host did not provide it.
    fn from_context(cx: &Context) -> Result<Self, ToolError>;
}

/// A type that several calls may use at once. One combined bound, so that a type that breaks it
/// causes one error.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be shared between calls",
    label = "calls run at the same time, on several threads",
    note = "hold an `Arc` in place of an `Rc`, and a `Mutex` in place of a `Cell` or a `RefCell`"
)]
pub trait Shared: Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Send + Sync + 'static> Shared for T {}

impl<T: Shared> FromContext for State<T> {
    const SERVICE: Option<RequiredService> = Some(RequiredService {
        type_name: type_name::<T>,
        is_provided: |session| session.services().get::<T>().is_some(),
    });

    fn from_context(cx: &Context) -> Result<Self, ToolError> {
        cx.session().services().get::<T>().map(State).ok_or_else(|| {
            ToolError::config(format_args!(
                "the tool `{}` is not available: the host provides no service `{}`",
                cx.tool(),
                type_name::<T>()
            ))
        })
    }
}

impl FromContext for Context {
    fn from_context(cx: &Context) -> Result<Self, ToolError> {
        Ok(cx.clone())
    }
}

/// A parameter that is borrowed from the context: `&Context`.
#[diagnostic::on_unimplemented(
    message = "`&{Self}` cannot be a tool parameter",
    label = "a model cannot lend a reference",
    note = "take it by value, or as `State<{Self}>` when the host lends it"
)]
pub trait FromContextRef {
    /// Borrows the value for this call.
    fn from_context_ref(cx: &Context) -> &Self;
}

impl FromContextRef for Context {
    fn from_context_ref(cx: &Context) -> &Self {
        cx
    }
}

/// Values by their type. There are few, so a linear search is faster than a hash map.
#[derive(Clone, Default)]
pub(crate) struct SessionServices(Vec<(TypeId, Arc<dyn Any + Send + Sync>)>);

impl SessionServices {
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: Arc<T>) {
        self.0.retain(|(of, _)| *of != TypeId::of::<T>());
        self.0.push((TypeId::of::<T>(), value));
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let (_, value) = self.0.iter().find(|(of, _)| *of == TypeId::of::<T>())?;
        Arc::clone(value).downcast().ok()
    }
}
