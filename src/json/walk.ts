import { endOfString, endOfValue } from "./json.ts";

/**
 * The members of an object in their order, each value as text. The text is valid JSON without white space (`compactJson`). A
 * parser would move names that are numbers, and make values of a megabyte that is refused afterwards.
 */
export function* membersIn(json: string): Generator<readonly [name: string, text: string]> {
  for (let at = 1; json[at] === '"';) {
    const end = endOfString(json, at);
    const valueEnd = endOfValue(json, end + 1);
    yield [String(JSON.parse(json.slice(at, end))), json.slice(end + 1, valueEnd)];
    at = valueEnd + 1;
  }
}

/** The elements of a list, under the same terms. */
export function* elementsIn(json: string): Generator<string> {
  for (let at = 1; at < json.length && json[at] !== "]";) {
    const end = endOfValue(json, at);
    yield json.slice(at, end);
    at = end + 1;
  }
}
