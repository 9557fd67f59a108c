//! Small values with a text code (cards, symbols): the code in JSON, one byte in snapshots.

/// Defines a one-byte type whose values have the given codes, in catalogue order. It orders, counts and prints by that
/// order, is written as its code where people read (JSON) and as a byte elsewhere, and its schema is the list of codes.
macro_rules! coded {
    ($(#[$doc:meta])* $name:ident, schema $schema:literal, [$($code:literal),+ $(,)?]) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(u8);

        impl $name {
            /// The codes of all values, in catalogue order.
            pub const CODES: &'static [&'static str] = &[$($code),+];
            /// How many values there are.
            pub const COUNT: usize = Self::CODES.len();

            /// The value at a place of the catalogue order; `index` must be below [`Self::COUNT`].
            pub const fn at(index: usize) -> Self {
                assert!(index < Self::COUNT);
                Self(index as u8)
            }

            /// Place in the catalogue order.
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// Every value, in catalogue order.
            pub fn all() -> impl Iterator<Item = Self> {
                (0..Self::COUNT).map(Self::at)
            }

            /// The text code.
            pub const fn code(self) -> &'static str {
                Self::CODES[self.0 as usize]
            }

            /// The value with that code, if there is one.
            pub fn from_code(code: &str) -> Option<Self> {
                Self::CODES.iter().position(|known| *known == code).map(Self::at)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.code())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.code())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.serialize_str(self.code())
                } else {
                    serializer.serialize_u8(self.0)
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::Error;
                if deserializer.is_human_readable() {
                    let code = std::borrow::Cow::<str>::deserialize(deserializer)?;
                    Self::from_code(&code).ok_or_else(|| D::Error::unknown_variant(&code, Self::CODES))
                } else {
                    let index = u8::deserialize(deserializer)?;
                    if usize::from(index) < Self::COUNT {
                        Ok(Self(index))
                    } else {
                        Err(D::Error::custom(concat!("no such ", $schema)))
                    }
                }
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::schema::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .enum_values(Some(Self::CODES.iter().copied()))
                    .description(Some([$($crate::rulesets::coded::doc_text(stringify!($doc))),*].concat()))
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed($schema)
            }
        }
    };
}

/// The words of a doc comment, from the attribute that it is turned into.
pub(crate) fn doc_text(attribute: &str) -> String {
    // As a token it looks like `doc = r" words"`, spread over lines or not.
    let text = attribute.trim_start_matches("doc").trim_start_matches(|c: char| c.is_whitespace() || "=r#".contains(c));
    text.trim_matches(['"', '#']).trim().replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_doc_comment_becomes_the_schemas_description() {
        let schema = serde_json::to_value(<crate::rulesets::cards::Card as utoipa::PartialSchema>::schema()).unwrap();
        assert_eq!(schema["description"], "A card face: an upper and a lower symbol (L1).");
    }
}
