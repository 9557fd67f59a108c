//! Schemas in the forms that client generators understand best: tagged unions with discriminators, one way to say that something
//! may be null, nothing that nobody refers to.

use serde_json::{Map, Value, json};

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
/// value can fit two of them. So is what may be null instead of a component: where discriminators decide, they let null pass.
pub(super) fn finish_schemas(value: &mut Value) {
    const NUMBER: &str = "#/components/schemas/u8";
    match value {
        Value::Array(items) => items.iter_mut().for_each(finish_schemas),
        Value::Object(object) => {
            if object.get("$ref").is_some_and(|reference| reference == NUMBER) {
                object.shift_remove("$ref");
                object.extend([("type".into(), "integer".into()), ("format".into(), "int32".into())]);
                object.extend([("minimum".into(), 0.into()), ("maximum".into(), u8::MAX.into())]);
            }
            let is_reference = |member: &Value| member.get("$ref").is_some() || member["type"] == "null";
            let references =
                |members: &Value| members.as_array().is_some_and(|members| members.iter().all(is_reference));
            if object.get("oneOf").is_some_and(references)
                && !object.contains_key("discriminator")
                && let Some(members) = object.shift_remove("oneOf")
            {
                object.insert("anyOf".into(), members);
            }
            object.values_mut().for_each(finish_schemas);
            null_beside_type(object);
        }
        _ => {}
    }
}

/// What is no component and may be null has both as its type.
fn null_beside_type(object: &mut Map<String, Value>) {
    let Some([member, null]) = object.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) else { return };
    if let (Some(kind), "null") = (member["type"].as_str(), null["type"].as_str().unwrap_or_default()) {
        let mut member = member.clone();
        member["type"] = json!([kind, "null"]);
        object.shift_remove("anyOf");
        object.extend(member.as_object().cloned().into_iter().flatten());
    }
}

/// Closes whatever is part of a request's body: the server refuses members that it does not know, and serde's tagged unions do
/// not tell of it.
pub(super) fn close_requests(document: &mut Value) {
    let paths = document["paths"].as_object().into_iter().flatten();
    let operations = paths.flat_map(|(_, item)| item.as_object().into_iter().flatten());
    let mut open: Vec<String> = Vec::new();
    operations.for_each(|(_, operation)| {
        if let Some(body) = operation.get("requestBody") {
            references(body, &mut open);
        }
    });
    let mut closed: Vec<String> = Vec::new();
    while let Some(name) = open.pop() {
        if closed.contains(&name) {
            continue;
        }
        let schema = &mut document["components"]["schemas"][&name];
        references(schema, &mut open);
        if schema.get("properties").is_some() {
            schema["additionalProperties"] = false.into();
        }
        closed.push(name);
    }
}

/// The names of the components that a value refers to.
fn references(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| references(item, names)),
        Value::Object(members) => {
            let reference = members.get("$ref").and_then(Value::as_str);
            names.extend(reference.and_then(|text| text.strip_prefix("#/components/schemas/")).map(str::to_owned));
            members.values().for_each(|member| references(member, names));
        }
        _ => {}
    }
}

/// Removes components that nothing refers to any more.
pub(super) fn drop_orphans(document: &mut Value) {
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
