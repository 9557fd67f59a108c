-- A row of which no indexed column changes is rewritten within its page and gets no entry in any index of its table (heap-only
-- tuples). Of `positions` every move changed the columns of three, and so wrote into four: now it changes none.
--
-- - Whose turn it is, is in `seats`: the games that wait for a player are found among those of theirs that are not over.
-- - The sweeper looks at a game at `check_at`, which is never after `due_at`. A move puts `due_at` off and leaves `check_at` where it is;
--   the sweeper puts that off when it comes by too early, once in the time of a clock instead of once a move.
-- - Running games are in the order of `last_move_bucket`, the ten minutes in which the last move was, and within it sorted when they are
--   asked for: all those moved in within ten minutes.
--
-- The table is made anew, since a column that is dropped leaves a null behind in every row. What takes eight bytes stands first, so
-- that nothing is between for alignment; what a move leaves as it was stands last, where an update need not write it into the WAL.
create table new_positions (
    game_id uuid not null,
    -- When the version came about. Never before the last one, also if the clock has been set back: the log stays in order.
    changed_at timestamptz not null,
    last_move_at timestamptz,
    to_move_since timestamptz,
    -- When the server has to act: the deadline of the player to move, or at once where a bot plays for a leaver.
    due_at timestamptz,
    -- The transaction of the last change. A snapshot of transactions then tells exactly what a reader has seen, whatever the
    -- order of commits (`docs/decisions/0008-cursors-are-snapshots.md`).
    xid xid8 not null default pg_current_xact_id(),
    version integer not null,
    moves_count integer not null,
    to_move_seat smallint,
    -- What each seat has left on a clock with a bank, as of the beginning of the present turn.
    remaining_ms bigint[],
    -- The full state in a compact format; a cache of what the log says. Null before the start.
    snapshot bytea,
    check_at timestamptz constraint positions_check_at_check check ((check_at is null) = (due_at is null)),
    -- Null unless the game is active.
    last_move_bucket timestamptz generated always as (
        case when to_move_seat is not null then date_bin('10 minutes', last_move_at, timestamptz 'epoch') end
    ) stored
);

insert into new_positions (game_id, changed_at, last_move_at, to_move_since, due_at, xid, version, moves_count, to_move_seat,
                           remaining_ms, snapshot, check_at)
select game_id, changed_at, last_move_at, to_move_since, due_at, xid, version, moves_count, to_move_seat, remaining_ms, snapshot, due_at
from positions;

drop table positions;
alter table new_positions rename to positions;
alter table positions
    add constraint positions_pkey primary key (game_id),
    add constraint positions_game_fkey foreign key (game_id) references games (id);

create index positions_check_at_index on positions (check_at) where check_at is not null;
create index positions_last_move_bucket_index on positions (last_move_bucket) where last_move_bucket is not null;

analyze positions;
