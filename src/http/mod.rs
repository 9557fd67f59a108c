//! Layer 4: the API. Parses, authorises, calls the store, renders; no SQL and no decision about rules.

mod auth;
mod dto;
mod examples;
mod language;
mod limits;
mod metrics;
pub mod openapi;
mod paths;
mod problem;
mod request;
mod routes;
mod stream;
mod whole;

use std::convert::Infallible;
use std::time::Duration;

use actix_cors::Cors;
use actix_web::body::{BodySize, BodyStream, BoxBody, MessageBody};
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap};
use actix_web::middleware::{Compress, Next, from_fn};
use actix_web::{App, HttpMessage, HttpRequest, HttpResponse, web};
use serde_json::Value;
use tracing_actix_web::{RequestId, RootSpanBuilder, TracingLogger};
use utoipa_swagger_ui::{Config, SwaggerUi};
use uuid::Uuid;

use crate::rulesets::registry::RulesetId;
use crate::store::Store;
use crate::webhook::Targets;
pub use limits::Limits;
pub use metrics::server as metrics_server;
pub use problem::Code;
use problem::Problem;
#[doc(hidden)]
pub use routes::cursors;

/// How long a request may take, its body's arrival included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a request may still take when the server stops. Who waits for a database that hangs is told so while there is
/// somebody to tell them.
const STOP_TIMEOUT: Duration = Duration::from_secs(6);

/// Headers of answers that scripts of web pages may read, besides those that they always may.
const EXPOSED: [&str; 9] = [
    "allow",
    "etag",
    "idempotent-replayed",
    "location",
    "ratelimit",
    "ratelimit-policy",
    "retry-after",
    "www-authenticate",
    "x-request-id",
];

/// The OpenAPI document, made once, and what it says that the server goes by. As a tree it takes ten times the room of its text.
pub struct Document {
    /// The document, ready to be sent.
    json: web::Bytes,
    /// The schemas of each ruleset's options and moves, as JSON Schemas of their own (2020-12).
    schemas: Vec<(RulesetId, Value, Value)>,
    /// Every path.
    paths: Vec<Path>,
    /// Where in `paths` one is.
    tree: paths::Node,
}

/// A path of the API.
struct Path {
    /// Its words; `{…}` stands for any that is not empty.
    segments: Vec<String>,
    operations: Vec<Operation>,
}

/// What can be done at a path.
struct Operation {
    method: Method,
    /// Whether it looks at tokens: then it succeeds with no wrong one.
    takes_token: bool,
    /// The parameters of its query.
    query: Vec<String>,
}

impl Document {
    /// The document of this server.
    pub fn new() -> Self {
        let document = openapi::document();
        let items = document["paths"].as_object().into_iter().flatten();
        let paths: Vec<Path> = items
            .map(|(path, item)| {
                let operations = item.as_object().into_iter().flatten();
                let operations = operations.filter_map(|(name, operation)| Operation::of(name, operation));
                Path { segments: path.split('/').map(str::to_owned).collect(), operations: operations.collect() }
            })
            .collect();
        let tree = paths::Node::of(paths.iter().map(|path| path.segments.as_slice()));
        let schemas = RulesetId::ALL.iter().map(|ruleset| {
            let (options, moves) = ruleset.schema_names();
            (*ruleset, openapi::json_schema(&document, &options), openapi::json_schema(&document, &moves))
        });
        Self { schemas: schemas.collect(), tree, paths, json: document.to_string().into() }
    }

    /// The document, ready to be sent.
    pub fn json(&self) -> web::Bytes {
        self.json.clone()
    }

    /// The JSON Schemas of a ruleset's options and moves.
    fn schemas_of(&self, ruleset: RulesetId) -> (Value, Value) {
        let schemas = self.schemas.iter().find(|(known, ..)| *known == ruleset);
        schemas.map(|(_, options, moves)| (options.clone(), moves.clone())).unwrap_or_default()
    }

    /// The methods that a path takes; none if there is no such path.
    fn methods(&self, path: &str) -> Option<Vec<&Method>> {
        self.item(path).map(Path::methods).map(Iterator::collect)
    }

