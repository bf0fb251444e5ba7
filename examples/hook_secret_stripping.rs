//! A hook after the call: it removes secrets from what the model reads.
//!
//! After-hooks see the whole result before truncation, also that of a failed call. This hook drops
//! the parts that it does not inspect. If it fails, the result is not shown: that is the default of
//! `on_error`.

use tool_sdk::{
    Call, Hook, HookContext, HookPriority, Output, Pipeline, Redactor, Registry, Session,
    ToolError, tool,
};

/// Show the settings of a service.
#[tool(read)]
fn show_settings(
    /// The service.
    service: String,
) -> Result<Output, ToolError> {
    match service.as_str() {
        "mail" => Ok(Output::text("user = ada\npassphrase = correct horse\nport = 25")),
        "store" => Ok(Output::text("one setting")
            .structured(serde_json::json!({"user": "ada", "password": "battery staple"}))),
        _ => Err(ToolError::unavailable("login with `correct horse` failed").hint("try `mail`")),
    }
}

/// Removes secrets from results.
struct Strip(Redactor);

impl Strip {
    fn output(&self, output: &Output) -> Output {
        let clean = Output::text(self.0.redact(output.as_text()));
        match output.to_structured() {
            Some(mut value) => {
                self.0.redact_value(&mut value);
                clean.structured(value)
            }
            None => clean,
        }
    }

    fn error(&self, error: &ToolError) -> ToolError {
        let clean = ToolError::new(error.kind(), self.0.redact(error.message()));
        match error.suggestion() {
            Some(hint) => clean.hint(self.0.redact(hint)),
            None => clean,
        }
    }
}

impl Hook for Strip {
    async fn after(
        &self,
        _: &HookContext<'_>,
        result: &mut Result<Output, ToolError>,
    ) -> Result<(), ToolError> {
        *result = match &*result {
            Ok(output) => Ok(self.output(output)),
            Err(error) => Err(self.error(error)),
        };
        Ok(())
    }
}

fn pipeline(registry: Registry) -> Pipeline {
    // Secrets that the host knows, besides texts that look like one.
    let strip = Strip(Redactor::new(["correct horse"]));
    Pipeline::new(registry).hook("*", HookPriority::SECURITY, strip)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pipeline = pipeline(Registry::linked()?);
    for arguments in [r#"{"service": "mail"}"#, r#"{"service": "web"}"#] {
        let call = Call::new("show_settings", arguments);
        println!("{}\n", pipeline.call(&Session::new("example"), call).await.text());
    }
    Ok(())
}

// F68, F66
#[cfg(test)]
#[tokio::test]
async fn nothing_that_the_model_reads_holds_the_secret() {
    let registry = Registry::builder().add(tool_sdk::tools![show_settings]).build().unwrap();
    let pipeline = pipeline(registry);
    let call = async |arguments| {
        pipeline.call(&Session::new("test"), Call::new("show_settings", arguments)).await.result
    };
    let text = call(r#"{"service": "mail"}"#).await.unwrap().into_text();
    assert_eq!(text, "user = ada\npassphrase = [redacted]\nport = 25");
    let value = call(r#"{"service": "store"}"#).await.unwrap().to_structured().unwrap();
    assert_eq!(value["password"], "[redacted]");
    let error = call(r#"{"service": "web"}"#).await.unwrap_err();
    assert_eq!(error.to_string(), "login with `[redacted]` failed\nhint: try `mail`");
}
