//! What a conditional read costs at the least: an actix handler and one SELECT by primary key, nothing else.

use std::net::SocketAddr;

use actix_web::http::header;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use uuid::Uuid;

use crate::CONNECTIONS;

/// Serves until it is killed.
pub fn serve(addr: SocketAddr, database: &str) -> anyhow::Result<()> {
    actix_web::rt::System::new().block_on(async {
        let pool =
            PgPoolOptions::new().max_connections(CONNECTIONS).test_before_acquire(false).connect(database).await?;
        let pool = web::Data::new(pool);
        HttpServer::new(move || {
            App::new()
                .app_data(pool.clone())
                .route("/readyz", web::get().to(HttpResponse::Ok))
                .route("/v1/games/{id}", web::get().to(read))
        })
        .bind(addr)?
        .run()
        .await?;
        Ok(())
    })
}

async fn read(request: HttpRequest, pool: web::Data<PgPool>, id: web::Path<Uuid>) -> HttpResponse {
    let row: Result<(i32, Option<Vec<u8>>), _> =
        sqlx::query_as("select version, snapshot from positions where game_id = $1")
            .bind(id.into_inner())
            .fetch_one(&**pool)
            .await;
    let Ok((version, snapshot)) = row else { return HttpResponse::NotFound().finish() };
    let etag = format!("\"{version}\"");
    if request.headers().get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == etag.as_bytes()) {
        return HttpResponse::NotModified().insert_header((header::ETAG, etag)).finish();
    }
    HttpResponse::Ok().insert_header((header::ETAG, etag)).body(snapshot.unwrap_or_default())
}
