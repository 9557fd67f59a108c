-- Asynchronous play: clocks, leavers, invitations, one log of everything that happens, webhooks, tokens with scopes.
--
-- A server of the release before can go on beside this schema: all new columns have defaults.

-- How a game may be found and watched, its clock, and the game that follows it.
alter table games
    add column visibility text not null default 'public'
        constraint games_visibility_check check (visibility in ('public', 'private')),
    add column spectators text not null default 'live'
        constraint games_spectators_check check (spectators in ('live', 'after_end')),
    add column clock jsonb,
    -- Whoever knows it may see a private game and take a seat. Only the creator is shown it; null once revoked.
    add column invite text constraint games_invite_key unique,
    add column rematch_id uuid;

-- An invitation is a seat that is kept for somebody until `expires_at`. A seat that was left is played by a bot;
-- `left_at_version` is the order of leaving.
alter table seats
    drop constraint seats_status_check,
    add constraint seats_status_check check (status in ('playing', 'resigned', 'timed_out', 'invited')),
    add column left_at_version integer,
    add column wants_abort boolean not null default false,
    add column expires_at timestamptz,
    -- When the last thing happened in a game that is over; null until then. With it the few games in which something can
    -- still happen are found among all that a player ever played.
    add column over_at timestamptz;

update seats s set over_at = p.changed_at
from games g join positions p on p.game_id = g.id
where g.id = s.game_id and g.status in ('finished', 'aborted');

create index seats_player_over_at_index on seats (player_id, over_at);
create index seats_expires_at_index on seats (expires_at) where expires_at is not null;
create index seats_invitations_index on seats (player_id, expires_at, game_id) where status = 'invited';

alter table positions
    add column to_move_since timestamptz,
    -- When the server has to act: the deadline of the player to move, or at once where a bot plays for a leaver.
    add column due_at timestamptz,
    -- What each seat has left on a clock with a bank, as of the beginning of the present turn.
    add column remaining_ms bigint[],
    -- The transaction of the last change. A snapshot of transactions then tells exactly what a reader has seen, whatever the
    -- order of commits (`docs/decisions/0008-cursors-are-snapshots.md`).
    add column xid xid8 not null default pg_current_xact_id();

update positions set to_move_since = changed_at where to_move_seat is not null;

create index positions_due_at_index on positions (due_at) where due_at is not null;
-- The games that wait for a player, the nearest deadline first.
create index positions_turns_index on positions (to_move_player_id, (coalesce(due_at, 'infinity'::timestamptz)), game_id)
    where to_move_player_id is not null;
drop index positions_to_move_index;

-- What followed from each move, so that a past view needs no later row.
alter table moves
    add column to_move_seat smallint,
    add column due_at timestamptz,
    add column remaining_ms bigint[],
    add column xid xid8 not null default pg_current_xact_id();

-- Of the moves that there are: whoever moved next, or is to.
update moves m set to_move_seat = coalesce(
    (select n.seat from moves n where n.game_id = m.game_id and n.number = m.number + 1),
    (select p.to_move_seat from positions p where p.game_id = m.game_id and p.moves_count = m.number));

-- Everything visible that happens to a game besides its moves; with those, the one log of events. A version can have several:
-- the last player joins and the game starts.
create table game_events (
    game_id uuid not null,
    version integer not null,
    index smallint not null,
    type text not null,
    -- Whom it concerns, if anybody.
    seat smallint,
    player_id uuid,
    -- The game as it was then, all but the table and what is secret; players by their ids, names are those of today.
    facts jsonb not null,
    at timestamptz not null,
    xid xid8 not null default pg_current_xact_id(),
    constraint game_events_pkey primary key (game_id, version, index)
);

create index game_events_player_index on game_events (player_id, at) where player_id is not null;

-- What happens to an account, not in a game.
create table account_events (
    player_id uuid not null constraint account_events_player_fkey references players (id),
    id bigint not null generated always as identity,
    type text not null,
    webhook_id uuid,
    at timestamptz not null default now(),
    xid xid8 not null default pg_current_xact_id(),
    constraint account_events_pkey primary key (player_id, id)
);

-- One row: the last sign of life of any server.
create table heartbeats (
    id boolean constraint heartbeats_pkey primary key default true constraint heartbeats_one_check check (id),
    at timestamptz not null
);

insert into heartbeats (at) values (now());

-- The time that clocks have come to: now, or, after a time in which no server ran and which has not been given back yet, the
-- last sign of life.
create function clock_time() returns timestamptz language sql stable as $$
    select case when at < now() - interval '10 seconds' then at else now() end from heartbeats
$$;

alter table tokens
    add column id uuid not null default gen_random_uuid() constraint tokens_id_key unique,
    add column name text not null default 'registration',
    add column scopes text[] not null default '{read,play,manage}'
        constraint tokens_scopes_check check (scopes <@ '{read,play,manage}' and scopes <> '{}'),
    -- Null: never.
    add column expires_at timestamptz;

create index tokens_player_index on tokens (player_id, id);
create index tokens_expires_at_index on tokens (expires_at) where expires_at is not null;

create table webhooks (
    id uuid constraint webhooks_pkey primary key,
    player_id uuid not null constraint webhooks_player_fkey references players (id),
    url text not null,
    secret bytea not null,
    -- The secret before the last rotation, valid until then.
    old_secret bytea,
    old_secret_until timestamptz,
    created_at timestamptz not null default now(),
    -- Since when nothing has been delivered although it was tried.
    failing_since timestamptz,
    disabled_at timestamptz,
    constraint webhooks_player_url_key unique (player_id, url)
);

create index webhooks_player_index on webhooks (player_id, id);

-- What is to be told, written by the transaction that makes it true. The id is the `webhook-id`: a receiver that gets it twice,
-- because an answer was lost, knows by it.
create table webhook_deliveries (
    id uuid constraint webhook_deliveries_pkey primary key default gen_random_uuid(),
    webhook_id uuid not null constraint webhook_deliveries_webhook_fkey references webhooks (id) on delete cascade,
    type text not null,
    -- Null for a ping.
    game_id uuid,
    version integer,
    seat smallint,
    deadline timestamptz,
    created_at timestamptz not null default now(),
    -- When it is tried next; null once it is delivered or given up.
    next_attempt_at timestamptz default now(),
    attempts_count integer not null default 0,
    delivered_at timestamptz
);

create index webhook_deliveries_due_index on webhook_deliveries (next_attempt_at) where next_attempt_at is not null;
create index webhook_deliveries_list_index on webhook_deliveries (webhook_id, created_at, id);

create table webhook_attempts (
    delivery_id uuid not null
        constraint webhook_attempts_delivery_fkey references webhook_deliveries (id) on delete cascade,
    number integer not null,
    at timestamptz not null,
    -- Of the answer; null if there was none.
    status smallint,
    duration_ms integer not null,
    -- Why there was none.
    error text,
    constraint webhook_attempts_pkey primary key (delivery_id, number)
);
