//! For operators and tools: health, the document, the pages about problems.

use actix_web::http::header;
use actix_web::{HttpResponse, get, web};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::Document;
use crate::http::problem::{Code, Problem};
use crate::store::Store;

/// How the server is.
#[derive(Serialize, ToSchema)]
struct Health {
    /// Always `ok`: otherwise the answer is an error.
    #[schema(example = "ok")]
    status: &'static str,
}

/// Check the process
///
/// Answers as soon as the server runs, whatever the database does.
#[utoipa::path(operation_id = "healthz", tag = "operations",
    responses((status = 200, description = "The server runs", body = Health)))]
#[get("/healthz")]
pub(super) async fn healthz() -> HttpResponse {
    HttpResponse::Ok().insert_header((header::CACHE_CONTROL, "no-store")).json(Health { status: "ok" })
}

/// Check the service
///
/// Whether the database answers and has the schema that this server needs.
#[utoipa::path(operation_id = "readyz", tag = "operations",
    responses((status = 200, description = "Requests are served", body = Health)))]
#[get("/readyz")]
pub(super) async fn readyz(store: web::Data<Store>) -> Result<HttpResponse, Problem> {
    if store.is_ready().await? {
        return Ok(HttpResponse::Ok().insert_header((header::CACHE_CONTROL, "no-store")).json(Health { status: "ok" }));
    }
    Err(Problem::new(Code::Unavailable, "the database's schema is older than this server"))
}

/// Get this document
///
/// The OpenAPI document of the server.
#[utoipa::path(operation_id = "get_openapi", tag = "operations",
    responses((status = 200, description = "OpenAPI 3.1", body = Object, content_type = "application/json")))]
#[get("/openapi.json")]
pub(super) async fn get_openapi(document: web::Data<Document>) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .content_type("application/json")
        .body(document.json())
}

/// Read about a problem
///
/// What the `type` of an error points to: what it means and what a client can do.
#[utoipa::path(operation_id = "get_problem", tag = "operations",
    params(("code" = String, Path, description = "The problem's code", example = "illegal-move")),
    responses((status = 200, description = "A page", body = String, content_type = "text/html")))]
#[get("/problems/{code}")]
pub(super) async fn get_problem(code: web::Path<String>) -> Result<HttpResponse, Problem> {
    let code = Code::parse(&code).ok_or_else(Problem::not_found)?;
    Ok(HttpResponse::Ok().content_type("text/html; charset=utf-8").body(page(code)))
}

/// The page about a kind of problem.
pub fn page(code: Code) -> String {
    // The texts are the server's own: nothing in them needs to be escaped but quotation of code.
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><style>body{{font:1.1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}}\
         code{{background:#eee;padding:.1em .3em}}</style><h1>{title}</h1><p><code>{code}</code>, status {status}</p><p>{about}</p>\
         <p><a href=\"/docs/\">The API's documentation</a></p></html>",
        title = code.title(),
        code = code.as_str(),
        status = code.status().as_u16(),
        about = code.about().replace('<', "&lt;"),
    )
}
