//! What a file has beside its content, its mode and its owner: lists of who may do what, labels,
//! and whatever users hang on it.
//!
//! The mode of a file with such a list says the most that anybody on it may do, and nothing
//! of its group. A successor with the mode and without the list would be open to all of them.
//!
//! **Invariant:** a successor is never open to more users than the file was.

use std::io;

/// What a file has of that, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attributes(Vec<(String, Vec<u8>)>);

#[cfg(unix)]
impl Attributes {
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

    use super::{Attributes, io};

    /// Who may do what.
    const LIST: &str = "system.posix_acl_access";

    /// What speaks of the content, which is another one now. The system takes it away from a
    /// file that is written, too.
    const OF_CONTENT: [&str; 3] = ["security.capability", "security.evm", "security.ima"];

    impl Attributes {
        /// Those of a file, as far as the system shows them.
        pub(in super::super) fn of(file: &impl AsFd) -> io::Result<Self> {
            let mut all = Vec::new();
            for name in names(file)? {
                match value(file, &name) {
                    Ok(value) => all.push((name, value)),
                    Err(error) if name == LIST => return Err(error.into()),
                    Err(_) => {}
                }
            }
            all.sort_unstable();
            Ok(Self(all))
        }

        /// Gives them to a file that has those of its folder.
        pub(in super::super) fn give(&self, file: &impl AsFd) -> io::Result<()> {
            let own = Self::of(file)?;
            let is_listed = |all: &Self| all.0.iter().any(|(name, _)| name == LIST);
            if is_listed(&own) && !is_listed(self) {
                fremovexattr(file, LIST)?;
            }
            for (name, value) in self.0.iter().filter(|it| !own.0.contains(it)) {
                match fsetxattr(file, name.as_str(), value, XattrFlags::empty()) {
                    Err(error) if name == LIST => return Err(error.into()),
                    // The others let nobody in, and not every user may give all of them.
                    _ => {}
                }
            }
            Ok(())
        }
    }

    fn names(file: &impl AsFd) -> io::Result<Vec<String>> {
        let len = match flistxattr_query(file) {
            Ok(0) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Vec::new()),
            len => len?,
        };
        let mut list = Vec::with_capacity(len);
        flistxattr(file, spare_capacity(&mut list))?;
        let names = list.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
        let kept = names.filter(|name| !name.is_empty() && !OF_CONTENT.contains(name));
        Ok(kept.map(str::to_owned).collect())
    }

    fn value(file: &impl AsFd, name: &str) -> Result<Vec<u8>, Errno> {
        let mut value = Vec::with_capacity(fgetxattr_query(file, name)?.max(1));
        fgetxattr(file, name, spare_capacity(&mut value))?;
        Ok(value)
    }
}

/// Nothing is known of them here.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use super::{Attributes, io};

    impl Attributes {
        pub(in super::super) fn of<F>(_: &F) -> io::Result<Self> {
            Ok(Self::default())
        }

        pub(in super::super) fn give<F>(&self, _: &F) -> io::Result<()> {
            Ok(())
        }
    }
}
