//! Resolves host names, and lets the client connect only to public addresses.
//!
//! The client connects to the very addresses that were judged here, and asks no other resolver: a
//! name that changes its address between two look-ups ("DNS rebinding") gains nothing.
//!
//! **Invariant:** one answer that is not public refuses the host; an error refuses it, too.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::{FetchError, UrlPolicy, is_public_address};

/// Finds the addresses of hosts.
pub trait HostResolver: Send + Sync + 'static {
    /// Returns the addresses of `host`.
    fn resolve_host(&self, host: &str) -> impl Future<Output = io::Result<Vec<IpAddr>>> + Send;
}

/// The resolver of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl HostResolver for SystemResolver {
    async fn resolve_host(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// A [`HostResolver`] that can be stored without its type.
pub(crate) trait DynHostResolver: Send + Sync {
    fn resolve_boxed<'a>(
        &'a self,
        host: &'a str,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;
}

impl<R: HostResolver> DynHostResolver for R {
    fn resolve_boxed<'a>(
        &'a self,
        host: &'a str,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>> {
        Box::pin(self.resolve_host(host))
    }
}

/// The resolver of the HTTP client: passes on public addresses only, except of named hosts.
#[derive(Clone)]
pub(crate) struct GuardedResolver {
    pub(crate) resolver: Arc<dyn DynHostResolver>,
    /// Names the hosts whose addresses are passed on, also those that are not public.
    pub(crate) urls: Arc<UrlPolicy>,
}

impl GuardedResolver {
    async fn resolve_public(&self, host: &str) -> Result<Vec<SocketAddr>, FetchError> {
        let unknown = |source| FetchError::UnknownHost { host: host.to_owned(), source };
        let addresses = self.resolver.resolve_boxed(host).await.map_err(unknown)?;
        if addresses.is_empty() {
            return Err(unknown(io::Error::new(
                io::ErrorKind::NotFound,
                "the host has no address",
            )));
        }
        let private = addresses.iter().find(|address| !is_public_address(**address));
        match private {
            Some(&address) if !self.urls.names_host(host) => {
                Err(FetchError::PrivateAddress { host: host.to_owned(), address })
            }
            // The client sets the port.
            _ => Ok(addresses.into_iter().map(|address| SocketAddr::new(address, 0)).collect()),
        }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let this = self.clone();
        Box::pin(async move {
            let addresses = this.resolve_public(name.as_str()).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
