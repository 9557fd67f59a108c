//! The direction of the layers: rulesets <- game <- store <- {http, workers} <- app, never the other way; a ruleset
//! imports no other one. One crate cannot enforce this by itself, so this test reads the paths in its source.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

/// What the files of a folder must not name.
struct Layer {
    /// Under `src/`: a folder (`game/`) or a file (`app.rs`).
    place: &'static str,
    /// Modules of this crate.
    modules: &'static [&'static str],
    /// Crates, and modules of the standard library.
    foreign: &'static [&'static str],
}

/// Web, database and runtime; and what makes a function depend on more than its arguments.
const IMPURE: &[&str] = &[
    "actix_web",
    "actix_cors",
    "actix_rt",
    "tracing_actix_web",
    "sqlx",
    "tokio",
    "futures_util",
    "reqwest",
    "nix",
    "clap",
    "tracing",
    "anyhow",
    "prometheus",
    "std::time",
    "std::env",
    "std::fs",
    "std::net",
    "std::thread",
    "std::process",
    "std::io",
];
/// Web alone.
const WEB: &[&str] =
    &["actix_web", "actix_cors", "actix_rt", "tracing_actix_web", "utoipa_actix_web", "utoipa_swagger_ui"];
/// The database's crate, for those that ask the store instead.
const SQL: &[&str] = &["sqlx"];

const LAYERS: &[Layer] = &[
    Layer {
        place: "rulesets/",
        modules: &["game", "store", "http", "workers", "app", "config", "embedded", "metrics", "telemetry"],
        foreign: IMPURE,
    },
    Layer {
        place: "game/",
        modules: &["store", "http", "workers", "app", "config", "embedded", "metrics", "telemetry"],
        foreign: IMPURE,
    },
    Layer {
        place: "webhook/",
        modules: &["store", "http", "workers", "app", "config", "embedded", "metrics", "telemetry"],
        foreign: &["actix_web", "sqlx", "reqwest"],
    },
    Layer {
        place: "metrics.rs",
        modules: &["webhook", "store", "http", "workers", "app", "config", "embedded", "telemetry"],
        foreign: &["actix_web", "sqlx", "tokio"],
    },
    Layer { place: "store/", modules: &["http", "workers", "app", "embedded"], foreign: WEB },
    Layer { place: "http/", modules: &["workers", "app", "embedded"], foreign: SQL },
    Layer { place: "workers/", modules: &["http", "app", "embedded"], foreign: SQL },
    Layer { place: "config.rs", modules: &["game", "store", "http", "workers", "app", "embedded"], foreign: SQL },
    Layer { place: "telemetry.rs", modules: &["game", "store", "http", "workers", "app", "embedded"], foreign: SQL },
    Layer { place: "embedded.rs", modules: &["rulesets", "game", "store", "http", "workers", "app"], foreign: WEB },
    Layer {
        place: "simulate/",
        modules: &["game", "store", "http", "workers", "app", "embedded", "telemetry"],
        foreign: SQL,
    },
    Layer { place: "main.rs", modules: &[], foreign: SQL },
];

/// Source without comments and the contents of string literals, so that words in them are no paths.
fn code_of(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(next) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if next == '"' || rest.starts_with("r\"") || rest.starts_with("r#") {
            literal_length(rest)
        } else if rest.starts_with("'\"'") {
            3
        } else {
            0
        };
        if skipped == 0 {
            code.push(next);
            rest = &rest[next.len_utf8()..];
        } else {
            code.push(' ');
            rest = &rest[skipped..];
        }
    }
    code
}

