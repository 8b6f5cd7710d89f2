import { expect, test } from "bun:test";
import { sentUrl } from "../../src/core/target.ts";

test.each([
  ["a name in letters that may pass for others", "https://exаmple.com/x", "https://xn--exmple-4nf.com/x"],
  ["full-width letters", "http://ｅxample.com/", "http://example.com/"],
  ["an address in another spelling", "http://0x7f000001/", "http://127.0.0.1/"],
  ["capitals, and the scheme's own port", "HTTPS://API.Example.com:443/A", "https://api.example.com/A"],
  ["what is not seen in a path", "https://example.com/\u202eexe", "https://example.com/%E2%80%AEexe"],
  ["dots that lead elsewhere", "https://example.com/safe/../admin", "https://example.com/admin"],
  ["a fragment, which is not sent", "https://example.com/a?b=c#approved", "https://example.com/a?b=c"],
])("is the parser's reading of %s", (_what, url, sent) => {
  expect(sentUrl(url)).toBe(sent);
});

test("leaves what is no URL as it is", () => {
  expect(sentUrl("nonsense")).toBe("nonsense");
});
