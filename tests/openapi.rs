//! The OpenAPI document: as it is committed, whole, and of this server.

use std::collections::BTreeSet;

use serde_json::Value;
use tavola::http::openapi;
use tavola::rulesets::registry::RulesetId;

mod common;
#[path = "../clients/rust/downgrade.rs"]
mod downgrade;

fn operations(document: &Value) -> Vec<(&String, &String, &Value)> {
    let paths = document["paths"].as_object().expect("a document has paths");
    let items = paths.iter().flat_map(|(path, item)| item.as_object().into_iter().flatten().map(move |it| (path, it)));
    items.map(|(path, (method, operation))| (path, method, operation)).collect()
}

fn walk<'a>(value: &'a Value, visit: &mut impl FnMut(&'a serde_json::Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        Value::Object(object) => {
            visit(object);
            object.values().for_each(|value| walk(value, visit));
        }
        _ => {}
    }
}

#[test]
fn the_committed_document_is_that_of_the_code() {
    let path = common::tests_path("../openapi/openapi.json");
    let committed = std::fs::read_to_string(&path).expect("openapi/openapi.json is there; `make openapi` writes it");
    assert!(committed == openapi::pretty(), "openapi/openapi.json is out of date: `make openapi`, and review the diff");
}

#[test]
fn it_can_be_told_in_the_words_of_openapi_3_0() {
    // As the client in Rust is made of it, which takes too long to be made each time.
    let mut document = openapi::document();
    downgrade::downgrade(&mut document).expect("there is a translation for all of it");
    // What there is in components, and in bodies, answers and parameters of operations; not the examples.
    let schemas = document["components"]["schemas"].as_object().unwrap().values().cloned().collect::<Vec<_>>();
    let contents = operations(&document).into_iter().flat_map(|(.., operation)| {
        let contents =
            [&operation["requestBody"]].into_iter().chain(operation["responses"].as_object().unwrap().values());
        contents.flat_map(|content| content["content"].as_object().into_iter().flatten())
    });
    let bodies = contents.map(|(_, content)| content["schema"].clone());
    let parameters = operations(&document).into_iter().flat_map(|(.., operation)| operation["parameters"].as_array());
    let parameters = parameters.flatten().map(|parameter| parameter["schema"].clone());
    for schema in schemas.into_iter().chain(bodies).chain(parameters) {
        walk(&schema, &mut |words| {
            assert!(!words.contains_key("anyOf") && !words.contains_key("const"), "{words:?}");
            // It is a word, or the name of a property, which has an object.
            assert!(!matches!(words.get("pattern"), Some(Value::String(_))), "{words:?}");
            // `type` can be the name of a property too, which has an object.
            assert!(!matches!(words.get("type"), Some(Value::Array(_))), "{words:?}");
            assert_ne!(words.get("type"), Some(&Value::from("null")), "{words:?}");
        });
    }
}

#[test]
fn it_is_the_same_every_time() {
    assert_eq!(openapi::pretty(), openapi::pretty());
    assert_eq!(openapi::document()["openapi"], "3.1.0");
}

#[test]
fn every_reference_leads_somewhere_and_every_component_is_used() {
    let document = openapi::document();
    let mut referred = BTreeSet::new();
    walk(&document, &mut |object| {
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            referred.insert(reference.to_owned());
        }
        for target in object.get("mapping").and_then(Value::as_object).into_iter().flatten() {
            referred.extend(target.1.as_str().map(str::to_owned));
        }
    });
    for reference in &referred {
        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference} leads nowhere");
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(referred.contains(&format!("#/components/schemas/{name}")), "{name} is not used");
    }
}

