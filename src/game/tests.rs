use super::*;

fn line(seat: Seat, rank: u8, score: i32) -> Ranked {
    Ranked { seat, rank, score, won: rank == 1 }
}

#[test]
fn a_leaver_is_last_and_the_others_close_up() {
    let ranking = [line(2, 1, 5), line(0, 2, 3), line(3, 2, 3), line(1, 4, 0)];
    assert_eq!(without_leaver(&ranking, 2), [line(0, 1, 3), line(3, 1, 3), line(1, 3, 0), line(2, 4, 5)]);
    assert_eq!(without_leaver(&ranking, 0), [line(2, 1, 5), line(3, 2, 3), line(1, 3, 0), line(0, 4, 3)]);
    assert_eq!(without_leaver(&[line(0, 1, 3)], 0), [Ranked { won: false, ..line(0, 1, 3) }]);
}

#[test]
fn a_seed_does_not_print_itself() {
    assert_eq!(format!("{:?}", ServerSeed([7; 32])), "ServerSeed(secret)");
}
