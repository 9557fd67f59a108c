//! Errors as clients see them: RFC 9457, each kind under a stable code. The only place that makes error bodies.

use actix_web::body::BoxBody;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpResponse, ResponseError};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::game::{GameError, InvalidText};
use crate::store::{Scope, StoreError};
use crate::webhook::Refusal;

/// Makes the table of codes: appended to, never renamed or reused.
macro_rules! codes {
    ($($name:ident $status:literal $code:literal, $title:literal, $about:literal;)+) => {
        /// What kind of error it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $($name),+ }

        impl Code {
            /// All codes, by status.
            pub const ALL: &'static [Code] = &[$(Code::$name),+];

            /// The stable code that clients match on.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code),+ }
            }

            /// The status that goes with it.
            pub fn status(self) -> StatusCode {
                let status: u16 = match self { $(Code::$name => $status),+ };
                StatusCode::from_u16(status).expect("the table holds status codes")
            }

            /// A fixed short title.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title),+ }
            }

            /// What it means and what a client can do: the text of its page.
            pub fn about(self) -> &'static str {
                match self { $(Code::$name => $about),+ }
            }
        }
    };
}

codes! {
    InvalidBody 400 "invalid-body", "The body cannot be read",
        "The body is not JSON, or not of the shape that the operation describes: a field is missing, unknown, of another type or \
         out of its range. `errors` points at the field where that is known. Sending the same again will not help.";
    InvalidParameter 400 "invalid-parameter", "A parameter cannot be read",
        "A path or query parameter or a request header is unknown, cannot be parsed or is out of its range. `errors` names it.";
    Unauthenticated 401 "unauthenticated", "A valid token is needed",
        "The operation needs `Authorization: Bearer <token>`, or the token that was sent is not valid (any more). A wrong token is \
         refused even where none is needed.";
    MissingScope 403 "missing-scope", "The token may not be used for this",
        "The token is valid but lacks the scope that the operation needs; `detail` names it. `play` includes `read`. \
         `GET /v1/me/token` tells what a token may do.";
    NotSeated 403 "not-seated", "You have no seat in this game",
        "Only a player of the game may do this.";
    NotOwner 403 "not-owner", "This is not yours to do",
        "Only the game's creator may do this.";
    HasLeft 403 "has-left", "You have left this game",
        "You resigned or overstepped the clock; a bot plays on for you. You can still look on.";
    WrongPool 403 "wrong-pool", "The ratings are apart",
        "A rated game is between humans or between bots (the `kind` of a player), never both: their ratings are apart. Games that are \
         not rated are open to all.";
    NotFound 404 "not-found", "Nothing is here",
        "There is no such path or resource, or it is not yours to know of: both are answered alike.";
    MethodNotAllowed 405 "method-not-allowed", "The path does not take this method",
        "The path exists, but not with this method; the `Allow` header lists those that it takes.";
    NotYourTurn 409 "not-your-turn", "It is not your turn",
        "Another player is to move. The game's `to_move` says who.";
    GameNotActive 409 "game-not-active", "The game is not being played",
        "The operation is for games that are being played; this one has not started or is over.";
    GameNotOpen 409 "game-not-open", "The game is not open",
        "The operation is for games that wait for players; this one has started or is over.";
    GameNotFinished 409 "game-not-finished", "The game is not finished",
        "The operation is for games that have been played to an end; this one goes on, has not started or was called off.";
    SeatTaken 409 "seat-taken", "The seat is taken",
        "Somebody sits there, or no seat is free.";
    AlreadySeated 409 "already-seated", "You sit at this table already",
        "A player has one seat in a game.";
    GameNotPrivate 409 "game-not-private", "The game is public",
        "Only private games have an invite code; in a public game everybody may take a seat.";
    TooFewPlayers 409 "too-few-players", "Too few players",
        "The ruleset needs more players than have taken a seat.";
    NameTaken 409 "name-taken", "The name is taken",
        "Another account has this name, or one that differs only by case or look.";
    TooManyTokens 409 "too-many-tokens", "You have too many tokens",
        "A player has at most 50 tokens, those that have expired not counted. Revoke one that is not needed any more.";
    WebhookExists 409 "webhook-exists", "You have a webhook with this address",
        "Each of a player's webhooks has an address of its own. Delete the other one, or use it.";
    TooManyWebhooks 409 "too-many-webhooks", "You have as many webhooks as one may have",
        "A player has at most ten webhooks. Delete one that is not needed any more.";
    WebhookDisabled 409 "webhook-disabled", "The webhook is disabled",
        "Nothing is sent to a webhook that is disabled. Enable it (`PATCH` with `{\"enabled\": true}`) and try again.";
    StaleVersion 412 "stale-version", "The game has moved on",
        "The game has another version than `If-Match` expects; `current_version` tells which. Read the game again and decide anew.";
    BodyTooLarge 413 "body-too-large", "The body is too large",
        "A body has at most 64 KiB.";
    UnsupportedMediaType 415 "unsupported-media-type", "The body is not JSON",
        "Bodies are sent as `Content-Type: application/json`.";
    IllegalMove 422 "illegal-move", "The rules do not allow the move",
        "The move is well-formed but not legal; `rule` names the rule. Nothing has changed. `GET …/legal-moves` lists all legal moves.";
    InvalidOptions 422 "invalid-options", "The options do not suit the ruleset",
        "An option is unknown, of the wrong type, out of range, or contradicts another. `errors` points into `options`.";
    TargetNotAllowed 422 "target-not-allowed", "Nothing is sent to this address",
        "A webhook's address is an `https` URL whose host has an address on the public internet: not loopback, private, link-local or \
         otherwise special ones, also by way of a name. The operator of a server can allow them.";
    IdempotencyKeyReused 422 "idempotency-key-reused", "The key was used for another request",
        "An `Idempotency-Key` belongs to one request: method, path and body. Use a new key for a new request.";
    RateLimited 429 "rate-limited", "Too many requests",
        "A budget of requests is used up: that of the token, or of the address for requests without a token that is known to be good, or \
         the one for moves or for registrations. `RateLimit-Policy` tells the budgets, `RateLimit` what is left of them, and `Retry-After` \
         after how many seconds to try again. Nothing has changed.";
    Internal 500 "internal", "The server failed",
        "Something went wrong that is not the client's fault. `instance` helps the operator to find it.";
    Unavailable 503 "unavailable", "Not available now",
        "The database is away, or the server is too busy. Nothing has changed, or, if the answer was lost on the way, the same request \
         with the same `Idempotency-Key` tells. `Retry-After` says when to try again.";
}

