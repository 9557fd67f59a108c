//! Whole games: the fairness vectors, the playthrough, and the laws over random play.

use serde_json::{Value, json};

use super::*;
use crate::rulesets::random::{commitment, game_seed};
use crate::rulesets::registry::AnyState;

/// A file under `tests/`, read when this is compiled: the layer of rules reads none.
macro_rules! fixture {
    ($path:literal) => {
        serde_json::from_str::<Value>(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/", $path))).unwrap()
    };
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

fn unhex(text: &Value) -> [u8; 32] {
    let text = text.as_str().unwrap();
    std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
}

/// The seeds of a fixture: what it must be committed to, and the game's own.
fn seed_of(fixture: &Value, entropies: &Value) -> [u8; 32] {
    let server_seed = unhex(&fixture["server_seed"]);
    assert_eq!(commitment(&server_seed), unhex(&fixture["commitment"]));
    let (game_id, slug) = (fixture["game_id"].as_str().unwrap(), fixture["ruleset"].as_str().unwrap());
    game_seed(&server_seed, game_id, slug, texts(entropies))
}

#[test]
fn the_deals_are_those_of_the_fairness_vectors() {
    let vectors = fixture!("fairness-vectors.json");
    let vectors = vectors.as_array().unwrap().iter().filter(|vector| vector["ruleset"] == "leopard");
    let mut count = 0;
    for vector in vectors {
        let seed = seed_of(vector, &vector["entropy"]);
        assert_eq!(seed, unhex(&vector["game_seed"]));
        let random = Random::new(seed);
        let mut state = Leopard::setup(&Options::default(), 2, &random);
        let sorted = |codes: &[&str]| codes.iter().map(|code| card(code)).collect::<Hand>();
        let top = |state: &State| state.stock.iter().rev().map(|card| card.code()).collect::<Vec<_>>();
        assert_eq!([&vector["lot"], &vector["dealer"]], [&json!(state.dealer); 2]);
        // The vectors are of the deal before the first draw.
        state.deal(&random);
        assert_eq!(top(&state), texts(&vector["deck"]));
        for seat in 0..2 {
            assert_eq!(state.hands[seat], sorted(&texts(&vector["seats_dealt"][seat]["hand"])));
        }
        state.scored_hands.push(ScoredHand::new(None, [0, 0]));
        state.dealer = 1 - state.dealer;
        state.deal(&random);
        let second = texts(&vector["second_hand_stock_top5_and_hands"]);
        assert_eq!(state.hands[usize::from(state.starter())], sorted(&second[..8]));
        assert_eq!(state.hands[usize::from(state.dealer)], sorted(&second[8..16]));
        assert_eq!(top(&state)[..5], second[16..]);
        count += 1;
    }
    assert!(count > 0);
}

/// JSON with the lists sorted whose order means nothing.
fn in_any_order(mut value: Value) -> Value {
    let sort = |list: &mut Value| {
        if let Value::Array(items) = list {
            items.sort_by_key(Value::to_string);
        }
    };
    if value.is_array() {
        sort(&mut value);
    } else if let Some(seats) = value["seats"].as_array_mut() {
        seats.iter_mut().for_each(|seat| sort(&mut seat["hand"]));
    }
    value
}

#[test]
fn the_playthrough_is_replayed_exactly() {
    let game = fixture!("playthroughs/leopard/completed.json");
    let random = Random::new(seed_of(&game, &game["entropies"]));
    assert_eq!(json!(random.lot(2)), game["lot"]);
    let options = RulesetId::Leopard.options(game["options"].as_object().unwrap(), 2).unwrap();
    assert_eq!(serde_json::to_value(&options).unwrap(), game["options"]);
    let mut state = options.deal(2, &random);
    let played = game["moves"].as_array().unwrap();
    for after in 0..=played.len() {
        let legal = |state: &AnyState| state.to_act().map(|seat| state.legal_moves(seat)).unwrap_or_default();
        for checkpoint in game["checkpoints"].as_array().unwrap().iter().filter(|c| c["after"] == after) {
            assert_eq!(json!(state.to_act()), checkpoint["to_move"]);
            for (viewer, field) in [(Viewer::Everything, "state"), (Viewer::Spectator, "spectator_state")] {
                let view = serde_json::to_value(state.view(viewer)).unwrap();
                assert_eq!(in_any_order(view), in_any_order(checkpoint[field].clone()), "{field} after {after}");
            }
            let listed = serde_json::to_value(legal(&state)).unwrap();
            assert_eq!(in_any_order(listed), in_any_order(checkpoint["legal_moves"].clone()));
        }
        let Some(entry) = played.get(after) else { break };
        assert_eq!(json!(legal(&state).len()), entry["legal_moves"], "before move {}", entry["number"]);
        let mv = RulesetId::Leopard.read_move(entry["move"].to_string().as_bytes()).unwrap();
        let seat = entry["seat"].as_u64().unwrap() as Seat;
        state.apply(seat, &mv, &random).unwrap();
    }
    assert_eq!(serde_json::to_value(state.outcome()).unwrap(), game["outcome"]);
}

/// Brings a view up to date by an event as the same viewer sees it: what a client does that never asks for the state again.
/// Points of squares are left to the caller.
fn fold(view: &mut View, event: &Event) {
    fn take(view: &mut View, seat: Seat, card: Option<Card>) {
        let seat = &mut view.seats[usize::from(seat)];
        seat.hand_count -= 1;
        if let Some(hand) = &mut seat.hand {
            hand.remove(hand.iter().position(|held| Some(*held) == card).unwrap());
        }
    }
    match *event {
        Event::CardPlayed { seat, card, square, cell, face } => {
            take(view, seat, card);
            let owner = if square == Whose::Own { seat } else { 1 - seat };
            view.seats[usize::from(owner)].square[usize::from(cell) - 1].push(LaidView { face, card });
        }
        Event::CardDiscarded { seat, card } => {
            take(view, seat, Some(card));
            view.discard.push(card);
        }
        Event::CardDrawn { seat, card } => {
            let seat = &mut view.seats[usize::from(seat)];
            seat.hand_count += 1;
            view.stock_count -= 1;
            if let Some(hand) = &mut seat.hand {
                hand.push(card.unwrap());
                hand.sort_unstable();
            }
        }
        Event::HandScored { ended_by, values, scores } => {
            view.scored_hands.push(ScoredHand { ended_by, values, scores });
            view.seats.iter_mut().zip(scores).for_each(|(seat, score)| seat.total += u16::from(score));
        }
        Event::HandDealt { seat, hand_number, dealer, cards } => {
            (view.hand_number, view.dealer, view.stock_count) = (hand_number, dealer, 88);
            view.discard.clear();
            let seat = &mut view.seats[usize::from(seat)];
            (seat.hand, seat.hand_count) = (cards.map(|cards| cards.into_iter().collect()), 8);
            seat.square = Default::default();
        }
        Event::TurnPassed { .. } | Event::GameFinished { .. } => {}
    }
}

/// Every move that can be written, sensible or not.
fn all_moves() -> Vec<Move> {
    let cells = || (0..=10).chain([255]).map(Some).chain([None]);
    let lays = Card::all().flat_map(|card| {
        [Whose::Own, Whose::Opponent]
            .into_iter()
            .flat_map(move |square| cells().map(move |cell| Move::Lay { card, square, cell }))
    });
    lays.chain(Card::all().map(|card| Move::Discard { card })).chain([Move::EndHand {}]).collect()
}

fn round_trip<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let json = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&json).unwrap(), value);
}

