//! Who may know what: hands, the stock, and jacks and queens that lie face down.

use super::*;

/// The identity of each face-down card in a view, from bottom to top.
fn face_down(view: &View) -> Vec<Option<Card>> {
    let laid = view.seats.iter().flat_map(|seat| seat.square.iter().flatten());
    laid.filter(|laid| laid.face == Face::Down).map(|laid| laid.card).collect()
}

#[test]
fn a_face_down_card_is_shown_to_its_layer_alone_until_the_match_ends() {
    let mut state = position("QC", ["5H JH@5! KC@5", "AH JS@1!"]);
    let queen = lay("QC", Whose::Own, 5);
    let played = play(&mut state, queen)[0];
    let (jh, qc, js) = (Some(card("JH")), Some(card("QC")), Some(card("JS")));
    for (viewer, shown, queen_shown) in [
        (Viewer::Seat(0), [None, qc, js], qc),
        (Viewer::Seat(1), [jh, None, None], None),
        (Viewer::Spectator, [None, None, None], None),
        (Viewer::Everything, [jh, qc, js], qc),
    ] {
        assert_eq!(face_down(&Leopard::view(&state, viewer)), shown);
        let in_log = MoveView::Lay { card: queen_shown, square: Whose::Own, cell: 5 };
        assert_eq!(Leopard::move_view(&queen, 0, viewer), in_log);
        let event = Event::CardPlayed { seat: 0, card: queen_shown, square: Whose::Own, cell: 5, face: Face::Down };
        assert_eq!(Leopard::event_view(&played, viewer), event);
    }
}

#[test]
fn a_refusal_tells_nothing_of_a_face_down_card() {
    let refusals = |square| {
        let state = position("5C 6C JC", ["", square]);
        [lay("JC", Whose::Opponent, 5), lay("6C", Whose::Opponent, 5)].map(|mv| refused(&state, mv))
    };
    assert_eq!(refusals("5H JH@5"), refusals("5H QH@5"));
}

#[test]
fn an_imagined_jack_in_the_other_square_is_always_a_jack() {
    // Seat 1 laid one face-down card in seat 0's square: a jack; one in its own: a jack or a queen.
    let state = position("JC", ["5H JH@5!", "AH QS@1"]);
    let view = Leopard::view(&state, Viewer::Seat(0));
    let (mut jacks, mut queens, options) = (0, 0, Options::default().resolve().unwrap());
    let mut stream = random(3).stream(77);
    for _ in 0..200 {
        let imagined = Leopard::determinize(&view, Some(0), &options, &mut stream);
        assert_eq!(imagined.check(), Ok(()));
        let [inside, own] = face_down(&Leopard::view(&imagined, Viewer::Everything))[..] else { panic!() };
        assert!(inside.unwrap().code().starts_with('J'));
        if own.unwrap().code().starts_with('J') { jacks += 1 } else { queens += 1 }
    }
    assert!(jacks > 50 && queens > 50, "six jacks and eight queens are left: {jacks} to {queens}");
}
