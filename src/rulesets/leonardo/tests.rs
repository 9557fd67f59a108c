//! One test for each rule, the traps, the fairness vectors and the exact game.
//!
//! Long, since it has every rule of the game in the order of the rules, which is how one looks for them.

use super::moves::legal_moves;
use super::state::{HAND, SeatState};
use super::{Event, KeySource, Leonardo, Move, NotAllowed, Options, Position, State, View};
use crate::rulesets::cards::{Card, DECK, Symbol, SymbolSet, deck};
use crate::rulesets::random::{Random, game_seed};
use crate::rulesets::{EndReason, Illegal, Ruleset, Seat, TurnLimit, Viewer};

fn card(code: &str) -> Card {
    Card::from_code(code).unwrap_or_else(|| panic!("{code} is a card"))
}

fn symbol(code: &str) -> Symbol {
    Symbol::from_code(code).unwrap_or_else(|| panic!("{code} is a symbol"))
}

fn keys(codes: &[&str]) -> SymbolSet {
    let mut set = SymbolSet::default();
    codes.iter().for_each(|code| set.insert(symbol(code)));
    set
}

fn random() -> Random {
    Random::new([42; 32])
}

/// For each seat a cross that gives nothing: no symbol is there three times.
const DULL: [[&str; 5]; 4] = [
    ["gull-flow", "skull-flower", "cat-figure", "gull-eclipse", "skull-halberd"],
    ["mechanism-flow", "profile-flower", "cathedral-figure", "mechanism-eclipse", "profile-halberd"],
    ["gull-flow", "skull-flower", "cat-figure", "gull-eclipse", "skull-halberd"],
    ["mechanism-flow", "profile-flower", "cathedral-figure", "mechanism-eclipse", "profile-halberd"],
];

/// A game of so many players; each has the given cross (center, up, right, down, left) or a dull one, the first cards of
/// the hand as given, and any other cards. Seat 0 is to act.
fn table(players: &[(&[&str], &[&str])]) -> State {
    let mut rest = deck().to_vec();
    let mut take = |code: &str| {
        let place = rest.iter().position(|other| other.code() == code).unwrap_or_else(|| panic!("no {code} is left"));
        rest.remove(place)
    };
    let mut seats: Vec<SeatState> = players
        .iter()
        .zip(DULL)
        .map(|((cross, hand), dull)| SeatState {
            cross: std::array::from_fn(|place| take(cross.get(place).unwrap_or(&dull[place]))),
            hand: hand.iter().map(|code| take(code)).collect(),
            keys: SymbolSet::default(),
            bonus_key_taken: false,
        })
        .collect();
    for seat in &mut seats {
        let lacking = HAND - seat.hand.len();
        seat.hand.extend(rest.drain(..lacking));
        seat.hand.sort_unstable();
    }
    let state = State {
        turns_taken: 0,
        turn_limit: None,
        turn: 0,
        over: None,
        deck: rest.into_iter().collect(),
        discard: Default::default(),
        reshuffles: 0,
        seats: seats.into_iter().collect(),
    };
    state.check().expect("the table is possible");
    state
}

fn play(code: &str, position: Position) -> Move {
    Move::Play { card: card(code), position, bonus_key: None }
}

fn play_for(code: &str, position: Position, bonus_key: &str) -> Move {
    Move::Play { card: card(code), position, bonus_key: Some(symbol(bonus_key)) }
}

/// Makes a move of the seat to act; answers the events.
fn act(state: &mut State, mv: Move) -> Vec<Event> {
    let mut events = Vec::new();
    Leonardo::apply(state, state.turn, &mv, &random(), &mut events)
        .unwrap_or_else(|refusal| panic!("{mv:?}: {refusal}"));
    state.check().expect("a move leads to a possible state");
    events
}

/// Makes a move that is refused; answers why. Nothing changes, and the move is not listed.
fn refused(state: &State, seat: Seat, mv: Move) -> NotAllowed {
    let (mut after, mut events) = (state.clone(), Vec::new());
    let refusal = Leonardo::apply(&mut after, seat, &mv, &random(), &mut events).expect_err("the move is refused");
    assert_eq!(after, *state);
    assert_eq!(events, []);
    assert!(!listed(state, seat).contains(&mv));
    refusal
}

