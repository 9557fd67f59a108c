#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tavola_fuzz::moves::run(input));
