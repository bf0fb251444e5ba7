//! Validates values with the crate `jsonschema`, for schemas with [external
//! keywords](super::external_keywords).
//!
//! **Invariant:** nothing is fetched, patterns run in linear time, and the number of steps is
//! bounded by the size of the value.

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use super::external_keywords::EXTERNAL_KEYWORDS;
use super::walk::{self, SubschemaKind};

/// The largest size of a compiled pattern, in bytes.
const MAX_COMPILED_PATTERN: usize = 1 << 20;

/// The maximum depth of nested evaluation.
const MAX_STEPS_DOWN: usize = 512;

/// The most violations that are reported of one value.
const MAX_VIOLATIONS: usize = 256;

/// A schema that `jsonschema` has compiled.
pub(crate) struct ExternalValidator {
    root: Map<String, Value>,
    validator: Validator,
}

/// How a value violates a schema.
#[derive(Debug, PartialEq)]
pub(crate) struct SchemaViolation {
    pub(crate) path: Vec<PathSegment>,
    pub(crate) kind: ViolationKind,
    /// Whether an external keyword reports it, which the native validator does not know.
    pub(crate) is_external: bool,
}

/// One step from the root of a value to the place of a violation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PathSegment {
    Key(String),
    Index(usize),
}

/// What is wrong at the place of a violation.
#[derive(Debug, PartialEq)]
pub(crate) enum ViolationKind {
    /// The member of this name is absent.
    Missing(String),
    /// Members of these names are not allowed.
    Unknown(Vec<String>),
    /// Anything else: the keyword, and a message that does not repeat the value.
    Other { keyword: String, message: String },
}

/// Validation would take more steps than the size of the value allows.
#[derive(Debug, PartialEq)]
pub(crate) struct TooManySteps;

impl ExternalValidator {
    /// Compiles a schema.
    ///
    /// # Errors
    ///
    /// Fails when `jsonschema` cannot compile it.
    pub(crate) fn new(root: &Map<String, Value>) -> Result<Self, String> {
        let patterns = PatternOptions::regex()
            .size_limit(MAX_COMPILED_PATTERN)
            .dfa_size_limit(8 * MAX_COMPILED_PATTERN);
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_pattern_options(patterns)
            .should_validate_formats(false)
            .build(&Value::Object(root.clone()))
            .map_err(|error| error.to_string())?;
        Ok(Self { root: root.clone(), validator })
    }

    /// Returns every violation of the schema, up to 256.
    ///
    /// # Errors
    ///
    /// Fails when validation would take too many steps.
    pub(crate) fn find_violations(
        &self,
        value: &Value,
    ) -> Result<Vec<SchemaViolation>, TooManySteps> {
        let mut steps = StepCounter { root: &self.root, left: max_steps(value) };
        steps.count_map(&self.root, value, 0)?;
        if self.validator.is_valid(value) {
            return Ok(Vec::new());
        }
        let errors = self.validator.iter_errors(value).take(MAX_VIOLATIONS);
        Ok(errors.map(|error| SchemaViolation::new(&error)).collect())
    }
}

impl SchemaViolation {
    fn new(error: &ValidationError<'_>) -> Self {
        let path = error.instance_path().segments().map(|segment| match segment {
            LocationSegment::Property(key) => PathSegment::Key(key.into_owned()),
            LocationSegment::Index(index) => PathSegment::Index(index),
        });
        let kind = match error.kind() {
            ValidationErrorKind::Required { property: Value::String(name) } => {
                ViolationKind::Missing(name.clone())
            }
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                ViolationKind::Unknown(unexpected.clone())
            }
            // Too many matching items are reported like too few.
            ValidationErrorKind::Contains => ViolationKind::Other {
                keyword: "contains".to_owned(),
                message: "too few or too many items fit its schema".to_owned(),
            },
            kind => ViolationKind::Other {
                keyword: kind.keyword().to_owned(),
                message: error.masked_with("the value").to_string(),
            },
        };
        let is_external = leads_through_external_keyword(error.evaluation_path());
        Self { path: path.collect(), kind, is_external }
    }
}

