/** Passwords are hashed here, and nowhere kept. Both throw `unavailable` when too many wait for their turn. */
export interface Passwords {
  /** Argon2id, in the PHC string format. */
  hash(password: string): Promise<string>;
  /** Whether the hash is this password's. Null is nobody's: false, after the same time. */
  verify(password: string, hash: string | null): Promise<boolean>;
}
