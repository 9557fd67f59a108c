//! `tavola simulate`: the same seed gives the same statistics, the numbers fit together, mistakes are told.

use std::process::{Command, Output};

use serde_json::{Value, json};
use tavola::rulesets::registry::RulesetId;

fn simulate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tavola")).arg("simulate").args(arguments).output().expect("the server's binary")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// What it prints for people.
fn printed(arguments: &[&str]) -> String {
    let output = simulate(arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// What it prints with `--json`, and how fast it was.
fn report(arguments: &[&str]) -> (Value, Value) {
    let mut report: Value = serde_json::from_str(&printed(&[arguments, &["--json"]].concat())).expect("JSON");
    let speed = report.as_object_mut().expect("an object").remove("speed").expect("the speed stands apart");
    (report, speed)
}

/// What it says when it refuses.
fn refusal(arguments: &[&str]) -> String {
    let output = simulate(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty());
    text(&output.stderr).to_owned()
}

fn slugs() -> impl Iterator<Item = &'static str> {
    RulesetId::ALL.iter().map(|id| id.meta().slug)
}

#[test]
fn the_same_seed_gives_the_same_statistics_on_any_number_of_threads() {
    for slug in slugs() {
        let games = [slug, "--games", "100", "--seed", "7"];
        let (one, speed) = report(&[&games[..], &["--threads", "1"]].concat());
        assert_eq!(speed["threads"], 1);
        let (two, _) = report(&[&games[..], &["--threads", "2"]].concat());
        assert_eq!(one, two, "{slug}");
        assert_eq!(printed(&games), printed(&games), "{slug}");
        let (other, _) = report(&[slug, "--games", "100", "--seed", "8"]);
        assert_ne!(one["seats"], other["seats"], "{slug}: another seed gives other games");
    }
}

/// Sum of an object's values.
fn sum(counts: &Value) -> u64 {
    counts.as_object().expect("counts").values().map(|count| count.as_u64().expect("a count")).sum()
}

#[test]
fn the_numbers_fit_together() {
    const GAMES: u64 = 70;
    for &id in RulesetId::ALL {
        let meta = id.meta();
        for seats in meta.seats.clone() {
            let (report, _) = report(&[meta.slug, "--games", "70", "--seats", &seats.to_string()]);
            assert_eq!(report["ruleset"], meta.slug);
            assert_eq!(report["games"], GAMES);
            assert_eq!(report["seat_count"], seats);
            assert_eq!(sum(&report["end_reasons"]), GAMES);
            let known: Vec<Value> = meta.end_reasons.iter().map(|reason| json!(reason)).collect();
            for reason in report["end_reasons"].as_object().unwrap().keys() {
                assert!(known.contains(&json!(reason)), "{}: {reason}", meta.slug);
            }
            let mean = report["length"]["mean"].as_f64().unwrap();
            assert_eq!((mean * GAMES as f64).round(), report["decisions"].as_f64().unwrap());
            let (least, most) = (report["length"]["min"].as_f64().unwrap(), report["length"]["max"].as_f64().unwrap());
            let median = report["length"]["median"].as_f64().unwrap();
            assert!(least <= mean && mean <= most && least <= median && median <= most);

            let all = report["seats"].as_array().unwrap();
            assert_eq!(all.len(), usize::from(seats));
            assert_eq!(all.iter().map(|seat| seat["started"].as_u64().unwrap()).sum::<u64>(), GAMES);
            for seat in all {
                assert_eq!(sum(&seat["score"]["distribution"]), GAMES);
                for end in ["min", "max"] {
                    let score = seat["score"][end].as_i64().unwrap();
                    assert!(meta.score.contains(&i32::try_from(score).unwrap()), "{}: {score}", meta.slug);
                    assert!(seat["score"]["distribution"].get(score.to_string()).is_some());
                }
            }
            let won: f64 = all.iter().map(|seat| seat["wins"]["share"].as_f64().unwrap()).sum();
            let first = &report["starting_seat"];
            let share = first["share"].as_f64().unwrap();
            assert!(first["interval"][0].as_f64().unwrap() <= share && share <= first["interval"][1].as_f64().unwrap());
            if seats > 1 {
                assert!((won - 1.0).abs() < 1e-9, "{}: every game is won once: {won}", meta.slug);
                assert_eq!(first["fair_share"], 1.0 / f64::from(seats));
            } else {
                assert_eq!(first["fair_share"], Value::Null);
            }
        }
    }
}

#[test]
fn people_are_told_the_main_figures_and_the_speed_apart() {
    let slug = slugs().next().expect("there is a ruleset");
    let output = simulate(&[slug, "--games", "20"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    for word in [slug, "20 games", "moves a game", "first to move", "95 % interval", "seat 1", "score, mean"] {
        assert!(out.contains(word), "{word} is missing in\n{out}");
    }
    assert!(!out.contains("a second") && err.contains("decisions a second"), "{err}");
}

#[test]
fn options_are_those_of_the_ruleset() {
    let (report, _) = report(&["leopard", "--games", "10", "--options", r#"{"hands":3}"#]);
    assert_eq!(report["options"]["hands"], 3);
}

#[test]
fn mistakes_are_told() {
    let told = refusal(&["whist"]);
    assert!(slugs().all(|slug| told.contains(slug)), "{told}");
    let told = refusal(&["leopard", "--seats", "3"]);
    assert!(told.contains("--seats"), "{told}");
    let told = refusal(&["leopard", "--options", r#"{"hands":-1,"jokers":true}"#]);
    assert!(told.contains("/hands") && told.contains("/jokers"), "{told}");
    for (argument, wrong) in [
        ("--options", "hands=3"),
        ("--options", "[]"),
        ("--games", "0"),
        ("--games", "many"),
        ("--threads", "0"),
        ("--seed", "-1"),
        ("--seats", "300"),
    ] {
        let told = refusal(&["leopard", &format!("{argument}={wrong}")]);
        assert!(told.contains(argument), "{argument} {wrong}: {told}");
    }
}
