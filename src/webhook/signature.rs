//! Signatures by the Standard Webhooks specification: HMAC-SHA256 over id, time and body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::Uuid;

/// What a webhook and its receiver share: 32 random bytes. Prints nothing of itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl Secret {
    /// As receivers are told it.
    pub fn to_text(&self) -> String {
        format!("whsec_{}", STANDARD.encode(self.0))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(secret)")
    }
}

/// The value of `webhook-signature`: one signature for each secret, by spaces. `timestamp` is that of `webhook-timestamp`, in
/// seconds since 1970.
pub fn sign(secrets: &[Secret], id: Uuid, timestamp: i64, body: &[u8]) -> String {
    let signatures = secrets.iter().map(|secret| {
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0).expect("HMAC takes keys of any length");
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    });
    signatures.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with Python's hmac and base64 modules.
    #[test]
    fn a_signature_is_as_others_compute_it() {
        let (old, new) = (Secret([7; 32]), Secret(std::array::from_fn(|i| i as u8)));
        assert_eq!(new.to_text(), "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
        let id = Uuid::from_u128(0x0193_a2f1_0b52_7c44_9d21_0000_0000_0007);
        let signed = sign(&[new.clone(), old.clone()], id, 1_795_977_000, br#"{"type":"ping"}"#);
        let (first, second) =
            (sign(&[new], id, 1_795_977_000, br#"{"type":"ping"}"#), "v1,rMyalocRIk1JyJUSeVnSuODXBN9IzeTNSF3Y1bt0NSc=");
        assert_eq!(first, "v1,CNltdgozwLvfijf3TAaDR70YqpjFQu8BhPlJDwIRkt8=");
        assert_eq!(signed, format!("{first} {second}"));
    }

    #[test]
    fn a_secret_prints_nothing_of_itself() {
        assert_eq!(format!("{:?}", Secret([7; 32])), "Secret(secret)");
    }
}
