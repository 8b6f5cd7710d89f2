/** What a command may touch of the process that runs it. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Standard output: what was asked for, and nothing else. */
  readonly out: (text: string) => void;
  /** Standard error: what went wrong, or is going on. */
  readonly err: (text: string) => void;
  /** Whether a person looks at the output. */
  readonly isTty: boolean;
  /** Characters of a line of that person's terminal; absent: nobody knows. */
  readonly columns?: number;
  /** Whether that person can answer at the standard input. */
  readonly canAnswer?: boolean;
  /** Standard input; absent: there is none. */
  readonly input?: AsyncIterable<Uint8Array>;
  /** Hears once that the person wants no more of it (Ctrl-C), and returns how to stop listening; absent: nobody can say so. */
  readonly onInterrupt?: (listener: () => void) => () => void;
}

/** How a command ends, for scripts. */
export const EXIT = { ok: 0, failed: 1, usage: 2, timeout: 3, awaitingApproval: 4 } as const;

/** One verb of the command line. Its file is loaded only when it is called, so that each costs only what it needs. */
export interface Command {
  /** How it is called, after `outgate`. */
  readonly usage: string;
  /** What its options mean, a line each; shown by `--help`. */
  readonly details?: string;
  /** Resolves with the exit code. What it throws is a sentence for whoever called. */
  run(args: readonly string[], io: Io): Promise<number>;
}

/** A command as the list shows it, before it is loaded. */
export interface Listed {
  readonly summary: string;
  load(): Promise<Command>;
}

/** Every command by its name, in the order of the help. */
export type Commands = Readonly<Record<string, Listed>>;

/** Thrown where a command was called in a way that it does not know; the caller is shown its usage. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
