//! The OpenAPI document: collected from the operations, then given the forms that client generators understand best.
//!
//! Three things are added here for all operations alike: unions are rewritten so that each member is a named component with
//! a discriminator, every operation's errors are listed with an example for each code, and the scope that it declares
//! (`security(("token" = ["play"]))`) is told in words.

mod forms;

use actix_web::App;
use serde_json::{Map, Value, json};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContactBuilder, InfoBuilder, LicenseBuilder, OpenApi};
use utoipa::{OpenApi as _, ToSchema};
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
    let (_, collected) = App::new().into_utoipa_app().openapi(base()).configure(routes::configure).split_for_parts();
    let mut document = serde_json::to_value(collected).unwrap_or_default();
    hoist_unions(&mut document);
    finish_schemas(&mut document);
    forms::name_codes(&mut document);
    forms::open_objects(&mut document);
    drop_orphans(&mut document);
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

/// The errors that follow from what an operation takes: parameters, a token, a body, an idempotency key.
fn common_errors(operation: &Value) -> Vec<Code> {
    let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
    let mut codes = Vec::new();
    if !parameters.is_empty() && operation["operationId"] != "get_problem" {
        codes.push(Code::InvalidParameter);
    }
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
    codes
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
    document["components"]["headers"] = limit_headers();
    let option_filters = option_filters(document);
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
        }
        let own = ERRORS.iter().find(|(known, _)| *known == id).map_or(&[][..], |(_, codes)| codes);
        if let ("list_games" | "export_games", Some(parameters)) =
            (id.as_str(), operation.get_mut("parameters").and_then(Value::as_array_mut))
        {
            parameters.extend(option_filters.iter().cloned());
        }
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            limit(parameter);
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
            if matches!(code, Code::Unavailable | Code::RateLimited) {
                response["headers"] = json!({"Retry-After": {
                    "description": "Seconds after which to try again", "schema": {"type": "string"},
                }});
            }
            response["content"]["application/problem+json"]["examples"][code.as_str()] = example(code);
        }
        if limited {
            tell_of_limits(operation);
        }
    }
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

/// The headers that tell of budgets, as components. They are missing where an operator has set no limit.
fn limit_headers() -> Value {
    json!({
        "RateLimit-Policy": {
            "description": "The budgets that the request drew on, each with its requests (`q`) in so many seconds (`w`)",
            "schema": {"type": "string"},
            "example": "\"token\";q=600;w=60",
        },
        "RateLimit": {
            "description": "What is left of each: requests (`r`), and the seconds (`t`) until it is full again; in a 429 until one \
                            more request is taken",
            "schema": {"type": "string"},
            "example": "\"token\";r=599;t=1",
        },
    })
}

/// Refers successes and refusals of an operation to the headers of its budgets.
fn tell_of_limits(operation: &mut Value) {
    let responses = operation["responses"].as_object_mut().into_iter().flatten();
    for (_, response) in responses.filter(|(status, _)| status.starts_with('2') || *status == "429") {
        for name in ["RateLimit-Policy", "RateLimit"] {
            response["headers"][name] = json!({"$ref": format!("#/components/headers/{name}")});
        }
    }
}

