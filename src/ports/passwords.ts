/** Who waits for a password to be hashed, so that nobody is kept waiting by what others ask for. */
export interface Turn {
  /** Those of one lane wait for each other. */
  readonly lane: string;
  /** The device, session or link is known: they wait less. */
  readonly isKnown: boolean;
}

/** Passwords are hashed here, and nowhere kept. Both throw `unavailable` when too many wait for their turn. */
export interface Passwords {
  /** Argon2id, in the PHC string format. */
  hash(password: string, turn: Turn): Promise<string>;
  /** Whether the hash is this password's. Null is nobody's: false, after the same time. */
  verify(password: string, hash: string | null, turn: Turn): Promise<boolean>;
}
