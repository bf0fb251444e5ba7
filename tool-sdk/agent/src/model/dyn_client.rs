//! The object-safe twin of [`ModelClient`], whose method returns a boxed future.

use futures_util::future::BoxFuture;
use tool_sdk_core::provider::ModelMessage;

use super::{ModelClient, ModelError, ModelEvent, ModelRequest};

/// A [`ModelClient`] of any type.
pub(crate) trait DynModelClient: Send + Sync + 'static {
    fn name(&self) -> &str;

    fn respond<'a>(
        &'a self,
        request: &'a ModelRequest<'_>,
        events: &'a mut (dyn FnMut(ModelEvent) + Send),
    ) -> BoxFuture<'a, Result<ModelMessage, ModelError>>;
}

impl<M: ModelClient> DynModelClient for M {
    fn name(&self) -> &str {
        ModelClient::name(self)
    }

    fn respond<'a>(
        &'a self,
        request: &'a ModelRequest<'_>,
        events: &'a mut (dyn FnMut(ModelEvent) + Send),
    ) -> BoxFuture<'a, Result<ModelMessage, ModelError>> {
        Box::pin(ModelClient::respond(self, request, events))
    }
}
