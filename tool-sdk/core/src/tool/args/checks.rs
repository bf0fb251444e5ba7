//! The checks for one tool, and which of them its types already make.

use std::sync::{Arc, OnceLock};

use serde_json::Number;

#[cfg(feature = "external-schemas")]
use super::external::ExternalCheck;
#[cfg(not(feature = "external-schemas"))]
use super::fault::Faults;
#[cfg(not(feature = "external-schemas"))]
use super::json::JsonValue;
use super::node::{ReferenceTargets, SchemaNode, types, unsupported};
use crate::schema::Schema;
use crate::tool::Definition;
use crate::tool::native::{ArgsSpec, ParamSpec, ToolSpec, full_schema};

/// The checks of one tool.
#[derive(Default)]
#[expect(missing_debug_implementations, reason = "it holds compiled validators")]
pub struct ArgChecks {
    pub(super) root: SchemaNode,
    pub(super) targets: ReferenceTargets,
    /// One entry for each parameter, in the order of their declaration.
    pub(super) parameters: Vec<ParameterCheck>,
    #[cfg(feature = "external-schemas")]
    pub(super) external: Option<ExternalCheck>,
    schema: Schema,
    expected: OnceLock<Arc<str>>,
    unsupported: OnceLock<Option<String>>,
}

/// The check of one parameter, computed before any call.
#[derive(Debug)]
pub(super) struct ParameterCheck {
    /// The types of value that the schema allows, as bits of [`types`].
    kinds: u8,
    pub(super) after_decoding: PostDecodeCheck,
}

/// The check that is made after a value was decoded by its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PostDecodeCheck {
    /// None: the type enforces the whole schema.
    Nothing,
    /// A whole number within bounds, both inclusive.
    IntegerRange(i64, i64),
    /// The value against the whole schema.
    WholeSchema,
}

impl ArgChecks {
    pub(crate) fn from_spec(definition: &Definition, spec: &ToolSpec) -> Self {
        // A hidden parameter is not in the published schema, but is checked when a host sends it.
        let schema = match &spec.args {
            ArgsSpec::Params(params) if params.iter().any(|param| param.options.hidden) => {
                full_schema(params)
            }
            _ => definition.parameters.clone(),
        };
        let sensitive = &definition.display.sensitive;
        let mut checks = Self::from_schema(schema.clone(), sensitive);
        checks.schema = definition.parameters.clone();
        if let ArgsSpec::Params(params) = &spec.args {
            checks.parameters = params
                .iter()
                .map(|spec| ParameterCheck::new(spec, checks.root.property(spec.name)))
                .collect();
        }
        checks.with_external_check(&schema, sensitive)
    }

    /// Creates the checks of a tool that has only a definition.
    pub fn from_definition(definition: &Definition) -> Self {
        let (schema, sensitive) = (&definition.parameters, &definition.display.sensitive);
        Self::from_schema(schema.clone(), sensitive).with_external_check(schema, sensitive)
    }

    /// Creates the checks that the native validator makes for a schema.
    #[doc(hidden)]
    pub fn from_schema(schema: Schema, sensitive: &[String]) -> Self {
        let (root, targets) = ReferenceTargets::compile(schema.as_map(), sensitive);
        Self { root, targets, schema, ..Self::default() }
    }

    pub(crate) fn root(&self) -> &SchemaNode {
        &self.root
    }

    /// Returns the targets of the schema's references.
    pub(super) fn targets(&self) -> &ReferenceTargets {
        &self.targets
    }

    pub(super) fn parameters(&self) -> &[ParameterCheck] {
        &self.parameters
    }

    /// Returns the first requirement of the schema that is not checked.
    pub fn unsupported(&self) -> Option<&str> {
        let find = || unsupported(self.schema.as_map());
        self.unsupported.get_or_init(find).as_deref()
    }

    pub(super) fn expected(&self) -> Arc<str> {
        Arc::clone(self.expected.get_or_init(|| self.schema.signature().into()))
    }
}

#[cfg(not(feature = "external-schemas"))]
impl ArgChecks {
    /// Checks all arguments against the schema.
    pub(super) fn check_all(&self, arguments: &JsonValue<'_>, faults: &mut Faults) {
        self.root.check_all(arguments, &self.targets, faults);
    }

    /// Checks the value of the argument `name`.
    pub(super) fn check_argument(&self, name: &str, value: &JsonValue<'_>, faults: &mut Faults) {
        if let Some(node) = self.root.property(name) {
            node.check_argument(name, value, &self.targets, faults);
        }
    }

    /// A schema with external keywords is [`unsupported`] in this build.
    fn with_external_check(self, _: &Schema, _: &[String]) -> Self {
        self
    }
}

