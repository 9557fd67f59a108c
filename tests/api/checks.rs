//! What holds for every answer, whatever was asked: its form, its headers, and that the OpenAPI document tells of it.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};

use serde_json::Value;
use tavola::http::{Code, openapi};

use crate::helpers::{ORIGIN, Reply};

/// The document of the server.
pub static DOCUMENT: LazyLock<Value> = LazyLock::new(openapi::document);

/// Words that only the inside of the server uses.
const INSIDE: [&str; 8] =
    ["sqlx", "postgres", "duplicate key", "constraint", "panicked", "src/", "server_seed\":\"\"", "idempotency_keys"];

/// The operation that answers a request, if there is one: its description in the document.
pub fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let path = path.split('?').next().unwrap_or_default();
    let segments: Vec<&str> = path.split('/').collect();
    let fits = |template: &str| {
        let known: Vec<&str> = template.split('/').collect();
        known.len() == segments.len()
            && known.iter().zip(&segments).all(|(k, s)| k == s || (k.starts_with('{') && !s.is_empty()))
    };
    let paths = DOCUMENT["paths"].as_object().expect("a document has paths");
    let (_, item) = paths.iter().find(|(template, _)| fits(template))?;
    item.get(method.to_lowercase())
}

/// Checks an answer; `fault`: a 500 is expected.
pub fn every_answer(reply: &Reply, method: &str, path: &str, fault: bool) {
    let what = format!("{method} {path}: {} {}", reply.status, reply.text());
    assert!(fault || reply.status != 500, "the server failed: {what}");
    let id = reply.header("x-request-id").unwrap_or_else(|| panic!("no x-request-id: {what}"));
    uuid::Uuid::parse_str(id).expect("a request's id is a UUID");
    let origin = reply.header("access-control-allow-origin");
    assert!(matches!(origin, Some("*" | ORIGIN)), "no CORS header: {what}");
    if reply.status >= 400 {
        problem(reply, id, &what);
    }
    if let Some(operation) = operation(method, path) {
        documented(operation, reply, &what);
    }
}

/// Checks that an error has the form of all errors.
fn problem(reply: &Reply, id: &str, what: &str) {
    assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{what}");
    assert_eq!(reply.header("cache-control"), Some("no-store"), "{what}");
    if reply.bytes.is_empty() && what.starts_with("HEAD ") {
        return;
    }
    let body = reply.json();
    let text = |member: &str| body[member].as_str().filter(|text| !text.is_empty());
    let code = text("code").unwrap_or_else(|| panic!("no code: {what}"));
    let code = Code::parse(code).unwrap_or_else(|| panic!("an unknown code: {what}"));
    assert_eq!(body["status"], reply.status, "{what}");
    assert_eq!(code.status().as_u16(), reply.status, "{what}");
    assert_eq!(text("type"), Some(format!("/problems/{}", code.as_str()).as_str()), "{what}");
    assert_eq!(text("title"), Some(code.title()), "{what}");
    assert!(text("detail").is_some(), "no detail: {what}");
    assert_eq!(text("instance"), Some(format!("urn:uuid:{id}").as_str()), "{what}");
    conforms(&DOCUMENT["components"]["schemas"]["Problem"], &body).unwrap_or_else(|error| panic!("{error}: {what}"));
    let said = body["detail"].to_string() + &body["errors"].to_string();
    let inside = INSIDE.iter().find(|word| said.contains(**word));
    assert!(inside.is_none(), "the inside of the server shows ({inside:?}): {what}");
    match reply.status {
        401 => assert_eq!(reply.header("www-authenticate"), Some("Bearer"), "{what}"),
        405 => assert!(reply.header("allow").is_some_and(|allow| !allow.is_empty()), "no Allow: {what}"),
        429 | 503 => {
            assert!(reply.header("retry-after").is_some_and(|s| s.parse::<u32>().is_ok()), "no Retry-After: {what}");
        }
        412 => assert!(body["current_version"].is_u64(), "no current_version: {what}"),
        _ => {}
    }
    assert_eq!(code == Code::IllegalMove, body.get("rule").is_some(), "rule: {what}");
}

/// Checks that the document tells of this answer: its status, its code, its type, its shape.
fn documented(operation: &Value, reply: &Reply, what: &str) {
    // Every operation can fail, and none says so.
    if reply.status == 500 {
        return;
    }
    let name = &operation["operationId"];
    let response = &operation["responses"][reply.status.to_string()];
    assert!(!response.is_null(), "{name}: the document does not tell of this status: {what}");
    let Some(content) = response["content"].as_object() else {
        assert!(reply.bytes.is_empty(), "{name}: the document tells of no body: {what}");
        return;
    };
    let kind = reply.header("content-type").and_then(|kind| kind.split(';').next()).unwrap_or_default();
    let described = content.get(kind).unwrap_or_else(|| panic!("{name}: no {kind} in the document: {what}"));
    for header in response["headers"].as_object().into_iter().flat_map(|headers| headers.keys()) {
        // Headers that are not in every such answer: most servers of the tests have no limits.
        let seldom = ["Idempotent-Replayed", "RateLimit", "RateLimit-Policy"].contains(&header.as_str());
        assert!(seldom || reply.header(header).is_some(), "{name}: no {header}: {what}");
    }
    if reply.status >= 400 {
        let code = reply.json()["code"].clone();
        let examples = &described["examples"];
        let known = code.as_str().is_some_and(|code| examples.get(code).is_some());
        assert!(known, "{name}: the document does not tell of the code {code}: {what}");
    } else if kind == "application/json" && is_sampled(name.as_str().unwrap_or_default()) {
        conforms(&described["schema"], &reply.json()).unwrap_or_else(|error| panic!("{name}: {error}: {what}"));
    }
}

