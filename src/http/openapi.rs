//! The OpenAPI document: collected from the operations, then given the forms that client generators understand best.
//!
//! Added here for all operations alike: unions are rewritten so that each member is a named component with a discriminator
//! (`schemas`), every operation's errors are listed with an example for each code, the scope that it declares
//! (`security(("token" = ["play"]))`) is told in words, the headers of its answers (`headers`), where they lead (`links`).

mod headers;
mod links;
mod schemas;

mod forms;

use actix_web::App;
use serde_json::{Map, Value, json};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContactBuilder, InfoBuilder, LicenseBuilder, OpenApi};
use utoipa::{OpenApi as _, PartialSchema, ToSchema};
use utoipa_actix_web::AppExt;
use uuid::Uuid;

use super::dto::RulesetOut;
use super::examples;
use super::language::Language;
use super::limits;
use super::problem::{Code, FieldError, Problem, ProblemOut};
use super::routes;
use crate::rulesets::registry::RulesetId;
use crate::store::Scope;
use schemas::{close_requests, drop_orphans, finish_schemas};
pub use schemas::{hoist_unions, json_schema};

/// What no operation brings by itself.
#[derive(utoipa::OpenApi)]
#[openapi(components(schemas(ProblemOut, FieldError)))]
struct Shared;

/// What the document says of itself.
const ABOUT: &str = "Card games played turn by turn, over minutes or weeks. Register a player, create a game or take a seat in \
one, ask for your legal moves and play one of them as it is.\n\n\
Every answer shows what its viewer may see and nothing else: send your token to see your hand. Commands take `If-Match` (only \
on the version you saw) and `Idempotency-Key` (a repeat is harmless). Errors are `application/problem+json` with a stable \
`code`; each has a page under `/problems/`. Times are RFC 3339 in UTC, ids are UUIDs.";

/// The errors of each operation besides those that [`common_errors`] knows of.
const ERRORS: &[(&str, &[Code])] = &[
    ("register_player", &[Code::NameTaken]),
    ("get_me", &[]),
    ("update_me", &[Code::NameTaken]),
    ("delete_me", &[]),
    ("find_players", &[]),
    ("get_player", &[Code::NotFound]),
    ("list_ratings", &[Code::NotFound]),
    ("get_leaderboard", &[Code::NotFound]),
    ("get_token", &[]),
    ("list_tokens", &[]),
    ("create_token", &[Code::TooManyTokens]),
    ("delete_token", &[Code::NotFound]),
    ("create_game", &[Code::InvalidOptions]),
    ("list_games", &[]),
    ("export_games", &[]),
    ("get_game", &[Code::NotFound]),
    (
        "take_seat",
        &[
            Code::NotFound,
            Code::AlreadySeated,
            Code::WrongPool,
            Code::GameNotOpen,
            Code::SeatTaken,
            Code::StaleVersion,
            Code::InvalidOptions,
        ],
    ),
    ("leave_seat", &[Code::NotSeated, Code::NotFound, Code::GameNotOpen, Code::StaleVersion]),
    (
        "start_game",
        &[
            Code::NotOwner,
            Code::NotFound,
            Code::GameNotOpen,
            Code::TooFewPlayers,
            Code::StaleVersion,
            Code::InvalidOptions,
        ],
    ),
    ("resign", &[Code::NotSeated, Code::HasLeft, Code::NotFound, Code::GameNotActive, Code::StaleVersion]),
    (
        "abort_game",
        &[Code::NotSeated, Code::NotOwner, Code::HasLeft, Code::NotFound, Code::GameNotActive, Code::StaleVersion],
    ),
    ("withdraw_abort", &[Code::NotSeated, Code::HasLeft, Code::NotFound, Code::GameNotActive, Code::StaleVersion]),
    (
        "invite_player",
        &[
            Code::NotOwner,
            Code::NotFound,
            Code::GameNotOpen,
            Code::SeatTaken,
            Code::AlreadySeated,
            Code::WrongPool,
            Code::StaleVersion,
        ],
    ),
    ("decline_invitation", &[Code::NotFound, Code::StaleVersion]),
    ("withdraw_invitation", &[Code::NotOwner, Code::NotFound, Code::StaleVersion]),
    ("change_invite", &[Code::NotOwner, Code::NotFound, Code::GameNotPrivate, Code::StaleVersion]),
    ("revoke_invite", &[Code::NotOwner, Code::NotFound, Code::GameNotPrivate, Code::StaleVersion]),
    ("get_invite", &[Code::NotFound]),
    ("create_rematch", &[Code::NotSeated, Code::NotFound, Code::GameNotFinished, Code::GameNotOpen, Code::SeatTaken]),
    ("list_turns", &[]),
    ("list_invitations", &[]),
    ("list_events", &[Code::NotFound]),
    ("list_my_events", &[]),
    ("list_legal_moves", &[Code::NotSeated, Code::NotFound]),
    (
        "play_move",
        &[
            Code::NotSeated,
            Code::HasLeft,
            Code::NotFound,
            Code::GameNotActive,
            Code::NotYourTurn,
            Code::StaleVersion,
            Code::IllegalMove,
        ],
    ),
    ("list_moves", &[Code::NotSeated, Code::NotFound]),
    ("get_move", &[Code::NotSeated, Code::NotFound]),
    ("list_rulesets", &[]),
    ("get_ruleset", &[Code::NotFound]),
    ("get_state", &[Code::NotSeated, Code::NotFound]),
    ("get_fairness", &[Code::NotFound]),
    ("get_record", &[Code::NotFound, Code::GameNotFinished]),
    ("get_player_stats", &[Code::NotFound]),
    ("get_ruleset_stats", &[Code::NotFound]),
    ("create_webhook", &[Code::WebhookExists, Code::TooManyWebhooks, Code::TargetNotAllowed]),
    ("list_webhooks", &[]),
    ("get_webhook", &[Code::NotFound]),
    ("update_webhook", &[Code::NotFound]),
    ("delete_webhook", &[Code::NotFound]),
    ("rotate_webhook_secret", &[Code::NotFound]),
    ("ping_webhook", &[Code::NotFound, Code::WebhookDisabled]),
    ("list_deliveries", &[Code::NotFound]),
    ("redeliver", &[Code::NotFound, Code::WebhookDisabled]),
    ("healthz", &[]),
    ("readyz", &[]),
    ("get_openapi", &[]),
    ("get_problem", &[Code::NotFound]),
];

