-- Statistics of players and of rulesets, counted as games finish, so that asking for them reads no games.
--
-- They are counted by workers, some moments later: done by the transaction that finishes a game, every game that ends would wait
-- for the others that end. That transaction only queues the game. Whatever is here follows from `games` and `seats`, and
-- `tavola rebuild-stats` makes it anew; a game that a server of the release before finishes beside this schema is not queued and
-- waits for that.
--
-- No foreign keys: all ids come from rows that have them, and to check them again would be most of the work.

-- Games that are finished and not in the statistics yet.
create table uncounted_games (
    game_id uuid constraint uncounted_games_pkey primary key
);

insert into uncounted_games (game_id) select id from games where status = 'finished';

-- A player's finished games: how many, how they went, in how many the player left before the end, and the moves of all seats in them.
create table player_statistics (
    player_id uuid not null,
    visibility text not null,
    ruleset text not null,
    seat_count smallint not null,
    -- The first day of the month, in UTC, in which they finished.
    month date not null,
    games bigint not null,
    won bigint not null,
    lost bigint not null,
    shared bigint not null,
    times_left bigint not null,
    moves bigint not null,
    constraint player_statistics_pkey primary key (player_id, visibility, ruleset, seat_count, month)
);

-- The same by opponent, of whom most players have few games: the most frequent ones are found by adding up one player's rows.
create table opponent_statistics (
    player_id uuid not null,
    opponent_id uuid not null,
    visibility text not null,
    ruleset text not null,
    games integer not null,
    won integer not null,
    lost integer not null,
    shared integer not null,
    times_left integer not null,
    moves bigint not null,
    constraint opponent_statistics_pkey primary key (player_id, opponent_id, visibility, ruleset)
);

-- The public finished games of a ruleset.
create table ruleset_statistics (
    ruleset text not null,
    seat_count smallint not null,
    end_reason text not null,
    games bigint not null,
    -- Those of two or more that one seat alone has won, and of them those that the seat that moved first has.
    decided bigint not null,
    first_won bigint not null,
    constraint ruleset_statistics_pkey primary key (ruleset, seat_count, end_reason)
);

-- How often each value occurred in those games.
create table ruleset_histograms (
    ruleset text not null,
    seat_count smallint not null,
    -- Of what: `moves` of a game, `score` of a seat.
    kind text not null constraint ruleset_histograms_kind_check check (kind in ('moves', 'score')),
    value integer not null,
    count bigint not null,
    constraint ruleset_histograms_pkey primary key (ruleset, seat_count, kind, value)
);
