import { assert, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { expect } from "vitest"
import { createPromptApi } from "../../src/index.ts"
import { parseOptions } from "../../src/runtime/PromptApiOptions.ts"

const databaseUrl = "postgres://postgres@127.0.0.1:9/none"
const names =
  "databaseUrl, databaseFeedUrl, redisUrl, rateLimits, outageMaxAge, logger, metrics, basePath, publicUrl"

// biome-ignore lint/suspicious/noExplicitAny: hosts in plain JavaScript can pass any value
const create = createPromptApi as (...options: ReadonlyArray<any>) => ReturnType<typeof createPromptApi>

it.each<[unknown, string]>([
  [undefined, "databaseUrl is missing; it must be a URL like postgres://user:password@host:5432/database"],
  ["postgres://ada:s3cret@db/prompts", "options must be an object"],
  [{ databaseUrl, rateLimits: { perKey: 0 } }, "rateLimits.perKey must be an integer of at least 1"],
  [
    { databaseUrl, rateLimits: { perMinute: 1 } },
    "rateLimits.perMinute is unknown; the options are perKey, perProcess"
  ],
  [{ databaseUrl, outageMaxAge: -1 }, "outageMaxAge must be a number of milliseconds of at least 0"],
  [{ databaseUrl, logger: { warn: true } }, "logger must be an object like console"],
  ...["", "/", "prompts", "/prompts/", "//prompts", "/a/../b", "/a/.", "/a%20b", "/a?b", 7].map(
    (basePath): [object, string] => [
      { databaseUrl, basePath },
      "basePath must be a path like /prompts, without a slash at its end"
    ]
  ),
  [
    JSON.parse(`{"databaseUrl":"${databaseUrl}","__proto__":{}}`),
    `__proto__ is unknown; the options are ${names}`
  ]
])(
  "createPromptApi rejects the options %j with a TypeError that names the option and its rule",
  async (options, message) => {
    await expect(create(options)).rejects.toThrow(new TypeError(message))
  }
)

it.prop(
  "an invalid option of createPromptApi causes a TypeError with the name of the option, but not its value",
  { secret: Schema.String.check(Schema.isMinLength(4)), name: Schema.Literals(names.split(", ")) },
  ({ secret, name }) => {
    try {
      parseOptions({ databaseUrl, [name]: `\0${secret}` })
    } catch (error) {
      assert.instanceOf(error, TypeError)
      assert.notInclude(String(error), `\0${secret}`)
      return assert.include(String(error), name)
    }
    assert.fail(`${name} is accepted`)
  }
)
