/**
 * Asks an address again and again for so many milliseconds, in a process of its own, and prints how long each answer took, as JSON.
 * The process of a fault is busy with its target, and would measure itself.
 *
 *   bun bench/faults/looker.ts <url> <key> <ms>
 */
const [url = "", key = "", ms = "0"] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${key}` };
const times: number[] = [];
const untilMs = performance.now() + Number(ms);
while (performance.now() < untilMs) {
  const startedMs = performance.now();
  const answer = await fetch(url, { headers });
  await answer.arrayBuffer();
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}.`);
  times.push(performance.now() - startedMs);
}
console.log(JSON.stringify(times));
process.exit();