impl Code {
    /// The kind with that code.
    pub fn parse(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.as_str() == code)
    }

    /// The kind for a status that the framework answers by itself.
    fn of_status(status: StatusCode) -> Self {
        match status.as_u16() {
            401 => Code::Unauthenticated,
            404 => Code::NotFound,
            405 => Code::MethodNotAllowed,
            413 => Code::BodyTooLarge,
            415 => Code::UnsupportedMediaType,
            429 => Code::RateLimited,
            503 => Code::Unavailable,
            400..500 => Code::InvalidParameter,
            _ => Code::Internal,
        }
    }
}

/// Where in a request something is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldError {
    /// A JSON pointer (RFC 6901) into the body, or into `options` for `invalid-options`; for parameters and headers their name.
    #[schema(example = "/seats")]
    pub pointer: String,
    /// What is wrong with it.
    #[schema(example = "the ruleset is for 2 to 4 players")]
    pub detail: String,
}

/// An error (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemOut {
    /// A page about this kind of error, on this server.
    #[schema(format = "uri-reference", example = "/problems/illegal-move")]
    pub r#type: String,
    /// A short title, always the same for a code.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The stable code to match on.
    #[schema(example = "illegal-move")]
    pub code: String,
    /// What happened this time; for people.
    pub detail: String,
    /// The request, for the operator's logs: `urn:uuid:` and the request's id.
    #[schema(format = "uri", example = "urn:uuid:0193a2f0-6c1d-7e10-8f3a-2b9d5c4e6f70")]
    pub instance: String,
    /// The code of the rule that forbids the move.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "P6")]
    pub rule: Option<String>,
    /// What is wrong where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<FieldError>,
    /// The version that the game has now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub current_version: Option<u32>,
}

/// An error on its way out; [`render`] gives it its form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {detail}", .code.as_str())]
pub struct Problem {
    pub code: Code,
    pub detail: String,
    pub rule: Option<&'static str>,
    pub errors: Vec<FieldError>,
    pub current_version: Option<u32>,
}