fn listed(state: &State, seat: Seat) -> Vec<Move> {
    let mut moves = Vec::new();
    legal_moves(state, seat, &mut moves);
    moves
}

fn gained(events: &[Event]) -> Vec<(Seat, &'static str, KeySource)> {
    let gain = |event: &Event| match *event {
        Event::KeyGained { seat, key, by } => Some((seat, key.code(), by)),
        _ => None,
    };
    events.iter().filter_map(gain).collect()
}

/// Until `turns` turns are taken, each plays the first card of the hand to the centre of the cross.
fn pass_time(state: &mut State, turns: u32) {
    while state.turns_taken < turns {
        let first = state.seats[usize::from(state.turn)].hand[0];
        act(state, Move::Play { card: first, position: Position::Center, bonus_key: None });
        // No Keys: the game goes on for as long as is wanted.
        state.seats.iter_mut().for_each(|seat| seat.keys = SymbolSet::default());
    }
}

const SKULLS: [&str; 5] = ["skull-horseman", "skull-flow", "skull-flower", "skull-figure", "gull-horseman"];

#[test]
fn c01_only_the_seat_to_act_moves_and_turns_go_clockwise() {
    let mut state = table(&[(&[], &["cat-flow"]), (&[], &["cat-flow"]), (&[], &[])]);
    for seat in [1, 2, 3, 255] {
        assert_eq!(refused(&state, seat, play("cat-flow", Position::Up)), NotAllowed::NotYourTurn);
        assert_eq!(listed(&state, seat), []);
    }
    for next in [1, 2, 0, 1] {
        let mv = listed(&state, state.turn)[0];
        assert_eq!(act(&mut state, mv).last(), Some(&Event::TurnPassed { seat: next }));
        assert_eq!(Leonardo::to_act(&state), Some(next));
    }
}

#[test]
fn c02_the_lot_says_who_starts() {
    let options = Leonardo::resolve(&Options::default(), 4).unwrap();
    for byte in 0..8 {
        let random = Random::new([byte; 32]);
        assert_eq!(Leonardo::to_act(&Leonardo::setup(&options, 4, &random)), Some(random.lot(4)));
    }
}

#[test]
fn c03_equal_cards_are_one_choice_and_leave_equal_games() {
    let state = table(&[(&[], &["cat-flow", "cat-flow", "profile-flow"]), (&[], &[])]);
    let moves = listed(&state, 0);
    let flows = moves.iter().filter(|mv| matches!(mv, Move::Play { card, .. } if card.code() == "cat-flow")).count();
    assert_eq!(flows, Position::ALL.len());
    assert!(moves.is_sorted_by(|a, b| a < b));
}

#[test]
fn c04_a_turn_limit_ends_the_game_after_the_draw() {
    let mut state = table(&[(&[], &["cat-flow"]), (&[], &["cat-flow"])]);
    state.turn_limit = Some(2);
    assert_eq!(act(&mut state, play("cat-flow", Position::Up)).last(), Some(&Event::TurnPassed { seat: 1 }));
    let events = act(&mut state, play("cat-flow", Position::Down));
    assert!(matches!(events[events.len() - 2], Event::CardDrawn { seat: 1, .. }));
    assert_eq!(events.last(), Some(&Event::GameFinished { reason: EndReason::TurnLimit }));
    assert_eq!((Leonardo::end(&state), Leonardo::to_act(&state)), (Some(EndReason::TurnLimit), None));
    assert_eq!(refused(&state, 1, listed_of_a_running(&state)), NotAllowed::NotYourTurn);
}

/// Some move that would be legal if the game were not over.
fn listed_of_a_running(state: &State) -> Move {
    let card = state.seats[usize::from(state.turn)].hand[0];
    Move::Play { card, position: Position::Center, bonus_key: None }
}

#[test]
fn c04_a_win_in_the_last_turn_of_the_limit_is_a_win() {
    let mut state =
        table(&[(&["cat-flow", "cat-figure", "gull-halberd", "skull-horseman"], &["cat-flower"]), (&[], &[])]);
    state.turn_limit = Some(1);
    state.seats[0].keys = keys(&["mechanism", "profile", "gull", "skull", "flow", "eclipse"]);
    let events = act(&mut state, play("cat-flower", Position::Down));
    assert_eq!(events.last(), Some(&Event::GameFinished { reason: EndReason::Completed }));
}

