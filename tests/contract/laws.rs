//! The laws of one game, checked before and after every move. Each answers `Err` with its own wording when it breaks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::sync::LazyLock;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tavola::rulesets::random::{Random, Stream};
use tavola::rulesets::registry::{AnyState, RulesetId};
use tavola::rulesets::{EndReason, Meta, Ranked, Ruleset, Seat, Viewer};

use crate::case::Case;
use crate::facts::Codes;
use crate::{refusals, secrecy};

/// The costly laws are checked at every so many-th ply.
const COSTLY: u32 = 16;

/// Where very many games are played what takes time is checked more seldom, so many times: `TAVOLA_LAW_SELDOM`. That
/// states are possible, that somebody can move, and that games end is checked at every ply all the same.
fn seldom() -> u32 {
    static SELDOM: LazyLock<u32> = LazyLock::new(|| {
        std::env::var("TAVOLA_LAW_SELDOM").map_or(1, |n| n.parse().expect("TAVOLA_LAW_SELDOM is a number"))
    });
    *SELDOM
}

/// Breaks a law unless the condition holds.
macro_rules! law {
    ($holds:expr, $($words:tt)+) => {
        if !$holds {
            return Err(format!($($words)+));
        }
    };
}
pub(crate) use law;

/// What many games together have shown, for the laws that no single game can break.
#[derive(Default)]
pub struct Seen {
    pub games: u64,
    pub plies: u64,
    pub reasons: BTreeSet<EndReason>,
    /// Length of the longest game with default options.
    pub longest: u32,
    /// Something was hidden from somebody.
    pub hidden: bool,
    /// A player imagined something that was not so.
    pub imagined: bool,
    /// Codes of the rules that refused moves.
    pub rules: BTreeSet<&'static str>,
    /// Moves that were legal in an imagined game too and led to what the viewer saw: compared by their log entries.
    pub compared: u64,
}

impl Seen {
    pub fn add(&mut self, other: Seen) {
        self.games += other.games;
        self.plies += other.plies;
        self.reasons.extend(other.reasons);
        self.longest = self.longest.max(other.longest);
        self.hidden |= other.hidden;
        self.imagined |= other.imagined;
        self.rules.extend(other.rules);
        self.compared += other.compared;
    }

    /// What the ruleset declares and what was seen must agree.
    pub fn check(&self, meta: &Meta) {
        let declared: BTreeSet<EndReason> = meta.end_reasons.iter().copied().collect();
        assert_eq!(self.reasons, declared, "{}: end reasons seen, and those that it declares", meta.slug);
        assert!(self.longest <= meta.longest_game, "{}: a game of {} moves", meta.slug, self.longest);
        assert_eq!(self.hidden, self.imagined, "{}: what is hidden must be dealt anew", meta.slug);
        assert!(self.compared > 0, "{}: no log entries were compared", meta.slug);
        for rule in &self.rules {
            for (language, text) in [("English", meta.rules.en), ("Russian", meta.rules.ru)] {
                assert!(crate::facts::rule_codes(text).contains(*rule), "{}: {language} rules lack {rule}", meta.slug);
            }
        }
    }
}

impl Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Seen { games, plies, reasons, longest, rules, compared, .. } = self;
        write!(f, "{games} games, {plies} moves, longest {longest} by default, ended by {reasons:?}, ")?;
        write!(f, "refused by {rules:?}, {compared} log entries compared with imagined ones")
    }
}

/// A game under the laws.
pub struct Table<R: Ruleset> {
    pub state: R::State,
    pub options: R::Options,
    pub seats: u8,
    pub random: Random,
    /// Legal moves of the seat to act, as of the last [`Table::check`].
    pub moves: Vec<R::Move>,
    /// Whether everything is checked at this ply.
    thorough: bool,
    /// Moves that were legal at some time: now they should be refused, or still be legal.
    pub earlier: Vec<R::Move>,
    pub codes: Codes,
    /// The same game through the registry's types, restored from its snapshot and replayed from the log at every ply.
    twin: AnyState,
    ruleset: RulesetId,
    tester: Random,
    ply: u32,
    by_default: bool,
}

