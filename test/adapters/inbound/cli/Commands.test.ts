import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"
import { runInProcess } from "../../../support/services/commandLine.ts"

const key = `key_live_${"0".repeat(64)}`

const long = "x".repeat(257)

/** Wrong command lines of each command, each with a part of the expected error. */
const wrongUsages: Readonly<Record<string, ReadonlyArray<readonly [line: string, part: string]>>> = {
  "keys issue": [
    ["--user ada@example.com --workspace=", '--workspace must be 1 to 256 characters (got "")'],
    ["--user ada@example.com", "--workspace is required unless PROMPT_RETRIEVAL_WORKSPACE is set"],
    ["--workspace Acme", "--user is required"],
    ["--workspace Acme --user", "--user needs a value"],
    ["--workspace Acme --user Ada", '--user must be an email address of at most 256 characters (got "Ada")'],
    ["--workspace Acme --workspace Acme --user a@b", "--workspace must be given only once"],
    [`--workspace Acme --user a@b --name ${long}`, `--name must be at most 256 characters (got "${long}")`],
    ["--workspace Acme --user a@b --expires 0d", "--expires must be in the future"],
    ["--workspace Acme --user a@b --expires soon", "--expires must be a time such as 2027-01-31T12:00Z"]
  ],
  "keys rotate": [
    ["CI --workspace Acme --ends 2020-01-01", "--ends must be in the future"],
    ["CI --workspace Acme --ends 9999999d", "--ends must be before the year 10000"]
  ],
  "keys revoke": [
    ["Production", "a key name requires a workspace"],
    [key, "not the key itself (got an API key)"],
    ["", "<key> is required"]
  ],
  "workspaces set": [
    ["Acme --tier gold", '--tier must be one of free, solo, team (got "gold")'],
    ["Acme", "nothing to set: give --tier, --billing or both"]
  ],
  "workspaces delete": [["Acme", "to delete without a terminal, add --yes"]],
  "workspaces list": [
    ["Acme\u0007", 'unexpected argument "Acme\ufffd"'],
    ["--jsn", "unknown flag --jsn (did you mean --json?)"],
    ["-- --json", 'unexpected argument "--json"']
  ],
  workspaces: [
    ["", "a command is missing after 'prompt-retrieval workspaces': one of list, create, set,"],
    ["crate --help", 'unknown command "crate" (did you mean create?)']
  ],
  "audit list": [["--limit 0", '--limit must be an integer from 1 to 10000 (got "0")']],
  "prompts diff": [
    ["agent --workspace Acme --from 0", '--from must be a version number, 1 to 2147483647 (got "0")'],
    ["agent --workspace Acme --to 2", "--to needs a version to compare: add --from VERSION"]
  ],
  check: [
    ["examples/prompts-as-files --against /missing", "the directory of --against does not exist"],
    ["examples/prompts-as-files --against=", '--against must be a path that is not empty (got "")'],
    [" --json=false", '<directory> must be a path that is not empty (got "")']
  ],
  import: [
    [" --dry-run", '<path> must be a path that is not empty (got "")'],
    [tmpdir(), "is a directory: add --workspace ID or set PROMPT_RETRIEVAL_WORKSPACE"],
    ["- --overwrite", "--overwrite and --allow-empty are for a directory of prompts"]
  ],
  export: [
    ["--workspace Acme --format files --out=", '--out must be a path that is not empty (got "")'],
    ["--workspace Acme --format files", "--format files needs a directory: add --out DIR"],
    ["--workspace Acme --update", "--update is for --format files"],
    ["--workspace Acme --overwrite", "--overwrite needs --update"]
  ]
}

it.each(
  Object.entries(wrongUsages).flatMap(([command, usages]) =>
    usages.map(([line, part]) => ({ command, line: `${command} ${line}`.trim(), part }))
  )
)(
  "the wrong command line $line exits with 2 and prints one line to stderr",
  async ({ command, line, part }) => {
    const { stderr, ...result } = await runInProcess(line.split(" "))
    expect(result).toEqual({ code: 2, stdout: "" })
    expect(stderr).toMatch(new RegExp(`^prompt-retrieval: .+; see 'prompt-retrieval ${command} --help'\n$`))
    expect(stderr).toContain(part)
    expect(stderr).not.toContain(key)
  }
)

it.each<readonly [args: ReadonlyArray<string>, part: string, code: number]>([
  [["help", "nonsense", "--json"], 'unknown command "nonsense"', 2],
  [["import", join(tmpdir(), "missing"), "--json"], `cannot read ${tmpdir()}/missing: ENOENT`, 1],
  [["--json", "version"], "unknown flag --json", 2]
])("the command %j with --json prints its error as one line of JSON on stderr", async (args, part, code) => {
  const { stderr, ...result } = await runInProcess(args)
  expect(result).toEqual({ code, stdout: "" })
  const error = { message: expect.stringContaining(part), exit_code: code }
  expect(stderr.trimEnd()).not.toContain("\n")
  expect(JSON.parse(stderr)).toEqual({ error })
})

it.each([
  ["help", "--help", /^SUBCOMMANDS\n {2}serve /m],
  ["help keys", "keys --help", /^SUBCOMMANDS\n {2}issue /m],
  ["help keys issue", "keys issue -h", /^FLAGS\n/m],
  ["version", "--version", /^prompt-retrieval v/]
])("the command %s prints the same text to stdout as %s", async (words, flags, stdout) => {
  const result = await runInProcess(words.split(" "))
  expect(result).toEqual({ code: 0, stdout: expect.stringMatching(stdout), stderr: "" })
  expect(await runInProcess(flags.split(" "))).toEqual(result)
})

it.each([
  ["keys issue", /^ {2}--workspace <id\|name> +Id .+ \(default: \$PROMPT_RETRIEVAL_WORKSPACE\)$/m],
  ["keys issue", /^ {2}--user string +Email .+ \(required\)$/m],
  ["serve", /^ENVIRONMENT\n(.*\n)* {2}PORT +Port to listen on.* \(default: 3000\)$/m]
])("the help of %s shows defaults, required flags and environment variables: %s", async (words, line) => {
  expect((await runInProcess([...words.split(" "), "--help"])).stdout).toMatch(line)
})