#[test]
fn l01_a_deck_has_72_cards_two_of_each_face() {
    assert_eq!(deck().len(), DECK);
    assert!(Card::all().all(|face| deck().iter().filter(|card| **card == face).count() == 2));
    assert!(Leonardo::catalogue().cards.iter().all(|face| face.copies == 2));
}

#[test]
fn l02_each_player_has_a_cross_of_five_and_a_hand_of_five() {
    for seats in 2..=4 {
        let options = Leonardo::resolve(&Options::default(), seats).unwrap();
        let state = Leonardo::setup(&options, seats, &random());
        state.check().unwrap();
        assert_eq!(state.deck.len(), DECK - 10 * usize::from(seats));
        assert!(
            state.discard.is_empty() && state.seats.iter().all(|seat| seat.hand.len() == 5 && seat.keys.is_empty())
        );
        let view = Leonardo::view(&state, Viewer::Spectator);
        assert!(view.seats.iter().all(|seat| seat.hand.is_none() && seat.hand_count == 5));
    }
}

#[test]
fn l03_a_turn_is_play_keys_draw() {
    let mut state = table(&[(&["skull-flow", "skull-figure", "cat-flow"], &["skull-eclipse"]), (&[], &[])]);
    let top = *state.deck.last().unwrap();
    let events = act(&mut state, play("skull-eclipse", Position::Down));
    let names: Vec<String> =
        events.iter().map(|event| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned()).collect();
    let story = ["card_played", "card_passed", "card_discarded", "key_gained", "card_drawn", "turn_passed"];
    assert_eq!(names, story);
    assert_eq!(events[4], Event::CardDrawn { seat: 0, card: Some(top) });
    assert_eq!((state.turns_taken, state.turn), (1, 1));
}

#[test]
fn l04_the_replaced_card_goes_to_the_left_neighbour_and_theirs_is_discarded() {
    let mut state = table(&[(&[], &["cat-flow"]), (&["profile-flow"], &[]), (&["cathedral-flow"], &[])]);
    let events = act(&mut state, play("cat-flow", Position::Center));
    let centers: Vec<&str> = state.seats.iter().map(|seat| seat.cross[0].code()).collect();
    assert_eq!(centers, ["cat-flow", DULL[0][0], "cathedral-flow"]);
    assert_eq!(state.discard.as_slice(), [card("profile-flow")]);
    let center = Position::Center;
    assert_eq!(
        events[..3],
        [
            Event::CardPlayed { seat: 0, card: card("cat-flow"), position: center },
            Event::CardPassed { seat: 1, card: card(DULL[0][0]), position: center },
            Event::CardDiscarded { seat: 1, card: card("profile-flow"), position: center },
        ]
    );
    // The last seat's left neighbour is the first.
    state.turn = 2;
    let mv = listed(&state, 2)[0];
    assert!(matches!(act(&mut state, mv)[1], Event::CardPassed { seat: 0, .. }));
}

#[test]
fn l04_the_card_must_be_in_the_hand() {
    let state = table(&[(&["profile-flow"], &["cat-flow"]), (&[], &["cat-eclipse", "cat-eclipse"])]);
    let refusal = refused(&state, 0, play("cat-eclipse", Position::Up));
    assert_eq!((refusal, refusal.rule()), (NotAllowed::NotInHand(card("cat-eclipse")), "L4"));
}

#[test]
fn l05_a_row_or_a_column_of_three_gives_its_key() {
    // Both symbols of the centre complete a line at once: flow the row, skull the column.
    let cross = ["cat-halberd", "skull-figure", "profile-flow", "skull-flower", "mechanism-flow"];
    let mut state = table(&[(&cross, &["skull-flow"]), (&[], &[])]);
    let events = act(&mut state, play("skull-flow", Position::Center));
    assert_eq!(gained(&events), [(0, "skull", KeySource::Line), (0, "flow", KeySource::Line)]);
    assert_eq!(state.seats[0].keys, keys(&["skull", "flow"]));
}

