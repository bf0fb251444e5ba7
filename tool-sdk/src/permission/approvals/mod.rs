//! Approvals.
mod grant;
mod session;
pub use self::grant::{Grant, Grantee};
pub use self::session::Approvals;
