//! The object-safe twin of [`Hook`]: the same callbacks, with boxed futures.

use std::sync::Arc;

use super::{Hook, HookContext, HookDecision};
use crate::call::Outcome;
use crate::content::Output;
use crate::context::Session;
use crate::error::ToolError;
use crate::permission::Approver;
use crate::tool::Definition;
use futures_util::future::BoxFuture;

/// A [`Hook`] behind a pointer; implemented for every hook.
pub(crate) trait DynHook: Send + Sync + 'static {
    fn edit_definition(&self, definition: &mut Definition, session: &Session) -> bool;
    fn before<'a>(
        &'a self,
        call: &'a HookContext<'_>,
    ) -> BoxFuture<'a, Result<HookDecision, ToolError>>;
    fn wrap_approver(self: Arc<Self>, inner: Arc<dyn Approver>) -> Arc<dyn Approver>;
    fn after<'a>(
        &'a self,
        call: &'a HookContext<'_>,
        result: &'a mut Result<Output, ToolError>,
    ) -> BoxFuture<'a, Result<(), ToolError>>;
    fn observe(&self, call: &HookContext<'_>, outcome: &Outcome);
    fn finish(&self) -> BoxFuture<'_, ()>;
}

impl<H: Hook> DynHook for H {
    fn edit_definition(&self, definition: &mut Definition, session: &Session) -> bool {
        Hook::edit_definition(self, definition, session)
    }

    fn before<'a>(
        &'a self,
        call: &'a HookContext<'_>,
    ) -> BoxFuture<'a, Result<HookDecision, ToolError>> {
        Box::pin(Hook::before(self, call))
    }

    fn wrap_approver(self: Arc<Self>, inner: Arc<dyn Approver>) -> Arc<dyn Approver> {
        Hook::wrap_approver(self, inner)
    }

    fn after<'a>(
        &'a self,
        call: &'a HookContext<'_>,
        result: &'a mut Result<Output, ToolError>,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(Hook::after(self, call, result))
    }

    fn observe(&self, call: &HookContext<'_>, outcome: &Outcome) {
        Hook::observe(self, call, outcome);
    }

    fn finish(&self) -> BoxFuture<'_, ()> {
        Box::pin(Hook::finish(self))
    }
}
