//! One test or more for each rule, from small states; secrets are in `hidden`, whole games in `games`.
//!
//! Long, since it has every rule of the game in the order of the rules, which is how one looks for them.

mod games;
mod hidden;

use serde_json::{Value, json};

use super::cards::{DECK, Hand};
use super::options::Goal;
use super::state::HAND;
use super::table::{Cell, Laid, Table};
use super::*;
use crate::rulesets::registry::RulesetId;
use crate::rulesets::{Illegal, Ruleset};

// Small states

fn card(code: &str) -> Card {
    Card::from_code(code).unwrap()
}

fn cards(codes: &str) -> Vec<Card> {
    codes.split_whitespace().map(card).collect()
}

fn random(seed: u8) -> Random {
    Random::new([seed; 32])
}

/// A hand of a match in which seat 0 is to move. The squares are lists such as `"7H TD@3"` (the cell is written where the
/// rank does not give it), bottom card first, each card laid by the square's owner or, as in `"JC@3!"`, by the other
/// player. Seat 0 holds the named cards; what is left of the deck fills up both hands, then the stock.
fn position(held: &str, squares: [&str; 2]) -> State {
    let mut table = Table::default();
    for (owner, square) in (0..).zip(squares) {
        for word in square.split_whitespace() {
            let (code, cell) = word.trim_end_matches('!').split_once('@').unwrap_or((word, ""));
            let cell = cell.parse().ok().or(card(code).own_cell()).unwrap();
            let by = if word.ends_with('!') { 1 - owner } else { owner };
            table.lay(Laid { card: card(code), owner, cell, by });
        }
    }
    let mut rest: Vec<Card> = cards::deck().to_vec();
    for used in cards(held).into_iter().chain(table.laid().iter().map(|laid| laid.card)) {
        rest.remove(rest.iter().position(|card| *card == used).unwrap());
    }
    let mut fill = |held: Vec<Card>, len| -> Hand {
        let more = len - held.len();
        held.into_iter().chain(rest.drain(..more)).collect()
    };
    let hands = [fill(cards(held), HAND + 1), fill(Vec::new(), HAND)];
    let state = State {
        goal: Goal::Hands(2),
        scoring: Scoring::Edition1962,
        dealer: if table.laid().len() % 2 == 0 { 1 } else { 0 },
        to_act: Some(0),
        stock: rest.into_iter().collect(),
        hands,
        discard: Default::default(),
        table,
        scored_hands: Default::default(),
    };
    assert_eq!(state.check(), Ok(()));
    state
}

/// The stock ran out with the draw of this turn: what was in it lies on the discard pile.
fn with_last_card_drawn(mut state: State) -> State {
    let turns = state.stock.len();
    state.discard.extend(std::mem::take(&mut state.stock));
    if turns % 2 == 1 {
        state.dealer = 1 - state.dealer;
    }
    assert_eq!(state.check(), Ok(()));
    state
}

fn lay(code: &str, square: Whose, cell: Cell) -> Move {
    Move::Lay { card: card(code), square, cell: Some(cell) }
}

fn moves(state: &State) -> Vec<Move> {
    let mut moves = Vec::new();
    for seat in 0..2 {
        Leopard::legal_moves(state, seat, &mut moves);
    }
    moves
}

/// The cells of a square on which the legal moves lay a card.
fn cells(state: &State, code: &str, whose: Whose) -> Vec<Cell> {
    let laid = |mv| match mv {
        Move::Lay { card, square, cell } if card.code() == code && square == whose => cell,
        _ => None,
    };
    moves(state).into_iter().filter_map(laid).collect()
}

/// Plays a move of the seat to act; answers what happened.
fn play(state: &mut State, mv: Move) -> Vec<Event> {
    let mut events = Vec::new();
    let seat = state.to_act.unwrap();
    Leopard::apply(state, seat, &mv, &random(9), &mut events).unwrap();
    assert_eq!(state.check(), Ok(()));
    events
}