/// Plays a game at random, holding every state against the laws; answers the number of moves.
fn play_by_the_laws(options: &Options, seed: u8) -> u32 {
    let options = options.resolve().unwrap();
    let (random, all) = (random(seed), all_moves());
    let mut choice = random.stream(1000);
    let mut state = Leopard::setup(&options, 2, &random);
    assert_eq!(state, Leopard::setup(&options, 2, &random));
    let viewers = [Viewer::Seat(0), Viewer::Seat(1), Viewer::Spectator, Viewer::Everything];
    let mut clients = viewers.map(|viewer| Leopard::view(&state, viewer));
    let mut number = 0;
    loop {
        assert_eq!(state.check(), Ok(()));
        assert_eq!(postcard::from_bytes::<State>(&postcard::to_allocvec(&state).unwrap()).unwrap(), state);
        assert_eq!(state.ranking().len(), 2);
        assert!(state.ranking().iter().all(|ranked| Leopard::META.score.contains(&ranked.score)));
        for (viewer, client) in viewers.iter().zip(&mut clients) {
            let view = Leopard::view(&state, *viewer);
            client.seats.iter_mut().zip(&view.seats).for_each(|(known, seat)| known.square_value = seat.square_value);
            assert_eq!(client, &view, "the events tell {viewer:?} everything");
            if number % 8 == 0 || state.to_act.is_none() {
                round_trip(&view);
                let imagined = Leopard::determinize(&view, state.to_act, &options, &mut choice);
                assert_eq!(imagined.check(), Ok(()));
                assert_eq!(Leopard::view(&imagined, *viewer), view);
                if let Viewer::Seat(seat) = *viewer {
                    let (mut real, mut other) = (Vec::new(), Vec::new());
                    Leopard::legal_moves(&state, seat, &mut real);
                    Leopard::legal_moves(&imagined, seat, &mut other);
                    assert_eq!(real, other);
                }
            }
        }
        let listed = moves(&state);
        let Some(seat) = state.to_act else {
            assert_eq!((listed.len(), Leopard::end(&state)), (0, Some(EndReason::Completed)));
            return number;
        };
        assert!(!listed.is_empty() && listed.windows(2).all(|pair| pair[0] < pair[1]), "sorted and unique");
        if number % 24 == 0 {
            listed.iter().for_each(round_trip);
            for mv in &all {
                let (mut copy, mut events) = (state.clone(), Vec::new());
                let result = Leopard::apply(&mut copy, seat, mv, &random, &mut events);
                assert_eq!(result.is_ok(), listed.binary_search(mv).is_ok(), "{mv:?}: {result:?}");
                assert!(result.is_ok() || copy == state && events.is_empty());
            }
        }
        // Every other seed ends hands as soon as it may.
        let hasty = seed % 2 == 1 && listed.ends_with(&[Move::EndHand {}]);
        let mv = if hasty { Move::EndHand {} } else { listed[choice.below(listed.len() as u32) as usize] };
        let mut events = Vec::new();
        Leopard::apply(&mut state, seat, &mv, &random, &mut events).unwrap();
        number += 1;
        for (viewer, client) in viewers.iter().zip(&mut clients) {
            round_trip(&Leopard::move_view(&mv, seat, *viewer));
            for event in &events {
                let seen = Leopard::event_view(event, *viewer);
                round_trip(&seen);
                assert_eq!(seen == *event, !is_secret(event, *viewer));
                fold(client, &seen);
            }
        }
    }
}

