//! The playing: no allocation for a decision, and games shared out among threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};

use super::statistics::{Game, Tally};
use crate::rulesets::Ruleset;
use crate::rulesets::random::{Random, Stream};

/// How many games a thread takes at a time: some milliseconds of work, so that all end together and seldom meet.
const BATCH: u64 = 32;

/// The random players' choices come from this stream of a game's chance, far from those that the rules use.
const PLAYERS: u64 = u64::MAX;

/// The chance of a game: SHA-256 over a fixed word, the seed and the game's number.
fn random(seed: u64, number: u64) -> Random {
    let hash = Sha256::new().chain_update("tavola simulate").chain_update(seed.to_le_bytes());
    Random::new(hash.chain_update(number.to_le_bytes()).finalize().into())
}

/// Plays games 0 to `games` − 1 on so many threads. `options` are resolved ones.
pub fn games<R: Ruleset>(options: &R::Options, seats: u8, seed: u64, games: u64, threads: usize) -> Tally {
    let bar = progress_bar(games);
    let (next, total) = (AtomicU64::new(0), Mutex::new(Tally::new(seats)));
    // Threads of our own: a pool would add nothing where all that is shared is a counter. All that a tally holds are
    // counts, so it does not matter who played what.
    let worker = || {
        let (mut tally, mut table) = (Tally::new(seats), Table::<R>::default());
        loop {
            let first = next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= games {
                break;
            }
            let batch = first..games.min(first + BATCH);
            bar.inc(batch.end - batch.start);
            for number in batch {
                tally.add(&table.play(options, seats, &random(seed, number)));
            }
        }
        total.lock().expect("no thread panics while it adds counts").merge(tally);
    };
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(worker))));
    bar.finish_and_clear();
    total.into_inner().expect("no thread panics while it adds counts")
}

/// On standard error, and only if that is a terminal.
fn progress_bar(games: u64) -> ProgressBar {
    let template = "{bar:40} {human_pos} of {human_len} games, {per_sec}, {eta} left";
    ProgressBar::new(games).with_style(ProgressStyle::with_template(template).expect("the template is well-formed"))
}

/// What is used again for every decision.
struct Table<R: Ruleset> {
    moves: Vec<R::Move>,
    events: Vec<R::Event>,
}

impl<R: Ruleset> Default for Table<R> {
    fn default() -> Self {
        Self { moves: Vec::new(), events: Vec::new() }
    }
}

impl<R: Ruleset> Table<R> {
    /// Plays one game to its end.
    fn play(&mut self, options: &R::Options, seats: u8, random: &Random) -> Game {
        let mut state = R::setup(options, seats, random);
        let starting_seat = R::to_act(&state).unwrap_or_default();
        let mut choices = random.stream(PLAYERS);
        let mut length = 0;
        while self.decide(&mut state, random, &mut choices) {
            length += 1;
        }
        let end = R::end(&state).expect("a game in which nobody can move is over");
        Game { starting_seat, length, end, ranking: R::ranking(&state) }
    }

    /// Makes one decision, each legal move being equally likely; false when the game is over.
    fn decide(&mut self, state: &mut R::State, random: &Random, choices: &mut Stream) -> bool {
        let Some(seat) = R::to_act(state) else { return false };
        self.moves.clear();
        self.events.clear();
        R::legal_moves(state, seat, &mut self.moves);
        let mv = &self.moves[choices.below(self.moves.len() as u32) as usize];
        R::apply(state, seat, mv, random, &mut self.events).expect("a listed move is legal");
        true
    }
}
