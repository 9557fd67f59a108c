//! What a ruleset declares of itself: META, options, texts, catalogue, registry.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use tavola::rulesets::registry::RulesetId;
use tavola::rulesets::{Catalogue, EndReason};

use crate::laws::{json, law, texts};
use crate::options;

/// Fields whose texts are words of the API's schema and need no catalogue.
const WORDS: [&str; 9] = ["type", "ruleset", "face", "phase", "by", "reason", "square", "position", "ended_by"];

/// The codes of a catalogue.
pub struct Codes {
    /// Every card and term: whatever can stand in a move.
    pub cards: Vec<&'static str>,
    copies: BTreeMap<&'static str, usize>,
    known: BTreeSet<&'static str>,
}

impl Codes {
    pub fn of(catalogue: &Catalogue) -> Codes {
        let cards = catalogue.cards.iter().map(|card| card.code);
        let terms = catalogue.terms.values().flatten().map(|term| term.code);
        let layouts = catalogue.layouts.iter().map(|layout| layout.code);
        Codes {
            cards: cards.clone().chain(terms.clone()).collect(),
            copies: catalogue.cards.iter().map(|card| (card.code, usize::from(card.copies))).collect(),
            known: cards.chain(terms).chain(layouts).collect(),
        }
    }

    /// A client can name everything that a view or an event shows, and no card is there more often than in the deck.
    pub fn are_known(&self, shown: &Value) -> Result<(), String> {
        let mut shown = shown.clone();
        drop_fields(&mut shown, &WORDS);
        for (text, count) in texts(&shown) {
            law!(self.known.contains(text), "{text:?} is shown and not in the catalogue");
            if let Some(copies) = self.copies.get(text) {
                law!(count <= *copies, "{text} is shown {count} times, and the deck has {copies}");
            }
        }
        Ok(())
    }

    /// The cards of the deal, all shown but those of the deck, are as many as the catalogue says.
    pub fn make_up_the_deck(&self, deal: &Value) -> Result<(), String> {
        let shown: usize = texts(deal).iter().filter(|(text, _)| self.copies.contains_key(*text)).map(|(_, n)| n).sum();
        let deck = ["deck_count", "stock_count"].iter().filter_map(|name| deal[name].as_u64()).sum::<u64>() as usize;
        // A spirit that has left the sigil goes by its family's code.
        let free = deal["free_spirits"].as_array().map_or(0, Vec::len);
        let copies: usize = self.copies.values().sum();
        law!(shown + deck + free == copies, "{shown} + {deck} + {free} cards are dealt, and the deck has {copies}");
        Ok(())
    }
}

fn drop_fields(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !names.contains(&name.as_str()));
            fields.values_mut().for_each(|field| drop_fields(field, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| drop_fields(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A capital letter and a number without leading zero.
pub fn is_rule_code(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|letter| letter.is_ascii_uppercase())
        && (1..=2).contains(&chars.as_str().len())
        && !chars.as_str().starts_with('0')
        && chars.all(|digit| digit.is_ascii_digit())
}

/// The rule codes that a text names.
pub fn rule_codes(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| is_rule_code(word)).collect()
}

fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).expect("an object")
}

#[test]
fn meta_is_complete() {
    let mut slugs = BTreeSet::new();
    for &id in RulesetId::ALL {
        let meta = id.meta();
        let slug = meta.slug;
        assert!(slugs.insert(slug), "{slug} is there twice");
        assert!(!slug.is_empty() && slug.bytes().all(|c| c == b'-' || c.is_ascii_lowercase()), "{slug:?} is no slug");
        assert_eq!(json(&id), format!("{slug:?}"), "the registry has another slug");
        assert_eq!(serde_json::from_value::<RulesetId>(json!(slug)).ok(), Some(id));
        assert_eq!(RulesetId::from_slug(slug), Some(id));
        assert!(*meta.seats.start() >= 1 && meta.seats.start() <= meta.seats.end(), "{slug}: {:?} seats", meta.seats);
        assert!(meta.rules_version >= 1 && meta.longest_game >= 1 && !meta.score.is_empty());
        for text in [meta.name, meta.summary, meta.rules] {
            assert!(!text.en.trim().is_empty() && !text.ru.trim().is_empty() && text.en != text.ru, "{slug}: a text");
            let cyrillic = |c: char| ('а'..='я').contains(&c);
            assert!(!text.en.contains(cyrillic) && text.ru.contains(cyrillic), "{slug}: a text's language");
        }
        assert!(!meta.designer.trim().is_empty());
        let reasons: BTreeSet<EndReason> = meta.end_reasons.iter().copied().collect();
        assert!(!reasons.is_empty() && reasons.len() == meta.end_reasons.len());
        let of_the_rules = [EndReason::Completed, EndReason::TurnLimit];
        assert!(reasons.iter().all(|reason| of_the_rules.contains(reason)), "{slug}: {reasons:?}");
    }
    assert_eq!(RulesetId::from_slug("no-such-ruleset"), None);
}

