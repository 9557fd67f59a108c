//! The randomness of games, to the bit as `docs/fairness.md` says: anyone can compute the same deal from a published seed.
//!
//! Sole source of chance in the rulesets. Nothing here draws entropy; seeds come in as arguments.

use std::sync::LazyLock;

use hmac::{Hmac, KeyInit, Mac};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};

use super::Seat;

/// SHA-256 of the server's seed: what is published when a game is created, before anything is dealt (fairness 1).
pub fn commitment(server_seed: &[u8; 32]) -> [u8; 32] {
    Sha256::digest(server_seed).into()
}

/// The seed of a game (fairness 3): HMAC-SHA256 under the server's seed over protocol, game, ruleset and every player's
/// entropy in seat order. `game_id` is the canonical lower-case form.
pub fn game_seed<'a>(
    server_seed: &[u8; 32],
    game_id: &str,
    slug: &str,
    entropies: impl IntoIterator<Item = &'a str>,
) -> [u8; 32] {
    let mut message = format!("tavola/1\n{game_id}\n{slug}");
    for entropy in entropies {
        message.push('\n');
        message.push_str(entropy);
    }
    let mut mac = Hmac::<Sha256>::new_from_slice(server_seed).expect("HMAC takes keys of any length");
    mac.update(message.as_bytes());
    mac.finalize().into_bytes().into()
}

/// All the chance of one game, as independent numbered streams.
pub struct Random {
    game_seed: LazyLock<[u8; 32], Box<dyn FnOnce() -> [u8; 32] + Send>>,
}

impl Random {
    /// The chance that follows from a game's seed.
    pub fn new(game_seed: [u8; 32]) -> Self {
        Self::later(move || game_seed)
    }

    /// The chance that follows from a game's seed, which is computed when it is first needed: by few moves.
    pub fn later(game_seed: impl FnOnce() -> [u8; 32] + Send + 'static) -> Self {
        Self { game_seed: LazyLock::new(Box::new(game_seed)) }
    }

    /// The keystream with that nonce, from its beginning (fairness 4).
    pub fn stream(&self, number: u64) -> Stream {
        let mut generator = ChaCha20Rng::from_seed(*self.game_seed);
        generator.set_stream(number);
        Stream(generator)
    }

    /// The lot (fairness 7, C2): the seat that starts; in Leopard the first dealer.
    pub fn lot(&self, seats: u8) -> Seat {
        self.stream(0).below(u32::from(seats)) as Seat
    }
}

/// One stream of random words.
pub struct Stream(ChaCha20Rng);

impl Stream {
    /// A whole number from 0 to `n` − 1, all equally likely (fairness 5); `n` must not be 0.
    pub fn below(&mut self, n: u32) -> u32 {
        // 2^32 itself needs no rejection: then every word is below the limit.
        let limit = (1u64 << 32) / u64::from(n) * u64::from(n);
        loop {
            let word = self.0.next_u32();
            if u64::from(word) < limit {
                return word % n;
            }
        }
    }

    /// Shuffles (fairness 6); the top of the shuffled deck is its first element.
    pub fn shuffle<T>(&mut self, cards: &mut [T]) {
        for i in (1..cards.len()).rev() {
            let j = self.below(i as u32 + 1) as usize;
            cards.swap(i, j);
        }
    }
}
