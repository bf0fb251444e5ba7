//! Which files a command line reads and writes, and which programs and scripts it runs.
//!
//! [`base_folder::BaseFolder`] turns a script analysis into resources: operands of read-only
//! commands, possible reads and writes of other commands, and pushes into local repositories.
//! The other modules answer one question each about the words of a command.
//!
//! **Invariant:** a file that is not certain counts as unknown, and needs approval.

pub(super) mod base_folder;
mod git_remotes;
mod home_paths;
mod implicit_reads;
pub(super) mod mentioned_files;
mod possible_reads;
mod possible_writes;
pub(super) mod program_lookup;
mod push_targets;
mod read_only_files;
mod read_operands;
pub(super) mod script_operands;
mod write_operands;