/// Tries a move of seat 0 that must be refused; answers the rule and the words.
fn refused(state: &State, mv: Move) -> (&'static str, String) {
    let (mut copy, mut events) = (state.clone(), Vec::new());
    let error = Leopard::apply(&mut copy, 0, &mv, &random(9), &mut events).unwrap_err();
    assert_eq!((&copy, events.len()), (state, 0));
    (error.rule(), error.to_string())
}

/// What seat 0's square is worth.
fn value(square: &str, scoring: Scoring) -> u8 {
    position("", [square, ""]).table.square(0).value(scoring)
}

const HEARTS: &str = "AH 2H 3H 4H 5H 6H 7H 8H 9H";

// The rules

#[test]
fn p01_two_decks_of_52_cards() {
    assert_eq!((Card::COUNT, DECK), (52, 104));
    for (i, card) in Card::all().enumerate() {
        let code = ["A", "2", "3", "4", "5", "6", "7", "8", "9", "T", "J", "Q", "K"][i % 13].to_owned();
        assert_eq!(card.code(), code + ["C", "D", "H", "S"][i / 13]);
    }
    let catalogue = Leopard::catalogue();
    assert_eq!(catalogue.cards.len(), 52);
    let seven = &catalogue.cards[card("7H").index()];
    assert_eq!((seven.name_en.as_str(), seven.name_ru.as_str()), ("seven of hearts", "семёрка червей"));
    assert_eq!(seven.shows, [("rank", "7"), ("suit", "H"), ("colour", "red")].into());
    assert_eq!(catalogue.cards[card("KS").index()].shows["colour"], "black");
}

#[test]
fn p02_eight_cards_each_the_opponent_of_the_dealer_starts_and_the_deal_alternates() {
    let mut dealers = [0, 0];
    for seed in 0..20 {
        let mut state = Leopard::setup(&Options::default(), 2, &random(seed));
        let (first, starter) = (state.dealer, 1 - state.dealer);
        dealers[usize::from(first)] += 1;
        assert_eq!(state.to_act, Some(starter));
        state.scored_hands.push(ScoredHand::new(None, [0, 0]));
        state.dealer = starter;
        state.deal(&random(seed));
        assert_eq!(state.hands.map(Hand::len), [8, 8]);
        assert_eq!(state.starter(), first);
    }
    assert!(dealers.iter().all(|count| *count > 0), "drawn by lot");
}

