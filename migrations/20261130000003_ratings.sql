-- Ratings of players, what each rated game did to them, and accounts that are deleted.
--
-- Both are expansions: a server of the release before knows of no rated games, and of no deleted accounts.

-- When the account was deleted; its name is then one that tells nobody's, and its tokens are gone.
alter table players
    add column deleted_at timestamptz,
    -- When nothing of the account was left in games that are not over.
    add column settled_at timestamptz;

create index players_unsettled_index on players (deleted_at) where deleted_at is not null and settled_at is null;

-- What a player has now, for each ruleset in the pool of their kind.
create table ratings (
    player_id uuid not null constraint ratings_player_fkey references players (id),
    ruleset text not null,
    pool text not null constraint ratings_pool_check check (pool in ('human', 'bot')),
    rating double precision not null,
    deviation double precision not null,
    games_count integer not null,
    -- What leaderboards are in order of.
    ordinal double precision not null generated always as (rating - 3::double precision * deviation) stored,
    -- False for deleted accounts.
    listed boolean not null default true,
    constraint ratings_pkey primary key (player_id, ruleset, pool)
);

-- All that a leaderboard sorts and counts by.
create index ratings_leaderboard_index on ratings (ruleset, pool, ordinal, player_id) where listed;

-- The order in which rated games were counted, as far as they have players in common: taken while the rows of `ratings` are
-- locked.
create sequence rating_numbers;

-- What each rated game did, one row a seat; written once, by the transaction that finishes the game.
create table rating_changes (
    game_id uuid not null,
    seat smallint not null,
    player_id uuid not null constraint rating_changes_player_fkey references players (id),
    ruleset text not null,
    pool text not null constraint rating_changes_pool_check check (pool in ('human', 'bot')),
    -- The same for all seats of a game.
    number bigint not null,
    rank smallint not null,
    rating_before double precision not null,
    deviation_before double precision not null,
    rating_after double precision not null,
    deviation_after double precision not null,
    at timestamptz not null,
    constraint rating_changes_pkey primary key (game_id, seat),
    constraint rating_changes_number_key unique (number, seat)
);

create index rating_changes_player_index on rating_changes (player_id, number);
create index rating_changes_player_ruleset_index on rating_changes (player_id, ruleset, number);