impl ParameterCheck {
    fn new(spec: &ParamSpec, node: Option<&SchemaNode>) -> Self {
        let (kinds, after_decoding) = match node {
            // The types of a reference are those of its target.
            Some(node) if node.reference.is_none() => (node.types, node.post_decode_check()),
            Some(node) => (types::ANY, node.post_decode_check()),
            None => (types::ANY, PostDecodeCheck::WholeSchema),
        };
        // A declared range may equal the range of another type, and is then not enforced by this
        // one.
        let is_ranged = spec.options.range.is_some() && after_decoding == PostDecodeCheck::Nothing;
        let after_decoding = if is_ranged { PostDecodeCheck::WholeSchema } else { after_decoding };
        Self { kinds, after_decoding }
    }

    /// Requires the check against the whole schema for every value.
    #[cfg(feature = "external-schemas")]
    pub(super) fn require_whole_schema(&mut self) {
        self.after_decoding = PostDecodeCheck::WholeSchema;
    }

    /// Whether the schema allows the type of value that starts with `byte`.
    pub(super) fn admits(&self, byte: u8) -> bool {
        self.kinds & kinds_starting_with(byte) != 0
    }
}

impl PostDecodeCheck {
    /// Whether the decoded value `text` needs no further check.
    pub(super) fn is_satisfied_by(self, text: &str) -> bool {
        match self {
            Self::Nothing => true,
            Self::IntegerRange(low, high) => {
                text.parse().is_ok_and(|value: i64| (low..=high).contains(&value))
            }
            Self::WholeSchema => false,
        }
    }
}

/// Returns the types of value that may start with a byte. For a byte that starts no value,
/// returns all types, since decoding reports the fault.
fn kinds_starting_with(byte: u8) -> u8 {
    match byte {
        b'"' => types::STRING,
        b'-' | b'0'..=b'9' => types::INTEGER | types::FRACTION,
        b'{' => types::OBJECT,
        b'[' => types::ARRAY,
        b't' | b'f' => types::BOOL,
        b'n' => types::NULL,
        _ => types::ANY,
    }
}

impl SchemaNode {
    /// Returns the check that remains after the type has decoded a value.
    fn post_decode_check(&self) -> PostDecodeCheck {
        let plain = self.enumeration.is_none()
            && self.constant.is_none()
            && self.any_of.is_empty()
            && self.one_of.is_empty()
            && self.all_of.is_empty()
            && self.reference.is_none()
            && self.not.is_none()
            && self.pattern_properties.is_empty()
            && self.property_names.is_none()
            && !self.rejects_all;
        if !plain {
            return PostDecodeCheck::WholeSchema;
        }
        match self.types {
            types::BOOL => PostDecodeCheck::Nothing,
            types::STRING if self.text_is_free() => PostDecodeCheck::Nothing,
            types::INTEGER
                if self.exclusive_minimum.is_none()
                    && self.exclusive_maximum.is_none()
                    && self.multiple_of.is_none() =>
            {
                self.integer_range()
            }
            kind if kind == types::INTEGER | types::FRACTION && self.number_is_free() => {
                PostDecodeCheck::Nothing
            }
            types::ARRAY if self.array_is_free() => PostDecodeCheck::Nothing,
            _ => PostDecodeCheck::WholeSchema,
        }
    }

    fn text_is_free(&self) -> bool {
        self.min_length.is_none() && self.max_length.is_none() && self.pattern.is_none()
    }

    fn number_is_free(&self) -> bool {
        self.minimum.is_none()
            && self.maximum.is_none()
            && self.exclusive_minimum.is_none()
            && self.exclusive_maximum.is_none()
            && self.multiple_of.is_none()
    }

    fn array_is_free(&self) -> bool {
        self.min_items.is_none()
            && self.max_items.is_none()
            && !self.unique_items
            && self.prefix_items.is_empty()
            && self
                .items
                .as_ref()
                .is_some_and(|items| items.post_decode_check() == PostDecodeCheck::Nothing)
    }

    fn integer_range(&self) -> PostDecodeCheck {
        let bound = |number: &Option<Number>| number.as_ref().and_then(Number::as_i128);
        let (low, high) = (bound(&self.minimum), bound(&self.maximum));
        let i64_range = (Some(i128::from(i64::MIN)), Some(i128::from(i64::MAX)));
        let u64_range = (Some(0), Some(i128::from(u64::MAX)));
        if (low, high) == i64_range || (low, high) == u64_range {
            // No other type has exactly these bounds.
            return PostDecodeCheck::Nothing;
        }
        // A number that does not fit here is left to the full check.
        let narrow =
            |bound: Option<i128>, open| bound.map_or(Some(open), |it| i64::try_from(it).ok());
        match (narrow(low, i64::MIN), narrow(high, i64::MAX)) {
            (Some(low), Some(high)) => PostDecodeCheck::IntegerRange(low, high),
            _ => PostDecodeCheck::WholeSchema,
        }
    }
}
