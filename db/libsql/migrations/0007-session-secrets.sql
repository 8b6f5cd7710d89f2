-- SHA-256 of the secret in the browser's storage, hex. Null: the session needs the password for each change.
ALTER TABLE sessions ADD COLUMN secret_hash TEXT;
