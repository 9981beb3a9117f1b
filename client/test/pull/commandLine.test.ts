import { describe, expect, it } from "vitest"
import { key } from "../support.ts"
import { startPullService } from "./pullService.ts"

const invalidUrl = "http://user@host"

describe("the command line of pull", () => {
  it.each<[args: ReadonlyArray<string>, env: Readonly<Record<string, string>>, message: RegExp]>([
    [["--tags", "x"], {}, /unknown flag; the flags are --tag, --type, --out/],
    [["--tag"], {}, /'--tag <value>' argument missing/],
    [["--type", "poem"], {}, /--type must be one of system, user/],
    [["--check=yes"], {}, /'--check' does not take an argument/],
    [["--check", "--frozen"], {}, /--frozen reads no prompts/],
    [["--frozen", "--tag", "x"], {}, /--frozen reads no prompts/],
    [["production"], {}, /only flags/],
    [["--api-key", key], {}, /set PROMPT_RETRIEVAL_KEY/],
    [["--base-url", invalidUrl], {}, /--base-url or PROMPT_RETRIEVAL_URL must be an http or https URL/],
    [[], { PROMPT_RETRIEVAL_KEY: "" }, /PROMPT_RETRIEVAL_KEY is required/],
    [[], { PROMPT_RETRIEVAL_KEY: "a b" }, /PROMPT_RETRIEVAL_KEY must be/]
  ])(
    "pull exits with 2, prints one line to stderr and writes nothing for the invalid arguments %j and variables %j",
    async (args, env, message) => {
      const { pull, listFiles } = await startPullService()
      const { code, stdout, stderr } = await pull(args, env)
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
      expect(stderr).toMatch(/^prompt-retrieval-client: [^\n]+\n$/)
      expect(stderr).toMatch(message)
      expect(listFiles()).toEqual([])
    }
  )

  it("a pull with a key that the service rejects fails with one line on stderr and writes nothing", async () => {
    const { service, pull, listFiles } = await startPullService()
    service.failWith(401)
    expect(await pull()).toEqual({
      code: 1,
      stdout: "",
      stderr: "prompt-retrieval-client: API key has been revoked; check PROMPT_RETRIEVAL_KEY\n"
    })
    expect(listFiles()).toEqual([])
  })

  it("pull --help names every flag and environment variable", async () => {
    const { pull } = await startPullService()
    const { code, stdout } = await pull(["--help"])
    expect(code).toBe(0)
    const flags = "--tag --type --out --base-url --allow-empty --check --frozen"
    for (const name of `${flags} PROMPT_RETRIEVAL_KEY PROMPT_RETRIEVAL_URL`.split(" "))
      expect(stdout).toContain(name)
  })
})
