//! The console in the browser: a page to call tools, follow calls, and approve them.
//!
//! The page is plain HTML, CSS and ES modules in `page/`, embedded in the program. It uses the API
//! that every client has.
//!
//! ```text
//! printed link ─▶ page_files ─▶ rest/console_sign_in (code ─▶ cookie) ─▶ auth (cookie + header) ─▶ rest
//! ```
//!
//! **Invariant:** the page contains nothing secret, and no file of it is made from data.

mod access;
mod page_files;

pub use self::access::ConsoleAccess;
pub(crate) use self::access::{BrowserStreamGuard, ConsoleUser, cookie_name};
pub(crate) use self::page_files::{get_page, get_page_file};