/// Whether this answer's shape is looked at: the first hundred of each operation, then every tenth, for that takes time.
fn is_sampled(operation: &str) -> bool {
    static SEEN: LazyLock<Mutex<BTreeMap<String, u32>>> = LazyLock::new(Mutex::default);
    let mut seen = SEEN.lock().unwrap();
    let count = seen.entry(operation.to_owned()).or_default();
    *count += 1;
    *count <= 100 || (*count).is_multiple_of(10)
}

/// Checks a value against a schema of the document. Stricter than JSON Schema in one thing: an object that lists its
/// properties has no others.
pub fn conforms(schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = DOCUMENT.pointer(reference.trim_start_matches('#'));
        return conforms(target.ok_or_else(|| format!("{reference} leads nowhere"))?, value);
    }
    if let Some(members) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        return one_of(schema, members, value);
    }
    if let Some(parts) = schema["allOf"].as_array() {
        return parts.iter().try_for_each(|part| conforms(part, value));
    }
    kind(schema, value)?;
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return Err(format!("{value} is none of {words:?}"));
    }
    if let Some(number) = value.as_f64() {
        let outside = schema["minimum"].as_f64().is_some_and(|least| number < least)
            || schema["maximum"].as_f64().is_some_and(|most| number > most);
        if outside {
            return Err(format!("{value} is out of range"));
        }
    }
    if let Some(text) = value.as_str() {
        let fits = match schema["format"].as_str() {
            Some("uuid") => uuid::Uuid::parse_str(text).is_ok(),
            Some("date-time") => {
                time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339).is_ok()
                    && text.ends_with('Z')
            }
            _ => true,
        };
        if !fits {
            return Err(format!("{text} is no {}", schema["format"]));
        }
    }
    for (place, item) in value.as_array().into_iter().flatten().enumerate() {
        conforms(&schema["items"], item).map_err(|error| format!("/{place}{error}"))?;
    }
    value.as_object().map_or(Ok(()), |object| properties(schema, object))
}

fn properties(schema: &Value, object: &serde_json::Map<String, Value>) -> Result<(), String> {
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !object.contains_key(name) {
            return Err(format!(": {name} is missing"));
        }
    }
    for (name, value) in object {
        let property = match (schema["properties"].get(name), schema.get("additionalProperties")) {
            (Some(property), _) => property,
            (None, Some(others)) if others.is_object() => others,
            (None, _) if schema.get("properties").is_none() => continue,
            (None, _) => return Err(format!(": {name} is not in the document")),
        };
        conforms(property, value).map_err(|error| format!("/{name}{error}"))?;
    }
    Ok(())
}

fn one_of(schema: &Value, members: &[Value], value: &Value) -> Result<(), String> {
    let Some(tag) = schema["discriminator"]["propertyName"].as_str() else {
        let mut errors = Vec::new();
        for member in members {
            match conforms(member, value) {
                Ok(()) => return Ok(()),
                Err(error) => errors.push(error),
            }
        }
        return Err(format!(": fits no member: {errors:?}"));
    };
    let word = value[tag].as_str().unwrap_or_default();
    let target = schema["discriminator"]["mapping"][word].as_str();
    let target = target.and_then(|reference| DOCUMENT.pointer(reference.trim_start_matches('#')));
    conforms(target.ok_or_else(|| format!(": no member has the {tag} {word}"))?, value)
}

fn kind(schema: &Value, value: &Value) -> Result<(), String> {
    let fits = |kind: &Value| match kind.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    };
    let fit = match &schema["type"] {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(fits),
        kind => fits(kind),
    };
    if fit { Ok(()) } else { Err(format!(": {value} is no {}", schema["type"])) }
}

/// Checks that nothing of an answer, head or body, contains a secret; secrets are given in lower case.
pub fn no_secret(reply: &Reply, secrets: &[String]) {
    if secrets.is_empty() {
        return;
    }
    let mut said = reply.text();
    reply.headers.values().for_each(|value| said += &String::from_utf8_lossy(value.as_bytes()));
    said.make_ascii_lowercase();
    for secret in secrets {
        assert!(!said.contains(secret), "a secret is out: {}", reply.text());
    }
}
