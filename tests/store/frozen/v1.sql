-- A state file of schema version 1 as the first release wrote it. Never edited: newer versions must open it.
-- Times are integers: *_us microseconds (since the Unix epoch, or of watched time where the name says so),
-- *_ns nanoseconds since the Unix epoch. `body` columns hold one whole value as JSON; where a column says
-- the same, the column is right.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY NOT NULL,  -- slot_us, slot_watched_us, mark
    value INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE memory (
    name  TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE alerts (
    id       TEXT PRIMARY KEY NOT NULL,
    rule     TEXT NOT NULL,
    task     TEXT NOT NULL,
    phase    TEXT NOT NULL,
    incident TEXT NOT NULL,
    body     TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE incidents (
    id        TEXT PRIMARY KEY NOT NULL,
    rule      TEXT NOT NULL,
    task      TEXT NOT NULL,
    opened_us INTEGER NOT NULL,
    closed_us INTEGER,
    body      TEXT NOT NULL
);
CREATE INDEX incidents_open ON incidents (opened_us) WHERE closed_us IS NULL;
CREATE INDEX incidents_opened ON incidents (opened_us);
CREATE INDEX incidents_closed ON incidents (closed_us) WHERE closed_us IS NOT NULL;

CREATE TABLE transitions (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    incident TEXT NOT NULL,
    change   TEXT NOT NULL,
    at_us    INTEGER NOT NULL,
    UNIQUE (incident, change, at_us)
);

CREATE TABLE outbox (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    channel       TEXT NOT NULL,
    incident      TEXT NOT NULL,
    kind          TEXT NOT NULL,
    decided_us    INTEGER NOT NULL,
    state         TEXT NOT NULL,
    created_us    INTEGER NOT NULL,  -- watched
    not_before_us INTEGER NOT NULL,  -- watched
    attempts      INTEGER NOT NULL,
    body          TEXT NOT NULL,
    UNIQUE (channel, incident, kind, decided_us)
);
CREATE INDEX outbox_incident ON outbox (incident);
CREATE INDEX outbox_waiting ON outbox (id) WHERE state IN ('pending', 'inflight');
CREATE INDEX outbox_dead ON outbox (id) WHERE state = 'dead';
CREATE INDEX outbox_finished ON outbox (decided_us) WHERE state IN ('done', 'dead', 'superseded');

CREATE TABLE attempts (
    seq        INTEGER PRIMARY KEY,
    delivery   INTEGER NOT NULL REFERENCES outbox (id) ON DELETE CASCADE,
    number     INTEGER NOT NULL,
    at_us      INTEGER NOT NULL,
    watched_us INTEGER NOT NULL,  -- watched
    answer     TEXT NOT NULL,
    code       TEXT NOT NULL,
    body       TEXT NOT NULL,  -- the result
    UNIQUE (delivery, number, at_us, answer)
);

CREATE TABLE ledger (
    incident TEXT NOT NULL,
    channel  TEXT NOT NULL,
    told_us  INTEGER NOT NULL,
    body     TEXT NOT NULL,
    PRIMARY KEY (incident, channel)
) WITHOUT ROWID;

CREATE TABLE tasks (
    key  TEXT PRIMARY KEY NOT NULL,
    body TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE probes (
    source     TEXT NOT NULL,
    capability TEXT NOT NULL,
    task       TEXT NOT NULL,
    item       TEXT NOT NULL,
    body       TEXT NOT NULL,
    PRIMARY KEY (source, capability, task, item)
) WITHOUT ROWID;

CREATE TABLE streams (
    id        INTEGER PRIMARY KEY,
    task      TEXT NOT NULL,
    pod       TEXT NOT NULL,
    prefilter TEXT NOT NULL,
    cursor_ns INTEGER NOT NULL,
    body      TEXT NOT NULL,  -- without what `seen` holds
    UNIQUE (task, pod, prefilter)
);

CREATE TABLE seen (
    stream  INTEGER NOT NULL REFERENCES streams (id) ON DELETE CASCADE,
    hash,  -- 8 bytes; INTEGER, or TEXT where it exceeds 2^63
    time_ns INTEGER NOT NULL,
    count   INTEGER NOT NULL,
    PRIMARY KEY (stream, hash)
) WITHOUT ROWID;

-- The slot and the ordinal keep apart equal values of one moment, and make a repeated commit harmless.
CREATE TABLE samples (
    metric  TEXT NOT NULL,
    labels  TEXT NOT NULL,  -- JSON, sorted
    time_ns INTEGER NOT NULL,
    slot_us INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    value   REAL,  -- NULL = not a number
    PRIMARY KEY (metric, labels, time_ns, slot_us, ordinal)
) WITHOUT ROWID;
CREATE INDEX samples_time ON samples (time_ns);

INSERT INTO meta (name, value) VALUES ('slot_us', 1796025600123456), ('slot_watched_us', 3600000000), ('mark', 3);
INSERT INTO memory (name, value) VALUES ('fact', '值');
INSERT INTO alerts (id, rule, task, phase, incident, body) VALUES ('a1', 'idle', 'alaya/1', 'firing', 'aaaa',
    '{"id":"a1","rule":"idle","labels":{"task":"alaya/1","pod":"p-0"},"phase":"firing","since":"2026-11-30T08:00:00Z"}');
INSERT INTO incidents (id, rule, task, opened_us, closed_us, body) VALUES ('aaaa', 'idle', 'alaya/1', 1796025600000000, NULL,
    '{"id":"aaaa","rule":"idle","labels":{"task":"alaya/1"},"severity":"critical","event":false,"opened_at":"2026-11-30T08:00:00Z","since":"2026-11-30T08:00:00Z","updated_at":"2026-11-30T08:00:00Z","unheard_of":1}');
INSERT INTO transitions (seq, incident, change, at_us) VALUES (4, 'aaaa', 'grew', 1796025600000000);
INSERT INTO outbox (id, channel, incident, kind, decided_us, state, created_us, not_before_us, attempts, body)
    VALUES (7, 'team', 'aaaa', 'first', 1796025600000000, 'pending', 3600000000, 3660000000, 1,
    '{"created":"P0D","not_before":"P0D","last_result":{"answer":"retry"},"notification":{"channel":"team","kind":"first","decided_at":"2026-11-30T08:00:00Z","incident":{"id":"aaaa","rule":"idle","labels":{"task":"alaya/1"},"severity":"critical","event":false,"opened_at":"2026-11-30T08:00:00Z","since":"2026-11-30T08:00:00Z","updated_at":"2026-11-30T08:00:00Z"}}}');
INSERT INTO attempts (delivery, number, at_us, watched_us, answer, code, body)
    VALUES (7, 1, 1796025601000000, 3601000000, 'retry', '429', '{"answer":"retry"}');
INSERT INTO ledger (incident, channel, told_us, body) VALUES ('aaaa', 'oncall', 1796025600000000,
    '{"incident":"aaaa","channel":"oncall","kind":"first","told_at":"2026-11-30T08:00:00Z","told_watched":"PT3600S","severity":"critical"}');
INSERT INTO tasks (key, body) VALUES ('alaya/1', '{"task":{"key":"alaya/1","source":"alaya","id":"1","name":"llama"}}');
INSERT INTO probes (source, capability, task, item, body)
    VALUES ('alaya', 'logs', 'alaya/1', '', '{"key":{"source":"alaya","capability":"logs","task":"alaya/1"}}');
INSERT INTO streams (id, task, pod, prefilter, cursor_ns, body)
    VALUES (1, 'alaya/1', '', '', 1796025600123456789,
    '{"key":{"task":"alaya/1"},"cursor_ns":1796025600123456789,"newest_ns":{"p-0":1796025600123456789}}');
INSERT INTO seen (stream, hash, time_ns, count) VALUES (1, 5, 1796025600123456789, 2), (1, '18446744073709551615', 6, 1);
INSERT INTO samples (metric, labels, time_ns, slot_us, ordinal, value)
    VALUES ('log:errors', '{"pod":"p-0"}', 1796025600123456789, 1796025600123456, 0, 1.0);
PRAGMA application_id = 1248813655;
PRAGMA user_version = 1;
