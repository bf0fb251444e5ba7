//! The mode and the owner of a file that replaces another.
//!
//! **Invariant:** at no moment is the new file open to anybody to whom the old one was not.

use std::io;

use cap_std::fs::Metadata;

use super::snapshot::Facts;

/// The mode of a file that replaces none, as far as the user's own mask allows.
#[cfg(unix)]
const NEW: u32 = 0o644;

/// Until it has the mode and the owner of the file that it replaces, nobody else reads it who
/// could not read that one: whose group it is does not matter where all others may do as much.
#[cfg(unix)]
pub(super) fn first(like: Option<&Facts>) -> u32 {
    use cap_std::fs::PermissionsExt as _;

    like.map_or(NEW, |facts| match facts.attributes.is_empty() {
        true => first_mode(facts.permissions.mode()),
        false => 0o600,
    })
}

#[cfg(unix)]
fn first_mode(mode: u32) -> u32 {
    let (group, others) = (mode >> 3 & 0o7, mode & 0o7);
    if group == others { mode & 0o777 } else { 0o600 }
}

#[cfg(not(unix))]
pub(super) fn first(_: Option<&Facts>) -> u32 {
    0
}

/// Gives a file the mode and the owner of the one that it replaces.
#[cfg(unix)]
pub(super) fn give(file: &cap_std::fs::File, own: &Metadata, facts: &Facts) -> io::Result<()> {
    use std::os::unix::fs::fchown;

    use cap_std::fs::{MetadataExt as _, PermissionsExt as _};

    let ((user, group), mut permissions) = (facts.owner, facts.permissions.clone());
    if (own.uid(), own.gid()) != facts.owner {
        // Only some users may give files away; all others write their own, of a group that
        // they are in.
        let is_users = fchown(file, Some(user), Some(group)).is_ok();
        let is_groups = is_users || fchown(file, None, Some(group)).is_ok();
        permissions.set_mode(mode_of_another(permissions.mode(), is_users, is_groups));
    }
    file.set_permissions(permissions)
}

#[cfg(not(unix))]
pub(super) fn give(file: &cap_std::fs::File, _: &Metadata, facts: &Facts) -> io::Result<()> {
    file.set_permissions(facts.permissions.clone())
}

/// The mode of a file that is another user's now, perhaps of another group: nobody runs it as
/// somebody whom it was not to run as, and nobody gets rights with the group.
#[cfg(unix)]
fn mode_of_another(mode: u32, is_users: bool, is_groups: bool) -> u32 {
    let mode = if is_users { mode } else { mode & !0o4000 };
    if is_groups {
        return mode;
    }
    // Whoever was of the group is one of the others now, and the other way round.
    let both = mode >> 3 & mode & 0o7;
    mode & !0o2077 | both << 3 | both
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_is_shut_where_its_group_matters() {
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
            assert_eq!(first_mode(mode), first, "{mode:o}");
        }
    }

    // PA5
    #[test]
    fn a_file_of_another_is_open_to_nobody_more() {
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
            assert_eq!(mode_of_another(mode, is_users, is_groups), expected, "{mode:o}");
        }
    }
}
