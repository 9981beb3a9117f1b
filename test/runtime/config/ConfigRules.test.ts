import { expect, it } from "vitest"
import { postgresUrl, redisUrl } from "../../../src/runtime/config/ConfigRules.ts"
import { describeDatabaseUrl, describeRedisUrl } from "../../../src/runtime/telemetry/LoggedUrls.ts"

it.each([
  [
    "postgres://ada:s3cret@db.internal:6432/prompts?sslmode=require",
    "postgres://ada@db.internal:6432/prompts"
  ],
  ["postgresql://db/prompts", "postgres://db:5432/prompts"],
  ["postgres://db", "postgres://db:5432"],
  ["postgres://ada:s3cret@[::1]/prompts", "postgres://ada@[::1]:5432/prompts"],
  ["postgres://a%40b:s3cret@db/a%2Fb", "postgres://a%40b@db:5432/a%2Fb"],
  ["postgres://ada:s,cret@db/prompts,more?application_name=a,b", "postgres://ada@db:5432/prompts%2Cmore"],
  [
    "postgres:///prompts?host=/run/postgresql&user=ada&password=s3cret",
    "postgres://ada@%2Frun%2Fpostgresql:5432/prompts"
  ],
  ["postgres://%2Frun%2Fpostgresql/prompts", "postgres://%2Frun%2Fpostgresql:5432/prompts"],
  ["postgres://old:s3cret@old:1/old?host=new&port=2&user=ada&dbname=prompts", "postgres://ada@new:2/prompts"]
])("the URL of a PostgreSQL server %s is valid, and is logged as %s", (url, description) => {
  expect(postgresUrl(url)).toBeUndefined()
  expect(describeDatabaseUrl(url)).toBe(description)
})

const rule = "must be a URL like postgres://user:password@host:5432/database"
const passwordRule = `${rule}; percent-encode special characters of the password, such as # as %23`
const hostRule =
  "must have exactly one host: use an address that follows the primary, such as HAProxy, a pooler, a DNS name, or the endpoint of Patroni or of a cloud"

it.each([
  ["prompts", rule],
  ["mysql://db/prompts", rule],
  ["postgres:///prompts", rule],
  ["postgres://db/%zz", rule],
  ["postgres://db:70000/prompts", rule],
  ["postgres:///prompts?host=a&port=1,2", rule],
  ["postgres://ada:pa#ss@db/prompts", passwordRule],
  ["postgres://ada:pa?ss@db/prompts", passwordRule],
  ["postgresql://ada:s3cret@a:5432,b:5433/prompts?sslmode=require", hostRule],
  ["postgres://old/prompts?host=a,/run/postgresql", hostRule]
])("the URL of a PostgreSQL server %s is rejected: it %s", (url, problem) => {
  expect(postgresUrl(url)).toBe(problem)
})

it("a PostgreSQL URL can have every sslmode of libpq, and no other sslmode", () => {
  const modes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
  for (const mode of modes) expect(postgresUrl(`postgres://db/prompts?sslmode=${mode}`)).toBeUndefined()
  expect(postgresUrl("postgres://db/prompts?sslmode=on")).toBe(
    `must have one of these as its sslmode: ${modes.join(", ")}`
  )
})

it.each([
  ["redis://cache", "redis://cache"],
  ["rediss://ada:s3cret@cache:6380/1?s3cret", "rediss://cache:6380/1"],
  ["redis://:s3cret@[::1]:6379", "redis://[::1]:6379"]
])("the URL of a Redis server %s is valid, and is logged as %s", (url, description) => {
  expect(redisUrl(url)).toBeUndefined()
  expect(describeRedisUrl(url)).toBe(description)
})