/// The finished document.
pub fn document() -> Value {
    let (_, collected) = App::new().into_utoipa_app().openapi(base()).configure(routes::describe).split_for_parts();
    let mut document = serde_json::to_value(collected).unwrap_or_default();
    hoist_unions(&mut document);
    finish_schemas(&mut document);
    forms::name_codes(&mut document);
    forms::open_objects(&mut document);
    drop_orphans(&mut document);
    close_requests(&mut document);
    complete_operations(&mut document);
    document
}

/// The document in the form in which it is committed.
pub fn pretty() -> String {
    let mut text = serde_json::to_string_pretty(&document()).unwrap_or_default();
    text.push('\n');
    text
}

fn base() -> OpenApi {
    let mut base = Shared::openapi();
    base.info = InfoBuilder::new()
        .title("Tavola")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT))
        .contact(Some(ContactBuilder::new().name(Some("The Tavola developers")).build()))
        .license(Some(LicenseBuilder::new().name("MIT OR Apache-2.0").identifier(Some("MIT OR Apache-2.0")).build()))
        .build();
    base.servers = Some(vec![utoipa::openapi::Server::new("/")]);
    let token = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("A token that registering a player or `create_token` answered with."))
        .build();
    base.components.get_or_insert_default().add_security_scheme("token", SecurityScheme::Http(token));
    base.tags = Some(
        [
            ("players", "Accounts."),
            ("tokens", "Tokens of an account: what they may do, making and revoking them."),
            ("rulesets", "The games that can be played, and all that one needs to play them."),
            ("games", "Creating and finding games, looking at one."),
            ("seats", "Taking a seat, leaving it, starting, resigning, calling off."),
            ("invitations", "Inviting by name or by code, playing once more."),
            ("moves", "Legal moves, playing, the log."),
            ("events", "What happens to a game, and to a player anywhere: pages and streams."),
            ("history", "Any past state of a game, its fairness, its record."),
            ("statistics", "How games went: of a player, of a ruleset."),
            ("ratings", "How strong players are thought to be, and leaderboards."),
            ("webhooks", "Being told of what happens by requests to a server of yours."),
            ("operations", "Health, this document, pages about problems."),
        ]
        .into_iter()
        .map(|(name, about)| utoipa::openapi::tag::TagBuilder::new().name(name).description(Some(about)).build())
        .collect(),
    );
    base
}

