use tool_sdk::Registry;

struct Reader;

fn main() {
    let _ = Registry::builder().add(Reader);
}