impl Problem {
    /// A problem of a kind, in words for this occurrence.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), rule: None, errors: Vec::new(), current_version: None }
    }

    /// A field of the body that is wrong.
    pub fn field(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::at(Code::InvalidBody, pointer.into(), detail.into())
    }

    /// A parameter or header that is wrong.
    pub fn parameter(name: &str, detail: impl Into<String>) -> Self {
        Self::at(Code::InvalidParameter, name.to_owned(), detail.into())
    }

    fn at(code: Code, pointer: String, detail: String) -> Self {
        let words = if pointer.is_empty() { detail.clone() } else { format!("{pointer}: {detail}") };
        Self { errors: vec![FieldError { pointer, detail }], ..Self::new(code, words) }
    }

    /// Nothing is here, or nothing that the caller may know of.
    pub fn not_found() -> Self {
        Self::new(Code::NotFound, "there is nothing here, or nothing that you may see")
    }

    /// The token lacks a scope.
    pub fn missing_scope(scope: Scope) -> Self {
        let detail = format!("the token lacks the scope `{scope}`");
        let errors = vec![FieldError { pointer: "Authorization".into(), detail: detail.clone() }];
        Self { errors, ..Self::new(Code::MissingScope, detail) }
    }

    /// A text of the body that is refused.
    pub fn text(pointer: &str, error: InvalidText) -> Self {
        Self::field(pointer, error.to_string())
    }

    /// Its body.
    pub fn to_out(&self, instance: Uuid) -> ProblemOut {
        ProblemOut {
            r#type: format!("/problems/{}", self.code.as_str()),
            title: self.code.title().to_owned(),
            status: self.code.status().as_u16(),
            code: self.code.as_str().to_owned(),
            detail: self.detail.clone(),
            instance: format!("urn:uuid:{instance}"),
            rule: self.rule.map(str::to_owned),
            errors: self.errors.clone(),
            current_version: self.current_version,
        }
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.code.status()
    }

    /// Only the status: the outermost layer knows the request's id and writes the body ([`render`]).
    fn error_response(&self) -> HttpResponse<BoxBody> {
        HttpResponse::new(self.status_code())
    }
}

impl From<GameError> for Problem {
    fn from(error: GameError) -> Self {
        let detail = error.to_string();
        let code = match &error {
            GameError::NotSeated => Code::NotSeated,
            GameError::NotCreator => Code::NotOwner,
            GameError::NotOpen(_) => Code::GameNotOpen,
            GameError::NotActive(_) => Code::GameNotActive,
            GameError::SeatTaken => Code::SeatTaken,
            GameError::AlreadySeated => Code::AlreadySeated,
            GameError::TooFewPlayers { .. } => Code::TooFewPlayers,
            GameError::NotYourTurn { .. } => Code::NotYourTurn,
            GameError::HasLeft => Code::HasLeft,
            GameError::WrongPool => Code::WrongPool,
            GameError::NotOver(_) => Code::GameNotFinished,
            GameError::NotInvited => return Problem::new(Code::NotFound, detail),
            GameError::PlayerSeated => Code::AlreadySeated,
            GameError::NotPrivate => Code::GameNotPrivate,
            GameError::InvalidClock { member, .. } => return Problem::field(format!("/clock/{member}"), detail),
            GameError::NoSuchSeat { .. } => return Problem::field("/seat", detail),
            GameError::NotRatable => return Problem::field("/rated", detail),
            GameError::SeatCount { .. } => return Problem::field("/seats", detail),
            GameError::MalformedMove(source) => return Problem::field("", format!("{detail}: {}", plain(source))),
            GameError::Illegal(illegal) => {
                return Problem { rule: illegal.rule, ..Problem::new(Code::IllegalMove, detail) };
            }
            GameError::InvalidOptions(invalid) => {
                let errors = invalid
                    .0
                    .iter()
                    .map(|(pointer, detail)| FieldError { pointer: pointer.clone(), detail: detail.clone() });
                return Problem { errors: errors.collect(), ..Problem::new(Code::InvalidOptions, detail) };
            }
        };
        Problem::new(code, detail)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unauthenticated => Problem::new(Code::Unauthenticated, "send a valid token"),
            StoreError::MissingScope(scope) => Problem::missing_scope(scope),
            StoreError::NotFound => Problem::not_found(),
            StoreError::Stale { current } => Problem {
                current_version: Some(current),
                ..Problem::new(Code::StaleVersion, format!("the game is at version {current}"))
            },
            StoreError::Game(error) => error.into(),
            StoreError::NameTaken => Problem::new(Code::NameTaken, "choose another name"),
            StoreError::TooManyTokens => Problem::new(Code::TooManyTokens, error.to_string()),
            StoreError::WebhookExists => Problem::new(Code::WebhookExists, error.to_string()),
            StoreError::TooManyWebhooks => Problem::new(Code::TooManyWebhooks, error.to_string()),
            StoreError::WebhookDisabled => Problem::new(Code::WebhookDisabled, error.to_string()),
            StoreError::KeyReused => Problem::new(Code::IdempotencyKeyReused, "use a new key for a new request"),
            StoreError::Contended => Problem::new(Code::Unavailable, error.to_string()),
            StoreError::Unavailable(source) => {
                tracing::warn!(error = %source, "the database is not available");
                Problem::new(Code::Unavailable, "the database is not available")
            }
            StoreError::Database(source) => {
                tracing::error!(error = %source, "the database failed");
                Problem::new(Code::Internal, "the server failed")
            }
            StoreError::Corrupt(what) => {
                tracing::error!(what, "stored data cannot be read");
                Problem::new(Code::Internal, "the server failed")
            }
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal {
            Refusal::Malformed(_) => Code::InvalidBody,
            Refusal::Insecure | Refusal::NotAllowed | Refusal::Unresolved => Code::TargetNotAllowed,
        };
        Problem::at(code, "/url".to_owned(), refusal.to_string())
    }
}

