//! Programs for sed, as far as it is certain that they only print, replace and delete.
//!
//! Versions of sed differ about the end of a pattern in which a bracket stands open, and about
//! what may follow a label, so neither is taken.
//!
//! **Invariant:** one look at each character, and what is not listed is not harmless.

use std::iter::Peekable;
use std::str::Chars;

/// Commands without anything that belongs to them, but perhaps a number.
const SIMPLE: &str = "pPdDgGhHnNxzqQl=";

/// Whether `program` does nothing else.
pub(super) fn is_harmless(program: &str) -> bool {
    let mut rest = program.chars().peekable();
    let mut depth = 0_usize;
    loop {
        while rest.next_if(|c| matches!(c, ' ' | '\t' | ';' | '\n')).is_some() {}
        if rest.peek().is_none() {
            return depth == 0;
        }
        if addresses(&mut rest).and_then(|()| command(&mut rest, &mut depth)).is_none() {
            return false;
        }
    }
}

/// The lines that a command is for.
fn addresses(rest: &mut Peekable<Chars<'_>>) -> Option<()> {
    address(rest)?;
    if rest.next_if_eq(&',').is_some() {
        blanks(rest);
        rest.next_if(|c| matches!(c, '+' | '~'));
        address(rest)?;
    }
    blanks(rest);
    if rest.next_if_eq(&'!').is_some() {
        blanks(rest);
    }
    Some(())
}

fn address(rest: &mut Peekable<Chars<'_>>) -> Option<()> {
    if rest.next_if_eq(&'$').is_some() {
        return Some(());
    }
    if rest.next_if_eq(&'/').is_some() {
        pattern(rest, '/')?;
        while rest.next_if(|c| matches!(c, 'I' | 'M')).is_some() {}
        return Some(());
    }
    number(rest);
    if rest.next_if_eq(&'~').is_some() {
        number(rest);
    }
    Some(())
}

fn command(rest: &mut Peekable<Chars<'_>>, depth: &mut usize) -> Option<()> {
    match rest.next()? {
        '{' => *depth += 1,
        '}' => *depth = depth.checked_sub(1)?,
        's' => {
            let delimiter = delimiter(rest)?;
            pattern(rest, delimiter)?;
            replacement(rest, delimiter)?;
            while rest.next_if(|c| "gpiImM".contains(*c) || c.is_ascii_digit()).is_some() {}
            ends(rest)?;
        }
        'y' => {
            let delimiter = delimiter(rest)?;
            replacement(rest, delimiter)?;
            replacement(rest, delimiter)?;
            ends(rest)?;
        }
        c if SIMPLE.contains(c) => {
            blanks(rest);
            number(rest);
            ends(rest)?;
        }
        _ => return None,
    }
    Some(())
}

fn delimiter(rest: &mut Peekable<Chars<'_>>) -> Option<char> {
    rest.next().filter(|c| c.is_ascii_punctuation() && *c != '\\')
}

/// A pattern up to its delimiter.
fn pattern(rest: &mut Peekable<Chars<'_>>, delimiter: char) -> Option<()> {
    loop {
        match rest.next()? {
            '\n' => return None,
            c if c == delimiter => return Some(()),
            '\\' => drop(rest.next().filter(|c| *c != '\n')?),
            '[' => bracket(rest, delimiter)?,
            _ => {}
        }
    }
}

/// A list of characters in brackets, in which the delimiter stands only behind a backslash.
fn bracket(rest: &mut Peekable<Chars<'_>>, delimiter: char) -> Option<()> {
    rest.next_if_eq(&'^');
    let mut is_first = true;
    loop {
        match rest.next()? {
            '\n' => return None,
            c if c == delimiter => return None,
            ']' if !is_first => return Some(()),
            '[' => class(rest)?,
            '\\' => drop(rest.next_if_eq(&delimiter)),
            _ => {}
        }
        is_first = false;
    }
}

/// What may stand behind a bracket in brackets: the name of a class, as in `[[:alpha:]]`.
fn class(rest: &mut Peekable<Chars<'_>>) -> Option<()> {
    if rest.next_if_eq(&':').is_some() {
        while rest.next_if(char::is_ascii_lowercase).is_some() {}
        rest.next_if_eq(&':')?;
        rest.next_if_eq(&']')?;
    }
    (!matches!(rest.peek(), Some('.' | '='))).then_some(())
}

/// What is put in a place, up to its delimiter.
fn replacement(rest: &mut Peekable<Chars<'_>>, delimiter: char) -> Option<()> {
    loop {
        match rest.next()? {
            '\n' => return None,
            c if c == delimiter => return Some(()),
            '\\' => drop(rest.next()?),
            _ => {}
        }
    }
}

fn blanks(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
}

fn number(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(char::is_ascii_digit).is_some() {}
}

/// Whether a command ends here.
fn ends(rest: &mut Peekable<Chars<'_>>) -> Option<()> {
    blanks(rest);
    matches!(rest.peek(), None | Some(';' | '\n' | '}')).then_some(())
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    // SH6
    #[test]
    fn what_prints_replaces_and_deletes_is_harmless() {
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
    fn everything_else_is_not() {
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
