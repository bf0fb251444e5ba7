//! In which order a schema says what it says.

use serde_json::{Map, Value};

/// What something is and means comes first, what holds more schemas last.
pub(crate) fn order(map: &mut Map<String, Value>) {
    if map.keys().is_sorted_by_key(|keyword| rank(keyword)) {
        return;
    }
    let mut entries: Vec<(String, Value)> = std::mem::take(map).into_iter().collect();
    entries.sort_by_key(|(keyword, _)| rank(keyword));
    map.extend(entries);
}

/// Where a keyword stands among the others.
fn rank(keyword: &str) -> u8 {
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
