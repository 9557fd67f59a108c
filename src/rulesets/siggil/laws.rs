//! What must hold in every game: dealt decks, a complete game move by move, and random play.

use serde_json::{Value, json};

use super::*;
use crate::rulesets::random::{commitment, game_seed};
use crate::rulesets::{Illegal, Ruleset};

/// A file under `tests/`, read when this is compiled: the layer of rules reads none.
macro_rules! fixture {
    ($path:literal) => {
        serde_json::from_str::<Value>(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/", $path))).unwrap()
    };
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> [u8; 32] {
    std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
}

/// The chance of a fixture, whose entropies stand under `entropies`; its seeds are checked on the way.
fn chance(fixture: &Value, entropies: &str) -> Random {
    let server_seed = unhex(text(&fixture["server_seed"]));
    assert_eq!(hex(&commitment(&server_seed)), text(&fixture["commitment"]));
    let entropies = fixture[entropies].as_array().unwrap().iter().map(text);
    Random::new(game_seed(&server_seed, text(&fixture["game_id"]), "siggil", entropies))
}

#[test]
fn s02_s11_the_fairness_vectors_are_dealt() {
    let vectors = fixture!("fairness-vectors.json");
    let vectors: Vec<_> = vectors.as_array().unwrap().iter().filter(|v| v["ruleset"] == "siggil").collect();
    assert!(vectors.len() >= 3);
    for vector in vectors {
        let seats = vector["seats"].as_u64().unwrap() as u8;
        for layout in Layout::all() {
            let state =
                Siggil::setup(&Options { layout: Some(layout), difficulty: None }, seats, &chance(vector, "entropy"));
            assert_eq!((Siggil::to_act(&state), state.check()), (Some(vector["lot"].as_u64().unwrap() as u8), Ok(())));
            for (slot, code) in (0..).zip(vector["slots"].as_array().unwrap()) {
                match state.sigil.card(slot) {
                    Some(card) => assert_eq!(card.code(), text(code)),
                    // Only spirits have left (S3).
                    None => assert!(state.free.iter().any(|spirit| SigilCard::from(spirit).code() == text(code))),
                }
            }
        }
    }
}

/// Sorts the lists whose order means nothing.
fn without_order(mut value: Value) -> Value {
    fn sort(value: &mut Value, name: &str) {
        match value {
            Value::Array(items) => {
                items.iter_mut().for_each(|item| sort(item, ""));
                if ["hand", "available", "free_spirits", "escaped", "spirits", "cards", "sets", "sigil", ""]
                    .contains(&name)
                {
                    items.sort_by_key(Value::to_string);
                }
            }
            Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| sort(value, name)),
            _ => {}
        }
    }
    sort(&mut value, "");
    value
}

#[test]
fn a_complete_game_is_replayed() {
    let game = fixture!("playthroughs/siggil/completed.json");
    let random = chance(&game, "entropies");
    let seats = game["seats"].as_u64().unwrap() as u8;
    let options: Options = serde_json::from_value(game["options"].clone()).unwrap();
    assert_eq!(Siggil::resolve(&options, seats).as_ref(), Ok(&options));
    let mut state = Siggil::setup(&options, seats, &random);
    assert_eq!(json!(state.turn), game["lot"]);

    let checkpoints = game["checkpoints"].as_array().unwrap();
    let compare = |state: &State, played: usize| {
        let Some(checkpoint) = checkpoints.iter().find(|point| point["after"] == played) else { return 0 };
        assert_eq!(json!(Siggil::to_act(state)), checkpoint["to_move"]);
        for (name, viewer) in [("state", Viewer::Everything), ("spectator_state", Viewer::Spectator)] {
            let mut view = serde_json::to_value(Siggil::view(state, viewer)).unwrap();
            view["ruleset"] = json!("siggil");
            assert_eq!(without_order(view), without_order(checkpoint[name].clone()), "{name} after {played}");
        }
        let moves = json!(listed(state, state.turn));
        assert_eq!(without_order(moves), without_order(checkpoint["legal_moves"].clone()), "after {played}");
        1
    };
    let mut compared = compare(&state, 0);
    for (played, entry) in (1..).zip(game["moves"].as_array().unwrap()) {
        assert_eq!(json!(Siggil::to_act(&state)), entry["seat"]);
        assert_eq!(json!(listed(&state, state.turn).len()), entry["legal_moves"], "before move {played}");
        let mv: Move = serde_json::from_value(entry["move"].clone()).unwrap();
        let seat = state.turn;
        Siggil::apply(&mut state, seat, &mv, &random, &mut Vec::new()).unwrap();
        compared += compare(&state, played);
    }
    assert_eq!(compared, checkpoints.len());
    assert_eq!(json!({"reason": Siggil::end(&state), "ranking": Siggil::ranking(&state)}), game["outcome"]);
}

/// The legal moves of a seat.
fn listed(state: &State, seat: Seat) -> Vec<Move> {
    let mut moves = Vec::new();
    Siggil::legal_moves(state, seat, &mut moves);
    moves
}

/// Every table: seats and options.
fn tables() -> impl Iterator<Item = (u8, Options)> {
    let multi = (2..=4).flat_map(|seats| Layout::all().map(move |layout| (seats, layout, None)));
    let solo = [Difficulty::Normal, Difficulty::Hard]
        .into_iter()
        .flat_map(|difficulty| Layout::all().map(move |layout| (1, layout, Some(difficulty))));
    multi.chain(solo).map(|(seats, layout, difficulty)| (seats, Options { layout: Some(layout), difficulty }))
}

/// Plays at random to the end and hands every position before a move to `look`, with the legal moves and the one chosen.
fn play(seats: u8, options: &Options, seed: u8, mut look: impl FnMut(&State, &[Move], Move, &mut Stream)) -> State {
    let random = Random::new([seed; 32]);
    // Far from the streams of the rules.
    let (mut choice, mut other) = (random.stream(1000), random.stream(1001));
    let mut state = Siggil::setup(options, seats, &random);
    let (mut played, mut moves, mut events) = (0, Vec::new(), Vec::new());
    while let Some(seat) = Siggil::to_act(&state) {
        moves.clear();
        Siggil::legal_moves(&state, seat, &mut moves);
        let mv = moves[choice.below(moves.len() as u32) as usize];
        look(&state, &moves, mv, &mut other);
        Siggil::apply(&mut state, seat, &mv, &random, &mut events).unwrap();
        played += 1;
    }
    assert!(played <= Siggil::META.longest_game);
    assert!(matches!(events.last(), Some(Event::GameFinished { .. })));
    assert_eq!(events.iter().filter(|event| matches!(event, Event::GameFinished { .. })).count(), 1);
    state
}

/// Moves that resemble a legal one, legal or not.
fn like(mv: Move, state: &State, random: &mut Stream) -> Vec<Move> {
    let spirit = Spirit::at(random.below(7) as usize);
    let card = Card::at(random.below(49) as usize);
    let slot = random.below(256) as u8;
    let hand = state.hands[usize::from(state.turn)];
    let mut moves = vec![
        Move::Discard { slot },
        Move::Take { slot },
        Move::Discard { slot: slot % 56 },
        Move::Take { slot: slot % 56 },
        Move::Release { spirit },
        Move::EndTurn {},
        Move::Capture { spirit, cards: hand, set: None },
        Move::Capture { spirit, cards: CardSet::ALL, set: Some(slot) },
        Move::Capture { spirit, cards: CardSet::default(), set: Some(0) },
    ];
    if let Move::Capture { spirit: own, cards, set } = mv {
        let mut more = cards;
        more.insert(hand.iter().next().unwrap_or(card));
        let less: CardSet = cards.iter().skip(1).collect();
        let other: CardSet = less.iter().chain([card]).collect();
        for cards in [cards, more, less, other] {
            for set in [set, None, Some(slot % 8)] {
                moves.extend([own, spirit].map(|spirit| Move::Capture { spirit, cards, set }));
            }
        }
    }
    moves
}

#[test]
fn laws_of_moves() {
    for (seats, options) in tables() {
        for seed in 0..3 {
            let end = play(seats, &options, seed, |state, moves, mv, random| {
                assert_eq!(state.check(), Ok(()));
                assert!(!moves.is_empty() && moves.is_sorted_by(|a, b| a < b));
                for seat in (0..=seats).filter(|seat| *seat != state.turn) {
                    assert_eq!(listed(state, seat), []);
                }
                for mv in like(mv, state, random).into_iter().chain(moves.iter().copied()) {
                    let (mut copy, mut events) = (state.clone(), Vec::new());
                    match moves::apply(&mut copy, state.turn, &mv, &mut events) {
                        Ok(()) => assert!(moves.contains(&mv), "{mv:?} was accepted"),
                        Err(error) => {
                            assert!(!moves.contains(&mv), "{mv:?} was refused: {error}");
                            assert!(error.rule().starts_with(['C', 'S']));
                            assert_eq!((&copy, events.len()), (state, 0));
                        }
                    }
                }
            });
            assert_eq!((Siggil::to_act(&end), end.check()), (None, Ok(())));
            let ranking = Siggil::ranking(&end);
            assert!(ranking.len() == usize::from(seats) && ranking[0].rank == 1);
            assert!(ranking.iter().all(|line| Siggil::META.score.contains(&line.score)));
            assert_eq!(play(seats, &options, seed, |_, _, _, _| {}), end, "the same seed is the same game");
        }
    }
}

#[test]
fn laws_of_snapshots_and_views() {
    let viewers = |seats| (0..seats).map(Viewer::Seat).chain([Viewer::Spectator, Viewer::Everything]);
    for (seats, options) in tables() {
        let look = |state: &State, to_act: Option<Seat>, random: &mut Stream| {
            let snapshot = postcard::to_stdvec(state).unwrap();
            assert!(snapshot.len() <= 250);
            assert_eq!(postcard::from_bytes::<State>(&snapshot).as_ref(), Ok(state));
            // Text is slow to compare: at some positions only, and at the end.
            let read = to_act.is_none() || random.below(16) == 0;
            for viewer in viewers(seats) {
                let view = Siggil::view(state, viewer);
                let imagined = Siggil::determinize(&view, to_act, &options, random);
                assert_eq!(imagined.check(), Ok(()));
                assert_eq!(Siggil::view(&imagined, viewer), view);
                match viewer {
                    Viewer::Seat(seat) => assert_eq!(listed(&imagined, seat), listed(state, seat)),
                    Viewer::Spectator => {}
                    Viewer::Everything => assert!(imagined == *state || to_act.is_none(), "nothing is left to imagine"),
                }
                if read {
                    let json = serde_json::to_string(&view).unwrap();
                    assert_eq!(serde_json::from_str::<View>(&json).unwrap(), view);
                    assert_eq!(serde_json::to_string(&Siggil::view(&imagined, viewer)).unwrap(), json);
                    shows_no_hidden_card(state, viewer, &json);
                }
            }
        };
        let end = play(seats, &options, 7, |state, _, mv, random| {
            look(state, Some(state.turn), random);
            let json = serde_json::to_string(&mv).unwrap();
            assert_eq!(serde_json::from_str::<Move>(&json).unwrap(), mv);
            let (mut copy, mut events) = (state.clone(), Vec::new());
            moves::apply(&mut copy, state.turn, &mv, &mut events).unwrap();
            for event in events {
                let json = serde_json::to_string(&event).unwrap();
                assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
                assert!(viewers(seats).all(|viewer| Siggil::event_view(&event, viewer) == event));
            }
        });
        look(&end, None, &mut Random::new([7; 32]).stream(1001));
    }
}

/// Every card has one copy, so that a hidden one must not be named at all.
fn shows_no_hidden_card(state: &State, viewer: Viewer, json: &str) {
    if viewer == Viewer::Everything {
        return;
    }
    let down = state.sigil.cards().filter(|(slot, _)| !state.sigil.is_face_up(*slot)).map(|(_, card)| card);
    let hands = (0..).zip(&state.hands).filter(|(seat, _)| !viewer.sees(*seat));
    let held = hands.flat_map(|(_, hand)| hand.iter()).map(SigilCard::from);
    for card in down.chain(held) {
        assert!(!json.contains(&format!("\"{card}\"")), "{card} is shown to {viewer:?}");
    }
}

#[test]
fn a_client_can_follow_a_game_by_its_events() {
    for (seats, options) in tables() {
        let mut folded: Option<(View, Seat)> = None;
        play(seats, &options, 11, |state, _, mv, _| {
            let view = Siggil::view(state, Viewer::Everything);
            let (mut client, mut turn) = folded.take().unwrap_or((view.clone(), state.turn));
            // Which cards are free to take and what is asked next follow from the rules, not from events.
            (client.available, client.phase) = (view.available.clone(), view.phase);
            assert_eq!((&client, turn), (&view, state.turn));
            let (mut copy, mut events) = (state.clone(), Vec::new());
            moves::apply(&mut copy, state.turn, &mv, &mut events).unwrap();
            events.iter().for_each(|event| fold(&mut client, &mut turn, event));
            folded = Some((client, turn));
        });
    }
}

/// What a client makes of an event.
fn fold(client: &mut View, turn: &mut Seat, event: &Event) {
    let leave = |client: &mut View, gone: u8| client.sigil.retain(|slot| slot.slot != gone);
    match *event {
        Event::CardTaken { seat, slot, card } => {
            leave(client, slot);
            let own = &mut client.seats[usize::from(seat)];
            own.hand.as_mut().unwrap().insert(card);
            own.hand_count += 1;
        }
        Event::CardDiscarded { slot, card, .. } => {
            leave(client, slot);
            client.discard.push(card);
        }
        Event::CardRevealed { slot, card, .. } => {
            let place = client.sigil.iter_mut().find(|other| other.slot == slot).unwrap();
            (place.face, place.card) = (Face::Up, Some(card));
        }
        Event::SpiritFreed { slot, spirit, .. } => {
            leave(client, slot);
            client.free_spirits.push(spirit);
            client.free_spirits.sort_unstable();
        }
        Event::SpiritCaptured { seat, spirit, from, set, by, cards } => {
            match from {
                None => client.free_spirits.retain(|other| *other != spirit),
                Some(loser) => {
                    let loser = &mut client.seats[usize::from(loser)];
                    loser.spirits.retain(|other| *other != spirit);
                    loser.sets.iter_mut().filter(|set| set.spirit == spirit).for_each(|set| set.holds_spirit = false);
                }
            }
            let own = &mut client.seats[usize::from(seat)];
            own.spirits.push(spirit);
            own.spirits.sort_unstable();
            own.hand = own.hand.map(|hand| hand.without(cards));
            own.hand_count -= cards.len() as u8;
            match own.sets.iter_mut().find(|other| other.id == set) {
                Some(grown) => (grown.cards, grown.holds_spirit) = (grown.cards.or(cards), true),
                None => own.sets.push(SetView { id: set, spirit, by, cards, holds_spirit: true }),
            }
        }
        Event::SpiritEscaped { spirit, .. } => {
            client.free_spirits.retain(|other| *other != spirit);
            client.escaped.push(spirit);
            client.escaped.sort_unstable();
        }
        Event::TurnPassed { seat } => *turn = seat,
        Event::GameFinished { .. } => {}
    }
}

#[test]
fn a_damaged_snapshot_is_refused_or_harmless() {
    for (seats, options) in tables() {
        play(seats, &options, 5, |state, _, _, random| {
            let mut snapshot = postcard::to_stdvec(state).unwrap();
            let place = random.below(snapshot.len() as u32) as usize;
            snapshot[place] ^= 1 << random.below(8);
            let Ok(mut damaged) = postcard::from_bytes::<State>(&snapshot) else { return };
            if damaged.check().is_err() {
                return;
            }
            Siggil::view(&damaged, Viewer::Spectator);
            while let Some(seat) = Siggil::to_act(&damaged) {
                let moves = listed(&damaged, seat);
                let mv = moves[random.below(moves.len() as u32) as usize];
                moves::apply(&mut damaged, seat, &mv, &mut Vec::new()).unwrap();
            }
        });
    }
}
