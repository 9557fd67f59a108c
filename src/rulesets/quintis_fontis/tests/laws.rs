//! What holds in every game: random games of every size, checked at every ply against the rules told once more in the
//! plainest way.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::field::Stack;
use super::super::*;
use super::{Q, moves_of};
use crate::rulesets::cards::{Card, Symbol};

/// Cases: seats and options.
fn cases() -> impl Iterator<Item = (u8, Options)> {
    let options =
        [r#"{}"#, r#"{"diagonals": true}"#, r#"{"turn_limit": 30}"#, r#"{"turn_limit": null, "diagonals": true}"#];
    (2..=4).flat_map(move |seats| {
        options.map(|text| (seats, Q::resolve(&serde_json::from_str(text).unwrap(), seats).unwrap()))
    })
}

/// The chance of test game number `game`.
fn chance(game: u8) -> Random {
    Random::new([game; 32])
}

/// A stream for the test's own choices, which no deal uses.
fn choices(game: u8) -> Stream {
    chance(game).stream(u64::MAX)
}

fn pick(moves: &[Move], choices: &mut Stream) -> Move {
    moves[choices.below(moves.len() as u32) as usize]
}

fn all_viewers(seats: u8) -> impl Iterator<Item = Viewer> {
    (0..seats).map(Viewer::Seat).chain([Viewer::Spectator, Viewer::Everything])
}

fn assert_json_round_trip<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value, "{text}");
}

/// The top cards by (x, y).
type Tops = BTreeMap<(i32, i32), Card>;

fn tops(view: &View) -> Tops {
    view.field.iter().map(|cell| ((cell.x.into(), cell.y.into()), *cell.stack.last().unwrap())).collect()
}

fn alike(a: Card, b: Card) -> bool {
    a.upper() == b.upper() || a.lower() == b.lower()
}

/// Whether a player with that hand may make a move that is no pass: Q3–Q7 word for word.
fn may_play(tops: &Tops, hand: &[Card], mv: Move) -> bool {
    match mv {
        Move::Pass {} => false,
        Move::Place { card, .. } | Move::Cover { card, .. } | Move::Swap { card, .. } if !hand.contains(&card) => false,
        Move::Place { x, y, .. } => {
            let (x, y) = (i32::from(x), i32::from(y));
            let narrow = tops.keys().all(|(other_x, other_y)| (x - other_x).abs() < 5 && (y - other_y).abs() < 5);
            let touches = tops.keys().any(|(other_x, other_y)| (x - other_x).abs() <= 1 && (y - other_y).abs() <= 1);
            let first = tops.is_empty() && (x, y) == (0, 0);
            !tops.contains_key(&(x, y)) && narrow && (touches || first)
        }
        Move::Cover { card, x, y } | Move::Swap { card, x, y } => {
            tops.get(&(x.into(), y.into())).is_some_and(|top| alike(*top, card))
        }
    }
}

/// The Keys that a card just played on a cell earns by Q9, told by counting along each line.
fn keys_earned(before: &View, after: &View, seat: Seat, card: Card, (x, y): (i8, i8), diagonals: bool) -> Vec<Symbol> {
    let tops = tops(after);
    let (x, y) = (i32::from(x), i32::from(y));
    let lines = [(1, 0), (0, 1), (1, 1), (1, -1)];
    let earned = |symbol: &Symbol| {
        let reach = |dx: i32, dy: i32| {
            let shows =
                |i: &i32| tops.get(&(x + i * dx, y + i * dy)).is_some_and(|top| top.symbols().contains(*symbol));
            (1..5).take_while(shows).count()
        };
        let lines = if diagonals { &lines[..] } else { &lines[..2] };
        before.key_supply[symbol] > 0
            && !before.seats[usize::from(seat)].keys.contains(symbol)
            && lines.iter().any(|(dx, dy)| 1 + reach(*dx, *dy) + reach(-dx, -dy) >= 3)
    };
    [card.upper(), card.lower()].into_iter().filter(earned).collect()
}