/// Both languages state the same rules.
#[test]
fn rules_are_the_same_in_both_languages() {
    for &id in RulesetId::ALL {
        let rules = id.meta().rules;
        assert_eq!(rule_codes(rules.en), rule_codes(rules.ru), "{}", id.meta().slug);
    }
}

#[test]
fn catalogues_are_complete() {
    for &id in RulesetId::ALL {
        let (catalogue, slug) = (id.catalogue(), id.meta().slug);
        let unique = |codes: Vec<&'static str>| codes.iter().collect::<BTreeSet<_>>().len() == codes.len();
        assert!(unique(catalogue.cards.iter().map(|card| card.code).collect()), "{slug}: a card is there twice");
        assert!(
            unique(catalogue.layouts.iter().map(|layout| layout.code).collect()),
            "{slug}: a layout is there twice"
        );
        for (kind, terms) in &catalogue.terms {
            assert!(!terms.is_empty() && unique(terms.iter().map(|term| term.code).collect()), "{slug}: {kind}");
        }
        let named = |en: &str, ru: &str| !en.is_empty() && !ru.is_empty();
        assert!(catalogue.terms.values().flatten().all(|term| named(term.name.en, term.name.ru)), "{slug}: a term");
        assert!(catalogue.layouts.iter().all(|layout| named(layout.name.en, layout.name.ru)), "{slug}: a layout");
        let terms: BTreeSet<&str> = catalogue.terms.values().flatten().map(|term| term.code).collect();
        for card in &catalogue.cards {
            assert!(named(&card.name_en, &card.name_ru) && card.copies > 0, "{slug}: {}", card.code);
            assert!(card.shows.values().all(|code| terms.contains(code)), "{slug}: {} shows no term", card.code);
        }
        let cards: usize = catalogue.cards.iter().map(|card| usize::from(card.copies)).sum();
        for layout in &catalogue.layouts {
            let slots = layout.slots.iter().map(|slot| usize::from(slot.slot));
            assert!(slots.eq(0..cards), "{slug}: layout {} has not a slot for each card in order", layout.code);
        }
    }
}

/// Resolving is idempotent, also through JSON, and writes the defaults out.
#[test]
fn options_are_resolved() {
    for &id in RulesetId::ALL {
        for (given, seats) in options::combinations(id) {
            let given: Map<String, Value> = serde_json::from_str(&given).unwrap();
            let resolved = object(serde_json::to_value(id.options(&given, seats).unwrap()).unwrap());
            assert!(
                given.iter().all(|(name, value)| resolved.get(name) == Some(value)),
                "{given:?} became {resolved:?}"
            );
            let again = object(serde_json::to_value(id.options(&resolved, seats).unwrap()).unwrap());
            assert_eq!(resolved, again, "{}", id.meta().slug);
        }
    }
}

/// Unknown options, wrong types and numbers out of range are refused, each with a pointer to it.
#[test]
fn bad_options_are_refused_with_a_pointer() {
    for &id in RulesetId::ALL {
        let slug = id.meta().slug;
        for (given, seats) in options::combinations(id) {
            let given: Map<String, Value> = serde_json::from_str(&given).unwrap();
            let resolved = object(serde_json::to_value(id.options(&given, seats).unwrap()).unwrap());
            let refused = |name: &str, value: Value| {
                let mut bad = given.clone();
                bad.insert(name.into(), value.clone());
                match id.options(&bad, seats) {
                    Ok(options) => panic!("{slug}: {name} = {value} is accepted as {options:?}"),
                    Err(error) => error.0,
                }
            };
            let pointers = |errors: Vec<(String, String)>| errors.into_iter().map(|(at, _)| at).collect::<Vec<_>>();
            assert_eq!(pointers(refused("no~such/option", json!(1))), ["/no~0such~1option"], "{slug}");
            for (name, value) in &resolved {
                let mut bad = vec![json!([]), json!({}), json!("no such word"), json!(1.5)];
                if value.is_number() {
                    bad.extend([json!(-1), json!(0), json!(1_000_000), json!(u64::MAX), json!("1")]);
                }
                for value in bad {
                    let errors = refused(name, value.clone());
                    assert!(errors.iter().all(|(_, words)| !words.is_empty()));
                    assert_eq!(pointers(errors), [format!("/{name}")], "{slug}: {value}");
                }
            }
        }
    }
}
