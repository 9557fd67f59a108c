//! One test or more for each rule, from small explicit states; the fixtures and the laws have files of their own.

mod fixtures;
mod laws;
mod table;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::field::Cell;
use super::*;
use crate::rulesets::Illegal as _;
use crate::rulesets::cards::DECK;
use table::*;

#[test]
fn c01_only_the_seat_to_act_moves_and_turns_go_clockwise() {
    let mut state = table_for(3, &[(0, 0, &["cat-flow"])], &["cat-flower"]);
    assert_eq!(moves_of(&state, 1), []);
    let error = Q::apply(&mut state, 1, &place("cat-flower", 1, 0), &chance(), &mut Vec::new()).unwrap_err();
    assert_eq!((error, error.rule()), (Illegal::NotToMove, "C1"));
    for next in [1, 2, 0] {
        let mv = moves_of(&state, state.turn)[0];
        assert_eq!(play(&mut state, mv).last(), Some(&Event::TurnPassed { seat: next }));
    }
    // Seats that do not exist wait for ever.
    assert_eq!(moves_of(&state, 255), []);
    assert!(Q::apply(&mut state, 255, &Move::Pass {}, &chance(), &mut Vec::new()).is_err());
}

#[test]
fn c03_equal_cards_are_one_move() {
    let mut state = table(&[(0, 0, &["cat-flow"])], &["cat-flower", "cat-flower"]);
    let placed = |mv: &&Move| matches!(mv, Move::Place { card: c, .. } if *c == card("cat-flower"));
    assert_eq!(moves_of(&state, 0).iter().filter(placed).count(), 8);
    play(&mut state, place("cat-flower", 1, 0));
    assert_eq!(state.players[0].hand.cards().filter(|c| *c == card("cat-flower")).count(), 1);
}

#[test]
fn q01_there_are_three_keys_of_each_symbol() {
    let state = table_for(4, &[], &[]);
    let json = serde_json::to_value(Q::view(&state, Viewer::Spectator)).unwrap();
    assert_eq!(json["key_supply"].as_object().unwrap().len(), 12);
    assert!(json["key_supply"].as_object().unwrap().values().all(|left| *left == 3));
}

#[test]
fn q02_six_cards_each_and_the_rest_is_the_deck() {
    for seats in 2..=4 {
        let options = Q::resolve(&Options::default(), seats).unwrap();
        let state = Q::setup(&options, seats, &chance());
        assert_eq!(state.check(), Ok(()));
        assert!(state.players.iter().all(|player| player.hand.len() == 6));
        assert_eq!(state.deck.len(), DECK - 6 * usize::from(seats));
        assert_eq!((state.turn, state.turns_taken, state.last_turns_left), (chance().lot(seats), 0, None));
    }
}

#[test]
fn q03_the_very_first_card_goes_to_the_origin() {
    let mut state = table(&[], &["cat-flow"]);
    let faces = state.players[0].hand.faces().count();
    let expected: Vec<Move> = state.players[0].hand.faces().map(|card| Move::Place { card, x: 0, y: 0 }).collect();
    assert_eq!((moves_of(&state, 0), expected.len()), (expected.clone(), faces));
    for (x, y) in [(1, 0), (0, -1), (5, 5), (i8::MIN, i8::MAX)] {
        assert_eq!(refused(&state, place("cat-flow", x, y)), Illegal::FirstCell);
    }
    assert_eq!(refused(&state, cover("cat-flow", 0, 0)).rule(), "Q6");
    assert_eq!(refused(&state, swap("cat-flow", 0, 0)).rule(), "Q7");
    play(&mut state, place("cat-flow", 0, 0));
    assert_eq!(state.field.top(Cell::ORIGIN), Some(card("cat-flow")));
}

/// The cells where a card may be placed, as (x, y).
fn open(state: &State) -> BTreeSet<(i8, i8)> {
    state.field.open().iter().map(|cell| (cell.x, cell.y)).collect()
}

