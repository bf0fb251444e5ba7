tool_sdk::link!(my-tools);

fn main() {}
