//! Plays a whole game of each ruleset, by random legal moves, on the server whose URL is the only argument. Uses nothing but
//! the generated client.

use std::env;
use std::error::Error;
use std::time::Instant;

use rand::seq::IndexedRandom;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use tavola_client::types::{
    EventType, Game, GameStatus, Move, NewGame, NewPlayer, NewSeat, PlayerKind, ProblemCode, RulesetSlug,
    RulesetSummary, State,
};
use tavola_client::{Client, Error as ApiError};
use uuid::Uuid;

type Failure = Box<dyn Error>;

/// Ends the program with a sentence, unless a thing is as it has to be.
fn check(holds: bool, what: impl Into<String>) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(what.into().into()) }
}

fn key() -> String {
    Uuid::new_v4().to_string()
}

/// A version as `If-Match` wants it.
fn tag(version: i32) -> String {
    format!("\"{version}\"")
}

/// Registers a player; answers a client that sends its token.
async fn register(url: &str, visitor: &Client) -> Result<Client, Failure> {
    let name = format!("rust-{}", &key()[..18]);
    let player = NewPlayer { name: name.parse()?, kind: Some(PlayerKind::Bot) };
    let registration = visitor.register_player(Some(&key()), &player).await?.into_inner();
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {}", registration.token))?);
    let http = reqwest::Client::builder().default_headers(headers).build()?;
    Ok(Client::new_with_client(url, http))
}

/// A move at a version that the game does not have: nothing may change, and the error says why.
async fn play_too_late(player: &Client, id: &Uuid, version: i32, chosen: &Move) -> Result<(), Failure> {
    match player.play_move(id, Some(&key()), Some(&tag(version + 1)), chosen).await {
        Err(ApiError::ErrorResponse(problem)) => {
            let told = problem.code == ProblemCode::StaleVersion && problem.current_version == Some(version);
            check(told && problem.status() == 412, format!("expected stale-version, got {problem:?}"))
        }
        other => Err(format!("expected stale-version, got {other:?}").into()),
    }
}

/// The ruleset whose table it is.
fn ruleset_of(table: &State) -> RulesetSlug {
    match table {
        State::Leonardo(_) => RulesetSlug::Leonardo,
        State::QuintisFontis(_) => RulesetSlug::QuintisFontis,
        State::Leopard(_) => RulesetSlug::Leopard,
        State::Siggil(_) => RulesetSlug::Siggil,
    }
}

/// Plays a game to its end; answers how many moves it took.
async fn play(url: &str, visitor: &Client, ruleset: &RulesetSummary) -> Result<i32, Failure> {
    let seats = ruleset.seats.min.max(2).min(ruleset.seats.max);
    let mut players = Vec::new();
    for _ in 0..seats {
        players.push(register(url, visitor).await?);
    }
    let wanted = NewGame {
        ruleset: ruleset.slug,
        seats: Some(u32::try_from(seats)?.try_into()?),
        clock: None,
        entropy: None,
        options: serde_json::Map::default(),
        rated: None,
        spectators: None,
        visibility: None,
    };
    let created = players[0].create_game(Some(&key()), &wanted).await?.into_inner();
    let id = created.id;
    for player in &players[1..] {
        player.take_seat(&id, Some(&key()), None, &NewSeat::default()).await?;
    }

    let mut moves = 0;
    let finished: Game = loop {
        let game = visitor.get_game(&id, None, None).await?.into_inner();
        let Some(to_move) = &game.to_move else { break game };
        let player = &players[usize::try_from(to_move.seat)?];
        let legal = player.list_legal_moves(&id).await?.into_inner();
        let chosen = legal.moves.choose(&mut rand::rng()).ok_or("whose turn it is has a legal move")?;
        if moves == 0 {
            play_too_late(player, &id, legal.version, chosen).await?;
        }
        let (key, version) = (key(), tag(legal.version));
        let played = player.play_move(&id, Some(&key), Some(&version), chosen).await?;
        moves += 1;
        check(played.game.version > legal.version, "a move makes a new version")?;
        check(played.headers().get("etag").is_some_and(|etag| *etag == tag(played.game.version)), "ETag")?;
        if moves == 1 {
            let again = player.play_move(&id, Some(&key), Some(&version), chosen).await?;
            check(again.headers().contains_key("idempotent-replayed"), "a repeat is answered as such")?;
            check(again.game.version == played.game.version, "a repeat plays nothing")?;
        }
    };

    check(finished.status == GameStatus::Finished && finished.moves_count == moves, "the game is played to its end")?;
    check(finished.state.as_ref().map(ruleset_of) == Some(ruleset.slug), "the table is of the ruleset")?;
    let outcome = finished.outcome.as_ref().ok_or("a finished game has an outcome")?;
    let best = outcome.ranking.iter().map(|ranked| ranked.rank).min();
    check(outcome.ranking.len() == players.len() && best == Some(1), format!("ranks: {outcome:?}"))?;

    let record = visitor.get_record(&id, None).await?.into_inner();
    check(record.moves.len() == usize::try_from(moves)?, "the record has every move")?;
    let ranks = |ranking: &[tavola_client::types::Ranked]| -> Vec<_> {
        ranking.iter().map(|ranked| (ranked.seat, ranked.rank)).collect()
    };
    check(ranks(&record.outcome.ranking) == ranks(&outcome.ranking), "record and game have one outcome")?;

    let (mut after, mut played, mut ended) = (None, 0, false);
    loop {
        let page = visitor.list_events(&id, after.as_deref(), None, None, None).await?.into_inner();
        for event in &page.items {
            played += i32::from(event.type_ == EventType::MovePlayed && event.move_.is_some());
            ended |= event.type_ == EventType::GameFinished;
        }
        after = page.next_after;
        if after.is_none() {
            break;
        }
    }
    check(played == moves && ended, format!("{moves} moves, but {played} events of moves"))?;
    Ok(moves)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let url = env::args().nth(1).ok_or("the server's URL is missing")?;
    let visitor = Client::new(&url);
    let begun = Instant::now();
    let rulesets = visitor.list_rulesets(None, None).await?.into_inner().items;
    check(!rulesets.is_empty(), "a server has rulesets")?;
    let mut played = Vec::new();
    for ruleset in &rulesets {
        let moves = play(&url, &visitor, ruleset).await.map_err(|error| format!("{}: {error}", ruleset.slug))?;
        played.push(format!("{} {moves}", ruleset.slug));
    }
    println!("{} games (moves: {}) in {:.1} s", played.len(), played.join(", "), begun.elapsed().as_secs_f64());
    Ok(())
}