/// Length of the string literal (or raw identifier's mark) that the text begins with.
fn literal_length(text: &str) -> usize {
    if let Some(raw) = text.strip_prefix('r') {
        let marks = raw.bytes().take_while(|byte| *byte == b'#').count();
        let closing = format!("\"{}", "#".repeat(marks));
        let Some(body) = raw[marks..].strip_prefix('"') else { return 1 + marks };
        return body.find(&closing).map_or(text.len(), |end| 1 + marks + 1 + end + closing.len());
    }
    let mut escaped = false;
    let end = text[1..].bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

/// The code without what is compiled for unit tests only, and the modules in files of their own that are.
fn without_tests(code: &str) -> (String, Vec<String>) {
    const MARK: &str = "#[cfg(test)]";
    let (mut kept, mut modules) = (String::new(), Vec::new());
    let mut rest = code;
    while let Some(mark) = rest.find(MARK) {
        kept.push_str(&rest[..mark]);
        rest = &rest[mark + MARK.len()..];
        let end = rest.find([';', '{']).unwrap_or(rest.len());
        if rest[end..].starts_with(';') {
            modules.extend(rest[..end].trim().strip_prefix("mod ").map(str::to_owned));
            rest = &rest[end + 1..];
            continue;
        }
        let mut depth = 0;
        let closing = rest.char_indices().find(|(_, char)| {
            depth += i32::from(*char == '{') - i32::from(*char == '}');
            *char == '}' && depth == 0
        });
        rest = closing.map_or("", |(place, _)| &rest[place + 1..]);
    }
    (kept + rest, modules)
}

/// Every path in the code, brace groups spelled out: `use a::{b, c::d}` names `a::b` and `a::c::d`. A `name` that
/// stands alone is a path too.
fn paths(code: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut chars = code.chars().peekable();
    while let Some(char) = chars.next() {
        if char.is_alphanumeric() || char == '_' {
            let mut word = String::from(char);
            while let Some(next) = chars.next_if(|next| next.is_alphanumeric() || *next == '_') {
                word.push(next);
            }
            tokens.push(word);
        } else if char == ':' && chars.next_if_eq(&':').is_some() {
            tokens.push("::".into());
        } else if !char.is_whitespace() {
            tokens.push(char.into());
        }
    }
    let mut paths = Vec::new();
    // Prefixes of the open brace groups; none for a brace that is no group of a path.
    let mut groups: Vec<Option<String>> = Vec::new();
    let mut path = String::new();
    let base = |groups: &[Option<String>]| groups.last().cloned().flatten().unwrap_or_default();
    for token in &tokens {
        let is_word = token.starts_with(|char: char| char.is_alphanumeric() || char == '_');
        if is_word && (path.is_empty() || path.ends_with("::")) {
            if path.is_empty() {
                path = base(&groups);
            }
            path.push_str(token);
        } else if token == "::" {
            path.push_str("::");
        } else {
            let group = token == "{" && path.ends_with("::");
            if group {
                groups.push(Some(std::mem::take(&mut path)));
                continue;
            }
            if !path.is_empty() {
                paths.push(std::mem::take(&mut path));
            }
            match token.as_str() {
                "{" => groups.push(None),
                "}" => drop(groups.pop()),
                _ if is_word => path = base(&groups) + token,
                _ => {}
            }
        }
    }
    paths.push(path);
    paths
}

/// The path seen from the crate's root, for a file in that module: `super::x` in `a::b` is `crate::a::x`.
fn absolute(path: &str, module: &[&str]) -> String {
    let mut words: Vec<&str> = path.trim_start_matches("::").split("::").collect();
    if !["self", "super"].contains(&words[0]) {
        return words.join("::");
    }
    let mut base = module.to_vec();
    while let Some(&word) = words.first() {
        match word {
            "self" => {}
            "super" => drop(base.pop()),
            _ => break,
        }
        words.remove(0);
    }
    [&["crate"], base.as_slice(), &words].concat().join("::")
}

fn begins_with(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// What a file names against the direction. `file` is its path under `src/`, `rulesets` the folders of all rulesets.
fn violations(file: &str, source: &str, rulesets: &[String]) -> Vec<String> {
    let stem = file.trim_end_matches(".rs").trim_end_matches("/mod");
    let module: Vec<&str> = stem.split('/').collect();
    let (code, _) = without_tests(&code_of(source));
    let named: Vec<String> = paths(&code).iter().map(|path| absolute(path, &module)).collect();
    let mut found = Vec::new();
    for layer in LAYERS.iter().filter(|layer| file.starts_with(layer.place)) {
        for path in &named {
            let in_crate = ["crate", "tavola"].iter().find_map(|root| path.strip_prefix(root)?.strip_prefix("::"));
            let module = in_crate.is_some_and(|path| layer.modules.iter().any(|module| begins_with(path, module)));
            if module || layer.foreign.iter().any(|foreign| begins_with(path, foreign)) {
                found.push(format!("src/{file} names {path}"));
            }
        }
    }
    // A ruleset's own folder is the second word of its module; the contract and the registry are no rulesets.
    if let ["rulesets", own, ..] = module[..]
        && rulesets.iter().any(|ruleset| ruleset == own)
    {
        for other in rulesets.iter().filter(|ruleset| *ruleset != own) {
            let forbidden = format!("crate::rulesets::{other}");
            found.extend(
                named
                    .iter()
                    .filter(|path| begins_with(path, &forbidden))
                    .map(|path| format!("src/{file} names {path}")),
            );
        }
        let registry = "crate::rulesets::registry";
        found.extend(
            named.iter().filter(|path| begins_with(path, registry)).map(|path| format!("src/{file} names {path}")),
        );
    }
    found
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the source") {
        let path = entry.expect("a folder entry").path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn no_layer_names_one_above_it() {
    let src = common::tests_path("../src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    let rulesets: Vec<String> = fs::read_dir(src.join("rulesets"))
        .expect("the rulesets")
        .map(|entry| entry.expect("a folder entry"))
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().expect("a name in ASCII"))
        .collect();
    assert!(!rulesets.is_empty());
    let sources: Vec<(String, String)> = files
        .iter()
        .map(|path| {
            let file = path.strip_prefix(&src).expect("a file under src").to_str().expect("a name in ASCII");
            (file.to_owned(), fs::read_to_string(path).expect("source is text"))
        })
        .collect();
    // `a/mod.rs` and `a.rs` declare the modules in `a/`.
    let mut tests = Vec::new();
    for (file, source) in &sources {
        let folder = file.trim_end_matches(".rs").trim_end_matches("mod");
        let folder = if folder.ends_with('/') { folder.to_owned() } else { format!("{folder}/") };
        let modules = without_tests(&code_of(source)).1;
        tests.extend(modules.into_iter().flat_map(|name| [format!("{folder}{name}.rs"), format!("{folder}{name}/")]));
    }
    let in_tests = |file: &str| tests.iter().any(|test| file.starts_with(test));
    let found: Vec<String> = sources
        .iter()
        .filter(|(file, _)| !in_tests(file))
        .flat_map(|(file, source)| violations(file, source, &rulesets))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn planted_violations_are_found() {
    let rulesets = ["one".to_owned(), "two".to_owned()];
    let finds = |file: &str, source: &str| !violations(file, source, &rulesets).is_empty();
    for (file, source) in [
        ("rulesets/one/moves.rs", "use std::time::Instant;"),
        ("rulesets/one/moves.rs", "use std::{collections::BTreeMap, env};"),
        ("rulesets/one/moves.rs", "fn f() { let now = std::time::Instant::now(); }"),
        ("rulesets/one/moves.rs", "#[cfg(test)]\nmod tests;\nuse std::env;"),
        ("rulesets/one/moves.rs", "#[cfg(test)]\nmod tests { fn f() {} }\nuse std::env;"),
        ("rulesets/one/moves.rs", "use crate::rulesets::two::Card;"),
        ("rulesets/one/moves.rs", "use crate::rulesets::{Seat, two::{Card, deck}};"),
        ("rulesets/one/moves.rs", "use super::super::two::Card;"),
        ("rulesets/one/mod.rs", "use super::two::Card;"),
        ("rulesets/one/mod.rs", "use super::registry::AnyMove;"),
        ("rulesets/mod.rs", "pub fn f(store: &crate::store::Store) {}"),
        ("rulesets/random.rs", "use tokio::sync::Mutex;"),
        ("game/mod.rs", "use crate::{rulesets::Seat, http::problem::Problem};"),
        ("game/log.rs", "#[derive(sqlx::FromRow)] struct Row;"),
        ("store/games.rs", "use crate::http::dto::GameOut;"),
        ("store/mod.rs", "use actix_web::HttpResponse;"),
        ("http/routes/games.rs", "sqlx::query!(\"select 1\")"),
        ("http/mod.rs", "use crate::workers;"),
        ("workers/clocks.rs", "use super::super::http::sse;"),
        ("webhook/target.rs", "use crate::store::Store;"),
        ("workers/mod.rs", "let app: crate::app::App;"),
        ("game/mod.rs", "use crate::metrics::Metrics;"),
        ("metrics.rs", "use crate::store::Store;"),
    ] {
        assert!(finds(file, source), "{file}: {source}");
    }
    for (file, source) in [
        ("rulesets/one/moves.rs", "use super::state::State; use crate::rulesets::{Seat, cards::Card};"),
        (
            "rulesets/one/moves.rs",
            "// see crate::store\nconst TEXT: &str = \"std::env::var and \\\" sqlx::query\"; /* tokio */",
        ),
        ("rulesets/one/moves.rs", "const TEXT: &str = r#\"use \"tokio::x\"\"#; let r#type = 1;"),
        ("rulesets/one/mod.rs", "use std::mem; fn two() {} fn time(env: u8) { env }"),
        ("rulesets/one/mod.rs", "use std::mem;\n#[cfg(test)]\nmod tests { fn f() { std::env::var(); } }"),
        ("rulesets/registry.rs", "use super::one; use super::two;"),
        ("game/mod.rs", "use crate::rulesets::registry::AnyState; use time::OffsetDateTime;"),
        ("store/games.rs", "use crate::game::Game; use sqlx::PgPool;"),
        ("http/routes/games.rs", "use crate::{game::Game, store::Store}; use actix_web::web;"),
        ("app.rs", "use crate::{http, store, workers}; use sqlx::PgPool;"),
    ] {
        assert!(!finds(file, source), "{file}: {source}: {:?}", violations(file, source, &rulesets));
    }
}
