import { layer } from "../../../src/adapters/memory/RateLimiter.ts"
import { rateLimiterContract } from "../../contracts/RateLimiter.ts"

rateLimiterContract("memory", layer)
