//! The values that are computed from a tool's constants on first use.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::{ArgsSpec, DefaultSpec, ParamSpec, Range, ToolSpec};
use crate::name::ToolName;
use crate::schema::{self, Schema, SchemaProperty, find_contradictions};
use crate::tool::args::{ArgChecks, find_self_violations, unsupported};
use crate::tool::{Definition, ToolDisplay, ToolSource, path_collector};

/// A tool's constants, with the values computed from them on first use.
pub struct Table {
    spec: ToolSpec,
    // Boxed, because every table is part of the binary, where these fields are empty.
    definition: OnceLock<Box<Definition>>,
    checks: OnceLock<Box<ArgChecks>>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Table").field(&self.spec.name).finish()
    }
}

impl Table {
    /// Creates a table; nothing is computed yet.
    #[must_use]
    pub const fn new(spec: ToolSpec) -> Self {
        Self { spec, definition: OnceLock::new(), checks: OnceLock::new() }
    }

    /// Returns the constants.
    #[must_use]
    pub const fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Returns the definition.
    #[inline]
    pub fn definition(&self) -> &Definition {
        self.definition.get_or_init(|| Box::new(build_definition(&self.spec)))
    }

    /// Returns the parameter with the name or alias `name`.
    fn find_param(&self, name: &str) -> Option<&'static ParamSpec> {
        match &self.spec.args {
            ArgsSpec::Params(params) => {
                params.iter().find(|it| it.name == name || it.options.aliases.contains(&name))
            }
            ArgsSpec::Struct(_) => None,
        }
    }

    /// Returns every name of the argument that `name` is a name of.
    pub(super) fn argument_names<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        match self.find_param(name) {
            Some(param) => {
                std::iter::once(param.name).chain(param.options.aliases.iter().copied()).collect()
            }
            None => vec![name],
        }
    }

    /// Returns the default of an argument, including one that is hidden from models.
    pub(super) fn argument_default(&self, name: &str) -> Option<Value> {
        match self.find_param(name) {
            Some(param) => param.default.and_then(|default| default.value()),
            None => self.definition().parameters.property_default(name).cloned(),
        }
    }

    /// Returns whether the argument `name` has a type that holds paths.
    pub(super) fn takes_path(&self, name: &str) -> bool {
        self.find_param(name).is_some_and(|param| path_collector::type_holds_paths((param.ty.id)()))
    }

    /// Returns whether a call may touch something that the pattern of a rule could match: a callback
    /// names it, or an argument may hold a path.
    pub(super) fn may_name_resources(&self) -> bool {
        let ArgsSpec::Params(params) = self.spec.args else { return true };
        let parameters = &self.definition().parameters;
        let is_scalar = |param: &ParamSpec| {
            let kind = parameters.property(param.name).and_then(|schema| schema.get("type"));
            kind.and_then(Value::as_str).is_some_and(|kind| !matches!(kind, "array" | "object"))
        };
        self.spec.options.names_resources
            || params
                .iter()
                .any(|it| path_collector::type_holds_paths((it.ty.id)()) || !is_scalar(it))
    }

    /// Returns why no call could be valid, or why the published schema would not be enforced.
    ///
    /// Some keywords of a type's schema, such as a pattern, are enforced by the schema alone and
    /// not by the type. So the schema is checked like one from outside.
    pub(super) fn unusable_reason(&self) -> Option<String> {
        let schema = &self.definition().parameters;
        let is_certain = match &self.spec.args {
            ArgsSpec::Params(params) => params.iter().all(is_checked_when_compiled),
            ArgsSpec::Struct(_) => true,
        };
        if schema.is_basic() && is_certain {
            return None;
        }
        let root = schema.as_map();
        let what = unsupported(root)
            .or_else(|| {
                find_contradictions(root)
                    .first()
                    .map(|it| format!("{} is wrong: {}", it.path(), it.problem()))
            })
            .or_else(|| {
                (!is_certain).then(|| find_self_violations(root).into_iter().next()).flatten()
            });
        what.map(|what| format!("its schema's {what}"))
    }

    /// Returns the checks that decoding alone does not make.
    #[inline]
    pub(crate) fn checks(&self) -> &ArgChecks {
        self.checks.get_or_init(|| Box::new(ArgChecks::from_spec(self.definition(), &self.spec)))
    }
}