#[test]
fn q03_the_field_is_five_wide_and_five_high_whichever_way_it_grows() {
    // Four cells in a line in each of the four ways from the origin: one more fits at either end.
    for (dx, dy) in [(1, 0), (-1, 0), (0, 1), (0, -1)] {
        let codes = ["cat-flow", "cat-flower", "cat-figure", "cat-eclipse", "cat-halberd"];
        let line: Vec<(i8, i8, &[&str])> =
            codes.iter().zip(0..).map(|(code, i)| (i * dx, i * dy, std::slice::from_ref(code))).collect();
        let four = table(&line[..4], &["gull-flow"]);
        assert!(open(&four).is_superset(&[(-dx, -dy), (4 * dx, 4 * dy)].into()));
        // With the fifth the width is used up, but not the height.
        let five = table(&line, &["gull-flow"]);
        let beside = |side: i8| (0..5).map(move |i| (i * dx + side * dy, i * dy + side * dx));
        assert_eq!(open(&five), beside(1).chain(beside(-1)).collect());
        for i in [-1, 5] {
            let error = refused(&five, place("gull-flow", i * dx, i * dy));
            assert_eq!((error, error.rule()), (Illegal::TooFar, "Q3"));
        }
    }
}

#[test]
fn q03_coordinates_out_of_reach_are_refused() {
    let state = table(&[(0, 0, &["cat-flow"])], &["cat-flower"]);
    for (x, y) in [(5, 0), (0, -5), (i8::MIN, i8::MIN), (i8::MAX, i8::MAX), (-128, 127)] {
        assert_eq!(refused(&state, place("cat-flower", x, y)).rule(), "Q3");
        assert_eq!(refused(&state, cover("cat-flower", x, y)).rule(), "Q6");
        assert_eq!(refused(&state, swap("cat-flower", x, y)).rule(), "Q7");
    }
}

#[test]
fn q03_the_two_edges_of_the_board_do_not_touch() {
    // The field reaches as far down as it can; the cells at the top of the board's next column are no neighbours.
    let column: [(i8, i8, &[&str]); 5] = [
        (0, 0, &["cat-flow"]),
        (0, 1, &["cat-flower"]),
        (0, 2, &["cat-figure"]),
        (0, 3, &["cat-eclipse"]),
        (0, 4, &["cat-halberd"]),
    ];
    let state = table(&column, &["gull-flow"]);
    assert_eq!(refused(&state, place("gull-flow", 1, -4)), Illegal::TooFar);
    assert!(open(&state).iter().all(|(x, y)| x.abs() == 1 && (0..=4).contains(y)));
}

#[test]
fn q04_a_card_from_the_hand_is_played() {
    let state = table(&[(0, 0, &["cat-flow"])], &["cat-flower"]);
    assert!(!state.players[0].hand.contains(card("cat-eclipse")));
    for mv in [place("cat-eclipse", 1, 0), cover("cat-eclipse", 0, 0), swap("cat-eclipse", 0, 0)] {
        assert_eq!(refused(&state, mv).rule(), "Q4");
    }
}

#[test]
fn q05_a_placed_card_touches_another_along_a_side_or_at_a_corner() {
    let state = table(&[(0, 0, &["cat-flow"])], &["gull-flower"]);
    let around = (-1..=1).flat_map(|x| (-1..=1).map(move |y| (x, y))).filter(|cell| *cell != (0, 0));
    assert_eq!(open(&state), around.collect());
    assert_eq!(refused(&state, place("gull-flower", 2, 0)), Illegal::Apart);
    assert_eq!(refused(&state, place("gull-flower", 0, 0)), Illegal::Occupied);
    assert_eq!((Illegal::Apart.rule(), Illegal::Occupied.rule()), ("Q5", "Q5"));
}

#[test]
fn q06_a_card_covers_one_with_which_it_shares_a_symbol() {
    let mut state = table(&[(0, 0, &["gull-halberd", "cat-flow"])], &["cat-flower", "gull-flow", "gull-halberd"]);
    // Only the top card counts: the gull under it does not.
    assert_eq!(refused(&state, cover("gull-halberd", 0, 0)), Illegal::CoversUnlike);
    assert_eq!(refused(&state, cover("cat-flower", 1, 0)), Illegal::NothingToCover);
    assert_eq!((Illegal::CoversUnlike.rule(), Illegal::NothingToCover.rule()), ("Q6", "Q6"));
    let events = play(&mut state, cover("cat-flower", 0, 0));
    assert_eq!(events[0], Event::CardPlayed { seat: 0, card: card("cat-flower"), x: 0, y: 0 });
    let stack = ["gull-halberd", "cat-flow", "cat-flower"].map(card).into_iter().collect();
    assert_eq!(state.field.stacks(), [(Cell::ORIGIN, stack)]);
}

