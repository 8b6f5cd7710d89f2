import { hasScope, type Hold, HOLDS, KEY_SCOPES, type KeyScope, type Role, ROLES } from "../domain/roles.ts";

/** One of the things that a form lets somebody choose from. */
export interface Choice {
  readonly value: string;
  readonly label: string;
  /** What it means for them. */
  readonly hint: string;
}

const ROLE_WORDS: Readonly<Record<Role, Omit<Choice, "value">>> = {
  agent: {
    label: "Agent",
    hint: "Creates and reads actions, cancels and retries its own. It never approves by itself. For agents and programs.",
  },
  approver: { label: "Approver", hint: "Reads, approves and rejects. Secrets are masked. For whoever decides." },
  reader: { label: "Reader", hint: "Reads only. Secrets are masked. For dashboards and auditors." },
  owner: { label: "Owner", hint: "Everything: keys, signing secrets and approvals too. Never for an agent." },
};

const HOLD_WORDS: Readonly<Record<Hold, Omit<Choice, "value">>> = {
  none: { label: "Nothing", hint: "Only what asks for approval by itself waits for a person." },
  writes: { label: "Writes", hint: "All but GET waits for a person, whatever the create says." },
  all: { label: "Everything", hint: "Every call waits for a person, GET too." },
};

/** The roles from what is chosen most to what is chosen least. */
export const ROLE_CHOICES: readonly Choice[] = [...ROLES]
  .toSorted((a, b) => Object.keys(ROLE_WORDS).indexOf(a) - Object.keys(ROLE_WORDS).indexOf(b))
  .map((value) => ({ value, ...ROLE_WORDS[value] }));

export const HOLD_CHOICES: readonly Choice[] = HOLDS.map((value) => ({ value, ...HOLD_WORDS[value] }));

const SCOPE_WORDS: Readonly<Record<KeyScope, Omit<Choice, "value">>> = {
  own: {
    label: "What it created",
    hint: "Other actions it sees with secrets masked. Keys that it replaces count, too.",
  },
  account: {
    label: "Every action of the account",
    hint: "It sees their secrets, cancels them and retries them, also what a person cancelled.",
  },
};

export const SCOPE_CHOICES: readonly Choice[] = KEY_SCOPES.map((value) => ({ value, ...SCOPE_WORDS[value] }));

/** On what a key acts, for a list; null: nothing that is worth a word. */
export function scopeWord(role: Role, scope: KeyScope): string | null {
  return hasScope(role) && scope === "account" ? "Whole account" : null;
}

export function roleWord(role: Role): string {
  return ROLE_WORDS[role].label;
}

/**
 * The option by which curl sends the key that a variable of the shell holds (bash, zsh). It gets a file and not the key:
 * everybody who may list the processes of a machine reads their command lines.
 */
export function keyHeader(variable: string): string {
  return `-H @<(echo "Authorization: Bearer $${variable}")`;
}

/** What of a key's creates waits for a person, for a list; null: nothing that is worth a word. */
export function holdWord(hold: Hold): string | null {
  return hold === "none" ? null : `Holds ${HOLD_WORDS[hold].label.toLowerCase()}`;
}
