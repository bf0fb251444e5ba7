//! Checks whether a sed program only prints, replaces and deletes.
//!
//! Versions of sed disagree about the end of a pattern with an open bracket and about what may
//! follow a label, so both are rejected.
//!
//! **Invariant:** one look at each character; a command that is not listed is not harmless.

use std::iter::Peekable;
use std::str::Chars;

/// Commands without arguments, except an optional number.
const SIMPLE: &str = "pPdDgGhHnNxzqQl=";

/// Whether `program` only prints, replaces and deletes.
pub(super) fn is_harmless(program: &str) -> bool {
    let mut rest = program.chars().peekable();
    let mut depth = 0_usize;
    loop {
        while rest.next_if(|c| matches!(c, ' ' | '\t' | ';' | '\n')).is_some() {}
        if rest.peek().is_none() {
            return depth == 0;
        }
        if skip_addresses(&mut rest).and_then(|()| skip_command(&mut rest, &mut depth)).is_none() {
            return false;
        }
    }
}

/// Skips the addresses of a command.
fn skip_addresses(rest: &mut Peekable<Chars<'_>>) -> Option<()> {
    skip_address(rest)?;
    if rest.next_if_eq(&',').is_some() {
        skip_blanks(rest);
        rest.next_if(|c| matches!(c, '+' | '~'));
        skip_address(rest)?;
    }
    skip_blanks(rest);
    if rest.next_if_eq(&'!').is_some() {
        skip_blanks(rest);
    }
    Some(())
}

fn skip_address(rest: &mut Peekable<Chars<'_>>) -> Option<()> {
    if rest.next_if_eq(&'$').is_some() {
        return Some(());
    }
    if rest.next_if_eq(&'/').is_some() {
        skip_pattern(rest, '/')?;
        while rest.next_if(|c| matches!(c, 'I' | 'M')).is_some() {}
        return Some(());
    }
    skip_number(rest);
    if rest.next_if_eq(&'~').is_some() {
        skip_number(rest);
    }
    Some(())
}

fn skip_command(rest: &mut Peekable<Chars<'_>>, depth: &mut usize) -> Option<()> {
    match rest.next()? {
        '{' => *depth += 1,
        '}' => *depth = depth.checked_sub(1)?,
        's' => {
            let delimiter = take_delimiter(rest)?;
            skip_pattern(rest, delimiter)?;
            skip_replacement(rest, delimiter)?;
            while rest.next_if(|c| "gpiImM".contains(*c) || c.is_ascii_digit()).is_some() {}
            expect_command_end(rest)?;
        }
        'y' => {
            let delimiter = take_delimiter(rest)?;
            skip_replacement(rest, delimiter)?;
            skip_replacement(rest, delimiter)?;
            expect_command_end(rest)?;
        }
        c if SIMPLE.contains(c) => {
            skip_blanks(rest);
            skip_number(rest);
            expect_command_end(rest)?;
        }
        _ => return None,
    }
    Some(())
}

fn take_delimiter(rest: &mut Peekable<Chars<'_>>) -> Option<char> {
    rest.next().filter(|c| c.is_ascii_punctuation() && *c != '\\')
}

/// Skips a pattern up to its delimiter.
fn skip_pattern(rest: &mut Peekable<Chars<'_>>, delimiter: char) -> Option<()> {
    loop {
        match rest.next()? {
            '\n' => return None,
            c if c == delimiter => return Some(()),
            '\\' => drop(rest.next().filter(|c| *c != '\n')?),
            '[' => skip_bracket(rest, delimiter)?,
            _ => {}
        }
    }
}

/// Skips a bracket expression, in which the delimiter must be escaped.
fn skip_bracket(rest: &mut Peekable<Chars<'_>>, delimiter: char) -> Option<()> {
    rest.next_if_eq(&'^');
    let mut is_first = true;
    loop {
        match rest.next()? {
            '\n' => return None,
            c if c == delimiter => return None,
            ']' if !is_first => return Some(()),
            '[' => skip_class(rest)?,
            '\\' => drop(rest.next_if_eq(&delimiter)),
            _ => {}
        }
        is_first = false;
    }
}

/// Skips a character class inside a bracket expression, as in `[[:alpha:]]`.
fn skip_class(rest: &mut Peekable<Chars<'_>>) -> Option<()> {
    if rest.next_if_eq(&':').is_some() {
        while rest.next_if(char::is_ascii_lowercase).is_some() {}
        rest.next_if_eq(&':')?;
        rest.next_if_eq(&']')?;
    }
    (!matches!(rest.peek(), Some('.' | '='))).then_some(())
}

/// Skips a replacement up to its delimiter.
fn skip_replacement(rest: &mut Peekable<Chars<'_>>, delimiter: char) -> Option<()> {
    loop {
        match rest.next()? {
            '\n' => return None,
            c if c == delimiter => return Some(()),
            '\\' => drop(rest.next()?),
            _ => {}
        }
    }
}

fn skip_blanks(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
}

fn skip_number(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(char::is_ascii_digit).is_some() {}
}

/// Requires the end of a command.
fn expect_command_end(rest: &mut Peekable<Chars<'_>>) -> Option<()> {
    skip_blanks(rest);
    matches!(rest.peek(), None | Some(';' | '\n' | '}')).then_some(())
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    // SH6
    #[test]
    fn printing_replacing_deleting_sed_is_harmless() {
        for program in [
            "p",
            "$=",
            "1,5p",
            "$d",
            "5q",
            "/^$/d",
            "/a/,/b/p",
            "/a/,+3 d",
            "0~3d",
            "1!G;h;$!d",
            "s/a/b/g",
            "s|a/b|c|gI2p",
            "s/a\\/b/c/",
            "s/[a-z]*[[:space:]]$//; s/[^]/x]//",
            "s/a/b/;s/c/d/",
            "/x/s/a/&\\1/p",
            "y/abc/ABC/",
            "/x/{s/a/b/;p;}",
            "1,5p;10q",
            "p\np",
            "",
        ] {
            let is_open = program.contains("[^]/x]");
            assert_eq!(is_harmless(program), !is_open, "{program}");
        }
    }

    #[test]
    fn other_sed_programs_are_harmful() {
        for program in [
            "e",
            "1e rm x",
            "1erm x",
            "s/a/b/e",
            "s/a/b/w x",
            "s/a/b/;e",
            "s/a/b/\ne",
            "s/a/b/ge",
            "s/a\\/b/e",
            "s/[/]/e/p;e]/x/",
            "s/[[.a.]/]]/e",
            "/a/e rm x",
            "/a/w x",
            "\\,a,e",
            "1{e\n}",
            "w x",
            "r x",
            "R x",
            "W x",
            "a x",
            "b a",
            ": a",
            "# x",
            "{p",
            "p}",
            "s\na\nb\n",
            "s/a/b",
            "pe",
            "p e",
            "5qe",
            "yxaxbxe",
        ] {
            assert!(!is_harmless(program), "{program:?}");
        }
    }
}
