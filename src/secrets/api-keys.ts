const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const SECRET_CHARS = 30;
const CHECKSUM_CHARS = 6;
/** The largest multiple of 62 in a byte: bytes above it would make the first letters likelier. */
const FAIR_BYTES = 248;

/** `og_`, 30 base62 characters (178 bits) and 6 of checksum, by which scanners and typos are told offline. */
export function newApiKey(random: (count: number) => Uint8Array): string {
  let secret = "";
  while (secret.length < SECRET_CHARS) {
    for (const byte of random(SECRET_CHARS - secret.length)) {
      if (byte < FAIR_BYTES) secret += ALPHABET.charAt(byte % ALPHABET.length);
    }
  }
  return `og_${secret}${checksum(secret)}`;
}

/** Whether a text is a key as `newApiKey` makes them, by form and checksum; it need not be known to anyone. */
export function isWellFormedApiKey(text: string): boolean {
  const match = /^og_([0-9A-Za-z]{30})([0-9A-Za-z]{6})$/.exec(text);
  return match !== null && checksum(match[1] ?? "") === match[2];
}

/** CRC-32 of the secret part in base62, most significant first. */
function checksum(secret: string): string {
  let rest = Bun.hash.crc32(secret);
  let text = "";
  for (let place = 0; place < CHECKSUM_CHARS; place += 1) {
    text = ALPHABET.charAt(rest % ALPHABET.length) + text;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return text;
}