#[test]
fn l05_a_key_is_gained_once_and_arms_alone_are_no_line() {
    let mut state = table(&[(&SKULLS, &["skull-eclipse"]), (&[], &[])]);
    state.seats[0].keys = keys(&["skull"]);
    assert_eq!(gained(&act(&mut state, play("skull-eclipse", Position::Down))), []);
    // Up, right, down and left show a skull, the centre does not.
    let cross = ["gull-flow", "skull-flow", "skull-flower", "skull-figure", "cat-halberd"];
    let mut state = table(&[(&cross, &["skull-eclipse"]), (&[], &[])]);
    assert_eq!(gained(&act(&mut state, play("skull-eclipse", Position::Left))), []);
}

#[test]
fn l05_lines_that_stood_before_count_but_not_the_replaced_card() {
    // The column of skulls stands already; the card played to the right has nothing to do with it.
    let mut state = table(&[(&SKULLS, &["cat-eclipse"]), (&[], &[])]);
    assert_eq!(gained(&act(&mut state, play("cat-eclipse", Position::Right))), [(0, "skull", KeySource::Line)]);
    // The card that made the line is the one replaced.
    let mut state = table(&[(&SKULLS, &["cat-eclipse"]), (&[], &[])]);
    assert_eq!(gained(&act(&mut state, play("cat-eclipse", Position::Up))), []);
}

#[test]
fn l06_a_passed_card_gives_nothing_on_anothers_turn() {
    // Seat 0 passes a skull that completes seat 1's column.
    let own = ["skull-halberd"];
    let theirs = ["cat-figure", "skull-flow", "gull-flower", "skull-figure", "gull-horseman"];
    let mut state = table(&[(&own, &["profile-flow"]), (&theirs, &["cathedral-flow"])]);
    assert_eq!(gained(&act(&mut state, play("profile-flow", Position::Center))), []);
    assert!(state.seats[1].keys.is_empty());
    // Their own turn then gives it, if the line still stands after they have played.
    let events = act(&mut state, play("cathedral-flow", Position::Right));
    assert_eq!(gained(&events), [(1, "skull", KeySource::Line)]);
}

#[test]
fn l07_five_alike_give_any_key_that_the_player_lacks() {
    let mut state = table(&[(&SKULLS, &["skull-eclipse"]), (&[], &[])]);
    state.seats[0].keys = keys(&["cat"]);
    let left = Position::Left;
    let offered: Vec<&str> = listed(&state, 0)
        .into_iter()
        .filter_map(|Move::Play { position, bonus_key, .. }| bonus_key.filter(|_| position == left))
        .map(Symbol::code)
        .collect();
    // All but the one held and the one that the line gives.
    let lacking: Vec<&str> = Symbol::CODES.iter().copied().filter(|code| !["cat", "skull"].contains(code)).collect();
    assert_eq!(offered, lacking);
    for held in ["cat", "skull"] {
        assert_eq!(refused(&state, 0, play_for("skull-eclipse", left, held)), NotAllowed::KeyHeld(symbol(held)));
    }
    let events = act(&mut state, play_for("skull-eclipse", left, "halberd"));
    assert_eq!(gained(&events), [(0, "skull", KeySource::Line), (0, "halberd", KeySource::Bonus)]);
    assert!(state.seats[0].bonus_key_taken && !state.seats[1].bonus_key_taken);
}

#[test]
fn l07_without_five_alike_there_is_no_bonus() {
    let state = table(&[(&SKULLS, &["skull-eclipse", "cat-flow"]), (&[], &[])]);
    for mv in [play_for("cat-flow", Position::Left, "flow"), play_for("skull-eclipse", Position::Up, "flow")] {
        let refusal = refused(&state, 0, mv);
        assert_eq!((refusal, refusal.rule()), (NotAllowed::NoBonus, "L7"));
    }
}

#[test]
fn l07_the_bonus_is_taken_once_in_a_game() {
    let mut state =
        table(&[(&SKULLS, &["skull-eclipse", "skull-halberd"]), (&[], &["gull-flow"]), (&[], &["cat-flow"])]);
    act(&mut state, play_for("skull-eclipse", Position::Left, "halberd"));
    act(&mut state, play("gull-flow", Position::Right));
    // Seat 2 passes its right card to seat 0 and breaks the five; all are alike again after the next play.
    act(&mut state, play("cat-flow", Position::Right));
    assert_eq!(refused(&state, 0, play_for("skull-halberd", Position::Right, "flow")), NotAllowed::BonusTaken);
    assert!(listed(&state, 0).contains(&play("skull-halberd", Position::Right)));
}

