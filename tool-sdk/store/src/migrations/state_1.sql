-- Notes. `owner` is empty for the user of the host, and `u/NAME` for another user. A note without a
-- project holds in all of them.
CREATE TABLE notes (
    number INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    project TEXT,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    content TEXT NOT NULL,
    category TEXT NOT NULL,
    -- A JSON array, sorted.
    tags TEXT NOT NULL,
    version INTEGER NOT NULL,
    -- Milliseconds since 1970.
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    UNIQUE (owner, id)
) STRICT;

CREATE INDEX notes_by_time ON notes (owner, updated);

-- The words of the notes. It keeps no text of its own; the triggers keep both in step.
CREATE VIRTUAL TABLE note_words USING fts5(
    title, content, tags,
    content = 'notes', content_rowid = 'number',
    tokenize = 'unicode61 remove_diacritics 2'
);
INSERT INTO note_words (note_words, rank) VALUES ('rank', 'bm25(4.0, 1.0, 2.0)');
-- Words of a deleted note do not stay in the index.
INSERT INTO note_words (note_words, rank) VALUES ('secure-delete', 1);

CREATE TRIGGER notes_inserted AFTER INSERT ON notes BEGIN
    INSERT INTO note_words (rowid, title, content, tags)
    VALUES (new.number, new.title, new.content, new.tags);
END;

CREATE TRIGGER notes_deleted AFTER DELETE ON notes BEGIN
    INSERT INTO note_words (note_words, rowid, title, content, tags)
    VALUES ('delete', old.number, old.title, old.content, old.tags);
END;

CREATE TRIGGER notes_updated AFTER UPDATE ON notes BEGIN
    INSERT INTO note_words (note_words, rowid, title, content, tags)
    VALUES ('delete', old.number, old.title, old.content, old.tags);
    INSERT INTO note_words (rowid, title, content, tags)
    VALUES (new.number, new.title, new.content, new.tags);
END;

CREATE TABLE note_embeddings (
    note INTEGER NOT NULL REFERENCES notes (number) ON DELETE CASCADE,
    model TEXT NOT NULL,
    -- The version of the note that was embedded.
    version INTEGER NOT NULL,
    -- Little-endian 32-bit floats.
    vector BLOB NOT NULL,
    PRIMARY KEY (note, model)
) STRICT, WITHOUT ROWID;

-- The plan and the todo list of a session, by the key that the runtime makes of session and user.
CREATE TABLE plans (
    key TEXT PRIMARY KEY,
    updated INTEGER NOT NULL,
    -- The whole plan as JSON.
    plan TEXT NOT NULL
) STRICT;