/// Each ruleset has a tagged union of moves, of events and, where cards are hidden in the log, of played moves; the states
/// are one union over all rulesets, and clocks are of two kinds. Whatever else is an alternative has no tag.
#[test]
fn unions_have_discriminators() {
    let document = openapi::document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let tagged: BTreeSet<&str> = schemas
        .iter()
        .filter(|(_, schema)| schema.get("discriminator").is_some())
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(
        tagged.iter().filter(|name| name.ends_with("Move") && !name.ends_with("PlayedMove")).count(),
        RulesetId::ALL.len()
    );
    assert_eq!(tagged.iter().filter(|name| name.ends_with("Event")).count(), RulesetId::ALL.len());
    let others: Vec<&&str> = tagged.iter().filter(|name| !name.ends_with("Move") && !name.ends_with("Event")).collect();
    assert_eq!(others, [&"Clock", &"State"]);
    for name in &tagged {
        let union = &schemas[*name];
        let (members, mapping) =
            (union["oneOf"].as_array().unwrap(), union["discriminator"]["mapping"].as_object().unwrap());
        assert_eq!(members.len(), mapping.len(), "{name}");
        let tag = union["discriminator"]["propertyName"].as_str().unwrap();
        for (word, reference) in mapping {
            let member = document.pointer(reference.as_str().unwrap().trim_start_matches('#')).unwrap();
            assert_eq!(member["properties"][tag]["enum"], serde_json::json!([word]), "{name}");
            assert!(member["required"].as_array().unwrap().iter().any(|required| required == tag), "{name}: {word}");
            assert_eq!(member["type"], "object");
        }
    }
    for (name, schema) in schemas {
        assert!(
            schema.get("oneOf").is_none() || tagged.contains(name.as_str()) || is_words(schema),
            "{name} is a union without a tag"
        );
        assert!(schema.get("allOf").is_none(), "{name} is an allOf, which generators make little of");
    }
    // Done already: doing it again finds nothing to do.
    let mut again = document.clone();
    openapi::hoist_unions(&mut again);
    assert_eq!(again["components"]["schemas"]["State"], document["components"]["schemas"]["State"]);
}

/// A choice between words, each with its description.
fn is_words(schema: &Value) -> bool {
    schema["oneOf"].as_array().is_some_and(|members| {
        members
            .iter()
            .all(|member| member.get("enum").is_some() || member.get("const").is_some() || member["type"] == "null")
    })
}

#[test]
fn slugs_and_states_are_those_of_the_server() {
    let document = openapi::document();
    let slugs: Vec<&str> = RulesetId::ALL.iter().map(|ruleset| ruleset.meta().slug).collect();
    assert_eq!(openapi::slugs(&document), slugs);
    let mapping = document["components"]["schemas"]["State"]["discriminator"]["mapping"].as_object().unwrap();
    assert_eq!(mapping.keys().collect::<Vec<_>>(), slugs);
    for ruleset in RulesetId::ALL {
        assert_eq!(serde_json::to_value(ruleset).unwrap(), ruleset.meta().slug, "serde and the document agree");
    }
}

#[test]
fn every_operation_is_told_of_in_full() {
    let document = openapi::document();
    let mut ids = BTreeSet::new();
    let tags: Vec<&Value> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    for tag in document["tags"].as_array().unwrap() {
        assert!(tag["description"].as_str().is_some_and(|text| text.ends_with('.')), "{tag}");
    }
    for (path, method, operation) in operations(&document) {
        let what = format!("{method} {path}");
        let text = |member: &str| operation[member].as_str().unwrap_or_default().trim();
        assert!(
            !text("summary").is_empty() && text("summary").len() <= 60 && !text("summary").ends_with('.'),
            "{what}"
        );
        assert!(text("description").ends_with('.') && text("description") != text("summary"), "{what}");
        assert!(ids.insert(text("operationId")) && !text("operationId").is_empty(), "{what}");
        assert!(operation["tags"].as_array().is_some_and(|own| own.len() == 1 && tags.contains(&&own[0])), "{what}");
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            assert!(parameter["description"].as_str().is_some_and(|text| !text.is_empty()), "{what}: {parameter}");
            // To find somebody one has to say whom.
            let needed = parameter["in"] == "path" || text("operationId") == "find_players";
            assert_eq!(parameter["required"] == true, needed, "{what}: {parameter}");
        }
        let in_path = path.split('/').filter(|segment| segment.starts_with('{')).count();
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        assert_eq!(parameters.filter(|parameter| parameter["in"] == "path").count(), in_path, "{what}");
        let successes = operation["responses"].as_object().unwrap().keys().filter(|status| status.starts_with('2'));
        // A rematch is created, or was already.
        assert_eq!(successes.count(), if text("operationId") == "create_rematch" { 2 } else { 1 }, "{what}");
        for (status, response) in operation["responses"].as_object().unwrap() {
            assert!(response["description"].as_str().is_some_and(|text| !text.is_empty()), "{what} {status}");
        }
        assert_eq!(
            operation.get("requestBody").is_some(),
            operation["requestBody"]["content"]["application/json"].is_object(),
            "{what}"
        );
    }
    assert!(ids.len() >= 19);
}

