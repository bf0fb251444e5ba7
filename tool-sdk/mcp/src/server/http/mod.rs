//! The MCP server over streamable HTTP, as a tower service.
//!
//! The host that mounts the service authenticates its clients first, and hands over the principal
//! of each request. A client of a legacy version opens a session with `initialize`; each of its
//! requests is answered with JSON, or with an event stream if it has to wait. Requests of a modern
//! version stand alone.

mod event_logs;
mod event_stream;
mod handler;
mod request_body;
mod request_head;
mod responses;
mod sessions;
mod standard_headers;
mod stateless_sessions;

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::Request;
use hyper::body::{Body, Bytes};
use tower_service::Service;

pub(super) use self::event_stream::EventStream;
use self::handler::HttpHandler;
use self::request_body::BoxError;
use self::responses::HttpResponse;
pub(super) use self::sessions::PrincipalKey;
use super::Server;

/// The MCP server over streamable HTTP, as a tower service; see [`Server::http_service`].
///
/// Cheap to clone; clones share their sessions.
#[derive(Clone)]
pub struct HttpService(Arc<HttpHandler>);

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").finish_non_exhaustive()
    }
}

impl HttpService {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self(Arc::new(HttpHandler::new(server)))
    }
}

impl<B> Service<Request<B>> for HttpService
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let handler = Arc::clone(&self.0);
        Box::pin(
            async move { Ok(handler.handle(request).await.unwrap_or_else(|refused| *refused)) },
        )
    }
}
