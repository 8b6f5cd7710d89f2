import { isListedHost } from "../../src/core/policy.ts";
import { expect, test } from "bun:test";
import { checkCallbackHost } from "../../src/accounts/callback-hosts.ts";

const LISTED = ["hooks.example.com", "127.0.0.1:9", "[::1]:81", "explicit.example.com:443"];

test.each([
  ["https://hooks.example.com/done", true],
  ["https://HOOKS.example.com.:443/done", true],
  ["http://hooks.example.com/done", true],
  ["http://127.0.0.1:9/", true],
  ["http://0x7f.1:9/", true],
  ["http://[0:0::1]:81/", true],
  ["https://explicit.example.com/", true],
  ["http://explicit.example.com/", false],
  ["https://hooks.example.com:8443/done", false],
  ["https://sub.hooks.example.com/", false],
  ["https://hooks.example.com.evil.example/", false],
  ["https://hooks.example.com@evil.example/", false],
  ["https://evil.example/hooks.example.com", false],
  ["http://127.0.0.1/", false],
  ["http://127.0.0.1:10/", false],
  ["ftp://hooks.example.com/", false],
  ["no URL", false],
])("a list of hosts lets a callback to %s pass: %j", (url, isListed) => {
  expect(isListedHost(url, LISTED)).toBe(isListed);
});

test.each([
  ["Hooks.Example.com.", "hooks.example.com"],
  ["10.0.0.7:8080", "10.0.0.7:8080"],
  ["::1", "[::1]"],
  ["*.example.com", null],
  ["https://hooks.example.com", null],
  ["hooks.example.com/done", null],
  ["a@b", null],
  ["", null],
])("%j is listed as %j", (text, host) => {
  const check = () => checkCallbackHost(text, "validation_error");
  if (host === null) expect(check).toThrow("The host is not valid.");
  else expect(check()).toBe(host);
});
