//! Nobody learns what they may not know. These laws do not know what is secret in a game: they deal what a viewer cannot
//! see anew and ask whether the viewer could tell.

use serde_json::Value;
use tavola::rulesets::random::Stream;
use tavola::rulesets::{Ruleset, Seat, Viewer};

use crate::laws::{Seen, Table, json, json_value, law};

/// A game as a viewer may imagine it.
fn imagine<R: Ruleset>(table: &Table<R>, viewer: Viewer, tester: &mut Stream) -> R::State {
    R::determinize(&R::view(&table.state, viewer), R::to_act(&table.state), &table.options, tester)
}

/// The law of redealing: the imagined game is possible and looks the same to its viewer, byte for byte; so do their legal
/// moves.
pub fn imagined_games_look_the_same<R: Ruleset>(
    table: &Table<R>,
    viewer: Viewer,
    tester: &mut Stream,
    seen: &mut Seen,
) -> Result<(), String> {
    let view = R::view(&table.state, viewer);
    let imagined = R::determinize(&view, R::to_act(&table.state), &table.options, tester);
    R::check(&imagined).map_err(|what| format!("{viewer:?} imagines an impossible state: {what}"))?;
    law!(R::view(&imagined, viewer) == view, "{viewer:?} sees something else in an imagined game");
    law!(
        json(&R::view(&imagined, viewer)) == json(&view),
        "{viewer:?} sees the same in other words in an imagined game"
    );
    law!(R::to_act(&imagined) == R::to_act(&table.state), "another seat is to act in an imagined game");
    if let Viewer::Seat(seat) = viewer {
        let mut moves = Vec::new();
        R::legal_moves(&imagined, seat, &mut moves);
        let own = if R::to_act(&table.state) == Some(seat) { table.moves.as_slice() } else { &[] };
        law!(moves == own && json(&moves) == json(&own), "seat {seat} has other legal moves in an imagined game");
    }
    seen.hidden |= view != R::view(&table.state, Viewer::Everything);
    seen.imagined |= imagined != table.state && viewer != Viewer::Everything;
    Ok(())
}

/// What a move and its events tell a viewer follows from what the viewer sees on the table. Let the mover make the same
/// move with any card in an imagined game: if the viewer then sees the same table, although the tables differ, the log
/// must read the same.
pub fn log_tells_no_more_than_views<R: Ruleset>(
    table: &Table<R>,
    tester: &mut Stream,
    seen: &mut Seen,
) -> Result<(), String> {
    let Some(mover) = R::to_act(&table.state) else { return Ok(()) };
    let mv = &table.moves[tester.below(table.moves.len() as u32) as usize];
    let Some((state, events)) = after(table, &table.state, mover, mv) else { return Ok(()) };
    for viewer in table.viewers().filter(|viewer| *viewer != Viewer::Everything) {
        let entry = log_entry::<R>(mv, &events, mover, viewer);
        let view = R::view(&state, viewer);
        let imagined = imagine(table, viewer, tester);
        let mut moves = Vec::new();
        R::legal_moves(&imagined, mover, &mut moves);
        // The same move with another card: what is done with it, and where, everybody sees.
        for other in moves.iter().filter(|other| without_cards(json_value(*other)) == without_cards(json_value(mv))) {
            let Some((other_state, other_events)) = after(table, &imagined, mover, other) else { continue };
            // A new deal makes tables equal again, whatever has been played before: that tells nothing.
            let differ = R::view(&other_state, Viewer::Everything) != R::view(&state, Viewer::Everything);
            let alike = R::view(&other_state, viewer) == view && R::to_act(&other_state) == R::to_act(&state);
            if differ && alike {
                seen.compared += 1;
                let other_entry = log_entry::<R>(other, &other_events, mover, viewer);
                law!(
                    words(&entry) == words(&other_entry),
                    "{viewer:?} can tell two games by the log: {entry} and {other_entry}"
                );
            }
        }
    }
    Ok(())
}

/// The words and numbers of a log entry in no order. When one move turns up several cards and they all leave the table,
/// the log tells where each has lain and the table no longer does. That tells nothing of what is still hidden: the cards
/// named are the same.
fn words(entry: &str) -> Vec<&str> {
    let mut words: Vec<&str> = entry.split([',', ':', '[', ']', '{', '}']).collect();
    words.sort_unstable();
    words
}

/// A move without the cards that it names.
fn without_cards(mut mv: Value) -> Value {
    if let Some(fields) = mv.as_object_mut() {
        fields.retain(|name, _| !matches!(name.as_str(), "card" | "cards"));
    }
    mv
}

fn after<R: Ruleset>(
    table: &Table<R>,
    state: &R::State,
    mover: Seat,
    mv: &R::Move,
) -> Option<(R::State, Vec<R::Event>)> {
    let (mut state, mut events) = (state.clone(), Vec::new());
    R::apply(&mut state, mover, mv, &table.random, &mut events).ok()?;
    Some((state, events))
}

fn log_entry<R: Ruleset>(mv: &R::Move, events: &[R::Event], mover: Seat, viewer: Viewer) -> String {
    let events: Vec<R::Event> = events.iter().map(|event| R::event_view(event, viewer)).collect();
    json(&(R::move_view(mv, mover, viewer), events))
}

/// `hand` is null where it is hidden, and `hand_count` is always there and right.
pub fn hands_are_the_viewers_own(view: &Value, viewer: Viewer, seats: u8) -> Result<(), String> {
    let lines = view["seats"].as_array().ok_or("a view has no seats")?;
    law!(lines.len() == usize::from(seats), "a view has another number of seats");
    for (seat, line) in (0..).zip(lines) {
        let (hand, count) = (&line["hand"], line["hand_count"].as_u64());
        law!(count.is_some(), "a seat has no hand_count");
        law!(hand.is_array() == viewer.sees(seat), "the hand of seat {seat} is wrong for {viewer:?}: {hand}");
        law!(hand.as_array().is_none_or(|hand| Some(hand.len() as u64) == count), "hand and hand_count disagree");
    }
    Ok(())
}

/// `card_drawn` names a card to the drawer only.
pub fn draws_are_the_drawers_own<R: Ruleset>(events: &[R::Event], viewer: Viewer) -> Result<(), String> {
    for event in events {
        let event = json_value(&R::event_view(event, viewer));
        if event["type"] == "card_drawn" {
            let drawer: Seat = serde_json::from_value(event["seat"].clone()).map_err(|e| e.to_string())?;
            law!(event["card"].is_string() == viewer.sees(drawer), "a draw is wrong for {viewer:?}: {event}");
        }
    }
    Ok(())
}
