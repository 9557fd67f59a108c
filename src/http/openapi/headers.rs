//! The headers of answers: those that follow from what an operation takes and from a status are told of here, for all operations
//! alike; what only one operation has (`Location`, `ETag`, `Content-Language`) stands beside its code.

use serde_json::{Map, Value, json};

/// The headers that many answers have, as components. What is not `required` is missing from some: limits are missing where an
/// operator has set none.
pub(super) fn components() -> Value {
    json!({
        "X-Request-Id": {
            "description": "The request, for the operator's logs; in errors also in `instance`",
            "required": true,
            "schema": {"type": "string", "format": "uuid"},
            "example": "0193a2f0-6c1d-7e10-8f3a-2b9d5c4e6f70",
        },
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
        "Retry-After": {
            "description": "Seconds after which to try again",
            "required": true,
            "schema": {"type": "integer", "format": "int32", "minimum": 0},
            "example": 1,
        },
        "WWW-Authenticate": {
            "description": "How to say who one is",
            "required": true,
            "schema": {"type": "string", "const": "Bearer"},
            "example": "Bearer",
        },
        "Idempotent-Replayed": {
            "description": "`true`: this is the answer to an earlier request with the same `Idempotency-Key`; nothing was done",
            "schema": {"type": "string", "const": "true"},
            "example": "true",
        },
    })
}

/// Refers every answer of an operation to the headers that it has.
pub(super) fn tell(operation: &mut Value, limited: bool) {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let is_keyed = parameters.into_iter().any(|parameter| parameter["name"] == "Idempotency-Key");
    for (status, response) in operation["responses"].as_object_mut().into_iter().flatten() {
        // Each of these has what its operation says that it has.
        let mut headers: Map<String, Value> = response["headers"].as_object().cloned().unwrap_or_default();
        headers.values_mut().for_each(|header| header["required"] = true.into());
        let mut names = vec!["X-Request-Id"];
        match status.as_str() {
            "401" => names.push("WWW-Authenticate"),
            "429" | "503" => names.push("Retry-After"),
            _ => {}
        }
        if is_keyed && status.starts_with('2') {
            names.push("Idempotent-Replayed");
        }
        if limited {
            names.extend(["RateLimit-Policy", "RateLimit"]);
        }
        let references = names.into_iter().map(|name| (name, json!({"$ref": format!("#/components/headers/{name}")})));
        headers.extend(references.map(|(name, reference)| (name.to_owned(), reference)));
        response["headers"] = headers.into();
    }
}
