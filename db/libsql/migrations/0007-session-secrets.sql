-- SHA-256 of the secret that the browser's storage holds beside the cookie, hex. Null: the session proves itself by the
-- password, each time.
ALTER TABLE sessions ADD COLUMN secret_hash TEXT;
