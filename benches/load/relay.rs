//! How often a move waits for the database: a relay between the two counts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};

use crate::Bench;
use crate::client::Client;
use crate::players::Table;

/// Moves that are played through the relay; first some whose connections and statements are new.
const MOVES: usize = 500;
/// For how long the server is watched with nothing to do.
const IDLE: Duration = Duration::from_secs(5);

/// Round trips to the database a move, and those a second that the server makes when nothing is asked, by the messages that ask
/// the database to answer (PostgreSQL's protocol, 55.2: Sync and Query). What servers tell each other of changes, some
/// milliseconds later and many together when there are many, is with the moves.
pub async fn round_trips(bench: &Bench, tables: &mut Vec<Table>) -> anyhow::Result<(f64, f64)> {
    let url = bench.url();
    let options: sqlx::postgres::PgConnectOptions = url.parse()?;
    let socket = options.get_socket().context("the cluster listens on a socket")?.join(".s.PGSQL.5432");
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let asked = Arc::new(AtomicU64::new(0));
    let counter = asked.clone();
    let relaying = tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(server) = UnixStream::connect(&socket).await else { break };
            tokio::spawn(relay(client, server, counter.clone()));
        }
    });
    let (server, addr, _) =
        bench.serve(&format!("postgres://postgres@127.0.0.1:{port}/tavola?sslmode=disable")).await?;
    let mut client = Client::connect(addr).await?;
    let mut chance = StdRng::seed_from_u64(0);
    let count = || asked.load(Ordering::Relaxed) as f64;
    let (mut began, mut before) = (Instant::now(), 0.0);
    for number in 0..2 * MOVES {
        if number == MOVES {
            (began, before) = (Instant::now(), count());
        }
        let place = number % tables.len();
        tables[place].step(&mut client, &mut chance).await?;
        if tables[place].is_over() {
            tables.swap_remove(place);
        }
    }
    let (seconds, trips) = (began.elapsed().as_secs_f64(), count() - before);
    let before = count();
    tokio::time::sleep(IDLE).await;
    let others = (count() - before) / IDLE.as_secs_f64();
    drop(server);
    relaying.abort();
    Ok(((trips - others * seconds) / MOVES as f64, others))
}

async fn relay(client: TcpStream, server: UnixStream, asked: Arc<AtomicU64>) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
    // The first message has no type.
    let mut message = with_length(&mut from_client, Vec::new()).await?;
    loop {
        to_server.write_all(&message).await?;
        let kind = from_client.read_u8().await?;
        if matches!(kind, b'S' | b'Q') {
            asked.fetch_add(1, Ordering::Relaxed);
        }
        message = with_length(&mut from_client, vec![kind]).await?;
    }
}

/// Reads a message, whose length comes first and counts itself.
async fn with_length(from: &mut (impl AsyncRead + Unpin), mut message: Vec<u8>) -> std::io::Result<Vec<u8>> {
    let length = from.read_u32().await?;
    message.extend(length.to_be_bytes());
    let begin = message.len();
    message.resize(begin + (length as usize).saturating_sub(4), 0);
    from.read_exact(&mut message[begin..]).await?;
    Ok(message)
}
