//! One test or more for every rule, on small tables laid out by hand.
//!
//! They use the pillars: seven columns, and a card at slot s lies half under that at slot s + 7. Rows alternate face down
//! (slots 0–6, 14–20…) and face up (7–13, 21–27…).
//!
//! Long, since it has every rule of the game in the order of the rules, which is how one looks for them.

use serde_json::json;

use super::*;
use crate::rulesets::{Illegal, Ruleset};

/// A table with these cards in the sigil and nothing else, in the turn of seat 0.
fn table(seats: u8, sigil: &[(u8, &str)]) -> State {
    let options = Siggil::resolve(&Options::default(), seats).unwrap();
    let mut state = Siggil::setup(&options, seats, &Random::new([0; 32]));
    state.layout = Layout::from_code("pillars").unwrap();
    let cards = sigil.iter().map(|(slot, code)| (*slot, SigilCard::from_code(code).unwrap()));
    let mut face_up = state.layout.table().face_up;
    // What lies free has been turned up (S3).
    for (slot, _) in sigil {
        let covered = sigil.iter().any(|(above, _)| *above == slot + 7);
        face_up |= u64::from(!covered) << slot;
    }
    state.sigil = state::Sigil::new(cards, face_up);
    state.turn = 0;
    state.free = Default::default();
    state
}

fn spirit(code: &str) -> Spirit {
    Spirit::from_code(code).unwrap()
}

fn cards(codes: &[&str]) -> CardSet {
    codes.iter().map(|code| Card::from_code(code).unwrap()).collect()
}

/// Puts cards into a hand.
fn give(state: &mut State, seat: usize, codes: &[&str]) {
    state.hands[seat] = state.hands[seat].or(cards(codes));
}

/// Frees spirits.
fn free(state: &mut State, codes: &[&str]) {
    codes.iter().for_each(|code| state.free.insert(spirit(code)));
}

/// Lays a set with its spirit on it before a seat; what it lay on before stays.
fn lay(state: &mut State, owner: Seat, code: &str, by: By, codes: &[&str]) {
    state.held_on[spirit(code).index()] = Some(state.sets.len() as u8);
    state.sets.push(state::LaidSet { owner, spirit: spirit(code), by, cards: cards(codes) });
}

fn capture(code: &str, codes: &[&str], set: Option<u8>) -> Move {
    Move::Capture { spirit: spirit(code), cards: cards(codes), set }
}

/// Plays a legal move of the seat whose turn it is.
fn play(state: &mut State, mv: Move) -> Vec<Event> {
    let mut events = Vec::new();
    let mut listed = Vec::new();
    Siggil::legal_moves(state, state.turn, &mut listed);
    assert!(listed.contains(&mv), "{mv:?} is not among {listed:?}");
    moves::apply(state, state.turn, &mv, &mut events).unwrap();
    events
}

/// The rule by which a move of the seat whose turn it is is refused; state and events stay as they were.
fn refused(state: &State, mv: Move) -> &'static str {
    let (mut copy, mut events, mut listed) = (state.clone(), Vec::new(), Vec::new());
    let error = moves::apply(&mut copy, state.turn, &mv, &mut events).unwrap_err();
    assert_eq!((&copy, events.len()), (state, 0));
    Siggil::legal_moves(state, state.turn, &mut listed);
    assert!(!listed.contains(&mv));
    error.rule()
}

fn ranks(state: &State) -> Vec<(Seat, u8, i32, bool)> {
    Siggil::ranking(state).iter().map(|line| (line.seat, line.rank, line.score, line.won)).collect()
}

const FINISHED: Event = Event::GameFinished { reason: EndReason::Completed };

