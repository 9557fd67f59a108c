//! Reading requests: bodies, parameters and headers, each refused as a problem if it cannot be read.

use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::http::header::{self, HeaderMap, HeaderName};
use actix_web::{FromRequest, HttpRequest, web};
use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_path_to_error::Segment;
use uuid::Uuid;

use super::problem::{Code, Problem, plain};
use super::stream::Form;
use super::whole;
use crate::store::IdempotencyKey;

/// Largest body of a request, in bytes.
pub const BODY_LIMIT: usize = 64 * 1024;

/// A JSON body as it came but for [`whole`] numbers, with the key under which the client sent it.
pub struct RawBody {
    pub bytes: web::Bytes,
    /// The client's Idempotency-Key as text, and what makes it one of this request.
    pub key: Option<(String, IdempotencyKey)>,
}

/// A JSON body that was read.
pub struct Body<T> {
    pub value: T,
    /// As in [`RawBody`].
    pub key: Option<(String, IdempotencyKey)>,
}

impl RawBody {
    /// The key, for the store.
    pub fn idempotency_key(&self) -> Option<&IdempotencyKey> {
        self.key.as_ref().map(|(_, key)| key)
    }

    /// Refuses a body that is not JSON, if there is one.
    ///
    /// # Errors
    /// It is not JSON.
    pub fn check(&self) -> Result<(), Problem> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let checked: Result<IgnoredAny, _> = serde_json::from_slice(&self.bytes);
        checked.map(|_| ()).map_err(|error| Problem::field("", plain(&error)))
    }
}

impl<T> Body<T> {
    /// The key, for the store.
    pub fn idempotency_key(&self) -> Option<&IdempotencyKey> {
        self.key.as_ref().map(|(_, key)| key)
    }
}

impl FromRequest for RawBody {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        let bytes = web::Bytes::from_request(&request, payload);
        Box::pin(async move {
            let bytes = bytes.await.map_err(|error| match error.as_error::<PayloadError>() {
                Some(PayloadError::Overflow) => Problem::new(Code::BodyTooLarge, "a body has at most 64 KiB"),
                Some(PayloadError::EncodingCorrupted) => {
                    Problem::new(Code::InvalidBody, "the content coding is damaged")
                }
                _ => Problem::new(Code::InvalidBody, "the body did not arrive whole"),
            })?;
            if !bytes.is_empty() && !is_json(request.headers()) {
                return Err(Problem::new(Code::UnsupportedMediaType, "send Content-Type: application/json"));
            }
            // The key is of the request as it was sent.
            let key = idempotency_key(&request, &bytes)?;
            Ok(RawBody { bytes: whole::normalise(bytes), key })
        })
    }
}

impl<T: DeserializeOwned + 'static> FromRequest for Body<T> {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let raw = RawBody::from_request(request, payload);
        Box::pin(async move {
            let RawBody { bytes, key } = raw.await?;
            // Nothing at all means an object without fields.
            let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
            object(text)?;
            let mut reader = serde_json::Deserializer::from_slice(text);
            let value = serde_path_to_error::deserialize(&mut reader)
                .map_err(|error| Problem::field(pointer(error.path()), plain(error.inner())))?;
            reader.end().map_err(|error| Problem::field("", plain(&error)))?;
            Ok(Body { value, key })
        })
    }
}

/// A place in a body as a JSON pointer (RFC 6901).
fn pointer(path: &serde_path_to_error::Path) -> String {
    let segments = path.iter().map(|segment| match segment {
        // Written out it would be `[1]`.
        Segment::Seq { index } => index.to_string(),
        other => other.to_string().replace('~', "~0").replace('/', "~1"),
    });
    segments.fold(String::new(), |path, segment| format!("{path}/{segment}"))
}

/// Refuses what cannot be a JSON object. Serde would also take an array with the fields in their order, which no operation
/// describes.
///
/// # Errors
/// The text does not begin as an object does.
pub fn object(text: &[u8]) -> Result<(), Problem> {
    match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => Ok(()),
        _ => Err(Problem::field("", "the body is not a JSON object")),
    }
}

/// A whole number without a sign, which Rust would take.
fn digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

fn idempotency_key(request: &HttpRequest, body: &[u8]) -> Result<Option<(String, IdempotencyKey)>, Problem> {
    let Some(value) = request.headers().get("idempotency-key") else { return Ok(None) };
    // A tab would be text too.
    let text = value.to_str().ok().filter(|text| !text.contains('\t')).unwrap_or_default();
    if !(1..=255).contains(&text.len()) {
        return Err(Problem::parameter("Idempotency-Key", "a key has 1 to 255 visible ASCII characters"));
    }
    let key = IdempotencyKey::new(text, request.method().as_str(), request.path(), body);
    Ok(Some((text.to_owned(), key)))
}