impl<R: Ruleset> Table<R> {
    pub fn deal(case: &Case) -> Result<Self, String> {
        let given = serde_json::from_str(&case.options).expect("options are JSON");
        let options = R::resolve(&given, case.seats).map_err(|e| format!("options are refused: {e:?}"))?;
        law!(R::resolve(&options, case.seats) == Ok(options.clone()), "resolving options again changes them");
        let random = case.random();
        let state = R::setup(&options, case.seats, &random);
        law!(state == R::setup(&options, case.seats, &random), "the same seed gives another deal");
        let given = serde_json::from_str(&case.options).expect("options are a JSON object");
        let any = case.ruleset.options(&given, case.seats).map_err(|e| format!("options are refused: {e:?}"))?;
        law!(json(&any) == json(&options), "the registry resolves options otherwise");
        let table = Self {
            twin: any.deal(case.seats, &random),
            state,
            options,
            seats: case.seats,
            random,
            moves: Vec::new(),
            thorough: true,
            earlier: Vec::new(),
            codes: Codes::of(&R::catalogue()),
            ruleset: case.ruleset,
            tester: case.tester(),
            ply: 0,
            by_default: case.options == "{}",
        };
        table.codes.make_up_the_deck(&json_value(&R::view(&table.state, Viewer::Everything)))?;
        Ok(table)
    }

    /// Chance of the tester for this ply.
    fn tester(&self) -> Stream {
        self.tester.stream(2 * u64::from(self.ply) + 1)
    }

    /// Everybody who can look.
    pub fn viewers(&self) -> impl Iterator<Item = Viewer> + use<R> {
        (0..self.seats).map(Viewer::Seat).chain([Viewer::Spectator, Viewer::Everything])
    }

    /// Checks the laws of a state; answers how many legal moves there are, none exactly when the game is over.
    pub fn check(&mut self, seen: &mut Seen) -> Result<usize, String> {
        R::check(&self.state).map_err(|what| format!("a state is impossible: {what}"))?;
        self.check_turn()?;
        let mut tester = self.tester();
        let edge = self.ply == 0 || R::to_act(&self.state).is_none();
        self.thorough = tester.below(seldom()) == 0;
        if !self.thorough {
            return if self.moves.is_empty() { self.check_end(seen).map(|()| 0) } else { Ok(self.moves.len()) };
        }
        self.check_copies()?;
        let costly = edge || tester.below(COSTLY) == 0;
        self.check_views(costly)?;
        // One viewer imagines at every ply; at some, all of them do.
        let turn = tester.below(u32::from(self.seats) + 2) as usize;
        for viewer in self.viewers().enumerate().filter(|(place, _)| costly || *place == turn).map(|(_, viewer)| viewer)
        {
            secrecy::imagined_games_look_the_same(self, viewer, &mut tester, seen)?;
        }
        if costly {
            refusals::only_listed_moves_are_accepted(self, &mut tester, seen)?;
            secrecy::log_tells_no_more_than_views(self, &mut tester, seen)?;
        }
        if self.moves.is_empty() {
            self.check_end(seen)?;
        }
        Ok(self.moves.len())
    }

    /// Not over: the seat to act can move. Over: nobody. Waiting seats, and seats that do not exist, never.
    fn check_turn(&mut self) -> Result<(), String> {
        let to_act = R::to_act(&self.state);
        law!(to_act.is_none() == R::end(&self.state).is_some(), "to_act and end disagree");
        law!(to_act.is_none_or(|seat| seat < self.seats), "a seat is to act that does not exist");
        self.moves.clear();
        for seat in (0..self.seats).chain([self.seats, 255]) {
            let before = self.moves.len();
            R::legal_moves(&self.state, seat, &mut self.moves);
            law!(Some(seat) == to_act || self.moves.len() == before, "seat {seat} waits and has a legal move");
        }
        law!(to_act.is_none() || !self.moves.is_empty(), "the game goes on and nobody can move");
        law!(self.moves.is_sorted_by(|a, b| a < b), "the legal moves are not sorted or not unique");
        Ok(())
    }

    /// Snapshot and replay both reproduce the state.
    fn check_copies(&mut self) -> Result<(), String> {
        let bytes = postcard::to_stdvec(&self.state).map_err(|e| e.to_string())?;
        let copy = postcard::from_bytes::<R::State>(&bytes).map_err(|e| format!("a snapshot cannot be read: {e}"))?;
        law!(copy == self.state, "the snapshot gives another state");
        let snapshot = self.twin.snapshot();
        law!(snapshot[1..] == bytes, "replaying the moves gives another state");
        let restored = self.ruleset.read_snapshot(&snapshot).map_err(|e| format!("a snapshot cannot be read: {e}"))?;
        law!(restored == self.twin, "the registry's snapshot gives another state");
        self.twin = restored;
        Ok(())
    }

