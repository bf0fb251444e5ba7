//! The system for which a program is compiled, from the first bytes of its file.
//!
//! A bundle of the type `binary` runs on one system, and hosts offer it on that system only.

use tool_sdk_core::ToolError;

use crate::exit::{CommandError, Result, USAGE};

/// A system, by the names of the bundle's manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetSystem {
    Linux,
    MacOs,
    Windows,
}

impl TargetSystem {
    /// Reads the format of an executable file.
    ///
    /// Fails for files that are not compiled programs, such as scripts.
    pub(super) fn of_executable(bytes: &[u8], name: &str) -> Result<Self> {
        const MACH_O: [[u8; 4]; 3] =
            [[0xcf, 0xfa, 0xed, 0xfe], [0xce, 0xfa, 0xed, 0xfe], [0xca, 0xfe, 0xba, 0xbe]];
        match bytes {
            [0x7f, b'E', b'L', b'F', ..] => Ok(Self::Linux),
            [a, b, c, d, ..] if MACH_O.contains(&[*a, *b, *c, *d]) => Ok(Self::MacOs),
            [b'M', b'Z', ..] => Ok(Self::Windows),
            _ => {
                let words = format_args!("`{}` is not a compiled program", name.escape_debug());
                Err(CommandError::new(USAGE, ToolError::invalid_args(words))
                    .hint("name the file that `cargo build --release` made"))
            }
        }
    }

    /// Returns the name of the system in `compatibility.platforms`.
    pub(super) const fn as_platform(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::MacOs => "darwin",
            Self::Windows => "win32",
        }
    }

    /// Returns the end of the names of programs.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Self::Linux | Self::MacOs => "",
            Self::Windows => ".exe",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_the_formats_of_the_three_systems() {
        for (start, system) in [
            (&b"\x7fELF\x02\x01"[..], TargetSystem::Linux),
            (b"\xcf\xfa\xed\xfe\x07", TargetSystem::MacOs),
            (b"\xca\xfe\xba\xbe\x00", TargetSystem::MacOs),
            (b"MZ\x90\x00", TargetSystem::Windows),
        ] {
            assert_eq!(TargetSystem::of_executable(start, "x").unwrap(), system);
        }
        for wrong in [&b""[..], b"#!/bin/sh\n", b"\x7fEL"] {
            assert!(TargetSystem::of_executable(wrong, "x").is_err(), "{wrong:?}");
        }
    }
}
