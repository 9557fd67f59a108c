//! THE list of rulesets. To add a game, add its folder and one line at the end of this file.
//!
//! The macro makes the types that can hold any ruleset's state, move, event, view and options, and passes calls on to the
//! ruleset concerned. Everything outside `rulesets/` uses only these.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::random::Random;
use super::{Catalogue, EndReason, Illegal, Meta, OptionError, Outcome, Ranked, Ruleset, Seat, Viewer};

/// Why a move was refused by the rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct IllegalMove {
    /// The code of the rule, such as `P6`; none when the move is one of another ruleset.
    pub rule: Option<&'static str>,
    /// For the mover, saying nothing they may not know.
    pub detail: String,
}

/// Options that were refused: pointer into the options object (RFC 6901) and words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the options are not valid")]
pub struct InvalidOptions(pub Vec<(String, String)>);

impl From<Vec<OptionError>> for InvalidOptions {
    fn from(errors: Vec<OptionError>) -> Self {
        Self(errors.into_iter().map(|e| (format!("/{}", e.option), e.detail)).collect())
    }
}

/// The format of snapshots, their first byte. A snapshot with another one is rebuilt from the log.
const SNAPSHOT_FORMAT: u8 = 1;

/// Why a snapshot could not be read; the log can then rebuild it.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("the snapshot has another format version")]
    Format,
    #[error("the snapshot does not hold a state of this ruleset")]
    Postcard(#[from] postcard::Error),
    #[error("the snapshot's state is impossible: {0}")]
    Impossible(&'static str),
}

/// Appends an option's name to a JSON pointer, escaped (RFC 6901).
fn pointer(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Reads options as a client sent them: unknown names and wrong types are told one by one.
fn read_options<R: Ruleset>(given: &serde_json::Map<String, serde_json::Value>) -> Result<R::Options, InvalidOptions> {
    let mut errors = Vec::new();
    // Each option by itself, so that every faulty one is named; together they are read below.
    for (name, value) in given {
        let single = serde_json::Map::from_iter([(name.clone(), value.clone())]);
        if let Err(error) = serde_json::from_value::<R::Options>(single.into()) {
            errors.push((pointer(name), error.to_string()));
        }
    }
    if !errors.is_empty() {
        return Err(InvalidOptions(errors));
    }
    serde_json::from_value(given.clone().into())
        .map_err(|error| InvalidOptions(vec![(String::new(), error.to_string())]))
}

/// Reads a snapshot's body and checks that the state is possible.
fn read_snapshot<R: Ruleset>(body: &[u8]) -> Result<R::State, SnapshotError> {
    let state = postcard::from_bytes::<R::State>(body)?;
    R::check(&state).map_err(SnapshotError::Impossible)?;
    Ok(state)
}

/// Appends a state in the compact format to a snapshot.
fn write_snapshot<R: Ruleset>(state: &R::State, snapshot: Vec<u8>) -> Vec<u8> {
    postcard::to_extend(state, snapshot).expect("a state is plain data and a vector takes any length")
}

macro_rules! registry {
    ($($slug:tt => $module:ident::$name:ident),+ $(,)?) => {
        $(use super::$module;)+

        /// Which ruleset; written as its slug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
        #[schema(as = RulesetSlug)]
        pub enum RulesetId {
            $(#[serde(rename = $slug)] $name,)+
        }

        impl RulesetId {
            /// All rulesets, in the order of the list.
            pub const ALL: &'static [RulesetId] = &[$(RulesetId::$name),+];

            /// What is known of the ruleset before any game.
            pub fn meta(self) -> &'static Meta {
                match self { $(RulesetId::$name => const { &<$module::$name as Ruleset>::META },)+ }
            }

            /// The ruleset with that slug.
            pub fn from_slug(slug: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|id| id.meta().slug == slug)
            }

            /// Reads options as a client sent them and resolves them for so many players.
            ///
            /// # Errors
            /// Every option that is unknown, of the wrong type, out of range, or contradicts another.
            pub fn options(
                self,
                given: &serde_json::Map<String, serde_json::Value>,
                seats: u8,
            ) -> Result<AnyOptions, InvalidOptions> {
                match self {
                    $(RulesetId::$name => {
                        let options = read_options::<$module::$name>(given)?;
                        Ok(AnyOptions::$name($module::$name::resolve(&options, seats)?))
                    })+
                }
            }

            /// Reads a move of this ruleset.
            ///
            /// # Errors
            /// The JSON is malformed or is no move of this ruleset.
            pub fn read_move(self, json: &[u8]) -> Result<AnyMove, serde_json::Error> {
                match self { $(RulesetId::$name => serde_json::from_slice(json).map(AnyMove::$name),)+ }
            }

            /// Reads the events of a log entry, all in full.
            ///
            /// # Errors
            /// The JSON does not hold events of this ruleset.
            pub fn read_events(self, json: &str) -> Result<Vec<AnyEvent>, serde_json::Error> {
                match self {
                    $(RulesetId::$name => {
                        let events: Vec<$module::Event> = serde_json::from_str(json)?;
                        Ok(events.into_iter().map(AnyEvent::$name).collect())
                    })+
                }
            }

            /// Reads a snapshot.
            ///
            /// # Errors
            /// Another format, another ruleset's, damaged: rebuild it from the log then.
            pub fn read_snapshot(self, snapshot: &[u8]) -> Result<AnyState, SnapshotError> {
                let Some((&SNAPSHOT_FORMAT, body)) = snapshot.split_first() else { return Err(SnapshotError::Format) };
                match self {
                    $(RulesetId::$name => Ok(AnyState::$name(read_snapshot::<$module::$name>(body)?)),)+
                }
            }

            /// The codes of the cards as they are shuffled for the (first) deal, from the top.
            pub fn shuffled(self, seats: u8, random: &Random) -> Vec<&'static str> {
                match self { $(RulesetId::$name => $module::$name::shuffled(seats, random),)+ }
            }

            /// The names of the schemas of its options and of its moves in the OpenAPI document.
            pub fn schema_names(self) -> (String, String) {
                match self {
                    $(RulesetId::$name => ($module::Options::name().into_owned(), $module::Move::name().into_owned()),)+
                }
            }

            /// Every card, symbol and layout of the ruleset.
            pub fn catalogue(self) -> Catalogue {
                match self { $(RulesetId::$name => $module::$name::catalogue(),)+ }
            }
        }

        /// The options of a game: those that its ruleset knows.
        #[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
        #[serde(untagged)]
        #[schema(as = Options)]
        pub enum AnyOptions { $($name($module::Options),)+ }

        impl AnyOptions {
            /// As a JSON object.
            pub fn to_json(&self) -> serde_json::Map<String, serde_json::Value> {
                match serde_json::to_value(self) {
                    Ok(serde_json::Value::Object(object)) => object,
                    other => unreachable!("options are a struct of plain data: {other:?}"),
                }
            }

            /// Deals a game.
            pub fn deal(&self, seats: u8, random: &Random) -> AnyState {
                match self { $(AnyOptions::$name(options) => AnyState::$name($module::$name::setup(options, seats, random)),)+ }
            }
        }

        /// A move of any ruleset; which one is meant follows from the game.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
        #[serde(untagged)]
        #[schema(as = Move)]
        pub enum AnyMove { $($name($module::Move),)+ }

        impl AnyMove {
            /// The move of `seat` as `viewer` may see it in the log.
            pub fn view(&self, seat: Seat, viewer: Viewer) -> AnyMoveView {
                match self { $(AnyMove::$name(mv) => AnyMoveView::$name($module::$name::move_view(mv, seat, viewer)),)+ }
            }
        }

        /// A played move as its viewer may see it: like the move, cards that are hidden from the viewer are null.
        #[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
        #[serde(untagged)]
        #[schema(as = PlayedMove)]
        pub enum AnyMoveView { $($name($module::MoveView),)+ }

        /// Something that a move did, as its viewer may see it.
        #[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
        #[serde(untagged)]
        #[schema(as = MoveEvent)]
        pub enum AnyEvent { $($name($module::Event),)+ }

        impl AnyEvent {
            /// The event as `viewer` may see it.
            pub fn view(&self, viewer: Viewer) -> AnyEvent {
                match self { $(AnyEvent::$name(event) => AnyEvent::$name($module::$name::event_view(event, viewer)),)+ }
            }
        }

        /// The state of a game as its viewer may see it, by ruleset.
        #[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
        #[allow(clippy::large_enum_variant, reason = "one lives at a time: a box would only cost")]
        #[serde(tag = "ruleset")]
        #[schema(as = State)]
        pub enum AnyView { $(#[serde(rename = $slug)] $name($module::View),)+ }

        /// The full state of a game of any ruleset. Never leaves the server: see [`AnyState::view`].
        #[allow(clippy::large_enum_variant, reason = "one lives at a time: a box would only cost")]
        #[derive(Clone, Debug, PartialEq)]
        pub enum AnyState { $($name(<$module::$name as Ruleset>::State),)+ }

        impl AnyState {
            /// The ruleset it belongs to.
            pub fn ruleset(&self) -> RulesetId {
                match self { $(AnyState::$name(_) => RulesetId::$name,)+ }
            }

            /// The seat that must move; none exactly when the game is over.
            pub fn to_act(&self) -> Option<Seat> {
                match self { $(AnyState::$name(state) => $module::$name::to_act(state),)+ }
            }

            /// Every legal move of a seat: sorted, free of duplicates, complete; none for a waiting seat.
            pub fn legal_moves(&self, seat: Seat) -> Vec<AnyMove> {
                match self {
                    $(AnyState::$name(state) => {
                        let mut moves = Vec::new();
                        $module::$name::legal_moves(state, seat, &mut moves);
                        moves.into_iter().map(AnyMove::$name).collect()
                    })+
                }
            }

            /// Plays a move of the seat that is to act; answers what happened.
            ///
            /// # Errors
            /// A move that is not legal; the state is then untouched.
            pub fn apply(&mut self, seat: Seat, mv: &AnyMove, random: &Random) -> Result<Vec<AnyEvent>, IllegalMove> {
                match (self, mv) {
                    $((AnyState::$name(state), AnyMove::$name(mv)) => {
                        let mut events = Vec::new();
                        $module::$name::apply(state, seat, mv, random, &mut events)
                            .map_err(|e| IllegalMove { rule: Some(e.rule()), detail: e.to_string() })?;
                        Ok(events.into_iter().map(AnyEvent::$name).collect())
                    })+
                    _ => Err(IllegalMove { rule: None, detail: "this is a move of another ruleset".into() }),
                }
            }

            /// The state as `viewer` may see it.
            pub fn view(&self, viewer: Viewer) -> AnyView {
                match self { $(AnyState::$name(state) => AnyView::$name($module::$name::view(state, viewer)),)+ }
            }

            /// Why the rules ended the game; none while it goes on.
            pub fn end(&self) -> Option<EndReason> {
                match self { $(AnyState::$name(state) => $module::$name::end(state),)+ }
            }

            /// The ranking if the game ended now.
            pub fn ranking(&self) -> Vec<Ranked> {
                match self { $(AnyState::$name(state) => $module::$name::ranking(state),)+ }
            }

            /// The outcome that the rules gave it; none while it goes on.
            pub fn outcome(&self) -> Option<Outcome> {
                self.end().map(|reason| Outcome { reason, ranking: self.ranking() })
            }

            /// The state in the compact format, the format's version first.
            pub fn snapshot(&self) -> Vec<u8> {
                match self {
                    $(AnyState::$name(state) => write_snapshot::<$module::$name>(state, vec![SNAPSHOT_FORMAT]),)+
                }
            }
        }

        /// Evaluates an expression with a type name bound to the ruleset with that id.
        #[macro_export]
        macro_rules! with_ruleset {
            ($id:expr, $R:ident => $body:expr) => {
                match $id {
                    $($crate::rulesets::registry::RulesetId::$name => {
                        type $R = $crate::rulesets::$module::$name;
                        $body
                    })+
                }
            };
        }
    };
}

registry! {
    "leonardo" => leonardo::Leonardo,
    "quintis-fontis" => quintis_fontis::QuintisFontis,
    "leopard" => leopard::Leopard,
    "siggil" => siggil::Siggil,
}