#[test]
fn p03_an_ace_to_nine_lies_on_the_cell_of_its_rank() {
    let state = position("AC 9D 5H", ["", ""]);
    for (code, cell) in [("AC", 1), ("9D", 9), ("5H", 5)] {
        for square in [Whose::Own, Whose::Opponent] {
            assert_eq!(cells(&state, code, square), [cell]);
        }
    }
    let read = |text| serde_json::from_str::<Move>(text).unwrap();
    let seven = lay("7H", Whose::Opponent, 7);
    assert_eq!(read(r#"{"type":"lay","card":"7H","square":"opponent"}"#), seven);
    assert_eq!(read(r#"{"type":"lay","card":"7H","square":"opponent","cell":7}"#), seven);
    assert_eq!(serde_json::to_value(seven).unwrap(), json!({"type":"lay","card":"7H","square":"opponent","cell":7}));
}

#[test]
fn p03_only_the_top_card_of_a_cell_counts() {
    assert_eq!(value("AH 2H 3H", Scoring::Edition1962), 2);
    assert_eq!(value("AH 2H KC@2 KD@2 3H", Scoring::Edition1962), 1);
    assert_eq!(value("AH 2H KC@2 KH@2 3H", Scoring::Edition1962), 2);
}

#[test]
fn p04_a_cell_is_vacant_when_empty_or_face_down() {
    let state = position("5C 6C TC", ["5H 6H QH@6", "6S JS@6!"]);
    assert!(cells(&state, "5C", Whose::Own).is_empty());
    assert_eq!(cells(&state, "5C", Whose::Opponent), [5]);
    assert_eq!(cells(&state, "6C", Whose::Own), [6]);
    assert_eq!(cells(&state, "6C", Whose::Opponent), [6]);
    assert_eq!(cells(&state, "TC", Whose::Own), [1, 2, 3, 4, 6, 7, 8, 9]);
}

#[test]
fn p05_the_first_draw_belongs_to_the_deal() {
    let state = Leopard::setup(&Options::default(), 2, &random(1));
    let starter = usize::from(1 - state.dealer);
    assert_eq!((state.hands[starter].len(), state.hands[1 - starter].len(), state.stock.len()), (9, 8, 87));
}

#[test]
fn p05_later_draws_belong_to_the_move_before() {
    let mut state = position("5C", ["", ""]);
    let top = *state.stock.last().unwrap();
    let events = play(&mut state, Move::Discard { card: card("5C") });
    assert_eq!(
        events,
        [
            Event::CardDiscarded { seat: 0, card: card("5C") },
            Event::TurnPassed { seat: 1 },
            Event::CardDrawn { seat: 1, card: Some(top) },
        ]
    );
    assert_eq!(state.hands.map(Hand::len), [8, 9]);
}

#[test]
fn p05_only_cards_in_hand_are_played() {
    let state = position("5C", ["", ""]);
    assert!(!state.hands[0].contains(card("5S")));
    assert_eq!(refused(&state, lay("5S", Whose::Own, 5)), ("P5", "5S is not in your hand".into()));
    assert_eq!(refused(&state, Move::Discard { card: card("5S") }).0, "P5");
}

#[test]
fn p06_ace_to_nine_need_their_own_cell_vacant() {
    let mut state = position("5C 6C", ["5H", ""]);
    assert_eq!(refused(&state, lay("5C", Whose::Own, 5)), ("P6", "cell 5 of that square is not vacant".into()));
    assert_eq!(refused(&state, lay("6C", Whose::Own, 7)), ("P6", "6C can only be laid on cell 6".into()));
    let events = play(&mut state, lay("5C", Whose::Opponent, 5));
    let five = Event::CardPlayed { seat: 0, card: Some(card("5C")), square: Whose::Opponent, cell: 5, face: Face::Up };
    assert_eq!(events[0], five);
    assert_eq!(
        Leopard::view(&state, Viewer::Spectator).seats[1].square[4][..],
        [LaidView { face: Face::Up, card: Some(card("5C")) }]
    );
}

#[test]
fn p06_a_ten_needs_a_vacant_cell_of_the_own_square() {
    let state = position("TC", ["5H 6H QH@6", ""]);
    assert_eq!(cells(&state, "TC", Whose::Own), [1, 2, 3, 4, 6, 7, 8, 9]);
    assert!(cells(&state, "TC", Whose::Opponent).is_empty());
    assert_eq!(refused(&state, lay("TC", Whose::Own, 5)).1, "cell 5 of that square is not vacant");
    assert_eq!(refused(&state, lay("TC", Whose::Opponent, 1)).1, "TC can only be laid in your own square");
}

#[test]
fn p06_jack_needs_a_face_up_card() {
    let mut state = position("JC JD", ["5H 6H QH@6", "AH TS@8"]);
    assert_eq!(cells(&state, "JC", Whose::Own), [5]);
    assert_eq!(cells(&state, "JC", Whose::Opponent), [1, 8]);
    let words = "no face-up card lies on top of cell 6 of that square";
    assert_eq!(refused(&state, lay("JC", Whose::Own, 6)), ("P6", words.into()));
    assert_eq!(refused(&state, lay("JC", Whose::Opponent, 2)).0, "P6");
    play(&mut state, lay("JC", Whose::Opponent, 1));
    assert!(state.table.vacant(1).contains(Whose::Own, 1), "it lies face down");
}

#[test]
fn p06_a_queen_covers_only_in_the_own_square() {
    let mut state = position("QC QD", ["5H 6H QH@6", "AH"]);
    assert_eq!(cells(&state, "QC", Whose::Own), [5]);
    assert!(cells(&state, "QC", Whose::Opponent).is_empty());
    assert_eq!(refused(&state, lay("QC", Whose::Opponent, 1)).1, "QC can only be laid in your own square");
    assert_eq!(refused(&state, lay("QC", Whose::Own, 1)).0, "P6");
    play(&mut state, lay("QC", Whose::Own, 5));
    assert!(state.table.vacant(0).contains(Whose::Own, 5), "it lies face down");
}

#[test]
fn p06_a_king_goes_anywhere_in_the_own_square() {
    let mut state = position("KC", ["5H 6H QH@6", "AH"]);
    assert_eq!(cells(&state, "KC", Whose::Own), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert!(cells(&state, "KC", Whose::Opponent).is_empty());
    assert_eq!(refused(&state, lay("KC", Whose::Opponent, 1)).1, "KC can only be laid in your own square");
    play(&mut state, lay("KC", Whose::Own, 6));
    assert!(!state.table.vacant(0).contains(Whose::Own, 6), "it lies face up");
}

#[test]
fn p06_a_cell_that_must_be_named_or_does_not_exist_is_an_illegal_move() {
    let state = position("5C TC JC QC KC", ["5H", "5H"]);
    for code in ["TC", "JC", "QC", "KC"] {
        let json = json!({"type": "lay", "card": code, "square": "own"});
        let mv: Move = serde_json::from_value(json).unwrap();
        assert_eq!(refused(&state, mv), ("P6", format!("say on which cell, 1 to 9, {code} is to be laid")));
        for cell in [0, 10, 255] {
            assert_eq!(refused(&state, lay(code, Whose::Own, cell)).0, "P6");
        }
    }
    assert_eq!(refused(&state, Move::Lay { card: card("5C"), square: Whose::Own, cell: None }).0, "P6");
    for broken in [
        r#"{"type":"lay","card":"TC","square":"own","cell":-1}"#,
        r#"{"type":"lay","card":"TC","square":"own","cell":256}"#,
        r#"{"type":"lay","card":"TC","square":"mine","cell":1}"#,
        r#"{"type":"lay","card":"1C","square":"own","cell":1}"#,
        r#"{"type":"lay","card":"AC"}"#,
        r#"{"type":"lay","card":"AC","square":"own","top":true}"#,
        r#"{"type":"end_hand","cell":1}"#,
    ] {
        assert!(serde_json::from_str::<Move>(broken).is_err(), "{broken}");
    }
}

#[test]
fn p07_discards_lie_open_and_leave_the_hand() {
    let mut state = position("QS 5C", ["", ""]);
    play(&mut state, Move::Discard { card: card("QS") });
    assert!(!state.hands[0].contains(card("QS")));
    for viewer in [Viewer::Spectator, Viewer::Seat(0), Viewer::Seat(1)] {
        assert_eq!(Leopard::view(&state, viewer).discard, [card("QS")]);
        let mv = Move::Discard { card: card("QS") };
        assert_eq!(Leopard::move_view(&mv, 0, viewer), MoveView::Discard { card: card("QS") });
    }
}

#[test]
fn p08_a_line_scores_two_for_one_suit_and_one_for_one_colour() {
    let worth = |square| value(square, Scoring::Edition1962);
    assert_eq!(worth(""), 0);
    assert_eq!(worth("AH 2H"), 0);
    assert_eq!(worth("AH 2H 3C"), 0);
    assert_eq!((worth("AH 2H 3H"), worth("AH 2D 3H"), worth("AC 2S 3S")), (2, 1, 1));
    for line in ["4S 5S 6S", "7S 8S 9S", "AS 4S 7S", "2S 5S 8S", "3S 6S 9S", "AS 5S 9S", "3S 5S 7S"] {
        assert_eq!(worth(line), 2, "{line}");
    }
    for no_line in ["2S 3S 4S", "2S 4S 9S", "AS 6S 8S", "2S 6S 7S"] {
        assert_eq!(worth(no_line), 0, "{no_line}");
    }
    assert_eq!(worth("AC 5C 9C 3S 7S 2S 8S 4S 6S"), 2 + 7, "a diagonal of one suit, the other lines of one colour");
    assert_eq!(worth(HEARTS), 16);
    assert_eq!(worth("TH@1 KH@2 3H"), 2, "tens and kings count where they lie");
}

#[test]
fn p08_face_down_cards_belong_to_no_line() {
    assert_eq!(value("AH 2H QH@2 3H", Scoring::Edition1962), 0);
    assert_eq!(value("AH 2H JH@2! 3H", Scoring::Edition1962), 0);
}

#[test]
fn p08_ending_the_hand_needs_a_square_worth_five() {
    let four = position("", ["AH 2H 3H 4H 7H", HEARTS]);
    assert!(!moves(&four).contains(&Move::EndHand {}));
    let words = "your square is worth 4, and a hand can be ended with 5 or more";
    assert_eq!(refused(&four, Move::EndHand {}), ("P8", words.into()));
    let mut five = position("", ["AH 2H 3H 4H 7H 5D 9H", ""]);
    assert_eq!(five.table.square(0).value(Scoring::Edition1962), 5 + 1);
    five = position("", ["AH 2H 3H 4D 7D 5D 9D", ""]);
    assert_eq!(five.table.square(0).value(Scoring::Edition1962), 5);
    assert_eq!(moves(&five).last(), Some(&Move::EndHand {}));
    let events = play(&mut five, Move::EndHand {});
    assert_eq!(events[0], Event::HandScored { ended_by: Some(0), values: [5, 0], scores: [4, 0] });
}

#[test]
fn p09_the_hand_ends_after_the_turn_of_the_last_card() {
    let mut state = with_last_card_drawn(position("6H", ["AH 2H 3H", "4S 5S 6C"]));
    let events = play(&mut state, lay("6H", Whose::Own, 6));
    assert_eq!(events[1], Event::HandScored { ended_by: None, values: [2, 1], scores: [2, 1] });
    assert_eq!(state.hand_number(), 2);
}

#[test]
fn p09_the_hand_can_be_ended_in_the_turn_of_the_last_card() {
    let mut state = with_last_card_drawn(position("", [HEARTS, ""]));
    assert!(moves(&state).contains(&Move::EndHand {}));
    let events = play(&mut state, Move::EndHand {});
    assert_eq!(events[0], Event::HandScored { ended_by: Some(0), values: [16, 0], scores: [26, 0] });
}

#[test]
fn p10_who_ends_loses_a_point_and_gains_what_exceeds_five() {
    let scores = |ended_by, values| ScoredHand::new(ended_by, values).scores;
    assert_eq!(scores(Some(0), [5, 7]), [4, 7]);
    assert_eq!(scores(Some(1), [5, 7]), [5, 8]);
    assert_eq!(scores(Some(1), [0, 24]), [0, 42]);
    assert_eq!(scores(None, [6, 7]), [6, 7]);
}

#[test]
fn p11_a_new_hand_is_dealt_in_the_move_that_ended_the_last() {
    let mut state = position("", [HEARTS, "JC@1!"]);
    let (dealer, starter) = (1 - state.dealer, state.dealer);
    let events = play(&mut state, Move::EndHand {});
    assert_eq!((state.hand_number(), state.dealer, state.to_act), (2, dealer, Some(starter)));
    assert_eq!((state.stock.len(), state.discard.len(), state.table.laid().len()), (87, 0, 0));
    assert_eq!(state.totals(), [26, 0]);
    let [_, dealt @ .., Event::TurnPassed { seat }, Event::CardDrawn { seat: drawer, card }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((*seat, *drawer), (starter, starter));
    for (event, seat) in dealt.iter().zip([starter, dealer]) {
        let Event::HandDealt { seat: to, hand_number: 2, dealer: by, cards: Some(cards) } = event else {
            panic!("{event:?}")
        };
        assert_eq!((*to, *by), (seat, dealer));
        let drawn = card.filter(|_| seat == starter);
        assert_eq!(cards.iter().copied().chain(drawn).collect::<Hand>(), state.hands[usize::from(seat)]);
        assert!(cards.is_sorted());
        for viewer in [Viewer::Seat(1 - seat), Viewer::Spectator] {
            let hidden = Event::HandDealt { seat, hand_number: 2, dealer, cards: None };
            assert_eq!(Leopard::event_view(event, viewer), hidden);
        }
    }
    assert_eq!(dealt.len(), 2);
}

#[test]
fn p11_most_points_after_all_hands_win() {
    let mut state = position("", [HEARTS, ""]);
    state.scored_hands.push(ScoredHand::new(None, [2, 20]));
    assert_eq!(Leopard::end(&state), None);
    let events = play(&mut state, Move::EndHand {});
    assert_eq!(events.last(), Some(&Event::GameFinished { reason: EndReason::Completed }));
    assert_eq!((state.to_act, Leopard::end(&state)), (None, Some(EndReason::Completed)));
    assert_eq!((moves(&state), state.hand_number()), (vec![], 2));
    let ranks = |state: &State| state.ranking().iter().map(|r| (r.seat, r.rank, r.score, r.won)).collect::<Vec<_>>();
    assert_eq!(ranks(&state), [(0, 1, 28, true), (1, 2, 20, false)]);
    state.scored_hands[0] = ScoredHand::new(None, [0, 24]);
    state.scored_hands[1] = ScoredHand::new(Some(0), [15, 0]);
    assert_eq!(ranks(&state), [(0, 1, 24, true), (1, 1, 24, true)]);
}

#[test]
fn p11_a_match_to_points_ends_with_the_hand_that_reaches_them() {
    let mut state = position("", [HEARTS, ""]);
    state.goal = Goal::Points(26);
    assert_eq!(
        play(&mut state.clone(), Move::EndHand {}).last(),
        Some(&Event::GameFinished { reason: EndReason::Completed })
    );
    state.goal = Goal::Points(27);
    play(&mut state, Move::EndHand {});
    assert_eq!(state.hand_number(), 2);
    assert!(!Goal::Points(1).reached(23, [0, 0]) && Goal::Points(1).reached(24, [0, 0]), "24 hands at most");
}

#[test]
fn p11_options_are_resolved_and_checked() {
    let resolve = |json: Value| {
        RulesetId::Leopard.options(json.as_object().unwrap(), 2).map(|options| serde_json::to_value(options).unwrap())
    };
    assert_eq!(resolve(json!({})).unwrap(), json!({"hands": 2, "scoring": "1962"}));
    let to_points = json!({"target_points": 100, "scoring": "2008"});
    assert_eq!(resolve(to_points.clone()).unwrap(), to_points);
    assert_eq!(resolve(to_points.clone()).and_then(|_| resolve(to_points.clone())).unwrap(), to_points);
    for (given, pointers) in [
        (json!({"hands": null}), vec!["/hands"]),
        (json!({"hands": 0}), vec!["/hands"]),
        (json!({"hands": 13}), vec!["/hands"]),
        (json!({"hands": -1}), vec!["/hands"]),
        (json!({"hands": "2"}), vec!["/hands"]),
        (json!({"target_points": 0}), vec!["/target_points"]),
        (json!({"target_points": 300, "hands": 99}), vec!["/hands", "/target_points"]),
        (json!({"target_points": 10, "hands": 2}), vec!["/target_points"]),
        (json!({"scoring": 1962}), vec!["/scoring"]),
        (json!({"turn_limit": 5}), vec!["/turn_limit"]),
    ] {
        let errors = resolve(given.clone()).unwrap_err().0;
        assert_eq!(errors.iter().map(|(pointer, _)| pointer.as_str()).collect::<Vec<_>>(), pointers, "{given}");
    }
}

#[test]
fn p12_a_suit_line_gives_three_points_in_the_later_edition() {
    let worth = |square| value(square, Scoring::Edition2008);
    assert_eq!((worth("AH 2H 3H"), worth("AH 2D 3H")), (3, 1));
    assert_eq!(worth(HEARTS), 24);
    let mut state = position("", ["AH 2H 3H 4D 7D", ""]);
    state.scoring = Scoring::Edition2008;
    assert_eq!(refused(&state, Move::EndHand {}).0, "P8", "four points are still too little");
    assert_eq!(Leopard::view(&state, Viewer::Spectator).seats[0].square_value, 4);
}

#[test]
fn c01_only_the_seat_to_act_moves_and_nobody_after_the_end() {
    let mut state = position("5C", [HEARTS, ""]);
    for seat in [1, 2, 255] {
        let (before, mut listed, mut events) = (state.clone(), Vec::new(), Vec::new());
        Leopard::legal_moves(&state, seat, &mut listed);
        let mv = Move::Discard { card: card("5C") };
        let error = Leopard::apply(&mut state, seat, &mv, &random(9), &mut events).unwrap_err();
        assert_eq!((error.rule(), listed.len(), events.len()), ("C1", 0, 0));
        assert_eq!(state, before);
        assert_eq!(Leopard::view(&state, Viewer::Seat(9)), Leopard::view(&state, Viewer::Spectator));
    }
    state.goal = Goal::Hands(1);
    play(&mut state, Move::EndHand {});
    assert_eq!(refused(&state, Move::Discard { card: card("5C") }).0, "C1");
}

#[test]
fn c03_equal_cards_are_one_move() {
    let mut state = position("5C 5C", ["", ""]);
    assert_eq!(cells(&state, "5C", Whose::Own), [5]);
    assert_eq!(moves(&state).iter().filter(|mv| **mv == Move::Discard { card: card("5C") }).count(), 1);
    play(&mut state, Move::Discard { card: card("5C") });
    assert!(state.hands[0].contains(card("5C")) && state.hands[0].len() == 8);
}

#[test]
fn a_damaged_state_does_not_pass_the_check() {
    let sound = position("5C", ["5H JH@5!", "AH"]);
    let damage: [fn(&mut State); 9] = [
        |state| state.dealer = 2,
        |state| state.dealer = 1 - state.dealer,
        |state| state.to_act = Some(2),
        |state| state.to_act = None,
        |state| state.hands[0].insert(card("5C")),
        |state| state.stock.truncate(3),
        |state| state.scored_hands.push(ScoredHand { ended_by: Some(7), values: [5, 5], scores: [5, 5] }),
        |state| state.scored_hands.push(ScoredHand { ended_by: Some(0), values: [4, 5], scores: [2, 5] }),
        |state| state.goal = Goal::Hands(0),
    ];
    for (i, damage) in damage.iter().enumerate() {
        let mut state = sound.clone();
        damage(&mut state);
        assert!(state.check().is_err(), "damage {i}");
    }
    let bytes = postcard::to_allocvec(&sound).unwrap();
    for i in 0..bytes.len() {
        for byte in [0, 1, 17, 36, 52, 127, 255] {
            let mut bytes = bytes.clone();
            bytes[i] = byte;
            let Ok(state) = postcard::from_bytes::<State>(&bytes) else { continue };
            if state.check().is_ok() {
                for mv in moves(&state) {
                    let seat = state.to_act.unwrap();
                    Leopard::apply(&mut state.clone(), seat, &mv, &random(1), &mut Vec::new()).unwrap();
                }
                Leopard::view(&state, Viewer::Everything);
            }
        }
    }
}
