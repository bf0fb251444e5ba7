//! A transport that is lent to rmcp for one handshake, and comes back if that fails.
//!
//! A server process that was only slow is then asked again, and not started again.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// Holds a transport between two handshakes.
pub(super) struct TransportSlot<T>(Arc<Mutex<Option<T>>>);

impl<T> TransportSlot<T> {
    pub(super) fn new(transport: T) -> Self {
        Self(Arc::new(Mutex::new(Some(transport))))
    }

    /// Lends the transport; `None` while it is lent.
    pub(super) fn lend(&self) -> Option<LentTransport<T>> {
        let transport = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(LentTransport { transport: Some(transport), slot: Arc::downgrade(&self.0) })
    }
}

/// A lent transport. Dropping it gives it back, as long as the slot exists.
pub(super) struct LentTransport<T> {
    /// `None` only while it is dropped.
    transport: Option<T>,
    slot: Weak<Mutex<Option<T>>>,
}

impl<T> Drop for LentTransport<T> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.upgrade() {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = self.transport.take();
        }
    }
}

impl<T: Transport<RoleClient>> LentTransport<T> {
    fn transport(&mut self) -> &mut T {
        self.transport.as_mut().expect("the transport is taken only on drop")
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for LentTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport().send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.transport().receive().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport().close().await
    }
}
