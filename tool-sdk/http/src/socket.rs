//! A UNIX socket that only its user can reach.
//!
//! **Invariant:** it is created in a folder that no other user can enter, and replaces nothing but
//! a stale socket of the same user.

use std::fmt::Display;
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};
use tool_sdk_core::{
    PrivateFileError,
    internal::private_file::{self, LOCK_TIMEOUT, PrivateFolder, metadata_if_exists},
};

/// A connection.
pub(super) type SocketStream = UnixStream;

/// The mode bits of group and others.
const OTHERS_MODE_BITS: u32 = 0o077;

/// A UNIX socket at which a server listens, for programs of the same user.
///
/// Dropping this value removes the socket. A process that can connect needs the token as well.
///
/// # Examples
///
/// ```no_run
/// use tool_sdk::mcp::{HttpOptions, Server, Token, UnixSocket, serve_http};
/// use tool_sdk::{Pipeline, Registry, Session};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::new(Pipeline::new(Registry::linked()?), Session::default());
/// let socket = UnixSocket::bind("/run/user/1000/shelf/mcp").await?;
/// serve_http(&server, socket, HttpOptions::new(Token::random()?)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// What tells it from another one that takes its place.
    id: (u64, u64),
}

impl UnixSocket {
    /// Listens at `path`, for the user alone. The folder is made where it is missing; what a
    /// server left there that did not end well is replaced.
    ///
    /// # Errors
    ///
    /// Fails when other users could enter the folder, when it is a symbolic link or owned by
    /// another user, when `path` exists and is not a stale socket of this user, and on systems
    /// without UNIX sockets.
    pub async fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::bind_outside(path.as_ref(), &[]).await
    }

    /// The same, nowhere in `roots`: who can write there could take its place, and would be shown
    /// the tokens.
    #[doc(hidden)]
    pub async fn bind_outside(path: &Path, roots: &[PathBuf]) -> io::Result<Self> {
        let Some(name) = path.file_name() else { return Err(path_error(path, "it names no file")) };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut place = PrivateFolder::new(folder.unwrap_or(Path::new(".")).to_owned());
        place.add_writable_roots(roots);
        let folder = place.create_folder().map_err(store_error)?;
        if fs::symlink_metadata(&folder)?.mode() & OTHERS_MODE_BITS != 0 {
            return Err(path_error(
                &folder,
                "others may enter it; a folder of mode 0700 is for you alone",
            ));
        }
        let path = folder.join(name);
        // Of two that begin at once, neither removes what the other one has just made.
        let _lock = private_file::lock_parent_folder(&path, LOCK_TIMEOUT).map_err(store_error)?;
        remove_stale_socket(&path).await?;
        let listener = UnixListener::bind(&path).map_err(|error| path_error(&path, error))?;
        let id = file_id(&fs::symlink_metadata(&path)?);
        let socket = Self { listener, path, id };
        fs::set_permissions(&socket.path, Permissions::from_mode(0o600))?;
        Ok(socket)
    }

    /// Where it is, without links on the way.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) async fn accept(&self) -> io::Result<SocketStream> {
        Ok(self.listener.accept().await?.0)
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        let is_own = |there: &Metadata| file_id(there) == self.id;
        if fs::symlink_metadata(&self.path).is_ok_and(|there| is_own(&there)) {
            // A file that remains is replaced by the next server.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes a stale socket of this user.
async fn remove_stale_socket(path: &Path) -> io::Result<()> {
    let Some(there) = metadata_if_exists(path).map_err(store_error)? else { return Ok(()) };
    if !there.file_type().is_socket() {
        return Err(path_error(path, "there is something else already"));
    }
    if there.uid() != rustix::process::geteuid().as_raw() {
        return Err(path_error(path, "it belongs to another user"));
    }
    match UnixStream::connect(path).await {
        Ok(_) => Err(path_error(path, "a program listens there already")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|error| path_error(path, error))
        }
        Err(error) => {
            Err(path_error(path, format_args!("there may be a program that listens: {error}")))
        }
    }
}

