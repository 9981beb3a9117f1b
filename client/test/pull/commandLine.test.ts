import { readdirSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { makeTestDirectory } from "../../../test/support/testDirectory.ts"
import { apiKey, startPullService } from "./pullService.ts"

describe("the command line of pull", () => {
  it.each([
    [["--tags", "x"], /unknown flag; the flags are --tag, --type, --out/],
    [["--tag"], /'--tag <value>' argument missing/],
    [["--tag", "--check"], /'--tag' argument is ambiguous/],
    [["--type", "poem"], /--type must be one of system, user/],
    [["--check=yes"], /'--check' does not take an argument/],
    [["--check", "--frozen"], /--frozen reads no prompts/],
    [["--frozen", "--tag", "x"], /--frozen reads no prompts/],
    [["--frozen", "--allow-empty"], /--frozen reads no prompts/],
    [["production"], /only flags/],
    [["--api-key", apiKey], /set PROMPT_RETRIEVAL_KEY/],
    [["--base-url", "ftp://host"], /--base-url or PROMPT_RETRIEVAL_URL must be an http or https URL/]
  ] as const)(
    "pull exits with 2 and prints one line to stderr for the invalid arguments %j",
    async (args, message) => {
      const { pull } = await startPullService()
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
    ]
  ] as const)(
    "a pull %s fails with one line on stderr and writes nothing",
    async (_, env, exitCode, message) => {
      const { pull } = await startPullService()
      const out = makeTestDirectory("pull-")
      const { code, stdout, stderr } = await pull(["--out", out], env)
      expect({ code, stdout }).toEqual({ code: exitCode, stdout: "" })
      expect(stderr).toMatch(/^prompt-retrieval-client: [^\n]+\n$/)
      expect(stderr).toMatch(message)
      expect(readdirSync(out)).toEqual([])
    }
  )

  it("a pull with a key that the service rejects fails with one line on stderr and writes nothing", async () => {
    const { service, pull } = await startPullService()
    service.failWith(401)
    const out = makeTestDirectory("pull-")
    expect(await pull(["--out", out])).toEqual({
      code: 1,
      stdout: "",
      stderr: "prompt-retrieval-client: API key has been revoked; check PROMPT_RETRIEVAL_KEY\n"
    })
    expect(readdirSync(out)).toEqual([])
  })

  it("pull --help names every flag and environment variable", async () => {
    const { pull } = await startPullService()
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
