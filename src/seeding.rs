//! A past for a database: games as people play them, from the engine, in bulk (`tavola seed-history`).
//!
//! For trying out how a server does with a long history, not for servers that people play on. The same seed gives the same games.

use futures_util::{StreamExt, stream};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};
use time::{Duration, OffsetDateTime};

use crate::config::Seeding;
use crate::game::{
    Change, Clock, Command, Entropy, Game, GameError, Invite, LogRow, NewGame, Occurrence, Player, PlayerKind,
    ServerSeed, Spectators, Visibility,
};
use crate::rulesets::registry::RulesetId;
use crate::store::{Past, Store, StoreError};

/// How many games are written at once.
const BATCH: u64 = 1_000;

/// Over how long the games are spread, up to now.
const YEARS: i64 = 2;

/// Why there is no past, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    #[error("the games cannot be written")]
    Store(#[from] StoreError),
    #[error("a game cannot be played")]
    Game(#[from] GameError),
    #[error("the work was broken off")]
    Thread(#[from] tokio::task::JoinError),
}

/// Plays the games and writes them; says on standard error how far it is.
///
/// # Errors
/// The database fails; what was written until then stays.
pub async fn run(store: &Store, settings: &Seeding) -> Result<(), SeedError> {
    let now = store.now().await?;
    let players = players(settings);
    store.insert_players(&players, now - Duration::days(365 * YEARS + 1)).await?;
    let logs = if settings.all_logs { settings.games } else { settings.logs.min(settings.games) };
    let first = now - Duration::days(365 * YEARS);
    let batches = (0..settings.games).step_by(BATCH as usize).map(|from| {
        let (settings, players) = (settings.clone(), players.clone());
        let to = settings.games.min(from + BATCH);
        // Those with logs are spread over all the time.
        let has_log = move |number: u64| number * logs / settings.games != (number + 1) * logs / settings.games;
        let play = move || -> Result<Vec<Past>, GameError> {
            (from..to)
                .map(|number| {
                    let span = Duration::days(365 * YEARS - 30).whole_milliseconds() as u64;
                    let created_at = first + Duration::milliseconds((span / settings.games.max(1) * number) as i64);
                    let (game, log) = Chance::new(settings.seed, number).game(&players, created_at)?;
                    Ok(Past { game, log, has_moves: has_log(number) })
                })
                .collect()
        };
        tokio::task::spawn_blocking(play)
    });
    // One more is played while one is written.
    let mut batches = stream::iter(batches).buffered(2);
    let mut done = 0;
    while let Some(batch) = batches.next().await {
        let batch = batch??;
        store.insert_past(&batch).await?;
        done += batch.len() as u64;
        if done.is_multiple_of(50 * BATCH) || done == settings.games {
            eprintln!("{done} of {} games", settings.games);
        }
    }
    eprintln!("counting");
    store.rebuild_statistics().await?;
    eprintln!("rating");
    store.recompute_ratings(true, |_| ()).await?;
    store.analyze().await?;
    Ok(())
}

/// One player in twenty is a program.
fn players(settings: &Seeding) -> Vec<Player> {
    let mut chance = ChaCha8Rng::seed_from_u64(settings.seed);
    let player = |number: u64| {
        let kind = if number % 20 == 19 { PlayerKind::Bot } else { PlayerKind::Human };
        let mut random = [0; 10];
        chance.fill_bytes(&mut random);
        let id = uuid::Builder::from_unix_timestamp_millis(1_700_000_000_000 + number, &random).into_uuid();
        Player { id, name: format!("seed {} player {number}", settings.seed), kind }
    };
    (0..settings.players).map(player).collect()
}

/// The chance of one game, the players' decisions included.
struct Chance(ChaCha8Rng);

impl Chance {
    fn new(seed: u64, number: u64) -> Self {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        // Stream 0 has made the players.
        chance.set_stream(number + 1);
        Self(chance)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0.random_range(0..n)
    }

    /// True so many times in a hundred.
    fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }

    /// A ruleset with options, some of them seldom. Most games are short ones: random players take long to come to an end.
    fn kind(&mut self) -> (RulesetId, Map<String, Value>, u8) {
        let (slug, options, seats) = match self.below(100) {
            0..45 => {
                let options = if self.percent(85) { json!({"turn_limit": 20 + self.below(5) * 10}) } else { json!({}) };
                ("leonardo", options, 2 + self.below(3) as u8)
            }
            45..60 => ("quintis-fontis", json!({}), 2 + self.below(3) as u8),
            60..80 => {
                let scoring = if self.percent(30) { "2008" } else { "1962" };
                let options = match self.below(50) {
                    0 => json!({"hands": 12, "scoring": scoring}),
                    1..4 => json!({"target_points": 20, "scoring": scoring}),
                    4..42 => json!({"hands": 1, "scoring": scoring}),
                    _ => json!({"scoring": scoring}),
                };
                ("leopard", options, 2)
            }
            _ => ("siggil", json!({}), 1 + self.below(3) as u8),
        };
        let ruleset = RulesetId::from_slug(slug).unwrap_or(RulesetId::ALL[0]);
        let Value::Object(options) = options else { return (ruleset, Map::new(), seats) };
        (ruleset, options, seats.clamp(*ruleset.meta().seats.start(), *ruleset.meta().seats.end()))
    }

    /// So many different players, of one kind if they must be. The first of all sits in one game of fifty, the others the more
    /// often the earlier they came.
    fn sitting<'a>(&mut self, players: &'a [Player], count: u8, one_kind: bool) -> Vec<&'a Player> {
        let bots = one_kind && self.percent(5);
        let mut sitting: Vec<&Player> = Vec::new();
        while sitting.len() < usize::from(count) {
            let place = self.0.random::<f64>();
            let number = if sitting.is_empty() && self.below(50) == 0 {
                0
            } else {
                (place * place * players.len() as f64) as usize
            };
            let player = &players[number.min(players.len() - 1)];
            let fits = !one_kind || (player.kind == PlayerKind::Bot) == bots;
            if fits && !sitting.contains(&player) {
                sitting.push(player);
            }
        }
        sitting
    }

    /// Plays one game to its end, which comes by the rules, by leaving, by the clock or by calling it off.
    fn game(&mut self, players: &[Player], created_at: OffsetDateTime) -> Result<(Game, Vec<LogRow>), GameError> {
        let (ruleset, options, seats) = self.kind();
        let visibility = if self.percent(3) { Visibility::Private } else { Visibility::Public };
        let rated = seats > 1 && visibility == Visibility::Public && self.percent(50);
        let sitting = self.sitting(players, seats, rated);
        let (mut id, mut seed) = ([0; 10], [0; 32]);
        self.0.fill_bytes(&mut id);
        self.0.fill_bytes(&mut seed);
        let created_at =
            created_at.replace_nanosecond(created_at.nanosecond() / 1_000_000 * 1_000_000).unwrap_or(created_at);
        let millis = (created_at.unix_timestamp_nanos() / 1_000_000) as u64;
        let new = NewGame {
            id: uuid::Builder::from_unix_timestamp_millis(millis, &id).into_uuid(),
            ruleset,
            options,
            seats: Some(seats),
            visibility,
            spectators: if self.percent(10) { Spectators::AfterEnd } else { Spectators::Live },
            clock: self.percent(60).then_some(Clock::PerMove { seconds: 86_400 }),
            rated,
            invite: Invite(hex::encode(&seed[..12])),
            entropy: Entropy::default(),
            server_seed: ServerSeed(seed),
            created_at,
        };
        let mut now = created_at;
        let mut log = Vec::new();
        let (mut game, change) = Game::create(new, sitting[0].clone())?;
        note(&mut log, &game, change);
        if seats > 1 && self.percent(2) {
            let change = game.handle(Command::Abort, sitting[0], now + Duration::hours(1))?;
            note(&mut log, &game, change);
            return Ok((game, log));
        }
        for player in &sitting[1..] {
            now += Duration::milliseconds(self.0.random_range(1_000..600_000));
            let invite = game.invite.clone();
            let invite = invite.as_ref().map(|invite| invite.0.as_str());
            let change =
                game.handle(Command::TakeSeat { seat: None, entropy: Entropy::default(), invite }, player, now)?;
            note(&mut log, &game, change);
        }
        // After how many moves somebody does something else than to move, if they do.
        let (ending, mut left) = (self.below(100), 1 + self.below(60));
        while !game.is_over() {
            now += Duration::milliseconds(self.0.random_range(2_000..1_200_000));
            let choice = self.0.random();
            let change = match game.player_to_move().cloned() {
                Some(player) => match ending {
                    0..8 if left == 0 => game.handle(Command::Resign, &player, now)?,
                    8..14 if left == 0 && game.due_at.is_some() => {
                        now = game.due_at.unwrap_or(now).max(now) + Duration::seconds(1);
                        match game.attend(now, choice)? {
                            Some(change) => change,
                            None => game.handle(Command::Resign, &player, now)?,
                        }
                    }
                    14..16 if left == 0 => {
                        for taken in game.seats.clone() {
                            if !game.is_over() && game.is_playing(taken.seat) {
                                let change = game.handle(Command::Abort, &taken.player, now)?;
                                note(&mut log, &game, change);
                            }
                        }
                        continue;
                    }
                    _ => self.play(&mut game, &player, now)?,
                },
                None => match game.attend(now, choice)? {
                    Some(change) => change,
                    // Nothing is due yet.
                    None => continue,
                },
            };
            note(&mut log, &game, change);
            left = left.checked_sub(1).unwrap_or(usize::MAX);
        }
        Ok((game, log))
    }

    fn play(&mut self, game: &mut Game, player: &Player, now: OffsetDateTime) -> Result<Change, GameError> {
        let seat = game.to_move.unwrap_or_default();
        let moves = game.state.as_ref().map(|state| state.legal_moves(seat)).unwrap_or_default();
        let mv = moves.get(self.below(moves.len().max(1)));
        let body = serde_json::to_vec(&mv).map_err(GameError::MalformedMove)?;
        game.handle(Command::Play { body: &body }, player, now)
    }
}

/// Writes down what a command did.
fn note(log: &mut Vec<LogRow>, game: &Game, change: Change) {
    let first = u16::from(change.entry.is_some());
    if let Some(entry) = change.entry {
        log.push(LogRow::Move(entry));
    }
    for (index, happening) in (first..).zip(change.happenings) {
        let facts = game.facts();
        log.push(LogRow::Occurrence(Occurrence { version: game.version, index, happening, at: change.at, facts }));
    }
}