fn file_id(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn path_error(path: &Path, why: impl Display) -> io::Error {
    io::Error::other(format!("`{}`: {why}", path.display()))
}

/// Without words about approvals, of which none are kept here.
fn store_error(error: PrivateFileError) -> io::Error {
    match error {
        PrivateFileError::Untrusted { path, why } => path_error(&path, why),
        PrivateFileError::Io { doing, path, source } => {
            path_error(&path, format_args!("cannot {doing} it: {source}"))
        }
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net;
    use std::time::Duration;

    use super::*;

    /// A folder with a short path, because that of a socket is limited.
    fn short_folder() -> tempfile::TempDir {
        tempfile::tempdir_in("/tmp").unwrap()
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    #[track_caller]
    fn check(bound: io::Result<UnixSocket>, words: &str) {
        let error = bound.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }

    // RS1
    #[tokio::test]
    async fn it_is_for_the_user_alone_and_goes_with_the_server() {
        let outer = short_folder();
        let path = outer.path().join("new/inner/mcp.sock");
        let socket = UnixSocket::bind(&path).await.unwrap();
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
        check(UnixSocket::bind(&path).await, "a program listens there already");
        assert!(path.exists(), "it is not the other one's to remove");
        drop(socket);
        assert!(!path.exists());
    }

    /// A child that another test forks holds what was dropped until it runs its program.
    async fn bound(path: &Path) -> UnixSocket {
        for _ in 0..500 {
            if let Ok(socket) = UnixSocket::bind(path).await {
                return socket;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        UnixSocket::bind(path).await.unwrap()
    }

    #[tokio::test]
    async fn what_a_dead_server_left_is_replaced_and_nothing_else() {
        let folder = short_folder();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        let path = folder.path().join("mcp.sock");
        drop(net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let first = bound(&path).await;
        fs::remove_file(&path).unwrap();
        let second = bound(&path).await;
        drop(first);
        assert!(path.exists(), "another one stands there by now");
        drop(second);

        fs::write(&path, "kept").unwrap();
        check(UnixSocket::bind(&path).await, "something else");
        assert_eq!(fs::read_to_string(&path).unwrap(), "kept");
        fs::remove_file(&path).unwrap();
        let elsewhere = folder.path().join("elsewhere");
        drop(net::UnixListener::bind(&elsewhere).unwrap());
        symlink(&elsewhere, &path).unwrap();
        check(UnixSocket::bind(&path).await, "something else");
        assert!(elsewhere.exists());
        // A socket of another type is not taken for a stale one.
        let other = folder.path().join("other");
        let _datagrams = net::UnixDatagram::bind(&other).unwrap();
        check(UnixSocket::bind(&other).await, "there may be a program");
    }

    #[tokio::test]
    async fn a_folder_that_others_may_enter_is_refused() {
        let outer = short_folder();
        let folder = outer.path().join("folder");
        fs::create_dir(&folder).unwrap();
        for (mode, words) in [(0o755, "others may enter"), (0o710, "others may enter")] {
            fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
            check(UnixSocket::bind(folder.join("s")).await, words);
        }
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        check(UnixSocket::bind(folder.join("s")).await, "others may write");
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        let link = outer.path().join("link");
        symlink(&folder, &link).unwrap();
        check(UnixSocket::bind(link.join("s")).await, "it is a link");
        check(UnixSocket::bind("/").await, "it names no file");
        let roots = [outer.path().to_owned()];
        check(UnixSocket::bind_outside(&folder.join("s"), &roots).await, "tools may write to it");
        assert!(fs::read_dir(&folder).unwrap().next().is_none());
        let long = folder.join("x".repeat(200));
        check(UnixSocket::bind(&long).await, &long.display().to_string());
    }
}
