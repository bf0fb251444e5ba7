//! The names that generated code uses. Defines nothing and has no stability guarantee: only
//! `tool-sdk-macros` of the same version may use it.

pub use crate::__submit as submit;
pub use crate::call::RawArgs;
pub use crate::content::Output;
pub use crate::context::{Context, FromContext, FromContextRef, Session, State};
pub use crate::error::ToolError;
pub use crate::risk::{Risk, RiskClass};
pub use crate::schema_lock::assert_schema;
pub use crate::tool::native::{
    filled, stage, stage_in, stage_with, take, take_struct, validate_args,
};
pub use crate::tool::summary_value::{ViaDebug, ViaDisplay, ViaList, ViaOption, ViaPlace};
pub use crate::tool::{
    Args, ArgsSpec, AutorefTools, DefaultSpec, ErrorType, Flags, FnTool, IntoTools, Lengthy,
    MethodTool, OtherConversion, OutputType, ParallelSpec, Param, ParamOptions, ParamSpec,
    Patterned, Prepare, PrepareResult, Range, Ranged, Refinement, Resource, ResultType,
    SourceLocation, SummaryValue, Table, TaskSupport, Tool, ToolCallbacks, ToolFn, ToolMethods,
    ToolOptions, ToolSpec, Truncate, ViaMethods, ViaNothing, default_value, struct_type,
    text_default,
};
#[cfg(feature = "linked")]
pub use inventory;
pub use serde_json::Value;
pub use std::boxed::Box;
pub use std::option::Option::{self, None, Some};
pub use std::result::Result::{self, Err, Ok};
pub use std::string::String;
pub use std::sync::Arc;
pub use std::time::Duration;
pub use std::vec::Vec;
#[cfg(feature = "macros")]
pub use tool_sdk_macros::followed_by;
