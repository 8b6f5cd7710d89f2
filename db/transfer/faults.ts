/** How deep a library nests the error that began it. */
const CAUSES_MAX = 5;

/** The code of PostgreSQL (SQLSTATE), else of the network, in an error or its causes; null: it has none. */
export function faultCodeIn(error: unknown): string | null {
  let one = error;
  for (let depth = 0; depth < CAUSES_MAX && one instanceof Error; depth += 1) {
    if ("code" in one && typeof one.code === "string" && one.code !== "") return one.code;
    one = one.cause;
  }
  return null;
}

/** The code of PostgreSQL alone. */
export function sqlStateIn(error: unknown): string | null {
  const code = faultCodeIn(error);
  return code !== null && /^[0-9A-Z]{5}$/.test(code) ? code : null;
}
