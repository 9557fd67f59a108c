//! Players at many tables.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Incoming;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use sqlx::PgPool;
use tavola::rulesets::random::Random;
use tavola::rulesets::registry::{AnyState, RulesetId};
use tavola::store::Store;
use uuid::Uuid;

use crate::client::Client;
use crate::report::Counted;

/// A game as somebody knows it who knows everything.
pub struct Table {
    path: String,
    moves_path: String,
    /// The tokens of its players, as headers, by seat.
    bearers: Vec<String>,
    state: AnyState,
    random: Random,
    version: u32,
}

/// What was played, and how long each request took, in milliseconds.
pub struct Played {
    pub moves: Counted,
    /// Reads of a game.
    pub looks: Vec<f64>,
    /// Lists of legal moves.
    pub lists: Vec<f64>,
}

/// Registers players and has them sit at so many tables of two, of all rulesets; half of them play by the clock.
pub async fn set_up(
    addr: SocketAddr,
    pool: &PgPool,
    database: &str,
    games: usize,
    clients: usize,
) -> anyhow::Result<Vec<Table>> {
    let mut client = Client::connect(addr).await?;
    let mut tokens = Vec::new();
    for number in 0..2 * clients.max(16) {
        let body = json!({"name": format!("Player {number}")}).to_string();
        let player = client.command("/v1/players", None, &body).await?;
        tokens.push(player["token"].as_str().context("a registration without a token")?.to_owned());
    }
    let (count, tokens) = (clients.min(games), &tokens);
    let seat_all = |first: usize| async move {
        let mut client = Client::connect(addr).await?;
        let mut seated = Vec::new();
        for number in (first..games).step_by(count) {
            let pair = [0, 1].map(|seat| &tokens[(2 * number + seat) % tokens.len()]);
            let clock = (number / RulesetId::ALL.len())
                .is_multiple_of(2)
                .then(|| json!({"kind": "per_move", "seconds": 259_200}));
            let ruleset = RulesetId::ALL[number % RulesetId::ALL.len()].meta().slug;
            let body = json!({"ruleset": ruleset, "seats": 2, "clock": clock}).to_string();
            let game = client.command("/v1/games", Some(pair[0]), &body).await?;
            let id: Uuid = game["id"].as_str().context("a game without an id")?.parse()?;
            client.command(&format!("/v1/games/{id}/seats"), Some(pair[1]), "{}").await?;
            seated.push((id, pair));
        }
        anyhow::Ok(seated)
    };
    let seated = futures_util::future::try_join_all((0..count).map(seat_all)).await?;
    let store = Store::open(database.parse()?, 1);
    let mut tables = Vec::new();
    for (id, pair) in seated.into_iter().flatten() {
        let game = store.game_unchecked(id).await?;
        let seats: Vec<String> = sqlx::query_scalar(
            "select p.name from seats s join players p on p.id = s.player_id where s.game_id = $1 order by s.seat",
        )
        .bind(id)
        .fetch_all(pool)
        .await?;
        ensure!(seats.len() == 2, "a game of {} players", seats.len());
        tables.push(Table {
            path: format!("/v1/games/{id}"),
            moves_path: format!("/v1/games/{id}/moves"),
            bearers: pair.iter().map(|token| format!("Bearer {token}")).collect(),
            random: game.random(),
            version: game.version,
            state: game.state.context("a game that has not started")?,
        });
    }
    store.close().await;
    Ok(tables)
}

/// Plays so long with so many players at once, each at tables of their own, one move after the other; answers the tables at
/// which play goes on. `looking`: each looks at the game and lists the legal moves before they move.
pub async fn play(
    addr: SocketAddr,
    tables: Vec<Table>,
    clients: usize,
    seconds: u64,
    looking: bool,
) -> anyhow::Result<(Played, Vec<Table>)> {
    let mut hands: Vec<Vec<Table>> = (0..clients).map(|_| Vec::new()).collect();
    for (number, table) in tables.into_iter().enumerate() {
        hands[number % clients].push(table);
    }
    let began = Instant::now();
    let until = began + Duration::from_secs(seconds);
    let playing = hands.into_iter().enumerate().map(|(number, hand)| {
        tokio::spawn(async move { play_at(addr, hand, until, looking, StdRng::seed_from_u64(number as u64)).await })
    });
    let mut played = Played {
        moves: Counted { count: 0, seconds: 0.0, latencies: Vec::new() },
        looks: Vec::new(),
        lists: Vec::new(),
    };
    let mut rest = Vec::new();
    for done in futures_util::future::try_join_all(playing).await? {
        let ([moves, looks, lists], tables) = done?;
        played.moves.latencies.extend(moves);
        played.looks.extend(looks);
        played.lists.extend(lists);
        rest.extend(tables);
    }
    played.moves.seconds = began.elapsed().as_secs_f64();
    played.moves.count = played.moves.latencies.len();
    Ok((played, rest))
}

