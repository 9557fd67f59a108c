//! When a delivery that failed is tried again.

use std::time::{Duration, SystemTime};

/// How long to wait after the first failed attempt, the second and so on, in seconds; after the last of them it stays so. With the
/// attempt that the store adds when a day is over these are eleven to thirteen, as the jitter falls.
const DELAYS: [u64; 10] = [5, 30, 120, 600, 1_800, 3_600, 2 * 3_600, 4 * 3_600, 6 * 3_600, 8 * 3_600];

/// How long to wait after the failed attempt of that number, counted from 1. `random`, from 0 to 1, moves it by up to a fifth
/// either way, so that what failed together does not come back together.
pub fn delay(attempt: u32, random: f64) -> Duration {
    let place = (attempt.max(1) as usize - 1).min(DELAYS.len() - 1);
    Duration::from_secs(DELAYS[place]).mul_f64(0.8 + 0.4 * random.clamp(0.0, 1.0))
}

/// How long a receiver asks to be left alone by `Retry-After`: seconds, or a date of HTTP. None if it cannot be read.
pub fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More than fits is for ever.
        return Some(Duration::from_secs(value.parse::<u32>().unwrap_or(u32::MAX).into()));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_and_stay_within_their_jitter() {
        assert_eq!(delay(1, 0.0), Duration::from_secs(4));
        assert_eq!(delay(1, 0.5), Duration::from_secs(5));
        assert_eq!(delay(1, 1.0), Duration::from_secs(6));
        for attempt in 1..10 {
            assert!(delay(attempt, 0.5) < delay(attempt + 1, 0.5), "{attempt}");
        }
        assert_eq!(delay(10, 0.5), Duration::from_secs(8 * 3_600));
        assert_eq!(delay(u32::MAX, 0.5), delay(10, 0.5));
        assert_eq!(delay(0, 0.5), delay(1, 0.5));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Mon, 30 Nov 2026 12:00:00 GMT").unwrap();
        let wait = |value: &str| retry_after(value, now).map(|wait| wait.as_secs());
        assert_eq!(wait("120"), Some(120));
        assert_eq!(wait(" 0 "), Some(0));
        assert_eq!(wait("99999999999999999999"), Some(u64::from(u32::MAX)));
        assert_eq!(wait("Mon, 30 Nov 2026 12:10:00 GMT"), Some(600));
        assert_eq!(wait("Mon, 30 Nov 2026 11:00:00 GMT"), Some(0), "a time that has passed");
        for value in ["", "-5", "1.5", "+5", "soon", "2026-11-30T12:00:00Z"] {
            assert_eq!(wait(value), None, "{value}");
        }
    }
}