    fn check_views(&self, costly: bool) -> Result<(), String> {
        law!(self.twin.ruleset() == self.ruleset, "the registry has lost the ruleset");
        law!(self.twin.to_act() == R::to_act(&self.state), "the registry has another seat to act");
        law!(!costly || self.twin.legal_moves(255).is_empty(), "the registry lists moves for no seat");
        for viewer in self.viewers().filter(|_| costly) {
            let view = R::view(&self.state, viewer);
            round_trip(&view, "view")?;
            let shown = json_value(&view);
            self.codes.are_known(&shown)?;
            secrecy::hands_are_the_viewers_own(&shown, viewer, self.seats)?;
            let mut tagged = json_value(&self.twin.view(viewer));
            let tag = tagged.as_object_mut().and_then(|view| view.remove("ruleset"));
            law!(tag == Some(json_value(&self.ruleset)) && tagged == shown, "the registry shows another view");
        }
        if let Some(seat) = R::to_act(&self.state).filter(|_| costly) {
            law!(json(&self.twin.legal_moves(seat)) == json(&self.moves), "the registry lists other moves");
        }
        Ok(())
    }

    /// The place of a random move, every kind of move (by the fields that it has) being as likely: so that games meet
    /// the moves that are seldom legal.
    pub fn rare_move(&self, ply: usize) -> usize {
        let mut tester = self.tester.stream(2 * ply as u64);
        if !self.thorough {
            return tester.below(self.moves.len() as u32) as usize;
        }
        let mut kinds: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, mv) in self.moves.iter().enumerate() {
            let mv = json_value(mv);
            let fields = mv.as_object().into_iter().flat_map(Map::keys).cloned().collect::<Vec<_>>().concat();
            kinds.entry(format!("{}{fields}", mv["type"])).or_default().push(place);
        }
        let kind = kinds.values().nth(tester.below(kinds.len() as u32) as usize).expect("there is a move");
        kind[tester.below(kind.len() as u32) as usize]
    }

    /// Makes the move with that place in the list and checks the laws of what it did.
    pub fn play(&mut self, place: usize, seen: &mut Seen) -> Result<(), String> {
        let seat = R::to_act(&self.state).ok_or("the game is over")?;
        let mv = self.moves[place].clone();
        let mut events = Vec::new();
        let mut after = self.state.clone();
        R::apply(&mut after, seat, &mv, &self.random, &mut events)
            .map_err(|e| format!("the listed move {} is refused: {e}", json(&mv)))?;

        if self.thorough {
            self.check_log(&mv, &events, seat, &after)?;
        }
        let any = self.ruleset.read_move(json(&mv).as_bytes()).map_err(|e| format!("a move cannot be read: {e}"))?;
        let told =
            self.twin.apply(seat, &any, &self.random).map_err(|e| format!("the registry refuses a move: {e}"))?;
        if self.thorough {
            law!(json(&told) == json(&events), "the same move has other events on a replay");
            let read = self.ruleset.read_events(&json(&told)).map_err(|e| format!("events cannot be read: {e}"))?;
            law!(read == told, "events change when they are written and read");
        }

        // A few are enough, and they should come from all parts of the game.
        if self.earlier.len() < 64 {
            self.earlier.push(mv);
        } else {
            self.earlier[self.ply as usize % 64] = mv;
        }
        self.state = after;
        self.ply += 1;
        seen.plies += 1;
        Ok(())
    }

    /// What the log holds of a move: it can be written and read, shows nobody more than they may see, and tells the story.
    fn check_log(&self, mv: &R::Move, events: &[R::Event], seat: Seat, after: &R::State) -> Result<(), String> {
        round_trip(mv, "move")?;
        law!(json(&R::move_view(mv, seat, Viewer::Seat(seat))) == json(mv), "a move is hidden from its mover");
        law!(json(&R::move_view(mv, seat, Viewer::Everything)) == json(mv), "a move is hidden after the end");
        for event in events {
            round_trip(event, "event")?;
            law!(R::event_view(event, Viewer::Everything) == *event, "an event is hidden after the end");
        }
        for viewer in self.viewers() {
            round_trip(&R::move_view(mv, seat, viewer), "move in the log")?;
            secrecy::draws_are_the_drawers_own::<R>(events, viewer)?;
        }
        self.check_story(events, seat, after)
    }

    /// The events say that the game is over, and who is to act, and nothing that the state does not.
    fn check_story(&self, events: &[R::Event], mover: Seat, after: &R::State) -> Result<(), String> {
        law!(!events.is_empty(), "a move has no event");
        let story: Vec<Value> = events.iter().map(json_value).collect();
        let places = |name| story.iter().enumerate().filter(move |(_, e)| e["type"] == name).map(|(place, _)| place);
        let end = R::end(after);
        let expected = if end.is_some() { vec![events.len() - 1] } else { Vec::new() };
        law!(places("game_finished").eq(expected), "game_finished is the last event of a game, and only of that");
        if let Some(reason) = end {
            law!(story[events.len() - 1]["reason"] == json_value(&reason), "game_finished gives another reason");
            law!(R::META.end_reasons.contains(&reason), "{reason:?} is no declared end reason");
        }
        let next = R::to_act(after);
        match places("turn_passed").next_back() {
            Some(place) if end.is_none() => {
                law!(story[place]["seat"] == json_value(&next), "turn_passed names another seat than the one to act");
            }
            _ => law!(next.is_none() || next == Some(mover), "the turn passed and no event says so"),
        }
        story.iter().try_for_each(|event| self.codes.are_known(event))
    }

    fn check_end(&self, seen: &mut Seen) -> Result<(), String> {
        let reason = R::end(&self.state).ok_or("nobody can move and the game is not over")?;
        seen.games += 1;
        seen.reasons.insert(reason);
        if self.by_default {
            seen.longest = seen.longest.max(self.ply);
            law!(self.ply <= R::META.longest_game, "the game is longer than the ruleset declares");
        }
        let ranking = R::ranking(&self.state);
        let outcome = self.twin.outcome().ok_or("the registry knows no outcome")?;
        law!(outcome.reason == reason && outcome.ranking == ranking, "the registry has another outcome");
        check_ranking(&ranking, self.seats, &R::META)
    }
}

