//! Permission bits and owner of a file that replaces another.
//!
//! **Invariant:** at no moment can a user access the new file who could not access the old one.

use std::io;

use cap_std::fs::Metadata;

use super::snapshot::SnapshotMetadata;

/// The mode of a file that replaces none, before the umask is applied.
#[cfg(unix)]
const DEFAULT_MODE: u32 = 0o644;

/// Returns the mode with which the replacement of a file is created, before it gets the owner
/// and the mode of that file.
///
/// The new file belongs to another group at first, so it is created with `0o600`, unless group
/// and others have the same bits and there is no access control list.
#[cfg(unix)]
pub(super) fn initial_mode(like: Option<&SnapshotMetadata>) -> u32 {
    use cap_std::fs::PermissionsExt as _;

    like.map_or(DEFAULT_MODE, |saved| match saved.attributes.is_empty() {
        true => initial_mode_for(saved.permissions.mode()),
        false => 0o600,
    })
}

#[cfg(unix)]
fn initial_mode_for(mode: u32) -> u32 {
    let (group, others) = (mode >> 3 & 0o7, mode & 0o7);
    if group == others { mode & 0o777 } else { 0o600 }
}

#[cfg(not(unix))]
pub(super) fn initial_mode(_: Option<&SnapshotMetadata>) -> u32 {
    0
}

/// Sets the owner and the mode of a file to those of the file that it replaces.
#[cfg(unix)]
pub(super) fn apply_owner_and_mode(
    file: &cap_std::fs::File,
    own: &Metadata,
    saved: &SnapshotMetadata,
) -> io::Result<()> {
    use std::os::unix::fs::fchown;

    use cap_std::fs::{MetadataExt as _, PermissionsExt as _};

    let ((user, group), mut permissions) = (saved.owner, saved.permissions.clone());
    if (own.uid(), own.gid()) != saved.owner {
        // Only privileged users may change the owner; others may set a group of their own.
        let is_users = fchown(file, Some(user), Some(group)).is_ok();
        let is_groups = is_users || fchown(file, None, Some(group)).is_ok();
        permissions.set_mode(mode_after_chown(permissions.mode(), is_users, is_groups));
    }
    file.set_permissions(permissions)
}

#[cfg(not(unix))]
pub(super) fn apply_owner_and_mode(
    file: &cap_std::fs::File,
    _: &Metadata,
    saved: &SnapshotMetadata,
) -> io::Result<()> {
    file.set_permissions(saved.permissions.clone())
}

/// Returns the mode for a file whose owner or group could not be kept: setuid and setgid are
/// dropped, and no user gains access through the new group.
#[cfg(unix)]
fn mode_after_chown(mode: u32, is_users: bool, is_groups: bool) -> u32 {
    let mode = if is_users { mode } else { mode & !0o4000 };
    if is_groups {
        return mode;
    }
    // Former group members now count as others and vice versa, so both get the common bits.
    let both = mode >> 3 & mode & 0o7;
    mode & !0o2077 | both << 3 | both
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn new_files_are_private_when_the_group_bits_differ() {
        for (mode, first) in [
            (0o100_644, 0o644),
            (0o755, 0o755),
            (0o600, 0o600),
            (0o4755, 0o755),
            (0o640, 0o600),
            (0o664, 0o600),
            (0o604, 0o600),
            (0o2750, 0o600),
        ] {
            assert_eq!(initial_mode_for(mode), first, "{mode:o}");
        }
    }

    // PA5
    #[test]
    fn a_changed_owner_never_widens_access() {
        for (mode, is_users, is_groups, expected) in [
            (0o6775, true, true, 0o6775),
            (0o6775, false, true, 0o2775),
            (0o6775, false, false, 0o755),
            (0o660, false, true, 0o660),
            (0o660, false, false, 0o600),
            (0o606, false, false, 0o600),
            (0o646, false, false, 0o644),
            (0o666, false, false, 0o666),
        ] {
            assert_eq!(mode_after_chown(mode, is_users, is_groups), expected, "{mode:o}");
        }
    }
}