async fn play_at(
    addr: SocketAddr,
    mut tables: Vec<Table>,
    until: Instant,
    looking: bool,
    mut chance: StdRng,
) -> anyhow::Result<([Vec<f64>; 3], Vec<Table>)> {
    let mut client = Client::connect(addr).await?;
    let [mut moves, mut looks, mut lists] = [const { Vec::new() }; 3];
    let mut place = 0;
    while Instant::now() < until {
        if tables.is_empty() {
            bail!("all games are over: more are needed for so long a measurement");
        }
        place = (place + 1) % tables.len();
        let table = &mut tables[place];
        if looking {
            let bearer = table.bearer()?;
            for (path, times) in [(table.path.clone(), &mut looks), (format!("{}/legal-moves", table.path), &mut lists)]
            {
                let began = Instant::now();
                let answer = client.ask(Method::GET, &path, &[("authorization", bearer)], Vec::new()).await?;
                times.push(began.elapsed().as_secs_f64() * 1e3);
                ensure!(answer.status == 200, "GET {path}: {}", answer.status);
            }
        }
        let began = Instant::now();
        table.step(&mut client, &mut chance).await?;
        moves.push(began.elapsed().as_secs_f64() * 1e3);
        if table.is_over() {
            tables.swap_remove(place);
        }
    }
    Ok(([moves, looks, lists], tables))
}

impl Table {
    pub fn is_over(&self) -> bool {
        self.state.to_act().is_none()
    }

    /// The token of whoever is to move.
    fn bearer(&self) -> anyhow::Result<&str> {
        let seat = self.state.to_act().context("a game that is over")?;
        Ok(&self.bearers[usize::from(seat)])
    }

    /// Has whoever is to move play any legal move.
    pub async fn step(&mut self, client: &mut Client, chance: &mut StdRng) -> anyhow::Result<()> {
        let seat = self.state.to_act().context("a game that is over")?;
        let legal = self.state.legal_moves(seat);
        let mv = &legal[chance.random_range(..legal.len())];
        let (version, key) = (format!("\"{}\"", self.version), Uuid::now_v7().to_string());
        let headers = [
            ("authorization", self.bearer()?),
            ("content-type", "application/json"),
            ("if-match", &version),
            ("idempotency-key", &key),
        ];
        let answer = client.ask(Method::POST, &self.moves_path, &headers, serde_json::to_vec(mv)?).await?;
        ensure!(answer.status == 201, "a move: {} {}", answer.status, String::from_utf8_lossy(&answer.body));
        self.state.apply(seat, mv, &self.random).map_err(|error| anyhow::anyhow!(error.detail))?;
        self.version += 1;
        Ok(())
    }
}

/// Reads games that have not changed, so long, with so many players at once.
pub async fn ask_conditionally(
    addr: SocketAddr,
    tables: &[Table],
    clients: usize,
    seconds: u64,
) -> anyhow::Result<Counted> {
    let began = Instant::now();
    let until = began + Duration::from_secs(seconds);
    let asking = (0..clients).map(|number| async move {
        let mut client = Client::connect(addr).await?;
        let mut times = Vec::new();
        for table in tables.iter().skip(number).step_by(clients).cycle() {
            if Instant::now() >= until {
                break;
            }
            let version = format!("\"{}\"", table.version);
            let headers = [("authorization", table.bearers[0].as_str()), ("if-none-match", &version)];
            let began = Instant::now();
            let answer = client.ask(Method::GET, &table.path, &headers, Vec::new()).await?;
            times.push(began.elapsed().as_secs_f64() * 1e3);
            ensure!(answer.status == 304, "GET {}: {}", table.path, answer.status);
        }
        anyhow::Ok(times)
    });
    let latencies = futures_util::future::try_join_all(asking).await?.concat();
    Ok(Counted { count: latencies.len(), seconds: began.elapsed().as_secs_f64(), latencies })
}

/// Opens streams of the events of so many games and reads the snapshot with which each begins.
pub async fn follow(addr: SocketAddr, tables: &[Table], count: usize) -> anyhow::Result<Vec<(Client, Incoming)>> {
    let mut streams = Vec::new();
    for table in tables.iter().cycle().take(count) {
        let mut client = Client::connect(addr).await?;
        let headers = [("authorization", table.bearers[0].as_str()), ("accept", "text/event-stream")];
        let answer = client.begin(Method::GET, &format!("{}/events", table.path), &headers, Vec::new()).await?;
        ensure!(answer.status() == 200, "a stream: {}", answer.status());
        let mut body = answer.into_body();
        ensure!(body.frame().await.is_some(), "a stream without a snapshot");
        streams.push((client, body));
    }
    Ok(streams)
}
