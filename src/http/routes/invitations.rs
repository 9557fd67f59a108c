//! Finding players: inviting somebody by name, the code of a private game, a game once more.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, delete, get, post, web};
use time::Duration;

use super::games::{invite_code, new_id, show};
use super::players::entropy;
use super::{command, command_answered, game_answer, location, send};
use crate::game::{Command, Entropy, Game, GameError, NewGame, Player, ServerSeed, Spectators, Visibility};
use crate::http::auth::{Asking, Token};
use crate::http::dto::{GameOut, InvitationIn, RematchIn};
use crate::http::problem::{Code, Problem};
use crate::http::request::{Body, Id, IfMatch, RawBody, id};
use crate::rulesets::registry::RulesetId;
use crate::store::{Access, Rematch, Scope, Store};

/// For how long a seat is kept, in seconds, unless it is said: a week.
const KEPT: u32 = 604_800;

/// Invite a player
///
/// Keeps a seat of your open game for somebody. They are told (`player_invited` among their events) and take it, or decline; after
/// a while it is free again.
#[utoipa::path(
    operation_id = "invite_player", tag = "invitations", security(("token" = ["play"])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("If-Match" = Option<String>, Header, description = "Only if the game has this version"),
           ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat within 24 hours harmless")),
    request_body = InvitationIn,
    responses((status = 201, description = "The game with the invitation", body = GameOut,
               headers(("ETag" = String, description = "Its version"))))
)]
#[post("/v1/games/{id}/invitations")]
pub(super) async fn invite_player(
    store: web::Data<Store>,
    token: Token,
    id: Id,
    expected: IfMatch,
    body: Body<InvitationIn>,
) -> Result<HttpResponse, Problem> {
    let seconds = body.value.expires_in.unwrap_or(KEPT);
    if !(60..=2_592_000).contains(&seconds) {
        return Err(Problem::field("/expires_in", "a number of seconds from 60 to 2592000"));
    }
    let profile = store.profile(body.value.player).await?;
    let profile = profile.ok_or_else(|| Problem::field("/player", "there is no such player"))?;
    let expires_at = store.now().await? + Duration::seconds(seconds.into());
    let invite = Command::Invite { player: profile.player, seat: body.value.seat, expires_at };
    command(&store, id.0, &Access::of(token.0), expected.0, body.idempotency_key(), invite, StatusCode::CREATED).await
}

/// Decline an invitation
///
/// Does without the seat that is kept for you: it is free again.
#[utoipa::path(
    operation_id = "decline_invitation", tag = "invitations", security(("token" = ["play"])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("If-Match" = Option<String>, Header, description = "Only if the game has this version")),
    responses((status = 204, description = "Declined"))
)]
#[delete("/v1/games/{id}/invitations/me")]
pub(super) async fn decline_invitation(
    store: web::Data<Store>,
    token: Token,
    id: Id,
    expected: IfMatch,
) -> Result<HttpResponse, Problem> {
    let access = Access::of(token.0);
    command(&store, id.0, &access, expected.0, None, Command::Decline, StatusCode::OK).await?;
    // A private game is nothing to show to who does not belong to it any more.
    Ok(HttpResponse::NoContent().finish())
}

/// Withdraw an invitation
///
/// The seat is kept for this player no longer.
#[utoipa::path(
    operation_id = "withdraw_invitation", tag = "invitations", security(("token" = ["play"])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("player" = Uuid, Path, description = "The player's id"),
           ("If-Match" = Option<String>, Header, description = "Only if the game has this version")),
    responses((status = 200, description = "The game without the invitation", body = GameOut,
               headers(("ETag" = String, description = "Its version"))))
)]
#[delete("/v1/games/{id}/invitations/{player}")]
pub(super) async fn withdraw_invitation(
    store: web::Data<Store>,
    request: HttpRequest,
    token: Token,
    game: Id,
    expected: IfMatch,
) -> Result<HttpResponse, Problem> {
    let player = id(request.match_info().get("player").unwrap_or_default());
    let player = player.ok_or_else(|| Problem::parameter("player", "an id is a UUID"))?;
    let access = Access::of(token.0);
    command(&store, game.0, &access, expected.0, None, Command::Uninvite { player }, StatusCode::OK).await
}

/// Change the invite code
///
/// Gives your private game another code: who has the old one can do nothing with it any more.
#[utoipa::path(
    operation_id = "change_invite", tag = "invitations", security(("token" = ["play"])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("If-Match" = Option<String>, Header, description = "Only if the game has this version"),
           ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat within 24 hours harmless")),
    responses((status = 200, description = "The game with its new code", body = GameOut,
               headers(("ETag" = String, description = "Its version"))))
)]
#[post("/v1/games/{id}/invite")]
pub(super) async fn change_invite(
    store: web::Data<Store>,
    token: Token,
    id: Id,
    expected: IfMatch,
    body: RawBody,
) -> Result<HttpResponse, Problem> {
    body.check()?;
    let change = Command::ChangeInvite { invite: Some(invite_code()?) };
    let access = Access::of(token.0);
    command(&store, id.0, &access, expected.0, body.idempotency_key(), change, StatusCode::OK).await
}

