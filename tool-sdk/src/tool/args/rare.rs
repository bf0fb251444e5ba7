//! Keywords that few schemas use: conditions, and what is said of names, of some items, and of
//! what nothing else speaks of.
//!
//! **Invariant:** a value that could not be looked at to its end fits nothing, and no condition
//! is decided by it: the [`Check`] remembers, and all is refused.

use regex::Regex;
use serde_json::{Map, Value};

use super::fault::{FaultKind, Faults, Place};
use super::json::Json;
use super::node::{Builder, Node, count, is_everything, pattern};
use super::verify::{Check, Members};
use crate::schema::walk;

/// What a schema says with these keywords.
#[derive(Debug, Default)]
pub(super) struct Rare {
    /// What must not be.
    not: Option<Box<Node>>,
    condition: Option<Box<Condition>>,
    pattern_properties: Vec<(Regex, Node)>,
    property_names: Option<Box<Node>>,
    dependent_required: Vec<(String, Vec<String>)>,
    dependent_schemas: Vec<(String, Node)>,
    contains: Option<Contains>,
    unevaluated_items: Option<Box<Node>>,
    unevaluated_properties: Option<Box<Node>>,
}

/// `if`, `then` and `else`.
#[derive(Debug)]
struct Condition {
    when: Node,
    then: Option<Node>,
    otherwise: Option<Node>,
}

/// How many items are of one kind, counted to the end.
#[derive(Debug)]
struct Contains {
    node: Box<Node>,
    least: u64,
    most: Option<u64>,
}

/// The members or the items of a value that some part of a schema speaks of.
struct Known(Vec<bool>);

impl Known {
    fn all(&mut self) {
        self.0.fill(true);
    }
}

impl Rare {
    const KEYWORDS: [&str; 9] = [
        "contains",
        "dependentRequired",
        "dependentSchemas",
        "if",
        "not",
        "patternProperties",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
    ];

    /// What `map` says, if it says anything.
    pub(super) fn of(map: &Map<String, Value>, builder: &mut Builder) -> Option<Box<Self>> {
        if !walk::has(map, &Self::KEYWORDS) {
            return None;
        }
        let object = |keyword| map.get(keyword).and_then(Value::as_object).into_iter().flatten();
        let names = |list: &Value| -> Vec<String> {
            let names = list.as_array().into_iter().flatten().filter_map(Value::as_str);
            names.map(str::to_owned).collect()
        };
        let condition = map.get("if").map(|when| {
            Box::new(Condition {
                when: builder.build(when),
                then: map.get("then").map(|then| builder.build(then)),
                otherwise: map.get("else").map(|otherwise| builder.build(otherwise)),
            })
        });
        let contains = map.get("contains").map(|contains| Contains {
            node: Box::new(builder.build(contains)),
            least: count(map, "minContains").unwrap_or(1),
            most: count(map, "maxContains"),
        });
        Some(Box::new(Self {
            not: builder.boxed(map.get("not").filter(|not| !is_everything(not))),
            condition,
            pattern_properties: object("patternProperties")
                .filter_map(|(text, schema)| Some((pattern(text).ok()?, builder.build(schema))))
                .collect(),
            property_names: builder.boxed(map.get("propertyNames")),
            dependent_required: object("dependentRequired")
                .map(|(name, needed)| (name.clone(), names(needed)))
                .collect(),
            dependent_schemas: object("dependentSchemas")
                .map(|(name, schema)| (name.clone(), builder.build(schema)))
                .collect(),
            contains,
            unevaluated_items: builder.boxed(map.get("unevaluatedItems")),
            unevaluated_properties: builder.boxed(map.get("unevaluatedProperties")),
        }))
    }

    /// Marks the values here, and all that they hold, as not to be repeated.
    pub(super) fn hide(&mut self) {
        let conditions = self.condition.iter_mut().flat_map(|condition| {
            let Condition { when, then, otherwise } = &mut **condition;
            std::iter::once(when).chain(then).chain(otherwise)
        });
        let named = self.dependent_schemas.iter_mut().map(|(_, node)| node);
        let patterns = self.pattern_properties.iter_mut().map(|(_, node)| node);
        conditions.chain(named).chain(patterns).for_each(Node::hide);
        let single = [
            &mut self.not,
            &mut self.property_names,
            &mut self.unevaluated_items,
            &mut self.unevaluated_properties,
        ];
        single.into_iter().flatten().for_each(|node| node.hide());
        self.contains.iter_mut().for_each(|contains| contains.node.hide());
    }

