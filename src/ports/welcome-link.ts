/** A one-time link that is handed out on the server's machine, known by the hash of its token. */
export interface WelcomeLink {
  /** SHA-256 of the token, hex. */
  readonly hash: string;
  /** Null: whoever takes it becomes the account's first person. Else it gives this person a new password. */
  readonly personId: string | null;
  readonly accountId: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}
