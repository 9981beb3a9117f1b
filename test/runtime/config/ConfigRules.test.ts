import { describe, expect, it } from "vitest"
import {
  describeDatabaseUrl,
  describeRedisUrl,
  postgresUrl,
  redisUrl
} from "../../../src/runtime/config/ConfigRules.ts"

describe("describeDatabaseUrl", () => {
  it.each([
    [
      "postgres://ada:s3cret@db.internal:6432/prompts?sslmode=require",
      "postgres://ada@db.internal:6432/prompts"
    ],
    ["postgresql://db/prompts", "postgres://db:5432/prompts"],
    ["postgres://db", "postgres://db:5432"],
    ["postgres://ada:s3cret@[::1]/prompts", "postgres://ada@[::1]:5432/prompts"],
    ["postgres://a%40b:s3cret@db/a%2Fb", "postgres://a%40b@db:5432/a%2Fb"],
    [
      "postgres:///prompts?host=/run/postgresql&user=ada&password=s3cret",
      "postgres://ada@%2Frun%2Fpostgresql:5432/prompts"
    ],
    ["postgres://%2Frun%2Fpostgresql/prompts", "postgres://%2Frun%2Fpostgresql:5432/prompts"],
    [
      "postgres://old:s3cret@old:1/old?host=new&port=2&user=ada&dbname=prompts",
      "postgres://ada@new:2/prompts"
    ]
  ])("describeDatabaseUrl describes %s as %s", (url, description) => {
    expect(postgresUrl(url)).toBeUndefined()
    expect(describeDatabaseUrl(url)).toBe(description)
  })
})

describe("postgresUrl", () => {
  it.each([
    "prompts",
    "mysql://db/prompts",
    "postgres:///prompts",
    "postgres://db/%zz",
    "postgres://db:70000/prompts",
    "postgres:///prompts?host=a&port=1,2"
  ])("postgresUrl rejects %s", (url) => {
    expect(postgresUrl(url)).toBe("must be a URL like postgres://user:password@host:5432/database")
  })

  it.each([
    "postgres://ada:pa#ss@db/prompts",
    "postgres://ada:pa/ss@db/prompts",
    "postgres://ada:pa?ss@db/prompts"
  ])("postgresUrl rejects %s and says how to write the password", (url) => {
    expect(postgresUrl(url)).toBe(
      "must be a URL like postgres://user:password@host:5432/database; percent-encode special characters of the password, such as # as %23"
    )
  })

  it.each([
    "postgres://a,b/prompts",
    "postgresql://ada:s3cret@a:5432,b:5433/prompts?sslmode=require",
    "postgres://a:1,[::1]:2?application_name=prompts",
    "postgres:///prompts?host=a,b",
    "postgres://old/prompts?host=a,/run/postgresql"
  ])("postgresUrl rejects the several hosts of %s and says what to use instead", (url) => {
    expect(postgresUrl(url)).toBe(
      "must have exactly one host: use an address that follows the primary, such as HAProxy, a pooler, a DNS name, or the endpoint of Patroni or of a cloud"
    )
  })

  it.each([
    "postgres://ada:s,cret@db/prompts",
    "postgres://db/prompts,more",
    "postgres://db?application_name=a,b"
  ])("postgresUrl accepts commas outside of the host: %s", (url) => {
    expect(postgresUrl(url)).toBeUndefined()
  })

  it("postgresUrl accepts the sslmodes of libpq, and rejects others", () => {
    for (const mode of ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"])
      expect(postgresUrl(`postgres://db/prompts?sslmode=${mode}`)).toBeUndefined()
    expect(postgresUrl("postgres://db/prompts?sslmode=on")).toBe(
      "must have one of these as its sslmode: disable, allow, prefer, require, verify-ca, verify-full"
    )
  })
})

describe("describeRedisUrl", () => {
  it.each([
    ["redis://cache", "redis://cache"],
    ["rediss://ada:s3cret@cache:6380/1?s3cret", "rediss://cache:6380/1"],
    ["redis://:s3cret@[::1]:6379", "redis://[::1]:6379"]
  ])("describeRedisUrl describes %s as %s", (url, description) => {
    expect(redisUrl(url)).toBeUndefined()
    expect(describeRedisUrl(url)).toBe(description)
  })
})