    /// Whether an operation looks at tokens.
    fn takes_token(&self, method: &Method, path: &str) -> bool {
        self.operation(method, path).is_some_and(|operation| operation.takes_token)
    }

    /// Whether a query has parameters that an operation of the API does not have. Those with parameters of their own look
    /// themselves; `invite` is read with the token.
    fn is_stray(&self, method: &Method, path: &str, query: &str) -> bool {
        let Some(Operation { query: known, .. }) = self.operation(method, path) else { return false };
        let named = |pair: &str| pair.split('=').next().is_some_and(|name| known.iter().any(|known| known == name));
        path.starts_with("/v1/")
            && known.iter().all(|name| name == "invite")
            && query.split('&').any(|pair| !pair.is_empty() && !named(pair))
    }

    /// Where in `paths` a request's path is.
    fn place(&self, path: &str) -> Option<usize> {
        self.tree.find(path.split('/'))
    }

    fn item(&self, path: &str) -> Option<&Path> {
        self.place(path).and_then(|place| self.paths.get(place))
    }

    fn operation(&self, method: &Method, path: &str) -> Option<&Operation> {
        self.item(path)?.operations.iter().find(|operation| operation.method == *method)
    }
}

impl Path {
    fn methods(&self) -> impl Iterator<Item = &Method> {
        self.operations.iter().map(|operation| &operation.method)
    }
}

impl Operation {
    /// What the document says of it.
    fn of(method: &str, operation: &Value) -> Option<Self> {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let query = parameters.filter(|parameter| parameter["in"] == "query");
        Some(Self {
            method: Method::from_bytes(method.to_uppercase().as_bytes()).ok()?,
            takes_token: operation["security"].as_array().is_some_and(|ways| !ways.is_empty()),
            query: query.filter_map(|parameter| parameter["name"].as_str().map(str::to_owned)).collect(),
        })
    }
}

impl Default for Document {
    fn default() -> Self {
        Self::new()
    }
}

/// The whole API over a store, with the addresses that webhooks may have: what the server runs and the tests too.
pub fn app(
    store: web::Data<Store>,
    document: web::Data<Document>,
    limits: web::Data<Limits>,
    targets: web::Data<Targets>,
) -> App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    let requests = metrics::Requests::new(document.clone(), store.metrics().requests.clone());
    App::new()
        .configure(routes::configure)
        .app_data(store)
        .app_data(document)
        .app_data(limits)
        .app_data(targets)
        .app_data(web::Data::new(requests))
        .app_data(web::PayloadConfig::new(request::BODY_LIMIT))
        .service(web::redirect("/docs", "/docs/"))
        .service(SwaggerUi::new("/docs/{_:.*}").config(Config::from("/openapi.json").try_it_out_enabled(true)))
        .default_service(web::to(nothing_here))
        .wrap(from_fn(no_stray_query))
        .wrap(Compress::default())
        .wrap(from_fn(limits::limit))
        .wrap(
            Cors::default()
                .allow_any_origin()
                .allow_any_method()
                .allow_any_header()
                .expose_headers(EXPOSED)
                .max_age(86_400),
        )
        .wrap(from_fn(finish))
        .wrap(from_fn(metrics::measure))
        .wrap(TracingLogger::<Span>::new())
}

/// What the log says of a request, in all lines about it: no query and no invite code, which opens a private game to whoever
/// reads it. How it was answered is told by [`metrics::measure`].
struct Span;

impl RootSpanBuilder for Span {
    fn on_request_start(request: &ServiceRequest) -> tracing::Span {
        let id = request.extensions().get::<RequestId>().map_or_else(Uuid::now_v7, |id| **id);
        tracing::info_span!(
            "HTTP request",
            http.method = %request.method(),
            http.path = %logged_path(request.path(), request.match_info().as_str()),
            request_id = %id,
        )
    }

    fn on_request_end<B: MessageBody>(_: tracing::Span, _: &Result<ServiceResponse<B>, actix_web::Error>) {}
}

