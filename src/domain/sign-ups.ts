/** Why nobody may sign up: a setting, or a key of the first account that has a hold. */
export type SignUpsClosedBy = "SIGNUPS" | "HOST" | "APPROVERS" | "AGENT_APPROVAL" | "hold";

/**
 * Who may sign up, as the settings say it. `until_hold`: whoever reaches the service, until a key of the first account has a
 * hold. A new account has an owner key and sends without approval: it is no way round what the first account asks for.
 */
export type SignUps = "open" | "until_hold" | { readonly closedBy: SignUpsClosedBy };

const WHY: Readonly<Record<SignUpsClosedBy, string>> = {
  SIGNUPS: "the setting SIGNUPS says so",
  HOST: "this service can be reached from other machines",
  APPROVERS: "APPROVERS is set, and a new account would send without their approval",
  AGENT_APPROVAL: "AGENT_APPROVAL is off, and a new account would approve for itself",
  hold: "a key of the first account has its calls approved, and a new account would send without approval",
};

/** Why nobody may sign up, and what to do about it. */
export function signUpsClosedWords(closedBy: SignUpsClosedBy): string {
  return `Sign-ups are closed: ${WHY[closedBy]}. Whoever runs this service opens them with SIGNUPS=open.`;
}

/** What stands with everything of an account that is stopped. */
export const STOPPED_REASON =
  "Signed up before sign-ups closed. An owner of the first account of this service has to allow it.";

/** What the log tells of accounts that are stopped. */
export function stoppedWords(count: number): string {
  const are =
    count === 1 ? "1 account that was signed up before is" : `${count} accounts that were signed up before are`;
  return `${are} stopped. \`outgate accounts\` lists them, \`outgate accounts allow <id>\` lets one go on.`;
}
