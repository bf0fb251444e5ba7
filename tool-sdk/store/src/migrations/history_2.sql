-- The conversations of agents.
CREATE TABLE conversations (
    id TEXT PRIMARY KEY,
    folder TEXT,
    title TEXT,
    entries INTEGER NOT NULL,
    -- Milliseconds since 1970.
    changed INTEGER NOT NULL,
    -- The length of the transcript, so that a sum need not read the transcripts.
    bytes INTEGER NOT NULL,
    -- The whole transcript as JSON.
    transcript TEXT NOT NULL
) STRICT;

CREATE INDEX conversations_by_time ON conversations (changed);
