use tool_sdk::tool;

/// Read a file.
#[tool(read, schema = "schema_is_no_json.json")]
fn read_file() {}