/// Generated clients match on codes by name.
#[test]
fn codes_of_errors_are_named() {
    let document = openapi::document();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Problem"]["properties"]["code"]["$ref"], "#/components/schemas/ProblemCode");
    let codes = schemas["ProblemCode"]["enum"].as_array().unwrap();
    for (path, method, operation) in operations(&document) {
        for response in operation["responses"].as_object().unwrap().values() {
            let examples = response["content"]["application/problem+json"]["examples"].as_object();
            for (name, example) in examples.into_iter().flatten() {
                // Examples of one code are one, which is referred to.
                let shared = example["$ref"].as_str().and_then(|at| document.pointer(at.trim_start_matches('#')));
                let example = shared.unwrap_or(example);
                assert!(codes.contains(&example["value"]["code"]), "{method} {path}: {name}");
            }
        }
    }
    // No operation lists what every path can answer.
    assert!(codes.contains(&"method-not-allowed".into()) && codes.contains(&"internal".into()));
}

/// Some generators take an object of which nothing is told for one that is always empty.
#[test]
fn objects_tell_what_they_hold() {
    walk(&openapi::document(), &mut |schema| {
        let tells = ["properties", "additionalProperties"].iter().any(|word| schema.contains_key(*word));
        assert!(schema.get("type").is_none_or(|name| name != "object") || tells, "{schema:?}");
    });
}

/// A property without a word about it is left to be guessed; codes and the like that are named in full are not.
#[test]
fn bodies_have_examples_or_types_that_need_none() {
    let document = openapi::document();
    for (path, method, operation) in operations(&document) {
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        if !body.is_null() {
            assert!(body["$ref"].is_string(), "{method} {path}: a body is a named component");
        }
        for response in operation["responses"].as_object().unwrap().values() {
            for (kind, content) in response["content"].as_object().into_iter().flatten() {
                let named = content["schema"]["$ref"].is_string();
                // What has no shape of its own: a stream's events are those of the page beside it, a table is no JSON.
                let text =
                    ["text/html", "text/csv", "text/event-stream", "application/x-ndjson"].contains(&kind.as_str());
                assert!(named || path == "/openapi.json" || text, "{method} {path}: {content}");
            }
        }
    }
}

/// A JSON pointer as the fragment of a URI, which may have no braces.
fn fragment(pointer: &str) -> String {
    pointer.replace('{', "%7B").replace('}', "%7D")
}

/// A validator of the schema at this place, with everything that it refers to.
fn validator(registry: &jsonschema::Registry, pointer: &str) -> jsonschema::Validator {
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012).with_registry(registry);
    let options = options.should_validate_formats(true);
    options
        .build(&serde_json::json!({"$ref": format!("{URI}#{}", fragment(pointer))}))
        .unwrap_or_else(|error| panic!("{pointer}: {error}"))
}

const URI: &str = "https://tavola.example/document";

fn registry(document: &Value) -> jsonschema::Registry<'static> {
    let registry = jsonschema::Registry::new().draft(jsonschema::Draft::Draft202012);
    registry.add(URI, document.clone()).unwrap().prepare().unwrap()
}

/// A name as a part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The header with this name; none if the response has none.
fn header<'a>(document: &'a Value, response: &'a Value, name: &str) -> Option<&'a Value> {
    let header = response["headers"].get(name)?;
    match header["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')),
        None => Some(header),
    }
}

/// Every body has an example, and every JSON example is valid by the schema beside it.
#[test]
fn every_body_has_a_valid_example() {
    let document = openapi::document();
    let registry = registry(&document);
    let check = |pointer: &str| {
        let content = document.pointer(pointer).unwrap();
        let example = content.get("example").unwrap_or_else(|| panic!("{pointer} has no example"));
        if pointer.ends_with("application~1json") {
            let errors: Vec<String> = validator(&registry, &format!("{pointer}/schema"))
                .iter_errors(example)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert!(errors.is_empty(), "{pointer}: {errors:?}");
        } else {
            assert!(example.as_str().is_some_and(|text| !text.is_empty()), "{pointer}");
        }
    };
    for (path, method, operation) in operations(&document) {
        let place = format!("/paths/{}/{method}", escaped(path));
        if operation.get("requestBody").is_some() {
            check(&format!("{place}/requestBody/content/application~1json"));
        }
        for (status, response) in operation["responses"].as_object().unwrap() {
            for kind in response["content"].as_object().into_iter().flatten().map(|(kind, _)| kind) {
                if status.starts_with('2') {
                    check(&format!("{place}/responses/{status}/content/{}", escaped(kind)));
                }
            }
        }
    }
}

