//! Exactly the listed moves are accepted; a refused one changes nothing and tells nothing.

use serde_json::{Value, json};
use tavola::rulesets::random::Stream;
use tavola::rulesets::{Illegal, Ruleset, Seat, Viewer};

use crate::laws::{Seen, Table, json, json_value, law};

/// Strange moves tried at a ply.
const STRANGE: u32 = 24;

/// See the module.
pub fn only_listed_moves_are_accepted<R: Ruleset>(
    table: &Table<R>,
    tester: &mut Stream,
    seen: &mut Seen,
) -> Result<(), String> {
    let to_act = R::to_act(&table.state);
    for mv in &table.moves {
        let seat = to_act.ok_or("moves are listed after the end")?;
        let after = accepted(table, seat, mv)?.ok_or_else(|| format!("the listed move {} is refused", json(mv)))?;
        R::check(&after.0).map_err(|what| format!("{} leads to an impossible state: {what}", json(mv)))?;
    }
    // Nobody else can move, not even with a move that is legal for the seat to act.
    let some = table.moves.iter().take(3).chain(table.earlier.iter().take(3));
    for mv in some {
        for seat in (0..table.seats).chain([table.seats, 255]).filter(|seat| Some(*seat) != to_act) {
            law!(accepted(table, seat, mv)?.is_none(), "seat {seat} waits and makes the move {}", json(mv));
        }
    }
    let Some(seat) = to_act else { return Ok(()) };
    let imagined = R::determinize(&R::view(&table.state, Viewer::Seat(seat)), to_act, &table.options, tester);
    for _ in 0..STRANGE {
        let Some(mv) = strange_move(table, tester) else { continue };
        match accepted(table, seat, &mv)? {
            // Another way to write a listed move is as good.
            Some(after) => {
                let listed = table.moves.contains(&mv)
                    || table
                        .moves
                        .iter()
                        .any(|other| accepted(table, seat, other).is_ok_and(|a| a.as_ref() == Some(&after)));
                law!(listed, "the move {} is accepted and not listed", json(&mv));
            }
            None => law!(!table.moves.contains(&mv), "the listed move {} is refused", json(&mv)),
        }
        // The words of a refusal are the same whatever the mover cannot see.
        let refusal = |state: &R::State| {
            R::apply(&mut state.clone(), seat, &mv, &table.random, &mut Vec::new())
                .err()
                .map(|e| (e.rule(), e.to_string()))
        };
        let refused = refusal(&table.state);
        law!(refused == refusal(&imagined), "the refusal of {} tells the mover something hidden", json(&mv));
        if let Some((rule, words)) = refused {
            law!(crate::facts::is_rule_code(rule), "{rule:?} is no rule code");
            law!(!words.is_empty() && !words.contains('\n'), "a refusal by {rule} says nothing");
            seen.rules.insert(rule);
        }
    }
    Ok(())
}

/// State and events.
type After<R> = (<R as Ruleset>::State, Vec<<R as Ruleset>::Event>);

/// What there is after a move; none if it is refused, which must leave both untouched.
fn accepted<R: Ruleset>(table: &Table<R>, seat: Seat, mv: &R::Move) -> Result<Option<After<R>>, String> {
    let (mut state, mut events) = (table.state.clone(), Vec::new());
    match R::apply(&mut state, seat, mv, &table.random, &mut events) {
        Ok(()) => Ok(Some((state, events))),
        Err(_) => {
            law!(state == table.state && events.is_empty(), "the refused move {} has changed something", json(mv));
            Ok(None)
        }
    }
}

/// A move that was legal earlier, or a legal one with something changed in its JSON, as far as that is a move at all.
fn strange_move<R: Ruleset>(table: &Table<R>, tester: &mut Stream) -> Option<R::Move> {
    let mut pick = |n: usize| tester.below(n as u32) as usize;
    let from = if !table.earlier.is_empty() && pick(2) == 0 { &table.earlier } else { &table.moves };
    let mv = &from[pick(from.len())];
    if pick(4) == 0 {
        return Some(mv.clone());
    }
    let mut value = json_value(mv);
    for _ in 0..=pick(2) {
        let others = if table.earlier.is_empty() || pick(2) == 0 { &table.moves } else { &table.earlier };
        let donor = json_value(&others[pick(others.len())]);
        let fields = value.as_object_mut()?;
        let name = fields.keys().nth(pick(fields.len().max(1)))?.clone();
        match pick(4) {
            0 => drop(fields.remove(&name)),
            // Some fields, and all that the move lacks, come from another move.
            1 => donor.as_object()?.iter().for_each(|(name, value)| {
                if !fields.contains_key(name) || pick(3) == 0 {
                    fields.insert(name.clone(), value.clone());
                }
            }),
            _ => {
                let strange = strange_value(&fields[&name], &table.codes.cards, &mut pick);
                fields.insert(name, strange);
            }
        }
    }
    serde_json::from_value(value).ok()
}

fn strange_value(value: &Value, codes: &[&'static str], pick: &mut impl FnMut(usize) -> usize) -> Value {
    let code = |place: usize| Value::from(codes[place]);
    match value {
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or(0);
            [number + 1, number - 1, 0, -1, 127, -128, 255, 65_535, -2_147_483_648, 4_294_967_295][pick(10)].into()
        }
        Value::Array(items) => {
            let mut items = items.clone();
            match pick(6) {
                0 => drop(items.pop()),
                1 => items.extend_from_within(..items.len().min(1)),
                2 => items.push(code(pick(codes.len()))),
                3 => items.reverse(),
                4 => items = vec![code(pick(codes.len())); 1000],
                _ => {
                    if let Some(place) = items.len().checked_sub(1).map(|last| pick(last + 1)) {
                        items[place] = code(pick(codes.len()));
                    }
                }
            }
            items.into()
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Object(_) => match pick(8) {
            0 => json!("own"),
            1 => json!(null),
            _ => code(pick(codes.len())),
        },
    }
}
