//! What a client has asked for: that the document tells of it, if the server did it. So nothing that the document calls wrong is
//! accepted either.

use serde_json::Value;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

use crate::checks::Operation;
use crate::schemas::{conforms, fits};

/// A request.
pub struct Asked<'a> {
    pub method: &'a str,
    /// With its query.
    pub path: &'a str,
    pub headers: &'a [(String, Vec<u8>)],
    pub body: Option<&'a [u8]>,
}

/// Checks a request that was accepted against its operation.
pub fn accepted(operation: &Operation, asked: &Asked<'_>) -> Result<(), String> {
    let (path, query) = asked.path.split_once('?').unwrap_or((asked.path, ""));
    let mut query: Vec<(String, String)> = serde_urlencoded::from_str(query).map_err(|error| error.to_string())?;
    let parameters = operation.value["parameters"].as_array().map_or(&[][..], Vec::as_slice);
    for (place, parameter) in parameters.iter().enumerate() {
        let name = parameter["name"].as_str().unwrap_or_default();
        let values: Vec<String> = match parameter["in"].as_str() {
            Some("path") => vec![in_path(&operation.segments, path, name)?],
            Some("query") => {
                let (own, others) = query.into_iter().partition(|(known, _)| known == name);
                query = others;
                let own: Vec<(String, String)> = own;
                own.into_iter().map(|(_, value)| value).collect()
            }
            Some("header") => {
                let own = asked.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
                own.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect()
            }
            other => return Err(format!("{name} is in {other:?}")),
        };
        if values.is_empty() && parameter["required"] == true {
            return Err(format!("{name} is missing"));
        }
        if values.len() > 1 && parameter["in"] == "query" {
            return Err(format!("{name} is given {} times", values.len()));
        }
        let schema = format!("{}/parameters/{place}/schema", operation.pointer);
        if let Some(wrong) = values.iter().find(|value| !is_one_of(&schema, value)) {
            return Err(format!("{name} is {wrong}"));
        }
    }
    match query.first() {
        // Health checks and pages are answered whatever is added to their addresses.
        Some((unknown, _)) if path.starts_with("/v1/") => Err(format!("the parameter {unknown} is unknown")),
        _ => body(operation, asked),
    }
}

/// The value of a parameter of the path.
fn in_path(template: &[String], path: &str, name: &str) -> Result<String, String> {
    let wanted = format!("{{{name}}}");
    let mut segments = template.iter().zip(path.split('/'));
    let (_, value) =
        segments.find(|(known, _)| **known == wanted).ok_or_else(|| format!("{name} is not in the path"))?;
    let pairs: Vec<(String, String)> =
        serde_urlencoded::from_str(&format!("x={}", value.replace('+', "%2B"))).map_err(|error| error.to_string())?;
    Ok(pairs.into_iter().next().map(|(_, value)| value).unwrap_or_default())
}

/// Whether a text is valid as what it may stand for: itself, an instant of any offset, a number, true or false.
fn is_one_of(schema: &str, text: &str) -> bool {
    let instant = || OffsetDateTime::parse(text, &Rfc3339).ok()?.to_offset(UtcOffset::UTC).format(&Rfc3339).ok();
    // Leading zeros, which JSON does not have, change no number.
    let number = || text.parse::<i64>().ok().map(Value::from);
    let other = || serde_json::from_str::<Value>(text).ok().filter(|value| value.is_number() || value.is_boolean());
    let readings = [Some(text.into()), instant().map(Value::from), number(), other()];
    readings.iter().flatten().any(|value| fits(schema, value))
}

fn body(operation: &Operation, asked: &Asked<'_>) -> Result<(), String> {
    // What takes no body does not look at one.
    let Some(described) = operation.value.get("requestBody") else { return Ok(()) };
    let bytes = asked.body.unwrap_or_default();
    if bytes.is_empty() {
        return if described["required"] == true { Err("the body is missing".to_owned()) } else { Ok(()) };
    }
    let mut kinds = asked.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let kind = kinds.next().map(|(_, kind)| String::from_utf8_lossy(kind).to_lowercase()).unwrap_or_default();
    if kind.split(';').next().unwrap_or_default().trim() != "application/json" {
        return Err(format!("the body is {kind}"));
    }
    // One that is compressed, or that came in chunks as they are, is not looked into here.
    let coded = |name: &str| ["content-encoding", "transfer-encoding"].contains(&name.to_lowercase().as_str());
    if asked.headers.iter().any(|(name, _)| coded(name)) {
        return Ok(());
    }
    let value = serde_json::from_slice(bytes).map_err(|error| format!("the body is no JSON: {error}"))?;
    let pointer = format!("{}/requestBody/content/application~1json/schema", operation.pointer);
    conforms(&pointer, &value).map_err(|error| format!("the body: {error}"))
}
