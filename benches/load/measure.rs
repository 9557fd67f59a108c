//! What a measurement used: processors, log of the database, transactions.

use std::collections::BTreeSet;
use std::fs;

use anyhow::Context;
use sqlx::PgPool;

/// What was used between two instants.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// Seconds of the server's processes.
    pub server_cpu: f64,
    /// Seconds of all of PostgreSQL's processes.
    pub database_cpu: f64,
    pub wal_bytes: f64,
    /// Transactions that wrote.
    pub commits: f64,
}

/// The beginning of a measurement.
pub struct Watch {
    server: Option<u32>,
    postmaster: u32,
    then: [f64; 4],
}

impl Watch {
    /// Begins one; `server` is the process whose time counts.
    pub async fn begin(pool: &PgPool, server: Option<u32>) -> anyhow::Result<Self> {
        let dir: String = sqlx::query_scalar("show data_directory").fetch_one(pool).await?;
        let pid = fs::read_to_string(format!("{dir}/postmaster.pid"))?;
        let postmaster = pid.lines().next().context("no pid of PostgreSQL")?.trim().parse()?;
        let then = Self::read(pool, server, postmaster).await?;
        Ok(Self { server, postmaster, then })
    }

    /// Ends it.
    pub async fn end(self, pool: &PgPool) -> anyhow::Result<Used> {
        let now = Self::read(pool, self.server, self.postmaster).await?;
        let used = |place: usize| now[place] - self.then[place];
        Ok(Used { server_cpu: used(0), database_cpu: used(1), wal_bytes: used(2), commits: used(3) })
    }

    async fn read(pool: &PgPool, server: Option<u32>, postmaster: u32) -> anyhow::Result<[f64; 4]> {
        let (wal, xid): (f64, f64) = sqlx::query_as(
            "select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8,
                    pg_snapshot_xmax(pg_current_snapshot())::text::float8",
        )
        .fetch_one(pool)
        .await?;
        let server = server.map_or(Ok(0.0), |pid| processor_time(pid, false))?;
        Ok([server, tree_time(postmaster)?, wal, xid])
    }
}

/// Seconds of user and system time that a process has used; with `ended`, those of its ended children too.
fn processor_time(pid: u32, ended: bool) -> anyhow::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = fields.get(11..if ended { 15 } else { 13 }).context("/proc tells less than it should")?;
    let ticks: f64 = ticks.iter().map(|ticks| ticks.parse::<f64>()).sum::<Result<f64, _>>()?;
    // USER_HZ, which is the same wherever Linux runs.
    Ok(ticks / 100.0)
}

/// Seconds that a process and its children have used, also those that have ended.
fn tree_time(parent: u32) -> anyhow::Result<f64> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))?;
    let children: BTreeSet<u32> = children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    // One that has just ended counts for its parent.
    let living: f64 = children.into_iter().filter_map(|pid| processor_time(pid, false).ok()).sum();
    Ok(processor_time(parent, true)? + living)
}

/// Resident megabytes of a process: now, and the most there ever were.
pub fn memory(pid: u32) -> anyhow::Result<(f64, f64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let value = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|text| text.parse::<f64>().ok());
        kilobytes.map(|kilobytes| kilobytes / 1024.0).with_context(|| format!("/proc does not tell {name}"))
    };
    Ok((value("VmRSS:")?, value("VmHWM:")?))
}

/// The value below which a share of sorted values lies.
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}