#[test]
fn q07_a_swap_takes_the_top_card_into_the_hand() {
    let mut state = table(&[(0, 0, &["gull-halberd", "cat-flow"])], &["gull-flow", "gull-halberd"]);
    assert_eq!(refused(&state, swap("gull-halberd", 0, 0)), Illegal::SwapsUnlike);
    assert_eq!(refused(&state, swap("gull-flow", -1, 0)), Illegal::NothingToSwap);
    assert_eq!((Illegal::SwapsUnlike.rule(), Illegal::NothingToSwap.rule()), ("Q7", "Q7"));
    let events = play(&mut state, swap("gull-flow", 0, 0));
    assert_eq!(
        events,
        [
            Event::CardTaken { seat: 0, card: card("cat-flow"), x: 0, y: 0 },
            Event::CardPlayed { seat: 0, card: card("gull-flow"), x: 0, y: 0 },
            Event::TurnPassed { seat: 1 },
        ]
    );
    assert_eq!(state.field.stacks(), [(Cell::ORIGIN, ["gull-halberd", "gull-flow"].map(card).into_iter().collect())]);
    assert!(state.players[0].hand.contains(card("cat-flow")) && !state.players[0].hand.contains(card("gull-flow")));
}

#[test]
fn q07_a_card_can_be_swapped_for_its_equal() {
    let mut state = table(&[(0, 0, &["gull-flow", "cat-flow"])], &["cat-flow"]);
    let before = state.clone();
    play(&mut state, swap("cat-flow", 0, 0));
    assert_eq!((&state.players, &state.field), (&before.players, &before.field));
}

#[test]
fn q08_place_and_cover_draw_the_top_card_and_swap_does_not() {
    let start = table(&[(0, 0, &["cat-flow"])], &["cat-flower"]);
    let top = *start.deck.last().unwrap();
    for (mv, draws) in [(place("cat-flower", 1, 1), 1), (cover("cat-flower", 0, 0), 1), (swap("cat-flower", 0, 0), 0)] {
        let mut state = start.clone();
        let events = play(&mut state, mv);
        assert_eq!(state.players[0].hand.len(), 6);
        assert_eq!(state.deck.len(), start.deck.len() - draws);
        assert_eq!(events.contains(&Event::CardDrawn { seat: 0, card: Some(top) }), draws == 1);
    }
}

#[test]
fn q08_a_drawn_card_is_shown_to_the_drawer_only() {
    let event = Event::CardDrawn { seat: 1, card: Some(card("cat-flow")) };
    let hidden = Event::CardDrawn { seat: 1, card: None };
    assert_eq!(Q::event_view(&event, Viewer::Seat(1)), event);
    assert_eq!(Q::event_view(&event, Viewer::Everything), event);
    assert_eq!(Q::event_view(&event, Viewer::Seat(0)), hidden);
    assert_eq!(Q::event_view(&event, Viewer::Spectator), hidden);
    assert_eq!(serde_json::to_value(hidden).unwrap(), json!({"type": "card_drawn", "seat": 1, "card": null}));
}

#[test]
fn q09_three_in_a_row_with_the_card_just_played_give_a_key() {
    let row: [(i8, i8, &[&str]); 2] = [(0, 0, &["cat-flow"]), (2, 0, &["cat-flower"])];
    let column: [(i8, i8, &[&str]); 2] = [(0, 0, &["gull-flow"]), (0, -1, &["skull-flow"])];
    // In the middle of a run (with a bridge that shows another symbol), and at its end.
    let bridge: (i8, i8, &[&str]) = (1, 0, &["skull-figure"]);
    let mut state = table(&[row[0], bridge, row[1]], &["cat-figure"]);
    assert_eq!(keys_gained(&play(&mut state, cover("cat-figure", 1, 0))), ["cat"]);
    assert_eq!(state.players[0].keys, keys(&["cat"]));
    let mut state = table(&column, &["cat-flow"]);
    assert_eq!(keys_gained(&play(&mut state, place("cat-flow", 0, -2))), ["flow"]);
    // Two are no run, and a gap breaks it.
    let mut state = table(&[row[0], bridge, row[1]], &["cat-figure"]);
    assert_eq!(keys_gained(&play(&mut state, place("cat-figure", 3, 0))), [""; 0]);
}

