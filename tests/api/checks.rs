//! What holds for every answer, whatever was asked: its form, its headers, and that the OpenAPI document tells of it, and of the
//! request if it was accepted.

use std::sync::LazyLock;

use serde_json::Value;
use tavola::http::{Code, openapi};

use crate::asked::{self, Asked};
use crate::helpers::{ORIGIN, Reply};
use crate::schemas::conforms;

/// The document of the server.
pub static DOCUMENT: LazyLock<Value> = LazyLock::new(openapi::document);

/// Words that only the inside of the server uses.
const INSIDE: [&str; 8] =
    ["sqlx", "postgres", "duplicate key", "constraint", "panicked", "src/", "server_seed\":\"\"", "idempotency_keys"];

/// An operation of the document.
pub struct Operation {
    /// Its path, segment by segment; parameters stand in braces.
    pub segments: Vec<String>,
    method: String,
    /// Where its description is in the document, as a JSON pointer.
    pub pointer: String,
    pub value: &'static Value,
}

static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(|| {
    let paths = DOCUMENT["paths"].as_object().expect("a document has paths");
    let operations = paths.iter().flat_map(|(path, item)| {
        let segments: Vec<String> = path.split('/').map(str::to_owned).collect();
        item.as_object().into_iter().flatten().map(move |(method, value)| Operation {
            segments: segments.clone(),
            method: method.to_uppercase(),
            pointer: format!("/paths/{}/{method}", escaped(path)),
            value,
        })
    });
    operations.collect()
});

/// A name as a part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The operation that answers a request, if there is one.
pub fn operation(method: &str, path: &str) -> Option<&'static Operation> {
    let path = path.split('?').next().unwrap_or_default();
    let segments: Vec<&str> = path.split('/').collect();
    // The first path that fits, whichever methods it takes.
    let fits = |known: &[String]| {
        known.len() == segments.len()
            && known.iter().zip(&segments).all(|(k, s)| k == s || (k.starts_with('{') && !s.is_empty()))
    };
    let path = &OPERATIONS.iter().find(|operation| fits(&operation.segments))?.segments;
    OPERATIONS.iter().find(|operation| operation.method == method && operation.segments == *path)
}

/// Checks an answer; `fault`: a 500 is expected.
pub fn every_answer(reply: &Reply, asked: &Asked<'_>, fault: bool) {
    let what = || format!("{} {}: {} {}", asked.method, asked.path, reply.status, reply.text());
    assert!(fault || reply.status != 500, "the server failed: {}", what());
    let id = reply.header("x-request-id").unwrap_or_else(|| panic!("no x-request-id: {}", what()));
    uuid::Uuid::parse_str(id).expect("a request's id is a UUID");
    let origin = reply.header("access-control-allow-origin");
    assert!(matches!(origin, Some("*" | ORIGIN)), "no CORS header: {}", what());
    if reply.status >= 400 {
        problem(reply, id, &what());
    }
    let Some(operation) = operation(asked.method, asked.path) else { return };
    let name = &operation.value["operationId"];
    documented(operation, reply).unwrap_or_else(|error| panic!("{name}: {error}: {}", what()));
    if reply.status < 400 {
        asked::accepted(operation, asked).unwrap_or_else(|error| {
            panic!("{name}: accepted although the document does not: {error}: {}, {:?}", what(), asked.body)
        });
    }
}

/// Checks an event of a stream, or a line of an export, of the operation that answers this request.
pub fn part_of_stream(method: &str, path: &str, kind: &str, part: &Value) {
    let operation = operation(method, path).expect("streams are operations");
    let pointer = format!("{}/responses/200/content/{}/x-item-schema", operation.pointer, escaped(kind));
    conforms(&pointer, part).unwrap_or_else(|error| panic!("{method} {path}: {error}: {part}"));
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
    conforms("/components/schemas/Problem", &body).unwrap_or_else(|error| panic!("{error}: {what}"));
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

/// Checks that the document tells of this answer: its status, its headers, its code, its type, its shape.
fn documented(operation: &Operation, reply: &Reply) -> Result<(), String> {
    let status = reply.status.to_string();
    let response = operation.value["responses"].get(&status).ok_or("the document does not tell of this status")?;
    let pointer = format!("{}/responses/{status}", operation.pointer);
    headers(&pointer, response, reply)?;
    let Some(content) = response["content"].as_object() else {
        return if reply.bytes.is_empty() { Ok(()) } else { Err("the document tells of no body".to_owned()) };
    };
    let kind = reply.header("content-type").and_then(|kind| kind.split(';').next()).unwrap_or_default();
    let described = content.get(kind).ok_or_else(|| format!("no {kind} in the document"))?;
    let pointer = format!("{pointer}/content/{}", escaped(kind));
    match kind {
        "application/json" => conforms(&format!("{pointer}/schema"), &reply.json()),
        "application/problem+json" => {
            let problem = reply.json();
            let code = problem["code"].as_str().unwrap_or_default();
            if described["examples"].get(code).is_none() {
                return Err(format!("the document does not tell of the code {code}"));
            }
            conforms(&format!("{pointer}/schema"), &problem)
        }
        // A compressed one is not looked into here.
        _ if reply.header("content-encoding").is_some() => Ok(()),
        "application/x-ndjson" => {
            let lines = reply.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            lines.map(serde_json::from_slice).try_for_each(|line: Result<Value, _>| {
                conforms(&format!("{pointer}/x-item-schema"), &line.map_err(|error| error.to_string())?)
            })
        }
        "text/csv" => {
            let mut table = csv::Reader::from_reader(reply.bytes.as_slice());
            table.records().try_for_each(|line| line.map(|_| ())).map_err(|error| error.to_string())
        }
        _ => Ok(()),
    }
}

/// Checks the headers that a response is said to have.
fn headers(pointer: &str, response: &Value, reply: &Reply) -> Result<(), String> {
    for (name, header) in response["headers"].as_object().into_iter().flatten() {
        let (place, header) = match header["$ref"].as_str() {
            Some(reference) => {
                let place = reference.trim_start_matches('#');
                (place.to_owned(), DOCUMENT.pointer(place).ok_or_else(|| format!("{reference} leads nowhere"))?)
            }
            None => (format!("{pointer}/headers/{name}"), header),
        };
        let Some(text) = reply.header(name) else {
            if header["required"] == true {
                return Err(format!("no {name}"));
            }
            continue;
        };
        let value = match header["schema"]["type"].as_str() {
            Some("integer") => text.parse::<i64>().map_err(|error| format!("{name}: {error}"))?.into(),
            _ => Value::from(text),
        };
        conforms(&format!("{place}/schema"), &value).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
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
