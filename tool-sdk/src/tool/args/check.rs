//! What is checked for one tool, and how much of it its types already enforce.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use serde_json::Number;

use super::key::Key;
use super::node::{Node, Targets, types, unsupported};
use crate::schema::Schema;
use crate::tool::Definition;
use crate::tool::native::{ArgsSpec, ParamSpec, ToolSpec, all_params};

/// The checks of one tool.
pub(crate) struct Checks {
    root: Node,
    targets: Targets,
    fast: Vec<Quick>,
    schema: Schema,
    expected: OnceLock<Arc<str>>,
    unsupported: OnceLock<Option<String>>,
}

/// What is known of an argument before it comes.
#[derive(Debug)]
pub(super) struct Quick {
    spec: &'static ParamSpec,
    /// Where it stands in the declaration.
    pub(super) place: usize,
    pub(super) key: Key,
    /// The kinds of value that may stand here, as bits of [`types`].
    kinds: u8,
    /// Those that a type decodes and a glance checks; `null` may mean that there is no value.
    usual: u8,
    /// What is checked after the type has decoded the value.
    pub(super) after: Fast,
}

/// What is checked after a value was decoded by its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fast {
    /// The type enforces everything.
    Nothing,
    /// A whole number within bounds.
    Int(i64, i64),
    /// Everything that the schema says.
    Tree,
}

impl Checks {
    pub(crate) fn of(definition: &Definition, spec: &ToolSpec) -> Self {
        // A hidden parameter is not in the published schema, but checked where a host sends it.
        let schema = match &spec.args {
            ArgsSpec::Params(params) if params.iter().any(|param| param.options.hidden) => {
                all_params(params)
            }
            _ => definition.parameters.clone(),
        };
        let mut checks = Self::of_schema(schema, &definition.display.sensitive);
        checks.schema = definition.parameters.clone();
        if let ArgsSpec::Params(params) = &spec.args {
            checks.fast = params
                .iter()
                .enumerate()
                .map(|(place, it)| Quick::of(place, it, checks.root.property(it.name)))
                .collect();
        }
        checks
    }

    pub(crate) fn of_schema(schema: Schema, sensitive: &[String]) -> Self {
        let (root, targets) = Targets::compile(schema.as_map(), sensitive);
        Self {
            root,
            targets,
            fast: Vec::new(),
            schema,
            expected: OnceLock::new(),
            unsupported: OnceLock::new(),
        }
    }

    pub(crate) fn root(&self) -> &Node {
        &self.root
    }

    /// What its schema refers to.
    pub(super) fn targets(&self) -> &Targets {
        &self.targets
    }

    #[inline]
    pub(super) fn quick(&self) -> &[Quick] {
        &self.fast
    }

    /// What the schema asks for that nothing here checks.
    pub(crate) fn unsupported(&self) -> Option<&str> {
        let find = || unsupported(self.schema.as_map());
        self.unsupported.get_or_init(find).as_deref()
    }

    pub(super) fn expected(&self) -> Arc<str> {
        Arc::clone(self.expected.get_or_init(|| self.schema.signature().into()))
    }
}

impl Quick {
    fn of(place: usize, spec: &'static ParamSpec, node: Option<&Node>) -> Self {
        let (kinds, after) = match node {
            // A reference says nothing here about what it refers to.
            Some(node) if node.reference.is_none() => (node.types, node.fast()),
            Some(node) => (types::ANY, node.fast()),
            None => (types::ANY, Fast::Tree),
        };
        // A range of its own may look like that of another type, which enforces it.
        let is_ranged = spec.options.range.is_some() && after == Fast::Nothing;
        let after = if is_ranged { Fast::Tree } else { after };
        // What models are not told of is not taken from them.
        let usual = match after {
            Fast::Tree => 0,
            _ if spec.options.hidden => 0,
            _ => kinds & !types::NULL,
        };
        Self { spec, place, key: Key::of(spec.name), kinds, usual, after }
    }

    /// Whether a value that starts with `byte` may stand here; its type need not be asked to
    /// find out that it may not.
    #[inline]
    pub(super) fn admits(&self, byte: u8) -> bool {
        self.kinds & KINDS[usize::from(byte)] != 0
    }

    /// Whether a value that starts with `byte` is one that needs no care.
    #[inline]
    pub(super) fn is_usual(&self, byte: u8) -> bool {
        self.usual & KINDS[usize::from(byte)] != 0
    }

