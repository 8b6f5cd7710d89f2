/** A program around a snippet of docs/verify.md: reads one call a line, its parts in base64, and prints true or false for each. */
export interface Program {
  readonly language: string;
  /** The language of the block in the docs. */
  readonly block: string;
  /** Where what runs it may be; the first that is there. */
  readonly runners: readonly string[];
  /** Files by name, the snippet in its place. */
  readonly files: (snippet: string) => Readonly<Record<string, string>>;
  /** Its compiler builds its own library first, which takes a cold machine most of a minute: `npm run test:long` runs it. */
  readonly isLong?: boolean;
  /** What stands behind the runner. */
  readonly args: readonly string[];
}

const NAMES = ["webhook-id", "webhook-timestamp", "webhook-signature"];

const TYPESCRIPT = `
for await (const line of console) {
  const [secret = "", body = "", ...parts] = line.split(" ").map((part) => Buffer.from(part.slice(1), "base64").toString());
  const headers = new Headers(${JSON.stringify(NAMES)}.map((name, at) => [name, parts[at] ?? ""]));
  console.log(isFromOutgate(secret, headers, body));
}`;

const PYTHON = `
import sys
for line in sys.stdin:
    secret, body, *parts = [base64.b64decode(part[1:]) for part in line.split()]
    headers = dict(zip(${JSON.stringify(NAMES)}, [part.decode() for part in parts]))
    print(str(is_from_outgate(secret.decode(), headers, body)).lower())
`;

const GO = `package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var parts [][]byte
		for _, part := range strings.Fields(lines.Text()) {
			bytes, _ := base64.StdEncoding.DecodeString(part[1:])
			parts = append(parts, bytes)
		}
		header := http.Header{}
		for at, name := range []string{${NAMES.map((name) => JSON.stringify(name)).join(", ")}} {
			header.Set(name, string(parts[2+at]))
		}
		fmt.Println(IsFromOutgate(string(parts[0]), header, parts[1]))
	}
}
`;

const JAVA = `
class Main {
  public static void main(String[] args) throws Exception {
    var lines = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] parts = line.split(" ");
      Map<String, String> headers = new java.util.HashMap<>();
      String[] names = {${NAMES.map((name) => JSON.stringify(name)).join(", ")}};
      for (int at = 0; at < names.length; at++) headers.put(names[at], new String(bytes(parts[2 + at])));
      System.out.println(Outgate.isFromOutgate(new String(bytes(parts[0])), headers, bytes(parts[1])));
    }
  }

  static byte[] bytes(String part) {
    return Base64.getDecoder().decode(part.substring(1));
  }
}
`;

const RUBY = `
STDIN.each_line do |line|
  secret, body, *parts = line.split.map { |part| Base64.strict_decode64(part[1..]) }
  puts from_outgate?(secret, ${JSON.stringify(NAMES)}.zip(parts).to_h, body)
end
`;

const PHP = `
while (($line = fgets(STDIN)) !== false) {
    $parts = array_map(fn ($part) => base64_decode(substr($part, 1)), explode(' ', trim($line)));
    $headers = array_combine(${JSON.stringify(NAMES)}, array_slice($parts, 2));
    echo is_from_outgate($parts[0], $headers, $parts[1]) ? "true\\n" : "false\\n";
}
`;

export const PROGRAMS: readonly Program[] = [
  {
    language: "TypeScript",
    block: "ts",
    runners: [process.execPath],
    files: (snippet) => ({ "verify.ts": snippet + TYPESCRIPT }),
    args: ["verify.ts"],
  },
  {
    language: "Python",
    block: "python",
    runners: ["python3"],
    files: (snippet) => ({ "verify.py": snippet + PYTHON }),
    args: ["verify.py"],
  },
  {
    language: "Go",
    block: "go",
    runners: ["go", "/usr/local/go/bin/go"],
    // Imports come first in a file of Go, so that the rest is a file of its own.
    files: (snippet) => ({ "outgate.go": `package main\n\n${snippet}`, "main.go": GO }),
    args: ["run", "outgate.go", "main.go"],
    isLong: true,
  },
  {
    language: "Java",
    block: "java",
    runners: ["java"],
    // The first class of a file is the one that is run.
    files: (snippet) => ({ "Main.java": snippet.replace("\nclass Outgate", `${JAVA}\nclass Outgate`) }),
    args: ["Main.java"],
  },
  {
    language: "Ruby",
    block: "ruby",
    runners: ["ruby"],
    files: (snippet) => ({ "verify.rb": snippet + RUBY }),
    args: ["verify.rb"],
  },
  {
    language: "PHP",
    block: "php",
    runners: ["php"],
    files: (snippet) => ({ "verify.php": `<?php\n${snippet}${PHP}` }),
    args: ["verify.php"],
  },
];
