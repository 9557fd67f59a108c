-- The first tables: who plays (players, tokens), what is played (games, seats), where each game stands (positions), and how
-- it came there (moves).
--
-- Every row of a game carries the game's id first in its primary key, and no statement of the move path touches rows of two
-- games: the schema can be spread by that column.

create table players (
    id uuid constraint players_pkey primary key,
    name text not null,
    -- What names have in common that look alike: lower case, compatibility forms and spaces folded.
    name_key text not null constraint players_name_key unique,
    kind text not null constraint players_kind_check check (kind in ('human', 'bot')),
    created_at timestamptz not null default now()
);

create table tokens (
    -- SHA-256 of the token, which itself is nowhere.
    hash bytea constraint tokens_pkey primary key constraint tokens_hash_check check (octet_length(hash) = 32),
    player_id uuid not null constraint tokens_player_fkey references players (id),
    created_at timestamptz not null default now()
);

-- What of a game changes seldom; all that lists filter by is here, so that a move need not touch these indexes.
create table games (
    id uuid constraint games_pkey primary key,
    ruleset text not null,
    rules_version integer not null,
    -- As given while the game is open; those in force, defaults written out, from its start on.
    options jsonb not null,
    seat_count smallint not null,
    status text not null
        constraint games_status_check check (status in ('open', 'active', 'finished', 'aborted')),
    creator_id uuid not null constraint games_creator_fkey references players (id),
    -- Secret until the game is over; read only to load a game.
    server_seed bytea not null constraint games_server_seed_check check (octet_length(server_seed) = 32),
    outcome jsonb,
    created_at timestamptz not null default now(),
    started_at timestamptz,
    finished_at timestamptz
);

-- Lists go by id, which is a UUIDv7: newest first is the order of creation.
create index games_status_id_index on games (status, id);
create index games_ruleset_status_id_index on games (ruleset, status, id);
create index games_ruleset_id_index on games (ruleset, id);

create table seats (
    game_id uuid not null constraint seats_game_fkey references games (id),
    seat smallint not null,
    player_id uuid not null constraint seats_player_fkey references players (id),
    entropy text not null,
    status text not null constraint seats_status_check check (status in ('playing', 'resigned')),
    constraint seats_pkey primary key (game_id, seat),
    constraint seats_game_player_key unique (game_id, player_id)
);

create index seats_player_game_index on seats (player_id, game_id);

-- Where a game stands: the row that every move rewrites, kept narrow. `version` guards all changes of the game.
create table positions (
    game_id uuid constraint positions_pkey primary key constraint positions_game_fkey references games (id),
    version integer not null,
    moves_count integer not null,
    to_move_seat smallint,
    to_move_player_id uuid,
    -- When the version came about. Never before the last one, also if the clock has been set back: the log stays in order.
    changed_at timestamptz not null,
    -- The full state in a compact format; a cache of what the log says. Null before the start.
    snapshot bytea
);

create index positions_to_move_index on positions (to_move_player_id, game_id) where to_move_player_id is not null;

-- The log, append-only: with the seed and the options it gives every past state back. No foreign key: rows are only ever
-- inserted by the statement that has just updated the game's position, and the check would lock and log the game's row
-- once more for every move.
create table moves (
    game_id uuid not null,
    number integer not null,
    version integer not null,
    seat smallint not null,
    move jsonb not null,
    events jsonb not null,
    at timestamptz not null,
    constraint moves_pkey primary key (game_id, number)
);

-- Answers to commands that were given with an Idempotency-Key, for a day.
create table idempotency_keys (
    -- The player, or nobody (all zeros) for a registration.
    player_id uuid not null,
    -- SHA-256 of the key.
    key_hash bytea not null,
    -- SHA-256 of method, path and body: the same key with another request is refused.
    request_hash bytea not null,
    -- For a move: which one. Its answer is made anew from the log, byte for byte.
    game_id uuid,
    move_number integer,
    -- For everything else: the answer itself.
    status smallint,
    headers jsonb,
    body bytea,
    created_at timestamptz not null default now(),
    constraint idempotency_keys_pkey primary key (player_id, key_hash)
);

create index idempotency_keys_created_at_index on idempotency_keys (created_at);
