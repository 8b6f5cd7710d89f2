import type { Ids } from "../ports/ids.ts";

/** How one request is called: what its answer carries, and what an error envelope says (decisions 2). */
export interface RequestName {
  /** The client's own id where it may be echoed, else ours. */
  readonly id: string;
  /** Always `req_…`: the same id where it has that form, else one of ours. */
  envelopeId(): string;
}

/** What is not of this form is never echoed and never logged. */
const ECHOED = /^[A-Za-z0-9._:-]{1,128}$/;
const OURS = /^req_[A-Za-z0-9_-]+$/;

export function nameRequest(given: string | null, ids: Pick<Ids, "request">): RequestName {
  if (given === null || !ECHOED.test(given)) return named(ids.request());
  if (OURS.test(given)) return named(given);
  // Only an error needs the second id, and both places that ask for it must get the same.
  let second: string | null = null;
  return { id: given, envelopeId: () => (second ??= ids.request()) };
}

function named(id: string): RequestName {
  return { id, envelopeId: () => id };
}