/// What a client that knows a view makes of the events of one move.
fn fold(mut view: View, events: &[Event]) -> View {
    fn stack_at(view: &mut View, x: i8, y: i8) -> &mut Stack {
        let place = view.field.partition_point(|cell| (cell.y, cell.x) < (y, x));
        if view.field.get(place).is_none_or(|cell| (cell.x, cell.y) != (x, y)) {
            view.field.insert(place, CellView { x, y, stack: Stack::new() });
        }
        &mut view.field[place].stack
    }
    fn receive(view: &mut View, seat: Seat, card: Option<Card>) {
        let seat = &mut view.seats[usize::from(seat)];
        seat.hand_count += 1;
        if let Some(hand) = &mut seat.hand {
            hand.push(card.expect("a seen hand receives seen cards"));
            hand.sort();
        }
    }
    let mut counting = view.last_turns_left.is_some();
    for event in events {
        match *event {
            Event::CardTaken { seat, card, x, y } => {
                assert_eq!(stack_at(&mut view, x, y).pop(), Some(card));
                receive(&mut view, seat, Some(card));
            }
            Event::CardPlayed { seat, card, x, y } => {
                stack_at(&mut view, x, y).push(card);
                let seat = &mut view.seats[usize::from(seat)];
                seat.hand_count -= 1;
                if let Some(hand) = &mut seat.hand {
                    hand.remove(hand.iter().position(|other| *other == card).unwrap());
                }
            }
            Event::CardDrawn { seat, card } => {
                view.deck_count -= 1;
                receive(&mut view, seat, card);
            }
            Event::KeyGained { seat, key } => {
                *view.key_supply.get_mut(&key).unwrap() -= 1;
                let keys = &mut view.seats[usize::from(seat)].keys;
                keys.push(key);
                keys.sort();
            }
            Event::LastTurnsBegun { turns, .. } => {
                view.last_turns_left = Some(turns);
                counting = false;
            }
            Event::TurnPassed { .. } | Event::GameFinished { .. } => {
                view.turns_taken += 1;
                view.last_turns_left = view.last_turns_left.map(|left| left - u8::from(counting));
            }
        }
    }
    view
}

/// Every move that could be thought of: all faces on all cells near the field, in each way, and the pass.
fn conceivable() -> impl Iterator<Item = Move> {
    let coordinates = [i8::MIN, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 127];
    let cells = move || coordinates.into_iter().flat_map(move |x| coordinates.map(move |y| (x, y)));
    Card::all()
        .flat_map(move |card| cells().map(move |(x, y)| (card, x, y)))
        .flat_map(|(card, x, y)| [Move::Place { card, x, y }, Move::Cover { card, x, y }, Move::Swap { card, x, y }])
        .chain([Move::Pass {}])
}

/// `apply` accepts exactly the listed moves, and these are the ones that the rules allow.
fn assert_listed_is_accepted_is_allowed(state: &State, seat: Seat) {
    let view = Q::view(state, Viewer::Seat(seat));
    let hand = view.seats[usize::from(seat)].hand.as_ref().unwrap();
    let tops = tops(&view);
    let mut allowed: Vec<Move> = conceivable().filter(|mv| may_play(&tops, hand, *mv)).collect();
    if allowed.is_empty() {
        allowed.push(Move::Pass {});
    }
    allowed.sort();
    assert_eq!(moves_of(state, seat), allowed);
    let mut events = Vec::new();
    let mut copy = state.clone();
    for mv in conceivable() {
        match Q::apply(&mut copy, seat, &mv, &chance(0), &mut events) {
            Ok(()) => {
                assert!(allowed.binary_search(&mv).is_ok(), "{mv:?} was accepted");
                copy = state.clone();
                events.clear();
            }
            Err(error) => {
                assert!(allowed.binary_search(&mv).is_err(), "{mv:?} was refused: {error}");
                assert!(events.is_empty());
            }
        }
    }
    assert_eq!(&copy, state);
}

/// What a seat sees does not depend on what it does not see: a redeal of the rest looks the same to it.
fn assert_secrets_are_kept(state: &State, options: &Options, choices: &mut Stream) {
    let seats = state.players.len() as u8;
    for viewer in all_viewers(seats) {
        let view = Q::view(state, viewer);
        assert_json_round_trip(&view);
        for (seat, shown) in (0..).zip(&view.seats) {
            assert_eq!(shown.hand.is_some(), viewer.sees(seat));
            assert!(
                shown.hand.as_ref().is_none_or(|hand| hand.is_sorted() && hand.len() == usize::from(shown.hand_count))
            );
            assert!(shown.keys.is_sorted());
        }
        assert!(view.field.is_sorted_by_key(|cell| (cell.y, cell.x)));
        let imagined = Q::determinize(&view, state.to_act(), options, choices);
        assert_eq!(imagined.check(), Ok(()));
        assert_eq!((imagined.to_act(), imagined.end()), (state.to_act(), state.end()));
        assert_eq!(Q::view(&imagined, viewer), view);
        if let Viewer::Seat(seat) = viewer {
            assert_eq!(moves_of(&imagined, seat), moves_of(state, seat));
        }
    }
}