#[test]
fn l07_not_asking_forfeits_nothing() {
    let mut state =
        table(&[(&SKULLS, &["skull-eclipse", "skull-halberd"]), (&[], &["gull-flow"]), (&[], &["cat-flow"])]);
    act(&mut state, play("skull-eclipse", Position::Left));
    act(&mut state, play("gull-flow", Position::Right));
    act(&mut state, play("cat-flow", Position::Right));
    let events = act(&mut state, play_for("skull-halberd", Position::Right, "flow"));
    assert_eq!(gained(&events), [(0, "flow", KeySource::Bonus)]);
}

#[test]
fn l07_line_and_bonus_together_can_make_eight_keys() {
    let mut state = table(&[(&SKULLS, &["skull-eclipse"]), (&[], &[])]);
    state.seats[0].keys = keys(&["mechanism", "profile", "cathedral", "gull", "cat", "flow"]);
    let events = act(&mut state, play_for("skull-eclipse", Position::Left, "eclipse"));
    assert_eq!(gained(&events).len(), 2);
    assert_eq!(Leonardo::ranking(&state)[0].score, 8);
    assert_eq!(*Leonardo::META.score.end(), 8);
}

#[test]
fn l08_the_hand_is_filled_from_the_deck_and_a_draw_is_private() {
    let mut state = table(&[(&[], &["cat-flow"]), (&[], &[])]);
    let top = *state.deck.last().unwrap();
    let events = act(&mut state, play("cat-flow", Position::Up));
    assert!(state.seats[0].hand.contains(&top) && state.seats[0].hand.is_sorted());
    let drawn = Event::CardDrawn { seat: 0, card: Some(top) };
    assert!(events.contains(&drawn));
    for (viewer, card) in [
        (Viewer::Seat(0), Some(top)),
        (Viewer::Seat(1), None),
        (Viewer::Spectator, None),
        (Viewer::Everything, Some(top)),
    ] {
        assert_eq!(Leonardo::event_view(&drawn, viewer), Event::CardDrawn { seat: 0, card });
    }
}

/// The trap of the empty deck: it is filled when a card must be drawn, not before; over the discard pile in the order of
/// discarding with the card just discarded; by stream 1 + k; the top is the first of the shuffled cards.
#[test]
fn l08_an_empty_deck_is_filled_from_the_discard_pile_when_a_card_must_be_drawn() {
    let mut state = table(&[(&[], &[]), (&[], &[]), (&[], &[]), (&[], &[])]);
    for k in 1..=3 {
        let last = 33 * k - 1;
        pass_time(&mut state, last);
        assert_eq!((state.deck.len(), state.discard.len()), (0, 32), "the deck's last card has been drawn");
        assert_eq!(state.reshuffles, k - 1);

        let (turn, neighbour) = (usize::from(state.turn), usize::from(state.left_of(state.turn)));
        let mut expected = state.discard.to_vec();
        expected.push(state.seats[neighbour].cross[Position::Right as usize]);
        random().stream(1 + u64::from(k)).shuffle(&mut expected);
        let mut hand = state.seats[turn].hand.clone();
        let played = hand.remove(2);

        let events = act(&mut state, Move::Play { card: played, position: Position::Right, bonus_key: None });
        let reshuffled = events.iter().position(|event| *event == Event::DeckReshuffled { deck_count: 33 });
        let drawn = Event::CardDrawn { seat: turn as Seat, card: Some(expected[0]) };
        assert_eq!(reshuffled.map(|place| events[place + 1]), Some(drawn));
        assert!(state.deck.iter().rev().eq(&expected[1..]) && state.discard.is_empty());
        assert_eq!(state.reshuffles, k);
        hand.push(expected[0]);
        hand.sort_unstable();
        assert_eq!(state.seats[turn].hand, hand);
        state.seats.iter_mut().for_each(|seat| seat.keys = SymbolSet::default());
    }
}

