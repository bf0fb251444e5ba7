//! Rewrites references: inlines them, or keeps them as definitions.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::SchemaRewriter;
use crate::schema::walk;

impl SchemaRewriter<'_> {
    pub(super) fn rewrite_reference(
        &mut self,
        reference: String,
        mut beside: Map<String, Value>,
        path: &str,
    ) -> Map<String, Value> {
        // Metadata that is not needed beside a reference.
        for keyword in ["$defs", "definitions", "title"] {
            beside.shift_remove(keyword);
        }
        if self.subset.references {
            if beside.is_empty() {
                let reference = self.keep_reference(reference);
                return Map::from_iter([("$ref".to_owned(), reference.into())]);
            }
            // A reference must not have siblings, so it becomes the only branch of a union.
            let only = json!({ "$ref": reference });
            let taken = beside.contains_key("allOf") || beside.contains_key("anyOf");
            let keyword = if taken { "allOf" } else { "anyOf" };
            if let Some(branches) =
                beside.entry(keyword).or_insert_with(|| json!([])).as_array_mut()
            {
                branches.push(only);
            }
            return self.rewrite(&beside, path);
        }
        let target = walk::resolve_ref(self.root, &reference).map(Cow::into_owned);
        let again = self.open.contains(&reference) || self.budget == 0;
        let Some(mut target) = target.filter(|_| !again) else {
            return self.cut_recursion(&reference, beside, path);
        };
        for (keyword, value) in beside {
            target.insert(keyword, value);
        }
        self.open.push(reference);
        let fitted = self.rewrite(&target, path);
        self.open.pop();
        fitted
    }

    /// Ends a recursive schema with a description.
    fn cut_recursion(
        &mut self,
        reference: &str,
        mut beside: Map<String, Value>,
        path: &str,
    ) -> Map<String, Value> {
        let problem = format!("the schema leads back to itself through {reference:?}");
        // Reported once per reference, because the fix is the same everywhere.
        if !self.losses.iter().any(|loss| loss.problem == problem) {
            self.add_loss(path, problem, "take a flat list whose items name their parent");
        }
        let target = walk::resolve_ref(self.root, reference);
        let ty = target.as_deref().and_then(|target| target.get("type")?.as_str());
        beside.insert("type".to_owned(), ty.unwrap_or("object").into());
        let name = reference.rsplit('/').next().unwrap_or_default();
        let note = match ty {
            Some("object") | None => format!("The same fields as in the `{name}` around it."),
            Some(_) => format!("The same as the `{name}` around it."),
        };
        self.rewrite_keywords(beside, path, vec![note])
    }

    /// Returns the reference to a definition that is kept.
    fn keep_reference(&mut self, reference: String) -> String {
        if reference == "#" {
            return reference;
        }
        let name = match reference.strip_prefix("#/$defs/") {
            Some(name) if !name.contains('/') => name.to_owned(),
            _ => reference.trim_start_matches("#/").replace(['/', '~', '$', '%'], "_"),
        };
        let kept = format!("#/$defs/{name}");
        self.wanted.entry(name).or_insert(reference);
        kept
    }

    /// Rewrites the referenced definitions, including those that they refer to.
    pub(super) fn rewrite_definitions(&mut self) -> Map<String, Value> {
        let mut done = Map::new();
        loop {
            let wanted = self.wanted.clone();
            let Some((name, reference)) =
                wanted.into_iter().find(|(name, _)| !done.contains_key(name))
            else {
                break;
            };
            let target = walk::resolve_ref(self.root, &reference).map(Cow::into_owned);
            let path = reference.trim_start_matches('#').to_owned();
            let fitted = self.rewrite(&target.unwrap_or_default(), &path);
            done.insert(name, Value::Object(fitted));
        }
        done.sort_keys();
        done
    }
}
