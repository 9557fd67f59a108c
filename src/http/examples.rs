//! Examples for the OpenAPI document: a real game of fixed players, seed and times, shown by the very types that answer
//! requests, so that an example cannot be wrong.

use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

use super::dto::{
    DeliveryOut, DeliveryPageOut, EventOut, EventPageOut, FairnessOut, GameOut, GamePageOut, IssuedOut, LeaderboardOut,
    LegalMovesOut, MoveAnswerOut, MoveOut, MovePageOut, PastStateOut, PlayerStatsOut, ProfileListOut, ProfileOut,
    RatingChangeOut, RatingPageOut, RegistrationOut, RulesetListOut, RulesetStatsOut, RulesetSummaryOut, TokenListOut,
    TokenOut, WebhookListOut, WebhookOut,
};
use super::language::Language;
use super::problem::Code;
use super::routes::{TrailerOut, page, table};
use super::stream::Form;
use crate::game::rating::{Rating, rate};
use crate::game::{
    Clock, Command, Entropy, Entry, Game, GameError, Invite, LogRow, NewGame, Player, PlayerKind, RatedSeat, Record,
    RecordedRating, ServerSeed, Spectators, Visibility,
};
use crate::rulesets::registry::RulesetId;
use crate::rulesets::{EndReason, Viewer};
use crate::store::{
    Attempt, CurrentRating, Delivery, EndCount, Issued, Leader, PlayerStatistics, Profile, RatedPlayer, RatingChange,
    Results, RulesetStatistics, Scope, Scopes, Token, Webhook,
};
use crate::webhook::{GameRef, Message, Secret};

const CREATED: OffsetDateTime = datetime!(2026-11-29 18:30:00 UTC);

fn player(place: u128, name: &str) -> Player {
    let id = Uuid::from_u128(0x0193_a2f0_6c1d_7e10_8f3a_0000_0000_0000 + place);
    Player { id, name: name.to_owned(), kind: PlayerKind::Human }
}

/// A game of two: waiting for its second player, by name and by anybody, after its first move, and given up.
struct Sample {
    open: Game,
    inviting: Game,
    dealt: Game,
    played: Game,
    over: Game,
    entry: Entry,
}

impl Sample {
    fn new() -> Option<Self> {
        let (ada, bob) = (player(1, "Ada"), player(2, "Bob"));
        let new = NewGame {
            id: Uuid::from_u128(0x0193_a2f1_0b52_7c44_9d21_0000_0000_0007),
            ruleset: RulesetId::Leopard,
            options: Map::new(),
            seats: Some(2),
            visibility: Visibility::Public,
            spectators: Spectators::Live,
            clock: Some(Clock::PerMove { seconds: 86_400 }),
            rated: true,
            invite: Invite("5f0c6f4b7a1f4f0e9d3d5f9b".into()),
            entropy: Entropy::default(),
            server_seed: ServerSeed([7; 32]),
            created_at: CREATED,
        };
        let (open, _) = Game::create(new, ada.clone()).ok()?;
        let give = |game: &Game, command: Command<'_>, minute: i64| -> Result<(Game, Option<Entry>), GameError> {
            let mut game = game.clone();
            let mover = game.player_to_move().cloned();
            let actor =
                if matches!(command, Command::TakeSeat { .. }) { bob.clone() } else { mover.unwrap_or(ada.clone()) };
            let at = CREATED + time::Duration::minutes(minute);
            let change = game.handle(command, &actor, at)?;
            Ok((game, change.entry))
        };
        let expires_at = CREATED + time::Duration::days(7);
        let (inviting, _) = give(&open, Command::Invite { player: bob.clone(), seat: None, expires_at }, 1).ok()?;
        let entropy = Entropy::parse("sesame".into()).ok()?;
        let (dealt, _) = give(&open, Command::TakeSeat { seat: None, entropy, invite: None }, 1).ok()?;
        let first = dealt.state.as_ref()?.legal_moves(dealt.to_move?).into_iter().next()?;
        let body = serde_json::to_vec(&first).ok()?;
        let (played, entry) = give(&dealt, Command::Play { body: &body }, 2).ok()?;
        let (over, _) = give(&played, Command::Resign, 3).ok()?;
        Some(Self { open, inviting, dealt, played, over, entry: entry? })
    }
}

