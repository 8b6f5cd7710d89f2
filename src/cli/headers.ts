import { type Io, readValue, UsageError } from "./command.ts";

/** The headers that `--header` gives, each as a line, or as in curl by files or standard input. Throws `UsageError`. */
export async function headersIn(given: readonly string[], io: Io): Promise<Readonly<Record<string, string>>> {
  const lines = await Promise.all(given.map((value) => headerLines(value, io)));
  return headersOf(lines.flat());
}

/** One header, or as in curl the lines of a file or of standard input. */
async function headerLines(value: string, io: Io): Promise<readonly string[]> {
  const isRead = value === "-" || value.startsWith("@");
  if (!isRead) return [value];
  const text = await readValue(value, io);
  return text.split(/\r?\n/).filter((line) => line.trim() !== "");
}

function headersOf(lines: readonly string[]): Readonly<Record<string, string>> {
  const pairs = lines.map((line, index) => {
    const at = line.indexOf(":");
    // The message doesn't quote the header, which may be a secret.
    if (at < 1) throw new UsageError(`--header takes 'Name: value'; header ${index + 1} has another form.`);
    return [line.slice(0, at), line.slice(at + 1).trim()] as const;
  });
  const names = new Set(pairs.map(([name]) => name.toLowerCase()));
  if (names.size < pairs.length) throw new UsageError("A header is given twice. Each can be sent only once.");
  return Object.fromEntries(pairs);
}
