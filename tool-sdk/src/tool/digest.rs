//! Arguments as one number, however they are spelled.
//!
//! One pass over the JSON text, without a tree and without an allocation; or none at all,
//! where the walk that decodes the arguments sums them up on its way. The order of an
//! object's members and the blanks between them do not count. How a string is escaped and
//! how a number is written do: a stuck model writes them the same way again.
//!
//! **Invariant:** any text has a digest, also one that is not JSON. Two texts may share one
//! by chance, so nothing is ever allowed on the strength of it.

use std::hash::Hasher as _;

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;
use memchr::memchr2;

/// How deep a value is looked into; deeper arguments are refused before they come here.
const MAX_DEPTH: usize = 64;

/// Where the hash of each kind of value starts: hex digits of e.
const TOKEN: u64 = 0x2b7e_1516_28ae_d2a6;
const LIST: u64 = 0xabf7_1588_09cf_4f3c;
const OBJECT: u64 = 0x762e_7160_f38b_4da5;

/// What a byte outside of strings is to the reader.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Word,
    /// Commas and colons of valid JSON tell nothing, so they are skipped like blanks.
    Separator,
    End,
}

/// By the byte, since looking up is what this file does most.
static CLASSES: [Class; 256] = {
    let mut classes = [Class::Word; 256];
    let mut byte = 0;
    while byte < classes.len() {
        classes[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' => Class::Separator,
            b'}' | b']' => Class::End,
            _ => Class::Word,
        };
        byte += 1;
    }
    classes
};

/// The digest of a JSON text.
pub(crate) fn of_text(text: &str) -> u64 {
    let text = text.as_bytes();
    value(text, skip(text, 0), MAX_DEPTH).0
}

/// The digest of arguments that are decoded one by one: a sum, which knows no order.
#[derive(Clone, Copy, Default)]
pub(super) struct Digest(u64);

impl Digest {
    /// Adds the argument in this place of the declaration, of which `text` is the value and
    /// nothing else.
    #[inline]
    pub(super) fn add(&mut self, place: usize, text: &[u8]) {
        let value = match text {
            [b'{' | b'[', ..] => value(text, 0, MAX_DEPTH).0,
            token => word(token),
        };
        self.0 = self.0.wrapping_add(mixed(value, place as u64));
    }

    #[inline]
    pub(super) fn get(self) -> u64 {
        self.0
    }
}

/// The hash of some bytes, from one of many starts.
#[inline]
pub(crate) fn hash(start: u64, bytes: &[u8]) -> u64 {
    let mut hasher = FoldHasher::with_seed(start, SharedSeed::global_fixed());
    hasher.write(bytes);
    hasher.finish()
}

/// A token as one number: itself where it is short, as most are.
#[inline]
pub(crate) fn word(token: &[u8]) -> u64 {
    match token.len() {
        length @ 0..8 => {
            token.iter().fold(length as u64, |word, &byte| word << 8 | u64::from(byte))
        }
        _ => hash(TOKEN, token),
    }
}

/// Two numbers as one, of which each bit depends on all of theirs: hex digits of pi.
#[inline]
pub(crate) fn mixed(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x243f_6a88_85a3_08d3) * u128::from(b ^ 0x1319_8a2e_0370_7344);
    product as u64 ^ (product >> 64) as u64
}

/// The hash of the value at `at`, and where it ends.
#[inline(always)]
fn value(text: &[u8], at: usize, depth: usize) -> (u64, usize) {
    match text.get(at) {
        Some(b'{') if depth > 0 => object(text, at + 1, depth - 1),
        Some(b'[') if depth > 0 => list(text, at + 1, depth - 1),
        _ => {
            let end = token_end(text, at);
            (word(&text[at..end]), end)
        }
    }
}

/// A sum, which knows no order, of values hashed with their names.
#[inline(never)]
fn object(text: &[u8], mut at: usize, depth: usize) -> (u64, usize) {
    let mut sum = OBJECT;
    loop {
        at = skip(text, at);
        match text.get(at) {
            None => return (sum, at),
            Some(b'}') => return (sum, at + 1),
            Some(_) => {
                let end = token_end(text, at);
                let (value, after) = value(text, skip(text, end), depth);
                sum = sum.wrapping_add(mixed(value, word(&text[at..end])));
                at = after;
            }
        }
    }
}

/// A chain, in which each value is hashed with all before it.
#[inline(never)]
fn list(text: &[u8], mut at: usize, depth: usize) -> (u64, usize) {
    let mut chain = LIST;
    loop {
        at = skip(text, at);
        match text.get(at) {
            None => return (chain, at),
            Some(b']') => return (chain, at + 1),
            Some(_) => {
                let (value, after) = value(text, at, depth);
                // In this order, so that a list in a list is not one long list.
                chain = mixed(chain.rotate_left(1), value);
                at = after;
            }
        }
    }
}

/// Where the next token starts.
#[inline]
fn skip(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && class(text[at]) == Class::Separator {
        at += 1;
    }
    at
}

/// Where the string, number or word at `at` ends: past at least one byte, if there is one.
#[inline]
fn token_end(text: &[u8], at: usize) -> usize {
    if text.get(at) == Some(&b'"') {
        return string_end(text, at + 1);
    }
    let mut end = text.len().min(at + 1);
    while end < text.len() && class(text[end]) == Class::Word {
        end += 1;
    }
    end
}

/// Where the string ends whose first character is at `at`.
#[inline]
fn string_end(text: &[u8], mut at: usize) -> usize {
    // Most names are too short to be worth a search.
    let near = text.len().min(at + 8);
    while at < near && text[at] != b'"' && text[at] != b'\\' {
        at += 1;
    }
    if text.get(at) == Some(&b'"') { at + 1 } else { far_string_end(text, at) }
}

fn far_string_end(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if text[at] == b'"' {
            return at + 1;
        }
        // A backslash and what it escapes.
        at += 2;
    }
    text.len()
}

#[inline]
fn class(byte: u8) -> Class {
    CLASSES[usize::from(byte)]
}