#[test]
fn l09_the_seventh_key_wins_before_the_draw() {
    let mut state = table(&[(&SKULLS, &["skull-eclipse"]), (&[], &[])]);
    state.seats[0].keys = keys(&["mechanism", "profile", "cathedral", "gull", "cat", "flow"]);
    let deck = state.deck.clone();
    let events = act(&mut state, play("skull-eclipse", Position::Left));
    assert_eq!(events.last(), Some(&Event::GameFinished { reason: EndReason::Completed }));
    assert!(!events.iter().any(|event| matches!(event, Event::CardDrawn { .. } | Event::TurnPassed { .. })));
    assert_eq!((state.seats[0].hand.len(), &state.deck), (4, &deck));
    assert_eq!((state.turns_taken, Leonardo::to_act(&state)), (1, None));
    assert_eq!(refused(&state, 0, listed_of_a_running(&state)), NotAllowed::NotYourTurn);
    assert_eq!(refused(&state, 1, listed_of_a_running(&state)), NotAllowed::NotYourTurn);
}

/// A win in the turn that would have to fill the deck leaves it empty.
#[test]
fn l09_a_win_with_an_empty_deck_shuffles_nothing() {
    let mut state = table(&[(&[], &[]), (&[], &[])]);
    pass_time(&mut state, 52);
    assert!(state.deck.is_empty());
    // Let two cards of the discard pile lie where the next card completes the row.
    let turn = usize::from(state.turn);
    let played = state.seats[turn].hand[0];
    for position in [Position::Center, Position::Left] {
        let equal = state.discard.iter().position(|card| card.upper() == played.upper()).unwrap();
        let card = std::mem::replace(&mut state.discard[equal], state.seats[turn].cross[position as usize]);
        state.seats[turn].cross[position as usize] = card;
    }
    Symbol::all().filter(|key| *key != played.upper()).take(6).for_each(|key| state.seats[turn].keys.insert(key));
    let mut after = state.clone();
    let events = act(&mut after, Move::Play { card: played, position: Position::Right, bonus_key: None });
    assert_eq!(after.over, Some(EndReason::Completed));
    assert!(after.deck.is_empty() && after.reshuffles == 0 && after.discard.len() == 53);
    assert!(!events.iter().any(|event| matches!(event, Event::DeckReshuffled { .. })));
}

#[test]
fn l10_the_ranking_goes_by_number_of_keys() {
    let mut state = table(&[(&[], &[]), (&[], &[]), (&[], &[]), (&[], &[])]);
    for (seat, held) in state.seats.iter_mut().zip([&["cat"][..], &["gull", "flow"], &["skull"], &["cat", "eclipse"]]) {
        seat.keys = keys(held);
    }
    let ranking: Vec<_> = Leonardo::ranking(&state).iter().map(|line| (line.seat, line.rank, line.score)).collect();
    assert_eq!(ranking, [(1, 1, 2), (3, 1, 2), (0, 3, 1), (2, 3, 1)]);
}

