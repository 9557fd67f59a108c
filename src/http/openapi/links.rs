//! Which operation an answer leads to, and what of the answer it takes: links, for readers and for tools that walk along them.

use serde_json::{Map, Value, json};

/// One link: from the success of an operation to another one, whose parameters, and whose body if there is one, are found where
/// the runtime expressions say.
struct Link {
    from: &'static str,
    to: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    body: Option<&'static str>,
}

const fn link(from: &'static str, to: &'static str, parameters: &'static [(&'static str, &'static str)]) -> Link {
    Link { from, to, parameters, body: None }
}

/// The game that the answer shows, and the game that was asked about.
const SHOWN: &[(&str, &str)] = &[("id", "$response.body#/id")];
const SAME: &[(&str, &str)] = &[("id", "$request.path.id")];

const LINKS: &[Link] = &[
    link("register_player", "get_player", &[("id", "$response.body#/player/id")]),
    link("register_player", "find_players", &[("name", "$response.body#/player/name")]),
    link("register_player", "list_ratings", &[("id", "$response.body#/player/id")]),
    link("register_player", "get_player_stats", &[("id", "$response.body#/player/id")]),
    link("list_rulesets", "get_ruleset", &[("slug", "$response.body#/items/0/slug")]),
    link("list_rulesets", "get_ruleset_stats", &[("slug", "$response.body#/items/0/slug")]),
    link("list_rulesets", "get_leaderboard", &[("ruleset", "$response.body#/items/0/slug")]),
    link("create_token", "delete_token", &[("id", "$response.body#/id")]),
    link("create_game", "get_game", SHOWN),
    link("create_game", "take_seat", SHOWN),
    link("create_game", "start_game", SHOWN),
    link("create_game", "invite_player", SHOWN),
    link("create_game", "change_invite", SHOWN),
    link("create_game", "revoke_invite", SHOWN),
    link("create_game", "get_invite", &[("code", "$response.body#/invite")]),
    link("create_game", "list_legal_moves", SHOWN),
    link("create_game", "list_events", SHOWN),
    link("create_game", "get_fairness", SHOWN),
    link("create_game", "resign", SHOWN),
    link("create_game", "abort_game", SHOWN),
    link("take_seat", "leave_seat", SAME),
    link("take_seat", "list_legal_moves", SAME),
    link("start_game", "list_legal_moves", SAME),
    link("invite_player", "withdraw_invitation", &[("id", "$request.path.id"), ("player", "$request.body#/player")]),
    Link { body: Some("$response.body#/moves/0"), ..link("list_legal_moves", "play_move", SAME) },
    link("play_move", "get_move", &[("id", "$request.path.id"), ("number", "$response.body#/move/number")]),
    link("play_move", "get_state", &[("id", "$request.path.id"), ("number", "$response.body#/move/number")]),
    link("play_move", "list_legal_moves", SAME),
    link("play_move", "list_moves", SAME),
    link("abort_game", "withdraw_abort", SAME),
    link("resign", "get_record", SAME),
    link("resign", "create_rematch", SAME),
    link("create_webhook", "get_webhook", SHOWN),
    link("create_webhook", "ping_webhook", SHOWN),
    link("ping_webhook", "list_deliveries", SAME),
    link("ping_webhook", "redeliver", &[("id", "$request.path.id"), ("delivery", "$response.body#/id")]),
];

/// Adds the links of an operation to its successes.
pub(super) fn add(id: &str, operation: &mut Value) {
    let links = LINKS.iter().filter(|link| link.from == id);
    let links: Map<String, Value> = links.map(|link| (link.to.to_owned(), object(link))).collect();
    if links.is_empty() {
        return;
    }
    let responses = operation["responses"].as_object_mut().into_iter().flatten();
    for (_, response) in responses.filter(|(status, _)| status.starts_with('2')) {
        response["links"] = links.clone().into();
    }
}

fn object(link: &Link) -> Value {
    let mut object = json!({"operationId": link.to});
    for (name, place) in link.parameters {
        object["parameters"][*name] = (*place).into();
    }
    if let Some(body) = link.body {
        object["requestBody"] = body.into();
    }
    object
}