    /// Whether a member of this name is spoken of by its name's form.
    pub(super) fn knows_by_form(&self, name: &str) -> bool {
        self.pattern_properties.iter().any(|(pattern, _)| pattern.is_match(name))
    }

    /// The patterns of names, in words, where there are any.
    pub(super) fn forms(&self) -> Option<String> {
        let forms = self.pattern_properties.iter().map(|(pattern, _)| format!("`{pattern}`"));
        let forms = forms.collect::<Vec<_>>().join(" or ");
        (!forms.is_empty()).then_some(forms)
    }

    /// Checks a value against everything here but what nothing else speaks of.
    pub(super) fn check(
        &self,
        whole: &Node,
        value: &Json<'_>,
        place: &Place<'_>,
        faults: &mut Faults,
        check: &Check<'_>,
    ) {
        match value {
            Json::Array(items) => self.check_contained(items, place, faults, check),
            Json::Object(members) => self.check_named(whole, members, value, place, faults, check),
            _ => {}
        }
        if let Some(not) = &self.not
            && check.fits(not, value, place)
        {
            let words = not.worded.as_str();
            match not.is_told() {
                true => {
                    faults.add(FaultKind::Constraint, place, format_args!("must not be {words}"));
                }
                false => faults.add(
                    FaultKind::Constraint,
                    place,
                    format_args!("has a form that is not allowed{}", Named(not)),
                ),
            }
        }
        if let Some(condition) = &self.condition {
            let branch = match check.fits(&condition.when, value, place) {
                true => &condition.then,
                false => &condition.otherwise,
            };
            if let Some(branch) = branch {
                branch.check(value, place, faults, check);
            }
        }
    }

    fn check_contained(
        &self,
        items: &[Json<'_>],
        place: &Place<'_>,
        faults: &mut Faults,
        check: &Check<'_>,
    ) {
        let Some(contains) = &self.contains else { return };
        let fits = |(index, item): &(usize, &Json<'_>)| {
            check.fits(&contains.node, item, &Place::index_of(place, *index))
        };
        let found = items.iter().enumerate().filter(fits).count() as u64;
        let Contains { node, least, most } = contains;
        if found >= *least && most.is_none_or(|most| found <= most) {
            return;
        }
        let must = match most {
            Some(most) if most == least => format!("exactly {least}"),
            Some(most) if *least == 0 => format!("at most {most}"),
            Some(most) => format!("between {least} and {most}"),
            None => format!("at least {least}"),
        };
        let kind = match node.is_told() {
            true => {
                format!("{} {}", if found == 1 { "that is" } else { "that are each" }, node.worded)
            }
            false => format!("of the kind that is asked for{}", Named(node)),
        };
        let plural = if found == 1 { "" } else { "s" };
        faults.add(
            FaultKind::Constraint,
            place,
            format_args!("has {found} item{plural} {kind}, but must have {must}"),
        );
    }

    fn check_named(
        &self,
        whole: &Node,
        members: Members<'_, '_>,
        value: &Json<'_>,
        place: &Place<'_>,
        faults: &mut Faults,
        check: &Check<'_>,
    ) {
        for (key, member) in members {
            let inner = whole.place_of(place, key);
            for (pattern, node) in &self.pattern_properties {
                if pattern.is_match(key) {
                    node.check(member, &inner, faults, check);
                }
            }
            if let Some(names) = &self.property_names {
                let mut found = Faults::default();
                names.check(&Json::String(key.as_ref().into()), &inner, &mut found, check);
                for fault in found.into_iter() {
                    let words = format!("the name of {}", fault.message);
                    faults.push(super::Fault::new(fault.kind, fault.pointer, words));
                }
            }
        }
        for (name, needed) in &self.dependent_required {
            if value.member(name).is_none() {
                continue;
            }
            for missing in needed.iter().filter(|it| value.member(it).is_none()) {
                let inner = Place::key_of(place, missing);
                let other = Place::key_of(place, name);
                let words = format_args!("is required because {other} is there");
                faults.add(FaultKind::Missing, &inner, words);
            }
        }
        for (name, node) in &self.dependent_schemas {
            if value.member(name).is_some() {
                node.check(value, place, faults, check);
            }
        }
    }
}

/// The names that a schema requires, where that is what it is about.
struct Named<'n>(&'n Node);

