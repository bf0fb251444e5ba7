//! Values that a schema accepts, and values that it nearly accepts.

use serde_json::{Map, Number, Value, json};

/// Numbers that look random and are the same every time.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % sides.max(1)
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.roll(all.len())]
    }
}

/// A value that `schema` most probably accepts.
pub(crate) fn good(schema: &Value, root: &Value, dice: &mut Dice, depth: usize) -> Value {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(target.trim_start_matches('#')).unwrap_or(&Value::Null);
        return good(target, root, dice, depth + 1);
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(all) = schema.get("enum").and_then(Value::as_array) {
        return dice.pick(all).clone();
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(branches) = schema.get(key).and_then(Value::as_array) {
            let branch = if depth > 4 { &branches[0] } else { dice.pick(branches) };
            return good(branch, root, dice, depth + 1);
        }
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => dice.pick(kinds).as_str().unwrap_or_default().to_owned(),
        _ => "any".to_owned(),
    };
    match kind.as_str() {
        "null" => Value::Null,
        "boolean" => json!(dice.roll(2) == 0),
        "integer" => integer(schema, dice),
        "number" => number(schema, dice),
        "string" => text(schema, dice),
        "array" => array(schema, root, dice, depth),
        "object" => object(schema, root, dice, depth),
        _ => dice.pick(&[json!(1), json!("x"), json!([]), json!({"a": true})]).clone(),
    }
}

fn bound(schema: &Value, key: &str) -> Option<i128> {
    schema.get(key).and_then(Value::as_number).and_then(Number::as_i128)
}

fn integer(schema: &Value, dice: &mut Dice) -> Value {
    let low = bound(schema, "minimum").unwrap_or(i128::from(i64::MIN));
    let high = bound(schema, "maximum").unwrap_or(i128::from(i64::MAX));
    let near = [low, high, low + 1, 0, 1, 7, high - 1];
    let fits: Vec<i128> = near.into_iter().filter(|value| (low..=high).contains(value)).collect();
    Number::from_i128(*dice.pick(&fits)).map_or(Value::Null, Value::Number)
}

fn number(schema: &Value, dice: &mut Dice) -> Value {
    let low = schema.get("minimum").and_then(Value::as_f64).unwrap_or(-1e6);
    let high = schema.get("maximum").and_then(Value::as_f64).unwrap_or(1e6);
    let part = f64::from(u32::try_from(dice.roll(1000)).unwrap_or(0)) / 1000.0;
    json!(low + (high - low) * part)
}

fn text(schema: &Value, dice: &mut Dice) -> Value {
    let min = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
    let max = schema.get("maxLength").and_then(Value::as_u64).unwrap_or(min + 12);
    let length = usize::try_from(min).unwrap_or(0)
        + dice.roll(usize::try_from(max - min).unwrap_or(0).min(20) + 1);
    let letters: Vec<char> = match schema.get("pattern") {
        // The patterns take any run of lower case letters, or two with a slash between them.
        Some(_) => "abcxyz".chars().collect(),
        None => "aä\"\\\n😀 z".chars().collect(),
    };
    let mut text: Vec<char> = (0..length).map(|_| *dice.pick(&letters)).collect();
    let pattern = schema.get("pattern").and_then(Value::as_str).unwrap_or_default();
    if pattern.contains('/') && length > 2 {
        text[length / 2] = '/';
    }
    Value::String(text.into_iter().collect())
}

fn array(schema: &Value, root: &Value, dice: &mut Dice, depth: usize) -> Value {
    if let Some(prefix) = schema.get("prefixItems").and_then(Value::as_array) {
        return prefix.iter().map(|item| good(item, root, dice, depth + 1)).collect();
    }
    let min = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
    let max = schema.get("maxItems").and_then(Value::as_u64).unwrap_or(min + 3);
    let most = if depth > 4 { min } else { max };
    let count =
        min + u64::try_from(dice.roll(usize::try_from(most - min).unwrap_or(0) + 1)).unwrap_or(0);
    let any = json!({});
    let items = schema.get("items").unwrap_or(&any);
    (0..count).map(|_| good(items, root, dice, depth + 1)).collect()
}

fn object(schema: &Value, root: &Value, dice: &mut Dice, depth: usize) -> Value {
    let mut map = Map::new();
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|all| all.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    for (name, property) in
        schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        if required.contains(&name.as_str()) || depth < 5 && dice.roll(2) == 0 {
            map.insert(name.clone(), good(property, root, dice, depth + 1));
        }
    }
    if let Some(values @ Value::Object(_)) = schema.get("additionalProperties") {
        for name in ["k1", "k2"].into_iter().take(dice.roll(3)) {
            map.insert(name.to_owned(), good(values, root, dice, depth + 1));
        }
    }
    Value::Object(map)
}

/// `value` with one thing changed somewhere.
pub(crate) fn nearly(mut value: Value, dice: &mut Dice) -> Value {
    mutate(&mut value, dice);
    value
}

fn mutate(value: &mut Value, dice: &mut Dice) {
    match value {
        Value::Object(map) if !map.is_empty() && dice.roll(4) != 0 => {
            let names: Vec<String> = map.keys().cloned().collect();
            let name = dice.pick(&names).clone();
            match dice.roll(4) {
                0 => drop(map.shift_remove(&name)),
                1 => drop(map.insert(format!("{name}x"), json!(1))),
                _ => mutate(map.entry(name).or_insert(Value::Null), dice),
            }
        }
        Value::Array(items) if !items.is_empty() && dice.roll(3) != 0 => {
            let at = dice.roll(items.len());
            match dice.roll(4) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                _ => mutate(&mut items[at], dice),
            }
        }
        other => {
            let strange = [
                Value::Null,
                json!(true),
                json!("text"),
                json!(""),
                json!("x".repeat(300)),
                json!(-1),
                json!(0),
                json!(1.5),
                json!(5.0),
                json!(-0.0),
                json!(256),
                json!(5_000_000_000_u64),
                json!(u64::MAX),
                json!([]),
                json!({}),
                json!([1, "two"]),
                json!({"unknown": 1}),
            ];
            *other = dice.pick(&strange).clone();
        }
    }
}

/// The value as JSON text, where one whole number or another is written as nobody writes it.
pub(crate) fn respelt(value: &Value, dice: &mut Dice) -> String {
    match value {
        // What a float has no exact room for, the second opinion reads as another number.
        Value::Number(number) => match number.as_i64().filter(|n| n.unsigned_abs() < 1 << 50) {
            Some(whole) => match dice.roll(5) {
                0 => format!("{whole}.0"),
                1 => format!("{whole}e0"),
                2 => format!("{}e-1", whole * 10),
                _ => whole.to_string(),
            },
            None => number.to_string(),
        },
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| respelt(item, dice)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| {
                format!("{}:{}", Value::from(key.as_str()), respelt(value, dice))
            };
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}