/// Whether a path through a schema leads through an external keyword.
fn leads_through_external_keyword(path: &Location) -> bool {
    const DEPENDENT_KEYWORDS: [&str; 4] = ["else", "maxContains", "minContains", "then"];
    let mut is_name = false;
    for segment in path.segments() {
        let LocationSegment::Property(keyword) = segment else {
            is_name = false;
            continue;
        };
        let keyword = keyword.as_ref();
        let is_external =
            EXTERNAL_KEYWORDS.contains(&keyword) || DEPENDENT_KEYWORDS.contains(&keyword);
        if !is_name && is_external {
            return true;
        }
        // A property may be named like a keyword.
        is_name = !is_name && walk::subschema_kind(keyword) == Some(SubschemaKind::Map);
    }
    false
}

/// The number of steps that validation of `value` may take: linear in its size.
fn max_steps(value: &Value) -> usize {
    fn size(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
            Value::Object(members) => 1 + members.values().map(size).sum::<usize>(),
            _ => 1,
        }
    }
    (1 << 14) + size(value).saturating_mul(64)
}

/// Counts the evaluations of subschemas by a validator without a cache.
struct StepCounter<'s> {
    root: &'s Map<String, Value>,
    left: usize,
}

impl StepCounter<'_> {
    fn count(&mut self, schema: &Value, value: &Value, depth: usize) -> Result<(), TooManySteps> {
        match schema {
            Value::Object(schema) => self.count_map(schema, value, depth),
            _ => self.take_step(depth),
        }
    }

    fn take_step(&mut self, depth: usize) -> Result<(), TooManySteps> {
        self.left = self.left.checked_sub(1).ok_or(TooManySteps)?;
        if depth < MAX_STEPS_DOWN { Ok(()) } else { Err(TooManySteps) }
    }

    fn count_map(
        &mut self,
        schema: &Map<String, Value>,
        value: &Value,
        depth: usize,
    ) -> Result<(), TooManySteps> {
        self.take_step(depth)?;
        // `unevaluated*` evaluates the schemas beside it a second time.
        let evaluations = 1 + usize::from(walk::has_any_keyword(
            schema,
            &["unevaluatedItems", "unevaluatedProperties"],
        ));
        for _ in 0..evaluations {
            let reference = walk::get_keyword(schema, "$ref").and_then(Value::as_str);
            if let Some(target) = reference.and_then(|it| walk::resolve_ref(self.root, it)) {
                self.count_map(&target, value, depth + 1)?;
            }
            for (keyword, inner) in schema {
                self.count_keyword(keyword, inner, value, depth + 1)?;
            }
        }
        Ok(())
    }

    fn count_keyword(
        &mut self,
        keyword: &str,
        inner: &Value,
        value: &Value,
        depth: usize,
    ) -> Result<(), TooManySteps> {
        match (keyword, inner, value) {
            ("$defs" | "definitions" | "contentSchema", ..) => Ok(()),
            ("properties", Value::Object(schemas), Value::Object(members)) => {
                let known = schemas.iter().filter_map(|(name, it)| Some((it, members.get(name)?)));
                known.into_iter().try_for_each(|(it, member)| self.count(it, member, depth))
            }
            ("patternProperties", Value::Object(schemas), Value::Object(members)) => {
                for schema in schemas.values() {
                    members.values().try_for_each(|member| self.count(schema, member, depth))?;
                }
                Ok(())
            }
            ("additionalProperties" | "unevaluatedProperties", _, Value::Object(members)) => {
                members.values().try_for_each(|member| self.count(inner, member, depth))
            }
            ("propertyNames", _, Value::Object(members)) => {
                members.keys().try_for_each(|_| self.count(inner, &Value::Null, depth))
            }
            ("prefixItems", Value::Array(schemas), Value::Array(items)) => {
                schemas.iter().zip(items).try_for_each(|(it, item)| self.count(it, item, depth))
            }
            ("items" | "contains" | "unevaluatedItems", _, Value::Array(items)) => {
                items.iter().try_for_each(|item| self.count(inner, item, depth))
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas), _) => {
                schemas.iter().try_for_each(|schema| self.count(schema, value, depth))
            }
            ("dependentSchemas", Value::Object(schemas), Value::Object(_)) => {
                schemas.values().try_for_each(|schema| self.count(schema, value, depth))
            }
            ("not" | "if" | "then" | "else", ..) => self.count(inner, value, depth),
            _ => Ok(()),
        }
    }
}
