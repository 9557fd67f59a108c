//! Whole numbers however they are written: to JSON Schema, by which the document describes bodies, `2.0` and `2e0` are integers like
//! `2`. Serde takes only the last one where a type is whole, so bodies are rewritten before they are read.

use actix_web::web::Bytes;

/// Beyond this a float no longer tells neighbouring whole numbers apart; no operation takes such large ones.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// JSON in which every number that is whole is written without a point and without an exponent. What is no JSON comes back as no
/// JSON.
pub fn normalise(json: Bytes) -> Bytes {
    let (mut rest, mut whole): (&[u8], Option<Vec<u8>>) = (&json, None);
    let mut kept = 0;
    while let Some(byte) = rest.first() {
        let at = json.len() - rest.len();
        let length = match byte {
            b'"' => text_length(rest),
            b'-' | b'0'..=b'9' => number_length(rest),
            _ => 1,
        };
        let (token, after) = rest.split_at(length);
        if *byte != b'"'
            && let Some(number) = rewritten(token)
        {
            let whole = whole.get_or_insert_with(Vec::new);
            whole.extend_from_slice(&json[kept..at]);
            whole.extend_from_slice(number.as_bytes());
            kept = at + length;
        }
        rest = after;
    }
    match whole {
        None => json,
        Some(mut whole) => {
            whole.extend_from_slice(&json[kept..]);
            whole.into()
        }
    }
}

/// How many bytes the text is long that begins here, quotes included; all that is left if it does not end.
fn text_length(json: &[u8]) -> usize {
    let mut escaped = false;
    for (place, byte) in json.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return place + 1,
            _ => {}
        }
    }
    json.len()
}

fn number_length(json: &[u8]) -> usize {
    let is_part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
    json.iter().position(|byte| !is_part(byte)).unwrap_or(json.len())
}

/// A number in its plain form, if it has another one and is whole.
fn rewritten(token: &[u8]) -> Option<String> {
    if !token.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return None;
    }
    let number: f64 = serde_json::from_slice(token).ok()?;
    (number.fract() == 0.0 && number.abs() <= EXACT).then(|| format!("{}", number as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_written_plainly_and_nothing_else_changes() {
        for (json, plain) in [
            (r#"{"seats": 2.0}"#, r#"{"seats": 2}"#),
            (r#"[2e0,-0.0,1.50e1, 13128.0 ,2E+1,7]"#, "[2,0,15, 13128 ,20,7]"),
            (
                r#"{"2.0": "2.0 \" 3.0", "a": [1.5, 2.25e1, 1e400, 1e300]}"#,
                r#"{"2.0": "2.0 \" 3.0", "a": [1.5, 2.25e1, 1e400, 1e300]}"#,
            ),
            (r#"{"n": 1.}"#, r#"{"n": 1.}"#),
            (r#"{"n": 1.0.0, "m": 01.0}"#, r#"{"n": 1.0.0, "m": 01.0}"#),
            (r#""2.0\"#, r#""2.0\"#),
            ("", ""),
            ("1.0", "1"),
        ] {
            assert_eq!(normalise(Bytes::from_static(json.as_bytes())), plain, "{json}");
        }
    }
}
