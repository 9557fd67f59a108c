use super::*;
use crate::rulesets::Ranked;

fn line(seat: Seat, rank: u8, score: i32) -> Ranked {
    Ranked { seat, rank, score, won: rank == 1 }
}

#[test]
fn a_leaver_is_last_and_the_others_close_up() {
    let ranking = [line(2, 1, 5), line(0, 2, 3), line(3, 2, 3), line(1, 4, 0)];
    let lost = |seat, rank, score| Ranked { won: false, ..line(seat, rank, score) };
    let with_leavers_last = |leavers: &[Seat]| leaving::with_leavers_last(&ranking, leavers);
    assert_eq!(with_leavers_last(&[]), ranking);
    assert_eq!(with_leavers_last(&[2]), [line(0, 1, 3), line(3, 1, 3), line(1, 3, 0), lost(2, 4, 5)]);
    assert_eq!(with_leavers_last(&[0]), [line(2, 1, 5), line(3, 2, 3), line(1, 3, 0), lost(0, 4, 3)]);
    // The first out ranks lowest.
    assert_eq!(with_leavers_last(&[2, 0]), [line(3, 1, 3), line(1, 2, 0), lost(0, 3, 3), lost(2, 4, 5)]);
    assert_eq!(with_leavers_last(&[3, 1, 2, 0]), [lost(0, 1, 3), lost(2, 2, 5), lost(1, 3, 0), lost(3, 4, 3)]);
    assert_eq!(leaving::with_leavers_last(&[line(0, 1, 3)], &[0]), [lost(0, 1, 3)]);
    // Alone, the rules say what has been won.
    assert_eq!(leaving::with_leavers_last(&[lost(0, 1, 3)], &[]), [lost(0, 1, 3)]);
}

#[test]
fn a_seed_does_not_print_itself() {
    assert_eq!(format!("{:?}", ServerSeed([7; 32])), "ServerSeed(secret)");
}