/// What the game did to ratings, the first of both players.
fn rating(game: &Game) -> Option<RatingChange> {
    let ranking = &game.outcome.as_ref()?.ranking;
    let after = rate(&[Rating::NEW; 2], ranking)?;
    let players = game.seats.iter().zip(after).filter_map(|(taken, after)| {
        let rank = ranking.iter().find(|line| line.seat == taken.seat)?.rank;
        Some(RatedPlayer { seat: taken.seat, player: taken.player.clone(), rank, before: Rating::NEW, after })
    });
    Some(RatingChange {
        game_id: game.id,
        ruleset: game.ruleset,
        pool: PlayerKind::Human,
        number: 1,
        at: game.finished_at?,
        players: players.collect(),
    })
}

fn record(sample: &Sample) -> Option<Record> {
    let seats = rating(&sample.over)?.players;
    let seats = seats.into_iter().map(|RatedPlayer { seat, before, after, .. }| RatedSeat { seat, before, after });
    let rating = RecordedRating { pool: PlayerKind::Human, number: 1, seats: seats.collect() };
    Record::new(&sample.over, vec![(&sample.entry).into()], Some(rating))
}

/// A token for a month.
fn sample_token() -> Token {
    Token {
        id: Uuid::from_u128(0x0193_a2f2_4d07_7a15_b1c3_0000_0000_0003),
        name: "my bot on the old laptop".into(),
        scopes: Scopes([Scope::Play].into()),
        created_at: CREATED,
        expires_at: Some(CREATED + time::Duration::days(30)),
    }
}

fn webhook() -> Webhook {
    Webhook {
        id: Uuid::from_u128(0x0193_a2f2_1c7d_7b02_b4a6_0000_0000_0001),
        url: "https://example.com/tavola".into(),
        created_at: CREATED,
        failing_since: None,
        disabled_at: None,
        old_secret_until: None,
    }
}

/// A message that has arrived at the second attempt, or one that is about to be sent.
fn delivery(game: Option<&Game>) -> Delivery {
    let attempts = [(0, Some(503), None, 41), (5, Some(204), None, 38)].into_iter().zip(1..);
    let attempts = attempts.map(|((second, status, error, duration_ms), number)| Attempt {
        number,
        at: CREATED + time::Duration::seconds(second),
        status,
        error,
        duration_ms,
    });
    let reference = |game: &Game| GameRef { id: game.id, version: game.version, seat: game.to_move, deadline: None };
    Delivery {
        message: Message {
            id: Uuid::from_u128(0x5b0e_7c1a_93d4_4f6e_8a21_0000_0000_0001),
            webhook_id: webhook().id,
            kind: if game.is_some() { "your_turn" } else { "ping" }.into(),
            game: game.map(reference),
            created_at: CREATED,
        },
        next_attempt_at: game.is_none().then_some(CREATED),
        delivered_at: game.map(|_| CREATED + time::Duration::seconds(5)),
        attempts: if game.is_some() { attempts.collect() } else { Vec::new() },
    }
}

/// Three games of Ada with Bob.
fn player_statistics() -> PlayerStatistics {
    let results = Results { games: 3, won: 2, lost: 1, shared: 0, left: 1, moves: 61 };
    PlayerStatistics {
        total: results,
        by_ruleset: vec![(RulesetId::Leopard, results)],
        by_seats: vec![(2, results)],
        by_opponent: vec![(player(2, "Bob"), results)],
        by_month: vec![("2026-11".into(), results)],
    }
}

/// Three games of two.
fn ruleset_statistics() -> RulesetStatistics {
    let end = |reason, games, decided, first_won| EndCount { seats: 2, reason, games, decided, first_won };
    RulesetStatistics {
        ends: vec![end(EndReason::Completed, 2, 1, 1), end(EndReason::Resignation, 1, 1, 0)],
        moves: vec![(9, 1), (26, 2)],
        scores: vec![(0, 2), (31, 1), (40, 3)],
    }
}

fn shown(value: impl Serialize) -> Option<Value> {
    serde_json::to_value(value).ok()
}

/// The event of a move, in the game's log or in its player's.
fn event(operation: &str, sample: &Sample) -> Option<EventOut> {
    let row = LogRow::Move(sample.entry.clone());
    let (game, seat) = (&sample.played, sample.dealt.to_move?);
    let mover = sample.dealt.player_to_move()?.id;
    Some(match operation {
        "list_events" => EventOut::in_game("2.0".into(), game, &row, Some(mover), |_| None),
        _ => {
            let id = "8f3a00000001.1796063520000000.7041:7041:".to_owned();
            EventOut::in_feed(id, game.id, Some(game), &row, Some(Viewer::Seat(seat)), |_| None)
        }
    })
}

