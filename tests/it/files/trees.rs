//! Patches from one tree of files to another, run by the tool.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

type Files = BTreeMap<&'static str, Vec<String>>;

/// A few files of a few lines, some of them empty.
fn tree() -> impl Strategy<Value = Files> {
    let path = prop::sample::select(vec!["a", "b c", "d/e", "d/f/g", "h"]);
    let text = prop::collection::vec("[ab +@*-]{0,4}", 0..6);
    prop::collection::btree_map(path, text, 0..5)
}

/// The lines of a patch, each with `sign` before it.
fn signed(sign: char, lines: &[String]) -> String {
    lines.iter().map(|line| format!("{sign}{line}\n")).collect()
}

/// What makes the tree `new` of `old`.
fn between(old: &Files, new: &Files) -> String {
    let paths: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let section = |path: &&str| match (old.get(path), new.get(path)) {
        (Some(_), None) => format!("*** Delete File: {path}\n"),
        (None, Some(new)) => format!("*** Add File: {path}\n{}", signed('+', new)),
        (Some(old), Some(new)) if old != new => {
            format!("*** Update File: {path}\n@@\n{}{}", signed('-', old), signed('+', new))
        }
        _ => String::new(),
    };
    paths.into_iter().map(section).collect()
}

/// The tree as the folder has it.
fn written(tree: &Files) -> Vec<(String, String)> {
    let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect();
    tree.iter().map(|(path, lines)| ((*path).to_owned(), text(lines))).collect()
}

proptest! {
    // What is decided there stands beside the engine, with more cases: here are disks and rules.
    #![proptest_config(ProptestConfig::with_cases(24))]

    // F140
    #[test]
    fn a_patch_from_one_tree_to_another_makes_the_other_on_a_disk(old in tree(), new in tree()) {
        prop_assume!(old != new);
        let files = written(&old);
        let files: Vec<_> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
        let desk = Desk::new(&files);
        let body = between(&old, &new);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let patched = runtime.block_on(desk.patch(body.trim_end_matches('\n')));
        prop_assert!(patched.is_ok(), "{:?} {}", patched, body);
        prop_assert_eq!(desk.files(), written(&new), "{}", body);
    }
}