impl std::fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.0.required();
        match names.as_slice() {
            [] => Ok(()),
            names => write!(f, ": with `{}`", names.join("` and `")),
        }
    }
}

impl Node {
    /// Checks what no other part of this schema speaks of.
    pub(super) fn check_unevaluated(
        &self,
        value: &Json<'_>,
        place: &Place<'_>,
        faults: &mut Faults,
        check: &Check<'_>,
    ) {
        let Some(rare) = &self.rare else { return };
        match (value, &rare.unevaluated_items, &rare.unevaluated_properties) {
            (Json::Array(items), Some(node), _) => {
                let mut known = Known(vec![false; items.len()]);
                self.mark(value, place, check, &mut known, true);
                for (index, item) in items.iter().enumerate() {
                    let place = Place::index_of(place, index);
                    match known.0[index] {
                        true => {}
                        false if node.never => {
                            faults.add(FaultKind::Constraint, &place, "is one item too many");
                            break;
                        }
                        false => node.check(item, &place, faults, check),
                    }
                }
            }
            (Json::Object(members), _, Some(node)) => {
                let mut known = Known(vec![false; members.len()]);
                self.mark(value, place, check, &mut known, true);
                for (index, (key, member)) in members.iter().enumerate() {
                    let place = self.place_of(place, key);
                    match known.0[index] {
                        true => {}
                        false if node.never => faults.unknown(&place, &self.names()),
                        false => node.check(member, &place, faults, check),
                    }
                }
            }
            _ => {}
        }
    }

    /// Marks what this schema speaks of in a value that fits it; `own` leaves out what it says of
    /// the rest, which is being asked.
    fn mark(
        &self,
        value: &Json<'_>,
        place: &Place<'_>,
        check: &Check<'_>,
        known: &mut Known,
        own: bool,
    ) {
        if !check.has_left() {
            return;
        }
        match value {
            Json::Array(items) => self.mark_items(items, place, check, known, own),
            Json::Object(members) => self.mark_members(members, known, own),
            _ => return,
        }
        let mut fitting = |node: &Node| {
            if check.fits(node, value, place) {
                node.mark(value, place, check, known, false);
            }
        };
        if let Some(target) = check.target(self) {
            fitting(target);
        }
        [&self.all_of, &self.any_of, &self.one_of].into_iter().flatten().for_each(&mut fitting);
        let Some(rare) = &self.rare else { return };
        for (name, node) in &rare.dependent_schemas {
            if value.member(name).is_some() {
                fitting(node);
            }
        }
        if let Some(condition) = &rare.condition {
            fitting(&condition.when);
            let branch = match check.fits(&condition.when, value, place) {
                true => &condition.then,
                false => &condition.otherwise,
            };
            branch.iter().for_each(fitting);
        }
    }

