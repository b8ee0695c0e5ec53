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
