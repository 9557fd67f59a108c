-- Most commands are moves with a key: what a key writes is a large part of what they write. Of both hashes half is kept, as a uuid:
-- that takes 16 bytes, and `bytea` of that length takes 24 in an index. The game of a move is in the path, and so in the request's
-- hash. Keys that are a day old are found by walking through the table, now and then, instead of by an index into which every move
-- would have to write.
drop index idempotency_keys_created_at_index;

alter table idempotency_keys
    alter column key_hash type uuid using encode(substring(key_hash for 16), 'hex')::uuid,
    alter column request_hash type uuid using encode(substring(request_hash for 16), 'hex')::uuid,
    drop column game_id;
