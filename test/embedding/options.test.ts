import { assert, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { afterEach, describe, expect, vi } from "vitest"
import { createPromptApi } from "../../src/index.ts"
import { parseOptions } from "../../src/runtime/PromptApiOptions.ts"

const unreachable = "postgres://postgres@127.0.0.1:9/none"
const databaseRule = "must be a URL like postgres://user:password@host:5432/database"

// biome-ignore lint/suspicious/noExplicitAny: hosts in plain JavaScript can pass any value
const create = createPromptApi as (...options: ReadonlyArray<any>) => ReturnType<typeof createPromptApi>

describe("createPromptApi rejects with a TypeError that names the option and its rule", () => {
  it.each<[unknown, string]>([
    [undefined, `databaseUrl is missing; it ${databaseRule}`],
    [{}, `databaseUrl is missing; it ${databaseRule}`],
    ["postgres://ada:s3cret@db/prompts", "options must be an object"],
    [{ databaseUrl: "s3cret" }, `databaseUrl ${databaseRule}`],
    [{ databaseUrl: new URL("postgres://ada:s3cret@db/prompts") }, `databaseUrl ${databaseRule}`],
    [{ databaseUrl: unreachable, databaseFeedUrl: "s3cret" }, `databaseFeedUrl ${databaseRule}`],
    [{ databaseUrl: unreachable, redisUrl: "s3cret" }, "redisUrl must be a URL like redis://host:6379"],
    [{ databaseUrl: unreachable, rateLimits: 100 }, "rateLimits must be an object"],
    [
      { databaseUrl: unreachable, outageMaxAge: -1 },
      "outageMaxAge must be a number of milliseconds of at least 0"
    ],
    [
      { databaseUrl: unreachable, outageMaxAge: "300 s" },
      "outageMaxAge must be a number of milliseconds of at least 0"
    ],
    [
      { databaseUrl: unreachable, rateLimits: { perKey: 0 } },
      "rateLimits.perKey must be an integer of at least 1"
    ],
    [
      { databaseUrl: unreachable, rateLimits: { perProcess: "500" } },
      "rateLimits.perProcess must be an integer of at least 1"
    ],
    [
      { databaseUrl: unreachable, rateLimits: { perMinute: 1 } },
      "rateLimits.perMinute is unknown; the options are perKey, perProcess"
    ],
    [{ databaseUrl: unreachable, logger: "s3cret" }, "logger must be an object like console"],
    [{ databaseUrl: unreachable, logger: { warn: true } }, "logger must be an object like console"],
    [{ databaseUrl: unreachable, metrics: "yes" }, "metrics must be true or false"],
    [
      { databaseUrl: unreachable, publicUrl: "https://ada:s3cret@example.com" },
      "publicUrl must be an http or https URL without credentials, query and fragment, like https://prompts.example.com"
    ],
    ...[
      "",
      "/",
      "prompts",
      "/prompts/",
      "//prompts",
      "/a//b",
      "/a/../b",
      "/a/.",
      "/a%20b",
      "/a?b",
      "/a#b",
      7
    ].map((basePath): [unknown, string] => [
      { databaseUrl: unreachable, basePath },
      "basePath must be a path like /prompts, without a slash at its end"
    ]),
    [
      { databaseUrl: unreachable, database: "s3cret" },
      "database is unknown; the options are databaseUrl, databaseFeedUrl, redisUrl, rateLimits, outageMaxAge, logger, metrics, basePath, publicUrl"
    ],
    [
      JSON.parse(`{"databaseUrl":"${unreachable}","__proto__":{}}`),
      "__proto__ is unknown; the options are databaseUrl, databaseFeedUrl, redisUrl, rateLimits, outageMaxAge, logger, metrics, basePath, publicUrl"
    ]
  ])("createPromptApi rejects the options %j with a TypeError", async (options, message) => {
    const rejection = create(options)
    await expect(rejection).rejects.toThrow(new TypeError(message))
    await expect(rejection).rejects.toBeInstanceOf(TypeError)
  })
})

describe("an invalid option", () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })

  it("createPromptApi with an invalid option leaves nothing running and logs nothing", async () => {
    const errors = vi.spyOn(console, "error")
    const before = process.getActiveResourcesInfo()
    await expect(create({ databaseUrl: unreachable, redisUrl: "x" })).rejects.toThrow(TypeError)
    assert.deepStrictEqual(process.getActiveResourcesInfo(), before)
    assert.deepStrictEqual(errors.mock.calls, [])
  })

  it.prop(
    "the error for an invalid option contains the name of the option, but not its value",
    { secret: Schema.String.check(Schema.isMinLength(4)) },
    ({ secret }) => {
      for (const name of [
        "databaseUrl",
        "databaseFeedUrl",
        "redisUrl",
        "basePath",
        "publicUrl",
        "logger",
        "metrics",
        "rateLimits",
        "outageMaxAge"
      ]) {
        try {
          parseOptions({ databaseUrl: unreachable, [name]: `\0${secret}` })
          assert.fail(`${name} is accepted`)
        } catch (error) {
          assert.instanceOf(error, TypeError)
          assert.notInclude(String(error), `\0${secret}`)
          assert.include(String(error), name)
        }
      }
    }
  )
})