/// The errors that follow from what an operation takes: a token, a body, an idempotency key.
fn common_errors(operation: &Value) -> Vec<Code> {
    let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
    let mut codes = Vec::new();
    if operation["security"].as_array().is_some_and(|ways| !ways.is_empty()) {
        codes.push(Code::Unauthenticated);
    }
    if scope(operation).is_some() {
        codes.push(Code::MissingScope);
    }
    // What has no use for a body reads it all the same if it is sent: the key is of the whole request.
    if operation.get("requestBody").is_some()
        || matches!(
            operation["operationId"].as_str(),
            Some(
                "start_game"
                    | "resign"
                    | "abort_game"
                    | "change_invite"
                    | "rotate_webhook_secret"
                    | "ping_webhook"
                    | "redeliver"
            )
        )
    {
        codes.extend([Code::InvalidBody, Code::BodyTooLarge, Code::UnsupportedMediaType]);
    }
    if parameters.iter().any(|parameter| parameter["name"] == "Idempotency-Key") {
        codes.push(Code::IdempotencyKeyReused);
    }
    if !matches!(
        operation["operationId"].as_str(),
        Some("healthz" | "get_openapi" | "get_problem" | "list_rulesets" | "get_ruleset")
    ) {
        codes.push(Code::Unavailable);
    }
    codes.push(Code::Internal);
    codes
}

/// The schema of the parts of a stream, each JSON: of its lines, or of the `data` of its events. OpenAPI 3.1 knows of whole bodies
/// only.
fn streamed(operation: &str, kind: &str) -> Option<Value> {
    match (operation, kind) {
        ("list_events" | "list_my_events", "text/event-stream" | "application/x-ndjson") => {
            Some(json!({"$ref": "#/components/schemas/Event"}))
        }
        ("export_games", "application/x-ndjson") => {
            let trailer = serde_json::to_value(routes::TrailerOut::schema()).ok()?;
            Some(json!({"anyOf": [{"$ref": "#/components/schemas/Record"}, trailer]}))
        }
        _ => None,
    }
}

/// The scope that the token of an operation must have, if it takes one.
fn scope(operation: &Value) -> Option<&str> {
    operation["security"].as_array()?.iter().find_map(|way| way["token"][0].as_str())
}

/// What an operation's description says of the token.
fn about_token(operation: &Value) -> Option<String> {
    let scope = scope(operation)?;
    let is_optional = operation["security"].as_array()?.iter().any(|way| *way == json!({}));
    Some(match is_optional {
        true => format!("Needs no token; one that is sent needs the scope `{scope}`."),
        false => format!("Needs a token with scope `{scope}`."),
    })
}

/// Gives every operation examples of its bodies, says which scope it needs, and lists its errors, by status,
/// with an example for each code.
fn complete_operations(document: &mut Value) {
    let (options, moves) = RulesetId::Leopard.schema_names();
    let schemas = (json_schema(document, &options), json_schema(document, &moves));
    let ruleset = RulesetOut::new(RulesetId::Leopard, Language::En, schemas.0, schemas.1);
    let ruleset = serde_json::to_value(ruleset).ok();
    document["components"]["headers"] = headers::components();
    let option_filters = option_filters(document);
    // Those that operations have, by code.
    let mut problems = Map::new();
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    let operations = paths.flat_map(|(path, item)| {
        let operations = item.as_object_mut().into_iter().flat_map(|item| item.values_mut());
        operations.map(|operation| (limits::is_limited(path), operation))
    });
    for (limited, operation) in operations {
        let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
        let (request, answer) = match id.as_str() {
            "get_ruleset" => (None, ruleset.clone()),
            _ => examples::of(&id),
        };
        if let Some(request) = request {
            operation["requestBody"]["content"]["application/json"]["example"] = request;
        }
        for response in operation["responses"].as_object_mut().into_iter().flat_map(|responses| responses.values_mut())
        {
            if let Some(answer) = &answer
                && let Some(content) = response.pointer_mut("/content/application~1json")
            {
                content["example"] = answer.clone();
            }
            for (kind, content) in response.get_mut("content").and_then(Value::as_object_mut).into_iter().flatten() {
                if let Some(text) = examples::text_of(&id, kind) {
                    content["example"] = text.into();
                }
                if let Some(item) = streamed(&id, kind) {
                    content["x-item-schema"] = item;
                }
            }
        }
        let own = ERRORS.iter().find(|(known, _)| *known == id).map_or(&[][..], |(_, codes)| codes);
        if let ("list_games" | "export_games", Some(parameters)) =
            (id.as_str(), operation.get_mut("parameters").and_then(Value::as_array_mut))
        {
            parameters.extend(option_filters.iter().cloned());
        }
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            limit(&id, parameter);
        }
        // Nothing at all means an object without members.
        if matches!(id.as_str(), "update_me" | "take_seat" | "create_rematch" | "update_webhook") {
            operation["requestBody"]["required"] = false.into();
        }
        if operation.get("security").is_none() {
            // Said expressly: no token is needed.
            operation["security"] = json!([]);
        }
        if let (Some(about), Some(text)) = (about_token(operation), operation["description"].as_str()) {
            operation["description"] = format!("{text}\n\n{about}").into();
        }
        let mut codes = common_errors(operation);
        codes.extend(own);
        // All of them refuse parameters that they do not have; a page is shown whatever its address says besides.
        codes.extend((limited && id != "get_problem").then_some(Code::InvalidParameter));
        codes.extend(limited.then_some(Code::RateLimited));
        codes.sort_by_key(|code| code.status());
        for code in codes {
            let status = code.status().as_u16().to_string();
            let response = &mut operation["responses"][&status];
            if response.is_null() {
                *response = json!({
                    "description": code.title(),
                    "content": {"application/problem+json": {
                        "schema": {"$ref": "#/components/schemas/Problem"}, "examples": {},
                    }},
                });
            } else if let Some(title) = response["description"].as_str() {
                response["description"] = format!("{title}; or: {}", code.title()).into();
            }
            response["content"]["application/problem+json"]["examples"][code.as_str()] =
                json!({"$ref": format!("#/components/examples/{}", code.as_str())});
            problems.insert(code.as_str().to_owned(), example(code));
        }
        headers::tell(operation, limited);
        links::add(&id, operation);
    }
    document["components"]["examples"] = problems.into();
}

