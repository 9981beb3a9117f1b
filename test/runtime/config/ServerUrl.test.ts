import { describe, expect, it } from "vitest"
import {
  describeDatabaseUrl,
  describeRedisUrl,
  findDatabaseUrlProblem,
  isRedisUrl
} from "../../../src/runtime/config/ServerUrl.ts"

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
    ],
    [
      "postgres://ada:s3cret@a:5432,b:5433/prompts?target_session_attrs=read-write",
      "postgres://ada@a:5432,b:5433/prompts"
    ],
    ["postgres://a:1,b,[::1]:3/prompts", "postgres://a:1,b:5432,[::1]:3/prompts"],
    ["postgres:///prompts?host=a,/run/postgresql&port=1,2", "postgres://a:1,%2Frun%2Fpostgresql:2/prompts"],
    ["postgres://old/prompts?host=a,b&port=6432", "postgres://a:6432,b:6432/prompts"]
  ])("describeDatabaseUrl describes %s as %s", (url, description) => {
    expect(findDatabaseUrlProblem(url)).toBeUndefined()
    expect(describeDatabaseUrl(url)).toBe(description)
  })
})

describe("findDatabaseUrlProblem", () => {
  const attributes = "any, read-write, read-only, primary, standby, prefer-standby"

  it.each([
    "prompts",
    "mysql://db/prompts",
    "postgres:///prompts",
    "postgres:///prompts?host=",
    "postgres://ada:100%@db/prompts",
    "postgres://db/%zz",
    "postgres://db:70000/prompts",
    "postgres://db/prompts?port=0",
    "postgres://db/prompts?port=x",
    "postgres://a,,b/prompts",
    "postgres://a:1,b:x/prompts",
    "postgres://a:1,b:70000/prompts",
    "postgres:///prompts?host=a,b&port=1,x",
    "postgres://ada@a,grace@b/%zz"
  ])("findDatabaseUrlProblem rejects %s", (url) => {
    expect(findDatabaseUrlProblem(url)).toBe("must be a URL like postgres://user:password@host:5432/database")
  })

  it("findDatabaseUrlProblem accepts every sslmode in a URL with one host, and every target_session_attrs in a URL with several hosts", () => {
    for (const mode of ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"])
      expect(findDatabaseUrlProblem(`postgres://db/prompts?sslmode=${mode}`)).toBeUndefined()
    for (const value of attributes.split(", "))
      expect(findDatabaseUrlProblem(`postgres://a,b/prompts?target_session_attrs=${value}`)).toBeUndefined()
  })

  it.each([
    ["host=a,b&port=1,2,3", "must have one port, or as many ports as it has hosts"],
    ["host=a&port=1,2", "must have one port, or as many ports as it has hosts"],
    [
      "host=a,b&target_session_attrs=writable",
      `must have one of these as its target_session_attrs: ${attributes}`
    ],
    [
      "host=a,b&load_balance_hosts=random",
      "must have disable as its load_balance_hosts: hosts are tried in order"
    ],
    [
      "host=a,b&sslmode=prefer",
      "must have one of these as its sslmode: disable, require, verify-ca, verify-full, because it has several hosts"
    ]
  ])("findDatabaseUrlProblem rejects the parameters %s", (parameters, problem) => {
    expect(findDatabaseUrlProblem(`postgres:///prompts?${parameters}`)).toBe(problem)
  })
})

describe("describeRedisUrl", () => {
  it.each([
    ["redis://cache", "redis://cache"],
    ["rediss://ada:s3cret@cache:6380/1?s3cret", "rediss://cache:6380/1"],
    ["redis://:s3cret@[::1]:6379", "redis://[::1]:6379"]
  ])("describeRedisUrl describes %s as %s", (url, description) => {
    expect(isRedisUrl(url)).toBe(true)
    expect(describeRedisUrl(url)).toBe(description)
  })
})
