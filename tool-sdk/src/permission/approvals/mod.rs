//! Approvals: what somebody allowed for more than a single call.
//!
//! `Approvals` hold for a session, in memory. An [`ApprovalStore`] keeps them in a file, for
//! every later session in the same workspace. Both answer one question: does a grant cover
//! this subject of this tool?
//!
//! **Invariant:** nothing here decides. An approval lifts an ask and never a denial, which is
//! for the decision to see to.

mod file;
mod format;
mod grant;
mod granted;
mod identity;
mod session;
mod store;
mod stored;

pub use self::grant::{Grant, Grantee};
pub(crate) use self::granted::Granted;
pub(crate) use self::session::Approvals;
pub use self::store::{ApprovalStore, Loaded};
pub use self::stored::{GrantSource, StoredApproval};

use crate::private_file::PrivateFileError;

#[cfg(test)]
mod tests;
