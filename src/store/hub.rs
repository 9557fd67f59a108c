//! Who in this process waits for which game or player, and how they hear of changes: those of this process at once, those of
//! others by the workers' `LISTEN`. A lost wake-up only delays: whoever waits also looks by themselves now and then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, watch};
use uuid::Uuid;

use super::Store;
use crate::game::{Change, Game};

/// Most changes that wait to be told to other servers. What is beyond is not told: their streams then find it by looking.
const MOST_OUTGOING: usize = 10_000;

/// The meeting place of those who change and those who wait.
#[derive(Debug)]
pub(super) struct Hub {
    /// Tells this server's messages from those of others.
    pub name: Uuid,
    waiting: Mutex<HashMap<Uuid, watch::Sender<()>>>,
    outgoing: Mutex<Vec<String>>,
    /// Whether the server stops.
    closing: watch::Sender<bool>,
    /// There is something outgoing.
    pub outgoing_woken: Notify,
    /// A game has to be attended to at once.
    pub due_woken: Notify,
    /// A webhook may have something to deliver.
    pub webhooks_woken: Notify,
}

/// A place in the queue of those who wait for one game or player.
#[derive(Debug)]
pub struct Watch {
    hub: Arc<Hub>,
    id: Uuid,
    receiver: watch::Receiver<()>,
}

impl Watch {
    /// Waits until something has happened since the last time.
    pub async fn woken(&mut self) {
        // The sender lives as long as this: the error cannot be.
        let _ = self.receiver.changed().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut waiting = self.hub.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // This one still counts.
        if waiting.get(&self.id).is_some_and(|sender| sender.receiver_count() <= 1) {
            waiting.remove(&self.id);
        }
    }
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            name: Uuid::now_v7(),
            waiting: Mutex::default(),
            outgoing: Mutex::default(),
            closing: watch::Sender::new(false),
            outgoing_woken: Notify::new(),
            due_woken: Notify::new(),
            webhooks_woken: Notify::new(),
        }
    }
}

impl Hub {
    /// Wakes those who wait for a game or player.
    pub fn wake(&self, id: Uuid) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = waiting.get(&id) {
            sender.send_replace(());
        }
    }

    /// Wakes everybody: something may have been missed.
    pub fn wake_all(&self) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.values().for_each(|sender| sender.send_replace(()));
    }

    /// What is to be told to other servers, and forgets it.
    pub fn take_outgoing(&self) -> Vec<String> {
        std::mem::take(&mut *self.outgoing.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Store {
    /// Waits from now on for what happens to a game, or to a player anywhere.
    pub fn watch(&self, id: Uuid) -> Watch {
        let mut waiting = self.hub.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = waiting.entry(id).or_insert_with(|| watch::channel(()).0).subscribe();
        Watch { hub: self.hub.clone(), id, receiver }
    }

    /// Waits until it is a stream's turn to read, which it is as long as the answer lives. Changes can wake thousands of streams at
    /// once, and moves are not to queue behind them.
    pub async fn turn_to_read(&self) -> impl Sized {
        self.games().turn().await
    }

    /// Ends all streams: their readers resume at another server, or at this one once it runs again.
    pub fn close_streams(&self) {
        self.hub.closing.send_replace(true);
    }

    /// Waits until the streams are to end.
    pub fn closing(&self) -> impl Future<Output = ()> + use<> {
        let mut receiver = self.hub.closing.subscribe();
        async move {
            // The end of the sender is that of the server too.
            let _ = receiver.wait_for(|closing| *closing).await;
        }
    }

    /// Tells everybody, here and at other servers, of a change that is committed.
    pub(super) fn announce(&self, game: &Game, change: &Change) {
        self.metrics.changed(game, change);
        let seated = game.seats.iter().map(|taken| taken.player.id);
        let invited = game.invitations.iter().map(|kept| kept.player.id);
        // Who has just left, or is not invited any more, also hears of it.
        let concerned = change.happenings.iter().filter_map(|happening| happening.player);
        let mut ids: Vec<Uuid> = [game.id].into_iter().chain(seated).chain(invited).chain(concerned).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.iter().for_each(|id| self.hub.wake(*id));
        let mut outgoing = self.hub.outgoing.lock().unwrap_or_else(PoisonError::into_inner);
        if outgoing.len() < MOST_OUTGOING {
            let words = [self.hub.name].into_iter().chain(ids);
            outgoing.push(words.map(|id| id.simple().to_string()).collect::<Vec<_>>().join(" "));
        }
        drop(outgoing);
        self.hub.outgoing_woken.notify_one();
        if !game.notices(change).is_empty() {
            self.wake_webhooks();
        }
        if game.to_move.is_some() && game.player_to_move().is_none() {
            self.hub.due_woken.notify_one();
        }
    }
}