/// C6, and what the resource says of rankings.
fn check_ranking(ranking: &[Ranked], seats: u8, meta: &Meta) -> Result<(), String> {
    let mut ranked: Vec<Seat> = ranking.iter().map(|line| line.seat).collect();
    ranked.sort_unstable();
    law!(ranked.iter().copied().eq(0..seats), "a ranking lists every seat once");
    law!(ranking.is_sorted_by_key(|line| (line.rank, line.seat)), "a ranking is in order of rank, then seat");
    for (place, line) in (1..).zip(ranking) {
        let better = ranking.iter().filter(|other| other.rank < line.rank).count();
        law!(usize::from(line.rank) == better + 1, "rank {} at place {place} of {ranking:?}", line.rank);
        law!(meta.score.contains(&line.score), "the score {} is out of range", line.score);
        // Alone at the table the first rank is no merit: there the game's own goal decides.
        law!(line.won == (line.rank == 1) || (seats == 1 && !line.won), "won is rank 1");
    }
    law!(ranking.is_sorted_by(|a, b| a.score >= b.score), "a better rank has the smaller score");
    Ok(())
}

pub fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("wire types are JSON")
}

pub fn json_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("wire types are JSON")
}

fn round_trip<T: Serialize + DeserializeOwned + PartialEq>(value: &T, what: &str) -> Result<(), String> {
    let text = json(value);
    let read: T = serde_json::from_str(&text).map_err(|e| format!("a {what} cannot be read back: {e}: {text}"))?;
    law!(read == *value, "a {what} changes when it is written and read: {text}");
    Ok(())
}

/// How often each text is in a JSON value, object keys excepted.
pub fn texts(value: &Value) -> BTreeMap<&str, usize> {
    fn walk<'a>(value: &'a Value, counts: &mut BTreeMap<&'a str, usize>) {
        match value {
            Value::String(text) => *counts.entry(text).or_default() += 1,
            Value::Array(items) => items.iter().for_each(|item| walk(item, counts)),
            Value::Object(fields) => fields.values().for_each(|item| walk(item, counts)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut counts = BTreeMap::new();
    walk(value, &mut counts);
    counts
}