    fn mark_items(
        &self,
        items: &[Json<'_>],
        place: &Place<'_>,
        check: &Check<'_>,
        known: &mut Known,
        own: bool,
    ) {
        let rest = self.rare.as_ref().is_some_and(|rare| !own && rare.unevaluated_items.is_some());
        if self.items.is_some() || self.no_more_items || rest {
            return known.all();
        }
        known.0.iter_mut().take(self.prefix.len()).for_each(|known| *known = true);
        if let Some(contains) = self.rare.as_ref().and_then(|rare| rare.contains.as_ref()) {
            for (index, item) in items.iter().enumerate() {
                let place = Place::index_of(place, index);
                known.0[index] |= check.fits(&contains.node, item, &place);
            }
        }
    }

    fn mark_members(&self, members: Members<'_, '_>, known: &mut Known, own: bool) {
        let rare = self.rare.as_ref();
        let rest = rare.is_some_and(|rare| !own && rare.unevaluated_properties.is_some());
        if self.additional.is_some() || self.closed || self.open || rest {
            return known.all();
        }
        for (known, (key, _)) in known.0.iter_mut().zip(members) {
            *known |= self.property(key).is_some() || rare.is_some_and(|it| it.knows_by_form(key));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Checks, take_value, unsupported};
    use crate::call::RawArgs;
    use crate::schema::Schema;

    use super::Value;

    /// The faults of `arguments`, or nothing.
    #[track_caller]
    fn check(schema: &Value, arguments: &Value, expected: &[&str]) {
        let schema: Schema = serde_json::from_value(schema.clone()).unwrap();
        assert_eq!(unsupported(schema.as_map()), None);
        let checks = Checks::of_schema(schema, &[]);
        let taken = take_value("t", &checks, &RawArgs::new(arguments.to_string()));
        let faults = taken.err().map(|error| error.faults().to_vec()).unwrap_or_default();
        let words: Vec<_> = faults.iter().map(|fault| fault.message.as_str()).collect();
        assert_eq!(words, expected, "{arguments}");
    }

    // The tool that the conformance suite lists.
    #[test]
    fn a_schema_of_2020_12_is_called_as_it_says() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": { "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            } },
            "properties": {
                "name": { "type": "string" },
                "address": { "$ref": "#/$defs/address" },
                "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                "phone": { "type": "string" },
                "email": { "type": "string" },
                "home": { "$ref": "#addressDef" },
            },
            "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
            "if": {
                "properties": { "contactMethod": { "const": "phone" } },
                "required": ["contactMethod"],
            },
            "then": { "required": ["phone"] },
            "else": { "required": ["email"] },
            "additionalProperties": false,
        });
        check(&schema, &json!({ "contactMethod": "phone", "phone": "1" }), &[]);
        check(&schema, &json!({ "email": "e", "address": { "city": "B" } }), &[]);
        check(
            &schema,
            &json!({ "contactMethod": "phone", "email": "e" }),
            &["`phone` is required"],
        );
        check(
            &schema,
            &json!({ "name": "x" }),
            &["the arguments must have `phone`, or `email`", "`email` is required"],
        );
        check(
            &schema,
            &json!({ "email": "e", "home": { "city": 1 } }),
            &["`home.city` is 1, but must be a string"],
        );
    }

    #[test]
    fn what_few_schemas_say_has_words() {
        let with = |x: Value| json!({ "type": "object", "properties": { "x": x } });
        for (x, value, words) in [
            (json!({ "not": { "type": "string" } }), json!("a"), "`x` must not be a string"),
            (json!({ "not": { "const": 7 } }), json!(7), "`x` must not be 7"),
            (
                json!({ "not": { "required": ["a", "b"] } }),
                json!({ "a": 1, "b": 2 }),
                "`x` has a form that is not allowed: with `a` and `b`",
            ),
            (
                json!({ "contains": { "type": "integer" }, "minContains": 2 }),
                json!([1, "a"]),
                "`x` has 1 item that is an integer, but must have at least 2",
            ),
            (
                json!({ "contains": { "const": 1 }, "maxContains": 1 }),
                json!([1, 1]),
                "`x` has 2 items that are each 1, but must have exactly 1",
            ),
            (
                json!({ "contains": { "required": ["a"] } }),
                json!([]),
                "`x` has 0 items of the kind that is asked for: with `a`, but must have at least 1",
            ),
            (
                json!({ "propertyNames": { "pattern": "^[a-z]+$" } }),
                json!({ "A": 1 }),
                "the name of `x.A` is the string \"A\", but must match the pattern ^[a-z]+$",
            ),
            (
                json!({ "patternProperties": { "^n": { "type": "integer" } },
                        "additionalProperties": false }),
                json!({ "n1": "a" }),
                "`x.n1` is the string \"a\", but must be an integer",
            ),
            (
                json!({ "patternProperties": { "^\\d+$": {} }, "additionalProperties": false }),
                json!({ "a": 1 }),
                "`x.a` has a name that is not known; names match `^\\d+$`",
            ),
            (
                json!({ "dependentRequired": { "a": ["b"] } }),
                json!({ "a": 1 }),
                "`x.b` is required because `x.a` is there",
            ),
            (
                json!({ "dependentSchemas": { "a": { "maxProperties": 1 } } }),
                json!({ "a": 1, "b": 1 }),
                "`x` has 2 members, but must have at most 1",
            ),
            (
                json!({ "allOf": [{ "properties": { "a": {} } }], "properties": { "bb": {} },
                        "unevaluatedProperties": false }),
                json!({ "a": 1, "bc": 1 }),
                "unknown argument `bc` in `x`; did you mean `bb`?",
            ),
            (
                json!({ "prefixItems": [{}], "unevaluatedItems": false }),
                json!([1, 2]),
                "`x[1]` is one item too many",
            ),
        ] {
            check(&with(x), &json!({ "x": value }), &[words]);
        }
    }
}
