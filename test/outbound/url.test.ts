import { describe, expect, test } from "bun:test";
import { parseTarget } from "../../src/core/target.ts";
import { accepts, refuses, verdict } from "./checking.ts";
import { words } from "../support/words.ts";

describe("how a URL is written", () => {
  test("it is absolute, http or https, in any case", () => {
    refuses(
      [
        ...words(`
          example.com/x /x //host/x ftp://example.com/ file:///etc/passwd data:text/plain,x
          javascript:alert(1) mailto:a@example.com blob:https://example.com/x s3://bucket/key
          ws://example.com/ http:example.com http:/example.com https//example.com
        `),
        "",
        " https://example.com",
        "\u0000http://example.com",
      ],
      "Must begin with http:// or https://.",
    );
    accepts({ "HTTP://Example.COM/": "example.com", "hTTps://example.com": "example.com" });
  });

  test("it has no user name or password", () => {
    refuses(
      ["http://u:p@host.example/", "http://u@host.example/", "http://@host.example/", "http://:@h.example"],
      "user name",
    );
    accepts({ "http://host.example/@x?a=b@c#d@e": "host.example" });
  });

  test("it has a host", () => {
    refuses(["http://", "https://", "http:///x", "http://?x", "http://#x", "http:////example.com/"], "Has no host");
    refuses(
      ["http://[::1", "http://[::1]x/", "http://[fe80::1%25eth0]/", "http://[1:2]/", "http://:80/"],
      "Is not a URL",
    );
    refuses(["http://a%00b/", "http://a<b>/", "http://a%2fb/", "http://xn--a/", "http://256.1.1.1/"], "Is not a URL");
  });

  test("it holds no white space, control character or backslash, not even where the parser drops them", () => {
    const blanks = [" ", "\t", "\r", "\n", "\0", "\u007f", "\u0085", "\u00a0", "\u2028", "\ufeff", "\u3000"];
    refuses(
      blanks.flatMap((blank) => [
        `http://example.com/a${blank}b`,
        `http://exa${blank}mple.com/`,
        `http://example.com/${blank}`,
      ]),
      "white space or control characters",
    );
    refuses(["http://example.com\\x", "http://a.example\\@b.example/", "http://example.com/a?b=\\"], "backslash");
    refuses(["http://example.com/\ud800"], "well-formed");
  });

  test("its port is one that speaks HTTP", () => {
    refuses(["http://example.com:0/"], "port 0");
    refuses(["http://example.com:65536/", "http://example.com:-1/", "http://example.com:x/"], "Is not a URL");
    const closed = [22, 23, 25, 110, 143, 465, 587, 993, 995, 3306, 5432, 6379, 11211, 27017, "0022"];
    refuses(
      closed.map((port) => `https://example.com:${port}/`),
      "is not allowed",
    );
    accepts({
      "http://example.com:80/": "example.com",
      "http://example.com:443/": "example.com:443",
      "https://example.com:443/": "example.com",
      "https://example.com:/": "example.com",
      "https://example.com:1/": "example.com:1",
      "https://example.com:65535/": "example.com:65535",
    });
  });

  test("it is at most 8,192 characters long", () => {
    const url = (length: number) => "http://example.com/".padEnd(length, "x");
    refuses([url(8_193)], "longer than 8192");
    expect(verdict(url(8_192))).toBe("example.com");
  });

  test("its host has labels of 1 to 63, 253 in all, and one trailing dot is cut", () => {
    const long = `${"a".repeat(63)}.`;
    refuses(
      [
        "http://a..b/",
        "http://.x/",
        "http://./",
        "http://x../",
        `http://${"a".repeat(64)}.com/`,
        `http://${long.repeat(4)}com/`,
      ],
      "valid host",
    );
    refuses(["http://*.example.com/", 'http://a"b.com/', "http://a,b.com/", "http://a'b.com/"], "valid host");
    accepts({
      "http://Example.com./": "example.com",
      "http://example.com.:8080/": "example.com:8080",
      "http://a_b.example.com/": "a_b.example.com",
      "http://bücher.example/": "xn--bcher-kva.example",
      [`http://${long.repeat(3)}${"a".repeat(61)}/`]: `${long.repeat(3)}${"a".repeat(61)}`,
    });
  });

  test("its path does not begin with two slashes, however they are written", () => {
    refuses(
      ["http://h.example//x", "http://h.example/.//x", "http://h.example/%2e%2e//x", "http://h.example//"],
      "begins with //",
    );
    accepts({ "http://h.example/a//b": "h.example", "http://h.example/?//": "h.example" });
  });

  test("what is sent is the parser's path and query, without the fragment", () => {
    const rest = (url: string) => {
      const target = parseTarget(url);
      return "refused" in target ? target.refused : target.rest;
    };
    const sent = {
      "http://h.example": "/",
      "http://h.example?": "/?",
      "http://h.example/a?": "/a?",
      "http://h.example/a#b?c": "/a",
      "http://h.example/a?b#": "/a?b",
      "http://h.example/a?b=c#d#e": "/a?b=c",
      "http://h.example/a/../b/./c": "/b/c",
      "http://h.example./ü?ü": "/%C3%BC?%C3%BC",
      "http://h.example:81/x": "/x",
    };
    expect(Object.keys(sent).map((url) => [url, rest(url)])).toEqual(Object.entries(sent));
  });
});
