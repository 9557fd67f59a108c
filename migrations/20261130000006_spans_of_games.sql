-- Games that were going on at an instant. A list of those that ended after it, in the order of creation, would otherwise go through all
-- that had ended before.
create index games_duration_index on games using gist (tstzrange(least(created_at, finished_at), finished_at, '[]'))
    where finished_at is not null;
