//! From OpenAPI 3.1 to 3.0, which is what progenitor reads. Only what the document uses is translated; what cannot be is an
//! error, so that nothing gets lost unnoticed.

use serde_json::{Map, Value, json};

/// Rewrites the document in place.
///
/// # Errors
///
/// A sentence about the first thing that 3.0 cannot say.
pub fn downgrade(document: &mut Value) -> Result<(), String> {
    document["openapi"] = "3.0.3".into();
    if let Some(license) = document["info"]["license"].as_object_mut() {
        license.remove("identifier");
    }
    members(document.pointer_mut("/components/schemas")).try_for_each(downgrade_schema)?;
    members(document.get_mut("paths")).flat_map(|path| members(Some(path))).try_for_each(downgrade_operation)
}

fn downgrade_operation(operation: &mut Value) -> Result<(), String> {
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(schema) = parameter.get_mut("schema") {
            downgrade_schema(schema)?;
            // Each of these would make a type of its own for each operation, to check what the server checks anyway.
            for word in ["minLength", "maxLength"] {
                schema.as_object_mut().and_then(|words| words.remove(word));
            }
        }
    }
    for response in members(operation.get_mut("responses")) {
        if let Some(Value::Object(content)) = response.get_mut("content") {
            // progenitor has types for this media type only; the client does not look at the header.
            if let Some(problem) = content.remove("application/problem+json") {
                content.insert("application/json".into(), problem);
            }
        }
    }
    let body = operation.get_mut("requestBody").and_then(|body| body.get_mut("content"));
    members(body).filter_map(|content| content.get_mut("schema")).try_for_each(downgrade_schema)?;
    let contents = members(operation.get_mut("responses")).flat_map(|response| members(response.get_mut("content")));
    contents.filter_map(|content| content.get_mut("schema")).try_for_each(downgrade_schema)
}

/// What an object has under its names; nothing if there is no object.
fn members(object: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    object.and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
}

/// Rewrites a schema and all that it is made of.
fn downgrade_schema(schema: &mut Value) -> Result<(), String> {
    let Some(words) = schema.as_object_mut() else { return Ok(()) };
    for word in ["not", "if", "prefixItems", "patternProperties", "exclusiveMinimum", "exclusiveMaximum", "$defs"] {
        if words.contains_key(word) {
            return Err(format!("no translation for `{word}` in {schema}"));
        }
    }
    // 3.0 has nothing for names; they stay strings.
    words.remove("propertyNames");
    // The client would need a crate for regular expressions, to check what the server checks anyway.
    words.remove("pattern");
    // The server fills defaults in. progenitor would do so in answers too, where what is missing has its reasons.
    words.remove("default");
    if let Some(value) = words.remove("const") {
        words.insert("enum".into(), json!([value]));
    }
    if let Some(Value::Array(types)) = words.get("type") {
        let others: Vec<Value> = types.iter().filter(|name| *name != "null").cloned().collect();
        let nullable = others.len() < types.len();
        let [only] = others.as_slice() else { return Err(format!("more than one type in {schema}")) };
        words.insert("type".into(), only.clone());
        words.insert("nullable".into(), nullable.into());
    }
    // To progenitor `anyOf` is a struct of all its members at once; one of them, the first that fits, is what is meant.
    if let Some(members) = words.remove("anyOf") {
        words.insert("oneOf".into(), members);
    }
    merge_null(words);
    // Beside a reference nothing counts in 3.0, and a default or a description is worth keeping.
    if words.len() > 1
        && let Some(reference) = words.remove("$ref")
    {
        words.insert("allOf".into(), json!([{"$ref": reference}]));
    }
    for (word, value) in words.iter_mut() {
        match word.as_str() {
            "properties" => members(Some(value)).try_for_each(downgrade_schema)?,
            "items" | "additionalProperties" => downgrade_schema(value)?,
            "oneOf" | "anyOf" | "allOf" => value.as_array_mut().into_iter().flatten().try_for_each(downgrade_schema)?,
            _ => {}
        }
    }
    Ok(())
}

/// `oneOf: [X, null]` is a nullable X.
fn merge_null(words: &mut Map<String, Value>) {
    let null = json!({"type": "null"});
    let Some(Value::Array(members)) = words.get_mut("oneOf") else { return };
    let before = members.len();
    members.retain(|member| *member != null);
    if members.len() < before
        && let Some(members) = words.remove("oneOf")
    {
        words.insert("allOf".into(), members);
        words.insert("nullable".into(), true.into());
    }
}
