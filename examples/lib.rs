//! Examples in reading order, one file each.