fn build_definition(spec: &ToolSpec) -> Definition {
    let parameters = match &spec.args {
        ArgsSpec::Params(params) => schema::object_schema(params.iter().map(schema_property)),
        ArgsSpec::Struct(ty) => Schema::from_input_fn(ty.schema),
    };
    let mut definition =
        Definition::new(ToolName::from_static(spec.name), spec.description, parameters);
    let options = spec.options;
    definition.aliases = options.aliases.iter().map(|name| ToolName::from_static(name)).collect();
    definition.title = options.title.map(Into::into);
    definition.category = options.category.map(Into::into);
    definition.output = (spec.output)().map(Schema::from_output_fn);
    definition.risk = spec.risk;
    definition.permission = options.permission.map(Into::into);
    let mut display = build_display(spec);
    display.sensitive.extend(definition.parameters.secret_parameters());
    if let ArgsSpec::Struct(_) = spec.args {
        display.primary.iter_mut().chain(&mut display.show).for_each(|name| {
            if let Some(told) = json_name(name, &definition.parameters) {
                *name = told;
            }
        });
    }
    definition.display = Arc::new(display);
    definition.scopes = options.scopes.iter().map(|&scope| scope.into()).collect();
    definition.timeout = options.timeout;
    definition.max_output = options.max_output;
    definition.truncate = options.truncate;
    definition.parallel = options.parallel.map(Into::into);
    definition.task_support = options.task_support;
    definition.flags = options.flags;
    definition.examples = options.examples.iter().map(|&example| example.into()).collect();
    definition.source = ToolSource::Native;
    definition.place = Some(spec.place);
    definition
}

/// Whether the compiler has checked all constraints of a parameter. It cannot check a computed
/// default against bounds, and `choices` against a pattern.
fn is_checked_when_compiled(param: &ParamSpec) -> bool {
    let options = param.options;
    let has_choices = !options.choices.is_empty();
    let is_bounded = options.range.is_some()
        || options.length.is_some()
        || options.pattern.is_some()
        || has_choices;
    let is_computed = matches!(param.default, Some(DefaultSpec::Value(_)));
    !(is_computed && is_bounded || has_choices && options.pattern.is_some())
}

/// Returns the parameter for the field `name` of a struct, if serde renames it: `file_path` as
/// `filePath`.
fn json_name(name: &str, parameters: &Schema) -> Option<String> {
    let letters = |name: &str| -> String {
        name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
    };
    if parameters.property(name).is_some() {
        return None;
    }
    let wanted = letters(name.strip_prefix("r#").unwrap_or(name));
    let mut alike = parameters.properties().filter(|(known, _)| letters(known) == wanted);
    match (alike.next(), alike.next()) {
        (Some((known, _)), None) => Some(known.to_owned()),
        _ => None,
    }
}

/// Returns the schema of all parameters, including those that are hidden from models.
pub(crate) fn full_schema(params: &[ParamSpec]) -> Schema {
    schema::object_schema(
        params.iter().map(|param| SchemaProperty { hidden: false, ..schema_property(param) }),
    )
}

fn schema_property(param: &ParamSpec) -> SchemaProperty<'_> {
    let default = param.default.and_then(|default| default.value());
    let mut property = SchemaProperty {
        name: param.name,
        schema: param.ty.schema,
        description: param.description,
        required: param.default.is_none() && !(param.ty.optional)(),
        hidden: param.options.hidden,
        default,
        keywords: schema_keywords(param),
    };
    if let Some((min, max)) = param.options.length {
        property.set_length(min, max);
    }
    property
}

fn schema_keywords(param: &ParamSpec) -> Vec<(&'static str, Value)> {
    let mut keywords = Vec::new();
    let mut set = |keyword, value: Option<Value>| {
        keywords.extend(value.map(|value| (keyword, value)));
    };
    let number = |value: i128| serde_json::Number::from_i128(value).map(Value::Number);
    match param.options.range {
        Some(Range::Int(low, high)) => {
            set("minimum", low.and_then(number));
            set("maximum", high.and_then(number));
        }
        Some(Range::Float(low, high)) => {
            set("minimum", low.map(Value::from));
            set("maximum", high.map(Value::from));
        }
        None => {}
    }
    set("pattern", param.options.pattern.map(Value::from));
    set(
        "enum",
        (!param.options.choices.is_empty())
            .then(|| param.options.choices.iter().copied().collect()),
    );
    keywords
}

fn build_display(spec: &ToolSpec) -> ToolDisplay {
    let sensitive = match &spec.args {
        ArgsSpec::Params(params) => params.iter().filter(|param| param.options.sensitive).collect(),
        ArgsSpec::Struct(_) => Vec::new(),
    };
    let options = spec.options;
    ToolDisplay {
        name: options.display_name.map(Into::into),
        category: None,
        primary: options.primary.map(Into::into),
        show: options.show.iter().map(|&name| name.into()).collect(),
        summary: options.summary.map(Into::into),
        ui: options.ui.map(Into::into),
        // A sensitive value is masked under every name by which it may be sent.
        sensitive: sensitive
            .into_iter()
            .flat_map(|param| std::iter::once(&param.name).chain(param.options.aliases))
            .map(|&name| name.to_owned())
            .collect(),
        icons: Vec::new(),
    }
}