/// Revoke the invite code
///
/// Your private game has no code then: only its players and whoever you invite by name know of it.
#[utoipa::path(
    operation_id = "revoke_invite", tag = "invitations", security(("token" = ["play"])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("If-Match" = Option<String>, Header, description = "Only if the game has this version")),
    responses((status = 200, description = "The game without a code", body = GameOut,
               headers(("ETag" = String, description = "Its version"))))
)]
#[delete("/v1/games/{id}/invite")]
pub(super) async fn revoke_invite(
    store: web::Data<Store>,
    token: Token,
    id: Id,
    expected: IfMatch,
) -> Result<HttpResponse, Problem> {
    let change = Command::ChangeInvite { invite: None };
    command(&store, id.0, &Access::of(token.0), expected.0, None, change, StatusCode::OK).await
}

/// Look up an invite code
///
/// The private game that the code opens. Go on with its `id`, and the code as `invite`.
#[utoipa::path(
    operation_id = "get_invite", tag = "invitations", security((), ("token" = ["read"])),
    params(("code" = String, Path, description = "The code")),
    responses((status = 200, description = "The game", body = GameOut,
               headers(("ETag" = String, description = "Its version"))))
)]
#[get("/v1/invites/{code}")]
pub(super) async fn get_invite(
    store: web::Data<Store>,
    asking: Asking,
    code: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    // PostgreSQL's texts hold no such character.
    if code.contains('\0') {
        return Err(Problem::not_found());
    }
    // A token that is not good is told of whatever the code is.
    if let Some(token) = &asking.0.token {
        store.authenticate(token, Scope::Read).await?;
    }
    let id = store.game_of_invite(&code).await?;
    let access = Access { token: asking.0.token, invite: Some(code.into_inner()) };
    let loaded = store.load_game(id, &access, Scope::Read, None).await?;
    Ok(show(&loaded))
}

/// Play once more
///
/// A new game like this one, which must be over: the same ruleset, options, clock and players, each a seat further. Whoever asks
/// first creates it, and the other seats are kept for the others for a week; who asks then takes theirs, which is what two get
/// who ask at once. There is one rematch of a game (`rematch_id`).
#[utoipa::path(
    operation_id = "create_rematch", tag = "invitations", security(("token" = ["play"])),
    params(("id" = Uuid, Path, description = "The id of the game that is over"),
           ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat within 24 hours harmless")),
    request_body = RematchIn,
    responses((status = 201, description = "The new game, you in it", body = GameOut,
               headers(("Location" = String, description = "The new game"), ("ETag" = String, description = "Its version"))),
              (status = 200, description = "You sit in it already", body = GameOut,
               headers(("ETag" = String, description = "Its version"))))
)]
#[post("/v1/games/{id}/rematch")]
pub(super) async fn create_rematch(
    store: web::Data<Store>,
    token: Token,
    id: Id,
    body: Body<RematchIn>,
) -> Result<HttpResponse, Problem> {
    let own = Entropy::parse(body.value.entropy.clone()).map_err(|error| Problem::text("/entropy", error))?;
    let (random, server_seed, invite) = (entropy()?, ServerSeed(entropy()?), invite_code()?);
    let new = |now| {
        let (id, created_at) = new_id(now, &random);
        let new = NewGame {
            id,
            // What the game before had takes the place of these.
            ruleset: RulesetId::ALL[0],
            options: serde_json::Map::new(),
            seats: None,
            visibility: Visibility::Public,
            spectators: Spectators::Live,
            clock: None,
            rated: false,
            entropy: own.clone(),
            server_seed: server_seed.clone(),
            invite: invite.clone(),
            created_at,
        };
        (new, created_at + Duration::seconds(KEPT.into()))
    };
    let access = Access::of(token.0);
    let answer = |game: &Game, player: &Player| game_answer(StatusCode::CREATED, game, player);
    match store.create_rematch(id.0, &access, body.idempotency_key(), new, answer).await? {
        Rematch::Created(created) => Ok(send(created.answer, created.repeated)),
        Rematch::Exists(next) => {
            let take = Command::TakeSeat { seat: None, entropy: own, invite: None };
            let answer = |game: &Game, player: &Player| {
                let mut answer = game_answer(StatusCode::CREATED, game, player);
                answer.headers.location = Some(location(game));
                answer
            };
            match command_answered(&store, next, &access, None, body.idempotency_key(), take, answer).await {
                Err(problem) if problem.code == Code::AlreadySeated => {
                    Ok(show(&store.load_game(next, &access, Scope::Read, None).await?))
                }
                // Private, and the seat is not kept for them any more.
                Err(problem) if problem.code == Code::NotFound => Err(GameError::SeatTaken.into()),
                done => done,
            }
        }
    }
}