/// The parts of streams are described, and those of the examples are like that.
#[test]
fn parts_of_streams_are_described() {
    let document = openapi::document();
    let registry = registry(&document);
    let mut found = 0;
    for (path, method, operation) in operations(&document) {
        for (kind, content) in operation["responses"]["200"]["content"].as_object().into_iter().flatten() {
            let part = match kind.as_str() {
                "text/event-stream" => "data: ",
                "application/x-ndjson" => "",
                _ => continue,
            };
            let validator = validator(
                &registry,
                &format!("/paths/{}/{method}/responses/200/content/{}/x-item-schema", escaped(path), escaped(kind)),
            );
            let lines = content["example"].as_str().unwrap().lines().filter_map(|line| line.strip_prefix(part));
            let parts: Vec<Value> =
                lines.filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect();
            assert!(!parts.is_empty() && parts.iter().all(|part| validator.is_valid(part)), "{path} {kind}");
            found += 1;
        }
    }
    assert_eq!(found, 5);
}

/// Each code that an operation can answer with has an example, the same for all, which is a problem of that code and status.
#[test]
fn every_error_has_an_example_for_each_code() {
    let document = openapi::document();
    let registry = registry(&document);
    let problem = validator(&registry, "/components/schemas/Problem");
    for (path, method, operation) in operations(&document) {
        let errors = operation["responses"].as_object().unwrap().iter();
        let errors: Vec<_> = errors.filter(|(status, _)| status.starts_with(['4', '5'])).collect();
        // Whatever it is, the server can fail.
        assert!(errors.iter().any(|(status, _)| *status == "500"), "{method} {path}");
        for (status, response) in errors {
            let content = response["content"].as_object().unwrap();
            assert!(content.keys().eq(["application/problem+json"]), "{method} {path} {status}");
            let examples = content["application/problem+json"]["examples"].as_object().unwrap();
            assert!(!examples.is_empty(), "{method} {path} {status}");
            for (code, example) in examples {
                let place = example["$ref"].as_str().unwrap();
                assert_eq!(place, format!("#/components/examples/{code}"));
                let value = &document.pointer(place.trim_start_matches('#')).unwrap()["value"];
                assert!(problem.is_valid(value), "{value}");
                assert_eq!(
                    (&value["code"], value["status"].to_string()),
                    (&Value::from(code.as_str()), status.clone())
                );
            }
        }
    }
}

/// Headers are told of wherever they are sent, and those that are always there are required.
#[test]
fn headers_are_told_of() {
    let document = openapi::document();
    for (path, method, operation) in operations(&document) {
        let keyed = operation["parameters"]
            .as_array()
            .is_some_and(|parameters| parameters.iter().any(|parameter| parameter["name"] == "Idempotency-Key"));
        let limited = operation["responses"].get("429").is_some();
        for (status, response) in operation["responses"].as_object().unwrap() {
            let what = format!("{method} {path} {status}");
            let has = |name| header(&document, response, name).is_some();
            let always = |name| header(&document, response, name).is_some_and(|header| header["required"] == true);
            for (name, _) in response["headers"].as_object().unwrap() {
                let described = header(&document, response, name).unwrap();
                assert!(described["description"].as_str().is_some_and(|text| !text.is_empty()), "{what}: {name}");
                assert!(described["schema"].is_object(), "{what}: {name}");
            }
            assert!(always("X-Request-Id"), "{what}");
            assert_eq!(always("WWW-Authenticate"), status == "401", "{what}");
            assert_eq!(always("Retry-After"), ["429", "503"].contains(&status.as_str()), "{what}");
            assert_eq!(has("RateLimit") && has("RateLimit-Policy"), limited, "{what}");
            let success = status.starts_with('2');
            assert_eq!(has("Idempotent-Replayed"), keyed && success, "{what}");
            let schema = &response["content"]["application/json"]["schema"]["$ref"];
            let shows_game =
                ["Game", "MoveAnswer"].iter().any(|name| *schema == format!("#/components/schemas/{name}"));
            assert!(always("ETag") || !(shows_game && success || status == "304"), "{what}");
            // A token and a seat have no page of their own.
            let unplaced = ["create_token", "take_seat", "invite_player"];
            let made = status == "201" && !unplaced.contains(&operation["operationId"].as_str().unwrap());
            assert_eq!(always("Location"), made, "{what}");
        }
    }
}

