//! Properties of every patch.

use std::fmt::Write as _;
use std::time::Instant;

use proptest::prelude::*;
use similar::{ChangeTag, TextDiff};

use super::{Files, chunks, hunks, parse, patch, run, update};
use crate::patch::{ChunkLine, PatchHunk, UpdateChunk, parser};

/// The body of a patch that quotes three lines around each change.
fn narrow(old: &str, new: &str) -> String {
    let unified = TextDiff::from_lines(old, new).unified_diff().to_string();
    let lines = unified.lines().map(|line| if line.starts_with("@@") { "@@" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

/// The body of a patch that quotes the whole of `old`.
fn whole(old: &str, new: &str) -> String {
    let mut body = String::from("@@");
    for change in TextDiff::from_lines(old, new).iter_all_changes() {
        let sign = match change.tag() {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        let _ = write!(body, "\n{sign}{}", change.value().trim_end_matches(['\n', '\r']));
    }
    body
}

/// The chunks that undo `chunks`.
fn reverse<'p>(chunks: &[UpdateChunk<'p>]) -> Vec<UpdateChunk<'p>> {
    let turn = |line: &ChunkLine<'p>| match *line {
        ChunkLine::Remove(text) => ChunkLine::Add(text),
        ChunkLine::Add(text) => ChunkLine::Remove(text),
        keep => keep,
    };
    let turned = |chunk: &UpdateChunk<'p>| chunk.lines.iter().map(turn).collect();
    chunks.iter().map(|chunk| UpdateChunk { lines: turned(chunk), ..chunk.clone() }).collect()
}

fn ended(lines: &[String], end: &str) -> String {
    lines.iter().map(|line| format!("{line}{end}")).collect()
}

/// Lines that often repeat, and often differ only in blanks.
fn repeating() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[ab \u{2019}']{0,3}", 1..12)
}

/// Two lists of lines, most of them shared, each line once.
fn distinct() -> impl Strategy<Value = (Vec<String>, Vec<String>)> {
    prop::collection::vec(0_u8..8, 1..60).prop_map(|fates| {
        let mut sides = (Vec::new(), Vec::new());
        for (at, fate) in fates.iter().enumerate() {
            if *fate != 0 {
                sides.0.push(format!("line {at}"));
            }
            if *fate > 1 {
                sides.1.push(format!("line {at}"));
            }
            if *fate == 2 {
                sides.1.push(format!("new {at}"));
            }
        }
        sides
    })
}

/// A few files, some of them empty.
fn tree() -> impl Strategy<Value = Files> {
    let path = prop::sample::select(vec!["a", "b c", "d/e", "d/f/g", "h"]);
    let text = prop::collection::vec("[ab +@*-]{0,4}", 0..6);
    let files = prop::collection::btree_map(path, text, 0..5);
    files.prop_map(|files| {
        files.into_iter().map(|(path, lines)| (path.to_owned(), ended(&lines, "\n"))).collect()
    })
}

/// The patch from one tree to another. With `moves`, a removed file becomes an added one by a move.
fn between(old: &Files, new: &Files, moves: bool) -> String {
    let mut text = String::from("*** Begin Patch\n");
    let only = |these: &Files, those: &Files| -> Vec<String> {
        these.keys().filter(|path| !those.contains_key(*path)).cloned().collect()
    };
    let (mut gone, mut came) = (only(old, new), only(new, old));
    // An update has at least one line, so it cannot move an empty file.
    gone.sort_by_key(|path| old[path].is_empty());
    if moves && gone.first().is_some_and(|from| !old[from].is_empty()) && !came.is_empty() {
        let (from, to) = (gone.remove(0), came.remove(0));
        let body = whole(&old[&from], &new[&to]);
        let _ = writeln!(text, "*** Update File: {from}\n*** Move to: {to}\n{body}");
    }
    for path in gone {
        let _ = writeln!(text, "*** Delete File: {path}");
    }
    for path in came {
        let _ = writeln!(text, "*** Add File: {path}");
        text.extend(new[&path].lines().map(|line| format!("+{line}\n")));
    }
    for (path, old) in old {
        if let Some(new) = new.get(path).filter(|new| *new != old) {
            let _ = writeln!(text, "*** Update File: {path}\n{}", whole(old, new));
        }
    }
    text + "*** End Patch"
}

