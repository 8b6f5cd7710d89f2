/** By which an address is known: it is the same in any case. Addresses of ours are ASCII. */
export function emailKey(email: string): string {
  return email.toLowerCase();
}
