//! Metrics: how long requests take, by operation; and the listener for whoever collects them, which is none of the API's.

use std::net::TcpListener;
use std::sync::OnceLock;
use std::time::Instant;

use actix_web::body::MessageBody;
use actix_web::dev::{Server, ServiceRequest, ServiceResponse};
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::{App, HttpResponse, HttpServer, web};
use prometheus::{Histogram, HistogramVec};
use tracing::Level;

use super::Document;
use crate::metrics;
use crate::store::Store;

/// What stands for paths that are no operation's, and for methods that an operation does not take.
const OTHER: &str = "other";

/// The durations of one method of one path, by class of status.
#[derive(Default)]
struct Durations([OnceLock<Histogram>; 5]);

/// An operation's path.
struct Route {
    template: String,
    /// The methods that it takes; the last one stands for all others.
    methods: Vec<(String, Durations)>,
}

/// Where the durations of each operation's requests are counted. The server's threads have one each, over the same counts.
pub struct Requests {
    durations: HistogramVec,
    document: web::Data<Document>,
    /// In the order of the document's paths. The last one stands for all paths that are no operation's.
    routes: Vec<Route>,
}

impl Requests {
    /// For all operations of the document.
    pub fn new(document: web::Data<Document>, durations: HistogramVec) -> Self {
        let mut routes = Vec::new();
        for path in &document.paths {
            let methods = path.methods().map(Method::as_str).chain([OTHER]);
            let methods = methods.map(|method| (method.to_owned(), Durations::default())).collect();
            routes.push(Route { template: path.segments.join("/"), methods });
        }
        routes.push(Route { template: OTHER.to_owned(), methods: vec![(OTHER.to_owned(), Durations::default())] });
        Self { durations, document, routes }
    }

    /// The place of a path in `routes`, and that of the method in its methods.
    fn operation(&self, method: &Method, path: &str) -> (usize, usize) {
        // What can be got can be asked for without its body.
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let route = self.document.place(path).unwrap_or(self.routes.len() - 1);
        let methods = &self.routes[route].methods;
        let place = methods.iter().position(|(name, _)| name == method.as_str());
        (route, place.unwrap_or(methods.len() - 1))
    }

    /// Where to count a request of this kind that was answered with this status.
    fn durations(&self, (route, method): (usize, usize), status: StatusCode) -> &Histogram {
        let Route { template, methods } = &self.routes[route];
        let (method, Durations(classes)) = &methods[method];
        let class = usize::from(status.as_u16() / 100).clamp(1, 5);
        classes[class - 1].get_or_init(|| {
            let class = ["1xx", "2xx", "3xx", "4xx", "5xx"][class - 1];
            self.durations.with_label_values(&[method.as_str(), template, class])
        })
    }
}

/// The layer that measures how long it takes until an answer begins, and tells the log of each. Requests that are given up are
/// not counted.
pub async fn measure(
    requests: web::Data<Requests>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let begun = Instant::now();
    // As the routes see it, however it was escaped.
    let operation = requests.operation(request.method(), request.match_info().as_str());
    let answer = next.call(request).await;
    let status = match &answer {
        Ok(response) => response.status(),
        Err(error) => error.as_response_error().status_code(),
    };
    let duration = begun.elapsed().as_secs_f64();
    requests.durations(operation, status).observe(duration);
    log(&requests.routes[operation.0].template, status, duration);
    answer
}

/// One line of the log for each request; what it was stands in the span.
fn log(route: &str, status: StatusCode, duration: f64) {
    macro_rules! line {
        ($level:ident) => {
            tracing::event!(
                target: "tavola::requests",
                Level::$level,
                http.route = route,
                http.status_code = status.as_u16(),
                duration_ms = (duration * 1e6).round() / 1e3,
                "answered"
            )
        };
    }
    match route {
        _ if status.is_server_error() => line!(WARN),
        // What watches the server asks every few seconds.
        "/healthz" | "/readyz" => line!(DEBUG),
        _ => line!(INFO),
    }
}

/// A server of its own for the metrics, on one thread. It stops when it is told to, not by a signal.
///
/// # Errors
/// The listener cannot be used.
pub fn server(store: Store, listener: TcpListener) -> std::io::Result<Server> {
    let store = web::Data::new(store);
    let app = move || App::new().app_data(store.clone()).route("/metrics", web::get().to(scrape));
    Ok(HttpServer::new(app).listen(listener)?.workers(1).disable_signals().run())
}

/// Tells all metrics. The database is not asked.
async fn scrape(store: web::Data<Store>) -> HttpResponse {
    match store.metrics().write(store.connections()) {
        Ok(text) => HttpResponse::Ok()
            .insert_header((CONTENT_TYPE, metrics::CONTENT_TYPE))
            .insert_header((CACHE_CONTROL, "no-store"))
            .body(text),
        Err(error) => {
            tracing::error!(%error, "the metrics cannot be written");
            HttpResponse::InternalServerError().finish()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_found_by_its_path_and_nothing_else_is() {
        let (document, metrics) = (web::Data::new(Document::new()), crate::metrics::Metrics::default());
        let requests = Requests::new(document.clone(), metrics.requests);
        let labels = |method: Method, path: &str| {
            let (route, method) = requests.operation(&method, path);
            let Route { template, methods } = &requests.routes[route];
            (methods[method].0.clone(), template.clone())
        };
        for known in &document.paths {
            let template = known.segments.join("/");
            let path = template.replace(['{', '}'], "");
            for method in known.methods() {
                assert_eq!(labels(method.clone(), &path), (method.to_string(), template.clone()));
            }
            assert_eq!(labels(Method::TRACE, &path), (OTHER.to_owned(), template.clone()));
        }
        assert_eq!(labels(Method::GET, "/v1/games/export").1, "/v1/games/export");
        assert_eq!(labels(Method::GET, "/v1/games/export/events").1, "/v1/games/{id}/events");
        assert_eq!(labels(Method::HEAD, "/healthz"), ("GET".to_owned(), "/healthz".to_owned()));
        for path in ["", "/", "/v1/games/", "/v1//games", "/nothing", "/v1/games/1/moves/1/2", "/docs/index.html"] {
            assert_eq!(labels(Method::GET, path), (OTHER.to_owned(), OTHER.to_owned()), "{path}");
        }
    }
}
