-- A key is found by one hash, of the player and of what the player calls it, instead of by both: its entry in the index is smaller by two
-- fifths, and of a move no player is kept. An answer that is kept says whose it is, since it goes when their account does.
--
-- The table is made anew, since a column that is dropped leaves a null behind in every row.
create table new_idempotency_keys (
    -- Half of the SHA-256 of the player's id (all zeros for a registration) and half of the key's SHA-256.
    id uuid not null,
    -- Half of the SHA-256 of method, path and body: the same key with another request is refused.
    request_hash uuid not null,
    created_at timestamptz not null default now(),
    -- For a move: which one. Its answer is made anew from the log, byte for byte.
    move_number integer,
    -- For everything else: the answer itself, and whose it is.
    status smallint,
    player_id uuid,
    headers jsonb,
    body bytea
);

insert into new_idempotency_keys (id, request_hash, created_at, move_number, status, player_id, headers, body)
select encode(substring(sha256(uuid_send(player_id) || uuid_send(key_hash)) for 16), 'hex')::uuid, request_hash, created_at, move_number,
       status, case when status is not null then player_id end, headers, body
from idempotency_keys;

drop table idempotency_keys;
alter table new_idempotency_keys rename to idempotency_keys;
alter table idempotency_keys add constraint idempotency_keys_pkey primary key (id);

create index idempotency_keys_player_index on idempotency_keys (player_id) where player_id is not null;

analyze idempotency_keys;