proptest! {
    // F140
    #[test]
    fn a_patch_between_two_trees_produces_the_second(
        old in tree(), new in tree(), moves in any::<bool>(),
    ) {
        prop_assume!(old != new);
        let text = between(&old, &new, moves);
        prop_assert_eq!(run(old, &text), Ok(new), "{}", text);
    }

    #[test]
    fn a_diff_round_trips_as_a_patch(
        (old, new) in distinct(), end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        prop_assume!(!old.is_empty() && !new.is_empty() && old != new);
        let (old, new) = (ended(&old, end), ended(&new, end));
        let text = patch(&narrow(&old, &new));
        let chunks = chunks(&text);
        prop_assert_eq!(&update(&old, &chunks, "f").unwrap().text, &new);
        prop_assert_eq!(&update(&new, &reverse(&chunks), "f").unwrap().text, &old);
    }

    #[test]
    fn a_quote_of_the_whole_file_is_located_correctly(
        old in repeating(), new in repeating(), end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        let (old, new) = (ended(&old, end), ended(&new, end));
        let text = patch(&whole(&old, &new));
        let chunks = chunks(&text);
        prop_assert_eq!(&update(&old, &chunks, "f").unwrap().text, &new);
        prop_assert_eq!(&update(&new, &reverse(&chunks), "f").unwrap().text, &old);
    }

    #[test]
    fn context_lines_change_nothing(old in "\u{feff}?[ab \r\n]{0,20}", at in 0_usize..9) {
        let lines: Vec<_> = old.trim_start_matches('\u{feff}').lines().collect();
        if let Some(line) = lines.get(at) && !line.contains('\r') {
            let text = patch(&format!("@@\n {line}"));
            if let Ok(updated) = update(&old, &chunks(&text), "f") {
                prop_assert_eq!(updated.text, old);
            }
        }
    }

    #[test]
    fn parsing_never_panics(
        lines in prop::collection::vec(prop::sample::select(vec![
            "*** Begin Patch", "*** End Patch", "*** Add File: a", "*** Delete File: b",
            "*** Update File: c", "*** Move to: d", "*** End of File", "@@", "@@ x", "+a", "-b",
            " c", "", "é", "<<EOF", "EOF", "cd a && apply_patch <<'EOF'", "cat <<EOF", "\r",
        ]), 0..12),
    ) {
        let text = lines.join("\n");
        let _ = parse(&text);
        let text = format!("*** Begin Patch\n{text}\n*** End Patch");
        if let Ok(patch) = parser::parse(&text) {
            let _ = patch.verify();
            // A section that is parsed later has the same content and no mistakes.
            for (section, hunk) in patch.sections.iter().zip(hunks(&patch)) {
                prop_assert_eq!((section.path, section.move_to), (hunk.path(), hunk.move_to()));
                let deletes = matches!(hunk, PatchHunk::Delete { .. });
                prop_assert_eq!(section.is_removed, deletes || section.move_to.is_some());
            }
        }
    }
}

/// Prints the time for 5,000 chunks in 2 MB.
#[test]
#[ignore = "a measurement, not a claim"]
fn time_of_5000_chunks() {
    for (files, lines) in [(200, 250), (1, 50_000)] {
        let file = |name: &str| -> String {
            let name = |at| if at % 10 == 5 { name } else { "value" };
            (0..lines).map(|at| format!("    let {}_{at} = f(number, {at});\n", name(at))).collect()
        };
        let (old, new) = (file("old"), file("changed"));
        let body = narrow(&old, &new);
        let mut text = String::from("*** Begin Patch\n");
        for at in 0..files {
            let _ = writeln!(text, "*** Update File: {at}\n{body}");
        }
        text.push_str("*** End Patch");

        let start = Instant::now();
        let patch = parse(&text).unwrap();
        patch.verify().unwrap();
        let read = start.elapsed();
        let mut count = 0;
        for hunk in &hunks(&patch) {
            let PatchHunk::Update { chunks, path, .. } = hunk else { continue };
            count += chunks.len();
            assert_eq!(update(&old, chunks, path).unwrap().text, new);
        }
        println!("{files} files, {count} chunks: read {read:?}, all {:?}", start.elapsed());
    }
}