/// Writes down what a parameter can be, where its type says too little.
fn limit(parameter: &mut Value) {
    // A header that is not sent is missing; there is no null to send.
    if parameter["in"] == "header" {
        parameter["schema"]["type"] = "string".into();
    }
    let limits = match parameter["name"].as_str() {
        Some("Idempotency-Key") => json!({"minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}),
        Some("If-Match") => json!({"pattern": r#"^(\*|"[0-9]+")$"#}),
        Some("cursor") => json!({"pattern": "^[0-9a-f]+$"}),
        Some("perspective") => json!({"pattern": "^(me|spectator|all|[0-9])$"}),
        Some("player" | "opponent" | "to_move" | "around") => json!({"pattern": "^(me|[0-9a-fA-F-]{36})$"}),
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

/// Rewrites every union that serde tags: each member becomes the component `<Union><Member>` with its tag as a required
/// one-word enum, the union a `oneOf` of references with a discriminator. Answers how many it rewrote.
pub fn hoist_unions(document: &mut Value) -> usize {
    let Some(Value::Object(schemas)) = document.pointer("/components/schemas").cloned() else { return 0 };
    let mut hoisted = schemas.clone();
    let mut count = 0;
    for (name, schema) in &schemas {
        let Some(members) = schema["oneOf"].as_array() else { continue };
        let Some(members) = members.iter().map(|member| flatten(member, &schemas)).collect::<Option<Vec<_>>>() else {
            continue;
        };
        let Some(tag) = common_tag(&members) else { continue };
        let (mut references, mut mapping) = (Vec::new(), Map::new());
        for member in members {
            let Some(value) = tag_value(&member, &tag) else { continue };
            let component = format!("{name}{}", pascal(&value));
            let reference = format!("#/components/schemas/{component}");
            references.push(json!({"$ref": reference}));
            mapping.insert(value, reference.into());
            hoisted.insert(component, member);
        }
        let union = &mut hoisted[name];
        union["oneOf"] = references.into();
        union["discriminator"] = json!({"propertyName": tag, "mapping": mapping});
        count += 1;
    }
    document["components"]["schemas"] = hoisted.into();
    count
}

/// One object schema for a member of a union, merged if it is an `allOf`; none if it is not an object.
fn flatten(member: &Value, schemas: &Map<String, Value>) -> Option<Value> {
    if let Some(reference) = member["$ref"].as_str() {
        return flatten(schemas.get(reference.rsplit('/').next()?)?, schemas);
    }
    let Some(parts) = member["allOf"].as_array() else {
        return member.get("properties").map(|_| member.clone());
    };
    let mut merged = json!({"type": "object", "required": [], "properties": {}});
    for part in parts {
        let part = flatten(part, schemas)?;
        for (name, property) in part["properties"].as_object()? {
            merged["properties"][name] = property.clone();
        }
        if let (Some(required), Some(all)) = (part["required"].as_array(), merged["required"].as_array_mut()) {
            all.extend(required.iter().cloned());
        }
        for word in ["description", "additionalProperties"] {
            if let Some(value) = part.get(word) {
                merged[word] = value.clone();
            }
        }
    }
    if let Some(description) = member.get("description") {
        merged["description"] = description.clone();
    }
    Some(merged)
}

/// The property that is a one-word enum in every member.
fn common_tag(members: &[Value]) -> Option<String> {
    let first = members.first()?["properties"].as_object()?;
    first.keys().find(|name| members.iter().all(|member| tag_value(member, name).is_some())).cloned()
}

fn tag_value(member: &Value, tag: &str) -> Option<String> {
    match member["properties"][tag]["enum"].as_array()?.as_slice() {
        [Value::String(word)] => Some(word.clone()),
        _ => None,
    }
}

/// `end_hand` and `quintis-fontis` as parts of a type's name: `EndHand`, `QuintisFontis`.
fn pascal(word: &str) -> String {
    let words = word.split(['_', '-']).map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_uppercase() + rest
    });
    words.collect()
}

/// Walks over everything: a plain number that came as a component (an alias in the code) is written where it is used, and a
/// union whose members nothing tells apart by itself (which ruleset is meant follows from the game) is an `anyOf`, since a
/// value can fit two of them.
fn finish_schemas(value: &mut Value) {
    const NUMBER: &str = "#/components/schemas/u8";
    match value {
        Value::Array(items) => items.iter_mut().for_each(finish_schemas),
        Value::Object(object) => {
            if object.get("$ref").is_some_and(|reference| reference == NUMBER) {
                object.shift_remove("$ref");
                object.extend([("type".into(), "integer".into()), ("format".into(), "int32".into())]);
                object.extend([("minimum".into(), 0.into()), ("maximum".into(), u8::MAX.into())]);
            }
            let references = |members: &Value| {
                members.as_array().is_some_and(|members| members.iter().all(|member| member.get("$ref").is_some()))
            };
            if object.get("oneOf").is_some_and(references)
                && !object.contains_key("discriminator")
                && let Some(members) = object.shift_remove("oneOf")
            {
                object.insert("anyOf".into(), members);
            }
            object.values_mut().for_each(finish_schemas);
        }
        _ => {}
    }
}

/// Removes components that nothing refers to any more.
fn drop_orphans(document: &mut Value) {
    loop {
        let text = document.to_string();
        let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) else { return };
        let before = schemas.len();
        schemas.retain(|name, _| name == "Problem" || text.contains(&format!("#/components/schemas/{name}\"")));
        if schemas.len() == before {
            return;
        }
    }
}

/// A component as a JSON Schema of its own (2020-12). What it refers to stands in its place, so that a client need not
/// follow references; no schema of options or moves contains itself.
pub fn json_schema(document: &Value, component: &str) -> Value {
    let schemas = &document["components"]["schemas"];
    let mut schema = inline(&schemas[component], schemas);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema
}

/// A schema with every reference replaced by what it refers to. A description beside a reference goes before the component's.
/// Discriminators, which JSON Schema does not know, are left out.
fn inline(schema: &Value, schemas: &Value) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(|item| inline(item, schemas)).collect(),
        Value::Object(members) => {
            let mut whole = Map::new();
            if let Some(name) = members.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next())
                && let Value::Object(component) = inline(&schemas[name], schemas)
            {
                whole = component;
            }
            let own = members.iter().filter(|(name, _)| !matches!(name.as_str(), "$ref" | "discriminator"));
            whole.extend(own.map(|(name, member)| (name.clone(), inline(member, schemas))));
            whole.into()
        }
        other => other.clone(),
    }
}

/// Checks that the slugs of the document are those of the server; for tests.
pub fn slugs(document: &Value) -> Vec<String> {
    let slugs = document["components"]["schemas"][RulesetId::name().as_ref()]["enum"].as_array();
    slugs.into_iter().flatten().filter_map(|slug| slug.as_str().map(str::to_owned)).collect()
}
