//! Which links change when a note moves.
//!
//! **Invariant:** after a move each link leads to the same note as before, or to the moved note at its
//! new path; a link that led nowhere is not changed.

use std::collections::BTreeMap;

use crate::markdown::{NoteLink, find_links};
use crate::note_names::NoteNames;

/// A note whose text changes, or the moved note.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RewrittenNote {
    /// The path before the move.
    pub(crate) path: String,
    pub(crate) text: String,
    /// How many links changed.
    pub(crate) links: usize,
}

/// Returns the moved note first, then each other note with links that change. `notes` has the texts
/// by path. Fails with a sentence when a link cannot be kept.
pub(crate) fn plan_move(
    notes: &BTreeMap<String, String>,
    from: &str,
    to: &str,
) -> Result<Vec<RewrittenNote>, String> {
    let moved = |path: &str| if path == from { to.to_owned() } else { path.to_owned() };
    let before = NoteNames::new(notes.keys().cloned());
    let after = NoteNames::new(notes.keys().map(|path| moved(path)));
    let mut rewritten = Vec::new();
    for (path, text) in notes {
        let new_path = moved(path);
        let mut changes: Vec<(NoteLink, String)> = Vec::new();
        for link in find_links(text) {
            let Some(target) = before.resolve(path, &link).map(moved) else { continue };
            if after.resolve(&new_path, &link) != Some(&target) {
                let changed = after.link_to(&new_path, link.style, &target).ok_or_else(|| {
                    format!("no link in `{new_path}` can lead to `{target}` any more")
                })?;
                changes.push((link, changed));
            }
        }
        let note = RewrittenNote {
            path: path.clone(),
            links: changes.len(),
            text: replace_targets(text, &changes),
        };
        match path == from {
            true => rewritten.insert(0, note),
            false if note.links > 0 => rewritten.push(note),
            false => {}
        }
    }
    Ok(rewritten)
}

fn replace_targets(text: &str, changes: &[(NoteLink, String)]) -> String {
    let (mut replaced, mut end) = (String::with_capacity(text.len()), 0);
    for (link, target) in changes {
        replaced.push_str(&text[end..link.place.start]);
        replaced.push_str(target);
        end = link.place.end;
    }
    replaced.push_str(&text[end..]);
    replaced
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vault(notes: &[(&str, &str)]) -> BTreeMap<String, String> {
        notes.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn rewrites_links_of_both_styles() {
        let notes = vault(&[
            ("Tea.md", "# Tea\n[pot](ideas/Pot.md)\n"),
            ("log.md", "[[Tea]] [[tea#green|the tea]] [t](Tea.md#green) `[[Tea]]`"),
            ("other.md", "nothing"),
        ]);
        let notes: BTreeMap<_, _> =
            notes.into_iter().chain(vault(&[("ideas/Pot.md", "[t](../Tea.md)")])).collect();
        let plan = plan_move(&notes, "Tea.md", "drinks/Green tea.md").unwrap();
        let texts: Vec<_> = plan.iter().map(|it| (&*it.path, &*it.text)).collect();
        let expected = [
            ("Tea.md", "# Tea\n[pot](../ideas/Pot.md)\n"),
            ("ideas/Pot.md", "[t](../drinks/Green%20tea.md)"),
            (
                "log.md",
                "[[Green tea]] [[Green tea#green|the tea]] [t](drinks/Green%20tea.md#green) `[[Tea]]`",
            ),
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_link_by_name_stays_while_the_name_does() {
        let notes = vault(&[("Tea.md", ""), ("log.md", "[[Tea]]")]);
        assert_eq!(plan_move(&notes, "Tea.md", "drinks/Tea.md").unwrap().len(), 1);
    }

    #[test]
    fn links_to_a_namesake_still_lead_there() {
        let notes = vault(&[("b/Tea.md", ""), ("Pot.md", ""), ("log.md", "[[Tea]]")]);
        let plan = plan_move(&notes, "Pot.md", "a/Tea.md").unwrap();
        assert_eq!(plan[1].text, "[[b/Tea]]");
    }

    proptest! {
        // F159: links lead where they led, for any vault and any move.
        #[test]
        fn every_link_leads_where_it_led(
            links in prop::collection::vec((0..6_usize, 0..6_usize, any::<bool>()), 0..20),
            moved in 0..6_usize,
            target in prop::sample::select(vec!["x.md", "a/x.md", "c/new.md", "b/One.md", "a/b/two three.md"]),
        ) {
            let paths = ["one.md", "a/one.md", "b/two.md", "a/b/three.md", "two.md", "c/three.md"];
            let mut notes = vault(&paths.map(|path| (path, "")));
            for (from, to, is_wiki) in links {
                let stem = crate::note_names::stem(paths[to]);
                let names = NoteNames::new(notes.keys().cloned());
                let style = crate::markdown::LinkStyle::Markdown;
                let relative = names.link_to(paths[from], style, paths[to]).unwrap();
                let link = if is_wiki { format!("[[{stem}]]\n") } else { format!("[t]({relative})\n") };
                notes.get_mut(paths[from]).unwrap().push_str(&link);
            }
            let (from, to) = (paths[moved], target);
            let plan = plan_move(&notes, from, to).unwrap();
            let renamed = |path: &str| if path == from { to.to_owned() } else { path.to_owned() };
            let mut after = notes.clone();
            for note in plan {
                after.remove(&note.path);
                after.insert(renamed(&note.path), note.text);
            }
            let leads = |notes: &BTreeMap<String, String>| {
                let names = NoteNames::new(notes.keys().cloned());
                let mut all = BTreeMap::new();
                for (path, text) in notes {
                    let to = |it: &NoteLink| names.resolve(path, it).map(str::to_owned);
                    all.insert(path.clone(), find_links(text).iter().map(to).collect::<Vec<_>>());
                }
                all
            };
            let expected: BTreeMap<String, Vec<Option<String>>> = leads(&notes)
                .into_iter()
                .map(|(path, to)| {
                    let to = to.into_iter().map(|it| it.map(|it| renamed(&it))).collect();
                    (renamed(&path), to)
                })
                .collect();
            prop_assert_eq!(leads(&after), expected);
        }
    }
}
