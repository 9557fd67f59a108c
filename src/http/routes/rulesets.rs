//! The catalogue: which games there are, and all that one needs to play them.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, get, web};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::http::Document;
use crate::http::dto::{RulesetListOut, RulesetOut, RulesetSummaryOut};
use crate::http::language::Language;
use crate::http::problem::Problem;
use crate::http::request::Params;
use crate::rulesets::registry::RulesetId;

/// In which language.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LanguageParams {
    /// The language of names and texts; it goes before `Accept-Language`.
    lang: Option<Language>,
}

/// List the rulesets
///
/// The games that this server knows, in the language that you prefer.
#[utoipa::path(
    operation_id = "list_rulesets", tag = "rulesets",
    params(LanguageParams,
           ("Accept-Language" = Option<String>, Header, description = "`en` or `ru`, whichever you prefer")),
    responses((status = 200, description = "The rulesets", body = RulesetListOut,
               headers(("Content-Language" = String, description = "The language of the texts"))))
)]
#[get("/v1/rulesets")]
pub(super) async fn list_rulesets(request: HttpRequest, params: Params<LanguageParams>) -> HttpResponse {
    let language = Language::of_request(&request, params.0.lang);
    let items = RulesetId::ALL.iter().map(|slug| RulesetSummaryOut::new(*slug, language)).collect();
    texts(language).json(RulesetListOut { items })
}

/// Get a ruleset
///
/// Everything that a client needs to draw and play the game: rules, options and moves as JSON Schema, every card, symbol and
/// layout with its name. Together with `legal-moves` no table of the client's own is needed.
#[utoipa::path(
    operation_id = "get_ruleset", tag = "rulesets",
    params(("slug" = String, Path, description = "The ruleset's slug", example = "leopard"), LanguageParams,
           ("Accept-Language" = Option<String>, Header, description = "`en` or `ru`, whichever you prefer")),
    responses((status = 200, description = "The ruleset", body = RulesetOut,
               headers(("Content-Language" = String, description = "The language of the texts"))))
)]
#[get("/v1/rulesets/{slug}")]
pub(super) async fn get_ruleset(
    request: HttpRequest,
    slug: web::Path<String>,
    params: Params<LanguageParams>,
    document: web::Data<Document>,
) -> Result<HttpResponse, Problem> {
    let ruleset = RulesetId::from_slug(&slug).ok_or_else(Problem::not_found)?;
    let language = Language::of_request(&request, params.0.lang);
    let (options, moves) = document.schemas_of(ruleset);
    Ok(texts(language).json(RulesetOut::new(ruleset, language, options, moves)))
}

fn texts(language: Language) -> HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    response
        .insert_header((header::CONTENT_LANGUAGE, language.tag()))
        .insert_header((header::VARY, "Accept-Language"))
        .insert_header((header::CACHE_CONTROL, "public, max-age=3600"));
    response
}
