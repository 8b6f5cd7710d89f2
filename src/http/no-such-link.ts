import { DomainError } from "../domain/errors.ts";

/** Whatever is wrong with a token, of whichever kind: it tells nothing but that it opens nothing (hostile B19). */
export function noSuchLink(): DomainError {
  return new DomainError("not_found", "This link leads nowhere. It may have been cut on its way; copy it again whole.");
}