#[test]
fn q09_a_run_that_lacks_the_card_just_played_gives_nothing() {
    let run: [(i8, i8, &[&str]); 3] = [(0, 0, &["cat-flow"]), (1, 0, &["cat-flower"]), (2, 0, &["cat-figure"])];
    let mut state = table(&run, &["cat-eclipse", "gull-flow"]);
    assert_eq!(keys_gained(&play(&mut state.clone(), place("cat-eclipse", 1, 1))), [""; 0]);
    // Nor does a card that breaks the run, but one that renews it does.
    assert_eq!(keys_gained(&play(&mut state.clone(), cover("gull-flow", 0, 0))), [""; 0]);
    assert_eq!(keys_gained(&play(&mut state, swap("cat-eclipse", 0, 0))), ["cat"]);
}

#[test]
fn q09_both_symbols_of_a_card_can_give_a_key() {
    let field: [(i8, i8, &[&str]); 4] =
        [(0, 0, &["cat-halberd"]), (1, 0, &["cat-figure"]), (2, 1, &["gull-flow"]), (2, 2, &["skull-flow"])];
    let mut state = table(&field, &["cat-flow"]);
    assert_eq!(keys_gained(&play(&mut state, place("cat-flow", 2, 0))), ["cat", "flow"]);
    let json = serde_json::to_value(Q::view(&state, Viewer::Spectator)).unwrap();
    assert_eq!(json["seats"][0]["keys"], json!(["cat", "flow"]));
    assert_eq!((&json["key_supply"]["cat"], &json["key_supply"]["gull"]), (&json!(2), &json!(3)));
}

#[test]
fn q09_a_player_has_one_key_of_a_symbol_and_there_is_no_fourth() {
    let field: [(i8, i8, &[&str]); 2] = [(0, 0, &["cat-halberd"]), (1, 0, &["cat-figure"])];
    let start = table_for(4, &field, &["cat-flow"]);
    let gained = |holders: &[usize]| {
        let mut state = start.clone();
        holders.iter().for_each(|seat| state.players[*seat].keys = keys(&["cat"]));
        keys_gained(&play(&mut state, place("cat-flow", 2, 0)))
    };
    assert_eq!(gained(&[1, 2]), ["cat"]);
    assert_eq!(gained(&[0]), [""; 0]);
    assert_eq!(gained(&[1, 2, 3]), [""; 0]);
}

#[test]
fn q09_diagonal_runs_count_by_option_only() {
    let falling: [(i8, i8, &[&str]); 2] = [(0, 0, &["cat-halberd"]), (1, 1, &["cat-figure"])];
    let rising: [(i8, i8, &[&str]); 2] = [(0, 0, &["cat-halberd"]), (1, -1, &["cat-figure"])];
    for (field, (x, y)) in [(falling, (-1, -1)), (falling, (2, 2)), (rising, (-1, 1)), (rising, (2, -2))] {
        let mut state = table(&field, &["cat-flow"]);
        assert_eq!(keys_gained(&play(&mut state.clone(), place("cat-flow", x, y))), [""; 0]);
        state.diagonals = true;
        assert_eq!(keys_gained(&play(&mut state, place("cat-flow", x, y))), ["cat"]);
    }
}

/// A full field of 25 stacks of cards with a skull or a cat and without the flower; the deck is short.
fn full_field(hand: &[&str]) -> State {
    let lower = ["horseman", "halberd", "figure", "flow", "eclipse"];
    let codes: Vec<String> = ["skull", "cat", "gull"].iter().flat_map(|u| lower.map(|l| format!("{u}-{l}"))).collect();
    let codes: Vec<&str> = codes.iter().chain(&codes).map(String::as_str).take(25).collect();
    // The third row holds the origin.
    let cells = [0, -1, 1, -2, 2].into_iter().flat_map(|y| (-2..=2).map(move |x| (x, y)));
    let stacks: Vec<(i8, i8, &[&str])> =
        cells.zip(&codes).map(|((x, y), code)| (x, y, std::slice::from_ref(code))).collect();
    table(&stacks, hand)
}

