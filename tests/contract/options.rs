//! Which options the laws are played with.

use tavola::rulesets::registry::RulesetId;

/// Option sets beside the default one, for every number of seats that accepts them. The only table by name: a ruleset
/// that is not in it is played with its default options.
fn further(slug: &str) -> &'static [&'static str] {
    match slug {
        "leonardo" => &[r#"{"turn_limit":17}"#, r#"{"turn_limit":1}"#, r#"{"turn_limit":null}"#],
        "quintis-fontis" => {
            &[r#"{"turn_limit":9}"#, r#"{"turn_limit":1}"#, r#"{"turn_limit":null}"#, r#"{"diagonals":true}"#]
        }
        "leopard" => &[
            r#"{"hands":1}"#,
            r#"{"hands":3,"scoring":"2008"}"#,
            r#"{"target_points":4}"#,
            r#"{"target_points":7,"scoring":"2008"}"#,
        ],
        "siggil" => &[
            r#"{"layout":"pass"}"#,
            r#"{"layout":"turtle"}"#,
            r#"{"layout":"river"}"#,
            r#"{"layout":"pillars"}"#,
            r#"{"difficulty":"hard"}"#,
            r#"{"layout":"river","difficulty":"hard"}"#,
        ],
        _ => &[],
    }
}

/// Every option set with every number of seats that it is valid for; the default set comes first.
pub fn combinations(id: RulesetId) -> Vec<(String, u8)> {
    let mut combinations = Vec::new();
    for options in std::iter::once(&"{}").chain(further(id.meta().slug)) {
        let given = serde_json::from_str(options).expect("options are a JSON object");
        let valid: Vec<u8> = id.meta().seats.clone().filter(|seats| id.options(&given, *seats).is_ok()).collect();
        assert!(!valid.is_empty(), "{}: {options} is never valid", id.meta().slug);
        combinations.extend(valid.into_iter().map(|seats| (options.to_string(), seats)));
    }
    combinations
}
