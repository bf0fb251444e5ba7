//! The servers of the lanes: this program, started once more for each.

use std::fs;
use std::io;
use std::process::{Child, Command};

/// This program as the server of a lane.
pub(crate) fn own(lane: &str) -> io::Result<Command> {
    let mut program = Command::new(std::env::current_exe()?);
    program.arg(lane);
    Ok(program)
}

/// Processor time of a server of one thread until now, in microseconds.
pub(crate) fn processor_time(server: &Child) -> io::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{}/schedstat", server.id()))?;
    let nanoseconds: f64 =
        stat.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or_default();
    Ok(nanoseconds / 1e3)
}