#[test]
fn q10_a_player_may_pass_only_when_nothing_can_be_played() {
    let six = [
        "mechanism-flower",
        "mechanism-flower",
        "profile-flower",
        "profile-flower",
        "cathedral-flower",
        "cathedral-flower",
    ];
    let mut state = full_field(&six);
    assert_eq!(moves_of(&state, 0), [Move::Pass {}]);
    let before = state.clone();
    assert_eq!(play(&mut state, Move::Pass {}), [Event::TurnPassed { seat: 1 }]);
    assert_eq!((&state.players, &state.deck, &state.field), (&before.players, &before.deck, &before.field));
    assert_eq!(state.turns_taken, before.turns_taken + 1);
    // One card that covers something is enough, and so is a free cell.
    let state = full_field(&["skull-flower"]);
    assert_eq!((refused(&state, Move::Pass {}), Illegal::CanPlay.rule()), (Illegal::CanPlay, "Q10"));
    assert!(moves_of(&state, 0).iter().all(|mv| matches!(mv, Move::Cover { .. } | Move::Swap { .. })));
    let state = table(&[(0, 0, &["cat-flow"])], &six);
    assert_eq!(refused(&state, Move::Pass {}), Illegal::CanPlay);
}

#[test]
fn q11_after_the_last_draw_everybody_has_one_more_turn_the_drawer_last() {
    let mut state = table_for(3, &[(0, 0, &["cat-flow"])], &["cat-flower", "cat-figure"]);
    shorten_deck(&mut state, 1);
    let left = |state: &State| Q::view(state, Viewer::Spectator).last_turns_left;
    assert_eq!(left(&state), None);
    let events = play(&mut state, place("cat-flower", 1, 0));
    assert!(events.contains(&Event::LastTurnsBegun { seat: 0, turns: 3 }));
    assert_eq!(events.last(), Some(&Event::TurnPassed { seat: 1 }));
    for (seat, before) in [(1, 3), (2, 2), (0, 1)] {
        assert_eq!((state.to_act(), left(&state)), (Some(seat), Some(before)));
        let first = moves_of(&state, seat)[0];
        assert!(matches!(first, Move::Place { .. }));
        let events = play(&mut state, first);
        assert!(!events.iter().any(|event| matches!(event, Event::CardDrawn { .. } | Event::LastTurnsBegun { .. })));
        assert_eq!(state.players[usize::from(seat)].hand.len(), 5);
    }
    assert_eq!((state.to_act(), left(&state), state.end()), (None, Some(0), Some(EndReason::Completed)));
    assert_eq!(moves_of(&state, 1), []);
}

#[test]
fn q11_a_swap_does_not_begin_the_last_turns_but_counts_as_one() {
    let mut state = table(&[(0, 0, &["cat-flow"])], &["cat-flower", "cat-figure"]);
    shorten_deck(&mut state, 1);
    play(&mut state, swap("cat-flower", 0, 0));
    assert_eq!((state.deck.len(), state.last_turns_left), (1, None));
    let mv = moves_of(&state, 1)[0];
    play(&mut state, mv);
    assert_eq!(state.last_turns_left, Some(2));
    play(&mut state, swap("cat-figure", 0, 0));
    assert_eq!((state.players[0].hand.len(), state.last_turns_left), (6, Some(1)));
    let mv = *moves_of(&state, 1).last().unwrap();
    let events = play(&mut state, mv);
    assert_eq!(events.last(), Some(&Event::GameFinished { reason: EndReason::Completed }));
    let json = serde_json::to_value(events.last()).unwrap();
    assert_eq!(json, json!({"type": "game_finished", "reason": "completed"}));
}

#[test]
fn q12_most_keys_then_the_senior_key_then_the_next() {
    let mut state = table_for(4, &[], &[]);
    let mut ranks = |held: [&[&str]; 4]| {
        for (player, codes) in state.players.iter_mut().zip(held) {
            player.keys = keys(codes);
        }
        Q::ranking(&state).iter().map(|line| (line.seat, line.rank, line.score, line.won)).collect::<Vec<_>>()
    };
    // Number before seniority.
    let ranked = ranks([&["mechanism"], &["flow", "eclipse"], &[], &["profile"]]);
    assert_eq!(ranked, [(1, 1, 2, true), (0, 2, 1, false), (3, 3, 1, false), (2, 4, 0, false)]);
    // The most senior Key, then the next; equal sets share the rank.
    let ranked = ranks([&["profile", "eclipse"], &["mechanism", "flow"], &["profile", "cat"], &["mechanism", "flow"]]);
    assert_eq!(ranked, [(1, 1, 2, true), (3, 1, 2, true), (2, 3, 2, false), (0, 4, 2, false)]);
}

