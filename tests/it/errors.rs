//! What the error of a tool function tells the model, and what it tells the host.

use std::error::Error;
use std::fmt;

use tool_sdk::testing::Harness;
use tool_sdk::{ErrorKind, IntoTools, ToolError, tool, tools};

#[derive(Debug)]
struct DiskError(std::io::Error);

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the disk cannot be read")
    }
}

impl Error for DiskError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

fn disk_error() -> DiskError {
    DiskError(std::io::Error::other("/dev/sda1"))
}

/// An error that converts itself, although it implements `std::error::Error` too.
#[derive(Debug)]
struct MissingPage;

impl fmt::Display for MissingPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("missing page")
    }
}

impl Error for MissingPage {}

impl From<MissingPage> for ToolError {
    fn from(error: MissingPage) -> Self {
        Self::not_found(error).hint("list the pages")
    }
}

/// Fails.
#[tool(read, register = false)]
fn with_std_error() -> Result<String, DiskError> {
    Err(disk_error())
}

/// Fails.
#[tool(read, register = false)]
async fn with_own_conversion() -> Result<(), MissingPage> {
    Err(MissingPage)
}

/// Fails.
#[tool(read, register = false)]
fn with_anyhow() -> anyhow::Result<&'static str> {
    Err(anyhow::Error::from(disk_error()).context("no page"))
}

/// Fails.
#[tool(read, register = false)]
fn with_boxed_error() -> Result<String, Box<dyn Error + Send + Sync>> {
    Err(disk_error())?
}

type Pages = Result<String, std::num::ParseIntError>;

/// Fails.
#[tool(read, register = false)]
fn with_type_alias() -> Pages {
    "a".parse::<u8>().map(|number| number.to_string())
}

async fn error_of(tools: impl IntoTools, name: &str) -> ToolError {
    Harness::new(tools).error(name, "{}").await
}

#[tokio::test]
async fn any_std_error_is_a_failure_with_its_display() {
    let error = error_of(tools![with_std_error], "with_std_error").await;
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert_eq!(error.to_string(), "the disk cannot be read");
    let source = Error::source(&error).expect("the host gets the error");
    assert!(source.is::<DiskError>());
    assert_eq!(source.source().expect("and its cause").to_string(), "/dev/sda1");

    let error = error_of(tools![with_type_alias], "with_type_alias").await;
    assert_eq!(error.to_string(), "invalid digit found in string");
}

#[tokio::test]
async fn own_conversion_is_preferred_to_display() {
    let error = error_of(tools![with_own_conversion], "with_own_conversion").await;
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.suggestion(), Some("list the pages"));
}

#[tokio::test]
async fn anyhow_error_tells_the_model_its_outermost_context() {
    let error = error_of(tools![with_anyhow], "with_anyhow").await;
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Failed, "no page".to_owned()));
    let mut chain = Vec::new();
    let mut source = Error::source(&error);
    while let Some(cause) = source {
        chain.push(cause.to_string());
        source = cause.source();
    }
    assert_eq!(chain, ["no page", "the disk cannot be read", "/dev/sda1"]);
}

#[tokio::test]
async fn boxed_error_is_a_failure_with_its_display() {
    let error = error_of(tools![with_boxed_error], "with_boxed_error").await;
    assert_eq!(error.to_string(), "the disk cannot be read");
}
