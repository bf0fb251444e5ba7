//! Extended attributes (xattrs) of a file that is replaced: access control list, security labels
//! and user attributes.
//!
//! With a POSIX access control list, the group bits of the mode are only the mask of the list.
//! A replacement with that mode but without the list would give the whole group these rights.
//!
//! **Invariant:** a replacement is never accessible to more users than the original.

use std::io;

/// The extended attributes of a file, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ExtendedAttributes(Vec<(String, Vec<u8>)>);

#[cfg(unix)]
impl ExtendedAttributes {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use std::os::fd::AsFd;

    use rustix::buffer::spare_capacity;
    use rustix::fs::{
        XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query, fremovexattr,
        fsetxattr,
    };
    use rustix::io::Errno;

    use super::{ExtendedAttributes, io};

    /// The access control list.
    const POSIX_ACL: &str = "system.posix_acl_access";

    /// Attributes that are bound to the content and not copied. The kernel removes them too when a
    /// file is written.
    const CONTENT_BOUND: [&str; 3] = ["security.capability", "security.evm", "security.ima"];

    impl ExtendedAttributes {
        /// Reads the extended attributes that the process may read.
        pub(crate) fn read_from(file: &impl AsFd) -> io::Result<Self> {
            let mut all = Vec::new();
            for name in list_names(file)? {
                match read_value(file, &name) {
                    Ok(value) => all.push((name, value)),
                    Err(error) if name == POSIX_ACL => return Err(error.into()),
                    Err(_) => {}
                }
            }
            all.sort_unstable();
            Ok(Self(all))
        }

        /// Copies the attributes to a new file, which inherited defaults from its folder.
        pub(crate) fn apply_to(&self, file: &impl AsFd) -> io::Result<()> {
            let own = Self::read_from(file)?;
            let is_listed = |all: &Self| all.0.iter().any(|(name, _)| name == POSIX_ACL);
            if is_listed(&own) && !is_listed(self) {
                fremovexattr(file, POSIX_ACL)?;
            }
            for (name, value) in self.0.iter().filter(|it| !own.0.contains(it)) {
                match fsetxattr(file, name.as_str(), value, XattrFlags::empty()) {
                    Err(error) if name == POSIX_ACL => return Err(error.into()),
                    // The other attributes grant no access, and setting some needs privileges.
                    _ => {}
                }
            }
            Ok(())
        }
    }

    fn list_names(file: &impl AsFd) -> io::Result<Vec<String>> {
        let len = match flistxattr_query(file) {
            Ok(0) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Vec::new()),
            len => len?,
        };
        let mut list = Vec::with_capacity(len);
        flistxattr(file, spare_capacity(&mut list))?;
        let names = list.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
        let kept = names.filter(|name| !name.is_empty() && !CONTENT_BOUND.contains(name));
        Ok(kept.map(str::to_owned).collect())
    }

    fn read_value(file: &impl AsFd, name: &str) -> Result<Vec<u8>, Errno> {
        let mut value = Vec::with_capacity(fgetxattr_query(file, name)?.max(1));
        fgetxattr(file, name, spare_capacity(&mut value))?;
        Ok(value)
    }
}

/// Extended attributes are not supported on this system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use super::{ExtendedAttributes, io};

    impl ExtendedAttributes {
        pub(crate) fn read_from<F>(_: &F) -> io::Result<Self> {
            Ok(Self::default())
        }

        pub(crate) fn apply_to<F>(&self, _: &F) -> io::Result<()> {
            Ok(())
        }
    }
}
