//! The order of the keywords in a schema.

use serde_json::{Map, Value};

/// Sorts the keywords: type and description first, keywords with subschemas last.
pub(crate) fn sort_keywords(map: &mut Map<String, Value>) {
    if map.keys().is_sorted_by_key(|keyword| keyword_rank(keyword)) {
        return;
    }
    let mut entries: Vec<(String, Value)> = std::mem::take(map).into_iter().collect();
    entries.sort_by_key(|(keyword, _)| keyword_rank(keyword));
    map.extend(entries);
}

/// Where a keyword stands among the others.
fn keyword_rank(keyword: &str) -> u8 {
    match keyword {
        "$ref" | "type" => 0,
        "description" => 1,
        "properties" => 3,
        "required" => 4,
        "additionalProperties" => 5,
        "default" => 6,
        "$defs" => 7,
        _ => 2,
    }
}
