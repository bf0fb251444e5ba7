#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| fuzz_files::a_change_changes_what_it_says(text));