/// The version that `If-Match` expects; none if there is no such header or it is `*`.
pub struct IfMatch(pub Option<u32>);

impl FromRequest for IfMatch {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(if_match(request.headers()).map(IfMatch))
    }
}

fn if_match(headers: &HeaderMap) -> Result<Option<u32>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let version = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match version.filter(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())) {
        // No game comes to that many versions, so it matches none.
        Some(digits) => Ok(Some(digits.parse().unwrap_or(u32::MAX))),
        None => Err(Problem::parameter("If-Match", "send the version as the ETag has it, such as \"17\", or *")),
    }
}

/// The entity tag of a version.
pub fn etag(version: u32) -> String {
    format!("\"{version}\"")
}

/// Whether `If-None-Match` names this version (weak comparison, RFC 9110).
pub fn none_match(request: &HttpRequest, version: u32) -> bool {
    let tags = request.headers().get_all(HeaderName::from_static("if-none-match"));
    let tag = etag(version);
    tags.filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|known| known == "*" || known.trim_start_matches("W/") == tag)
}

/// The parameters of a query, each at most once and none unknown.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned> FromRequest for Params<T> {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(params(request.query_string()).map(Params))
    }
}

fn params<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    typed(pairs(query)?)
}

/// The parameters of a query as they are, each at most once.
///
/// # Errors
/// The query cannot be read, or a parameter is given twice.
pub fn pairs(query: &str) -> Result<serde_json::Map<String, serde_json::Value>, Problem> {
    let pairs: Vec<(String, String)> =
        serde_urlencoded::from_str(query).map_err(|_| Problem::parameter("query", "the query cannot be read"))?;
    let mut object = serde_json::Map::new();
    for (name, value) in pairs {
        if object.insert(name.clone(), value.into()).is_some() {
            return Err(Problem::parameter(&name, "the parameter is given twice"));
        }
    }
    Ok(object)
}

/// The parameters of a query, none unknown.
///
/// # Errors
/// One is unknown or cannot be read.
pub fn typed<T: DeserializeOwned>(pairs: serde_json::Map<String, serde_json::Value>) -> Result<T, Problem> {
    serde_path_to_error::deserialize(serde_json::Value::Object(pairs)).map_err(|error| {
        let name = error.path().to_string();
        Problem::parameter(if name == "." { "query" } else { &name }, plain(error.inner()))
    })
}

/// A number from the query, within its bounds.
///
/// # Errors
/// It is none, or out of bounds.
pub fn number<'de, D: Deserializer<'de>>(
    deserializer: D,
    bounds: std::ops::RangeInclusive<u32>,
) -> Result<u32, D::Error> {
    let text = String::deserialize(deserializer)?;
    let number = digits::<u32>(&text).filter(|number| bounds.contains(number));
    number.ok_or_else(|| D::Error::custom(format!("a whole number from {} to {}", bounds.start(), bounds.end())))
}

/// How many items a page has: 1 to 100, 20 unless it is said.
#[derive(Clone, Copy, Debug)]
pub struct Limit(pub u32);

impl Default for Limit {
    fn default() -> Self {
        Limit(20)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        number(deserializer, 1..=100).map(Limit)
    }
}

/// The last event that the reader of a stream has, as browsers tell it.
pub fn last_event_id(request: &HttpRequest, form: Form) -> Option<String> {
    let value = request.headers().get("last-event-id").filter(|_| form != Form::Page)?;
    // What is no text is the place of no log.
    Some(value.to_str().unwrap_or("?").to_owned()).filter(|id| !id.is_empty())
}

/// A number in a numbered list, from 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct After(pub u32);

impl<'de> Deserialize<'de> for After {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        number(deserializer, 0..=i32::MAX as u32).map(After)
    }
}

/// An id in a path.
pub struct Id(pub Uuid);

impl FromRequest for Id {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let text = request.match_info().get("id").unwrap_or_default();
        std::future::ready(id(text).map(Id).ok_or_else(|| Problem::parameter("id", "an id is a UUID")))
    }
}

/// The id of a delivery in a path.
pub struct DeliveryId(pub Uuid);

impl FromRequest for DeliveryId {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let text = request.match_info().get("delivery").unwrap_or_default();
        std::future::ready(id(text).map(DeliveryId).ok_or_else(|| Problem::parameter("delivery", "an id is a UUID")))
    }
}

/// A UUID in its usual form of 36 characters.
pub fn id(text: &str) -> Option<Uuid> {
    Uuid::try_parse(text).ok().filter(|_| text.len() == 36)
}

/// The number of a move in a path.
pub struct Number(pub u32);

impl FromRequest for Number {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let number = request.match_info().get("number").and_then(digits);
        let number = number.filter(|number| *number <= i32::MAX as u32);
        let refused = || Problem::parameter("number", "a whole number from 0 to 2147483647");
        std::future::ready(number.map(Number).ok_or_else(refused))
    }
}
