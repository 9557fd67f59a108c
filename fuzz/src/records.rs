//! Records as files.

use tavola::game::Record;

/// Nothing panics, and a record that is good stays so when it is written and read.
pub fn run(input: &[u8]) {
    let Ok(record) = Record::read(input) else { return };
    check(&record);
    // Few changes would come past the digest; who forges a record computes it anew.
    let mut forged = record;
    forged.digest = forged.compute_digest();
    check(&forged);
}

fn check(record: &Record) {
    let good = record.verify().is_ok();
    let written = serde_json::to_vec(record).expect("a record is JSON");
    let read = Record::read(&written).expect("a record that was written is read");
    assert!(read == *record, "a record changes when it is written and read");
    assert_eq!(read.compute_digest(), record.compute_digest(), "the digest of what was written");
    assert_eq!(read.verify().is_ok(), good, "verified again");
}
