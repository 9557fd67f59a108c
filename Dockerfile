# syntax=docker/dockerfile:1
# The server without PostgreSQL: it takes DATABASE_URL (see docker-compose.yml), as a container should hold one thing.

FROM rust:1.95-slim-bookworm AS build
# The allocator is built with make.
RUN apt-get update && apt-get install -y --no-install-recommends make && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# The queries are checked against .sqlx: no database is needed to build. The caches live outside the image, so that a
# change of our code does not compile the dependencies again.
ENV SQLX_OFFLINE=true CARGO_INCREMENTAL=0
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --profile dist --locked --bin tavola \
    && install -m 755 target/dist/tavola /usr/local/bin/tavola

FROM debian:bookworm-slim
# Certificates, for databases that are reached by TLS.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /usr/local/bin/tavola /usr/local/bin/tavola
COPY LICENSE-MIT LICENSE-APACHE /usr/share/doc/tavola/

# A number, so that a cluster can see that it is not root's. Nothing is written to the file system.
USER 10001:10001
WORKDIR /
ENV TAVOLA_ADDR=0.0.0.0:8080
# Metrics are told if TAVOLA_METRICS_ADDR says where, which is for a network of the operator's own.
EXPOSE 8080

# Bash opens the connection itself, which spares an HTTP client in the image.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /readyz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3 && read -r -u 3 _ status _ && [ \"$status\" = 200 ]"]

ENTRYPOINT ["tavola"]
CMD ["serve"]
