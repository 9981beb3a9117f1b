import { readdirSync } from "node:fs"
import { afterAll, describe, expect, it } from "vitest"
import { makeDirectory, removeDirectories } from "../../../test/support/programs/packages.ts"
import { api, apiKey, pull, startPullService } from "./pullService.ts"

startPullService()

afterAll(removeDirectories)

describe("the command line of pull", () => {
  it.each([
    [["--tags", "x"], /unknown flag; the flags are --tag, --type, --out/],
    [["--tag"], /--tag needs a value/],
    [["--tag", "--check"], /--tag needs a value/],
    [["--tag", "a", "--tag=b"], /--tag must be given only once/],
    [["--type", "poem"], /--type must be one of system, user/],
    [["--check=yes"], /--check takes no value/],
    [["--check", "--frozen"], /--check and --frozen exclude each other/],
    [["--frozen", "--tag", "x"], /--frozen reads no prompts/],
    [["--frozen", "--allow-empty"], /--frozen reads no prompts/],
    [["production"], /only flags/],
    [["--api-key", apiKey], /set PROMPT_RETRIEVAL_KEY/],
    [["--base-url", "ftp://host"], /--base-url or PROMPT_RETRIEVAL_URL must be an http or https URL/]
  ] as const)(
    "pull exits with 2 and prints one line to stderr for the invalid arguments %j",
    async (args, message) => {
      const { code, stdout, stderr } = await pull(args)
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
      expect(stderr).toMatch(/^prompt-retrieval-client: [^\n]+\n$/)
      expect(stderr).toMatch(message)
    }
  )

  it.each([
    ["without a key", { PROMPT_RETRIEVAL_KEY: "" }, 2, /PROMPT_RETRIEVAL_KEY is required/],
    [
      "with a key that no header can carry",
      { PROMPT_RETRIEVAL_KEY: "a b" },
      2,
      /PROMPT_RETRIEVAL_KEY must be/
    ],
    [
      "with a key that the service rejects",
      { PROMPT_RETRIEVAL_KEY: `key_live_${"0".repeat(64)}` },
      1,
      /Invalid API key; check PROMPT_RETRIEVAL_KEY/
    ],
    ["of a service with another path", { PROMPT_RETRIEVAL_URL: "/elsewhere" }, 1, /check baseUrl/]
  ] as const)(
    "a pull %s fails with one line on stderr and writes nothing",
    async (_, env, exitCode, message) => {
      const out = makeDirectory("pull")
      const url = (env as { PROMPT_RETRIEVAL_URL?: string }).PROMPT_RETRIEVAL_URL
      const variables = url === undefined ? env : { PROMPT_RETRIEVAL_URL: api.service().url + url }
      const { code, stdout, stderr } = await pull(["--out", out], variables)
      expect({ code, stdout }).toEqual({ code: exitCode, stdout: "" })
      expect(stderr).toMatch(/^prompt-retrieval-client: [^\n]+\n$/)
      expect(stderr).toMatch(message)
      expect(readdirSync(out)).toEqual([])
    }
  )

  it("pull --help names every flag and environment variable", async () => {
    const { code, stdout } = await pull(["--help"])
    expect(code).toBe(0)
    for (const name of [
      "--tag",
      "--type",
      "--out",
      "--base-url",
      "--allow-empty",
      "--check",
      "--frozen",
      "PROMPT_RETRIEVAL_KEY"
    ]) {
      expect(stdout).toContain(name)
    }
  })
})