/// Where something may be null that has a type of its own, `null` stands beside its type; where it is a component, beside the
/// reference in an `anyOf`. There is no other way.
#[test]
fn there_is_one_way_to_say_null() {
    let document = openapi::document();
    let null = |schema: &Value| schema["type"] == "null";
    walk(&document["components"]["schemas"], &mut |schema| {
        assert!(!schema.contains_key("nullable"), "{schema:?}");
        let alternatives = |word| schema.get(word).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        assert!(!alternatives("oneOf").iter().any(null), "{schema:?}");
        if alternatives("anyOf").iter().any(null) {
            let [member, other] = alternatives("anyOf") else { panic!("{schema:?}") };
            assert!(member["$ref"].is_string() && null(other), "{schema:?}");
        }
        if let Some(Value::Array(kinds)) = schema.get("type") {
            assert!(kinds.len() == 2 && kinds[1] == "null", "{schema:?}");
        }
    });
}

/// The server refuses members of bodies that it does not know, and the document says so of whatever a body can contain.
#[test]
fn what_is_sent_is_closed() {
    let document = openapi::document();
    let mut open: Vec<&Value> =
        operations(&document).into_iter().filter_map(|(_, _, operation)| operation.get("requestBody")).collect();
    let mut seen = BTreeSet::new();
    while let Some(value) = open.pop() {
        walk(value, &mut |schema| {
            let reference = schema.get("$ref").and_then(Value::as_str);
            if let Some(reference) = reference.filter(|reference| seen.insert(*reference)) {
                open.push(document.pointer(reference.trim_start_matches('#')).unwrap());
            }
            if schema.get("properties").is_some_and(Value::is_object) && schema.contains_key("type") {
                assert_eq!(schema.get("additionalProperties"), Some(&Value::Bool(false)), "{schema:?}");
            }
        });
    }
    assert!(seen.iter().any(|name| name.ends_with("/ClockBank")), "{seen:?}");
    assert!(seen.iter().any(|name| name.ends_with("/SiggilMoveDiscard")), "{seen:?}");
}

/// Links lead to operations, and give them parameters that they have.
#[test]
fn links_lead_to_operations() {
    let document = openapi::document();
    let operations = operations(&document);
    let mut count = 0;
    for (path, method, operation) in &operations {
        for response in operation["responses"].as_object().unwrap().values() {
            for (name, link) in response["links"].as_object().into_iter().flatten() {
                let target = operations.iter().find(|(_, _, target)| target["operationId"] == link["operationId"]);
                let (_, _, target) = target.unwrap_or_else(|| panic!("{method} {path}: {name} leads nowhere"));
                let known = target["parameters"].as_array().unwrap();
                for (parameter, place) in link["parameters"].as_object().unwrap() {
                    assert!(known.iter().any(|known| known["name"] == parameter.as_str()), "{name}: {parameter}");
                    let asked = place.as_str().unwrap().strip_prefix("$request.path.");
                    assert!(asked.is_none_or(|own| path.contains(&format!("{{{own}}}"))), "{method} {path}: {place}");
                }
                count += 1;
            }
        }
    }
    assert!(count > 30, "{count}");
}

/// Null stands nowhere but in examples, which are values of the API itself.
#[test]
fn nothing_is_null_by_accident() {
    fn walk(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Null => found.push(path.to_owned()),
            Value::Array(items) => items.iter().for_each(|item| walk(item, path, found)),
            Value::Object(members) => {
                let members = members.iter().filter(|(name, _)| !matches!(name.as_str(), "example" | "examples"));
                members.for_each(|(name, member)| walk(member, &format!("{path}/{name}"), found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(&openapi::document(), "", &mut found);
    assert_eq!(found, Vec::<String>::new());
}