#[test]
fn l10_the_turn_limit_is_100_turns_for_each_player_unless_given() {
    let resolve =
        |text: &str, seats| Leonardo::resolve(&serde_json::from_str(text).unwrap(), seats).map(|o| o.turn_limit);
    assert_eq!(resolve("{}", 2), Ok(TurnLimit::Given(Some(200))));
    assert_eq!(resolve("{}", 4), Ok(TurnLimit::Given(Some(400))));
    assert_eq!(resolve(r#"{"turn_limit":null}"#, 2), Ok(TurnLimit::Given(None)));
    assert_eq!(resolve(r#"{"turn_limit":10000}"#, 2), Ok(TurnLimit::Given(Some(10_000))));
    assert_eq!(resolve(r#"{"turn_limit":0}"#, 2).unwrap_err()[0].option, "turn_limit");
    assert_eq!(resolve(r#"{"turn_limit":10001}"#, 2).unwrap_err()[0].option, "turn_limit");
}

/// An imagined game has the right number of reshuffles, so that it is a possible one.
#[test]
fn l08_a_view_tells_the_number_of_reshuffles() {
    let options = Leonardo::resolve(&Options::default(), 3).unwrap();
    let mut state = table(&[(&[], &[]), (&[], &[]), (&[], &[])]);
    state.turn_limit = Some(300);
    for turns in [0, 42, 43, 44, 86, 130] {
        pass_time(&mut state, turns);
        let view = Leonardo::view(&state, Viewer::Seat(1));
        let imagined = Leonardo::determinize(&view, Some(state.turn), &options, &mut random().stream(9));
        assert_eq!((imagined.reshuffles, imagined.check()), (state.reshuffles, Ok(())));
    }
}

#[test]
fn states_that_no_game_has_are_refused() {
    let state = table(&[(&[], &[]), (&[], &[])]);
    type Damage = fn(&mut State);
    let damages: [Damage; 16] = [
        |state| state.turn = 2,
        |state| state.turns_taken = u32::MAX,
        |state| state.turns_taken = 1,
        |state| state.reshuffles = 1,
        |state| state.turn_limit = Some(0),
        |state| state.over = Some(EndReason::Aborted),
        |state| state.over = Some(EndReason::TurnLimit),
        |state| state.over = Some(EndReason::Completed),
        |state| state.deck.truncate(51),
        |state| state.seats.clear(),
        |state| state.seats.truncate(1),
        |state| state.seats[0].hand.reverse(),
        |state| state.seats[0].cross[0] = state.seats[0].cross[1],
        |state| state.seats[1].keys = SymbolSet::ALL,
        |state| {
            let card = state.seats[0].hand.remove(4);
            state.deck.push(card);
        },
        |state| {
            let card = state.deck.remove(0);
            state.discard.push(card);
        },
    ];
    for (number, damage) in damages.iter().enumerate() {
        let mut damaged = state.clone();
        damage(&mut damaged);
        assert!(damaged.check().is_err(), "damage {number}");
    }
}

#[test]
fn every_move_that_is_no_move_is_refused_by_its_shape() {
    for text in [
        r#"{"type":"play","card":"mechanism-flow"}"#,
        r#"{"type":"play","card":"flow-mechanism","position":"left"}"#,
        r#"{"type":"play","card":"mechanism-flow","position":"middle"}"#,
        r#"{"type":"play","card":"mechanism-flow","position":"left","bonus_key":"key"}"#,
        r#"{"type":"play","card":"mechanism-flow","position":"left","seat":0}"#,
        r#"{"type":"pass"}"#,
        r#"{"card":"mechanism-flow","position":"left"}"#,
    ] {
        assert!(serde_json::from_str::<Move>(text).is_err(), "{text}");
    }
    let text = r#"{"type":"play","card":"mechanism-flow","position":"left","bonus_key":"skull"}"#;
    let mv = play_for("mechanism-flow", Position::Left, "skull");
    assert_eq!(serde_json::from_str::<Move>(text).unwrap(), mv);
    assert_eq!(serde_json::to_string(&mv).unwrap(), text);
}

/// Every fairness vector of this ruleset: crosses, hands and the deck from its top (fairness 6–9).
#[test]
fn l02_the_deal_is_that_of_the_fairness_vectors() {
    #[derive(serde::Deserialize)]
    struct Vector {
        server_seed: String,
        game_id: String,
        ruleset: String,
        entropy: Vec<String>,
        seats: u8,
        #[serde(default)]
        seats_dealt: Vec<serde_json::Value>,
        #[serde(default)]
        deck: Vec<String>,
    }
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("../../../tests/fairness-vectors.json")).unwrap();
    let own: Vec<&Vector> = vectors.iter().filter(|vector| vector.ruleset == Leonardo::META.slug).collect();
    assert!(!own.is_empty());
    for vector in own {
        let byte = |i: usize| u8::from_str_radix(&vector.server_seed[2 * i..2 * i + 2], 16).unwrap();
        let entropies = vector.entropy.iter().map(String::as_str);
        let seed = game_seed(&std::array::from_fn(byte), &vector.game_id, &vector.ruleset, entropies);
        let options = Leonardo::resolve(&Options::default(), vector.seats).unwrap();
        let state = Leonardo::setup(&options, vector.seats, &Random::new(seed));
        assert!(state.deck.iter().rev().map(|card| card.code()).eq(vector.deck.iter().map(String::as_str)));
        let View { seats, .. } = Leonardo::view(&state, Viewer::Everything);
        for (seat, dealt) in seats.iter().zip(&vector.seats_dealt) {
            assert_eq!(serde_json::to_value(&seat.cross).unwrap(), dealt["cross"]);
            let mut hand: Vec<Card> = serde_json::from_value(dealt["hand"].clone()).unwrap();
            hand.sort_unstable();
            assert_eq!(seat.hand.as_deref(), Some(&hand[..]));
        }
        assert_eq!(seats.len(), vector.seats_dealt.len());
    }
}
