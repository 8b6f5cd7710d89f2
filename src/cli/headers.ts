import { type Io, readValue, UsageError } from "./command.ts";

/** The headers that `--header` gives, each as a line, or as in curl by files or standard input. Throws `UsageError`. */
export async function headersIn(values: readonly string[], io: Io): Promise<Readonly<Record<string, string>>> {
  const lines = values.map(async (value) => {
    if (value !== "-" && !value.startsWith("@")) return [value];
    return (await readValue(value, io)).split(/\r?\n/).filter((line) => line.trim() !== "");
  });
  const pairs = (await Promise.all(lines)).flat().map((line, index) => {
    const at = line.indexOf(":");
    // The message doesn't quote the header, which may be a secret.
    if (at < 1) throw new UsageError(`--header takes 'Name: value'; header ${index + 1} has another form.`);
    return [line.slice(0, at), line.slice(at + 1).trim()] as const;
  });
  const names = new Set(pairs.map(([name]) => name.toLowerCase()));
  if (names.size < pairs.length) throw new UsageError("A header is given twice. Each can be sent only once.");
  return Object.fromEntries(pairs);
}
