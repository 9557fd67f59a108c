//! The schemas of the document, compiled when they are first needed, and stricter than it in two things: an object that lists its
//! properties has no others, and an instant is in UTC.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use jsonschema::{Draft, Registry, Validator};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::checks::DOCUMENT;

const URI: &str = "https://tavola.example/document";

static REGISTRY: LazyLock<Registry<'static>> = LazyLock::new(|| {
    let mut document = DOCUMENT.clone();
    tighten(&mut document);
    let registry = Registry::new().draft(Draft::Draft202012).add(URI, document).expect("a document is a resource");
    registry.prepare().expect("every reference leads somewhere")
});

/// Compiled for good: there are about a hundred of them.
static VALIDATORS: LazyLock<Mutex<HashMap<String, &'static Validator>>> = LazyLock::new(Mutex::default);

/// Closes objects, and has a union look at its discriminator first: what is wrong with the one member that can be meant is found
/// without trying the others.
fn tighten(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(tighten),
        Value::Object(schema) => {
            // Most of the document, and nothing to go by.
            schema.retain(|word, _| !matches!(word.as_str(), "example" | "examples" | "links"));
            if schema.contains_key("properties") && !schema.contains_key("additionalProperties") {
                schema.insert("additionalProperties".into(), false.into());
            }
            if let Some(told) = schema.get("discriminator").and_then(|told| told.as_object()).cloned() {
                let (tag, mapping) = (&told["propertyName"], told["mapping"].as_object().expect("a mapping"));
                let tag = tag.as_str().expect("a name");
                let members = mapping.iter().map(|(word, reference)| {
                    json!({"if": {"properties": {tag: {"const": word}}}, "then": {"$ref": reference}})
                });
                let members: Vec<Value> = members.collect();
                let words: Vec<&String> = mapping.keys().collect();
                let union = json!({
                    "type": "object", "required": [tag], "properties": {tag: {"enum": words}}, "allOf": members,
                });
                *value = union;
                return;
            }
            schema.values_mut().for_each(tighten);
        }
        _ => {}
    }
}

fn is_instant(text: &str) -> bool {
    text.ends_with('Z') && OffsetDateTime::parse(text, &Rfc3339).is_ok()
}

/// A JSON pointer as the fragment of a URI, which may have no braces.
fn fragment(pointer: &str) -> String {
    pointer.replace('{', "%7B").replace('}', "%7D")
}

fn validator(pointer: &str) -> &'static Validator {
    if let Some(known) = VALIDATORS.lock().unwrap().get(pointer) {
        return known;
    }
    // Two at once may compile the same: either is good.
    let options = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_registry(&REGISTRY)
        .should_validate_formats(true)
        .with_format("date-time", is_instant);
    let validator = options.build(&json!({"$ref": format!("{URI}#{}", fragment(pointer))}));
    let validator = Box::leak(Box::new(validator.unwrap_or_else(|error| panic!("{pointer}: {error}"))));
    VALIDATORS.lock().unwrap().insert(pointer.to_owned(), validator);
    validator
}

/// Whether a value is valid by the schema at this place of the document (a JSON pointer).
pub fn fits(pointer: &str, value: &Value) -> bool {
    validator(pointer).is_valid(value)
}

/// Checks that a value is valid by the schema at this place of the document (a JSON pointer).
pub fn conforms(pointer: &str, value: &Value) -> Result<(), String> {
    let validator = validator(pointer);
    if validator.is_valid(value) {
        return Ok(());
    }
    let errors = validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path()));
    Err(errors.collect::<Vec<_>>().join("; "))
}