#[test]
fn q13_the_turn_limit_ends_the_game_at_once() {
    let mut state = table(&[(0, 0, &["cat-flow"])], &["cat-flower"]);
    state.turn_limit = Some(state.turns_taken + 2);
    let mv = swap("cat-flower", 0, 0);
    assert_eq!(play(&mut state, mv).last(), Some(&Event::TurnPassed { seat: 1 }));
    let mv = moves_of(&state, 1)[0];
    let finished = Event::GameFinished { reason: EndReason::TurnLimit };
    assert_eq!(play(&mut state, mv).last(), Some(&finished));
    assert_eq!((state.to_act(), state.end()), (None, Some(EndReason::TurnLimit)));
}

#[test]
fn c04_a_normal_end_in_the_last_turn_of_the_limit_is_a_normal_end() {
    let mut state = table(&[(0, 0, &["cat-flow"])], &["cat-flower"]);
    shorten_deck(&mut state, 1);
    state.turn_limit = Some(state.turns_taken + 3);
    for _ in 0..3 {
        let mv = moves_of(&state, state.turn)[0];
        play(&mut state, mv);
    }
    assert_eq!(state.end(), Some(EndReason::Completed));
}

#[test]
fn c04_options_are_resolved_and_checked() {
    let read = |text| serde_json::from_str::<Options>(text);
    let resolved = |text, seats| serde_json::to_value(Q::resolve(&read(text).unwrap(), seats).unwrap()).unwrap();
    assert_eq!(resolved("{}", 3), json!({"turn_limit": 300, "diagonals": false}));
    assert_eq!(resolved(r#"{"turn_limit": null}"#, 2), json!({"turn_limit": null, "diagonals": false}));
    assert!(read(r#"{"diagonals": null}"#).is_err());
    assert_eq!(
        resolved(r#"{"turn_limit": 10000, "diagonals": true}"#, 2),
        json!({"turn_limit": 10000, "diagonals": true})
    );
    // Resolving again changes nothing, whatever the number of seats.
    let once = Q::resolve(&Options::default(), 2).unwrap();
    assert_eq!(Q::resolve(&once, 4).unwrap(), once);
    for text in [r#"{"turn_limit": 0}"#, r#"{"turn_limit": 10001}"#] {
        assert_eq!(Q::resolve(&read(text).unwrap(), 2).unwrap_err()[0].option, "turn_limit");
    }
    for text in [r#"{"turn_limit": "9"}"#, r#"{"turn_limit": -1}"#, r#"{"diagonals": 1}"#, r#"{"diagonal": true}"#] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn moves_are_read_as_the_rules_text_writes_them() {
    let read = |value: Value| serde_json::from_value::<Move>(value);
    let fields = |kind: &str| json!({"type": kind, "card": "cat-flow", "x": 0, "y": -1});
    assert_eq!(read(fields("place")).unwrap(), place("cat-flow", 0, -1));
    assert_eq!(read(fields("cover")).unwrap(), cover("cat-flow", 0, -1));
    assert_eq!(read(fields("swap")).unwrap(), swap("cat-flow", 0, -1));
    assert_eq!(read(json!({"type": "pass"})).unwrap(), Move::Pass {});
    assert_eq!(serde_json::to_value(Move::Pass {}).unwrap(), json!({"type": "pass"}));
    for value in [
        json!({"type": "pass", "card": "cat-flow"}),
        json!({"type": "place", "card": "flow-cat", "x": 0, "y": 0}),
        json!({"type": "place", "card": "cat-flow", "x": 0}),
        json!({"type": "place", "card": "cat-flow", "x": 128, "y": 0}),
        json!({"type": "place", "card": "cat-flow", "x": 0, "y": 0, "z": 0}),
    ] {
        assert!(read(value.clone()).is_err(), "{value}");
    }
}
