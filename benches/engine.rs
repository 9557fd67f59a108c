//! How fast the engine is, for every registered ruleset: `make bench`. `cargo bench --bench engine -- leopard` measures
//! only what matches.
//!
//! The figure for `decision` is that of one decision: list all legal moves, choose one uniformly, play it with the check
//! of its legality. The other figures are means over the positions of whole random games, from the deal to the end.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion};
use tavola::rulesets::random::{Random, Stream};
use tavola::rulesets::registry::{AnyMove, AnyState, RulesetId};
use tavola::rulesets::{Ruleset, Seat, Viewer};
use tavola::with_ruleset;

/// Games whose deals and positions are measured. Criterion's closures run over them again and again.
const GAMES: u64 = 64;

/// A game, played at random from its deal to its end.
struct Played<R: Ruleset> {
    random: Random,
    deal: R::State,
    /// What each seat did, in order.
    log: Vec<(Seat, R::Move)>,
    /// Before every move, and at the end.
    positions: Vec<R::State>,
}

impl<R: Ruleset> Played<R> {
    fn new(options: &R::Options, seats: u8, number: u64) -> Self {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&number.to_le_bytes());
        let random = Random::new(seed);
        let deal = R::setup(options, seats, &random);
        let mut choices = random.stream(u64::MAX);
        let (mut state, mut log, mut positions) = (deal.clone(), Vec::new(), Vec::new());
        let (mut moves, mut events) = (Vec::new(), Vec::new());
        loop {
            positions.push(state.clone());
            let Some((seat, place)) = decide::<R>(&mut state, &random, &mut choices, &mut moves, &mut events) else {
                return Self { random, deal, log, positions };
            };
            log.push((seat, moves[place].clone()));
        }
    }
}

/// One decision of a random player: who moved and which of `moves` it was; none when the game is over.
fn decide<R: Ruleset>(
    state: &mut R::State,
    random: &Random,
    choices: &mut Stream,
    moves: &mut Vec<R::Move>,
    events: &mut Vec<R::Event>,
) -> Option<(Seat, usize)> {
    let seat = R::to_act(state)?;
    moves.clear();
    events.clear();
    R::legal_moves(state, seat, moves);
    let place = choices.below(moves.len() as u32) as usize;
    R::apply(state, seat, &moves[place], random, events).expect("a listed move is legal");
    Some((seat, place))
}

/// Measures everything of one ruleset, with its default options and number of seats.
fn ruleset<R: Ruleset>(id: RulesetId, criterion: &mut Criterion) {
    let seats = 2.max(*R::META.seats.start());
    let options = R::resolve(&R::Options::default(), seats).expect("the default options are valid");
    let games: Vec<Played<R>> = (0..GAMES).map(|number| Played::new(&options, seats, number)).collect();
    let positions: Vec<&R::State> = games.iter().flat_map(|game| &game.positions).collect();
    let running: Vec<(&R::State, Seat)> =
        positions.iter().filter_map(|state| R::to_act(state).map(|seat| (*state, seat))).collect();
    // The same positions as the rest of the server has them.
    let any_options = id.options(&serde_json::Map::new(), seats).expect("the default options are valid");
    let any: Vec<AnyState> = games
        .iter()
        .flat_map(|game| {
            let mut state = any_options.deal(seats, &game.random);
            let mut states = vec![state.clone()];
            for (seat, mv) in &game.log {
                state.apply(*seat, &any_move(id, mv), &game.random).expect("the move was legal");
                states.push(state.clone());
            }
            states
        })
        .collect();
    let snapshots: Vec<Vec<u8>> = any.iter().map(AnyState::snapshot).collect();
    let views = any.iter().map(|state| serde_json::to_vec(&state.view(Viewer::Seat(0))).expect("a view is JSON").len());
    print_sizes(R::META.slug, positions.len(), snapshots.iter().map(Vec::len), views);

    let mut group = criterion.benchmark_group(R::META.slug);
    group.sample_size(20).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_millis(1200));

    group.bench_function("decision", |bencher| bencher.iter_custom(|decisions| playouts(&games, decisions)));
    group.bench_function("legal_moves", |bencher| {
        let (mut states, mut moves) = (running.iter().cycle(), Vec::new());
        bencher.iter(|| {
            let (state, seat) = states.next().expect("a cycle");
            moves.clear();
            R::legal_moves(state, *seat, &mut moves);
            black_box(&moves);
        });
    });
    group.bench_function("clone", |bencher| {
        let mut states = positions.iter().cycle();
        bencher.iter(|| R::State::clone(states.next().expect("a cycle")));
    });
    group.bench_function("view_json", |bencher| {
        let (mut states, mut json) = (any.iter().cycle(), Vec::new());
        bencher.iter(|| {
            let view = states.next().expect("a cycle").view(Viewer::Seat(0));
            json.clear();
            serde_json::to_writer(&mut json, &view).expect("a view is JSON");
            black_box(&json);
        });
    });
    group.bench_function("snapshot_write", |bencher| {
        let mut states = any.iter().cycle();
        bencher.iter(|| states.next().expect("a cycle").snapshot());
    });
    group.bench_function("snapshot_read", |bencher| {
        let mut snapshots = snapshots.iter().cycle();
        bencher.iter(|| id.read_snapshot(snapshots.next().expect("a cycle")).expect("a snapshot is readable"));
    });
    let longest = games.iter().max_by_key(|game| game.log.len()).expect("there are games");
    group.bench_function(format!("replay_{}_moves", longest.log.len()), |bencher| {
        let mut events = Vec::new();
        bencher.iter_batched(
            || longest.deal.clone(),
            |mut state| {
                for (seat, mv) in &longest.log {
                    events.clear();
                    R::apply(&mut state, *seat, mv, &longest.random, &mut events).expect("the move was legal");
                }
                state
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

/// The time for that many decisions: whole games from dealt ones, at least so many decisions of them, brought to scale.
fn playouts<R: Ruleset>(games: &[Played<R>], decisions: u64) -> Duration {
    let (mut moves, mut events) = (Vec::new(), Vec::new());
    let (mut made, mut taken) = (0, Duration::ZERO);
    for (number, game) in (0..).zip(games.iter().cycle()) {
        if made >= decisions {
            break;
        }
        let mut state = game.deal.clone();
        let mut choices = game.random.stream(number);
        let start = Instant::now();
        while decide::<R>(&mut state, &game.random, &mut choices, &mut moves, &mut events).is_some() {
            made += 1;
        }
        taken += start.elapsed();
        black_box(&state);
    }
    taken.mul_f64(decisions as f64 / made as f64)
}

fn any_move<M: serde::Serialize>(id: RulesetId, mv: &M) -> AnyMove {
    id.read_move(&serde_json::to_vec(mv).expect("a move is JSON")).expect("a move of the ruleset")
}

fn print_sizes(
    slug: &str,
    positions: usize,
    snapshots: impl Iterator<Item = usize> + Clone,
    views: impl Iterator<Item = usize> + Clone,
) {
    let told = |sizes: &dyn Fn() -> (usize, usize)| {
        let (sum, most) = sizes();
        format!("{} bytes on average, at most {most}", sum / positions)
    };
    let snapshot = told(&|| (snapshots.clone().sum(), snapshots.clone().max().unwrap_or_default()));
    let view = told(&|| (views.clone().sum(), views.clone().max().unwrap_or_default()));
    println!("{slug}: snapshot {snapshot}; view as JSON {view}; {positions} positions of {GAMES} games");
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for &id in RulesetId::ALL {
        with_ruleset!(id, R => ruleset::<R>(id, &mut criterion));
    }
    criterion.final_summary();
}