    /// Decodes the value at the start of `text` into its slot; says how long it is.
    #[inline]
    pub(super) fn decode(
        &self,
        text: &str,
        slot: &mut dyn Any,
    ) -> Result<usize, serde_json::Error> {
        (self.spec.ty.decode)(text, slot)
    }

    /// Fills the slot of an argument that did not come; says whether that is allowed.
    #[inline]
    pub(super) fn may_be_absent(&self, slot: &mut dyn Any) -> bool {
        self.spec.default.is_some() || (self.spec.ty.fill_absent)(slot)
    }
}

impl Fast {
    /// Whether a glance says that a decoded value is within its bounds.
    #[inline]
    pub(super) fn is_kept_by(self, value: &[u8]) -> bool {
        match self {
            Self::Nothing => true,
            Self::Int(low, high) => int_within(value, low, high),
            Self::Tree => false,
        }
    }
}

/// Whether the digits of `text` are a number from `low` to `high`.
#[inline]
fn int_within(text: &[u8], low: i64, high: i64) -> bool {
    let (digits, negative) = match text {
        [b'-', digits @ ..] => (digits, true),
        digits => (digits, false),
    };
    // Longer numbers are looked at with care, by the check that words the fault.
    if digits.is_empty() || digits.len() > 18 {
        return false;
    }
    let mut value: i64 = 0;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return false;
        }
        value = value * 10 + i64::from(byte - b'0');
    }
    let value = if negative { -value } else { value };
    low <= value && value <= high
}

/// The kinds of value that may start with a byte; what starts none is left to the type.
static KINDS: [u8; 256] = {
    let mut kinds = [types::ANY; 256];
    let mut byte = 0;
    while byte < kinds.len() {
        kinds[byte] = match byte as u8 {
            b'"' => types::STRING,
            b'-' | b'0'..=b'9' => types::INTEGER | types::FRACTION,
            b'{' => types::OBJECT,
            b'[' => types::ARRAY,
            b't' | b'f' => types::BOOL,
            b'n' => types::NULL,
            _ => types::ANY,
        };
        byte += 1;
    }
    kinds
};

impl Node {
    /// What must be looked at after the type has decoded a value.
    fn fast(&self) -> Fast {
        let plain = self.enumeration.is_none()
            && self.constant.is_none()
            && self.any_of.is_empty()
            && self.one_of.is_empty()
            && self.all_of.is_empty()
            && self.reference.is_none()
            && self.rare.is_none()
            && !self.never;
        if !plain {
            return Fast::Tree;
        }
        match self.types {
            types::BOOL => Fast::Nothing,
            types::STRING if self.text_is_free() => Fast::Nothing,
            types::INTEGER
                if self.above.is_none() && self.below.is_none() && self.multiple_of.is_none() =>
            {
                self.int_range()
            }
            kind if kind == types::INTEGER | types::FRACTION && self.number_is_free() => {
                Fast::Nothing
            }
            types::ARRAY if self.array_is_free() => Fast::Nothing,
            _ => Fast::Tree,
        }
    }

    fn text_is_free(&self) -> bool {
        self.min_length.is_none() && self.max_length.is_none() && self.pattern.is_none()
    }

    fn number_is_free(&self) -> bool {
        self.minimum.is_none()
            && self.maximum.is_none()
            && self.above.is_none()
            && self.below.is_none()
            && self.multiple_of.is_none()
    }

    fn array_is_free(&self) -> bool {
        self.min_items.is_none()
            && self.max_items.is_none()
            && !self.unique
            && self.prefix.is_empty()
            && self.items.as_ref().is_some_and(|items| items.fast() == Fast::Nothing)
    }

    fn int_range(&self) -> Fast {
        let bound = |number: &Option<Number>| number.as_ref().and_then(Number::as_i128);
        let (low, high) = (bound(&self.minimum), bound(&self.maximum));
        let i64_range = (Some(i128::from(i64::MIN)), Some(i128::from(i64::MAX)));
        let u64_range = (Some(0), Some(i128::from(u64::MAX)));
        if (low, high) == i64_range || (low, high) == u64_range {
            // No other type has exactly these bounds.
            return Fast::Nothing;
        }
        // What does not fit has no short form; the whole check finds out.
        let narrow =
            |bound: Option<i128>, open| bound.map_or(Some(open), |it| i64::try_from(it).ok());
        match (narrow(low, i64::MIN), narrow(high, i64::MAX)) {
            (Some(low), Some(high)) => Fast::Int(low, high),
            _ => Fast::Tree,
        }
    }
}