/// A filter of lists for each option of any ruleset.
fn option_filters(document: &Value) -> Vec<Value> {
    let mut filters: Vec<Value> = Vec::new();
    for ruleset in RulesetId::ALL {
        let (options, _) = ruleset.schema_names();
        let options = document["components"]["schemas"][options]["properties"].as_object();
        for (name, schema) in options.into_iter().flatten() {
            let name = format!("option.{name}");
            if filters.iter().any(|known| known["name"] == name.as_str()) {
                continue;
            }
            let mut schema = schema.clone();
            if let Some(members) = schema.as_object_mut() {
                members.retain(|word, _| !matches!(word.as_str(), "default" | "description"));
            }
            filters.push(json!({
                "name": name, "in": "query", "required": false,
                "description": format!("Only games with this option in force, by default or not (of `{}` for instance).", ruleset.meta().slug),
                "schema": schema,
            }));
        }
    }
    filters
}

/// Writes down what a parameter can be, where its type says too little.
fn limit(operation: &str, parameter: &mut Value) {
    // A header that is not sent is missing; there is no null to send.
    if parameter["in"] == "header" {
        parameter["schema"]["type"] = "string".into();
    }
    if parameter["name"] == "If-Match" {
        parameter["examples"] = json!({"version": {"value": "\"17\""}, "any": {"value": "*"}});
    }
    let limits = match parameter["name"].as_str() {
        Some("Idempotency-Key") => {
            let least =
                if matches!(operation, "register_player" | "create_token") { routes::TOKEN_KEY_LENGTH } else { 1 };
            json!({"minLength": least, "maxLength": 255, "pattern": "^[ -~]+$"})
        }
        Some("If-Match") => json!({"pattern": r#"^(\*|"[0-9]+")$"#}),
        Some("cursor") => json!({"pattern": "^[0-9a-f]+$"}),
        Some("perspective") => json!({"pattern": "^(me|spectator|all|[0-3])$"}),
        Some("player" | "opponent" | "to_move" | "around") => {
            json!({"pattern": "^(me|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$"})
        }
        _ => return,
    };
    if let (Some(schema), Value::Object(limits)) = (parameter["schema"].as_object_mut(), limits) {
        schema.extend(limits);
    }
}

/// What an error of a kind looks like.
fn example(code: Code) -> Value {
    let problem = match code {
        Code::InvalidBody => Problem::field("/seats", "invalid type: string \"two\", expected u8"),
        Code::InvalidParameter => Problem::parameter("limit", "a whole number from 1 to 100"),
        Code::IllegalMove => {
            Problem { rule: Some("P6"), ..Problem::new(code, "a jack is laid on a card that is face up") }
        }
        Code::StaleVersion => Problem { current_version: Some(18), ..Problem::new(code, "the game is at version 18") },
        Code::MissingScope => Problem::missing_scope(Scope::Play),
        Code::InvalidOptions => Problem {
            errors: vec![FieldError { pointer: "/hands".into(), detail: "hands is 1 to 12".into() }],
            ..Problem::new(code, "the options are not valid")
        },
        Code::RateLimited => Problem::new(code, "the budget `token` is used up; try again in 1 s"),
        _ => Problem::new(code, code.title().to_lowercase()),
    };
    let instance = Uuid::from_u128(0x0193_a2f0_6c1d_7e10_8f3a_2b9d_5c4e_6f70);
    json!({"summary": code.title(), "value": problem.to_out(instance)})
}

/// Checks that the slugs of the document are those of the server; for tests.
pub fn slugs(document: &Value) -> Vec<String> {
    let slugs = document["components"]["schemas"][RulesetId::name().as_ref()]["enum"].as_array();
    slugs.into_iter().flatten().filter_map(|slug| slug.as_str().map(str::to_owned)).collect()
}
