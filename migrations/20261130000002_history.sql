-- Querying history: what lists filter and sort by, kept where an index can have it.
--
-- What only a game that is over has for good is copied to `games` and `seats` when it ends: a move of a running game then touches no
-- index of history, and a player's list is read from that player's seats alone.

alter table games
    -- Counts for the ratings of its players.
    add column rated boolean not null default false,
    -- Of a game that has not started: the options as they would be in force, defaults written out. Null once `options` has them.
    add column open_options jsonb,
    -- Who moved first.
    add column first_seat smallint,
    -- Once it is over; `end_reason` is null if it was called off before the start, `last_move_at` if nobody moved.
    add column end_reason text,
    add column moves_count integer,
    add column last_move_at timestamptz;

alter table seats
    -- Once the game is finished.
    add column result text constraint seats_result_check check (result in ('won', 'lost', 'shared')),
    -- Of the game, once it is over.
    add column finished_at timestamptz,
    add column last_move_at timestamptz;

alter table positions
    add column last_move_at timestamptz;

update positions p set last_move_at = m.at
from moves m where m.game_id = p.game_id and m.number = p.moves_count;

update games g
set end_reason = g.outcome ->> 'reason', moves_count = p.moves_count, last_move_at = p.last_move_at
from positions p
where p.game_id = g.id and g.status in ('finished', 'aborted');

update games g set first_seat = coalesce(
    (select m.seat from moves m where m.game_id = g.id and m.number = 1),
    (select p.to_move_seat from positions p where p.game_id = g.id and p.moves_count = 0))
where g.started_at is not null;

update seats s
set finished_at = g.finished_at, last_move_at = g.last_move_at,
    result = case
        when g.status = 'aborted' or g.outcome is null then null
        when not exists (select from jsonb_array_elements(g.outcome -> 'ranking') as line
                         where (line ->> 'seat')::smallint = s.seat and (line ->> 'won')::boolean) then 'lost'
        when (select count(*) from jsonb_array_elements(g.outcome -> 'ranking') as line
              where (line ->> 'won')::boolean) > 1 then 'shared'
        else 'won'
    end
from games g
where g.id = s.game_id and g.status in ('finished', 'aborted');

-- A game's id begins with the millisecond of its creation: the order of ids is the order of `created_at`, and the one index
-- serves both. The ids of games from before were made a moment before the time was noted.
update games set created_at = to_timestamp(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0)
where substr(id::text, 15, 1) = '7';

-- Lists of everything: each order of games that are over, for all of them and for one ruleset. The order of creation is that of ids,
-- for which there are indexes.
create index games_finished_at_index on games (finished_at, id) where finished_at is not null;
create index games_ruleset_finished_at_index on games (ruleset, finished_at, id) where finished_at is not null;
create index games_last_move_at_index on games (last_move_at, id) where last_move_at is not null;
create index games_ruleset_last_move_at_index on games (ruleset, last_move_at, id) where last_move_at is not null;
-- Games that are open or active, which are few among all.
create index games_live_index on games (id) where status in ('open', 'active');
create index games_unmoved_index on games (id) where last_move_at is null;
-- What few games have is found by it, and then put in order.
create index games_end_reason_index on games (end_reason, id) where end_reason is not null;
create index games_rated_index on games (rated, id);
create index games_moves_count_index on games (moves_count) where moves_count is not null;
create index games_options_index on games using gin ((coalesce(open_options, options)) jsonb_path_ops);
-- The planner multiplies what each condition leaves, unless it is told that they hang together.
create statistics games_statistics (mcv, dependencies) on ruleset, status, end_reason, rated from games;

-- Lists of one player; `seats_player_game_index` has the order of creation.
create index seats_player_finished_at_index on seats (player_id, finished_at, game_id) where finished_at is not null;
create index seats_player_last_move_at_index on seats (player_id, last_move_at, game_id) where last_move_at is not null;
create index seats_player_result_index on seats (player_id, result, game_id) where result is not null;

-- Running games in the order of their last moves.
create index positions_last_move_at_index on positions (last_move_at, game_id) where to_move_seat is not null;
