#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| fuzz_files::a_script_is_understood(text));
