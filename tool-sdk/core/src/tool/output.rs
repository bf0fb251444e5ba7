//! The result types of tools.

use std::error::Error as StdError;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;

use crate::content::Output;
use crate::error::ToolError;
use crate::schema::SchemaFn;

/// A structured result, with an output schema.
///
/// # Examples
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Serialize;
/// use tool_sdk::{Json, tool};
///
/// #[derive(Serialize, JsonSchema)]
/// struct Weather {
///     degrees: f64,
/// }
///
/// /// Current weather for a city.
/// #[tool(read, open_world)]
/// async fn weather(
///     /// The city's name.
///     city: String,
/// ) -> Json<Weather> {
///     Json(Weather { degrees: city.len() as f64 })
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "tools build it")]
pub struct Json<T>(pub T);

/// A structured result, with an output schema, beside a text of its own for the model.
///
/// Use it where JSON is harder to read for a model than a few words; programs read the value.
///
/// # Examples
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Serialize;
/// use tool_sdk::{Output, TypedOutput, tool};
///
/// #[derive(Serialize, JsonSchema)]
/// struct WordCount {
///     words: usize,
/// }
///
/// /// Count words.
/// #[tool(read)]
/// fn count_words(
///     /// The text.
///     text: &str,
/// ) -> TypedOutput<WordCount> {
///     let words = text.split_whitespace().count();
///     TypedOutput::new(Output::text(format!("{words} words")), WordCount { words })
/// }
/// ```
#[derive(Clone, Debug)]
pub struct TypedOutput<T> {
    output: Output,
    value: T,
}

impl<T> TypedOutput<T> {
    /// Creates a result of what the model reads, and the value.
    pub fn new(output: Output, value: T) -> Self {
        Self { output, value }
    }
}

impl<T> Deref for Json<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A type that a tool may return.
///
/// An `Err` is a failed call and never data.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    label = "return `String`, `Json<T>` or `Output`, or a `Result` of them",
    note = "`Json<T>` takes any `T` that is `Serialize` and `JsonSchema`, and `Output::attach` takes bytes, such as an image"
)]
pub trait IntoOutput {
    /// Returns the schema of the structured value, if there is one.
    fn schema() -> Option<SchemaFn> {
        None
    }

    /// Converts the value to the result for the model.
    ///
    /// # Errors
    ///
    /// Fails when the tool failed.
    fn into_output(self) -> Result<Output, ToolError>;
}

impl IntoOutput for Output {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(self)
    }
}

impl IntoOutput for String {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(Output::text(self))
    }
}

impl IntoOutput for &'static str {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(Output::text(self))
    }
}

/// No result; the model reads `done`.
impl IntoOutput for () {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(Output::text("done"))
    }
}

/// A type that [`Json`] and [`TypedOutput`] can contain.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned as `Json`",
    label = "the result is written as JSON, with a schema",
    note = "derive `serde::Serialize` and `schemars::JsonSchema` of schemars 1 for `{Self}`, or for what it holds"
)]
pub(crate) trait Structured: Serialize + JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema> Structured for T {}

/// A type that can be the error of a tool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a tool",
    label = "the error must be a `ToolError`, or a type that implements `std::error::Error`",
    note = "derive `thiserror::Error` for an error of your own, or write `.map_err(ToolError::failed)?`",
    note = "a `Box<dyn Error>` must be `Send + Sync`, and `anyhow::Error` needs the feature `anyhow` of `tool-sdk`"
)]
pub(crate) trait Failure: Into<ToolError> {}

#[diagnostic::do_not_recommend]
impl<E: Into<ToolError>> Failure for E {}

/// Returns the schema of a structured value.
fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<T>()
}

/// Returns the error for a value that cannot be written.
fn unwritable(error: serde_json::Error) -> ToolError {
    ToolError::internal("the result cannot be written as JSON").source(error)
}

impl<T: Structured> IntoOutput for TypedOutput<T> {
    fn schema() -> Option<SchemaFn> {
        Some(schema_of::<T>)
    }

    fn into_output(self) -> Result<Output, ToolError> {
        let value = serde_json::to_value(&self.value).map_err(unwritable)?;
        Ok(self.output.structured(value))
    }
}

