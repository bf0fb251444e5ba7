//! Messages of any size: a message that is larger than the server takes is put into its object store,
//! and a reference is sent.
//!
//! **Invariant:** what is read from the store has the digest that the message names.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_nats::header::HeaderMap;
use async_nats::jetstream::{self, object_store};
use async_nats::{Client, Message};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::AsyncReadExt as _;
use tokio::sync::OnceCell;
use tool_sdk_core::internal::sha256_hex;

use crate::error::RemoteError;
use crate::namespace::Namespace;
use crate::permit::random_id;

/// The headers that name an object and its digest.
const OBJECT: &str = "Tool-Payload";
const DIGEST: &str = "Tool-Payload-Digest";

/// How long an object is kept that its reader did not delete.
const MAX_AGE: Duration = Duration::from_hours(1);

/// The largest object that is read.
const MAX_BYTES: usize = 256 << 20;

/// What a message may be shorter than the server's limit, for headers.
const HEADROOM: usize = 16 << 10;

/// Writes and reads the messages of a namespace.
#[derive(Clone)]
pub(crate) struct MessageCodec {
    pub(crate) client: Client,
    bucket: String,
    store: Arc<OnceCell<object_store::ObjectStore>>,
}

impl fmt::Debug for MessageCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MessageCodec").field(&self.bucket).finish()
    }
}

impl MessageCodec {
    pub(crate) fn new(client: Client, namespace: &Namespace) -> Self {
        Self { client, bucket: format!("tools-{namespace}"), store: Arc::default() }
    }

    /// Returns the largest message that is sent as it is.
    pub(crate) fn max_message(&self) -> usize {
        self.client.max_payload().saturating_sub(HEADROOM)
    }

    /// Returns the object store, which is created on first use.
    async fn store(&self) -> Result<&object_store::ObjectStore, RemoteError> {
        let unavailable = |error: &dyn fmt::Display| {
            RemoteError::Request(format!(
                "the message is larger than the NATS server takes, and its object store cannot be \
                 used: {error}"
            ))
        };
        self.store
            .get_or_try_init(async || {
                let context = jetstream::new(self.client.clone());
                if let Ok(store) = context.get_object_store(&self.bucket).await {
                    return Ok(store);
                }
                let config = object_store::Config {
                    bucket: self.bucket.clone(),
                    max_age: MAX_AGE,
                    ..object_store::Config::default()
                };
                context.create_object_store(config).await.map_err(|error| unavailable(&error))
            })
            .await
    }

    /// Returns what is sent for a message: further headers, and its bytes.
    pub(crate) async fn encode(
        &self,
        mut headers: HeaderMap,
        message: &impl Serialize,
    ) -> Result<(HeaderMap, Bytes), RemoteError> {
        let bytes = serde_json::to_vec(message).map_err(RemoteError::request)?;
        if bytes.len() <= self.max_message() {
            return Ok((headers, bytes.into()));
        }
        let name = random_id();
        headers.insert(OBJECT, name.as_str());
        headers.insert(DIGEST, sha256_hex(&bytes).as_str());
        let store = self.store().await?;
        store.put(name.as_str(), &mut &*bytes).await.map_err(RemoteError::request)?;
        Ok((headers, Bytes::new()))
    }

    /// Reads a message; one in the object store is deleted.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        message: &Message,
    ) -> Result<T, RemoteError> {
        let header = |name: &str| message.headers.as_ref()?.get(name).map(|it| it.as_str());
        let (Some(name), Some(digest)) = (header(OBJECT), header(DIGEST)) else {
            return serde_json::from_slice(&message.payload).map_err(RemoteError::request);
        };
        let store = self.store().await?;
        let mut object = store.get(name).await.map_err(RemoteError::request)?;
        if object.info().size > MAX_BYTES {
            return Err(RemoteError::Request(
                "the message in the object store is too large".into(),
            ));
        }
        let mut bytes = Vec::new();
        // The sender wrote the size above.
        let mut object = (&mut object).take(MAX_BYTES as u64 + 1);
        object.read_to_end(&mut bytes).await.map_err(RemoteError::request)?;
        if bytes.len() > MAX_BYTES {
            return Err(RemoteError::Request(
                "the message in the object store is too large".into(),
            ));
        }
        // One that stays expires.
        let _ = store.delete(name).await;
        if sha256_hex(&bytes) != digest {
            return Err(RemoteError::Request("the message in the object store was changed".into()));
        }
        serde_json::from_slice(&bytes).map_err(RemoteError::request)
    }
}