#[test]
fn random_games_keep_every_law() {
    for (game, (seats, options)) in (0..).zip(cases()) {
        let (random, mut choices) = (chance(game), choices(game));
        let mut state = Q::setup(&options, seats, &random);
        let mut plies = 0;
        while let Some(seat) = state.to_act() {
            assert_eq!(state.check(), Ok(()));
            let moves = moves_of(&state, seat);
            assert!(!moves.is_empty() && moves.is_sorted_by(|a, b| a < b), "sorted, no duplicates");
            assert!((0..=seats).filter(|other| *other != seat).all(|other| moves_of(&state, other).is_empty()));
            // The dear checks are made at some plies only: over all games at every stage of a game.
            if choices.below(40) == 0 {
                assert_listed_is_accepted_is_allowed(&state, seat);
            }
            if choices.below(8) == 0 {
                assert_secrets_are_kept(&state, &options, &mut choices);
            }
            let snapshot = postcard::to_stdvec(&state).unwrap();
            assert!(snapshot.len() <= 250, "{} bytes", snapshot.len());
            assert_eq!(postcard::from_bytes::<State>(&snapshot).unwrap(), state);

            let mv = pick(&moves, &mut choices);
            assert_json_round_trip(&mv);
            let before = state.clone();
            let mut events = Vec::new();
            Q::apply(&mut state, seat, &mv, &random, &mut events).unwrap();
            events.iter().for_each(assert_json_round_trip);
            for viewer in all_viewers(seats) {
                let seen: Vec<Event> = events.iter().map(|event| Q::event_view(event, viewer)).collect();
                assert_eq!(fold(Q::view(&before, viewer), &seen), Q::view(&state, viewer), "{mv:?} for {viewer:?}");
            }
            let gained: Vec<Symbol> = events
                .iter()
                .filter_map(|event| if let Event::KeyGained { key, .. } = event { Some(*key) } else { None })
                .collect();
            let expected = match mv {
                Move::Pass {} => Vec::new(),
                Move::Place { card, x, y } | Move::Cover { card, x, y } | Move::Swap { card, x, y } => {
                    let views = [&before, &state].map(|state| Q::view(state, Viewer::Spectator));
                    keys_earned(&views[0], &views[1], seat, card, (x, y), state.diagonals)
                }
            };
            assert_eq!(gained, expected);
            plies += 1;
        }
        assert_secrets_are_kept(&state, &options, &mut choices);
        assert_eq!(plies, state.turns_taken);
        assert!(plies <= Q::META.longest_game);
        assert!(Q::META.end_reasons.contains(&state.end().unwrap()));
        assert!((0..seats).all(|seat| moves_of(&state, seat).is_empty()));
        assert!(Q::apply(&mut state, 0, &Move::Pass {}, &random, &mut Vec::new()).is_err());
        let ranking = Q::ranking(&state);
        assert_eq!(ranking.len(), usize::from(seats));
        assert!(ranking[0].won && ranking.iter().all(|line| line.won == (line.rank == 1)));
        assert!(ranking.is_sorted_by_key(|line| (line.rank, line.seat)));
        assert!(ranking.iter().all(|line| Q::META.score.contains(&line.score)));
    }
}

#[test]
fn the_same_seed_and_moves_give_the_same_game() {
    let played = || {
        let options = Q::resolve(&Options::default(), 4).unwrap();
        let (mut state, mut choices) = (Q::setup(&options, 4, &chance(9)), choices(9));
        let mut events = Vec::new();
        while let Some(seat) = state.to_act() {
            let mv = pick(&moves_of(&state, seat), &mut choices);
            Q::apply(&mut state, seat, &mv, &chance(9), &mut events).unwrap();
        }
        (state, events)
    };
    assert_eq!(played(), played());
}

#[test]
fn the_longest_game_ends_at_the_turn_limit() {
    let options = Q::resolve(&Options::default(), 4).unwrap();
    let mut state = Q::setup(&options, 4, &chance(1));
    // Whoever can swap does, so the deck hardly shrinks.
    while let Some(seat) = state.to_act() {
        let mv = *moves_of(&state, seat).last().unwrap();
        Q::apply(&mut state, seat, &mv, &chance(1), &mut Vec::new()).unwrap();
    }
    assert_eq!((state.turns_taken, state.end()), (Q::META.longest_game, Some(EndReason::TurnLimit)));
}

#[test]
fn a_damaged_snapshot_is_refused_or_harmless() {
    let mut choices = choices(3);
    let options = Q::resolve(&Options::default(), 3).unwrap();
    let mut state = Q::setup(&options, 3, &chance(3));
    let mut events = Vec::new();
    while let Some(seat) = state.to_act() {
        let snapshot = postcard::to_stdvec(&state).unwrap();
        for _ in 0..60 {
            let mut damaged = snapshot.clone();
            for _ in 0..=choices.below(2) {
                let place = choices.below(damaged.len() as u32) as usize;
                damaged[place] = choices.below(256) as u8;
            }
            let Ok(mut read) = postcard::from_bytes::<State>(&damaged) else { continue };
            if Q::check(&read).is_err() {
                continue;
            }
            all_viewers(3).for_each(|viewer| assert_json_round_trip(&Q::view(&read, viewer)));
            Q::ranking(&read);
            if let Some(seat) = read.to_act() {
                let mv = pick(&moves_of(&read, seat), &mut choices);
                Q::apply(&mut read, seat, &mv, &chance(3), &mut events).unwrap();
                assert_eq!(read.check(), Ok(()));
            }
        }
        let mv = pick(&moves_of(&state, seat), &mut choices);
        Q::apply(&mut state, seat, &mv, &chance(3), &mut events).unwrap();
    }
}