/// A path as it was sent, unless the routes see an invite code in it. They read it unescaped, which is not for a log: it can have
/// ends of lines.
fn logged_path<'a>(sent: &'a str, seen: &str) -> &'a str {
    const INVITES: &str = "/v1/invites/";
    if seen.starts_with(INVITES) { INVITES } else { sent }
}

/// The answer where no operation is registered: the path may exist with other methods.
async fn nothing_here(request: HttpRequest, document: web::Data<Document>) -> HttpResponse {
    match document.methods(request.path()) {
        Some(methods) if !methods.contains(&request.method()) => problem::method_not_allowed(&methods),
        _ => HttpResponse::from_error(Problem::not_found()),
    }
}

/// Refuses parameters that an operation does not have.
async fn no_stray_query(
    document: web::Data<Document>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let query = request.query_string();
    if !query.is_empty() && document.is_stray(request.method(), request.path(), query) {
        let problem = Problem::parameter("query", "the operation has no such parameter");
        return Ok(request.into_response(HttpResponse::from_error(problem)));
    }
    Ok(next.call(request).await?.map_into_boxed_body())
}

/// The outermost layer: ends requests that take too long, gives every error its form and every answer its request's id.
async fn finish(
    store: web::Data<Store>,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    // Whatever can be got can be asked for without its body (RFC 9110, 9.1), which the connection then leaves out.
    let without_body = request.method() == Method::HEAD;
    if without_body {
        request.head_mut().method = Method::GET;
    }
    let id = request.extensions().get::<RequestId>().map_or_else(Uuid::now_v7, |id| **id);
    let stopped = async {
        store.closing().await;
        tokio::time::sleep(STOP_TIMEOUT).await;
    };
    let answer = tokio::select! {
        biased;
        answer = tokio::time::timeout(REQUEST_TIMEOUT, next.call(request)) => match answer {
            Ok(answer) => answer,
            Err(_) => Err(Problem::new(Code::Unavailable, "the request took too long").into()),
        },
        () = stopped => Err(Problem::new(Code::Unavailable, "the server stops").into()),
    };
    // An error that is no answer yet has lost its request: the framework asks it for the answer once more.
    let count = |problem: &Problem| store.metrics().problems.with_label_values(&[problem.code.as_str()]).inc();
    let rendered = |error: actix_web::Error| {
        let problem = problem::of_error(Some(&error), error.as_response_error().status_code());
        count(&problem);
        problem::Rendered::new(problem, id)
    };
    let (request, response) = answer.map_err(rendered)?.into_parts();
    let status = response.status();
    let mut response = if status.is_client_error() || status.is_server_error() {
        let problem = problem::of_error(response.error(), status);
        count(&problem);
        problem::render(&problem, id, response.headers())
    } else {
        response.map_into_boxed_body()
    };
    // The connection would still make all of a stream, and send none of it.
    if without_body && response.body().size() == BodySize::Stream {
        response = response
            .set_body(BoxBody::new(BodyStream::new(futures_util::stream::empty::<Result<web::Bytes, Infallible>>())));
    }
    complete_caching(request.path(), response.headers_mut());
    if let Ok(value) = header::HeaderValue::from_str(&id.to_string()) {
        response.headers_mut().insert(header::HeaderName::from_static("x-request-id"), value);
    }
    Ok(ServiceResponse::new(request, response))
}

/// What caches have to know and nobody has said yet.
fn complete_caching(path: &str, headers: &mut HeaderMap) {
    // What keeps compression off is no coding to tell of (RFC 9110, 8.4.1).
    if headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding == "identity") {
        headers.remove(header::CONTENT_ENCODING);
    }
    // Compression says this in a line of its own, which the layer for CORS drops if there was another before it.
    if headers.contains_key(header::CONTENT_ENCODING) && !varies_by(headers, "accept-encoding") {
        headers.append(header::VARY, header::HeaderValue::from_static("accept-encoding"));
    }
    // Answers depend on the token (`/v1/me`, lists of `me`) unless they say otherwise, and change at any time.
    if path.starts_with("/v1/") && !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-cache"));
        headers.append(header::VARY, header::HeaderValue::from_static("Authorization"));
    }
}

