//! Tests with a pseudo-terminal pair: the user's end, and the end that the program reads.

use std::cell::Cell;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::*;

fn pair() -> (File, OwnedFd) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap();
    let program = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    (person.into(), program)
}

/// Types text, and waits for its echo.
fn type_in(mut person: &File, text: &str) {
    person.write_all(text.as_bytes()).unwrap();
    let mut shown = vec![0; text.replace('\n', "\r\n").len()];
    person.read_exact(&mut shown).unwrap();
}

/// Prompts once: `ahead` is typed before the prompt is shown, `behind` after it.
fn ask(ahead: &str, behind: Option<&str>) -> Option<String> {
    let (person, program) = pair();
    type_in(&person, ahead);
    let tty = TtyConsole::new(program, Vec::new(), false);
    let looked = Cell::new(false);
    let answer = tty.prompt("sure? ", &|| {
        // `wanted` is only called after the prompt was shown.
        if let (false, Some(behind)) = (looked.replace(true), behind) {
            type_in(&person, behind);
        }
        behind.is_some()
    });
    let shown = tty.output.into_inner().unwrap();
    assert!(shown.starts_with(b"\r\x1b[2Ksure? "), "{shown:?}");
    answer.unwrap()
}

// PR6
#[test]
fn typed_ahead_input_does_not_answer_the_prompt() {
    for ahead in ["", "y\n", "y", "y\ny\ny\n", "yes\nye"] {
        assert_eq!(ask(ahead, Some("n\n")).as_deref(), Some("n\n"), "{ahead:?}");
        // A line end alone does not complete typed-ahead input.
        assert_eq!(ask(ahead, Some("\n")).as_deref(), Some("\n"), "{ahead:?}");
    }
}

#[test]
fn returns_no_line_at_the_end_or_when_cancelled() {
    assert_eq!(ask("y\n", None), None);
    let (person, program) = pair();
    let tty = TtyConsole::new(program, Vec::new(), false);
    let looked = Cell::new(false);
    let answer = tty.prompt("sure? ", &|| {
        if !looked.replace(true) {
            const END_OF_INPUT: &[u8] = b"\x04";
            (&person).write_all(END_OF_INPUT).unwrap();
        }
        true
    });
    assert_eq!(answer.unwrap(), None);
}

#[test]
fn a_dumb_terminal_gets_no_escape_sequences() {
    let (_person, program) = pair();
    let tty = TtyConsole::new(program, Vec::new(), true);
    assert_eq!(tty.prompt("sure? ", &|| false).unwrap(), None);
    assert_eq!(tty.output.into_inner().unwrap(), b"sure? \n");
}