/// Whether an event holds what the viewer may not know.
fn is_secret(event: &Event, viewer: Viewer) -> bool {
    match *event {
        Event::CardPlayed { seat, card, .. } => card.unwrap().lies_face_down() && !viewer.sees(seat),
        Event::HandDealt { seat, .. } | Event::CardDrawn { seat, .. } => !viewer.sees(seat),
        Event::CardDiscarded { .. }
        | Event::HandScored { .. }
        | Event::TurnPassed { .. }
        | Event::GameFinished { .. } => false,
    }
}

#[test]
fn random_games_keep_the_laws() {
    let all_options = [
        Options::default(),
        Options { hands: Some(3), scoring: Some(Scoring::Edition2008), ..Default::default() },
        Options { target_points: Some(9), ..Default::default() },
    ];
    for (seed, options) in (0..6).zip(all_options.iter().cycle()) {
        let length = play_by_the_laws(options, seed);
        if *options == Options::default() {
            assert!(length <= Leopard::META.longest_game);
        }
    }
}

#[test]
fn the_longest_game_is_as_long_as_declared() {
    let random = random(5);
    let mut state = Leopard::setup(&Options::default(), 2, &random);
    let mut number = 0;
    while let Some(seat) = state.to_act {
        let card = state.hands[usize::from(seat)].faces().next().unwrap();
        Leopard::apply(&mut state, seat, &Move::Discard { card }, &random, &mut Vec::new()).unwrap();
        number += 1;
    }
    assert_eq!(number, Leopard::META.longest_game);
}
