import type { Clock } from "../ports/clock.ts";
import type { Member, PeopleStore } from "../ports/people.ts";
import type { Turn } from "../ports/passwords.ts";
import type { KnownDevice, Secrets } from "../ports/secrets.ts";

/** Where a request of somebody who wants in comes from. */
export interface RequestSource {
  /** The network that it comes from, as `clientOf` names it. */
  readonly client: string;
  /** The token of a device, as it was sent; null: none. */
  readonly deviceToken: string | null;
  /** What the browser's storage holds for the session, as its page sent it; null: no script ran, or no page sent this. */
  readonly sessionSecret: string | null;
}

export interface DeviceDeps {
  readonly people: Pick<PeopleStore, "find">;
  readonly secrets: Pick<Secrets, "readDeviceToken">;
  readonly clock: Pick<Clock, "now">;
}

/** The person of an address, looked up only for whoever proves to have logged in by this device before. */
export interface Recognized {
  readonly member: Member;
  readonly device: KnownDevice;
}

/** Whether somebody has logged in as the person of this address on this device before; null: not that we know. */
export function createRecognize({ people, secrets, clock }: DeviceDeps) {
  return async (email: string, { deviceToken }: RequestSource): Promise<Recognized | null> => {
    const device = deviceToken === null ? null : secrets.readDeviceToken(deviceToken);
    if (device === null || device.expiresAt <= clock.now()) return null;
    const member = await people.find(email);
    return member?.person.id === device.personId ? { member, device } : null;
  };
}

/** In which line a password waits to be hashed. */
export function turnOf({ client }: RequestSource, personId: string | null): Turn {
  return personId === null ? { lane: client, isKnown: false } : { lane: personId, isKnown: true };
}