/// The example of an answer that is no JSON.
pub fn text_of(operation: &str, kind: &str) -> Option<String> {
    let form = match (operation, kind) {
        ("get_problem", "text/html") => return Some(page(Code::IllegalMove)),
        ("list_events" | "list_my_events", "text/event-stream") => Form::ServerSent,
        ("list_events" | "list_my_events" | "export_games", "application/x-ndjson") => Form::Lines,
        ("export_games", "text/csv") => {
            return String::from_utf8(table(true, vec![Sample::new()?.over.summary]).ok()?).ok();
        }
        _ => return None,
    };
    let sample = Sample::new()?;
    if operation != "export_games" {
        return Some(form.frame(&event(operation, &sample)?));
    }
    let line = serde_json::to_string(&record(&sample)?).ok()? + "\n";
    let trailer = TrailerOut::new(1, Sha256::new_with_prefix(&line), Some("6b1f00064c7f4a1c2d80".into()));
    Some(line + &serde_json::to_string(&trailer).ok()? + "\n")
}

/// The example of an operation: of its request's body and of its answer's, as far as it has them.
pub fn of(operation: &str) -> (Option<Value>, Option<Value>) {
    let Some(sample) = Sample::new() else { return (None, None) };
    let ada = player(1, "Ada");
    let profile = Profile { player: ada.clone(), created_at: CREATED };
    let mover = sample.dealt.player_to_move().map(|player| player.id);
    let seat = sample.dealt.to_move.unwrap_or_default();
    let game = |game: &Game| shown(GameOut::new(game, mover));
    match operation {
        "register_player" => {
            let token = format!("tavola_{}", "5f0c6f4b7a1f4f0e".repeat(4));
            let answer = RegistrationOut { player: profile.clone().into(), token };
            (Some(json!({"name": "Ada"})), shown(answer))
        }
        "update_me" => {
            (Some(json!({"name": "Ada L."})), shown(ProfileOut { name: "Ada L.".into(), ..profile.clone().into() }))
        }
        "get_me" | "get_player" => (None, shown(ProfileOut::from(profile.clone()))),
        "get_token" => (None, shown(TokenOut::from(sample_token()))),
        "list_tokens" => (None, shown(TokenListOut { items: vec![sample_token().into()] })),
        "create_token" => {
            let secret = format!("tavola_{}", "0e9d3d5f9b1c2a3e".repeat(4));
            let answer = Issued { token: sample_token(), secret, repeated: false };
            let request = json!({"name": "my bot on the old laptop", "scopes": ["play"], "expires_in": 2_592_000});
            (Some(request), shown(IssuedOut::from(answer)))
        }
        "find_players" => (None, shown(ProfileListOut { items: vec![profile.clone().into()] })),
        "list_rulesets" => {
            let items = RulesetId::ALL.iter().map(|slug| RulesetSummaryOut::new(*slug, Language::En)).collect();
            (None, shown(RulesetListOut { items }))
        }
        "create_game" => (
            Some(json!({"ruleset": "leopard", "options": {"hands": 2}, "seats": 2, "entropy": "my own 7 words"})),
            shown(GameOut::new(&sample.open, Some(ada.id))),
        ),
        "list_games" => {
            let items = vec![sample.played.summary.clone().into()];
            (None, shown(GamePageOut { items, next_cursor: None }))
        }
        "list_turns" => {
            let items = vec![sample.dealt.summary.clone().into()];
            (None, shown(GamePageOut { items, next_cursor: None }))
        }
        "list_invitations" => {
            let items = vec![sample.inviting.summary.clone().into()];
            (None, shown(GamePageOut { items, next_cursor: None }))
        }
        "get_game" => (None, game(&sample.played)),
        "invite_player" => {
            (Some(json!({"player": player(2, "Bob").id})), shown(GameOut::new(&sample.inviting, Some(ada.id))))
        }
        "withdraw_invitation" | "change_invite" | "revoke_invite" | "get_invite" => {
            (None, shown(GameOut::new(&sample.open, Some(ada.id))))
        }
        "create_rematch" => (Some(json!({"entropy": "once more"})), shown(GameOut::new(&sample.open, Some(ada.id)))),
        "abort_game" | "withdraw_abort" => (None, game(&sample.played)),
        "list_events" | "list_my_events" => {
            let items = event(operation, &sample).into_iter().collect();
            (None, shown(EventPageOut { items, next_after: None }))
        }
        "take_seat" => (Some(json!({"entropy": "sesame"})), game(&sample.dealt)),
        "start_game" => (None, game(&sample.dealt)),
        "leave_seat" => (None, shown(GameOut::new(&sample.open, None))),
        "resign" => (None, game(&sample.over)),
        "list_legal_moves" => {
            let moves = sample.dealt.state.as_ref().map(|state| state.legal_moves(seat)).unwrap_or_default();
            (None, shown(LegalMovesOut { seat, to_move: Some(seat), version: sample.dealt.version, moves }))
        }
        "play_move" => {
            let answer = MoveAnswerOut {
                r#move: MoveOut::new(&sample.entry, Viewer::Seat(seat)),
                game: GameOut::new(&sample.played, mover),
            };
            (shown(&sample.entry.mv), shown(answer))
        }
        "list_moves" => {
            let items = vec![MoveOut::new(&sample.entry, Viewer::Spectator)];
            (None, shown(MovePageOut { items, next_after: None }))
        }
        "get_move" => (None, shown(MoveOut::new(&sample.entry, Viewer::Spectator))),
        "get_state" => {
            let answer = sample.over.state.as_ref().map(|state| PastStateOut {
                game_id: sample.over.id,
                number: sample.over.moves_count,
                perspective: "all".into(),
                to_move: None,
                state: state.view(Viewer::Everything),
                outcome: sample.over.outcome.clone(),
            });
            (None, shown(answer))
        }
        "get_fairness" => (None, shown(FairnessOut::from(&sample.over))),
        "get_record" => (None, shown(record(&sample))),
        "get_player_stats" => (None, shown(PlayerStatsOut::new(ada, player_statistics()))),
        "get_ruleset_stats" => (None, shown(RulesetStatsOut::new(RulesetId::Leopard, &ruleset_statistics()))),
        "create_webhook" => {
            let answer = WebhookOut::with_secret(webhook(), &Secret(std::array::from_fn(|i| i as u8)));
            (Some(json!({"url": "https://example.com/tavola"})), shown(answer))
        }
        "list_webhooks" => (None, shown(WebhookListOut { items: vec![webhook().into()] })),
        "get_webhook" => (None, shown(WebhookOut::from(webhook()))),
        "update_webhook" => (Some(json!({"enabled": true})), shown(WebhookOut::from(webhook()))),
        "rotate_webhook_secret" => {
            let rotated = Webhook { old_secret_until: Some(CREATED + time::Duration::DAY), ..webhook() };
            (None, shown(WebhookOut::with_secret(rotated, &Secret(std::array::from_fn(|i| 31 - i as u8)))))
        }
        "ping_webhook" => (None, shown(DeliveryOut::from(delivery(None)))),
        "list_deliveries" => {
            let items = vec![delivery(Some(&sample.played)).into()];
            (None, shown(DeliveryPageOut { items, next_cursor: None }))
        }
        "redeliver" => {
            let again =
                Delivery { delivered_at: None, next_attempt_at: Some(CREATED), ..delivery(Some(&sample.played)) };
            (None, shown(DeliveryOut::from(again)))
        }
        "list_ratings" => {
            let change = rating(&sample.over);
            let current = change.as_ref().and_then(|change| {
                let own = change.players.iter().find(|rated| rated.player.id == ada.id)?;
                let (ruleset, pool) = (change.ruleset, change.pool);
                Some(CurrentRating { ruleset, pool, rating: own.after, games_count: 1 }.into())
            });
            let items = change.and_then(|change| RatingChangeOut::new(change, ada.id)).into_iter().collect();
            (None, shown(RatingPageOut { current: current.into_iter().collect(), items, next_cursor: None }))
        }
        "get_leaderboard" => {
            let players = rating(&sample.over).map(|change| change.players).unwrap_or_default();
            let mut items: Vec<Leader> = players
                .into_iter()
                .map(|rated| Leader {
                    rank: rated.rank.into(),
                    player: rated.player,
                    rating: rated.after,
                    games_count: 1,
                })
                .collect();
            items.sort_by_key(|leader| leader.rank);
            let items = items.into_iter().map(Into::into).collect();
            let (ruleset, pool) = (sample.over.ruleset, PlayerKind::Human);
            (None, shown(LeaderboardOut { ruleset, pool, items, next_cursor: None }))
        }
        "healthz" | "readyz" => (None, Some(json!({"status": "ok"}))),
        "get_openapi" => {
            let info = json!({"title": "Tavola", "version": env!("CARGO_PKG_VERSION")});
            (None, Some(json!({"openapi": "3.1.0", "info": info, "paths": {}})))
        }
        _ => (None, None),
    }
}