#[test]
fn c01_only_the_seat_whose_turn_it_is_moves_and_nobody_after_the_end() {
    let mut state = table(2, &[(0, "leaf-1")]);
    let (mut events, mut listed) = (Vec::new(), Vec::new());
    let take = Move::Take { slot: 0 };
    assert_eq!(moves::apply(&mut state, 1, &take, &mut events), Err(NotAllowed::NotYourTurn));
    assert_eq!(moves::apply(&mut state, 255, &take, &mut events).unwrap_err().rule(), "C1");
    Siggil::legal_moves(&state, 1, &mut listed);
    assert!(listed.is_empty());
    play(&mut state, take);
    assert_eq!((Siggil::to_act(&state), refused(&state, take)), (None, "C1"));
}

#[test]
fn s02_the_options_are_written_out_and_difficulty_is_for_one_player() {
    let read = |text| serde_json::from_str::<Options>(text).unwrap();
    let resolved = |text, seats| Siggil::resolve(&read(text), seats).map(|o| serde_json::to_value(o).unwrap());
    assert_eq!(resolved("{}", 3).unwrap(), json!({"layout": "pyramids"}));
    assert_eq!(resolved("{}", 1).unwrap(), json!({"layout": "pyramids", "difficulty": "normal"}));
    let hard = r#"{"layout": "river", "difficulty": "hard"}"#;
    assert_eq!(resolved(hard, 1).unwrap(), json!({"layout": "river", "difficulty": "hard"}));
    assert_eq!(resolved(hard, 2).unwrap_err()[0].option, "difficulty");
    assert!(serde_json::from_str::<Options>(r#"{"difficulty": null}"#).is_err());
    assert!(serde_json::from_str::<Options>(r#"{"layout": null}"#).is_err());
    assert!(serde_json::from_str::<Options>(r#"{"layout": "spiral"}"#).is_err());
    assert!(serde_json::from_str::<Options>(r#"{"turn_limit": 3}"#).is_err());
}

#[test]
fn s03_only_a_card_on_which_no_other_lies_can_be_taken() {
    let state = table(2, &[(0, "leaf-1"), (7, "leaf-2"), (8, "leaf-3")]);
    let mut listed = Vec::new();
    Siggil::legal_moves(&state, 0, &mut listed);
    assert_eq!(listed, [Move::Take { slot: 7 }, Move::Take { slot: 8 }]);
    for slot in [0, 1, 56, 63, 64, 255] {
        assert_eq!(refused(&state, Move::Take { slot }), "S3");
    }
}

#[test]
fn s03_a_face_down_card_that_becomes_available_is_turned_up() {
    let mut state = table(2, &[(0, "leaf-1"), (7, "leaf-2"), (8, "leaf-3")]);
    assert_eq!(Siggil::view(&state, Viewer::Seat(0)).sigil[0].card, None);
    let events = play(&mut state, Move::Take { slot: 7 });
    let [leaf_1, leaf_2] = ["leaf-1", "leaf-2"].map(|code| Card::from_code(code).unwrap());
    assert_eq!(
        events,
        [
            Event::CardTaken { seat: 0, slot: 7, card: leaf_2 },
            Event::CardRevealed { seat: 0, slot: 0, card: leaf_1.into() },
            Event::TurnPassed { seat: 1 },
        ]
    );
    let view = Siggil::view(&state, Viewer::Spectator);
    assert_eq!((view.sigil[0].card, &view.available[..]), (Some(leaf_1.into()), &[0, 8][..]));
}

#[test]
fn s03_a_freed_spirit_can_free_another_one() {
    let mut state = table(2, &[(0, "leaf-1"), (7, "spirit:moon"), (14, "spirit:leaf"), (21, "leaf-2")]);
    let events = play(&mut state, Move::Take { slot: 21 });
    let (moon, leaf) = (spirit("moon"), spirit("leaf"));
    assert_eq!(
        events[1..],
        [
            Event::CardRevealed { seat: 0, slot: 14, card: leaf.into() },
            Event::SpiritFreed { seat: 0, slot: 14, spirit: leaf },
            Event::SpiritFreed { seat: 0, slot: 7, spirit: moon },
            Event::CardRevealed { seat: 0, slot: 0, card: Card::at(0).into() },
            Event::TurnPassed { seat: 1 },
        ]
    );
    assert_eq!(state.free.iter().collect::<Vec<_>>(), [leaf, moon]);
}

#[test]
fn s03_is_applied_to_the_new_layout_too() {
    let options = Options { layout: Layout::from_code("pillars"), difficulty: None };
    // In some deal two spirits lie on top of each other: the column then begins with its sixth card.
    let deals = (0..=255).map(|seed| Siggil::setup(&options, 2, &Random::new([seed; 32])));
    let cascade = |state: &State| (42..49).any(|slot| state.sigil.card(slot).is_none());
    let state = deals.into_iter().find(cascade).unwrap();
    assert!(state.free.len() >= 2 && state.check().is_ok());
    assert!(state.sigil.available(state.layout).any(|slot| (35..42).contains(&slot)));
}

#[test]
fn s04_taking_a_card_comes_first_and_is_mandatory() {
    let mut state = table(2, &[(0, "leaf-1"), (1, "leaf-2")]);
    free(&mut state, &["leaf"]);
    give(&mut state, 0, &["leaf-3", "leaf-4", "leaf-5"]);
    assert_eq!(refused(&state, Move::EndTurn {}), "S4");
    assert_eq!(refused(&state, capture("leaf", &["leaf-3", "leaf-4", "leaf-5"], None)), "S4");
    assert_eq!(refused(&state, Move::Discard { slot: 0 }), "S4");
    play(&mut state, Move::Take { slot: 0 });
    assert_eq!(state.hands[0], cards(&["leaf-1", "leaf-3", "leaf-4", "leaf-5"]));
    assert_eq!(refused(&state, Move::Take { slot: 1 }), "S8");
}

#[test]
fn s05_a_free_spirit_is_captured_with_exactly_three_of_its_family_or_its_number() {
    let mut state = table(3, &[(0, "moon-7"), (1, "leaf-7")]);
    free(&mut state, &["turtle"]);
    give(&mut state, 0, &["turtle-1", "turtle-2", "turtle-3", "turtle-4", "leaf-4", "moon-4", "leaf-5"]);
    play(&mut state, Move::Take { slot: 0 });
    assert_eq!(refused(&state, capture("turtle", &["turtle-1", "turtle-2"], None)), "S5");
    assert_eq!(refused(&state, capture("turtle", &["turtle-1", "turtle-2", "turtle-3", "turtle-4"], None)), "S5");
    assert_eq!(refused(&state, capture("turtle", &["turtle-1", "turtle-2", "leaf-4"], None)), "S5");
    assert_eq!(refused(&state, capture("turtle", &["turtle-1", "turtle-2", "turtle-7"], None)), "S4");
    assert_eq!(refused(&state, capture("turtle", &[], None)), "S5");
    assert_eq!(refused(&state, capture("moon", &["turtle-1", "turtle-2", "turtle-3"], None)), "S5");
    assert_eq!(refused(&state, capture("turtle", &["turtle-1", "turtle-2", "turtle-3"], Some(1))), "S7");

    // The card of the spirit's own family and number counts as either.
    let mut by_number = state.clone();
    let events = play(&mut by_number, capture("turtle", &["leaf-4", "turtle-4", "moon-4"], None));
    let (spirit, set, played) = (spirit("turtle"), 1, cards(&["leaf-4", "turtle-4", "moon-4"]));
    assert_eq!(events[0], Event::SpiritCaptured { seat: 0, spirit, from: None, set, by: By::Number, cards: played });
    assert_eq!(events[1..], [Event::TurnPassed { seat: 1 }]);
    play(&mut state, capture("turtle", &["turtle-1", "turtle-2", "turtle-4"], None));
    assert_eq!((state.sets[0].by, state.sets[0].owner), (By::Family, 0));
    assert_eq!(state.hands[0], cards(&["turtle-3", "leaf-4", "moon-4", "leaf-5", "moon-7"]));
    assert_eq!((state.free.len(), state.spirits_of(0).collect::<Vec<_>>()), (0, vec![spirit]));
}

#[test]
fn s05_in_a_game_of_four_sets_start_at_two() {
    let mut state = table(4, &[(0, "moon-7"), (1, "leaf-7")]);
    free(&mut state, &["leaf"]);
    give(&mut state, 0, &["leaf-1", "moon-1", "leaf-3", "root-1"]);
    play(&mut state, Move::Take { slot: 0 });
    assert_eq!(refused(&state, capture("leaf", &["leaf-1", "moon-1", "root-1"], None)), "S5");
    assert_eq!(refused(&state, capture("leaf", &["leaf-3", "moon-1"], None)), "S5");
    play(&mut state, capture("leaf", &["leaf-1", "moon-1"], None));
    assert_eq!(state.sets[0].by, By::Number);
}

#[test]
fn s06_a_held_spirit_is_captured_with_exactly_one_card_more_and_the_old_set_stays() {
    let mut state = table(2, &[(0, "moon-7"), (1, "leaf-7")]);
    lay(&mut state, 1, "leaf", By::Family, &["leaf-1", "leaf-2", "leaf-3"]);
    lay(&mut state, 0, "root", By::Family, &["root-1", "root-2", "root-3"]);
    give(
        &mut state,
        0,
        &["flame-1", "moon-1", "turtle-1", "shell-1", "feather-1", "root-4", "root-5", "root-6", "root-7"],
    );
    play(&mut state, Move::Take { slot: 0 });
    assert_eq!(refused(&state, capture("leaf", &["flame-1", "moon-1", "turtle-1"], None)), "S6");
    assert_eq!(
        refused(&state, capture("leaf", &["flame-1", "moon-1", "turtle-1", "shell-1", "feather-1"], None)),
        "S6"
    );
    assert_eq!(refused(&state, capture("leaf", &["flame-1", "moon-1", "turtle-1", "root-4"], None)), "S5");
    assert_eq!(refused(&state, capture("root", &["root-4", "root-5", "root-6", "root-7"], None)), "S6", "one's own");
    let events = play(&mut state, capture("leaf", &["flame-1", "moon-1", "turtle-1", "shell-1"], None));
    assert!(matches!(events[0], Event::SpiritCaptured { seat: 0, from: Some(1), set: 3, by: By::Number, .. }));
    let sets = Siggil::view(&state, Viewer::Spectator).seats[1].sets.clone();
    assert_eq!((sets[0].id, sets[0].cards.len(), sets[0].holds_spirit), (1, 3, false));
}

#[test]
fn s06_one_who_held_it_once_may_lay_a_new_set() {
    let mut state = table(4, &[(0, "moon-7"), (1, "leaf-7")]);
    lay(&mut state, 0, "leaf", By::Family, &["leaf-1", "leaf-2"]);
    lay(&mut state, 1, "leaf", By::Number, &["root-1", "moon-1", "flame-1"]);
    give(&mut state, 0, &["leaf-3", "leaf-4", "leaf-5", "leaf-6"]);
    play(&mut state, Move::Take { slot: 0 });
    play(&mut state, capture("leaf", &["leaf-3", "leaf-4", "leaf-5", "leaf-6"], None));
    assert_eq!((state.sets.len(), state.held_on[0]), (3, Some(2)));
}

#[test]
fn s07_a_lost_spirit_is_recaptured_by_adding_exactly_what_is_needed_of_the_sets_kind() {
    let mut state = table(2, &[(0, "moon-7"), (1, "leaf-7")]);
    lay(&mut state, 0, "leaf", By::Family, &["leaf-1", "leaf-2", "leaf-3"]);
    lay(&mut state, 0, "root", By::Family, &["root-2", "root-3", "root-4"]);
    lay(&mut state, 1, "leaf", By::Number, &["root-1", "moon-1", "flame-1", "shell-1"]);
    give(&mut state, 0, &["leaf-4", "leaf-5", "leaf-6", "turtle-1", "feather-1"]);
    play(&mut state, Move::Take { slot: 0 });
    assert_eq!(refused(&state, capture("leaf", &["leaf-4"], Some(1))), "S7", "too few");
    assert_eq!(refused(&state, capture("leaf", &["leaf-4", "leaf-5", "leaf-6"], Some(1))), "S7", "too many");
    assert_eq!(refused(&state, capture("leaf", &["turtle-1", "feather-1"], Some(1))), "S7", "of the number");
    for other in [0, 2, 3, 4, 255] {
        assert_eq!(refused(&state, capture("leaf", &["leaf-4", "leaf-5"], Some(other))), "S7", "not that set");
    }
    assert_eq!(refused(&state, capture("leaf", &["leaf-4", "leaf-5"], None)), "S6");
    let events = play(&mut state, capture("leaf", &["leaf-4", "leaf-6"], Some(1)));
    let added = cards(&["leaf-4", "leaf-6"]);
    let (spirit, by) = (spirit("leaf"), By::Family);
    assert_eq!(events[0], Event::SpiritCaptured { seat: 0, spirit, from: Some(1), set: 1, by, cards: added });
    assert_eq!((state.sets[0].cards.len(), state.sets.len(), state.held_on[0]), (5, 3, Some(0)));
    assert_eq!(state.hands[0], cards(&["leaf-5", "turtle-1", "feather-1", "moon-7"]));
}

#[test]
fn s08_the_turn_ends_by_itself_when_there_is_nothing_to_capture() {
    let mut state = table(2, &[(0, "leaf-3"), (1, "leaf-7"), (2, "leaf-4")]);
    free(&mut state, &["leaf"]);
    give(&mut state, 0, &["leaf-1"]);
    give(&mut state, 1, &["leaf-2", "leaf-5"]);
    let events = play(&mut state, Move::Take { slot: 0 });
    assert_eq!((events.last(), state.phase), (Some(&Event::TurnPassed { seat: 1 }), Some(Phase::Take)));
    // The card just taken makes the capture possible: the player may still decline.
    play(&mut state, Move::Take { slot: 1 });
    assert_eq!((state.turn, state.phase), (1, Some(Phase::Capture)));
    assert_eq!(play(&mut state, Move::EndTurn {}), [Event::TurnPassed { seat: 0 }]);
}

#[test]
fn s08_one_capture_in_a_turn() {
    let mut state = table(2, &[(0, "moon-7"), (1, "leaf-7")]);
    free(&mut state, &["leaf", "root"]);
    give(&mut state, 0, &["leaf-1", "leaf-2", "leaf-3", "root-1", "root-2", "root-3"]);
    play(&mut state, Move::Take { slot: 0 });
    play(&mut state, capture("leaf", &["leaf-1", "leaf-2", "leaf-3"], None));
    assert_eq!((state.turn, state.phase), (1, Some(Phase::Take)));
}

#[test]
fn s09_five_four_or_three_spirits_win_at_once() {
    for (seats, to_win) in [(2, 5), (3, 4), (4, 3)] {
        let mut state = table(seats, &[(0, "moon-7"), (1, "leaf-7")]);
        for code in &["shell", "turtle", "flame", "moon"][..to_win - 2] {
            lay(&mut state, 0, code, By::Family, &[]);
        }
        free(&mut state, &["leaf", "root"]);
        give(&mut state, 0, &["leaf-1", "leaf-2", "leaf-3", "root-1", "root-2", "root-3"]);
        let first = &["leaf-1", "leaf-2", "leaf-3"][..if seats == 4 { 2 } else { 3 }];
        let second = &["root-1", "root-2", "root-3"][..first.len()];
        play(&mut state, Move::Take { slot: 0 });
        play(&mut state, capture("leaf", first, None));
        assert!(state.phase.is_some(), "one less goes on");
        (state.turn, state.phase) = (0, Some(Phase::Capture));
        let events = play(&mut state, capture("root", second, None));
        assert_eq!((events.last(), state.phase), (Some(&FINISHED), None));
        assert_eq!(ranks(&state)[0], (0, 1, to_win as i32, true));
    }
}

#[test]
fn s10_the_game_ends_with_the_turn_in_which_the_last_card_was_taken_its_capture_included() {
    let mut state = table(2, &[(0, "leaf-3")]);
    free(&mut state, &["leaf"]);
    let mut without = state.clone();
    assert_eq!(play(&mut without, Move::Take { slot: 0 }).last(), Some(&FINISHED));
    give(&mut state, 0, &["leaf-1", "leaf-2"]);
    play(&mut state, Move::Take { slot: 0 });
    assert_eq!(state.phase, Some(Phase::Capture));
    let events = play(&mut state, capture("leaf", &["leaf-1", "leaf-2", "leaf-3"], None));
    assert_eq!(events[1..], [FINISHED]);
    assert_eq!(ranks(&state), [(0, 1, 1, true), (1, 2, 0, false)]);
}

#[test]
fn s10_a_cascade_can_empty_the_sigil() {
    let mut state = table(2, &[(0, "spirit:root"), (7, "spirit:leaf"), (14, "leaf-3")]);
    give(&mut state, 0, &["root-1", "root-2", "root-3"]);
    play(&mut state, Move::Take { slot: 14 });
    assert!(state.sigil.is_empty() && state.free.len() == 2);
    // The spirit that came last can still be captured.
    assert_eq!(play(&mut state, capture("root", &["root-1", "root-2", "root-3"], None)).last(), Some(&FINISHED));
}

#[test]
fn s10_equal_spirits_are_decided_by_fewest_cards_in_hand() {
    let mut state = table(3, &[]);
    lay(&mut state, 0, "leaf", By::Family, &["leaf-1", "leaf-2", "leaf-3"]);
    lay(&mut state, 1, "root", By::Family, &["root-1", "root-2", "root-3"]);
    lay(&mut state, 2, "moon", By::Family, &["moon-1", "moon-2", "moon-3"]);
    give(&mut state, 0, &["flame-1", "flame-2"]);
    give(&mut state, 1, &["flame-3"]);
    give(&mut state, 2, &["flame-4"]);
    assert_eq!(ranks(&state), [(1, 1, 1, true), (2, 1, 1, true), (0, 3, 1, false)]);
}

#[test]
fn s11_alone_a_spirit_follows_after_every_seven_cards() {
    for layout in Layout::all() {
        for seed in 0..4 {
            let options = Options { layout: Some(layout), difficulty: None };
            let state = Siggil::setup(&options, 1, &Random::new([seed; 32]));
            for slot in 0..56 {
                let card = state.sigil.card(slot);
                assert!(card.is_none_or(|card| card.spirit().is_some() == (slot % 8 == 7)));
            }
            assert!(state.free.len() <= 2, "no release before the first turn");
            assert_eq!((state.phase, state.check()), (Some(Phase::Discard), Ok(())));
        }
    }
}

#[test]
fn s12_alone_one_discards_then_takes_then_may_capture() {
    let mut state = table(1, &[(0, "leaf-1"), (1, "leaf-2"), (2, "leaf-3")]);
    free(&mut state, &["root"]);
    lay(&mut state, 0, "flame", By::Family, &["flame-1", "flame-2", "flame-3"]);
    let discarded = ["moon-1", "moon-2", "moon-3", "moon-4", "moon-5"].map(|code| Card::from_code(code).unwrap());
    state.discard = discarded.into_iter().collect();
    give(&mut state, 0, &["root-1", "root-2"]);
    assert_eq!(refused(&state, Move::Take { slot: 0 }), "S12");
    assert_eq!(refused(&state, Move::EndTurn {}), "S12");
    let events = play(&mut state, Move::Discard { slot: 0 });
    assert_eq!(events, [Event::CardDiscarded { seat: 0, slot: 0, card: Card::at(0) }]);
    assert_eq!((state.phase, state.discard.last()), (Some(Phase::Take), Some(&Card::at(0))));
    assert_eq!(refused(&state, Move::Discard { slot: 1 }), "S4");
    let mut declined = state.clone();
    // Nothing to capture: the next turn is the same seat's.
    let events = play(&mut declined, Move::Take { slot: 1 });
    assert_eq!((events.last(), declined.phase), (Some(&Event::TurnPassed { seat: 0 }), Some(Phase::Discard)));
    give(&mut state, 0, &["root-3"]);
    state.discard.push(Card::from_code("moon-6").unwrap());
    play(&mut state, Move::Take { slot: 1 });
    assert_eq!(play(&mut state, Move::EndTurn {}), [Event::TurnPassed { seat: 0 }]);
}

#[test]
fn s12_no_take_when_the_discard_emptied_the_sigil_but_a_capture() {
    let mut state = table(1, &[(0, "spirit:leaf"), (7, "moon-1")]);
    let mut without = state.clone();
    assert_eq!(play(&mut without, Move::Discard { slot: 7 }).last(), Some(&FINISHED));
    give(&mut state, 0, &["leaf-1", "leaf-2", "leaf-3"]);
    free(&mut state, &["root"]);
    play(&mut state, Move::Discard { slot: 7 });
    assert_eq!(state.phase, Some(Phase::Capture));
    assert_eq!(play(&mut state, capture("leaf", &["leaf-1", "leaf-2", "leaf-3"], None)).last(), Some(&FINISHED));
}

#[test]
fn s12_hard_needs_sets_of_four() {
    let mut state = table(1, &[(0, "moon-7"), (1, "leaf-7")]);
    (state.hard, state.phase) = (true, Some(Phase::Capture));
    free(&mut state, &["leaf", "root"]);
    give(&mut state, 0, &["leaf-1", "leaf-2", "leaf-3", "leaf-4"]);
    assert_eq!(refused(&state, capture("leaf", &["leaf-1", "leaf-2", "leaf-3"], None)), "S5");
    play(&mut state, capture("leaf", &["leaf-1", "leaf-2", "leaf-3", "leaf-4"], None));
}

#[test]
fn s13_a_fourth_free_spirit_makes_the_player_release_until_three_are_free() {
    // One discard frees two: five are free.
    let mut state = table(1, &[(0, "moon-7"), (7, "spirit:leaf"), (14, "spirit:root"), (21, "moon-1"), (22, "moon-2")]);
    free(&mut state, &["flame", "turtle", "shell"]);
    play(&mut state, Move::Discard { slot: 21 });
    assert_eq!((state.phase, state.free.len()), (Some(Phase::Release), 5));
    assert_eq!(refused(&state, Move::Take { slot: 22 }), "S13");
    assert_eq!(refused(&state, Move::Release { spirit: spirit("moon") }), "S13");
    // One that was freed just now may go.
    let events = play(&mut state, Move::Release { spirit: spirit("leaf") });
    assert_eq!(events, [Event::SpiritEscaped { seat: 0, spirit: spirit("leaf") }]);
    assert_eq!(state.phase, Some(Phase::Release));
    play(&mut state, Move::Release { spirit: spirit("flame") });
    assert_eq!((state.phase, state.free.len(), state.escaped.len()), (Some(Phase::Take), 3, 2));
    assert_eq!(refused(&state, Move::Release { spirit: spirit("root") }), "S4");
}

#[test]
fn s13_after_the_take_the_release_comes_before_the_capture() {
    let mut state = table(1, &[(0, "moon-7"), (7, "spirit:leaf"), (14, "moon-1"), (15, "moon-2")]);
    free(&mut state, &["flame", "turtle", "shell"]);
    give(&mut state, 0, &["leaf-1", "leaf-2", "leaf-3"]);
    state.discard = ["root-1", "root-2", "root-3"].map(|code| Card::from_code(code).unwrap()).into_iter().collect();
    play(&mut state, Move::Discard { slot: 15 });
    play(&mut state, Move::Take { slot: 14 });
    assert_eq!(state.phase, Some(Phase::Release));
    let mut let_go = state.clone();
    play(&mut state, Move::Release { spirit: spirit("shell") });
    assert_eq!(state.phase, Some(Phase::Capture));
    // With the spirit gone there is nothing to capture, and the turn is over.
    let events = play(&mut let_go, Move::Release { spirit: spirit("leaf") });
    assert_eq!(events.last(), Some(&Event::TurnPassed { seat: 0 }));
}

#[test]
fn s13_in_company_any_number_of_spirits_may_be_free() {
    let mut state = table(2, &[(7, "spirit:leaf"), (14, "moon-1"), (15, "moon-2")]);
    free(&mut state, &["flame", "turtle", "shell"]);
    play(&mut state, Move::Take { slot: 14 });
    assert_eq!((state.free.len(), state.phase), (4, Some(Phase::Take)));
}

#[test]
fn s14_alone_the_game_ends_when_no_spirit_is_left_and_only_all_seven_win() {
    for escaped in [None, Some(spirit("shell"))] {
        let mut state = table(1, &[(0, "moon-7"), (1, "leaf-7")]);
        state.phase = Some(Phase::Capture);
        let held: Vec<_> = ["feather", "shell", "turtle", "flame", "moon", "root"]
            .into_iter()
            .filter(|code| Some(spirit(code)) != escaped)
            .collect();
        held.iter().for_each(|code| lay(&mut state, 0, code, By::Family, &[]));
        escaped.iter().for_each(|spirit| state.escaped.insert(*spirit));
        free(&mut state, &["leaf"]);
        give(&mut state, 0, &["leaf-1", "leaf-2", "leaf-3"]);
        let events = play(&mut state, capture("leaf", &["leaf-1", "leaf-2", "leaf-3"], None));
        assert_eq!(events.last(), Some(&FINISHED));
        assert_eq!(ranks(&state), [(0, 1, held.len() as i32 + 1, escaped.is_none())]);
    }
}

#[test]
fn hands_and_face_down_cards_are_private_until_the_end() {
    let mut state = table(2, &[(0, "leaf-1"), (7, "leaf-2")]);
    give(&mut state, 1, &["moon-1"]);
    let shown = |viewer| {
        let view = Siggil::view(&state, viewer);
        (view.sigil[0].card.is_some(), view.seats.iter().map(|seat| seat.hand.is_some()).collect::<Vec<_>>())
    };
    assert_eq!(shown(Viewer::Seat(0)), (false, vec![true, false]));
    assert_eq!(shown(Viewer::Spectator), (false, vec![false, false]));
    assert_eq!(shown(Viewer::Everything), (true, vec![true, true]));
}

#[test]
fn a_move_is_read_strictly() {
    let read = |value| serde_json::from_value::<Move>(value);
    let add = capture("leaf", &["leaf-4", "leaf-5"], Some(2));
    assert_eq!(
        read(json!({"type": "capture", "spirit": "leaf", "cards": ["leaf-5", "leaf-4"], "set": 2})).unwrap(),
        add
    );
    assert_eq!(
        serde_json::to_value(capture("leaf", &["leaf-4", "leaf-5"], None)).unwrap(),
        json!({"type": "capture", "spirit": "leaf", "cards": ["leaf-4", "leaf-5"]})
    );
    for wrong in [
        json!({"type": "end_turn", "slot": 1}),
        json!({"type": "take", "slot": 256}),
        json!({"type": "take", "slot": -1}),
        json!({"type": "take"}),
        json!({"type": "capture", "spirit": "leaf", "cards": ["leaf-5", "leaf-5"]}),
        json!({"type": "capture", "spirit": "leaf", "cards": ["spirit:leaf"]}),
        json!({"type": "capture", "spirit": "spirit:leaf", "cards": []}),
        json!({"type": "pass"}),
    ] {
        assert!(read(wrong.clone()).is_err(), "{wrong}");
    }
}
