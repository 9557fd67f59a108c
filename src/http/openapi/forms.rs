//! Forms of schemas that some client generators need to make usable types: said in words of JSON Schema, true for everybody.

use serde_json::{Value, json};

use crate::http::problem::Code;

/// Makes the codes of errors a component, the enum `ProblemCode`, so that a client that matches on a code which does not exist
/// does not compile.
pub fn name_codes(document: &mut Value) {
    let codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let Some(schemas) = document.pointer_mut("/components/schemas") else { return };
    schemas["ProblemCode"] = json!({
        "type": "string",
        "description": "What kind of error it is. Codes are added in time, and never renamed or used for something else.",
        "enum": codes,
    });
    let code = &mut schemas["Problem"]["properties"]["code"];
    let description = code["description"].take();
    *code = json!({"$ref": "#/components/schemas/ProblemCode", "description": description});
}

/// Says of every object of which nothing is known that it may have any members. JSON Schema takes that for granted, but some
/// generators take it for an object without members.
pub fn open_objects(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(open_objects),
        Value::Object(words) => {
            let is_object = words.get("type").is_some_and(|name| name == "object");
            if is_object && !["properties", "additionalProperties"].iter().any(|word| words.contains_key(*word)) {
                words.insert("additionalProperties".into(), true.into());
            }
            words.values_mut().for_each(open_objects);
        }
        _ => {}
    }
}