/// What serde_json has to say, without its position in the text, which says little of JSON that was sent by a program.
pub fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(words, _)| words.to_owned())
}

/// Gives an error answer its form: the body, the headers that go with its kind, and those that it had already.
pub fn render(problem: &Problem, instance: Uuid, headers: &HeaderMap) -> HttpResponse {
    let mut response = HttpResponse::build(problem.code.status());
    for (name, value) in headers {
        if *name != header::CONTENT_TYPE && *name != header::CONTENT_LENGTH {
            response.append_header((name.clone(), value.clone()));
        }
    }
    match problem.code {
        Code::Unauthenticated => {
            response.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
        }
        Code::Unavailable => {
            response.insert_header((header::RETRY_AFTER, "1"));
        }
        _ => {}
    }
    response.insert_header((header::CACHE_CONTROL, "no-store"));
    response.insert_header((header::CONTENT_TYPE, "application/problem+json"));
    response.body(serde_json::to_vec(&problem.to_out(instance)).unwrap_or_default())
}

/// The problem of an answer that the framework, or a handler, gave as an error.
pub fn of_error(error: Option<&actix_web::Error>, status: StatusCode) -> Problem {
    if let Some(problem) = error.and_then(|error| error.as_error::<Problem>()) {
        return problem.clone();
    }
    let code = Code::of_status(status);
    Problem::new(code, code.title())
}

/// An error that travels as such to the very end and there takes the form of [`render`].
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub struct Rendered {
    problem: Problem,
    instance: Uuid,
}

impl Rendered {
    /// A problem on its way.
    pub fn new(problem: Problem, instance: Uuid) -> Self {
        Self { problem, instance }
    }
}

impl ResponseError for Rendered {
    fn status_code(&self) -> StatusCode {
        self.problem.status_code()
    }

    fn error_response(&self) -> HttpResponse<BoxBody> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        render(&self.problem, self.instance, &headers)
    }
}

/// The answer to a method that a path does not take.
pub fn method_not_allowed(allowed: &[&Method]) -> HttpResponse {
    let allow = allowed.iter().map(|method| method.as_str()).collect::<Vec<_>>().join(", ");
    let problem = Problem::new(Code::MethodNotAllowed, format!("the path takes {allow}"));
    let mut response = HttpResponse::from_error(problem);
    if let Ok(value) = HeaderValue::from_str(&allow) {
        response.headers_mut().insert(HeaderName::from_static("allow"), value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_problems_is_the_table() {
        let mut page = "# Problems\n\nEvery code that errors carry, as the server serves them under `/problems/`. Made from the table in \
                        `src/http/problem.rs`; `make goldens` writes it.\n"
            .to_owned();
        for code in Code::ALL {
            let (word, status, title, about) = (code.as_str(), code.status().as_u16(), code.title(), code.about());
            page += &format!("\n## `{word}`\n\n{status}: {title}. {about}\n");
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/problems.md");
        if std::env::var_os("TAVOLA_GOLDENS").is_some_and(|value| value == "write") {
            std::fs::write(path, &page).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), page, "review what `make goldens` writes");
    }

    #[test]
    fn codes_are_unique_and_sorted_by_status() {
        assert!(Code::ALL.is_sorted_by_key(|code| code.status()));
        for code in Code::ALL {
            assert_eq!(Code::parse(code.as_str()), Some(*code));
        }
    }
}
