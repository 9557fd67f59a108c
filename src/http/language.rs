//! The language of texts: English or Russian, as the client prefers.

use actix_web::HttpRequest;
use actix_web::http::header::{AcceptLanguage, Header, Preference};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::rulesets::Text;

/// A language of the server's texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    En,
    Ru,
}

impl Language {
    /// What the client asks for by name, or else prefers by `Accept-Language`; English if it says nothing that is known.
    pub fn of_request(request: &HttpRequest, asked: Option<Language>) -> Self {
        asked.unwrap_or_else(|| {
            let preferred = AcceptLanguage::parse(request).map(|header| header.ranked()).unwrap_or_default();
            preferred.iter().find_map(Self::of_preference).unwrap_or(Language::En)
        })
    }

    fn of_preference(preference: &Preference<actix_web::http::header::LanguageTag>) -> Option<Self> {
        match preference {
            Preference::Any => Some(Language::En),
            Preference::Specific(tag) => match tag.primary_language() {
                "en" => Some(Language::En),
                "ru" => Some(Language::Ru),
                _ => None,
            },
        }
    }

    /// The language's tag.
    pub fn tag(self) -> &'static str {
        match self {
            Language::En => "en",
            Language::Ru => "ru",
        }
    }

    /// A text in this language.
    pub fn of(self, text: Text) -> &'static str {
        match self {
            Language::En => text.en,
            Language::Ru => text.ru,
        }
    }

    /// The one of two that is in this language.
    pub fn choose<T>(self, en: T, ru: T) -> T {
        match self {
            Language::En => en,
            Language::Ru => ru,
        }
    }
}