impl<T: Structured> IntoOutput for Json<T> {
    fn schema() -> Option<SchemaFn> {
        Some(schema_of::<T>)
    }

    fn into_output(self) -> Result<Output, ToolError> {
        Output::json(&self.0).map_err(unwritable)
    }
}

impl<T: IntoOutput, E: Failure> IntoOutput for Result<T, E> {
    fn schema() -> Option<SchemaFn> {
        T::schema()
    }

    fn into_output(self) -> Result<Output, ToolError> {
        self.map_err(Into::into)?.into_output()
    }
}

/// The output type of a tool, for its table.
pub struct OutputType<T> {
    /// The output schema.
    pub schema: fn() -> Option<SchemaFn>,
    /// The conversion.
    pub convert: fn(T) -> Result<Output, ToolError>,
}

impl<T> fmt::Debug for OutputType<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputType")
    }
}

/// The result of a tool whose error becomes a failed call by its `Display`.
///
/// One trait cannot cover both kinds of errors, because a `ToolError` is of both.
pub(crate) trait DisplayResult: Sized {
    const OUTPUT_TYPE: OutputType<Self>;
}

impl<T: IntoOutput, E: StdError + Send + Sync + 'static> DisplayResult for Result<T, E> {
    const OUTPUT_TYPE: OutputType<Self> = OutputType {
        schema: T::schema,
        convert: |result| result.map_err(ToolError::from_error)?.into_output(),
    };
}

/// The conversion of a result type by [`IntoOutput`].
#[derive(Clone, Copy, Debug)]
pub struct ByTrait;

/// The conversion of a `Result` by the `Display` of its error.
#[derive(Clone, Copy, Debug)]
pub struct ByDisplay;

/// The conversion that another type decides.
#[derive(Clone, Copy, Debug)]
pub struct NotByTrait;

impl ByTrait {
    /// Returns the first conversion.
    #[must_use]
    pub const fn or<C: Copy>(self, _other: C) -> Self {
        self
    }

    /// Returns the facts about `T`.
    #[must_use]
    pub const fn output_type<T: IntoOutput>(self) -> OutputType<T> {
        OutputType { schema: T::schema, convert: T::into_output }
    }
}

impl ByDisplay {
    /// Returns the facts about `T`.
    #[expect(private_bounds, reason = "only `Result` is of this kind")]
    #[must_use]
    pub const fn output_type<T: DisplayResult>(self) -> OutputType<T> {
        T::OUTPUT_TYPE
    }
}

impl NotByTrait {
    /// Returns the other conversion.
    #[must_use]
    pub const fn or<C: Copy>(self, other: C) -> C {
        other
    }
}

/// Chooses the conversion of the result type `T` in two steps: by [`IntoOutput`]; then, with
/// [`ErrorType`], by the `Display` of its error. What has neither is told to lack `IntoOutput`.
///
/// An inherent constant is preferred to one of a trait, and exists only if its bounds hold. So
/// generated code gets the conversion as a constant of the concrete type.
#[derive(Debug)]
pub struct ResultType<T>(PhantomData<T>);

/// The second step of [`ResultType`].
#[derive(Debug)]
pub struct ErrorType<T>(PhantomData<T>);

impl<T: IntoOutput> ResultType<T> {
    /// By the trait.
    pub const CONVERSION: ByTrait = ByTrait;
}

impl<T, E: StdError + Send + Sync + 'static> ErrorType<Result<T, E>> {
    /// By the `Display` of the error.
    pub const CONVERSION: ByDisplay = ByDisplay;
}

/// The conversion of all other types.
pub trait OtherConversion {
    /// The type of the conversion.
    type Conversion;
    /// The conversion.
    const CONVERSION: Self::Conversion;
}

impl<T> OtherConversion for ResultType<T> {
    type Conversion = NotByTrait;
    const CONVERSION: NotByTrait = NotByTrait;
}

impl<T> OtherConversion for ErrorType<T> {
    type Conversion = ByTrait;
    const CONVERSION: ByTrait = ByTrait;
}
