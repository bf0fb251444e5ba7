//! The server of the SDK and nothing else, for its size and its memory.
//!
//! ```sh
//! cargo build --profile bench --package tool-sdk --bench mcp-lean \
//!     --no-default-features --features macros,mcp
//! cargo bench --package tool-sdk --bench mcp --all-features -- program PROGRAM
//! ```

mod sdk;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    sdk::serve(&sdk::server()?)
}