fn varies_by(headers: &HeaderMap, name: &str) -> bool {
    let lines = headers.get_all(header::VARY).filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|known| known.trim().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use actix_web::http::StatusCode;
    use actix_web::test::{TestRequest, call_service, init_service, read_body_json};

    use super::*;

    /// What the API answers while there is no database: enough for what never asks it.
    async fn answer(request: TestRequest) -> ServiceResponse<impl MessageBody> {
        let nowhere = "postgres://127.0.0.1:1/nowhere".parse().unwrap();
        let store = web::Data::new(Store::open(nowhere, 1));
        let (document, targets) = (web::Data::new(Document::new()), web::Data::new(Targets::new(false)));
        let service = init_service(app(store, document, web::Data::new(Limits::none()), targets)).await;
        call_service(&service, request.to_request()).await
    }

    #[actix_web::test]
    async fn what_can_be_got_can_be_asked_for_by_head() {
        let asked = |method: Method, path| answer(TestRequest::with_uri(path).method(method));
        assert_eq!(asked(Method::HEAD, "/healthz").await.status(), StatusCode::OK);
        assert_eq!(asked(Method::HEAD, "/v1/nothing").await.status(), StatusCode::NOT_FOUND);
        assert_eq!(asked(Method::HEAD, "/v1/games/1/start").await.status(), StatusCode::METHOD_NOT_ALLOWED);
    }

    #[actix_web::test]
    async fn a_compressed_answer_varies_by_its_coding_whatever_else_it_varies_by() {
        let answer = answer(TestRequest::with_uri("/v1/rulesets").insert_header(("accept-encoding", "gzip"))).await;
        assert_eq!(answer.headers().get("content-encoding").unwrap(), "gzip");
        for name in ["accept-language", "accept-encoding", "origin"] {
            assert!(varies_by(answer.headers(), name), "{name}: {:?}", answer.headers());
        }
    }

    #[test]
    fn the_log_does_not_tell_invite_codes() {
        for sent in ["/v1/invites/5f0c6f4b7a1f4f0e9d3d5f9b", "/v1/%69nvites/5f0c6f4b7a1f4f0e9d3d5f9b"] {
            assert_eq!(logged_path(sent, "/v1/invites/5f0c6f4b7a1f4f0e9d3d5f9b"), "/v1/invites/");
        }
        assert_eq!(logged_path("/v1/%0Agames", "/v1/\ngames"), "/v1/%0Agames");
    }

    #[test]
    fn what_says_nothing_of_caching_depends_on_the_token() {
        let mut headers = HeaderMap::new();
        complete_caching("/v1/me", &mut headers);
        assert_eq!(headers.get(header::CACHE_CONTROL).unwrap(), "no-cache");
        assert!(varies_by(&headers, "authorization"));
    }

    #[actix_web::test]
    async fn an_array_is_no_object() {
        for (body, status) in [("[\"Ada\"]", 400), ("[\"Ada\",\"bot\"]", 400), (" null", 400), (" ", 400)] {
            let request = TestRequest::post().uri("/v1/players").insert_header(("content-type", "application/json"));
            let answer = answer(request.set_payload(body)).await;
            assert_eq!(answer.status().as_u16(), status, "{body}");
            let problem: Value = read_body_json(answer).await;
            assert_eq!(problem["code"], "invalid-body", "{body}");
        }
    }

    #[actix_web::test]
    async fn a_body_that_is_not_asked_for_has_to_be_json_too() {
        for operation in ["start", "resignation"] {
            let uri = format!("/v1/games/{}/{operation}", Uuid::nil());
            let request = TestRequest::post().uri(&uri).insert_header(("authorization", "Bearer x"));
            let request = request.insert_header(("content-type", "application/json")).set_payload("{{{");
            assert_eq!(answer(request).await.status(), StatusCode::BAD_REQUEST, "{operation}");
        }
    }
}
