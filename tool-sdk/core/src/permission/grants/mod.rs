//! Grants: stored permissions that came from approvals.
//!
//! `SessionGrants` hold for a session, in memory. A [`GrantStore`] keeps them in a file, for every
//! later session in the same workspace. Both answer one question: does a grant cover this resource
//! of this tool?
//!
//! **Invariant:** nothing here decides. That a grant lifts an `ask` and never a denial is part of
//! the decision function.

mod file;
mod format;
mod grant;
mod index;
mod session;
mod store;
mod stored_grant;
mod workspace_identity;
mod write_queue;

pub use self::grant::{Grant, Grantee};
pub(crate) use self::index::GrantIndex;
pub(crate) use self::session::SessionGrants;
pub use self::store::{GrantStore, StoredGrants};
pub use self::stored_grant::{GrantSource, StoredGrant};
pub(crate) use self::workspace_identity::{FolderIdentity, WorkspaceIdentity};

use crate::private_file::PrivateFileError;

#[cfg(test)]
mod tests;
