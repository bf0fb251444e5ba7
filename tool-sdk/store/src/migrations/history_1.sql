-- The calls of all sessions.
CREATE TABLE calls (
    call TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    user TEXT,
    -- Milliseconds since 1970.
    started INTEGER NOT NULL,
    -- The whole record as JSON.
    record TEXT NOT NULL
) STRICT;

CREATE INDEX calls_by_session ON calls (session, started);
CREATE INDEX calls_by_time ON calls (started);

CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    call TEXT NOT NULL REFERENCES calls (call) ON DELETE CASCADE,
    at INTEGER NOT NULL,
    -- The event as JSON.
    event TEXT NOT NULL
) STRICT;

CREATE INDEX events_by_call ON events (call, number);
