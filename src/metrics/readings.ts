import { type Definition, gaugeText, type Sample } from "./families.ts";

/** What is read when somebody looks, by functions that the other rooms hand in. What is absent is not shown. */
export interface Readings {
  /** Actions that are not final, by status. */
  readonly waiting?: () => Promise<Readonly<Record<string, number>>>;
  /** Callbacks and mails that are neither delivered nor given up, by kind. */
  readonly owed?: () => Promise<Readonly<Record<string, number>>>;
  /** Attempts that are on their way now. */
  readonly inFlight?: () => number;
  /** Milliseconds of the longest delay of the event loop since the last reading. */
  readonly loopLagMaxMs?: () => number;
  /** Bytes of memory that the process holds. */
  readonly residentBytes?: () => number;
}

/** Without what the store counts when it can't be read: the other numbers are wanted most just then. */
export async function readingsText({
  waiting,
  owed,
  inFlight,
  loopLagMaxMs,
  residentBytes,
}: Readings): Promise<string> {
  const texts: string[] = [];
  const single = (name: string, help: string, value: number) => {
    texts.push(gaugeText({ name, help, labels: [] }, [{ labels: [], value }]));
  };
  if (waiting) texts.push(await countedText(WAITING, waiting));
  if (owed) texts.push(await countedText(OWED, owed));
  if (inFlight) single("outgate_attempts_in_flight", "Attempts that are on their way now.", inFlight());
  if (loopLagMaxMs) {
    const help = "Longest delay of the event loop since the last reading.";
    single("outgate_event_loop_lag_max_seconds", help, loopLagMaxMs() / 1_000);
  }
  if (residentBytes) single("outgate_resident_memory_bytes", "Memory that the process holds.", residentBytes());
  return texts.join("");
}

const WAITING = { name: "outgate_actions", help: "Actions that are not final, by status.", labels: ["status"] };
const OWED = {
  name: "outgate_outbox",
  help: "Callbacks and mails that are neither delivered nor given up.",
  labels: ["kind"],
};

async function countedText(definition: Definition, read: () => Promise<Readonly<Record<string, number>>>) {
  try {
    const samples = Object.entries(await read()).map(([label, value]): Sample => ({ labels: [label], value }));
    return gaugeText(definition, samples);
  } catch {
    return "";
  }
}
